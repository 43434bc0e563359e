"""Entry: all methods of this library on three tables."""

from __future__ import annotations

import pandas as pd

from experiments.entries.entry import BEYOND, NOT_IN_PAPER, NOTIONS, Entry, Frames, tables_in
from experiments.markdown import NOTHING, number, picture, table
from experiments.methods import label_of
from experiments.paper import DP, EO

HIGHEST = {DP: 0.8, EO: 0.25}


def all_methods(frames: Frames, base: str) -> Entry:
    """Say who reaches which level of fairness, and with how many changes."""
    results = frames["all_methods"]
    names = list(dict.fromkeys(name.removesuffix(" (aware)") for name in results["method"]))
    verdicts = [
        _verdict(results[(results["table"] == name) & (results["notion"] == notion)], name, notion)
        for notion in (DP, EO)
        for name in tables_in(results)
    ]
    return Entry(
        f"All {len(names)} methods",
        f"{NOT_IN_PAPER}: the paper's table of methods has no figures for most of them",
        NOTHING,
        f"{len(names)} methods, {len(results['method'].unique())} with their aware forms",
        BEYOND,
        " ".join(verdict for verdict in verdicts if verdict),
        tuple(_body(results, base)),
    )


def _verdict(part: pd.DataFrame, name: str, notion: str) -> str:
    """Say how many methods reach the highest level on every split, and who changes fewest."""
    free = part[(part["max_loss"] == 1) & (part["level"] == HIGHEST[notion])]
    if free.empty:
        return ""
    reached = free[free["n_reached"] == free["n_splits"]]
    level = f"P-rule {HIGHEST[DP]:g}" if notion == DP else f"{HIGHEST[EO]:g} of the DM"
    text = f"{name}, {level}: {len(reached)} of {len(free)} reach it on every split."
    for needs_group, kind in ((False, "blind"), (True, "aware")):
        best = reached[reached["needs_group"] == needs_group].sort_values("changes").head(1)
        for line in best.to_dict("records"):
            text += f" Fewest {kind}: {label_of(line['method'])} ({number(line['changes'])})."
    return text


def _body(results: pd.DataFrame, base: str) -> list[str]:
    body = [
        picture(
            "all_methods", f"Changes that every method needs for a P-rule of {HIGHEST[DP]:g}", base
        ),
        "Each entry is the smallest share of changed decisions in a method's sweep on the test "
        "rows, the mean over splits: with any accuracy / with an accuracy at most "
        f"{results['max_loss'].min():g} below the base model's. A number in brackets counts the "
        "splits that reach the level, where not all do. Blind methods decide from X alone; aware "
        "methods also need the group. *Fairest* is the best value of the whole sweep; for the DM, "
        "as a share of the base model's.",
        "LeafRelabelling edits a decision tree with at most 50 leaves. IndividualGroupDebiasing "
        "edits a logistic regression that reads the group. Their changes are counted against "
        "these base models, so do not compare them with the other lines directly. A method that "
        "does not know a notion of fairness has no line for it. CFBC knows parity of true positive "
        "rates only, so it has no line at all.",
    ]
    for name in tables_in(results):
        for notion in (DP, EO):
            part = results[(results["table"] == name) & (results["notion"] == notion)]
            if len(part):
                n = int(part["n_splits"].max())
                splits = f"{n} split{'s' if n > 1 else ''}"
                level = "P-rule ≥" if notion == DP else "DM ≤ times the base model's"
                body += [f"**{name}, {NOTIONS[notion]}** ({splits}; {level} …):", _table(part)]
    return body


def _table(part: pd.DataFrame) -> str:
    levels = list(dict.fromkeys(part["level"]))
    lines = []
    for method, of_method in part.groupby("method", sort=False):
        needs_group = bool(of_method["needs_group"].iloc[0])
        ordered = of_method.sort_values("max_loss", ascending=False).to_dict("records")
        cells = [
            " / ".join(_reached(line) for line in ordered if line["level"] == level)
            for level in levels
        ]
        kind = "aware" if needs_group else "blind"
        lines.append([label_of(str(method)), kind, *cells, number(of_method["fairest"].iloc[0], 2)])
    return table(["method", "decides", *(f"{level:g}" for level in levels), "fairest"], lines)


def _reached(line: dict[str, float]) -> str:
    partly = 0 < line["n_reached"] < line["n_splits"]
    text = number(line["changes"])
    return f"{text} ({line['n_reached']:.0f})" if partly else text
