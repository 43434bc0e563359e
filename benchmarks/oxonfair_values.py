"""Compare values of `commod.constraints` with OxonFair's metrics on random tables.

OxonFair counts 0 where nobody is counted; ours is NaN there. So a table counts for a constraint
where ours has a value.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from environments import HERE, python_of
from numpy.typing import NDArray
from report import show

from commod.constraints import EqualizedOdds, Maximum, Minimum, Parity

N_TABLES = 500
MIN_TABLES = 100  # on which a value is defined
TOLERANCE = 1e-9

# OxonFair's name of a number per group -> ours
MEASURES = {
    "pos_pred_rate": "selection rate",
    "true_pos_rate": "true positive rate",
    "false_pos_rate": "false positive rate",
    "true_neg_rate": "true negative rate",
    "false_neg_rate": "false negative rate",
    "accuracy": "accuracy",
    "precision": "precision",
    "neg_pred_val": "negative predictive value",
    "f1": "F1 score",
    "error_ratio": "error ratio",
    "cond_accept": "labels per selection",
}
# OxonFair's suffix -> our form; the bound plays no part in a value
FORMS: dict[str, Callable[[str], Any]] = {
    "max_diff": lambda measure: Parity(measure, difference=0.5),
    "min_ratio": lambda measure: Parity(measure, ratio=0.5),
    "min": lambda measure: Minimum(measure, 0.5),
    "max": lambda measure: Maximum(measure, 0.5),
}
CONDITIONAL = ("pos_pred_rate", "accuracy")  # OxonFair weights the strata of others differently


def same_constraints() -> dict[str, Any]:
    """Return our constraint for each metric of OxonFair that has the same definition."""
    same: dict[str, Any] = {"equalized_odds_max": EqualizedOdds(largest=0.5)}
    for theirs, ours in MEASURES.items():
        for suffix, form in FORMS.items():
            same[f"{theirs}.{suffix}"] = form(ours)
            if theirs in CONDITIONAL:
                conditional = form(ours).within("stratum", min_rows=1, over="average")
                same[f"conditional.{theirs}.{suffix}"] = conditional
    return same


def random_tables(n: int, seed: int = 0) -> list[NDArray[np.intp]]:
    """Return tables of shape (4, rows): labels, decisions, groups and strata.

    Every group has rows with both labels in every stratum: ours leaves out a stratum otherwise,
    and OxonFair does not. A table has 2 to 4 groups and 2 or 3 strata.
    """
    random = np.random.default_rng(seed)
    tables: list[NDArray[np.intp]] = []
    while len(tables) < n:
        n_rows, n_groups, n_strata = random.integers((30, 2, 2), (400, 5, 4))
        y, decisions = (random.random((2, n_rows)) < random.random((2, 1))).astype(int)
        groups = random.integers(n_groups, size=n_rows)
        strata = random.integers(n_strata, size=n_rows)
        cells = np.unique(np.stack([y, groups, strata]), axis=1)
        if cells.shape[1] == 2 * n_groups * n_strata:
            tables.append(np.stack([y, decisions, groups, strata]))
    return tables


def values_of_oxonfair(names: list[str], tables: list[NDArray[np.intp]]) -> NDArray[np.float64]:
    """Return OxonFair's values of shape (n_names, n_tables)."""
    with tempfile.TemporaryDirectory() as folder:
        rows, asked, answer = (Path(folder) / x for x in ("rows.npz", "asked.json", "answer.npy"))
        ends = np.cumsum([table.shape[1] for table in tables])
        np.savez(rows, rows=np.concatenate(tables, axis=1), ends=ends)
        asked.write_text(json.dumps(names))
        script = HERE / "peers" / "oxonfair_values.py"
        command = [python_of("oxonfair"), script, rows, asked, answer]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"OxonFair failed:\n{done.stderr[-4000:]}")
        return np.load(answer)


def oxonfair_values() -> None:
    """Compare the values of every constraint that both libraries define."""
    same, tables = same_constraints(), random_tables(N_TABLES)
    theirs = values_of_oxonfair(list(same), tables)
    for (name, constraint), row in zip(same.items(), theirs, strict=True):
        ours = np.array([_value(constraint, *table) for table in tables])
        is_defined = ~np.isnan(ours)
        apart = float(np.abs(ours - row)[is_defined].max(initial=0.0))
        holds = apart <= TOLERANCE and int(is_defined.sum()) >= MIN_TABLES
        label = f"{name}: largest difference, {int(is_defined.sum())} tables"
        show(label, f"{apart:.1e}", f"<= {TOLERANCE:g}", holds)


def _value(constraint: Any, y: Any, decisions: Any, groups: Any, strata: Any) -> float:
    conditions = {} if constraint.constraint.within is None else {"control_features": strata}
    return float(constraint.value(y, decisions, sensitive_features=groups, **conditions))
