"""Draw a frontier: share of changed decisions against fairness, beside the exact limit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from commod.metrics._constraint import Constraint

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


def draw_frontier(
    frame: pd.DataFrame,
    limit_curve: tuple[Sequence[float], Sequence[float]],
    *,
    base_fairness: float,
    constraint: Constraint,
    metric: str,
    rows_text: str,
    ax: Axes | None = None,
) -> Axes:
    """Draw the updates of `frame` and the limit into `ax`, or into a new figure; return the axes.

    `limit_curve` holds values of fairness and the fewest changes for each. `rows_text` names the
    rows that were measured.
    """
    import matplotlib.pyplot as plt

    if ax is None:
        _, ax = plt.subplots(figsize=(7, 4.5), layout="constrained")
    has_accuracy = not frame["accuracy"].isna().all()
    dots = ax.scatter(
        frame["fairness"],
        frame["change_rate"],
        c=frame["accuracy"] if has_accuracy else "tab:blue",
        cmap="viridis" if has_accuracy else None,
        s=22,
        label="updates",
    )
    ax.plot(*limit_curve, color="black", lw=1.2, label="fewest possible changes")
    ax.plot([base_fairness], [0], "x", color="tab:red", label="base model")
    if has_accuracy:
        ax.figure.colorbar(dots, ax=ax, label="accuracy")
    ax.set_xlabel(f"{metric} on the {rows_text}")
    ax.set_ylabel("share of decisions changed")
    ax.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    if not constraint.higher_is_fairer:
        ax.invert_xaxis()  # fairer is to the right for every constraint
    ax.legend(frameon=False)
    return ax
