"""Scores against what happened, before and after."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from commod._displays._style import axes_or_new, base_scores_of, check_update, given_groups
from commod._drawing import AFTER, BEFORE, plain_text
from commod._inputs import binary_outcome, check_length, read_labels
from commod.exceptions import InputError
from commod.metrics._scores import _read_scores

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

__all__ = ["CalibrationDisplay", "Reliability"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Reliability:
    """People in equal steps of their score: mean score, share that happened, how many; (n_bins,).

    Both are NaN where a step has nobody.

    Examples
    --------
    >>> import numpy as np
    >>> curve = Reliability.of(np.array([True, False, True]), np.array([0.1, 0.2, 0.9]), n_bins=2)
    >>> curve.observed, curve.n, round(curve.error, 3)
    (array([0.5, 1. ]), array([2, 1]), 0.267)
    """

    mean_score: Floats
    observed: Floats
    n: NDArray[np.intp]

    @classmethod
    def of(cls, happened: NDArray[np.bool_], scores: Floats, n_bins: int) -> Reliability:
        """Sort people into `n_bins` equal steps of their score."""
        step = np.minimum((scores * n_bins).astype(np.intp), n_bins - 1)
        n = np.bincount(step, minlength=n_bins)
        with np.errstate(invalid="ignore"):
            mean_score = np.bincount(step, scores, minlength=n_bins) / n
            observed = np.bincount(step, happened, minlength=n_bins) / n
        return cls(mean_score, observed, n)

    @property
    def error(self) -> float:
        """Return the mean distance of score and share, weighted by people, in [0, 1]."""
        there = self.n > 0
        gaps = np.abs(self.mean_score - self.observed)[there]
        return float(np.average(gaps, weights=self.n[there]))


class CalibrationDisplay:
    """How often the positive label comes true at each score, before and after an update.

    Parameters
    ----------
    before, after : Reliability
        The base model's scores and the edited ones, in the same steps.
    pos_label : label
        The label that scores are about.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The curves; `histogram_ax_` has the numbers of people.
    figure_ : matplotlib Figure

    Notes
    -----
    Edited scores order decisions and are no calibrated probabilities: most updates move away from
    the diagonal where they change decisions. This picture says by how much.

    Examples
    --------
    >>> from commod import CalibrationDisplay
    >>> display = CalibrationDisplay.from_predictions(
    ...     [0, 1, 0, 1], [0.1, 0.9, 0.2, 0.8], [0.1, 0.9, 0.6, 0.8], n_bins=5
    ... )
    >>> round(display.before.error, 3), round(display.after.error, 3)
    (0.15, 0.25)
    >>> import matplotlib.pyplot as plt
    >>> plt.close(display.figure_)
    """

    ax_: Axes
    histogram_ax_: Axes
    figure_: Figure | SubFigure

    def __init__(self, *, before: Reliability, after: Reliability, pos_label: Any = 1) -> None:
        self.before = before
        self.after = after
        self.pos_label = pos_label

    @classmethod
    def from_estimator(
        cls,
        update: Any,
        X: Any,
        y: Any,
        *,
        n_bins: int = 10,
        sensitive_features: Any = None,
        ax: Axes | None = None,
    ) -> Self:
        """Return the picture of a fitted update's scores beside its base model's.

        Parameters
        ----------
        update : fitted update
            ControlledDebiaser, COMMOD or one of commod.rivals.
        X : table of shape (n, n_features)
        y : array-like of shape (n,)
            True labels.
        n_bins : int, default=10
            Equal steps of the score.
        sensitive_features : array-like, default=None
            For methods that decide by group.
        ax : matplotlib Axes, default=None
            A new figure if None.
        """
        check_update(update, "CalibrationDisplay.from_estimator")
        proba = update.predict_proba(X, **given_groups(update, sensitive_features))
        column = int(np.flatnonzero(update.classes_ == update.pos_label_)[0])
        return cls.from_predictions(
            y,
            base_scores_of(update, X),
            proba[:, column],
            pos_label=update.pos_label_,
            n_bins=n_bins,
            ax=ax,
        )

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        scores_before: Any,
        scores_after: Any,
        *,
        pos_label: Any = 1,
        n_bins: int = 10,
        ax: Axes | None = None,
    ) -> Self:
        """Return the picture of two columns of scores.

        Parameters
        ----------
        y_true : array-like of shape (n,)
            True labels.
        scores_before, scores_after : array-like of shape (n,)
            Scores in [0, 1] for `pos_label`.
        pos_label : label, default=1
        n_bins : int, default=10
            Equal steps of the score.
        ax : matplotlib Axes, default=None
            A new figure if None.
        """
        if not isinstance(n_bins, int | np.integer) or isinstance(n_bins, bool) or n_bins < 1:
            raise InputError(f"n_bins={n_bins!r} must be a whole number of at least 1.")
        happened = binary_outcome(read_labels(y_true, "y_true"), "y_true", pos_label)
        curves = {}
        for name, given in (("scores_before", scores_before), ("scores_after", scores_after)):
            scores = _read_scores(given, name)
            check_length(scores, name, len(happened))
            curves[name[7:]] = Reliability.of(happened, scores, int(n_bins))
        return cls(**curves, pos_label=pos_label).plot(ax)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw the curves, and below them how many people have such scores.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            A new figure if None. Their place is shared with the histogram below.

        Returns
        -------
        self
        """
        ax = axes_or_new(ax, 5.5, 5.8)
        below = _axes_below(ax)
        ax.plot([0, 1], [0, 1], color="black", lw=0.8, ls=":", label="what scores promise")
        steps = np.linspace(0, 1, len(self.before.n) + 1)
        drawn: tuple[tuple[str, Reliability, dict[str, Any]], ...] = (
            ("before", self.before, {"color": BEFORE, "marker": "s", "ls": "--"}),
            ("after", self.after, {"color": AFTER, "marker": "o", "ls": "-"}),
        )
        for name, curve, style in drawn:
            there = curve.n > 0
            label = f"{name}: {curve.error:.1%} off on average"
            ax.plot(curve.mean_score[there], curve.observed[there], label=label, **style)
            below.stairs(curve.n, steps, color=style["color"], ls=style["ls"], lw=1.8)
        self._label(ax, below)
        self.ax_, self.histogram_ax_, self.figure_ = ax, below, ax.figure
        return self

    def _label(self, ax: Axes, below: Axes) -> None:
        label = plain_text(self.pos_label, 24)
        ax.set_title("Scores against what happened")
        ax.set_ylabel(f"share whose true label is {label}\n(closer to the dotted line is better)")
        ax.set_xlim(-0.02, 1.02)
        ax.set_ylim(-0.02, 1.02)
        ax.yaxis.set_major_formatter("{x:.0%}")
        ax.tick_params(axis="x", labelbottom=False)
        ax.legend(frameon=False, loc="upper left")
        below.set_xlabel(f"score for label {label}")
        below.set_ylabel("people")
        for each in (ax, below):
            each.spines[["top", "right"]].set_visible(False)


def _axes_below(ax: Axes) -> Axes:
    """Return new axes that take the lower part of the place of the given ones."""
    place = ax.get_subplotspec()
    if place is None:  # set by hand, not by subplots
        return ax.inset_axes((0.0, -0.45, 1.0, 0.3), sharex=ax)
    cells = place.subgridspec(2, 1, height_ratios=(3, 1))
    ax.set_subplotspec(cells[0])
    return ax.figure.add_subplot(cells[1], sharex=ax)
