"""Fairness against accuracy: the best accuracy each method has at a level of fairness."""

from __future__ import annotations

import numpy as np
import pandas as pd

from experiments.paper import DP
from experiments.run import Done
from experiments.settings import Settings

N_LEVELS = 13
KEYS = ["table", "notion", "method", "level"]


def tables(done: Done, settings: Settings, sweeps: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return the best accuracies of all methods."""
    return {"pareto": attained(sweeps)}


def attained(updates: pd.DataFrame) -> pd.DataFrame:
    """Return mean and spread over splits of the best accuracy at each level of fairness.

    Levels go from the base model to parity; only splits count in which the method reaches the
    level, and `n_reached` says how many do.
    """
    found = []
    for (table, notion), part in updates.groupby(["table", "notion"], sort=False):
        per_split = pd.DataFrame(
            [
                {"table": table, "notion": notion, "method": method, "level": level, "best": best}
                for (method, _), lines in part.groupby(["method", "split"], sort=False)
                for level, best in _best(lines, _levels(part, str(notion)), str(notion))
            ]
        )
        found.append(per_split)
    grouped = pd.concat(found).groupby(KEYS, sort=False)["best"]
    summary = grouped.agg(accuracy="mean", sd="std", n_reached="count", n_splits="size")
    return summary.reset_index()


def _levels(part: pd.DataFrame, notion: str) -> list[float]:
    base = part.groupby("split")["base_fairness"].first().mean()
    return np.linspace(base, 1.0 if notion == DP else 0.0, N_LEVELS).round(3).tolist()


def _best(lines: pd.DataFrame, levels: list[float], notion: str) -> list[tuple[float, float]]:
    """Return each level with the best accuracy there; the base model is one of the updates."""
    fairness = np.append(lines["fairness"], lines["base_fairness"].iloc[0])
    accuracy = np.append(lines["accuracy"], lines["base_accuracy"].iloc[0])
    found = []
    for level in levels:
        good = fairness >= level if notion == DP else fairness <= level
        found.append((level, accuracy[good].max() if good.any() else np.nan))
    return found
