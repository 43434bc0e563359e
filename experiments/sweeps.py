"""The sweep of every method on every split, measured on the test rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from commod import frontier, metrics
from experiments.methods import AS_IN_PAPER, FEWER, METHODS, WEIGHED, make
from experiments.paper import DP
from experiments.protocol import ADULT, Split, make_split, quietly
from experiments.run import Cell, Done
from experiments.settings import Settings

N_TARGETS = 31  # as many updates as LPP and ROC have, for a fair comparison
FIGURES = ["fairness", "accuracy", "change_rate", "n_gains", "n_losses", "limit"]
KNOBS = ["strength", "lambda_fair", "lambda_ratio", "target", "shrinkage"]
SECONDS = {  # rough, for the remaining time
    ("COMMOD", "Law School"): 25,
    ("COMMOD", "COMPAS"): 70,
    ("COMMOD", "Adult"): 90,
    (AS_IN_PAPER, "Law School"): 50,
    (AS_IN_PAPER, "COMPAS"): 110,
    ("FRAPPE", "Law School"): 11,
    ("FRAPPE", "COMPAS"): 27,
    ("FRAPPE", "Adult"): 60,
    ("AdversarialDebiasing", "Law School"): 6,
    ("AdversarialDebiasing", "COMPAS"): 24,
    ("AdversarialDebiasing", "Adult"): 40,
    ("ControlledDebiaser", "Adult"): 20,
}


def cells(settings: Settings) -> list[Cell]:
    """Return one cell per table, notion, split and method; the paper's COMMOD has no Adult."""
    all_cells = []
    for (table, notion), n in settings.splits.items():
        for method in METHODS:
            if table == ADULT and method == AS_IN_PAPER:
                continue
            seconds = SECONDS.get((method, table), 3)
            for split in range(n):
                arguments = {"table": table, "notion": notion, "split": split, "method": method}
                arguments["sweep"] = settings.sweep_of(method)
                all_cells.append(Cell("sweeps", arguments, seconds))
    return all_cells


def compute(
    table: str, notion: str, split: int, method: str, sweep: dict[str, Any]
) -> list[dict[str, Any]]:
    """Return one record per update of the method: settings and figures on the test rows."""
    rows = make_split(table, split)
    update = make(method, rows, notion)
    if method in (FEWER, WEIGHED):
        sweep = {"targets": _targets(rows, notion)}
    return measured_updates(update, rows, sweep)


def measured_updates(update: Any, rows: Split, sweep: dict[str, Any]) -> list[dict[str, Any]]:
    """Return one record per update of a sweep: settings and figures on the test rows."""
    with quietly():
        curve = frontier(update, **rows.fit_rows, **rows.test_rows, describe=False, **sweep)
    records = curve.frame().reindex(columns=[*KNOBS, *FIGURES])
    records["base_fairness"], records["base_accuracy"] = curve.base_fairness, curve.base_accuracy
    records["n_test"] = len(rows.test.y)
    return records.to_dict("records")


def _targets(rows: Any, notion: str) -> list[float]:
    """Return targets from the base model's fairness on the fit rows to parity."""
    before = rows.model.predict(rows.train.X)
    groups = {"sensitive_features": rows.train.s}
    base = metrics.fairness_value(notion, rows.train.y, before, **groups)
    return np.linspace(base, 1.0 if notion == DP else 0.0, N_TARGETS).tolist()


def frame(done: Done, settings: Settings) -> pd.DataFrame:
    """Return all sweeps as one tidy frame."""
    return done.frame(cells(settings)).drop(columns="sweep")
