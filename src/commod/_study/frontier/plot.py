"""Draw a frontier: share of changed decisions against fairness, beside the exact limit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from commod.metrics._constraint import Constraint

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

COLOR_LABELS = {
    "outscoring": "pairs in which the one who gains\noutscores one who stays rejected",
    "outscoring_losses": "pairs in which the one who loses\nscores below one who does not",
    "accuracy": "accuracy",
}

BLIND_LABEL = "fewest without the group"


def default_color(frame: pd.DataFrame) -> str | None:
    """Return the column for the colour of dots; None if no column has a value.

    It is that of gains or of losses, whichever are more, and else the accuracy.
    """
    mostly_gains = frame["n_gains"].sum() >= frame["n_losses"].sum()
    names = "outscoring" if mostly_gains else "outscoring_losses", "accuracy"
    return next((name for name in names if frame[name].notna().any()), None)


def draw_frontier(
    frame: pd.DataFrame,
    limit_curve: tuple[Sequence[float], Sequence[float]],
    *,
    base_fairness: float,
    constraint: Constraint,
    metric: str,
    rows_text: str,
    color: str | None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the updates of `frame` and the limit into `ax`, or into a new figure; return the axes.

    Dots are measured on rows. A dashed line shows what is expected on new people, where known, and
    another one the estimated blind limits with their intervals, where they were requested.

    `limit_curve` holds values of fairness and the fewest changes for each. `rows_text` names the
    rows that were measured. `color` is the column that the colour of the dots shows.
    """
    import matplotlib.pyplot as plt

    if ax is None:
        _, ax = plt.subplots(figsize=(7, 4.5), layout="constrained")
    _draw_dots(frame, color, ax)
    if (expected := efficient_expectations(frame, constraint)) is not None:
        label = "expected on new people"
        ax.plot(*expected, color="tab:orange", lw=1.5, ls="--", label=label)
    ax.plot(*limit_curve, color="black", lw=1.2, label="fewest possible changes")
    if "blind_limit" in frame:
        _draw_blind_limits(frame.dropna(subset="blind_limit").sort_values("fairness"), ax)
    ax.plot([base_fairness], [0], "x", color="tab:red", label="base model")
    ax.set_xlabel(f"{metric} on the {rows_text}")
    ax.set_ylabel("share of decisions changed")
    ax.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    if not constraint.higher_is_fairer:
        ax.invert_xaxis()  # fairer is to the right for every constraint
    ax.legend(frameon=False)
    return ax


def _draw_blind_limits(frame: pd.DataFrame, ax: Axes) -> None:
    """Draw the blind limits of the updates that have one, and their intervals."""
    x, label = frame["fairness"], f"{BLIND_LABEL} (estimate)"
    ax.vlines(x, frame["blind_limit_low"], frame["blind_limit_high"], color="grey", lw=1)
    ax.plot(x, frame["blind_limit"], color="black", lw=1.2, ls="--", marker="s", ms=4, label=label)


def efficient_expectations(
    frame: pd.DataFrame, constraint: Constraint
) -> tuple[list[float], list[float]] | None:
    """Return expected fairness and expected changes of the efficient updates, least fair first.

    An update is efficient if no other one is expected to be as fair with fewer changes. None where
    nothing is expected.
    """
    known = frame.dropna(subset=["expected_fairness", "expected_change_rate"])
    if known.empty:
        return None
    ordered = known.sort_values("expected_fairness", ascending=not constraint.higher_is_fairer)
    is_cheapest = ordered["expected_change_rate"] <= ordered["expected_change_rate"].cummin()
    efficient = ordered[is_cheapest].iloc[::-1]
    return efficient["expected_fairness"].tolist(), efficient["expected_change_rate"].tolist()


def _draw_dots(frame: pd.DataFrame, color: str | None, ax: Axes) -> None:
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
