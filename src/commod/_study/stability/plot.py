"""The picture of stability: how often people change, and the columns that recur."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from commod._text.drawing import AFTER, BEFORE, LOSS_STYLE, plain_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from commod._study.stability.result import Stability

__all__ = ["draw_stability"]

MOST_COLUMNS = 15


def draw_stability(stability: Stability, ax: Any = None) -> Figure:
    """Draw into the axes given, or into a new figure; return the figure."""
    import matplotlib.pyplot as plt

    if ax is None:
        n_lines = min(len(stability.columns), MOST_COLUMNS)
        size = (11 if n_lines else 6.5, max(3.8, 1.6 + 0.27 * n_lines))
        _, axes = plt.subplots(1, 1 + bool(n_lines), figsize=size, layout="constrained")
    else:
        axes = ax
    people, *columns = np.ravel(axes).tolist()
    _draw_people(people, stability)
    if columns:
        _draw_columns(columns[0], stability)
    return people.figure


def _draw_people(ax: Axes, stability: Stability) -> None:
    """Draw how many people change how often; a person can only gain, or only lose."""
    times, n = stability.times_changed, stability.n_refits
    gains = np.bincount(times[stability.gain_share > 0], minlength=n + 1)[1:]
    losses = np.bincount(times[stability.loss_share > 0], minlength=n + 1)[1:]
    x = np.arange(1, n + 1)
    ax.bar(x, gains, width=0.85, color=AFTER, label="gain the favourable outcome")
    ax.bar(
        x,
        losses,
        bottom=gains,
        width=0.85,
        label="lose it",
        **LOSS_STYLE,
    )
    ax.set_title(_title(stability))
    ax.set_xlabel(f"refits that change the person, of {n} ({n}: always)")
    ax.set_ylabel("people")
    note = f"{stability.n_never:,} of {len(stability):,} {stability.rows_word} never change"
    ax.legend(frameon=False, loc="upper center", title=note)
    ax.set_ylim(0, max(1, (gains + losses).max()) * 1.35)  # room for the words
    ax.set_xlim(0.3, n + 0.7)
    ax.spines[["top", "right"]].set_visible(False)
    ax.locator_params(integer=True)


def _title(stability: Stability) -> str:
    if np.isnan(stability.agreement):
        return "Nobody's decision changes"
    return f"Two refits share {stability.agreement:.0%} of the people they change"


def _draw_columns(ax: Axes, stability: Stability) -> None:
    """Draw the share of scorecards that use each column, split by what larger values do."""
    shown = list(stability.columns.items())[:MOST_COLUMNS][::-1]
    y = np.arange(len(shown))
    share = np.array([use.share for _, use in shown])
    towards = np.array(
        [np.nan if use.towards_change is None else use.towards_change for _, use in shown]
    )
    parts = (
        ("larger values push to change", np.nan_to_num(share * towards), AFTER, "", "white"),
        (
            "larger values push to keep",
            np.nan_to_num(share * (1 - towards)),
            BEFORE,
            "...",
            "white",
        ),
        ("categories", np.where(np.isnan(towards), share, 0.0), "#e4e7eb", "///", BEFORE),
    )
    left = np.zeros(len(shown))
    for label, width, colour, hatch, edge in parts:
        if width.any():
            style: Any = {"color": colour, "hatch": hatch, "edgecolor": edge, "linewidth": 0}
            ax.barh(y, width, left=left, height=0.75, label=label, **style)
            left += width
    ax.set_yticks(y, [plain_text(name) for name, _ in shown])
    more = len(stability.columns) - len(shown)
    ax.set_title("Columns that recur" + (f" ({more} more are rarer)" if more else ""))
    ax.set_xlabel("share of the refits whose scorecard uses the column")
    ax.set_xlim(0, 1)
    ax.xaxis.set_major_formatter("{x:.0%}")
    ax.spines[["top", "right"]].set_visible(False)
    if shown:
        ax.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=3)
