"""Locality: how well a small tree predicts who changed, at similar fairness and accuracy."""

from __future__ import annotations

from typing import Any

import pandas as pd
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.metrics import f1_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder
from sklearn.tree import DecisionTreeClassifier

from commod.metrics import change_locality
from experiments.matching import fit_again, matched_splits
from experiments.methods import FEWER
from experiments.paper import COMPAS, DP, LAW_SCHOOL
from experiments.protocol import make_split
from experiments.run import Cell, Done
from experiments.settings import Settings

METHODS = ("COMMOD", FEWER, "FRAPPE", "AdversarialDebiasing")
DEPTHS = (1, 2, 3, 4, 5, 6, 8)
TABLES = (LAW_SCHOOL, COMPAS)


def cells_after(settings: Settings, sweeps: pd.DataFrame) -> list[Cell]:
    """Return one cell per table, split and method, on the first splits that have all methods."""
    return [
        Cell(
            "locality",
            {"table": table, "split": split, "method": method, "settings": chosen[method]},
            9,
        )
        for table in TABLES
        for split, chosen in matched_splits(sweeps, table, METHODS, settings.few_splits)
        for method in METHODS
    ]


def compute(
    table: str, split: int, method: str, settings: dict[str, float]
) -> list[dict[str, Any]]:
    """Return the figures of the update and the F1 score of trees of each depth.

    `f1` is the score of a tree grown and scored on the test rows, as in the paper. `f1_new` is the
    score of a tree grown on the training rows.
    """
    rows = make_split(table, split)
    update = fit_again(method, rows, DP, settings)
    after = update.predict(rows.test.X)
    changed = {
        "train": rows.model.predict(rows.train.X) != update.predict(rows.train.X),
        "test": rows.before != after,
    }
    reached = rows.evaluate(after)
    return [
        {
            **reached,
            "depth": depth,
            "f1": change_locality(rows.test.X, rows.before, after, max_depth=depth),
            "f1_new": _on_new_rows(rows, changed, depth),
        }
        for depth in DEPTHS
    ]


def _on_new_rows(rows: Any, changed: dict[str, Any], depth: int) -> float:
    codes = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    encode = make_column_transformer(
        (codes, make_column_selector(dtype_exclude="number")), remainder="passthrough"
    )
    tree = make_pipeline(encode, DecisionTreeClassifier(max_depth=depth, random_state=0))
    predicted = tree.fit(rows.train.X, changed["train"]).predict(rows.test.X)
    return float(f1_score(changed["test"], predicted, zero_division=0.0))


def tables(done: Done, settings: Settings, sweeps: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return the runs, and means and spread over splits by depth."""
    runs = done.frame(cells_after(settings, sweeps)).drop(columns="settings", errors="ignore")
    if runs.empty:
        return {"locality_runs": runs, "locality": runs}
    summary = runs.groupby(["table", "method", "depth"], sort=False).agg(
        f1=("f1", "mean"),
        f1_sd=("f1", "std"),
        f1_new=("f1_new", "mean"),
        f1_new_sd=("f1_new", "std"),
        p_rule=("p_rule", "mean"),
        accuracy=("accuracy", "mean"),
        changes=("changes", "mean"),
        n_splits=("split", "size"),
    )
    return {"locality_runs": runs, "locality": summary.reset_index()}
