"""Pictures of explanations: concepts and their points, how local changes are, scores, stability."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.agreement import N_BINS
from experiments.concepts import LABELS, PARTITION
from experiments.methods import AS_IN_PAPER, FEWER, label_of
from experiments.paper import COMPAS, ILLUSTRATION_SHARES, LAW_SCHOOL, R_SQUARED
from experiments.pictures.style import (
    GREY,
    LOOKS,
    Frames,
    Look,
    column,
    draw_line,
    key,
    legend_below,
    marks,
    of,
    panels,
    percent,
    rows,
    styled,
    write_empty_note,
)

N_POINTS = 8  # of a concept
TOWARDS, AGAINST = "#0072B2", "#D55E00"
OURS, PAPERS = Look("#0072B2", "o", size=8.0), Look("#000000", "D", size=7.0)
KINDS = {
    "COMMOD": LOOKS["COMMOD"],
    AS_IN_PAPER: LOOKS[AS_IN_PAPER],
    PARTITION: Look("#7d7d7d", "s", "-", 1.4, 6.5),
    "FRAPPE": Look("#009E73", "^", (0, (6, 1.5)), 1.6, 7.0),
    "FRAPPE, with COMMOD's concept losses": Look("#E69F00", "v", (0, (1.2, 1.2)), 1.8, 7.0),
}
READINGS = {
    "r2": ("usual R²", Look("#0072B2", "o", size=7.5)),
    "r2_means": ("R² of the means over seeds", Look("#E69F00", "^", size=8.0)),
    "r2_uncentred": ("uncentred R²", Look("#7d7d7d", "s", size=6.5)),
}
OUTCOMES = {"change_rate": "share of changes", "accuracy": "accuracy", "fairness": "P-rule"}
WEIGHTS = {"adaptive": "adaptive weight", "constant": "constant weight"}
KEPT, CHANGED = "#8d99a6", "#1a1a1a"  # no method's colours
PEOPLE = {"all": "everybody", "unchanged": "decision kept"}
TABLES = (LAW_SCHOOL, COMPAS, "both tables")


# ---------------------------------------------------------------------------------------------
# One explanation


@styled
def draw_illustration(frames: Frames) -> Figure:
    """Draw the strongest points of the two concepts, and how often people change under each."""
    figure, axes = panels(1, 3, 4.8, width_ratios=(1, 1, 1))
    points = rows(frames, "illustration_points")
    for number, ax in enumerate(axes[0, :2]):
        ax.set_title(f"concept {number} (by column)", loc="left")
        _draw_points(ax, of(points, "concept", number).head(N_POINTS))
    _draw_shares(axes[0, 2], rows(frames, "illustration_concepts"))
    entries = [
        key(OURS, f"{label_of('COMMOD')}, COMPAS", line=False),
        key(PAPERS, "the paper's (its own two concepts)", hollow=True, line=False),
    ]
    legend_below(figure, entries)
    return figure


def _draw_points(ax: Axes, lines: pd.DataFrame) -> None:
    """Draw points times spread over people for each term: points per unit cannot be compared."""
    if lines.empty:
        return write_empty_note(ax, "no line in this concept")
    points = lines["points"].to_numpy()
    strength = lines["spread"] if "spread" in lines else np.abs(points)
    push = np.sign(points) * np.asarray(strength, dtype=float)
    y = np.arange(len(lines))
    ax.barh(y, push, height=0.62, color=[TOWARDS if p > 0 else AGAINST for p in points])
    ax.set_yticks(y, [_term(term) for term in lines["term"]])
    ax.set_ylim(N_POINTS - 0.5, -0.5)
    ax.grid(False, axis="y")
    ax.axvline(0, color="black", linewidth=0.6)
    units = lines["unit"] if "unit" in lines else [""] * len(lines)
    for i, unit in enumerate(units):
        text = f"{points[i]:+.2g}{' ' + unit if isinstance(unit, str) else ''}".strip()
        ax.annotate(text.replace("-", "−"), (max(push[i], 0), i), (4, 0), va="center", **_BESIDE)
    ax.set_xlim(2.0 * min(push.min(), 0), 2.5 * max(push.max(), 0.01))  # room for the texts
    ax.set_xlabel("push (sd over people)\ntowards a change →")
    return None


_BESIDE = {"textcoords": "offset points", "fontsize": 9, "color": GREY}


def _term(term: str) -> str:
    """Return the term on two lines, as narrow as the panel requires."""
    name, _, value = str(term).partition(" = ")
    value = textwrap.shorten(value, 28, placeholder="…")
    return (f"{name} =\n{value}" if value else name).replace("$", r"\$")


def _draw_shares(ax: Axes, concepts: pd.DataFrame) -> None:
    names = [f"concept {i}\n{state}" for i in (0, 1) for state in ("active", "not active")]
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.set_xlim(-0.06, 1.6)
    percent(ax.xaxis)
    ax.set_xticks([0, 0.5, 1])
    ax.set_title("who changes", loc="left")
    ax.set_xlabel("people who change")
    paper = [share for pair in ILLUSTRATION_SHARES for share in pair]
    for y, share in enumerate(paper):
        _draw_share(ax, share, y + 0.17, "paper", marks(PAPERS, "white"))
    for line in concepts.itertuples():
        shares = (line.change_if_active, line.change_if_inactive)
        for i, share in enumerate(shares):
            _draw_share(ax, share, 2 * int(line.concept) + i - 0.17, "ours", marks(OURS))


def _draw_share(ax: Axes, share: float, y: float, label: str, drawn: dict[str, Any]) -> None:
    ax.plot(share, y, label=label, **drawn)
    ax.annotate(f"{round(100 * share, 1):g}%", (share, y), (8, 0), va="center", **_BESIDE)


# ---------------------------------------------------------------------------------------------
# Concepts and locality


@styled
def draw_concepts(frames: Frames) -> Figure:
    """Draw redundancy and sparsity of concepts against the share of changes."""
    figure, axes = panels(1, 2, 4.6)
    selected = rows(frames, "concepts")
    better = {"redundancy": "← lower is better", "sparsity": "higher is better →"}
    for ax, (figure_of, direction) in zip(axes[0], better.items(), strict=True):
        ax.set_title(f"{figure_of} of two concepts, Law School", loc="left")
        ax.set_ylabel(f"{figure_of}\n{direction}")
        ax.set_xlabel("← fewer is better   decisions changed")
        if selected.empty:
            write_empty_note(ax)
        for i, (kind, look) in enumerate(KINDS.items()):
            part = of(selected, "kind", kind)
            if len(part):
                x = part["mean_changes"] + (i - 1.5) * 0.002  # bars side by side
                draw_line(ax, x, part[figure_of], look, kind, sd=part[f"{figure_of}_sd"])
        percent(ax.xaxis)
        ax.set_ylim(-0.05, 1.1)
    entries = [key(look, LABELS.get(kind, kind)) for kind, look in KINDS.items()]
    legend_below(figure, entries, columns=2)
    return figure


@styled
def draw_locality(frames: Frames) -> Figure:
    """Draw how well a tree of each depth predicts who changed."""
    figure, axes = panels(1, 2, 4.6, sharey=True)
    for ax, table in zip(axes[0], (LAW_SCHOOL, COMPAS), strict=True):
        selected = rows(frames, "locality", table=table)
        ax.set_title(table, loc="left")
        ax.set_xlabel("depth of the tree that tells who changed")
        if selected.empty:
            write_empty_note(ax)
        for i, method in enumerate(column(selected, "method")):
            part = of(selected, "method", method)
            x = part["depth"] + (i - 1.5) * 0.07  # bars side by side
            draw_line(ax, x, part["f1"], _look_of(method), label_of(method), sd=part["f1_sd"])
        if len(selected):
            ax.set_xticks(column(selected, "depth"))
    axes[0, 0].set_ylabel("F1 score of the tree\neasier to tell →")
    ax.set_ylim(-0.03, 1.05)
    methods = column(rows(frames, "locality"), "method")
    legend_below(figure, [key(_look_of(method), label_of(method)) for method in methods])
    return figure


def _look_of(method: str) -> Look:
    """Return the look of a method; with 31 targets ControlledDebiaser keeps its own look."""
    return LOOKS["ControlledDebiaser" if method == FEWER else method]


# ---------------------------------------------------------------------------------------------
# Stability and scores


@styled
def draw_sensitivity(frames: Frames) -> Figure:
    """Draw three readings of R² for every outcome, table and weight, beside the paper's one."""
    figure, axes = panels(1, 3, 4.6, sharex=True, sharey=True)
    selected = rows(frames, "sensitivity")
    tables = sorted(column(selected, "table"), key=TABLES.index)
    groups = [(table, weight) for table in tables for weight in WEIGHTS]
    for ax, (outcome, title) in zip(axes[0], OUTCOMES.items(), strict=True):
        ax.set_title(title, loc="left")
        ax.set_xlabel("R²   more is explained →")
        if selected.empty:
            write_empty_note(ax)
        for y, (table, weight) in enumerate(groups):
            part = of(of(of(selected, "outcome", outcome), "table", table), "weight", weight)
            for i, (reading, (label, look)) in enumerate(READINGS.items()):
                if len(part):
                    ax.plot(part[reading], [y + (i - 1) * 0.2], label=label, **marks(look))
        paper = R_SQUARED[outcome]
        ax.axvline(paper, color="black", linewidth=1.2, linestyle=(0, (4, 2)), zorder=1)
        ax.annotate(f"paper {paper:.2f}", (paper, 1), (-3, -1), va="top", ha="right", **_ABOVE)
    ax.set_yticks(range(len(groups)), [f"{t}\n{WEIGHTS[w]}" for t, w in groups])
    ax.set_ylim(max(len(groups), 1) - 0.5, -1.0)
    ax.set_xlim(right=1.04)
    looks = [key(look, label, line=False) for label, look in READINGS.values()]
    legend_below(figure, looks)
    return figure


_ABOVE = {"textcoords": "offset points", "xycoords": ("data", "axes fraction"), "fontsize": 9.5}


@styled
def draw_agreement(frames: Frames) -> Figure:
    """Draw people by their score before and after, COMMOD beside AdvDebias."""
    figure, axes = panels(1, 2, 6.1, sharex=True, sharey=True)
    grid = rows(frames, "agreement_grid")
    for ax, method in zip(axes[0], ("COMMOD", "AdversarialDebiasing"), strict=True):
        part = of(grid, "method", method)
        ax.set_title(label_of(method), loc="left")
        ax.set_xlabel("score before (base model)")
        if part.empty:
            write_empty_note(ax)
            continue
        middle = [(part[name] + 0.5) / N_BINS for name in ("bin_before", "bin_after")]
        size = 260 * part["count"] / grid["count"].max()
        crossed = (part["bin_before"] < N_BINS // 2) != (part["bin_after"] < N_BINS // 2)
        colors = np.where(crossed, CHANGED, KEPT)
        ax.scatter(*middle, s=size, c=colors, alpha=0.75, linewidths=0, label=method)
        _draw_closeness(ax, frames, method)
    for ax in axes[0]:
        ax.plot([0, 1], [0, 1], color="black", linewidth=1.0, linestyle=(0, (4, 2)), zorder=1)
        ax.axhline(0.5, color=GREY, linewidth=0.6, zorder=1)
        ax.axvline(0.5, color=GREY, linewidth=0.6, zorder=1)
        ax.set(xlim=(0, 1), ylim=(0, 1))
    axes[0, 0].set_ylabel("score after")
    kept, changed = Look(KEPT, "o", size=8), Look(CHANGED, "o", size=8)
    same = key(Look("#000000", "", (0, (4, 2)), 1.0), "score unchanged")
    entries = [
        key(kept, "decision kept", line=False),
        key(changed, "decision changed", line=False),
        same,
    ]
    legend_below(figure, entries)
    return figure


def _draw_closeness(ax: Axes, frames: Frames, method: str) -> None:
    """Write below the axis how close the scores are."""
    lines = rows(frames, "agreement", method=method)
    texts = [
        f"{PEOPLE.get(line.people, line.people)}: correlation {line.correlation:.2f}, "
        f"mean difference {line.mean_absolute_difference:.2f}"
        for line in lines.itertuples()
    ]
    ax.set_xlabel("\n".join([ax.get_xlabel(), *texts]))
