"""Updates along the trade-off, measured on one set of rows, and picking one of them."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from commod._data.codes import plain
from commod._record import Card, Segments, Step, TradeOff
from commod._study.evaluation import EvaluationRows
from commod.exceptions import InputError, TargetWarning
from commod.metrics._constraint import ConstraintLike, get_constraint
from commod.scorecard import Scorecard
from commod.updates.base import Decisions

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

__all__ = ["Fitted", "Frontier", "Made", "Point"]

MOST_STEPS = 20  # of a trade-off: as many as a slider can tell apart
FIGURES = (
    "target",
    "fairness",
    "accuracy",
    "change_rate",
    "n_changes",
    "n_gains",
    "n_losses",
    "limit",
)


class Made(Protocol):
    """How to make the fitted estimator of a point, or its scorecard alone."""

    def __call__(self) -> Any: ...
    def scorecard(self) -> Scorecard: ...


@dataclass(frozen=True)
class Point:
    """One update: what sets it apart, what it decides on the evaluated rows, how to fit it."""

    settings: dict[str, float]
    after: Decisions
    fitted: Made


Describe = Callable[[Point], tuple[Segments | None, Card | None]]


@dataclass(frozen=True)
class Fitted:
    """An update that is there already."""

    update: Any

    def __call__(self) -> Any:
        """Return a copy: who sets its parameters or refits it leaves the frontier as it is."""
        return copy.copy(self.update)

    def scorecard(self) -> Scorecard:
        """Return its points."""
        return self.update.scorecard_


class Frontier:
    """Updates along the trade-off, measured on one set of rows; made by `frontier`.

    Attributes
    ----------
    constraints : str
        What fairness means here.
    base_fairness, base_accuracy : float
        The base model's, on the same rows; accuracy is NaN without labels.
    rows_word : str
        "fit rows" or "evaluated rows": where the figures come from.
    fit_seconds : float
        How long it took to fit all updates.
    needs_sensitive_features, randomised : bool
        Whether the updates need the group to decide, and whether some draw lots; the figures of
        those that do are expected ones.

    Examples
    --------
    >>> from commod import ControlledDebiaser, frontier
    >>> from commod.datasets import make_biased
    >>> from sklearn.linear_model import LogisticRegression
    >>> data = make_biased(800, random_state=0)
    >>> model = LogisticRegression().fit(data.data, data.target)
    >>> curve = frontier(
    ...     ControlledDebiaser(model),
    ...     data.data,
    ...     data.target,
    ...     sensitive_features=data.sensitive_features,
    ...     targets=[0.7, 0.9],
    ... )
    >>> len(curve), list(curve.frame().columns[:5])
    (2, ['target', 'fairness', 'accuracy', 'change_rate', 'n_changes'])
    """

    def __init__(
        self,
        constraints: ConstraintLike,
        points: Sequence[Point],
        rows: EvaluationRows,
        limits: tuple[bool, bool],
        rows_word: str,
        *,
        fit_seconds: float = float("nan"),
        needs_sensitive_features: bool = False,
        method: str = "update",
        describe: Describe | None = None,
    ) -> None:
        self.constraints = constraints
        self.rows_word = rows_word
        self.fit_seconds = fit_seconds
        self.needs_sensitive_features = needs_sensitive_features
        self.randomised = any(point.after.dtype != np.bool_ for point in points)
        self._points = list(points)
        self._rows = rows
        self._may_raise, self._may_lower = limits
        self.base_fairness = rows.fairness(rows.before)
        self.base_accuracy = rows.accuracy(rows.before)
        self._figures = [self._measure(point) for point in self._points]
        self._method = method
        self._describe = describe

    def __len__(self) -> int:
        return len(self._points)

    def __getstate__(self) -> dict[str, Any]:
        self.trade_off()  # what it reads are people's values, which belong in no file
        return self.__dict__.copy()

    def __repr__(self) -> str:
        return (
            f"Frontier of {len(self)} updates, {get_constraint(self.constraints).metric} "
            f"{self.base_fairness:.3f} before, measured on {len(self._rows):,} "
            f"{self.rows_word}"
        )

    def frame(self) -> pd.DataFrame:
        """Return one line per update as a pandas frame.

        Columns: `target` (NaN where an update has none), `fairness`, `accuracy`, `change_rate`,
        `n_changes`, `n_gains`, `n_losses`, `limit` (fewest changes for the same fairness and
        direction with the sensitive attribute in hand, as a share), then what sets updates apart.
        """
        import pandas as pd

        return pd.DataFrame(self._figures)

    def trade_off(self) -> TradeOff:
        """Return the updates that no other one beats, each with its segments and its scorecard.

        No other update of the frontier is at least as fair with fewer changes, and none is less
        fair than the base model; they go from there towards parity, at most 20 of them. Segments
        are sought on the first call, or before the frontier is pickled, and kept instead of the
        columns they were sought in. They are None where lots are drawn, cards are None for updates
        without a scorecard, and both where `frontier` was told not to describe.
        """
        found = self._trade_off
        self._describe = None
        return found

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw changes against fairness, accuracy as colour, with the exact limit; return the axes.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; a new figure if None.
        """
        import matplotlib.pyplot as plt

        if ax is None:
            _, ax = plt.subplots(figsize=(7, 4.5), layout="constrained")
        frame = self.frame()
        known = not frame["accuracy"].isna().all()
        dots = ax.scatter(
            frame["fairness"],
            frame["change_rate"],
            c=frame["accuracy"] if known else "tab:blue",
            cmap="viridis" if known else None,
            s=22,
            label="updates",
        )
        curve = self._limit_curve(frame["fairness"].dropna())
        ax.plot(*curve, color="black", lw=1.2, label="fewest possible")
        ax.plot([self.base_fairness], [0], "x", color="tab:red", label="base model")
        if known:
            ax.figure.colorbar(dots, ax=ax, label="accuracy")
        metric = get_constraint(self.constraints).metric
        ax.set_xlabel(f"{metric} on the {len(self._rows):,} {self.rows_word}")
        ax.set_ylabel("share of decisions changed")
        ax.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
        if not get_constraint(self.constraints).higher_is_fairer:
            ax.invert_xaxis()  # fairer to the right, as for the P-rule
        ax.legend(frameon=False)
        return ax

    def select(self, *, target: float | None = None, max_changes: float | None = None) -> Any:
        """Return the fitted update with the fewest changes that reaches `target`.

        Parameters
        ----------
        target : float, default=None
            Floor on the P-rule or ceiling on the disparity, on the rows of the frontier.
        max_changes : float, default=None
            Most changes, as a share; without a target, the fairest update within it.

        Returns
        -------
        update
            Where none reaches both, the fairest within `max_changes` (or of all), with a warning
            that says so. Chosen on the rows of the frontier: measure it on others. It is yours to
            change: the frontier keeps its own.
        """
        if target is None and max_changes is None:
            raise InputError("select needs target=, max_changes= or both.")
        frame = self.frame()
        sign = 1.0 if get_constraint(self.constraints).higher_is_fairer else -1.0
        value = (sign * frame["fairness"]).fillna(-np.inf).to_numpy()
        changes = frame["change_rate"].to_numpy()
        within = changes <= (np.inf if max_changes is None else max_changes)
        if not within.any():
            raise InputError(
                f"No update of this frontier changes at most {max_changes:.1%}; the fewest is "
                f"{changes.min():.1%}. Add looser targets."
            )
        if target is not None and (within & (value >= sign * target)).any():
            candidates = np.flatnonzero(within & (value >= sign * target))
            return self._points[candidates[np.argmin(changes[candidates])]].fitted()
        metric = get_constraint(self.constraints).metric
        if value[within].max() == -np.inf:
            raise InputError(
                f"No update of this frontier has a defined {metric}: nobody "
                "is decided positively, or a group has no row with the label it is measured on."
            )
        candidates = np.flatnonzero(within & (value >= value[within].max()))
        best = int(candidates[np.argmin(changes[candidates])])
        if target is not None:
            warnings.warn(
                f"No update reaches {metric} {target:g} on the "
                f"{self.rows_word}; the closest, {frame['fairness'][best]:.3f} with "
                f"{changes[best]:.1%} changed, was taken.",
                TargetWarning,
                stacklevel=2,
            )
        return self._points[best].fitted()

    # -- figures ----------------------------------------------------------------------------------

    def _measure(self, point: Point) -> dict[str, float]:
        settings = dict(point.settings)
        figures = self._rows.measure(
            point.after, may_raise=self._may_raise, may_lower=self._may_lower
        )
        return {"target": settings.pop("target", float("nan")), **figures, **settings}

    @cached_property
    def _trade_off(self) -> TradeOff:
        sign = 1.0 if get_constraint(self.constraints).higher_is_fairer else -1.0
        describe = self._describe
        steps = []
        for i in _efficient(self._figures, sign * self.base_fairness, sign):
            figures: dict[str, Any] = {n: plain(value) for n, value in self._figures[i].items()}
            segments, card = describe(self._points[i]) if describe else (None, None)
            named = {name: figures.pop(name) for name in FIGURES}
            steps.append(Step(**named, settings=figures, segments=segments, card=card))
        return TradeOff(
            constraints=get_constraint(self.constraints).name,
            metric=get_constraint(self.constraints).metric,
            method=self._method,
            rows=self.rows_word,
            n_rows=len(self._rows),
            base_fairness=plain(self.base_fairness),
            base_accuracy=plain(self.base_accuracy),
            steps=tuple(steps),
            higher_is_fairer=get_constraint(self.constraints).higher_is_fairer,
        )

    def _limit_curve(self, fairness: Iterable[float]) -> tuple[list[float], list[float]]:
        values = sorted({self.base_fairness, *fairness})
        ends = np.linspace(values[0], values[-1], 40) if len(values) > 1 else np.array(values)
        directions = {"may_raise": self._may_raise, "may_lower": self._may_lower}
        return ends.tolist(), [self._rows.limit_at(value, **directions) for value in ends.tolist()]


def _efficient(figures: Sequence[Mapping[str, float]], base: float, sign: float) -> list[int]:
    """Return which updates no other one beats, least fair first, and not all if they are many."""
    value = [sign * line["fairness"] for line in figures]
    worth = [i for i, v in enumerate(value) if not (np.isnan(v) or v < base)]
    wrong = [-np.nan_to_num(line["accuracy"]) for line in figures]
    order = sorted(worth, key=lambda i: (figures[i]["n_changes"], -value[i], wrong[i]))
    kept: list[int] = []
    for i in order:
        if not kept or value[i] > value[kept[-1]]:
            kept.append(i)
    if len(kept) <= MOST_STEPS:
        return kept
    return [kept[i] for i in np.linspace(0, len(kept) - 1, MOST_STEPS).round().astype(int)]
