"""Picture of all methods: the changes that each needs for one level of fairness."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.methods import label_of
from experiments.paper import COMPAS, DP, LAW_SCHOOL
from experiments.pictures.style import (
    GREY,
    Frames,
    Look,
    hollow_key,
    key,
    legend_below,
    marks,
    panels,
    percent,
    rows,
    styled,
    write_empty_note,
)
from experiments.protocol import ADULT

TABLES = (LAW_SCHOOL, COMPAS, ADULT)
LEVEL = 0.8
LOOKS = {False: Look("#0072B2", "o", size=7.0), True: Look("#E69F00", "D", size=6.0)}
LIMIT = Look("#000000", "|", size=10.0)


@styled
def draw_all_methods(frames: Frames) -> Figure:
    """Draw the changes at a P-rule of 0.8 as points, a line per method, a panel per table."""
    figure, axes = panels(1, 3, 8.0, sharey=True)
    results = rows(frames, "all_methods", notion=DP, level=LEVEL, max_loss=1.0)
    names = [] if results.empty else list(dict.fromkeys(results["method"]))
    for table, ax in zip(TABLES, axes[0], strict=True):
        ax.set_title(table)
        selected = rows({"all_methods": results}, "all_methods", table=table)
        if selected.empty:
            write_empty_note(ax)
            continue
        _draw_table(ax, selected, names)
    axes[0, 0].set_yticks(range(len(names)), [label_of(name) for name in names])
    axes[0, 0].invert_yaxis()
    entries = [
        key(LOOKS[False], "blind: decides from X alone", line=False),
        key(LOOKS[True], "aware: needs the group", line=False),
        key(LIMIT, "exact limit at the same fairness", line=False),
        hollow_key("hollow: not in every split"),
    ]
    legend_below(figure, entries)
    return figure


def _draw_table(ax: Axes, selected: pd.DataFrame, names: list[str]) -> None:
    for line in selected.to_dict("records"):
        y = names.index(line["method"])
        if not line["n_reached"]:
            ax.text(0.0, y, "not reached", color=GREY, fontsize=8.5, va="center")
            continue
        look = LOOKS[bool(line["needs_group"])]
        face = look.color if line["n_reached"] == line["n_splits"] else "white"
        ax.plot(line["limit"], y, **marks(LIMIT))
        ax.plot(line["changes"], y, **marks(look, face))
    percent(ax.xaxis)
    ax.set_xlim(left=-0.01)
    ax.set_xlabel(f"decisions changed for a P-rule of {LEVEL:g}\n← fewer is better")
