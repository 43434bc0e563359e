"""Draw stability: how often people change, and how often scorecards use each column."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from commod._text.drawing import AFTER, BEFORE, LOSS_STYLE, plain_text

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_COLUMNS = 15


def draw_stability(
    people: pd.DataFrame,
    columns: pd.DataFrame,
    *,
    n_refits: int,
    agreement: float,
    rows_word: str,
    axes: Any = None,
) -> Figure:
    """Draw into the axes given, or into a new figure; return the figure.

    `people` and `columns` are the frames of a `Stability`: one line per person and per column.
    """
    import matplotlib.pyplot as plt

    if axes is None:
        n_bars = min(len(columns), MOST_COLUMNS)
        size = (11 if n_bars else 6.5, max(3.8, 1.6 + 0.27 * n_bars))
        _, axes = plt.subplots(1, 1 + bool(n_bars), figsize=size, layout="constrained")
    people_ax, *column_axes = np.ravel(axes).tolist()
    _draw_people(people_ax, people, n_refits, rows_word)
    people_ax.set_title(
        "Nobody's decision changes"
        if np.isnan(agreement)
        else f"Two refits share {agreement:.0%} of the people they change"
    )
    if column_axes:
        _draw_columns(column_axes[0], columns)
    return people_ax.figure


def _draw_people(ax: Axes, people: pd.DataFrame, n: int, rows_word: str) -> None:
    """Draw how many people change in how many of n refits; a person only gains or only loses."""
    times = np.rint(people["change_share"] * n).astype(np.intp)
    gains, losses = (
        np.bincount(times[people[name] > 0], minlength=n + 1)[1:]
        for name in ("gain_share", "loss_share")
    )
    x = np.arange(1, n + 1)
    ax.bar(x, gains, width=0.85, color=AFTER, label="gain the favourable outcome")
    ax.bar(x, losses, bottom=gains, width=0.85, label="lose it", **LOSS_STYLE)
    ax.set_xlabel(f"refits that change the person, of {n} ({n}: always)")
    ax.set_ylabel("people")
    note = f"{(times == 0).sum():,} of {len(people):,} {rows_word} never change"
    ax.legend(frameon=False, loc="upper center", title=note)
    ax.set_ylim(0, max(1, (gains + losses).max()) * 1.35)  # leaves space for the legend
    ax.set_xlim(0.3, n + 0.7)
    ax.spines[["top", "right"]].set_visible(False)
    ax.locator_params(integer=True)


def _draw_columns(ax: Axes, columns: pd.DataFrame) -> None:
    """Draw the share of scorecards that use each column, split by what larger values do."""
    shown = columns[:MOST_COLUMNS][::-1]
    y = np.arange(len(shown))
    is_evidence = columns["towards_favorable"].notna().any()
    ends = ("favourable", "unfavourable") if is_evidence else ("change", "keep")
    share = shown["share"].to_numpy()
    towards = shown["towards_favorable" if is_evidence else "towards_change"].to_numpy()
    is_category = np.isnan(towards)
    bars = (
        (f"larger values push to {ends[0]}", share * towards, AFTER, "", "white"),
        (f"larger values push to {ends[1]}", share * (1 - towards), BEFORE, "...", "white"),
        ("categories", np.where(is_category, share, 0.0), "#e4e7eb", "///", BEFORE),
    )
    left = np.zeros(len(shown))
    for label, lengths, colour, hatch, edge in bars:
        widths = np.nan_to_num(lengths)
        if widths.any():
            style: Any = {"color": colour, "hatch": hatch, "edgecolor": edge, "linewidth": 0}
            ax.barh(y, widths, left=left, height=0.75, label=label, **style)
            left += widths
    ax.set_yticks(y, [plain_text(name) for name in shown["column"]])
    n_more = len(columns) - len(shown)
    ax.set_title("Columns that refits use" + (f" ({n_more} rarer ones not shown)" * bool(n_more)))
    ax.set_xlabel("share of the refits whose scorecard uses the column")
    ax.set_xlim(0, 1)
    ax.xaxis.set_major_formatter("{x:.0%}")
    ax.spines[["top", "right"]].set_visible(False)
    if len(shown):
        ax.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=3)
