"""Table 1: the share of changes per segment of fairness and accuracy, every method."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd

from experiments.base_points import DEFINERS, edges_of
from experiments.methods import LIMIT, RIVALS, VARIANTS
from experiments.paper import BASE, CELLS, DP, EDGES, TABLE_1
from experiments.protocol import quartile
from experiments.run import Done
from experiments.settings import Settings

KEYS = ["table", "notion", "definition", "edges", "method", "fairness_q", "accuracy_q"]
ENOUGH = 3  # a cell counts if at least so many splits have an update in it
TOLERANCE = 1.15  # times the paper's value


def tables(done: Done, settings: Settings, sweeps: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return the cells under every kind of edges, and the ordering of the blind methods."""
    updates = sweeps.dropna(subset="fairness")
    cells = pd.concat(
        [
            _cells(placed(part, definer, kind), definer, kind)
            for _, part in updates.groupby(["table", "notion"], sort=False)
            for definer in DEFINERS
            for kind in kinds_of(part, definer)
        ],
        ignore_index=True,
    )
    return {"table_1": cells, "ordering": _ordering(cells)}


def kinds_of(part: pd.DataFrame, definer: str) -> list[str]:
    """Return the kinds of edges for a table: the paper's, the paper's shifted, and ours."""
    table, notion = part["table"].iloc[0], part["notion"].iloc[0]
    return ["paper", "shifted", "ours"] if (table, notion, definer) in EDGES else ["ours"]


def placed(part: pd.DataFrame, definer: str = DEFINERS[0], kind: str = "shifted") -> pd.DataFrame:
    """Return the updates of one table and notion with their segments of fairness and accuracy.

    `kind` is one of:

    - "paper": the paper's edges.
    - "shifted": the paper's edges, those of accuracy moved by the difference of the base models'
      accuracies on the split. This is the fair comparison.
    - "ours": quartiles of our updates of the defining method, all splits together.
    """
    table, notion = part["table"].iloc[0], part["notion"].iloc[0]
    if kind == "ours":
        fairness, accuracy = edges_of(part[part["method"] == definer], notion)
    else:
        fairness, accuracy = EDGES[table, notion, definer]
    shift = 0.0
    if kind == "shifted":
        shift = part["base_accuracy"] - BASE[table, notion][1]
    return part.assign(
        fairness_q=[quartile(value, fairness, notion) for value in part["fairness"]],
        accuracy_q=[quartile(value, accuracy) for value in part["accuracy"] - shift],
    )


def _cells(updates: pd.DataFrame, definer: str, kind: str) -> pd.DataFrame:
    """Return mean and spread over splits of the share of changes in each cell.

    `changes_of_changing` leaves out the updates of a sweep that change nobody.
    """
    updates = updates.assign(definition=DEFINERS.index(definer) + 1, edges=kind)
    limit = updates[updates["method"] == "COMMOD"].assign(method=LIMIT)
    limit["change_rate"] = limit["limit"]
    with_limit = pd.concat([updates, limit])
    rates = with_limit["change_rate"]
    with_limit["of_changing"] = rates.where(rates > 0)
    per_split = with_limit.groupby([*KEYS, "split"], sort=False).agg(
        mean=("change_rate", "mean"),
        median=("change_rate", "median"),
        of_changing=("of_changing", "mean"),
        n_changing=("of_changing", "count"),
        size=("change_rate", "size"),
    )
    cells = (
        per_split.reset_index()
        .groupby(KEYS, sort=False)
        .agg(
            changes=("mean", "mean"),
            sd=("mean", "std"),
            changes_median=("median", "mean"),
            changes_of_changing=("of_changing", "mean"),
            n_splits=("split", "size"),
            n_updates=("size", "sum"),
            n_changing=("n_changing", "sum"),
        )
    )
    cells = cells.reset_index()
    cells["paper"] = [_paper(record) for record in cells.to_dict("records")]
    return cells


def _paper(record: dict[str, Any]) -> float:
    """Return the paper's value: it prints values for demographic parity and definition 1 only.

    Both variants of COMMOD are compared with the paper's one row.
    """
    cell = (record["fairness_q"], record["accuracy_q"])
    method = "COMMOD" if record["method"] in VARIANTS else record["method"]
    printed = TABLE_1.get(record["table"], {}).get(method)
    if record["notion"] != DP or record["definition"] != 1 or printed is None or cell not in CELLS:
        return np.nan
    value = printed[CELLS.index(cell)]
    return np.nan if value is None else value


def _ordering(cells: pd.DataFrame) -> pd.DataFrame:
    """Return, per variant of COMMOD and cell of the paper's table, its changes and a rival's.

    The rival is the blind one with the fewest changes. Only cells count in which at least three
    splits have an update of the variant.
    """
    records = []
    for key, part in cells.groupby(KEYS[:4], sort=False):
        enough = part[part["n_splits"] >= ENOUGH]
        for variant, (fairness_q, accuracy_q) in itertools.product(VARIANTS, CELLS):
            in_cell = enough[
                (enough["fairness_q"] == fairness_q) & (enough["accuracy_q"] == accuracy_q)
            ]
            ours = in_cell.loc[in_cell["method"] == variant, "changes"]
            others = in_cell[in_cell["method"].isin(RIVALS)].sort_values("changes", kind="stable")
            records.append(
                dict(zip(KEYS[:4], key, strict=True))
                | {
                    "variant": variant,
                    "fairness_q": fairness_q,
                    "accuracy_q": accuracy_q,
                    "commod": ours.iloc[0] if len(ours) else np.nan,
                    "best_rival": others["method"].iloc[0] if len(others) else "",
                    "rival": others["changes"].iloc[0] if len(others) else np.nan,
                }
            )
    table = pd.DataFrame(records)
    table["commod_fewest"] = table["commod"] <= table["rival"]
    return table
