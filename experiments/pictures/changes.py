"""Pictures of how many decisions change: Table 1, Figure 1, the deciding table, the limits."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullFormatter

from experiments.base_points import DEFINERS
from experiments.methods import AS_IN_PAPER, LIMIT, label_of
from experiments.paper import CELLS, COMPAS, DP, EDGES, EO, LAW_SCHOOL, METRIC, TABLE_1
from experiments.pictures.style import (
    CHANGES,
    FEWER_CHANGES,
    GREY,
    LOOKS,
    SHOWN,
    Frames,
    Look,
    column,
    draw_line,
    hollow_key,
    key,
    keys_of,
    legend_below,
    marks,
    of,
    often_reached,
    panels,
    percent,
    rows,
    run_on,
    styled,
    write_empty_note,
)
from experiments.protocol import ADULT
from experiments.table_1 import ENOUGH

TABLES = (LAW_SCHOOL, COMPAS, ADULT)
DIRECTIONS = {
    "any": Look("#D55E00", "s", "-", 2.6, 7.0),
    "gains_only": Look("#56B4E9", "^", "-", 2.6, 7.5),
}
PRINTED = Look("#0072B2", "o", size=7.0)  # COMMOD as the paper prints it
SHARE = 0.9  # of the width of a cell of Table 1 that the methods take
LONGEST_STRETCH = 0.035  # of accuracy, over which a line is drawn
BESIDE = 0.006  # of the axis, between methods that would hide each other
ROUNDING = 1e-9
LARGEST_LOSS = 0.15  # of accuracy, in the pictures of Figure 1
FAIRER = {
    DP: "P-rule at least\nfairer →",
    EO: "DM at most, times the base model's\nfairer →",
}


# ---------------------------------------------------------------------------------------------
# Table 1


@styled
def draw_table_1(frames: Frames) -> Figure:
    """Draw the share of changes in the seven cells of Table 1, a slot for every method."""
    figure, axes = panels(2, 1, 7.6, sharex=True)
    for ax, table in zip(axes[:, 0], (LAW_SCHOOL, COMPAS), strict=True):
        values = {"table": table, "notion": DP, "definition": 1, "edges": "shifted"}
        cells = rows(frames, "table_1", **values)
        ax.set_title(table, loc="left")
        ax.set_ylabel(CHANGES)
        percent(ax.yaxis)
        _shade(ax)
        _draw_cells(ax, cells, table)
        ax.set_ylim(bottom=-0.008)
    ax.set_xticks(range(len(CELLS)), [f"fairness Q{f}\naccuracy Q{a}" for f, a in CELLS])
    ax.set_xlim(-0.5, len(CELLS) - 0.5)
    ax.set_xlabel("segment of Table 1 (Q4: the fairest, the most accurate)")
    printed = key(PRINTED, "COMMOD, the paper's value", hollow=True, line=False)
    small = key(Look(GREY, "o", size=3.0), "small: fewer than 3 splits", line=False)
    legend_below(figure, [*keys_of((*SHOWN, LIMIT), line=False), printed, small])
    return figure


def _shade(ax: Axes) -> None:
    """Shade every second segment of fairness."""
    ax.grid(False, axis="x")
    for i, (fairness, _) in enumerate(CELLS):
        if fairness % 2:
            ax.axvspan(i - 0.5, i + 0.5, color="#f4f4f4", linewidth=0, zorder=0)


def _draw_cells(ax: Axes, cells: pd.DataFrame, table: str) -> None:
    slots = [*reversed(SHOWN), LIMIT]
    slots.insert(slots.index(AS_IN_PAPER), "paper")
    enough = min(ENOUGH, 0 if cells.empty else cells["n_splits"].max())
    for i, (fairness, accuracy) in enumerate(CELLS):
        here = of(of(cells, "fairness_q", fairness), "accuracy_q", accuracy)
        width = SHARE / len(slots)
        place = {name: i + (j - (len(slots) - 1) / 2) * width for j, name in enumerate(slots)}
        for method in (*SHOWN, LIMIT):
            for line in of(here, "method", method).itertuples():
                drawn = marks(LOOKS[method])
                if method == LIMIT:
                    drawn["markeredgewidth"] = 3
                else:
                    drawn["markersize"] *= 1.35 if line.n_splits >= enough else 0.8
                ax.plot(place[method], line.changes, label=label_of(method), **drawn)
        printed = TABLE_1[table]["COMMOD"][i]
        if printed is not None:
            ax.plot(place["paper"], printed, label="paper", **marks(PRINTED, "white"))


# ---------------------------------------------------------------------------------------------
# Figure 1 and its robustness


@styled
def draw_figure_1(frames: Frames, table: str, notion: str) -> Figure:
    """Draw changes against accuracy in each segment of fairness, by definition 1."""
    return _draw_segments(frames, "figure_1", table, notion, 1)


@styled
def draw_robustness(frames: Frames, table: str, definition: int) -> Figure:
    """Draw the same with the segments of definition 2 (LPP) or 3 (ROC), demographic parity."""
    return _draw_segments(frames, "robustness", table, DP, definition)


def _draw_segments(frames: Frames, name: str, table: str, notion: str, definition: int) -> Figure:
    selected = rows(frames, name, table=table, notion=notion, definition=definition)
    edges = _edges(frames, selected, table, notion, definition)
    selected, cut = _shown(selected)
    width = 0.0 if selected.empty else float(np.ptp(selected["accuracy_change"]))
    figure, axes = panels(2, 2, 6.8, sharex=True, sharey=True)
    for segment, ax in enumerate(axes.flat, start=1):
        ax.set_title(_title(segment, edges, notion), loc="left")
        _draw_methods(ax, of(selected, "fairness_q", segment), width)
        ax.axvline(0, color=GREY, linewidth=0.8, zorder=1)
    percent(ax.yaxis)
    ax.xaxis.set_major_locator(MaxNLocator(7, steps=[1, 2, 5, 10]))
    ax.xaxis.set_major_formatter(FuncFormatter(_points))
    if selected.empty:
        ax.set(xticks=[], yticks=[])
    else:
        ax.set_ylim(bottom=-0.02 * selected["changes"].max(), top=1.05 * selected["changes"].max())
    label = "accuracy minus the base model's, in points   better →"
    if cut:
        label += f"\n(losses of more than {100 * cut:.0f} points are off the picture)"
    for ax in axes[1]:
        ax.set_xlabel(label)
    for ax in axes[:, 0]:
        ax.set_ylabel(CHANGES)
    definer = label_of(DEFINERS[definition - 1])
    ours = selected.empty or (selected["edges"] == "ours").all()
    whose = "our" if ours else "the paper's"
    figure.suptitle(f"{table}: segments by {whose} quartiles of {definer}", fontsize=11)
    legend_below(figure, keys_of(run_on(table)))
    return figure


def _points(value: float, _: object) -> str:
    points = round(100 * value, 1) + 0.0
    return f"{points:+g}".replace("-", "−") if points else "0"


def _shown(selected: pd.DataFrame) -> tuple[pd.DataFrame, float]:
    """Return the rows to draw, and the loss beyond which updates are left out (0 if none is).

    Steps that too few splits have are left out. So are losses beyond those of all methods but ROC,
    and beyond `LARGEST_LOSS`: the sweep of ROC continues to models of no use.
    """
    if selected.empty:
        return selected, 0.0
    selected = selected[selected["n_splits"] >= min(ENOUGH, selected["n_splits"].max())]
    selected = selected[selected["method"].isin(SHOWN)]
    useful = selected[selected["accuracy_change"] >= -LARGEST_LOSS - ROUNDING]
    others = useful.loc[useful["method"] != "RejectOption", "accuracy_change"]
    lowest = (others.min() if len(others) else -LARGEST_LOSS) - ROUNDING
    inside = selected["accuracy_change"] >= lowest
    return selected[inside], 0.0 if inside.all() else -lowest


def _edges(
    frames: Frames, selected: pd.DataFrame, table: str, notion: str, definition: int
) -> list[float]:
    """Return the edges between segments of fairness: the paper's, or ours if it prints none."""
    definer = DEFINERS[definition - 1]
    if "shifted" in column(selected, "edges"):
        return list(EDGES[table, notion, definer][0])
    values = {"table": table, "notion": notion, "definition": definition, "figure": "fairness"}
    ours = rows(frames, "quartiles", **values)
    return [] if ours.empty else ours["ours"].tolist()


def _title(segment: int, edges: list[float], notion: str) -> str:
    name = f"Q{segment}" + {1: " (least fair)", 4: " (fairest)"}.get(segment, "")
    if len(edges) != 3:
        return name
    metric, below = METRIC[notion], "<" if notion == DP else ">"
    if segment == 1:
        return f"{name}: {metric} {below} {edges[0]:.2f}"
    if segment == 4:
        return f"{name}: {metric} {'≥' if notion == DP else '≤'} {edges[2]:.2f}"
    return f"{name}: {metric} {edges[segment - 2]:.2f} to {edges[segment - 1]:.2f}"


def _draw_methods(ax: Axes, selected: pd.DataFrame, width: float) -> None:
    x, y = "accuracy_change", "changes"
    if selected.empty:
        write_empty_note(ax)
    for i, method in enumerate(reversed(SHOWN)):
        part = of(selected, "method", method)
        if len(part):
            part = _with_gaps(part.sort_values(x), x)
            beside = (i - (len(SHOWN) - 1) / 2) * BESIDE * width
            draw_line(ax, part[x] + beside, part[y], LOOKS[method], label_of(method))


def _with_gaps(part: pd.DataFrame, x: str) -> pd.DataFrame:
    """Break the line where a method has no update for a long stretch of accuracy."""
    far = part[x].diff() > LONGEST_STRETCH
    breaks = pd.DataFrame({x: part.loc[far, x] - 1e-6})  # and nothing else: not a number
    return pd.concat([part, breaks]).sort_values(x)


# ---------------------------------------------------------------------------------------------
# The deciding table and the limits


@styled
def draw_deciding(frames: Frames) -> Figure:
    """Draw the fewest changes at each level of fairness, with and without a floor on accuracy."""
    figure, axes = panels(3, 4, 9.6, sharey="row")
    columns = [(notion, loss) for notion in (DP, EO) for loss in (1.0, 0.05)]
    for table, line in zip(TABLES, axes, strict=True):
        for (notion, loss), ax in zip(columns, line, strict=True):
            selected = rows(frames, "deciding", table=table, notion=notion, max_loss=loss)
            _draw_levels(ax, selected, notion, "changes")
            percent(ax.yaxis)
        line[0].set_ylabel(f"{table}\n{CHANGES}")
        if rows(frames, "deciding", table=table).empty:
            line[0].set_yticks([])
        else:
            line[0].set_ylim(bottom=-0.008)
    for (notion, loss), top, bottom in zip(columns, axes[0], axes[-1], strict=True):
        floor = "any accuracy" if loss == 1.0 else "accuracy loss ≤ 0.05"
        top.set_title(f"{METRIC[notion]}\n{floor}")
        bottom.set_xlabel(FAIRER[notion].replace(", times", ",\ntimes"))
    limit = key(LOOKS[LIMIT], label_of(LIMIT), line=False)
    legend_below(figure, [*keys_of(SHOWN), limit, hollow_key()])
    return figure


@styled
def draw_changes(frames: Frames) -> Figure:
    """Draw changes against the P-rule on every table, with the exact limit as black bars."""
    figure, axes = panels(1, 3, 4.4)
    for table, ax in zip(TABLES, axes[0], strict=True):
        selected = rows(frames, "deciding", table=table, notion=DP, max_loss=1.0)
        _draw_levels(ax, selected, DP, "changes")
        percent(ax.yaxis)
        ax.set_ylim(bottom=0)
        ax.set(title=table, xlabel=FAIRER[DP])
    axes[0, 0].set_ylabel(CHANGES)
    limit = key(LOOKS[LIMIT], label_of(LIMIT), line=False)
    legend_below(figure, [*keys_of(SHOWN), limit, hollow_key()])
    return figure


@styled
def draw_limits(frames: Frames) -> Figure:
    """Draw the changes of every method as a multiple of the exact limit."""
    figure, axes = panels(2, 3, 7.2, sharey="row")
    for notion, line in zip((DP, EO), axes, strict=True):
        for table, ax in zip(TABLES, line, strict=True):
            selected = rows(frames, "deciding", table=table, notion=notion, max_loss=1.0)
            ax.set_yscale("log")
            _draw_levels(ax, selected, notion, "times_limit")
            ax.axhline(1, color="black", linewidth=1.6, zorder=1)
            ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}×"))
            ax.yaxis.set_minor_formatter(NullFormatter())
            ax.set_yticks([1, 2, 5, 10, 20, 50])
            ax.set_title(f"{table}, {METRIC[notion]}")
            ax.set_xlabel(FAIRER[notion])
        line[0].set_ylabel(f"changes, times the limit\n{FEWER_CHANGES}")
        line[0].set_ylim(bottom=0.85)
    limit = Line2D([], [], color="black", linewidth=1.6, label="exact limit")
    legend_below(figure, [*keys_of(SHOWN), limit, hollow_key()])
    return figure


def _draw_levels(ax: Axes, selected: pd.DataFrame, notion: str, y: str) -> None:
    """Draw one line per method, slightly shifted against the others; fairer is to the right."""
    levels = [] if selected.empty else sorted(set(selected["level"]), reverse=notion != DP)
    ax.set_xticks(range(len(levels)), [f"{level:g}" for level in levels])
    ax.set_xlim(-0.4, max(len(levels) - 0.6, 0.4))
    known = often_reached(selected)
    known = known if known.empty else known.dropna(subset=y)
    drawn = False
    for i, method in enumerate(reversed(SHOWN)):
        part = of(known, "method", method)
        if len(part):
            part = part.sort_values("level", ascending=notion == DP)
            beside = (i - (len(SHOWN) - 1) / 2) * 0.08
            x = [levels.index(level) + beside for level in part["level"]]
            full = part["n_reached"] == part["n_splits"]
            draw_line(ax, x, part[y], LOOKS[method], label_of(method), full=full)
            drawn = True
    limit = of(known, "method", LIMIT) if y == "changes" else known.head(0)
    for line in limit.itertuples():  # no line: between levels it would run through the marks
        i = levels.index(line.level)
        ax.hlines(line.changes, i - 0.36, i + 0.36, color="black", linewidth=2.0, zorder=1.5)
    if not drawn:
        write_empty_note(ax)


@styled
def draw_gains_only(frames: Frames) -> Figure:
    """Draw the changes needed when everybody may change and when nobody may lose."""
    figure, axes = panels(1, 3, 4.2, sharey=True)
    for table, ax in zip(TABLES, axes[0], strict=True):
        selected = rows(frames, "gains_only", table=table)
        ax.set_title(table)
        levels = sorted(column(selected, "level"))
        ax.set_xticks(range(len(levels)), [f"{level:g}" for level in levels])
        ax.set_xlim(-0.5, max(len(levels) - 0.5, 0.5))
        ax.set_xlabel(FAIRER[DP])
        for side, direction in zip((-0.16, 0.16), DIRECTIONS, strict=True):
            _draw_direction(ax, of(selected, "direction", direction), direction, levels, side)
        if selected.empty or not selected["changes"].notna().any():
            write_empty_note(ax)
    percent(ax.yaxis)
    ax.set_ylim(bottom=0)
    axes[0, 0].set_ylabel(CHANGES)
    figure.suptitle("ControlledDebiaser", fontsize=11)
    entries = [
        key(DIRECTIONS["any"], "any change", line=False),
        key(DIRECTIONS["gains_only"], "gains only: nobody loses", line=False),
        key(LOOKS[LIMIT], "exact limit of each", line=False),
        hollow_key(),
    ]
    legend_below(figure, entries)
    return figure


def _draw_direction(
    ax: Axes, selected: pd.DataFrame, direction: str, levels: list[float], side: float
) -> None:
    look = DIRECTIONS[direction]
    for line in selected.itertuples():
        x = levels.index(line.level) + side
        ax.hlines(line.limit, x - 0.13, x + 0.13, color="black", linewidth=2.5)
        if line.n_reached:
            spread = line.sd if line.n_reached > 1 else 0.0
            ax.errorbar(x, line.changes, yerr=spread, fmt="none", ecolor=look.color, alpha=0.6)
            face = look.color if line.n_reached == line.n_splits else "white"
            ax.plot(x, line.changes, label=direction, **marks(look, face))
