"""Draw docs/images/frontier.png and compare.png with the model of the README."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder

from commod import ControlledDebiaser, compare, frontier
from commod.datasets import load_compas
from commod.rivals import lineup

IMAGES = Path(__file__).parents[1] / "docs" / "images"


def readme_example() -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """Return the model of the README, the fit rows and the evaluated rows."""
    people = load_compas()
    X, y = people.data, people.target
    race = people.race.where(people.race == "African-American", "others")
    old, new = train_test_split(X.index, test_size=0.6, random_state=0)
    encode = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), make_column_selector(dtype_exclude="number")),
        remainder=MinMaxScaler(),
    )
    model = make_pipeline(encode, LogisticRegression(max_iter=1000)).fit(X.loc[old], y[old])
    edit, test = train_test_split(new, test_size=0.5, random_state=0)
    measured = {
        "X_eval": X.loc[test],
        "y_eval": y[test],
        "sensitive_features_eval": race[test],
    }
    return model, (X.loc[edit], y[edit], race[edit]), measured


def main() -> None:
    """Draw both pictures."""
    model, (X, y, race), measured = readme_example()
    update = ControlledDebiaser(model, favorable_label=0, direction="gains_only", max_margin=0.2)
    curve = frontier(update, X, y, sensitive_features=race, **measured)
    curve.plot().figure.savefig(IMAGES / "frontier.png", dpi=110)
    methods = lineup(model, favorable_label=0, random_state=0)
    comparison = compare(methods, X, y, sensitive_features=race, **measured)
    comparison.plot().savefig(IMAGES / "compare.png", dpi=100)
    print(comparison)


if __name__ == "__main__":
    main()
