"""The distance to the exact limit."""

from __future__ import annotations

import pandas as pd

from experiments.entries.entry import BEYOND, NOT_THERE, NOTIONS, Entry, Frames
from experiments.markdown import NOTHING, number, picture, spread, table
from experiments.methods import LIMIT, METHODS, label_of
from experiments.paper import DP, EO


def limits(frames: Frames, base: str) -> Entry:
    """Say how far every method is from the fewest changes possible."""
    found = frames["deciding"]
    free = found[(found["max_loss"] >= 1) & (found["method"] != LIMIT)]
    told = {m: _times(free, m) for m in ("ControlledDebiaser", "COMMOD")}
    body = [picture("limits", "Changes as a multiple of the exact limit, by level", base)]
    for notion in (DP, EO):
        body += [f"**{NOTIONS[notion].capitalize()}**, changes over the exact limit:"]
        body += [_times_table(free[free["notion"] == notion])]
    return Entry(
        "Distance to the exact limit",
        f"{NOT_THERE}: the fewest changes possible, even with the group in hand",
        NOTHING,
        f"ControlledDebiaser {told['ControlledDebiaser']}, COMMOD {told['COMMOD']} times the limit "
        "(median over levels and tables)",
        BEYOND,
        f"Demographic parity: ControlledDebiaser changes {told['ControlledDebiaser']} times the "
        f"limit, COMMOD {told['COMMOD']} times (medians over tables and levels).",
        tuple(body),
    )


def _times(free: pd.DataFrame, method: str) -> str:
    part = free[(free["method"] == method) & (free["notion"] == DP)]
    return number(part["times_limit"].median(), 2)


def _times_table(part: pd.DataFrame) -> str:
    columns = part[["table", "level"]].drop_duplicates().itertuples(index=False, name=None)
    wanted = list(columns)
    by = part.set_index(["method", "table", "level"])
    lines = [
        [
            label_of(method),
            *(
                spread(*by.loc[(method, *cell), ["times_limit", "times_limit_sd"]], 2)
                for cell in wanted
            ),
        ]
        for method in METHODS
    ]
    return table(["method", *(f"{name}, {level:g}" for name, level in wanted)], lines)
