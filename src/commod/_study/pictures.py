"""Draw the parts of studies: updates as dots, methods as lines, columns as bars."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from commod._data.arrays import Floats
from commod._text import shorten
from commod.metrics._constraint import Constraint

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

BEFORE, AFTER, LOSS = "#9aa5b1", "#1f6f8b", "#c44536"
MOST_COLUMNS = 15  # whose use a picture shows
OWN_METHODS = ("COMMOD", "ControlledDebiaser")  # drawn thicker: the reader looks for them
COLOR_LABELS = {
    "outscoring": "pairs in which the one who gains\noutscores one who stays rejected",
    "outscoring_losses": "pairs in which the one who loses\nscores below one who does not",
    "accuracy": "accuracy",
}


def bar_style(color: str, hatch: str, edge: str = "white") -> dict[str, Any]:
    """Return the style of bars that a hatch tells apart without colours."""
    return {"color": color, "hatch": hatch, "edgecolor": edge, "linewidth": 0}


LOSS_STYLE = bar_style(LOSS, "///")


def plain_text(name: object, most: int = 32) -> str:
    r"""Return a name on one line, shortened, that matplotlib does not read as a formula.

    Examples
    --------
    >>> print(plain_text("income in $ or $$"))
    income in \$ or \$\$
    >>> plain_text("a long name of a column", most=10)
    'a long na…'
    """
    return shorten(name, most).replace("$", r"\$")


def default_color(frame: pd.DataFrame) -> str | None:
    """Return the column for the colour of dots; None if no column has a value.

    It is that of gains or of losses, whichever are more, and else the accuracy.
    """
    mostly_gains = frame["n_gains"].sum() >= frame["n_losses"].sum()
    names = "outscoring" if mostly_gains else "outscoring_losses", "accuracy"
    return next((name for name in names if frame[name].notna().any()), None)


def efficient_expectations(
    frame: pd.DataFrame, constraint: Constraint
) -> tuple[list[float], list[float]] | None:
    """Return expected fairness and expected changes of the efficient updates, least fair first.

    An update is efficient if no other one is expected to be as fair with fewer changes. None if
    nothing is expected.
    """
    known = frame.dropna(subset=["expected_fairness", "expected_change_rate"])
    if known.empty:
        return None
    ordered = known.sort_values("expected_fairness", ascending=not constraint.higher_is_fairer)
    is_cheapest = ordered["expected_change_rate"] <= ordered["expected_change_rate"].cummin()
    efficient = ordered[is_cheapest].iloc[::-1]
    return efficient["expected_fairness"].tolist(), efficient["expected_change_rate"].tolist()


def draw_dots(frame: pd.DataFrame, color: str | None, ax: Axes) -> None:
    """Draw one dot per update, and a colour bar where the colour means something."""
    is_known = frame["fairness"].notna() if color is None else frame[color].notna()
    known, unknown = frame[is_known], frame[~is_known]
    if len(unknown):
        ax.scatter(
            unknown["fairness"], unknown["change_rate"], s=22, facecolors="none", edgecolors="grey"
        )
    if color is None:
        ax.scatter(known["fairness"], known["change_rate"], c="tab:blue", s=22, label="updates")
        return
    is_share = color != "accuracy"
    dots = ax.scatter(
        known["fairness"],
        known["change_rate"],
        c=known[color],
        # a share of pairs has a middle, chance; the edge keeps pale dots visible
        cmap="RdYlBu" if is_share else "viridis",
        vmin=0 if is_share else None,
        vmax=1 if is_share else None,
        edgecolors="dimgrey" if is_share else "none",
        linewidths=0.5,
        s=26,
        label="updates",
    )
    bar = ax.figure.colorbar(dots, ax=ax, label=COLOR_LABELS[color])
    if is_share:
        bar.ax.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
        bar.ax.axhline(0.5, color="black", lw=1)


def zoom(grid: Any, base_fairness: float, ideal: float) -> None:
    """Show the values between the base model and parity, and cut off less fair updates."""
    if np.isnan(base_fairness) or base_fairness == ideal:
        return
    edge = 0.04 * (ideal - base_fairness)  # negative for a disparity: fairer is to the right
    grid[0, 0].set_xlim(base_fairness - edge, ideal + edge)
    for row in grid:
        lines = [np.asarray(line.get_ydata(), dtype=float) for ax in row for line in ax.lines]
        values = np.concatenate(lines)
        values = values[np.isfinite(values)]
        if len(values):
            margin = 0.05 * (np.ptp(values) or 1.0)
            row[0].set_ylim(values.min() - margin, values.max() + margin)


def draw_method(
    top: Axes,
    bottom: Axes,
    name: str,
    lines: pd.DataFrame,
    style: dict[str, Any],
    is_floor: bool,
) -> None:
    """Draw a method's updates as dots, and a line through those that no other one beats."""
    n_collapsed = int(lines["collapsed"].sum())
    label = f"{name} ({n_collapsed} collapsed)" if n_collapsed else name
    lines = lines[~lines["collapsed"]]
    fairness = lines["fairness"].to_numpy()
    for ax, column, sign in ((top, "change_rate", 1.0), (bottom, "accuracy", -1.0)):
        values = lines[column].to_numpy()
        ax.scatter(fairness, values, color=style["color"], s=9, alpha=0.35, lw=0)
        order = unbeaten(fairness if is_floor else -fairness, sign * values)
        marker: dict[str, Any] = {"marker": "o", "ms": 5} if len(order) == 1 else {}
        width = 2.4 if name in OWN_METHODS else 1.3
        # the space makes matplotlib show a name that begins with an underscore
        ax.plot(fairness[order], values[order], label=f" {label}", lw=width, **style, **marker)


def unbeaten(fairness: Floats, cost: Floats) -> NDArray[np.intp]:
    """Return the positions of points that no fairer point undercuts, fairest first.

    Examples
    --------
    >>> unbeaten(np.array([0.5, 0.9, 0.7]), np.array([0.1, 0.2, 0.3]))
    array([1, 0])
    """
    order = np.lexsort((cost, -fairness))
    lowest = np.minimum.accumulate(cost[order])
    is_new = np.diff(lowest, prepend=np.inf) < 0
    return np.asarray(order[is_new])


def draw_columns(ax: Axes, columns: pd.DataFrame) -> None:
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
            style = bar_style(colour, hatch, edge)
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
