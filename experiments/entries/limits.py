"""Entry: the distance to the exact limit."""

from __future__ import annotations

import pandas as pd

from experiments.entries.entry import BEYOND, NOT_IN_PAPER, NOTIONS, Entry, Frames
from experiments.markdown import NOTHING, number, picture, spread, table
from experiments.methods import LIMIT, METHODS, label_of
from experiments.paper import DP, EO, METRIC


def limits(frames: Frames, base: str) -> Entry:
    """Say how far every method is from the fewest changes possible."""
    fewest = frames["deciding"]
    free = fewest[(fewest["max_loss"] >= 1) & (fewest["method"] != LIMIT)]
    ours = "; ".join(f"{METRIC[notion]}: {_medians(free, notion)}" for notion in (DP, EO))
    body = [picture("limits", "Changes as a multiple of the exact limit, by level", base)]
    for notion in (DP, EO):
        body += [f"**{NOTIONS[notion].capitalize()}**, changes over the exact limit:"]
        body += [_times_table(free[free["notion"] == notion])]
    return Entry(
        "Distance to the exact limit",
        f"{NOT_IN_PAPER}: the fewest changes possible, even with the group in hand",
        NOTHING,
        f"multiples of the limit, {ours}",
        BEYOND,
        "The changes are these multiples of the limit (medians over the tables and levels that "
        f"both methods reach in every split): {ours}.",
        tuple(body),
    )


def _medians(free: pd.DataFrame, notion: str) -> str:
    """Return both of our methods' medians over the levels that both reach in every split."""
    part = free[(free["notion"] == notion) & (free["n_reached"] == free["n_splits"])]
    wide = part.pivot_table(index=["table", "level"], columns="method", values="times_limit")
    both = wide.reindex(columns=["ControlledDebiaser", "COMMOD"]).dropna()
    medians = both.median().items()
    return ", ".join(f"{label_of(str(name))} {number(value, 2)}" for name, value in medians)


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
        if method in set(part["method"])
    ]
    return table(["method", *(f"{name}, {level:g}" for name, level in wanted)], lines)
