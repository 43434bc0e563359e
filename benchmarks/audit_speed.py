"""Time and memory of an audit of 1,000,000 rows x 20 columns in 5 groups, and of its report.

10 numbers and 10 columns of 8 categories, decisions and scores before and after, true labels; the
columns are given, so segments and subgroups are sought. Memory is what the audit holds at most
beyond what was held before it (VmHWM), over what the arrays and the frame hold. Each measurement
has a process of its own. `make bench` runs it.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from many_rows import make_rows, peak_of
from report import show_at_most

N = 1_000_000
REPEATS = 3
AUDIT_BAR, REPORT_BAR, MEMORY_BAR, SIZE_BAR = 10, 3, 2, 5
ROWS_OF_SIZE = 100_000


def make_case(n: int, kind: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments of an audit."""
    X, y, _ = make_rows(n, kind)
    random = np.random.default_rng(1)
    group = random.choice(list("abcde"), size=n, p=[0.4, 0.3, 0.15, 0.1, 0.05])
    signal = X["number_0"].to_numpy() + 0.3 * (group == "a") + y
    scores = 1 / (1 + np.exp(-signal + 0.5))
    ratio = 1 + 0.8 * X["number_2"].to_numpy() - 0.6 * (X["category_0"] == "level 2").to_numpy()
    after = np.clip(0.5 + ratio * (scores - 0.5), 0, 1)
    return (
        ((scores > 0.5).astype(int), (after > 0.5).astype(int)),
        {
            "sensitive_features": group,
            "y_true": y,
            "scores_before": scores,
            "scores_after": after,
            "X": X,
            "request": {"target": 0.8},
        },
    )


def size_of(decisions: tuple[Any, ...], options: dict[str, Any]) -> int:
    """Return the bytes of what is passed in."""
    arrays = [*decisions, *(v for k, v in options.items() if k not in ("X", "request"))]
    return int(options["X"].memory_usage(deep=True).sum()) + sum(a.nbytes for a in arrays)


def measure(n: int, kind: str) -> dict[str, Any]:
    """Return the seconds of audits and reports, the peak of the first audit and what was given."""
    from commod import audit
    from commod._report import report

    decisions, options = make_case(n, kind)
    few = [part[:2000] for part in decisions]
    audit(*few, **{k: v if k == "request" else v[:2000] for k, v in options.items()})
    found: list[Any] = []
    peak = peak_of(lambda: found.append(audit(*decisions, **options)))
    audits, reports = [], []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report.html"
        for _ in range(REPEATS):
            begin = time.perf_counter()
            done = audit(*decisions, **options)
            audits.append(time.perf_counter() - begin)
            begin = time.perf_counter()
            report(done, path)
            reports.append(time.perf_counter() - begin)
        size = path.stat().st_size
    return {
        "audit": statistics.median(audits),
        "report": statistics.median(reports),
        "peak": peak,
        "data": size_of(decisions, options),
        "size": size,
        "changes": done.changes.n_changes,
    }


def audits() -> None:
    """Print times, memory and size beside their bars."""
    for kind in ("category", "text"):
        run = in_new_process(N, kind)
        rows = f"{N:,} rows x 20 columns of {kind}, 5 groups"
        show_at_most(
            f"{rows}: audit, seconds", run["audit"], AUDIT_BAR, f"({run['changes']:,} changes)"
        )
        show_at_most(f"{rows}: report, seconds", run["report"], REPORT_BAR)
        share, data = run["peak"] / run["data"], f"(of {run['data'] / 2**20:.0f} MiB)"
        show_at_most(f"{rows}: memory of the audit / data", share, MEMORY_BAR, data)
    run = in_new_process(ROWS_OF_SIZE, "category")
    show_at_most(f"{ROWS_OF_SIZE:,} rows: size of the report, MB", run["size"] / 1e6, SIZE_BAR)


def in_new_process(n: int, kind: str) -> dict[str, Any]:
    """Measure in a process of its own."""
    command = [sys.executable, __file__, str(n), kind]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
    return json.loads(done.stdout)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(measure(int(sys.argv[1]), sys.argv[2])))
    else:
        audits()
