"""The picture of a comparison: changes and accuracy against fairness, blind and aware methods."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from commod.metrics._constraint import get_constraint

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from commod._study.compare.comparison import Comparison

__all__ = ["draw_comparison"]

Floats = NDArray[np.float64]

TITLES = {False: "decide from X alone", True: "need the group to decide"}
OURS = ("COMMOD", "ControlledDebiaser")  # drawn thicker: the reader looks for them


def draw_comparison(comparison: Comparison) -> Figure:
    """Return a figure with two panels for each kind of method."""
    import matplotlib.pyplot as plt

    frame = comparison.frame()
    kinds = sorted(frame["needs_sensitive_features"].unique())
    figure, grid = plt.subplots(
        2,
        len(kinds),
        figsize=(1.5 + 5.5 * len(kinds), 8),
        sharex=True,
        sharey="row",
        squeeze=False,
        layout="constrained",
    )
    is_floor = get_constraint(comparison.constraints).higher_is_fairer
    for column, needs_group in enumerate(kinds):
        top, bottom = grid[:, column]
        of_kind = frame[frame["needs_sensitive_features"] == needs_group]
        for i, (name, lines) in enumerate(of_kind.groupby("method", sort=False)):
            colour, style = f"C{i % 10}", ("-", "--", ":")[i // 10 % 3]
            _draw_method(top, bottom, str(name), lines, colour, style, is_floor)
        levels, limits = comparison.limit_curve()
        top.plot(levels, limits, color="black", lw=1.4, label="fewest possible", zorder=3)
        for ax, value in ((top, 0.0), (bottom, comparison.base_accuracy)):
            ax.plot([comparison.base_fairness], [value], "x", color="black", ms=8, zorder=4)
        top.set_title(TITLES[bool(needs_group)])
        top.legend(frameon=False, fontsize=8, loc="upper left")
        bottom.set_xlabel(_x_label(comparison))
    _label_rows(grid, frame)
    _look_at_the_way_to_parity(grid, comparison, is_floor)
    return figure


def _look_at_the_way_to_parity(grid: Any, comparison: Comparison, is_floor: bool) -> None:
    """Show where updates are fairer than the base model; those that overshoot lie outside."""
    parity = 1.0 if is_floor else 0.0
    if np.isnan(comparison.base_fairness) or comparison.base_fairness == parity:
        return
    edge = 0.04 * (parity - comparison.base_fairness)  # fairer to the right, as for the P-rule
    grid[0, 0].set_xlim(comparison.base_fairness - edge, parity + edge)
    for row in grid:
        lines = [np.asarray(line.get_ydata(), dtype=float) for ax in row for line in ax.lines]
        values = np.concatenate(lines)
        values = values[np.isfinite(values)]
        if len(values):
            room = 0.05 * (np.ptp(values) or 1.0)
            row[0].set_ylim(values.min() - room, values.max() + room)


def _draw_method(
    top: Axes,
    bottom: Axes,
    name: str,
    lines: pd.DataFrame,
    colour: str,
    style: str,
    is_floor: bool,
) -> None:
    """Draw a method's updates as dots, and the line that none of them beats."""
    n_collapsed = int(lines["collapsed"].sum())
    label = f"{name} ({n_collapsed} collapsed)" if n_collapsed else name
    known = lines[~lines["collapsed"]]
    fairness = known["fairness"].to_numpy()
    for ax, column, sign in ((top, "change_rate", 1.0), (bottom, "accuracy", -1.0)):
        values = known[column].to_numpy()
        ax.scatter(fairness, values, color=colour, s=9, alpha=0.35, lw=0)
        order = _unbeaten(fairness if is_floor else -fairness, sign * values)
        width = 2.4 if name in OURS else 1.3
        mark: dict[str, Any] = {"marker": "o", "ms": 5} if len(order) == 1 else {}
        # a name that begins with an underscore would not be shown
        shown: dict[str, Any] = {"label": f" {label}", "lw": width, "color": colour}
        ax.plot(fairness[order], values[order], style, **shown, **mark)


def _unbeaten(fairness: Floats, cost: Floats) -> NDArray[np.intp]:
    """Return the points that no fairer one undercuts, from the fairest on.

    Examples
    --------
    >>> _unbeaten(np.array([0.5, 0.9, 0.7]), np.array([0.1, 0.2, 0.3]))
    array([1, 0])
    """
    order = np.lexsort((cost, -fairness))
    lowest = np.minimum.accumulate(cost[order])
    is_new = np.diff(lowest, prepend=np.inf) < 0
    return np.asarray(order[is_new])


def _x_label(comparison: Comparison) -> str:
    first = next(iter(comparison.frontiers.values()))
    return f"{get_constraint(comparison.constraints).metric} on the {first.rows_word}"


def _label_rows(grid: Any, frame: pd.DataFrame) -> None:
    from matplotlib.ticker import PercentFormatter

    top, bottom = grid[:, 0]
    top.set_ylabel("share of decisions changed")
    top.yaxis.set_major_formatter(PercentFormatter(1.0))
    bottom.set_ylabel("accuracy")
    if frame["accuracy"].isna().all():
        bottom.text(0.5, 0.5, "true labels not known", ha="center", transform=bottom.transAxes)
