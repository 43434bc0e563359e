"""Train and save a model, and write two tables: stand-ins for what a real project has already."""

import skops.io
from sklearn.linear_model import LogisticRegression

from commod.datasets import make_biased

COLUMNS = ["x0", "x1", "x2"]


def applicants(n, seed):
    """Return applicants with three numbers, whether they repaid, and their group."""
    people = make_biased(n, bias=1.0, random_state=seed)
    return people.data[COLUMNS].assign(repaid=people.target, group=people.sensitive_features)


old, held_out, recent = (applicants(n, seed) for seed, n in enumerate([1000, 3000, 3000]))
model = LogisticRegression().fit(old[COLUMNS], old["repaid"])
skops.io.dump(model, "model.skops")
held_out.to_csv("held_out.csv", index=False)
recent["score"] = model.predict_proba(recent[COLUMNS])[:, 1]  # as the service that decides does
recent.to_csv("recent.csv", index=False)
