"""What all displays share: axes, and what updates need to be drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from commod._data.columns import read_columns
from commod.exceptions import InputError
from commod.updates.base import BaseUpdate

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "axes_or_new",
    "base_scores_of",
    "check_update",
    "given_groups",
    "width_of",
]


def axes_or_new(ax: Axes | None, width: float, height: float) -> Axes:
    """Return the axes given, or those of a new figure."""
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:  # pragma: no cover - matplotlib is installed with commod
        raise ImportError("Displays draw with matplotlib: pip install matplotlib") from error
    return plt.subplots(figsize=(width, height), layout="constrained")[1]


def width_of(ax: Axes) -> float:
    """Return the width of the axes in inches."""
    return float(ax.get_position().width * ax.figure.bbox.width / ax.figure.dpi)


def check_update(update: Any, name: str) -> None:
    """Refuse what is no update, and one that is not fitted."""
    if not isinstance(update, BaseUpdate):
        raise InputError(
            f"{name} takes a fitted ControlledDebiaser, COMMOD or one of commod.rivals; got "
            f"{type(update).__name__}. For decisions and scores of any model use from_predictions."
        )
    check_is_fitted(update, "status_")


def given_groups(update: Any, sensitive_features: Any) -> dict[str, Any]:
    """Return the groups as an argument, for methods that decide by them."""
    needs = get_tags(update).needs_sensitive_features
    return {"sensitive_features": sensitive_features} if needs else {}


def base_scores_of(update: Any, X: Any) -> NDArray[np.float64]:
    """Return the base model's score of each row, shape (n,)."""
    scores = update._base(X, read_columns(X, skip=update._unread())).scores
    return np.asarray(scores, dtype=np.float64)
