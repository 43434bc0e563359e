"""Draw a comparison: changes and accuracy against fairness, with and without the group."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from commod.metrics._constraint import Constraint

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]

TITLES = {False: "decide without the group", True: "need the group to decide"}
OWN_METHODS = ("COMMOD", "ControlledDebiaser")  # drawn thicker: the reader looks for them


def draw_comparison(
    frame: pd.DataFrame,
    limit_curve: tuple[Floats, Floats],
    *,
    base: tuple[float, float],
    constraint: Constraint,
    metric: str,
    rows_word: str,
) -> Figure:
    """Return a figure with two panels for each kind of method.

    `frame` is that of a `Comparison`, `limit_curve` holds values of fairness and the fewest changes
    for each, `base` is the fairness and the accuracy of the base model.
    """
    import matplotlib.pyplot as plt

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
    base_fairness, base_accuracy = base
    for (top, bottom), needs_group in zip(grid.T, kinds, strict=True):
        of_kind = frame[frame["needs_sensitive_features"] == needs_group]
        for i, (name, lines) in enumerate(of_kind.groupby("method", sort=False)):
            style = {"color": f"C{i % 10}", "ls": ("-", "--", ":")[i // 10 % 3]}
            _draw_method(top, bottom, str(name), lines, style, constraint.higher_is_fairer)
        top.plot(*limit_curve, color="black", lw=1.4, label="fewest possible changes", zorder=3)
        for ax, value in ((top, 0.0), (bottom, base_accuracy)):
            ax.plot([base_fairness], [value], "x", color="black", ms=8, zorder=4)
        top.set_title(TITLES[bool(needs_group)])
        top.legend(frameon=False, fontsize=8, loc="upper left")
        bottom.set_xlabel(f"{metric} on the {rows_word}")
    _label_rows(grid, has_accuracy=not frame["accuracy"].isna().all())
    _explain_marks(figure)
    _zoom(grid, base_fairness, constraint.ideal)
    return figure


def _explain_marks(figure: Figure) -> None:
    """Say below the panels what a dot, a line and a cross are."""
    from matplotlib.lines import Line2D

    marks = [
        Line2D([], [], color="grey", marker="o", ms=4, alpha=0.5, ls="", label="one update"),
        Line2D([], [], color="grey", lw=1.3, label="updates that no other of its method beats"),
        Line2D([], [], color="black", marker="x", ms=8, ls="", label="base model"),
    ]
    figure.legend(handles=marks, loc="outside lower center", ncols=3, frameon=False, fontsize=8)


def _zoom(grid: Any, base_fairness: float, ideal: float) -> None:
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


def _draw_method(
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
        order = _unbeaten(fairness if is_floor else -fairness, sign * values)
        marker: dict[str, Any] = {"marker": "o", "ms": 5} if len(order) == 1 else {}
        width = 2.4 if name in OWN_METHODS else 1.3
        # the space makes matplotlib show a name that begins with an underscore
        ax.plot(fairness[order], values[order], label=f" {label}", lw=width, **style, **marker)


def _unbeaten(fairness: Floats, cost: Floats) -> NDArray[np.intp]:
    """Return the positions of points that no fairer point undercuts, fairest first.

    Examples
    --------
    >>> _unbeaten(np.array([0.5, 0.9, 0.7]), np.array([0.1, 0.2, 0.3]))
    array([1, 0])
    """
    order = np.lexsort((cost, -fairness))
    lowest = np.minimum.accumulate(cost[order])
    is_new = np.diff(lowest, prepend=np.inf) < 0
    return np.asarray(order[is_new])


def _label_rows(grid: Any, *, has_accuracy: bool) -> None:
    from matplotlib.ticker import PercentFormatter

    top, bottom = grid[:, 0]
    top.set_ylabel("share of decisions changed")
    top.yaxis.set_major_formatter(PercentFormatter(1.0))
    bottom.set_ylabel("accuracy")
    if not has_accuracy:
        bottom.text(0.5, 0.5, "true labels not known", ha="center", transform=bottom.transAxes)
