"""All methods of this library: the fewest changes that each needs at a level of fairness.

The methods of `METHODS` have their sweeps already; this module computes the sweeps of all others.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils import get_tags

from experiments.methods import METHODS, every_method, makeable, with_own_base
from experiments.paper import DP
from experiments.protocol import make_split
from experiments.run import Cell, Done
from experiments.settings import Settings
from experiments.sweeps import measured_updates

LEVELS = {DP: (0.6, 0.7, 0.8), "equalized_odds": (0.75, 0.5, 0.25)}
LOSSES = (0.05, 1.0)  # 1.0 allows any accuracy
ROUNDING = 1e-12
SECONDS = {"FairProjection": 15, "FairScoreTransformer": 15, "FCGP": 20, "RNF": 30}


def cells(settings: Settings) -> list[Cell]:
    """Return one cell per table, notion, split and method that has no sweep yet."""
    return [
        Cell(
            "all_methods",
            {
                "table": table,
                "notion": notion,
                "split": split,
                "method": method,
                "sweep": settings.sweep_of_other(method),
            },
            SECONDS.get(method.removesuffix(" (aware)"), 5),
        )
        for (table, notion), n in settings.splits.items()
        for method in makeable(notion)
        if method not in METHODS
        for split in range(min(n, settings.few_splits))
    ]


def compute(
    table: str, notion: str, split: int, method: str, sweep: dict[str, Any]
) -> list[dict[str, Any]]:
    """Return one record per update of the method: settings and figures on the test rows."""
    rows, update = with_own_base(method, make_split(table, split), notion)
    return measured_updates(update, rows, sweep)


def tables(done: Done, settings: Settings, sweeps: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return the changes that each method needs at each level, with and without a floor."""
    mine = sweeps[sweeps["split"] < settings.few_splits]
    mine = mine[mine["method"].isin(every_method())]
    others = done.frame(cells(settings)).drop(columns="sweep")
    updates = pd.concat([mine, others[mine.columns]], ignore_index=True)
    keys = ["table", "notion", "method", "split"]
    records = [
        {**dict(zip(keys, where, strict=True)), **record}
        for where, part in updates.groupby(keys, sort=False)
        for record in _needed(part, str(where[1]))
    ]
    return {"all_methods": _summary(pd.DataFrame(records))}


def _needed(updates: pd.DataFrame, notion: str) -> list[dict[str, Any]]:
    """Return the fewest changes of one sweep at each level and floor; NaN where none reaches it."""
    sign = 1.0 if notion == DP else -1.0
    base, accuracy = updates[["base_fairness", "base_accuracy"]].iloc[0]
    fairness = updates["fairness"]
    fairest = fairness.max() if notion == DP else fairness.min() / base
    records = []
    for level in LEVELS[notion]:
        target = level if notion == DP else level * base
        for loss in LOSSES:
            reaches = (sign * fairness >= sign * target) & (
                updates["accuracy"] >= accuracy - loss - ROUNDING
            )
            fewest = updates.loc[reaches, "change_rate"].min()
            changes = 0.0 if sign * base >= sign * target else fewest
            limit = updates.loc[reaches & (updates["change_rate"] == fewest), "limit"].min()
            record = {"level": level, "max_loss": loss, "changes": changes, "limit": limit}
            records.append({**record, "fairest": fairest})
    return records


def _summary(needed: pd.DataFrame) -> pd.DataFrame:
    """Return means over the splits that reach a level, and whether a method needs the group."""
    keys = ["table", "notion", "method", "level", "max_loss"]
    summary = needed.groupby(keys, sort=False).agg(
        changes=("changes", "mean"),
        limit=("limit", "mean"),
        fairest=("fairest", "mean"),
        n_reached=("changes", "count"),
        n_splits=("split", "size"),
    )
    summary = summary.reset_index()
    methods = every_method()
    tags = {name: get_tags(methods[name]) for name in summary["method"].unique()}
    summary["needs_group"] = [tags[name].needs_sensitive_features for name in summary["method"]]
    summary["randomised"] = [tags[name].randomised for name in summary["method"]]
    order = {name: i for i, name in enumerate(methods)}
    return summary.sort_values(
        ["table", "notion", "needs_group", "method"],
        key=lambda c: c.map(order) if c.name == "method" else c,
        kind="stable",
    ).replace({"changes": {np.inf: np.nan}})
