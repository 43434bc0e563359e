"""Compute the sweeps of some methods again and put them into the tables of an earlier run.

All tables that follow from sweeps are made again: Table 1, Figure 1, the deciding table, the
trade-offs. Experiments that fit single updates again keep their results of the earlier run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from experiments import deciding, figure_1, pareto, sweeps, table_1
from experiments.provenance import separate_part
from experiments.run import Cell, Done, compute_all
from experiments.settings import Settings

DERIVED: tuple[Any, ...] = (table_1, deciding, figure_1, pareto)


def cells(settings: Settings, methods: Sequence[str]) -> list[Cell]:
    """Return the sweeps of the methods, and the limits of the deciding table."""
    wanted = [cell for cell in sweeps.cells(settings) if cell.arguments["method"] in methods]
    return [*wanted, *deciding.cells(settings)]


def compute(
    settings: Settings,
    methods: Sequence[str],
    frames: dict[str, pd.DataFrame],
    done: Done,
    jobs: int,
) -> dict[str, pd.DataFrame]:
    """Return the tables of an earlier run with new sweeps of the methods; `done` has failures."""
    compute_all(cells(settings, methods), done, jobs, settings.effort)
    if done.failures:
        return frames
    new = done.frame(cell for cell in cells(settings, methods) if cell.module == "sweeps")
    updates = merged(frames["sweeps"], new.drop(columns="sweep"))
    derived = [module.tables(done, settings, updates) for module in DERIVED]
    return frames | {"sweeps": updates} | {k: v for part in derived for k, v in part.items()}


def merged(before: pd.DataFrame, new: pd.DataFrame) -> pd.DataFrame:
    """Return sweeps in which `new` replaces all updates of its methods.

    Examples
    --------
    >>> before = pd.DataFrame({"method": ["a", "b"], "split": [0, 0]})
    >>> merged(before, pd.DataFrame({"method": ["b", "b"], "split": [0, 1]})).to_dict("list")
    {'method': ['a', 'b', 'b'], 'split': [0, 0, 1]}
    """
    kept = before[~before["method"].isin(new["method"].unique())]
    return pd.concat([kept, new[before.columns]], ignore_index=True)


def described(
    run_info: dict[str, Any], methods: Sequence[str], updates: pd.DataFrame, done: Done, jobs: int
) -> dict[str, Any]:
    """Return what the page says about the earlier run, and about the methods added to it."""
    added = {
        method: separate_part(done, jobs, _splits(updates[updates["method"] == method]))
        for method in methods
    }
    return run_info | {"added": run_info.get("added", {}) | added}


def _splits(updates: pd.DataFrame) -> dict[str, int]:
    """Return the number of splits by table and notion."""
    counts = updates.groupby(["table", "notion"], sort=False)["split"].nunique()
    return {f"{table}, {notion}": int(n) for (table, notion), n in counts.items()}
