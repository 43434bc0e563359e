"""Pictures of fairness against accuracy, of ratio architectures and of post-hoc trees."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.methods import label_of
from experiments.paper import COMPAS, DP, EO, LAW_SCHOOL
from experiments.pictures.style import (
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

ACCURACY = "best accuracy\nhigher is better →"  # the label is turned: this arrow points up
FAIRNESS = {DP: "P-rule at least   fairer →", EO: "DM at most   fairer →"}
NOTIONS = {DP: "demographic parity", EO: "equalized odds"}
ARCHITECTURES = (
    Look("#0072B2", "o", "-", 2.6, 6.5),
    Look("#E69F00", "v", (0, (6, 1.5)), 1.5, 6.5),
    Look("#009E73", "^", (0, (1.2, 1.2)), 1.6, 6.5),
    Look("#B5478A", "D", (0, (6, 1.5, 1.2, 1.5)), 1.5, 5.5),
)
TREE = Look("#00513B", "D", "-", 1.8, 6.0)  # darker than FRAPPE itself


@styled
def draw_pareto(frames: Frames) -> Figure:
    """Draw the best accuracy of every method at each level of fairness, the paper's tables."""
    return _draw_pareto(frames, (LAW_SCHOOL, COMPAS), 7.6)


@styled
def draw_pareto_adult(frames: Frames) -> Figure:
    """Draw the best accuracy of every method at each level of fairness on Adult."""
    return _draw_pareto(frames, (ADULT,), 4.6)


def _draw_pareto(frames: Frames, tables: tuple[str, ...], height: float) -> Figure:
    figure, axes = panels(len(tables), 2, height)
    for table, line in zip(tables, axes, strict=True):
        for notion, ax in zip((DP, EO), line, strict=True):
            _draw_attained(ax, frames, table, notion)
        line[0].set_ylabel(ACCURACY)
    legend_below(figure, [*keys_of(run_on(*tables)), hollow_key()])
    return figure


def _draw_attained(ax: Axes, frames: Frames, table: str, notion: str) -> None:
    selected = often_reached(rows(frames, "pareto", table=table, notion=notion))
    selected = selected if selected.empty else selected[selected["method"].isin(SHOWN)]
    ax.set_title(f"{table}, {NOTIONS[notion]}", loc="left")
    ax.set_xlabel(FAIRNESS[notion])
    percent(ax.yaxis)
    if selected.empty:
        write_empty_note(ax)
        ax.set(xticks=[], yticks=[])
    for method in reversed(SHOWN):
        part = of(selected, "method", method)
        if len(part):
            full = part["n_reached"] == part["n_splits"]
            look = LOOKS[method]
            draw_line(ax, part["level"], part["accuracy"], look, label_of(method), full=full)
    if notion == EO:
        ax.invert_xaxis()
    if len(selected):
        _cut_off(ax, selected)


def _cut_off(ax: Axes, selected: pd.DataFrame) -> None:
    """Cut the axis if our accuracy falls so far that other methods could not be distinguished."""
    ours = selected["method"] == "ControlledDebiaser"
    lowest, others = selected.loc[ours, "accuracy"].min(), selected.loc[~ours, "accuracy"]
    room = others.max() - others.min()
    if others.min() - lowest > room:
        ax.set_ylim(others.min() - 0.25 * room, others.max() + 0.1 * room)
        text = f"ControlledDebiaser: down to {lowest:.0%}"
        color = LOOKS["ControlledDebiaser"].color
        ax.text(0.02, 0.03, text, transform=ax.transAxes, color=color)


@styled
def draw_architectures(frames: Frames) -> Figure:
    """Draw the best accuracy at each level of the P-rule for every architecture of the ratio."""
    selected = often_reached(rows(frames, "architectures"))
    figure, axes = panels(1, 1, 4.6, 8.0)
    ax = axes[0, 0]
    names = column(rows(frames, "architectures"), "architecture")
    entries = []
    for name, look in reversed(list(zip(names, ARCHITECTURES, strict=False))):
        part = of(selected, "architecture", name)
        full = part["n_reached"] == part["n_splits"]
        draw_line(ax, part["level"], part["accuracy"], look, name, full=full)
        entries.insert(0, key(look, name))
    if selected.empty:
        write_empty_note(ax)
    ax.set_title(f"{label_of('COMMOD')}, with other ratios, Law School", loc="left")
    ax.set_xlabel(FAIRNESS[DP])
    ax.set_ylabel(ACCURACY)
    percent(ax.yaxis)
    legend_below(figure, [*entries, hollow_key()], 3)
    return figure


@styled
def draw_post_hoc(frames: Frames) -> Figure:
    """Draw the P-rule of FRAPPE explained by a tree, beside COMMOD and FRAPPE itself."""
    figure, axes = panels(1, 1, 4.6, 8.0)
    ax = axes[0, 0]
    for model in ("COMMOD", "FRAPPE"):
        for line in rows(frames, "post_hoc", model=model).itertuples():
            look = LOOKS[model]
            ax.axhline(
                line.p_rule,
                color=look.color,
                linestyle=look.line,
                linewidth=look.width,
                label=model,
            )
            ax.axhspan(
                line.p_rule - line.p_rule_sd,
                line.p_rule + line.p_rule_sd,
                color=look.color,
                alpha=0.13,
                linewidth=0,
            )
    tree = rows(frames, "post_hoc", model="FRAPPE + tree")
    if tree.empty:
        write_empty_note(ax)
    else:
        draw_line(ax, tree["depth"], tree["p_rule"], TREE, "FRAPPE + tree", sd=tree["p_rule_sd"])
        ax.set_xticks(tree["depth"])
    ax.set_title("Law School: FRAPPE, explained by a tree afterwards", loc="left")
    ax.set_xlabel("depth of the tree that replaces FRAPPE's additive term")
    ax.set_ylabel("P-rule\nhigher is fairer →")
    bare = [Look(LOOKS[m].color, "", LOOKS[m].line, LOOKS[m].width) for m in ("COMMOD", "FRAPPE")]
    entries = [key(TREE, "FRAPPE + tree"), key(bare[0], label_of("COMMOD"))]
    entries += [key(bare[1], "FRAPPE itself")]
    legend_below(figure, entries)
    return figure
