"""The third table."""

from __future__ import annotations

import pandas as pd

from experiments.entries.entry import (
    BEYOND,
    NOT_THERE,
    NOTIONS,
    Entry,
    Frames,
    contests,
    fewest_steps,
)
from experiments.markdown import NOTHING, number
from experiments.methods import BLIND, label_of
from experiments.paper import DP, EO
from experiments.protocol import ADULT


def adult(frames: Frames, base: str) -> Entry:
    """Say whether the ordering holds on a table the paper does not have."""
    ordering = frames["ordering"]
    part = ordering[(ordering["table"] == ADULT) & (ordering["definition"] == 1)]
    if part.empty:
        words = "The table could not be fetched for this run."
        title = f"A third table: {ADULT}"
        return Entry(title, NOT_THERE, NOTHING, NOTHING, NOTHING, words, ())
    told = [_of_notion(frames, notion) for notion in (DP, EO)]
    return Entry(
        f"A third table: {ADULT}",
        f"{NOT_THERE}: incomes of a census, groups by sex",
        NOTHING,
        "; ".join(ours for ours, _ in told),
        BEYOND,
        " ".join(verdict for _, verdict in told),
        (
            "Its tables and pictures stand with the others above: Table 1 with our own quartiles, "
            "the deciding table, Figure 1, fairness against accuracy, the limits and gains only. "
            "Methods that train take fewer epochs here, as many steps as on the paper's tables.",
        ),
    )


def _of_notion(frames: Frames, notion: str) -> tuple[str, str]:
    """Return for one notion what the summary and what the verdict says."""
    steps, duels = frames["figure_1"], frames["duels"]
    most = int(frames["deciding"]["n_splits"].max())
    first, n, alone = fewest_steps(steps[(steps["table"] == ADULT) & (steps["notion"] == notion)])
    here = duels[(duels["table"] == ADULT) & (duels["notion"] == notion)]
    ours = contests(here, "ControlledDebiaser", "COMMOD", most)
    rivals = pd.concat([contests(here, "COMMOD", name, most) for name in BLIND])
    curve = frames["pareto"]
    curve = curve[(curve["table"] == ADULT) & (curve["notion"] == notion)]
    short = f"{NOTIONS[notion]}: COMMOD fewest in {first} of {n} points"
    long = (
        f"{NOTIONS[notion].capitalize()}: COMMOD has the fewest changes of the blind methods in "
        f"{first} of {n} points of Figure 1 ({alone} further ones have no update of it) and no "
        f"more than a rival in {rivals['won'].sum()} of {len(rivals)} combinations of the deciding "
        f"table; ControlledDebiaser no more than COMMOD in {ours['won'].sum()} of {len(ours)}. "
        f"Their price is accuracy: {_accuracies(curve)}."
    )
    return short, long


def _accuracies(curve: pd.DataFrame) -> str:
    """Return the blind methods' best accuracies at the fairest level all reach in every split."""
    methods = [*BLIND, "ControlledDebiaser"]
    full = curve[curve["method"].isin(methods) & (curve["n_reached"] == curve["n_splits"])]
    wide = full.pivot_table(index="level", columns="method", values="accuracy", sort=False)
    common = wide.reindex(columns=methods).dropna()
    if common.empty:
        return "no level is reached by all in every split"
    level, line = common.index[-1], common.iloc[-1]
    told = ", ".join(f"{label_of(name)} {number(value)}" for name, value in line.items())
    return f"at a level of {level:g} {told}"
