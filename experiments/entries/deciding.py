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
from experiments.markdown import NOTHING, number, picture, table
from experiments.methods import BLIND, FEWER, LIMIT, METHODS, label_of
from experiments.paper import DP, EO


def deciding(frames: Frames, base: str) -> Entry:
    """Say who needs the fewest changes at a level of fairness and a floor on accuracy."""
    summary, duels = frames["deciding"], frames["duels"]
    most = int(summary["n_splits"].max())
    first = contests(duels, "ControlledDebiaser", "COMMOD", most)
    equal = contests(duels, FEWER, "COMMOD", most)
    rivals = pd.concat([contests(duels, "COMMOD", name, most) for name in BLIND])
    parity = first[first["notion"] == DP]
    ours = f"{parity['won'].sum()} of {len(parity)} for demographic parity"
    verdict = (
        "On the splits in which both reach a level, ControlledDebiaser needs no more changes than "
        f"COMMOD in {first['won'].sum()} of {len(first)} combinations of table, notion, level and "
        f"floor ({ours}; {equal['won'].sum()} of {len(equal)} with 31 updates only); COMMOD no "
        f"more than LPP, AdvDebias and FRAPPE in {rivals['won'].sum()} of {len(rivals)}. Lost by "
        f"ControlledDebiaser: {lost_levels(first)}. Lost by COMMOD: {lost_levels(rivals)}."
    )
    return Entry(
        "The deciding table",
        f"{NOT_THERE}: changes at a level of fairness and a floor on accuracy, without edges",
        NOTHING,
        f"ControlledDebiaser at most COMMOD's changes in {ours}",
        BEYOND,
        verdict,
        tuple(_deciding_body(summary, base)),
    )


def _deciding_body(summary: pd.DataFrame, base: str) -> list[str]:
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
        "changes. Levels that the black box reaches by itself are no contest.",
        "Few changes have a price: where accuracy must stay near the black box's, methods that "
        "change few people often have no update at all. For equalized odds ControlledDebiaser "
        "meets its target on the fit rows and pays on new ones: errors of four small cells are "
        "noisier than two rates, and an exact fit to them does not carry over.",
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
    text = number(line["changes"])
    partly = 0 < line["n_reached"] < line["n_splits"]
    return f"{text} ({line['n_reached']:.0f})" if partly else text
