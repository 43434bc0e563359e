"""Draw decisions and scores of any two models: who gains and loses, and how well scores agree."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from commod._data.groups import read_groups
from commod._data.labels import binary_outcome, check_length, read_labels, read_scores
from commod._data.tables import check_same_rows
from commod._displays.base import Display, axes_or_new, group_argument, width_in_inches
from commod._record.audit import CalibrationBin
from commod._reporting.audit.scores import calibration_bins, calibration_error
from commod._study.pictures import AFTER, BEFORE, LOSS_STYLE, plain_text
from commod.exceptions import InputError
from commod.metrics import count_changes
from commod.updates.ratio import RatioUpdate

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COUNT_WIDTH = 0.95  # inches that a count and its share take beside a bar
N_BARS = 20  # of the histogram


class ChangeDisplay(Display):
    """Gains and losses of the favourable outcome in each group, as counts and as shares.

    Parameters
    ----------
    by_group : mapping of label to (n, n_gains, n_losses)
        For each group, the numbers of people, of gains and of losses.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes of the last drawing.
    figure_ : matplotlib Figure

    Examples
    --------
    >>> from commod import ChangeDisplay
    >>> before, after = [0, 0, 1, 1], [1, 0, 1, 0]
    >>> display = ChangeDisplay.from_predictions(
    ...     before, after, sensitive_features=["a", "a", "b", "b"]
    ... )
    >>> display.by_group
    {'a': (2, 1, 0), 'b': (2, 0, 1)}
    >>> display.ax_.get_title()
    '2 of 4 decisions change: 1 gain, 1 loss'
    >>> import matplotlib.pyplot as plt
    >>> plt.close(display.figure_)
    """

    def __init__(self, *, by_group: Mapping[Any, tuple[int, int, int]]) -> None:
        self.by_group = by_group

    @classmethod
    def from_estimator(
        cls,
        update: RatioUpdate,
        X: Any,
        *,
        sensitive_features: Any,
        ax: Axes | None = None,
        max_groups: int = 20,
    ) -> Self:
        """Draw whom a fitted update changes among the rows of X; return the display.

        Parameters
        ----------
        update : fitted update
            ControlledDebiaser, COMMOD or one of commod.rivals.
        X : table of shape (n, n_features)
        sensitive_features : array-like of shape (n,) or (n, n_sensitive)
            The group of each row; several columns mean their intersections.
        ax : matplotlib Axes, default=None
            A new figure if None.
        max_groups : int, default=20
            As in `plot`.
        """
        groups = group_argument(update, "ChangeDisplay.from_estimator", X, sensitive_features)
        changes = update.changes(X, **groups)
        read_groups(sensitive_features, len(changes.gain))  # checks them before counting
        # a loss had the favourable outcome before, a gain has it after; others count as unchanged
        return cls.from_predictions(
            changes.loss.astype(int),
            changes.gain.astype(int),
            sensitive_features=sensitive_features,
            ax=ax,
            max_groups=max_groups,
        )

    @classmethod
    def from_predictions(
        cls,
        y_before: Any,
        y_after: Any,
        *,
        sensitive_features: Any,
        favorable_label: Any = 1,
        ax: Axes | None = None,
        max_groups: int = 20,
    ) -> Self:
        """Draw the changes between two sets of decisions; return the display.

        Parameters
        ----------
        y_before, y_after : array-like of shape (n,)
            Decisions with the same two labels.
        sensitive_features : array-like of shape (n,) or (n, n_sensitive)
            The group of each row; several columns mean their intersections.
        favorable_label : label, default=1
            The label that is good for the person.
        ax : matplotlib Axes, default=None
            A new figure if None.
        max_groups : int, default=20
            As in `plot`.
        """
        if sensitive_features is None:
            raise InputError("sensitive_features is missing. Pass the group of each row.")
        counts = count_changes(
            y_before,
            y_after,
            favorable_label=favorable_label,
            sensitive_features=sensitive_features,
        )
        return cls(by_group=counts.by_group).plot(ax, max_groups=max_groups)

    def plot(self, ax: Axes | None = None, *, max_groups: int = 20) -> Self:
        """Draw losses to the left and gains to the right, as shares of each group.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            A new figure if None; its height depends on the number of groups.
        max_groups : int, default=20
            Draw only this many groups, those with the most changes. The title says how many are
            left out.

        Returns
        -------
        self
        """
        ranked = sorted(self.by_group, key=lambda g: -sum(self.by_group[g][1:]))[:max_groups]
        shown = [group for group in self.by_group if group in set(ranked)]
        ax = axes_or_new(ax, 8.0, 1.7 + 0.5 * max(len(shown), 1))
        n, gains, losses = np.array([self.by_group[g] for g in shown]).reshape(-1, 3).T
        y = np.arange(len(shown))[::-1]
        bars = (
            (gains, 1, {"color": AFTER}, "gain the favourable outcome"),
            (losses, -1, LOSS_STYLE, "lose it"),
        )
        for counts, side, style, label in bars:
            ax.barh(y, side * counts / n, height=0.62, label=label, **style)
            for i in range(len(shown)):
                ax.annotate(
                    f"{counts[i]:,} ({counts[i] / n[i]:.1%})",
                    (side * counts[i] / n[i], y[i]),
                    xytext=(4 * side, 0),
                    textcoords="offset points",
                    ha="left" if side > 0 else "right",
                    va="center",
                    fontsize="small",
                )
        self._label(ax, shown, y)
        ax.spines["left"].set_visible(False)
        return self._drawn_on(ax)

    def _label(self, ax: Axes, shown: list[Any], y: Any) -> None:
        ax.axvline(0, color="black", linewidth=0.8)
        names = [f"{_name_of(g)}\n{self.by_group[g][0]:,} people" for g in shown]
        ax.set_yticks(y, names)
        totals = np.array(list(self.by_group.values())).reshape(-1, 3).sum(axis=0)
        n, gains, losses = totals.tolist()
        counts = f"{gains:,} gain{'s' * (gains != 1)}, {losses:,} loss{'es' * (losses != 1)}"
        title = f"{gains + losses:,} of {n:,} decisions change: {counts}"
        n_hidden = len(self.by_group) - len(shown)
        if n_hidden:
            title += f"\n({n_hidden} groups with fewer changes left out)"
        ax.set_title(title)
        ax.set_xlabel("share of the group: ← lose the favourable outcome | gain it →")
        widest = max((abs(v) for v in ax.dataLim.intervalx), default=0.0) or 0.01
        room = widest / (1 - 2 * COUNT_WIDTH / max(width_in_inches(ax), 3.0))
        ax.set_xlim(-room, room)
        ax.set_ylim(-0.6, len(shown) - 0.4)
        digits = 0 if widest > 0.05 else 1
        ax.xaxis.set_major_formatter(lambda value, _: f"{abs(value):.{digits}%}")
        ax.tick_params(axis="y", length=0)


def _name_of(group: Any) -> str:
    """Return the name of a group; an intersection joins the names of its parts."""
    if isinstance(group, tuple):
        return plain_text(" × ".join(map(str, group)), 40)
    return plain_text(group, 30)


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


class CalibrationDisplay(Display):
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

    histogram_ax_: Axes

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
        caller = "CalibrationDisplay.from_estimator"
        groups = group_argument(update, caller, X, sensitive_features, y=y)
        proba = update.predict_proba(X, **groups)
        column = int(np.flatnonzero(update.classes_ == update._pos_label)[0])
        return cls.from_predictions(
            y,
            update._read_base(X).for_positive.scores,
            proba[:, column],
            update.calibrated_proba(X)[:, column] if calibrated else None,
            pos_label=update._pos_label,
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
        given = {"before": scores_before, "after": scores_after, "calibrated": scores_calibrated}
        columns = {f"scores_{when}": scores for when, scores in given.items()}
        check_same_rows({"y_true": y_true, **columns})
        is_positive = binary_outcome(read_labels(y_true, "y_true"), "y_true", pos_label)
        curves = {}
        for when, values in given.items():
            if values is not None or when != "calibrated":
                scores = read_scores(values, f"scores_{when}")
                check_length(scores, f"scores_{when}", len(is_positive))
                curves[when] = Reliability.of(is_positive, scores, float(level))
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
        curves: tuple[tuple[str, Reliability | None, dict[str, Any]], ...] = (
            ("before", self.before, {"color": BEFORE, "marker": "s", "ls": "--"}),
            ("after", self.after, {"color": AFTER, "marker": "o", "ls": "-"}),
            ("calibrated", self.calibrated, {"color": "black", "marker": "D", "ls": "-."}),
        )
        for name, curve, style in curves:
            if curve is not None:
                points = [(b.mean_score, *astuple(b.observed)) for b in curve.bins]
                scores, shares, low, high = np.array(points, dtype=np.float64).T
                ax.plot(scores, shares, label=f"{name}: {curve.error:.1%} off on average", **style)
                ax.vlines(scores, low, high, colors=style["color"], lw=1.2, alpha=0.6)
                below.stairs(curve.people, edges, color=style["color"], ls=style["ls"], lw=1.8)
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
        self.histogram_ax_ = below
        return self._drawn_on(ax, below)


def _axes_below(ax: Axes) -> Axes:
    """Return new axes that take the lower part of the space of the given ones."""
    spec = ax.get_subplotspec()
    if spec is None:  # axes that were not made by subplots
        return ax.inset_axes((0.0, -0.45, 1.0, 0.3), sharex=ax)
    cells = spec.subgridspec(2, 1, height_ratios=(3, 1))
    ax.set_subplotspec(cells[0])
    return ax.figure.add_subplot(cells[1], sharex=ax)
