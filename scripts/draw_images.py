"""Draw docs/images/frontier.png: the frontier of docs/controlled.md. Run from the repository."""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")

from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from commod import ControlledDebiaser, frontier
from commod.datasets import load_compas


def main() -> None:
    """Fit the model of the README, its frontier, and save the picture."""
    people = load_compas()
    X = people.data[["sex", "age", "priors_count", "c_charge_degree"]]
    y, race = people.target, people.sensitive_features
    old, new = train_test_split(X.index, test_size=0.6, random_state=0)
    encode = make_column_transformer(
        (OneHotEncoder(), ["sex", "c_charge_degree"]), remainder="passthrough"
    )
    model = make_pipeline(encode, LogisticRegression(max_iter=1000)).fit(X.loc[old], y[old])
    edit, test = train_test_split(new, test_size=0.5, random_state=0)
    curve = frontier(
        ControlledDebiaser(model, favorable_label=0, random_state=0),
        X.loc[edit],
        y[edit],
        sensitive_features=race[edit],
        X_eval=X.loc[test],
        y_eval=y[test],
        sensitive_features_eval=race[test],
    )
    ax = curve.plot()
    path = Path("docs/images/frontier.png")
    ax.figure.savefig(path, dpi=110)
    print(f"{path}: {curve}")


if __name__ == "__main__":
    main()
