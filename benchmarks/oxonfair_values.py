"""Compare values of `commod.constraints` with OxonFair's metrics on random tables.

OxonFair counts 0 where nobody is counted; ours is NaN there. So a table counts for a constraint
where ours has a value.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from environments import HERE, python_of
from numpy.typing import NDArray
from report import show

from commod import constraints as language

N_TABLES = 500
TOLERANCE = 1e-9
COLUMN = "stratum"

# OxonFair's name -> our constraint; the bound plays no part in a value
SAME: dict[str, Any] = {
    "pos_pred_rate.max_diff": language.DemographicParity(difference=0.1),
    "pos_pred_rate.min_ratio": language.DemographicParity(ratio=0.8),
    "true_pos_rate.max_diff": language.TruePositiveRateParity(difference=0.1),
    "true_pos_rate.min_ratio": language.TruePositiveRateParity(ratio=0.8),
    "false_pos_rate.max_diff": language.FalsePositiveRateParity(difference=0.1),
    "false_pos_rate.min_ratio": language.FalsePositiveRateParity(ratio=0.8),
    "equalized_odds_max": language.EqualizedOdds(largest=0.1),
    "accuracy.max_diff": language.AccuracyParity(0.1),
    "precision.max_diff": language.PredictiveParity(0.1),
    "error_ratio.max_diff": language.ErrorRatio(difference=0.1),
    "error_ratio.min_ratio": language.ErrorRatio(ratio=0.8),
    "pos_pred_rate.min": language.MinimumRate(0.3),
    "true_pos_rate.min": language.MinimumTruePositiveRate(0.6),
    "conditional.pos_pred_rate.max_diff": language.DemographicParity(difference=0.1).within(
        COLUMN, min_rows=1, over="average"
    ),
    "conditional.pos_pred_rate.min_ratio": language.DemographicParity(ratio=0.8).within(
        COLUMN, min_rows=1, over="average"
    ),
    "conditional.accuracy.max_diff": language.AccuracyParity(0.1).within(
        COLUMN, min_rows=1, over="average"
    ),
}


def random_tables(n: int, seed: int = 0) -> list[NDArray[np.intp]]:
    """Return tables of shape (4, rows): labels, decisions, groups and strata.

    Every group has rows in every stratum. A table has 2 to 4 groups and 2 or 3 strata.
    """
    random = np.random.default_rng(seed)
    tables: list[NDArray[np.intp]] = []
    while len(tables) < n:
        n_rows, n_groups, n_strata = random.integers((30, 2, 2), (400, 5, 4))
        y, decisions = (random.random((2, n_rows)) < random.random((2, 1))).astype(int)
        groups, strata = (
            random.integers(n_groups, size=n_rows),
            random.integers(n_strata, size=n_rows),
        )
        if len(np.unique(groups * n_strata + strata)) == n_groups * n_strata:
            tables.append(np.stack([y, decisions, groups, strata]))
    return tables


def values_of_oxonfair(tables: list[NDArray[np.intp]]) -> NDArray[np.float64]:
    """Return OxonFair's values of shape (n_metrics, n_tables)."""
    with tempfile.TemporaryDirectory() as folder:
        rows, asked, answer = (Path(folder) / x for x in ("rows.npz", "asked.json", "answer.npy"))
        ends = np.cumsum([table.shape[1] for table in tables])
        np.savez(rows, rows=np.concatenate(tables, axis=1), ends=ends)
        asked.write_text(json.dumps(list(SAME)))
        script = HERE / "peers" / "oxonfair_values.py"
        done = subprocess.run(
            [python_of("oxonfair"), script, rows, asked, answer], capture_output=True, text=True
        )
        if done.returncode:
            raise SystemExit(f"OxonFair failed:\n{done.stderr[-4000:]}")
        return np.load(answer)


def oxonfair_values() -> None:
    """Compare the values of every constraint that both libraries define."""
    tables = random_tables(N_TABLES)
    theirs = values_of_oxonfair(tables)
    for (name, constraint), row in zip(SAME.items(), theirs, strict=True):
        ours = np.array([_value(constraint, *table) for table in tables])
        is_defined = ~np.isnan(ours)
        apart = float(np.abs(ours - row)[is_defined].max(initial=0.0))
        holds = apart <= TOLERANCE and bool(is_defined.any())
        label = f"{name}: largest difference, {int(is_defined.sum())} tables"
        show(label, f"{apart:.1e}", f"<= {TOLERANCE:g}", holds)


def _value(constraint: Any, y: Any, decisions: Any, groups: Any, strata: Any) -> float:
    conditions = {"control_features": strata} if getattr(constraint, "condition", None) else {}
    return float(constraint.value(y, decisions, sensitive_features=groups, **conditions))
