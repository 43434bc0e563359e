"""Draw the trade-off between changes and fairness, with the exact limit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from commod._displays._style import axes_or_new
from commod._study.curve import Frontier
from commod._study.frontier import frontier
from commod.exceptions import InputError
from commod.updates.base import BaseUpdate

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure


class FrontierDisplay:
    """Share of changed decisions against fairness: many updates beside the fewest possible.

    Parameters
    ----------
    frontier : Frontier
        The result of `commod.frontier`.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes of the last drawing.
    figure_ : matplotlib Figure

    Examples
    --------
    >>> from commod import ControlledDebiaser
    >>> from commod import FrontierDisplay
    >>> from commod.datasets import make_biased
    >>> from sklearn.linear_model import LogisticRegression
    >>> data = make_biased(800, random_state=0)
    >>> model = LogisticRegression().fit(data.data, data.target)
    >>> display = FrontierDisplay.from_estimator(
    ...     ControlledDebiaser(model),
    ...     data.data,
    ...     data.target,
    ...     sensitive_features=data.sensitive_features,
    ...     targets=[0.7, 0.9],
    ... )
    >>> display.ax_.get_xlabel()
    'P-rule of label 1 on the 800 fit rows (fairer →)'
    >>> import matplotlib.pyplot as plt
    >>> plt.close(display.figure_)
    """

    ax_: Axes
    figure_: Figure | SubFigure

    def __init__(self, *, frontier: Frontier) -> None:
        self.frontier = frontier

    @classmethod
    def from_estimator(
        cls,
        update: BaseUpdate,
        X: Any,
        y: Any = None,
        *,
        sensitive_features: Any,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Compute the frontier of an update with `commod.frontier`, draw it, return the display.

        Parameters
        ----------
        update, X, y, sensitive_features
            As in `commod.frontier`.
        ax : matplotlib Axes, default=None
            A new figure if None.
        **kwargs
            Other arguments of `commod.frontier`, such as `targets`, `grid` and `X_eval`.
        """
        curve = frontier(update, X, y, sensitive_features=sensitive_features, **kwargs)
        return cls(frontier=curve).plot(ax)

    @classmethod
    def from_frontier(cls, frontier: Frontier, *, ax: Axes | None = None) -> Self:
        """Draw a frontier that was computed before; return the display.

        Parameters
        ----------
        frontier : Frontier
        ax : matplotlib Axes, default=None
            A new figure if None.
        """
        if not isinstance(frontier, Frontier):
            raise InputError(
                f"from_frontier takes what commod.frontier returns; got {type(frontier).__name__}. "
                "For an update use from_estimator."
            )
        return cls(frontier=frontier).plot(ax)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw changes against fairness, fairer to the right.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            A new figure if None.

        Returns
        -------
        self
        """
        ax = axes_or_new(ax, 7.5, 4.5)
        self.frontier.plot(ax)
        ax.set_xlabel(f"{ax.get_xlabel()} (fairer →)")
        ax.set_ylabel(f"{ax.get_ylabel()} (fewer is better ↓)")
        ax.spines[["top", "right"]].set_visible(False)
        self.ax_, self.figure_ = ax, ax.figure
        return self
