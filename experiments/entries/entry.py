"""The record of an entry, and the counts that several entries share."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from experiments.markdown import NOTHING, number
from experiments.methods import RIVALS
from experiments.paper import DP, EO, METRIC
from experiments.table_1 import ENOUGH

Frames = dict[str, pd.DataFrame]

HOLDS, PARTLY, FAILS, BEYOND = "reproduced", "in part", "not reproduced", "beyond the paper"
NOT_IN_PAPER = "Not in the paper"
NOTIONS = {DP: "demographic parity", EO: "equalized odds"}
BOTH_VARIANTS = (
    "Both variants of COMMOD are shown. The verdict is about the one with the paper's settings."
)
ADAPTIVE_ONLY = "COMMOD is the adaptive variant, with this library's default settings."


@dataclass(frozen=True)
class Entry:
    """One row of the summary table and one section of the page."""

    title: str
    claim: str
    paper: str
    ours: str
    status: str
    verdict: str
    body: tuple[str, ...]


def slug(name: str) -> str:
    """Return a table's name as part of a file name."""
    return name.lower().replace(" ", "_")


def tables_in(frame: pd.DataFrame) -> list[str]:
    """Return the tables of a frame in their order."""
    return list(dict.fromkeys(frame["table"]))


def on_moved_edges(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows whose accuracy edges are moved by the difference of base accuracies."""
    return frame[frame["edges"] == "shifted"]


def contests(duels: pd.DataFrame, one: str, other: str, most: int) -> pd.DataFrame:
    """Return the levels that two methods reach in enough common splits.

    Column `won` is true where `one` needs no more changes than `other`. `most` is the largest
    number of splits of the run; quick runs have fewer than three.
    """
    part = duels[(duels["one"] == one) & (duels["other"] == other)]
    part = part[part["n_splits"] >= min(ENOUGH, most)]
    return part.assign(won=part["one_changes"] <= part["other_changes"])


def count_won(contested: pd.DataFrame, notion: str) -> str:
    """Return how many combinations were won; floors that change no result count once."""
    part = contested[contested["notion"] == notion]
    part = part.drop_duplicates(["table", "level", "one", "other", "one_changes", "other_changes"])
    return f"{part['won'].sum()} of {len(part)}"


def lost_levels(contested: pd.DataFrame) -> str:
    """Return the levels that were lost as text, with both shares of changes."""
    lost = contested[~contested["won"]].groupby(["table", "notion", "level"], sort=False)
    texts = [
        f"{table} {METRIC[notion]} {level:g} ({number(part['one_changes'].mean())} against "
        f"{number(part['other_changes'].mean())})"
        for (table, notion, level), part in lost
    ]
    return ", ".join(texts) or "none"


def fewest_steps(steps: pd.DataFrame, variant: str = "COMMOD") -> tuple[int, int, int]:
    """Count the points of Figure 1: COMMOD has the fewest changes, all shared, without COMMOD.

    `variant` is the variant of COMMOD. A point is a segment of fairness and a step of accuracy that
    enough splits have. Shared points have updates of the variant and of a blind rival. The last
    number counts points in which blind rivals have updates and the variant has none.
    """
    keys = ["table", "notion", "definition", "fairness_q", "accuracy_change"]
    most = steps.groupby(["table", "notion"])["n_splits"].transform("max")
    kept = steps[steps["n_splits"] >= np.minimum(most, ENOUGH)]
    wide = kept.pivot_table(index=keys, columns="method", values="changes")
    wide = wide.reindex(columns=[*RIVALS, variant])
    ours, others = wide[variant], wide[list(RIVALS)].min(axis=1)
    both = ours.notna() & others.notna()
    alone = ours.isna() & others.notna()
    return int((ours <= others)[both].sum()), int(both.sum()), int(alone.sum())


def entry_without_updates(title: str, claim: str) -> Entry:
    """Return the entry of an experiment that had no updates to compare."""
    verdict = "No split has updates of all methods at similar fairness: too few points were run."
    return Entry(title, claim, "in words", NOTHING, NOTHING, verdict, ())
