"""The base model, and the quartiles of AdvDebias that divide fairness and accuracy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from experiments.paper import BASE, DP, EDGES
from experiments.protocol import make_split
from experiments.run import Cell, Done
from experiments.settings import Settings

N_SPLITS = 20
DEFINERS = ("AdversarialDebiasing", "LPP", "RejectOption")  # definitions 1, 2 and 3


def cells(settings: Settings) -> list[Cell]:
    """Return one cell per table: the base model is cheap to fit."""
    tables = dict.fromkeys(table for table, _ in settings.splits)
    n = N_SPLITS if settings.name == "full" else 3
    return [Cell("base_points", {"table": table, "n_splits": n}, 5) for table in tables]


def compute(table: str, n_splits: int) -> list[dict[str, Any]]:
    """Return the figures of the base model on the test rows of each split."""
    return [{"split": i, **make_split(table, i).base()} for i in range(n_splits)]


def tables(done: Done, settings: Settings, sweeps: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return the base points and the quartiles, each with the paper's value."""
    points = done.frame(cells(settings))
    records = [
        record
        for (table, notion) in settings.splits
        for record in _base_records(points[points["table"] == table], table, notion)
    ]
    edges = [
        record
        for (table, notion), part in sweeps.groupby(["table", "notion"], sort=False)
        for method in DEFINERS
        for record in _edge_records(part[part["method"] == method], str(table), str(notion), method)
    ]
    return {"base_points": pd.DataFrame(records), "quartiles": pd.DataFrame(edges)}


def _base_records(points: pd.DataFrame, table: str, notion: str) -> list[dict[str, Any]]:
    paper = BASE.get((table, notion), (np.nan, np.nan))
    fairness = "p_rule" if notion == DP else "dm"
    return [
        {
            "table": table,
            "notion": notion,
            "figure": figure,
            "mean": points[column].mean(),
            "sd": points[column].std(),
            "n_splits": len(points),
            "paper": value,
        }
        for figure, column, value in zip(
            ("fairness", "accuracy"), (fairness, "accuracy"), paper, strict=True
        )
    ]


def edges_of(updates: pd.DataFrame, notion: str) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return the inner quartiles of fairness, from unfair to fair, and of accuracy."""
    shares = [0.25, 0.5, 0.75]
    fairness = updates["fairness"].dropna().quantile(shares if notion == DP else shares[::-1])
    return tuple(fairness), tuple(updates["accuracy"].quantile(shares))


def _edge_records(
    updates: pd.DataFrame, table: str, notion: str, method: str
) -> list[dict[str, Any]]:
    ours = edges_of(updates, notion)
    paper = EDGES.get((table, notion, method), ((np.nan,) * 3,) * 2)
    return [
        {
            "table": table,
            "notion": notion,
            "definition": DEFINERS.index(method) + 1,
            "method": method,
            "figure": figure,
            "edge": f"Q{i + 1}/Q{i + 2}",
            "ours": ours[j][i],
            "paper": paper[j][i],
            "n_updates": len(updates),
        }
        for j, figure in enumerate(("fairness", "accuracy"))
        for i in range(3)
    ]
