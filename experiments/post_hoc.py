"""Post-hoc or self-explainable: replace FRAPPE's additive term by a tree that explains it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from scipy.special import logit
from sklearn.tree import DecisionTreeRegressor

from experiments.matching import fit_again, matched_splits
from experiments.paper import DP, LAW_SCHOOL
from experiments.protocol import make_split
from experiments.run import Cell, Done
from experiments.settings import Settings

METHODS = ("COMMOD", "FRAPPE")
DEPTHS = tuple(range(1, 11))


def cells_after(settings: Settings, sweeps: pd.DataFrame) -> list[Cell]:
    """Return one cell per split."""
    return [
        Cell("post_hoc", {"split": split, "settings": chosen}, 15)
        for split, chosen in matched_splits(sweeps, LAW_SCHOOL, METHODS, settings.few_splits)
    ]


def compute(split: int, settings: dict[str, dict[str, float]]) -> list[dict[str, Any]]:
    """Return the test figures of COMMOD, of FRAPPE, and of FRAPPE with a tree for its term."""
    rows = make_split(LAW_SCHOOL, split)
    commod, frappe = (fit_again(name, rows, DP, settings[name]) for name in METHODS)
    records = [
        {"model": name, "depth": 0, **rows.evaluate(update.predict(rows.test.X))}
        for name, update in zip(METHODS, (commod, frappe), strict=True)
    ]
    margin = logit(rows.model.predict_proba(rows.test.X)[:, 1])
    added = _added(frappe, rows.model, rows.train.X)
    for depth in DEPTHS:
        tree = DecisionTreeRegressor(max_depth=depth, random_state=0).fit(rows.train.X, added)
        decisions = (margin + tree.predict(rows.test.X) > 0).astype(int)
        records.append({"model": "FRAPPE + tree", "depth": depth, **rows.evaluate(decisions)})
    return records


def _added(update: Any, model: Any, X: Any) -> np.ndarray:
    """Return the additive term of each row: edited logit minus the base model's."""
    after, before = (logit(m.predict_proba(X)[:, 1]) for m in (update, model))
    return after - before


def tables(done: Done, settings: Settings, sweeps: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return the runs, and means and spread over splits by depth."""
    runs = done.frame(cells_after(settings, sweeps)).drop(columns="settings", errors="ignore")
    if runs.empty:
        return {"post_hoc_runs": runs, "post_hoc": runs}
    grouped = runs.groupby(["model", "depth"], sort=False)
    summary = grouped[["p_rule", "accuracy", "changes"]].agg(["mean", "std"])
    summary.columns = [name if kind == "mean" else f"{name}_sd" for name, kind in summary.columns]
    summary["n_splits"] = grouped.size()
    return {"post_hoc_runs": runs, "post_hoc": summary.reset_index()}
