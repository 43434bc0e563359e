"""The deciding table: the fewest changes at a level of fairness with a floor on accuracy."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, milp

from experiments.methods import BLIND, FEWER, LIMIT, METHODS, WEIGHED
from experiments.paper import DP
from experiments.protocol import Split, make_split
from experiments.run import Cell, Done
from experiments.settings import Settings

LEVELS = {DP: (0.6, 0.7, 0.8, 0.9), "equalized_odds": (0.75, 0.5, 0.25)}
LOSSES = (0.01, 0.03, 0.05, 1.0)  # 1.0 allows any accuracy
ROUNDING = 1e-12
PAIRS = [(name, "COMMOD") for name in ("ControlledDebiaser", FEWER, WEIGHED)]
PAIRS += [("COMMOD", name) for name in BLIND if name != "COMMOD"]
KEYS = ("table", "notion", "split", "level", "max_loss")


def cells(settings: Settings) -> list[Cell]:
    """Return one cell per split: its exact limits."""
    return [
        Cell("deciding", {"table": table, "notion": notion, "split": split}, 2)
        for (table, notion), n in settings.splits.items()
        for split in range(n)
    ]


def compute(table: str, notion: str, split: int) -> list[dict[str, Any]]:
    """Return the exact limit at each level and floor on accuracy, on the test rows."""
    rows = make_split(table, split)
    base = rows.base()
    records = []
    for level in LEVELS[notion]:
        target = level if notion == DP else level * base["dm"]
        level_record = {"level": level, "target": target, "base_accuracy": base["accuracy"]}
        for loss in LOSSES:
            fewest = _fewest(rows, notion, target, base["accuracy"] - loss)
            records.append({**level_record, "max_loss": loss, "limit": fewest / len(rows.test.y)})
    return records


def _fewest(rows: Split, notion: str, target: float, floor: float) -> float:
    """Return the fewest changes that reach a target with this accuracy, if labels are known.

    They solve an integer programme. Its unknowns are how many people of each true label, decision
    and group change.
    """
    label, decision, group = (np.asarray(part) for part in (rows.test.y, rows.before, rows.test.s))
    cells = np.array(list(itertools.product((0, 1), (0, 1), np.unique(group).tolist())))
    people = np.column_stack([label, decision, group])
    sizes = (people[:, None] == cells).all(axis=2).sum(axis=0)
    is_right = np.where(cells[:, 0] == cells[:, 1], -1, 1)
    n_right = int((label == decision).sum())
    slopes, limits = _fairness_rows(cells, sizes, notion, target)
    slopes += [is_right]
    limits += [math.ceil((floor - ROUNDING) * len(label)) - n_right]
    if notion == DP:  # a ratio is undefined where nobody is positive
        slopes += [1 - 2 * cells[:, 1]]
        limits += [1 - int(decision.sum())]
    found = milp(
        np.ones(len(cells)),
        constraints=LinearConstraint(np.array(slopes), np.array(limits), np.inf),
        integrality=np.ones(len(cells)),
        bounds=Bounds(0, sizes),
        options={"mip_rel_gap": 0},
    )
    return float("nan") if found.x is None else float(np.rint(found.x).sum())


def _fairness_rows(
    cells: NDArray[np.int64], sizes: NDArray[np.int64], notion: str, target: float
) -> tuple[list[NDArray[np.float64]], list[float]]:
    """Return inequalities slopes @ changes ≥ limit that say that the target is reached.

    They compare every two groups: by a ratio, or by the gap in each true label.
    """
    step, positive = 1 - 2 * cells[:, 1], sizes * cells[:, 1]
    pairs = list(itertools.permutations(np.unique(cells[:, 2]).tolist(), 2))
    slopes, limits = [], []
    for choice in itertools.product(pairs, repeat=1 if notion == DP else 2):
        weight, limit = np.zeros(len(cells)), 0.0 if notion == DP else -target
        for i, (lower, higher) in enumerate(choice):
            counted = np.ones(len(cells), bool) if notion == DP else cells[:, 0] == i
            low, high = (counted & (cells[:, 2] == one) for one in (lower, higher))
            weight = weight + low / sizes[low].sum()
            weight = weight - (target if notion == DP else 1.0) * high / sizes[high].sum()
        unit = sizes.sum()  # in people, so that the tolerance of HiGHS is far below one person
        slopes.append(unit * weight * step)
        limits.append(unit * float(limit - weight @ positive - ROUNDING))
    return slopes, limits


def tables(done: Done, settings: Settings, sweeps: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return changes needed per split, their summary, and the distance to the limit."""
    limits = done.frame(cells(settings))
    needed = pd.DataFrame(
        [
            record
            for limit in limits.to_dict("records")
            for record in _needed(limit, _of_split(sweeps, limit))
        ]
    )
    return {
        "needed_by_split": needed,
        "deciding": _summary(needed),
        "duels": pd.concat([_duels(needed, one, other) for one, other in PAIRS]),
    }


def _duels(needed: pd.DataFrame, one: str, other: str) -> pd.DataFrame:
    """Return the mean changes of two methods at each level, on the splits in which both reach it.

    Levels that the base model itself reaches are left out.
    """
    keys = ["table", "notion", "level", "max_loss"]
    contested = needed[needed["limit"] > 0]
    wide = contested.pivot_table(
        index=[*keys, "split"], columns="method", values="changes", sort=False
    ).reindex(columns=[one, other])
    means = wide.dropna().groupby(keys, sort=False).agg(["mean", "size"]).reset_index()
    columns = {"one_changes": means[one, "mean"], "other_changes": means[other, "mean"]}
    duels = means[keys].droplevel(1, axis=1).assign(one=one, other=other, **columns)
    return duels.assign(n_splits=means[one, "size"])


def _of_split(sweeps: pd.DataFrame, limit: dict[str, Any]) -> pd.DataFrame:
    same = [sweeps[name] == limit[name] for name in ("table", "notion", "split")]
    return sweeps[np.logical_and.reduce(same)]


def _needed(limit: dict[str, Any], updates: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the fewest changes of every method at one level and one floor on accuracy."""
    sign = 1.0 if limit["notion"] == DP else -1.0
    floor = limit["base_accuracy"] - limit["max_loss"] - ROUNDING
    fair = sign * updates["fairness"] >= sign * limit["target"]
    reaching = updates[fair & (updates["accuracy"] >= floor)]
    fewest = reaching.groupby("method")["change_rate"].min()
    # where the base model reaches the target, no method has to change anything
    is_met = sign * updates["base_fairness"].iloc[0] >= sign * limit["target"]
    changes = {method: 0.0 if is_met else fewest.get(method, np.nan) for method in METHODS}
    shared = {name: limit[name] for name in (*KEYS, "limit")}
    return [
        {**shared, "method": method, "changes": value}
        for method, value in {**changes, LIMIT: limit["limit"]}.items()
    ]


def _summary(needed: pd.DataFrame) -> pd.DataFrame:
    """Return means over the splits in which a method reaches the level, and their number."""
    keys = ["table", "notion", "level", "max_loss", "method"]
    needed = needed.assign(ratio=needed["changes"] / needed["limit"].where(needed["limit"] > 0))
    grouped = needed.groupby(keys, sort=False)
    summary = grouped.agg(
        changes=("changes", "mean"),
        sd=("changes", "std"),
        times_limit=("ratio", "mean"),
        times_limit_sd=("ratio", "std"),
        n_reached=("changes", "count"),
        n_splits=("split", "size"),
    )
    return summary.reset_index()
