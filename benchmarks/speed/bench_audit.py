"""An audit of many rows x 20 columns in 5 groups, and its report.

The audit gets decisions and scores before and after, and true labels. It also gets the columns, so
it searches for segments and subgroups. `peak_over_data` is the peak of memory divided by what the
arrays and the frame hold.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.speed.cases import case
from benchmarks.speed.memory import measure
from benchmarks.speed.names import audit_of
from benchmarks.speed.settings import current, turns_of
from benchmarks.speed.shared_file import shared_file
from benchmarks.speed.tables import BenchmarkRows, load

from commod import audit, report

SETTINGS = current()
FEW = 2000  # rows of a first call, which loads modules


class AuditInputs:
    """The inputs of an audit."""

    def __init__(self, rows: BenchmarkRows) -> None:
        n, X = len(rows.X), rows.X
        random = np.random.default_rng(1)
        group = random.choice(list("abcde"), size=n, p=[0.4, 0.3, 0.15, 0.1, 0.05])
        signal = X["number_0"].to_numpy() + 0.3 * (group == "a") + rows.y
        scores = 1 / (1 + np.exp(-signal + 0.5))
        ratio = 1 + 0.8 * X["number_2"].to_numpy() - 0.6 * (X["category_0"] == "level 2").to_numpy()
        after = np.clip(0.5 + ratio * (scores - 0.5), 0, 1)
        self.X = X
        self.arrays = {
            "y_before": (scores > 0.5).astype(int),
            "y_after": (after > 0.5).astype(int),
            "sensitive_features": group,
            "y_true": rows.y,
            "scores_before": scores,
            "scores_after": after,
        }

    def audit(self, n: int) -> Any:
        """Return the audit of the first n rows."""
        first = {name: values[:n] for name, values in self.arrays.items()}
        return audit(**first, X=self.X[:n], request={"target": 0.8})

    @property
    def n_bytes(self) -> int:
        """Return how many bytes the inputs hold."""
        frame = int(self.X.memory_usage(deep=True).sum())
        return frame + sum(values.nbytes for values in self.arrays.values())


def audit_action(given: AuditInputs, folder: Path) -> Callable[[], Any]:
    """Return an action that audits every row."""
    given.audit(FEW)
    return partial(given.audit, len(given.X))


def report_action(given: AuditInputs, folder: Path) -> Callable[[], Any]:
    """Return an action that writes the report of an audit of every row."""
    report(given.audit(FEW), folder / "few.html")
    return partial(report, given.audit(len(given.X)), folder / "report.html")


ACTIONS = {"audit": audit_action, "report": report_action}


def cases() -> list[Any]:
    """Return both actions on many rows, and the report of fewer."""
    n_audit = SETTINGS.audit_rows
    chosen = [(n_audit, kind, name) for kind in SETTINGS.audit_kinds for name in ACTIONS]
    return [
        case(n, kind, name, group=audit_of(n, kind), name=name, turns=turns_of(n, SETTINGS))
        for n, kind, name in [*chosen, (SETTINGS.report_rows, "category", "report")]
    ]


@pytest.mark.parametrize(("n", "kind", "name"), cases())
def test_audits(benchmark: Any, tmp_path: Path, n: int, kind: str, name: str) -> None:
    """Time an audit or its report."""
    given = AuditInputs(load(shared_file("tables.rows", n, kind)))
    result = measure(benchmark, ACTIONS[name](given, tmp_path), SETTINGS.repeats)
    info = benchmark.extra_info
    info["data_mb"] = given.n_bytes / 1e6
    info["peak_over_data"] = info["peak_mb"] / info["data_mb"]
    if name == "report":
        info["size_mb"] = Path(result).stat().st_size / 1e6
