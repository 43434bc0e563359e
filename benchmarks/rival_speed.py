"""Time one fit of every rival on 100,000 rows and 20 columns."""

from __future__ import annotations

import os
import time
import warnings

from report import show_at_most
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import get_tags

from commod.datasets import make_biased
from commod.exceptions import CommodWarning
from commod.rivals import Rival
from commod.rivals._lineup import every_method

N_ROWS, N_COLUMNS = 100_000, 20
MOST_SECONDS = 60.0
GROUP = "group"


def rival_speed() -> None:
    """Print the seconds of one fit and one `predict`, per method; `ONLY=LPP` times one method."""
    data = make_biased(N_ROWS, n_features=N_COLUMNS, random_state=0)
    X, y, groups = data.data, data.target, data.sensitive_features
    with_group = X.assign(**{GROUP: (groups == groups[0]).astype(float)})
    models = {
        "plain": LogisticRegression().fit(X, y),
        "tree": DecisionTreeClassifier(max_leaf_nodes=200, random_state=0).fit(X, y),
        "group": LogisticRegression().fit(with_group, y),
    }
    only = os.environ.get("ONLY", "").split(",")
    for name, update in every_method(None, random_state=0).items():
        if not isinstance(update, Rival) or (only != [""] and name not in only):
            continue
        tags = get_tags(update)
        kind = "tree" if tags.needs_tree else "group" if tags.needs_group_in_model else "plain"
        update.set_params(estimator=models[kind])
        if kind == "group":
            update.set_params(group_column=GROUP)
        table = with_group if kind == "group" else X
        knows_parity = "demographic_parity" in update.known_constraints
        update.set_params(constraints=update.known_constraints[0]) if not knows_parity else None
        begin = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CommodWarning)
            update.fit(table, y, sensitive_features=groups)
            known = {"sensitive_features": groups} if tags.needs_sensitive_features else {}
            update.predict(table, **known)
        show_at_most(f"{name}: seconds at 100,000 rows", time.perf_counter() - begin, MOST_SECONDS)
