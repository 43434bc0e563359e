"""Figures of `fit_frame` beside their bars: its changes beside a fit in memory, and its seconds.

`COMMOD_FRAME_ROWS` is the number of rows of the timed table, 10^8 if not set: 6.3 GB on disk.
"""

from __future__ import annotations

import os
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from report import show, show_at_most

from benchmarks.speed import lake
from commod.exceptions import CommodWarning
from commod.metrics import disparate_mistreatment, p_rule

COMPARED_ROWS = 1_000_000
PARITY: dict[str, Any] = {"constraints": "demographic_parity", "target": 0.8}
ODDS: dict[str, Any] = {"constraints": "equalized_odds", "target": 0.15}


def frame_changes(n: int = COMPARED_ROWS) -> None:
    """Compare changes with a fit in memory on every row; the target is met on all rows."""
    warnings.simplefilter("ignore", CommodWarning)
    rows = lake.connect().sql(lake.loans_sql(n)).df()
    X, y, groups = rows[[*lake.FEATURES, lake.SCORE]], rows[lake.LABEL], rows[lake.GROUP]
    for params, metric, sign in ((PARITY, p_rule, ">="), (ODDS, disparate_mistreatment, "<=")):
        name, target = f"{n:,} loans, {params['constraints']}", params["target"]
        update = lake.fit_frame(lake.connect().from_df(rows), **params, target_on="fit_rows")
        whole = lake.make_update(**params, target_on="fit_rows")
        whole.fit(X, y, sensitive_features=groups)
        ratio = update.change_rate_ / whole.change_rate_
        show_at_most(f"{name}: fit_frame / in memory, changes", ratio, 1.05)
        value = float(metric(y, update.predict(X), sensitive_features=groups))
        is_met = value >= target if sign == ">=" else value <= target
        show(f"{name}: fit_frame, on all rows", f"{value:.6f}", f"{sign} {target:g}", is_met)


def frame_seconds() -> None:
    """Compare the seconds of a fit on the largest table with three scans and a minute."""
    warnings.simplefilter("ignore", CommodWarning)
    n = int(os.environ.get("COMMOD_FRAME_ROWS", "100000000"))
    with tempfile.TemporaryDirectory(prefix="commod-frames-") as folder:
        path = Path(folder) / "loans.parquet"
        lake.loans(path, n)
        frame = lake.connect().read_parquet(str(path))
        update, fit = _timed(lambda: lake.fit_frame(frame))
        _, scan = _timed(lambda: lake.scan(frame, update.to_patch()))
    note = f"(fit {fit:.1f} s, scan {scan:.1f} s)"
    show_at_most(f"{n:,} loans: fit_frame / (3 scans + 60 s)", fit / (3 * scan + 60), 1, note)


def _timed(action: Callable[[], Any]) -> tuple[Any, float]:
    start = time.perf_counter()
    return action(), time.perf_counter() - start
