"""Gains only: the price of letting nobody lose the favourable outcome, ControlledDebiaser."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from commod import bounds, frontier
from experiments.methods import make
from experiments.paper import DP
from experiments.protocol import FAVORABLE, make_split, quietly
from experiments.run import Cell, Done
from experiments.settings import Settings

DIRECTIONS = ("any", "gains_only")
LEVELS = (0.7, 0.8, 0.9)
TARGETS = tuple(np.linspace(0.5, 1.0, 26).round(3).tolist())


def cells(settings: Settings) -> list[Cell]:
    """Return one cell per table, direction and split."""
    return [
        Cell("gains_only", {"table": table, "direction": direction, "split": split}, 6)
        for (table, notion), n in settings.splits.items()
        if notion == DP
        for direction in DIRECTIONS
        for split in range(min(n, settings.few_splits))
    ]


def compute(table: str, direction: str, split: int) -> list[dict[str, Any]]:
    """Return, at each level of the P-rule, the fewest changes of the sweep and the limit."""
    rows = make_split(table, split)
    update = make("ControlledDebiaser", rows, DP, direction=direction)
    with quietly():
        curve = frontier(update, **rows.fit_rows, **rows.test_rows, targets=TARGETS, describe=False)
    frame = curve.frame()
    request = {
        "sensitive_features": rows.test.s,
        "pos_label": 1,  # as in the paper, also where label 0 is favourable
        "favorable_label": FAVORABLE[table],
    }
    records = []
    for level in LEVELS:
        limit = bounds.minimal_changes(rows.before, target=level, direction=direction, **request)
        reaching = frame[frame["fairness"] >= level]
        best = reaching.loc[reaching["change_rate"].idxmin()] if len(reaching) else None
        missing = dict.fromkeys(("change_rate", "accuracy", "n_gains", "n_losses"), np.nan)
        reached = missing if best is None else {name: best[name] for name in missing}
        records.append({"level": level, "limit": limit.rate, **reached})
    return records


def tables(done: Done, settings: Settings, sweeps: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return means over the splits that reach a level, and the price where both directions do."""
    runs = done.frame(cells(settings))
    both = runs.pivot_table(
        index=["table", "level", "split"], columns="direction", values=["change_rate", "limit"]
    ).dropna()
    price = pd.DataFrame(
        {
            "price": both["change_rate", "gains_only"] / both["change_rate", "any"],
            "price_of_limit": both["limit", "gains_only"] / both["limit", "any"],
        }
    ).replace(np.inf, np.nan)
    prices = price.groupby(["table", "level"], sort=False).agg(["median", "count"])
    prices = prices.drop(columns=("price_of_limit", "count"))
    prices.columns = ["price", "n_splits", "price_of_limit"]
    summary = runs.groupby(["table", "direction", "level"], sort=False).agg(
        changes=("change_rate", "mean"),
        sd=("change_rate", "std"),
        limit=("limit", "mean"),
        accuracy=("accuracy", "mean"),
        gains=("n_gains", "mean"),
        losses=("n_losses", "mean"),
        n_reached=("change_rate", "count"),
        n_splits=("split", "size"),
    )
    return {
        "gains_only_runs": runs,
        "gains_only": summary.reset_index(),
        "gains_only_price": prices.reset_index(),
    }
