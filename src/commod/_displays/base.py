"""What all displays share: the axes of the last drawing, and checks of the update that is drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from commod._data.tables import check_same_rows
from commod.updates.base import check_update
from commod.updates.ratio import RatioUpdate

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure


class Display:
    """A picture that can be drawn again; it keeps the axes and the figure of the last drawing."""

    ax_: Axes
    figure_: Figure | SubFigure

    def _drawn_on(self, ax: Axes, *below: Axes) -> Self:
        """Keep the axes, and hide the frame of these and of others."""
        for panel in (ax, *below):
            panel.spines[["top", "right"]].set_visible(False)
        self.ax_, self.figure_ = ax, ax.figure
        return self


def axes_or_new(ax: Axes | None, width: float, height: float) -> Axes:
    """Return the axes given, or those of a new figure; sizes are in inches."""
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=(width, height), layout="constrained")[1]


def width_in_inches(ax: Axes) -> float:
    """Return the width of the axes in inches."""
    return float(ax.get_position().width * ax.figure.bbox.width / ax.figure.dpi)


def check_fitted_update(update: RatioUpdate, caller: str) -> None:
    """Refuse an object that is not an update, and an update that is not fitted."""
    check_update(update, caller, "For decisions and scores of any model use from_predictions.")
    check_is_fitted(update, "status_")


def group_argument(
    update: RatioUpdate, caller: str, X: Any, sensitive_features: Any, **columns: Any
) -> dict[str, Any]:
    """Check update and rows; return the groups as an argument for a method that decides by group.

    It is empty for an update that decides without them.
    """
    check_fitted_update(update, caller)
    check_same_rows({"X": X, **columns, "sensitive_features": sensitive_features})
    needs_groups = get_tags(update).needs_sensitive_features
    return {"sensitive_features": sensitive_features} if needs_groups else {}
