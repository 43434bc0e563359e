"""The deciding table."""

from __future__ import annotations

import pandas as pd

from experiments.entries.entry import (
    BEYOND,
    NOT_THERE,
    NOTIONS,
    Entry,
    Frames,
    contests,
    lost_levels,
    tables_in,
)
from experiments.markdown import NOTHING, number, picture, spread, table
from experiments.methods import BLIND, FEWER, LIMIT, METHODS, label_of
from experiments.paper import DP, EO, METRIC


def deciding(frames: Frames, base: str) -> Entry:
    """Say who needs the fewest changes at a level of fairness and a floor on accuracy."""
    summary, duels = frames["deciding"], frames["duels"]
    most = int(summary["n_splits"].max())
    first = contests(duels, "ControlledDebiaser", "COMMOD", most)
    equal = contests(duels, FEWER, "COMMOD", most)
    rivals = pd.concat([contests(duels, "COMMOD", name, most) for name in BLIND])
    ours = "; ".join(
        f"{METRIC[notion]} {_count(first, notion)} ({_count(equal, notion)} with equal sweeps)"
        for notion in (DP, EO)
    )
    verdict = (
        "On the splits in which both reach a level, ControlledDebiaser needs no more changes than "
        f"COMMOD in these of the different combinations of table, level and floor: {ours}; COMMOD "
        f"no more than LPP, AdvDebias and FRAPPE in {_count(rivals, DP)} (P-rule) and "
        f"{_count(rivals, EO)} (DM). Lost by ControlledDebiaser: {lost_levels(first)}. Lost by "
        f"COMMOD: {lost_levels(rivals)}."
    )
    return Entry(
        "The deciding table",
        f"{NOT_THERE}: changes at a level of fairness and a floor on accuracy, without edges",
        NOTHING,
        f"ControlledDebiaser at most COMMOD's changes, of combinations: {ours}",
        BEYOND,
        verdict,
        tuple(_deciding_body(summary, frames["sweeps"], base)),
    )


def _count(contested: pd.DataFrame, notion: str) -> str:
    """Return how many different combinations were won; floors that bind nobody are no others."""
    part = contested[contested["notion"] == notion]
    part = part.drop_duplicates(["table", "level", "one", "other", "one_changes", "other_changes"])
    return f"{part['won'].sum()} of {len(part)}"


def _deciding_body(summary: pd.DataFrame, sweeps: pd.DataFrame, base: str) -> list[str]:
    lengths = sweeps.groupby(["method", "table", "notion", "split"]).size().groupby("method").max()
    told = ", ".join(f"{label_of(name)} {lengths[name]}" for name in METHODS if name in lengths)
    losses = sorted(summary["max_loss"].unique())
    floors = " / ".join("any" if loss >= 1 else f"{loss:g}" for loss in losses)
    body = [
        picture("deciding", "Changes needed for a level of fairness, every method", base),
        "Each entry is the mean over splits of the fewest changes, on the test rows, of an update "
        f"of the sweep that reaches the level and loses at most {floors} of accuracy; in brackets "
        "the number of splits in which there is one, where not all have one; the exact limit is "
        "that of somebody who sees group and label. The best of a sweep on the rows it is measured "
        "on flatters every method, and longer sweeps more: ControlledDebiaser also stands here "
        "with 31 targets, as many updates as LPP and ROC have, and with errors counted beside "
        f"changes. Updates of a sweep: {told}. Where splits are missing, means are over other "
        "splits, and must not be compared with one another or with the limit; the verdict compares "
        "on common splits. Levels that the black box reaches by itself are no contest.",
        "Few changes have a price: where accuracy must stay near the black box's, methods that "
        "change few people often have no update at all. For equalized odds ControlledDebiaser "
        "meets its target on the fit rows and pays on new ones: errors of four small cells are "
        "noisier than two rates, and an exact fit to them does not carry over. Where a mean is far "
        "above its neighbours (some below, with a large spread), the only updates of the sweep "
        "that reach the level on the test rows go far past parity on the fit rows.",
    ]
    for name in tables_in(summary):
        for notion in (DP, EO):
            part = summary[(summary["table"] == name) & (summary["notion"] == notion)]
            if len(part):
                level = "P-rule ≥" if notion == DP else "DM ≤ times the black box's"
                n = int(part["n_splits"].max())
                splits = f"{n} split{'s' if n > 1 else ''}"
                body += [
                    f"**{name}, {NOTIONS[notion]}** ({splits}; {level} …):",
                    _levels_table(part),
                ]
    return body


def _levels_table(part: pd.DataFrame) -> str:
    levels = list(dict.fromkeys(part["level"]))
    lines = []
    for method in (*METHODS, LIMIT):
        of_method = part[part["method"] == method]
        cells = []
        for level in levels:
            here = of_method[of_method["level"] == level].sort_values("max_loss")
            cells.append(" / ".join(_reached(line) for line in here.to_dict("records")))
        lines.append([label_of(method), *cells])
    return table(["method", *(f"{level:g}" for level in levels)], lines)


def _reached(line: dict[str, float]) -> str:
    """Return the changes, with their spread where accuracy is free, and how many splits reach."""
    free = line["max_loss"] >= 1
    text = spread(line["changes"], line["sd"]) if free else number(line["changes"])
    partly = 0 < line["n_reached"] < line["n_splits"]
    return f"{text} ({line['n_reached']:.0f})" if partly else text
