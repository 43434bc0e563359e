"""Score agreement on Law School: edited scores against the base model's, COMMOD and AdvDebias.

The paper calls its picture a calibration plot, but it compares scores with scores, not with
frequencies.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from commod.metrics import score_agreement
from experiments.matching import fit_again, matched_splits
from experiments.paper import DP, LAW_SCHOOL
from experiments.protocol import make_split
from experiments.run import Cell, Done
from experiments.settings import Settings

METHODS = ("COMMOD", "AdversarialDebiasing")
N_BINS = 20


def cells_after(settings: Settings, sweeps: pd.DataFrame) -> list[Cell]:
    """Return one cell per split and method."""
    return [
        Cell(
            "agreement",
            {"split": split, "method": method, "settings": chosen[method]},
            8,
        )
        for split, chosen in matched_splits(sweeps, LAW_SCHOOL, METHODS, settings.few_splits)
        for method in METHODS
    ]


def compute(split: int, method: str, settings: dict[str, float]) -> list[dict[str, Any]]:
    """Return the agreement of scores before and after, and counts of people in a grid of both."""
    rows = make_split(LAW_SCHOOL, split)
    update = fit_again(method, rows, DP, settings)
    before, after = (m.predict_proba(rows.test.X)[:, 1] for m in (rows.model, update))
    kept = rows.before == update.predict(rows.test.X)
    records = []
    for who, people in (("all", np.ones_like(kept)), ("unchanged", kept)):
        agreement = vars(score_agreement(before[people], after[people]))
        records.append({"people": who, **rows.evaluate(update.predict(rows.test.X)), **agreement})
    edges = np.linspace(0, 1, N_BINS + 1)
    counts = np.histogram2d(before, after, bins=(edges, edges))[0].astype(int)
    records += [
        {"people": "grid", "bin_before": int(i), "bin_after": int(j), "count": int(counts[i, j])}
        for i, j in np.argwhere(counts)
    ]
    return records


def tables(done: Done, settings: Settings, sweeps: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return the grids of scores, and means and spread of the agreement over splits."""
    runs = done.frame(cells_after(settings, sweeps)).drop(columns="settings", errors="ignore")
    if runs.empty:
        return {"agreement_runs": runs, "agreement_grid": runs, "agreement": runs}
    is_grid = runs["people"] == "grid"
    grid = runs[is_grid].groupby(["method", "bin_before", "bin_after"], sort=False)["count"].sum()
    columns = ["p_rule", "accuracy", "changes", "mean_absolute_difference", "correlation"]
    columns += ["rank_correlation"]
    grouped = runs[~is_grid].groupby(["method", "people"], sort=False)
    summary = grouped[columns].agg(["mean", "std"])
    summary.columns = [name if kind == "mean" else f"{name}_sd" for name, kind in summary.columns]
    summary["n_splits"] = grouped.size()
    return {
        "agreement_runs": runs[~is_grid].dropna(axis=1, how="all"),
        "agreement_grid": grid.reset_index().astype({"bin_before": int, "bin_after": int}),
        "agreement": summary.reset_index(),
    }
