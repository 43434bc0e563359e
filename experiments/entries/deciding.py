"""Entry: the deciding table, the fewest changes at a level of fairness."""

from __future__ import annotations

import pandas as pd

from experiments.entries.entry import (
    BEYOND,
    NOT_IN_PAPER,
    NOTIONS,
    Entry,
    Frames,
    contests,
    count_won,
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
        f"{METRIC[notion]} {count_won(first, notion)} "
        f"({count_won(equal, notion)} with equal sweeps)"
        for notion in (DP, EO)
    )
    verdict = (
        "Two methods are compared on the splits in which both reach a level. ControlledDebiaser "
        "needs no more changes than adaptive COMMOD in this many different combinations of table, "
        f"level and floor: {ours}. Adaptive COMMOD needs no more changes than LPP, AdvDebias and "
        f"FRAPPE in {count_won(rivals, DP)} combinations (P-rule) and "
        f"{count_won(rivals, EO)} (DM). "
        "ControlledDebiaser needs more changes than adaptive COMMOD at: "
        f"{lost_levels(first)}. Adaptive COMMOD needs more changes than a rival at: "
        f"{lost_levels(rivals)}."
    )
    return Entry(
        "The deciding table",
        f"{NOT_IN_PAPER}: the fewest changes at a level of fairness and a floor on accuracy",
        NOTHING,
        "combinations in which ControlledDebiaser needs no more changes than adaptive COMMOD: "
        f"{ours}",
        BEYOND,
        verdict,
        tuple(_deciding_body(summary, frames["sweeps"], base)),
    )


def _deciding_body(summary: pd.DataFrame, sweeps: pd.DataFrame, base: str) -> list[str]:
    lengths = sweeps.groupby(["method", "table", "notion", "split"]).size().groupby("method").max()
    n_updates = ", ".join(
        f"{label_of(name)} {lengths[name]}" for name in METHODS if name in lengths
    )
    losses = sorted(summary["max_loss"].unique())
    floors = " / ".join("any" if loss >= 1 else f"{loss:g}" for loss in losses)
    body = [
        picture("deciding", "Changes needed for a level of fairness, every method", base),
        "The table needs no edges. For each split, it takes the updates of a sweep that reach the "
        f"level and lose at most {floors} of accuracy (the floors). Among them it takes the fewest "
        "changes on the test rows. Each entry is the mean over splits. A number in brackets counts "
        "the splits that have such an update, where not all splits have one. The exact limit is "
        "that of somebody who sees group and true label.",
        "The best update of a sweep is chosen on the rows it is measured on. This choice flatters "
        "every method, and longer sweeps more. So ControlledDebiaser also appears with 31 targets, "
        "as many updates as LPP and ROC have, and with errors counted beside changes. Updates of a "
        f"sweep: {n_updates}. Where splits are missing, means are over different splits. Do not "
        "compare such means with one another or with the limit. The verdict compares methods on "
        "common splits only. It leaves out levels that the black box reaches by itself.",
        "Few changes have a price. Where accuracy must stay near the black box's, methods that "
        "change few people often have no update at all. For equalized odds, ControlledDebiaser "
        "meets its target on the fit rows but does worse on new rows. The error rates of four "
        "small cells are noisier than two selection rates, and an exact fit to them does not hold "
        "on new rows. Some means below are far above their neighbours and have a large spread. "
        "There, the only updates of the sweep that reach the level on the test rows go far past "
        "parity on the fit rows.",
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
        ordered = part[part["method"] == method].sort_values("max_loss").to_dict("records")
        cells = [
            " / ".join(_reached(line) for line in ordered if line["level"] == level)
            for level in levels
        ]
        lines.append([label_of(method), *cells])
    return table(["method", *(f"{level:g}" for level in levels)], lines)


def _reached(line: dict[str, float]) -> str:
    """Return the changes, their spread if there is no floor, and how many splits reach."""
    free = line["max_loss"] >= 1
    text = spread(line["changes"], line["sd"]) if free else number(line["changes"])
    partly = 0 < line["n_reached"] < line["n_splits"]
    return f"{text} ({line['n_reached']:.0f})" if partly else text
