"""Draw who gains and who loses in each group."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from commod._data.groups import read_groups
from commod._data.tables import check_same_rows
from commod._displays._style import (
    axes_or_new,
    check_fitted_update,
    group_argument,
    width_in_inches,
)
from commod._text.drawing import AFTER, LOSS_STYLE, plain_text
from commod.exceptions import InputError
from commod.metrics import count_changes
from commod.updates.ratio import RatioUpdate

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

COUNT_WIDTH = 0.95  # inches that a count and its share take beside a bar


class ChangeDisplay:
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

    ax_: Axes
    figure_: Figure | SubFigure

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
        check_fitted_update(update, "ChangeDisplay.from_estimator")
        check_same_rows({"X": X, "sensitive_features": sensitive_features})
        changes = update.changes(X, **group_argument(update, sensitive_features))
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
        shown = self._most_changed(max_groups)
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
                _write_count(ax, side, y[i], int(counts[i]), int(n[i]))
        self._label(ax, shown, y)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _most_changed(self, max_groups: int) -> list[Any]:
        """Return the groups with the most changes, in the order of `by_group`."""
        ranked = sorted(self.by_group, key=lambda g: -sum(self.by_group[g][1:]))[:max_groups]
        return [group for group in self.by_group if group in set(ranked)]

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
        ax.spines[["top", "right", "left"]].set_visible(False)
        ax.tick_params(axis="y", length=0)


def _write_count(ax: Axes, side: int, y: float, count: int, n: int) -> None:
    """Write the exact count and its share beside the bar."""
    ax.annotate(
        f"{count:,} ({count / n:.1%})",
        (side * count / n, y),
        xytext=(4 * side, 0),
        textcoords="offset points",
        ha="left" if side > 0 else "right",
        va="center",
        fontsize="small",
    )


def _name_of(group: Any) -> str:
    """Return the name of a group; an intersection joins the names of its parts."""
    if isinstance(group, tuple):
        return plain_text(" × ".join(map(str, group)), 40)
    return plain_text(group, 30)
