"""Draw how well scores agree with true labels, before and after an update."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from commod._data.labels import binary_outcome, check_length, read_labels, read_scores
from commod._data.tables import check_same_rows
from commod._displays._style import axes_or_new, check_fitted_update, group_argument
from commod._record import CalibrationBin
from commod._reporting.audit.scores import calibration_bins, calibration_error
from commod._text.drawing import AFTER, BEFORE, plain_text
from commod.exceptions import InputError
from commod.updates.ratio import RatioUpdate

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

N_BARS = 20  # of the histogram


@dataclass(frozen=True)
class Reliability:
    """Scores and observed shares, in bins with about the same number of people.

    `bins` are those of an audit. `people` counts everybody in steps of equal width, for the
    histogram.

    Examples
    --------
    >>> import numpy as np
    >>> curve = Reliability.of(np.array([True, False, True]), np.array([0.1, 0.1, 0.9]))
    >>> [(part.n, part.observed.value) for part in curve.bins], round(curve.error, 3)
    ([(2, 0.5), (1, 1.0)], 0.3)
    """

    bins: tuple[CalibrationBin, ...]
    people: tuple[int, ...]

    @classmethod
    def of(
        cls, is_positive: NDArray[np.bool_], scores: NDArray[np.float64], level: float = 0.95
    ) -> Reliability:
        """Return the bins of people; `is_positive` (n,) are true labels, `level` of intervals."""
        counts, _ = np.histogram(scores, N_BARS, (0.0, 1.0))
        return cls(calibration_bins(scores, is_positive, level), tuple(counts.tolist()))

    @property
    def error(self) -> float:
        """Return the mean distance between score and share, weighted by people, in [0, 1]."""
        return calibration_error(self.bins)


class CalibrationDisplay:
    """The share of positive true labels at each score, before and after an update.

    Parameters
    ----------
    before, after : Reliability
        The base model's scores and the edited ones, in bins of about the same number of people.
    calibrated : Reliability, default=None
        The edited scores as calibrated probabilities, if they are to be drawn.
    pos_label : label
        The positive label.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The curves.
    histogram_ax_ : matplotlib Axes
        The numbers of people, below the curves.
    figure_ : matplotlib Figure

    Notes
    -----
    Bins and error are those of `commod.audit`. Vertical lines are Wilson intervals. Edited scores
    order decisions; they are not calibrated probabilities. Most updates move away from the diagonal
    where they change decisions. This display shows by how much, and what `calibrated_proba` does
    about it.

    Examples
    --------
    >>> from commod import CalibrationDisplay
    >>> display = CalibrationDisplay.from_predictions(
    ...     [0, 1, 0, 1], [0.1, 0.9, 0.2, 0.8], [0.1, 0.9, 0.6, 0.8]
    ... )
    >>> round(display.before.error, 3), round(display.after.error, 3)
    (0.15, 0.25)
    >>> import matplotlib.pyplot as plt
    >>> plt.close(display.figure_)
    """

    ax_: Axes
    histogram_ax_: Axes
    figure_: Figure | SubFigure

    def __init__(
        self,
        *,
        before: Reliability,
        after: Reliability,
        calibrated: Reliability | None = None,
        pos_label: Any = 1,
    ) -> None:
        self.before, self.after, self.calibrated = before, after, calibrated
        self.pos_label = pos_label

    @classmethod
    def from_estimator(
        cls,
        update: RatioUpdate,
        X: Any,
        y: Any,
        *,
        level: float = 0.95,
        sensitive_features: Any = None,
        calibrated: bool = False,
        ax: Axes | None = None,
    ) -> Self:
        """Draw the scores of a fitted update and of its base model; return the display.

        Parameters
        ----------
        update : fitted update
            ControlledDebiaser, COMMOD or one of commod.rivals.
        X : table of shape (n, n_features)
        y : array-like of shape (n,)
            True labels.
        level : float, default=0.95
            Confidence level of the intervals.
        sensitive_features : array-like, default=None
            The group of each row, for methods that decide by group.
        calibrated : bool, default=False
            Whether to draw `update.calibrated_proba`, too. A rival has no such method.
        ax : matplotlib Axes, default=None
            A new figure if None.
        """
        check_fitted_update(update, "CalibrationDisplay.from_estimator")
        check_same_rows({"X": X, "y": y, "sensitive_features": sensitive_features})
        proba = update.predict_proba(X, **group_argument(update, sensitive_features))
        column = int(np.flatnonzero(update.classes_ == update.pos_label_)[0])
        return cls.from_predictions(
            y,
            update.read_base(X).for_positive.scores,
            proba[:, column],
            update.calibrated_proba(X)[:, column] if calibrated else None,
            pos_label=update.pos_label_,
            level=level,
            ax=ax,
        )

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        scores_before: Any,
        scores_after: Any,
        scores_calibrated: Any = None,
        *,
        pos_label: Any = 1,
        level: float = 0.95,
        ax: Axes | None = None,
    ) -> Self:
        """Draw two or three columns of scores; return the display.

        Parameters
        ----------
        y_true : array-like of shape (n,)
            True labels.
        scores_before, scores_after : array-like of shape (n,)
            Scores in [0, 1] for `pos_label`.
        scores_calibrated : array-like of shape (n,), default=None
            The edited scores as calibrated probabilities.
        pos_label : label, default=1
        level : float, default=0.95
            Confidence level of the intervals.
        ax : matplotlib Axes, default=None
            A new figure if None.
        """
        if not isinstance(level, float | np.floating) or not 0 < level < 1:
            raise InputError(
                f"level={level!r} must be a number between 0 and 1, such as 0.95.",
                parameter="level",
            )
        columns = {
            "scores_before": scores_before,
            "scores_after": scores_after,
            "scores_calibrated": scores_calibrated,
        }
        check_same_rows({"y_true": y_true, **columns})
        is_positive = binary_outcome(read_labels(y_true, "y_true"), "y_true", pos_label)
        if scores_calibrated is None:
            del columns["scores_calibrated"]
        curves = {}
        for name, given in columns.items():
            scores = read_scores(given, name)
            check_length(scores, name, len(is_positive))
            curve = Reliability.of(is_positive, scores, float(level))
            curves[name.removeprefix("scores_")] = curve
        return cls(**curves, pos_label=pos_label).plot(ax)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw the curves with their intervals, and the number of people at each score below.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            A new figure if None. The histogram takes a part of their space.

        Returns
        -------
        self
        """
        ax = axes_or_new(ax, 5.5, 5.8)
        below = _axes_below(ax)
        ax.plot([0, 1], [0, 1], color="black", lw=0.8, ls=":", label="perfect calibration")
        edges = np.linspace(0, 1, N_BARS + 1)
        curves: list[tuple[str, Reliability, dict[str, Any]]] = [
            ("before", self.before, {"color": BEFORE, "marker": "s", "ls": "--"}),
            ("after", self.after, {"color": AFTER, "marker": "o", "ls": "-"}),
        ]
        if self.calibrated is not None:
            curves.append(
                ("calibrated", self.calibrated, {"color": "black", "marker": "D", "ls": "-."})
            )
        for name, curve, style in curves:
            label = f"{name}: {curve.error:.1%} off on average"
            scores, shares, low, high = _points(curve.bins)
            ax.plot(scores, shares, label=label, **style)
            ax.vlines(scores, low, high, colors=style["color"], lw=1.2, alpha=0.6)
            below.stairs(curve.people, edges, color=style["color"], ls=style["ls"], lw=1.8)
        self._label(ax, below)
        self.ax_, self.histogram_ax_, self.figure_ = ax, below, ax.figure
        return self

    def _label(self, ax: Axes, below: Axes) -> None:
        label = plain_text(self.pos_label, 24)
        ax.set_title("Scores against true labels")
        ax.set_ylabel(f"share whose true label is {label}\n(closer to the dotted line is better)")
        ax.set_xlim(-0.02, 1.02)
        ax.set_ylim(-0.02, 1.02)
        ax.yaxis.set_major_formatter("{x:.0%}")
        ax.tick_params(axis="x", labelbottom=False)
        ax.legend(frameon=False, loc="upper left")
        below.set_xlabel(f"score for label {label}")
        below.set_ylabel("people")
        for panel in (ax, below):
            panel.spines[["top", "right"]].set_visible(False)


def _points(bins: tuple[CalibrationBin, ...]) -> NDArray[np.float64]:
    """Return mean score, share and the ends of its interval, shape (4, n_bins)."""
    points = [(b.mean_score, b.observed.value, b.observed.low, b.observed.high) for b in bins]
    return np.array(points, dtype=np.float64).T


def _axes_below(ax: Axes) -> Axes:
    """Return new axes that take the lower part of the space of the given ones."""
    spec = ax.get_subplotspec()
    if spec is None:  # axes that were not made by subplots
        return ax.inset_axes((0.0, -0.45, 1.0, 0.3), sharex=ax)
    cells = spec.subgridspec(2, 1, height_ratios=(3, 1))
    ax.set_subplotspec(cells[0])
    return ax.figure.add_subplot(cells[1], sharex=ax)
