"""Ratio architectures on Law School: the linear bottleneck, a plain linear ratio, networks."""

from __future__ import annotations

from typing import Any

import pandas as pd

from experiments.methods import make, measured
from experiments.paper import DP, LAW_SCHOOL
from experiments.pareto import accuracy_gap, attained, best_by_split
from experiments.protocol import make_split, quietly
from experiments.run import Cell, Done
from experiments.settings import Settings

ARCHITECTURES: dict[str, dict[str, Any]] = {
    "concepts (k = 2)": {},
    "plain linear": {"n_concepts": 1, "lambda_sparsity": 0.0},
    "MLP 64": {"architecture": "mlp", "training": {"hidden": (64,)}},
    "MLP 64-32-16": {"architecture": "mlp", "training": {"hidden": (64, 32, 16)}},
}


def cells(settings: Settings) -> list[Cell]:
    """Return one cell per architecture and split."""
    grid = {name: list(values) for name, values in settings.architecture_grid.items()}
    return [
        Cell("architectures", {"architecture": name, "split": split, "grid": grid}, 18)
        for name in ARCHITECTURES
        for split in range(settings.few_splits)
    ]


def compute(architecture: str, split: int, grid: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the sweep of one architecture on the test rows."""
    rows = make_split(LAW_SCHOOL, split)
    update = make("COMMOD", rows, DP, **ARCHITECTURES[architecture])
    with quietly():
        return measured(update, rows, grid)


def tables(done: Done, settings: Settings, sweeps: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return the runs and, per architecture, the best accuracy at each level of the P-rule."""
    runs = done.frame(cells(settings)).drop(columns="grid")
    best = runs.rename(columns={"architecture": "method"}).assign(table=LAW_SCHOOL, notion=DP)
    curve = attained(best).rename(columns={"method": "architecture"})
    by_split = best_by_split(best)
    first, *others = ARCHITECTURES
    gaps = [{"architecture": name, **accuracy_gap(by_split, first, name)} for name in others]
    return {
        "architecture_runs": runs,
        "architectures": curve,
        "architecture_gaps": pd.DataFrame(gaps),
    }
