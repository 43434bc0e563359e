"""The deciding table: the fewest changes at a level of fairness and a floor on accuracy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from commod import bounds
from experiments.methods import LIMIT, METHODS
from experiments.paper import DP
from experiments.protocol import FAVORABLE, make_split
from experiments.run import Cell, Done
from experiments.settings import Settings

LEVELS = {DP: (0.6, 0.7, 0.8, 0.9), "equalized_odds": (0.75, 0.5, 0.25)}
LOSSES = (0.01, 0.03, 0.05, 1.0)  # the last one: any accuracy


def cells(settings: Settings) -> list[Cell]:
    """Return one cell per split: its exact limits."""
    return [
        Cell("deciding", {"table": table, "notion": notion, "split": split}, 2)
        for (table, notion), n in settings.splits.items()
        for split in range(n)
    ]


def compute(table: str, notion: str, split: int) -> list[dict[str, Any]]:
    """Return the exact limit at each level on the test rows, in each direction.

    `oracle_accuracy` is the highest accuracy that as few changes allow to whoever sees the labels:
    as long as it is above a floor, the floor does not raise the limit.
    """
    rows = make_split(table, split)
    base = rows.base()["p_rule" if notion == DP else "dm"]
    lines = []
    for level in LEVELS[notion]:
        target = level if notion == DP else level * base
        asked = {
            "sensitive_features": rows.test.s,
            "target": target,
            "constraints": notion,
            "favorable_label": FAVORABLE[table],
        }
        fewest, gains = (
            bounds.minimal_changes(rows.before, y_true=rows.test.y, direction=direction, **asked)
            for direction in ("any", "gains_only")
        )
        best = bounds.most_accurate(rows.test.y, rows.before, **asked)
        lines.append(
            {
                "level": level,
                "target": target,
                "limit": fewest.rate,
                "limit_gains_only": gains.rate,
                "oracle_accuracy": best.accuracy,
                "base_accuracy": rows.base()["accuracy"],
            }
        )
    return lines


def tables(done: Done, settings: Settings, sweeps: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return changes needed per split, their summary, and the distance to the limit."""
    limits = done.frame(cells(settings))
    needed = pd.DataFrame(
        [
            line
            for limit in limits.to_dict("records")
            for line in _needed(limit, _of_split(sweeps, limit))
        ]
    )
    return {"needed_by_split": needed, "deciding": _summary(needed)}


def _of_split(sweeps: pd.DataFrame, limit: dict[str, Any]) -> pd.DataFrame:
    same = [sweeps[name] == limit[name] for name in ("table", "notion", "split")]
    return sweeps[np.logical_and.reduce(same)]


def _needed(limit: dict[str, Any], updates: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the fewest changes of every method at one level, for every floor on accuracy.

    The base model itself is at hand to every method: it changes nothing.
    """
    lines = []
    for loss in LOSSES:
        floor = limit["base_accuracy"] - loss
        for method in METHODS:
            part = updates[updates["method"] == method]
            fair = part["fairness"] >= limit["target"]
            if limit["notion"] != DP:
                fair = part["fairness"] <= limit["target"]
            good = part[fair & (part["accuracy"] >= floor - 1e-12)]
            lines.append((method, loss, good["change_rate"].min() if len(good) else np.nan))
        reachable = limit["oracle_accuracy"] >= floor - 1e-12
        lines.append((LIMIT, loss, limit["limit"] if reachable else np.nan))
    shared = {name: limit[name] for name in ("table", "notion", "split", "level", "limit")}
    return [{**shared, "method": m, "max_loss": loss, "changes": c} for m, loss, c in lines]


def _summary(needed: pd.DataFrame) -> pd.DataFrame:
    """Return means over the splits in which a method reaches the level, and how many those are."""
    keys = ["table", "notion", "level", "max_loss", "method"]
    needed = needed.assign(ratio=needed["changes"] / needed["limit"].where(needed["limit"] > 0))
    grouped = needed.groupby(keys, sort=False)
    found = grouped.agg(
        changes=("changes", "mean"),
        sd=("changes", "std"),
        times_limit=("ratio", "mean"),
        times_limit_sd=("ratio", "std"),
        n_reached=("changes", "count"),
        n_splits=("split", "size"),
    )
    return found.reset_index()
