"""The whole trade-off between fairness, accuracy and changes: many updates, evaluated at once."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from commod._base_model import BaseScores
from commod._codes import plain
from commod._encoding import TermTable
from commod._evaluation import EvaluationRows, as_made
from commod._explain import SegmentFinder, make_card
from commod._explain.source import InMemory
from commod._inputs import (
    Column,
    check_length,
    different_labels,
    n_rows_of,
    read_groups,
    read_labels,
)
from commod._record import Card, Segments, Step, TradeOff
from commod.exceptions import InputError, TargetWarning
from commod.metrics._fairness import CONSTRAINTS
from commod.rivals.base import Rival, fit_strengths
from commod.scorecard import Scorecard, decide
from commod.updates._progress import progress_bar
from commod.updates._search import Search, eta_of
from commod.updates.base import MARGIN_COLUMN, BaseUpdate, Decisions, LinearUpdate
from commod.updates.commod import COMMOD, DEFAULT_GRID, fit_grid
from commod.updates.controlled import ControlledDebiaser, ideal_fairness

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

__all__ = [
    "Fitted",
    "Frontier",
    "Point",
    "frontier",
    "groups_compared",
    "read_evaluated",
    "rows_to_measure",
]

Mask = NDArray[np.bool_]

N_TARGETS = 28  # default targets between the base model and parity, denser towards parity
LEANS = (None, 0.5, 1.0)  # what fits the fit rows best is not what does best on new rows
# shares of changes past parity on the fit rows: as fitted, and by the first guess
BEYOND = (
    (0.03, 0.08, 0.15, 0.25),
    (0.015, 0.03, 0.045, 0.06, 0.08, 0.1, 0.125, 0.15, 0.19, 0.24, 0.3, 0.4),
)
BATCH = 64  # COMMOD models trained together: bounds memory
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


@dataclass(frozen=True)
class Point:
    """One update: what sets it apart, what it decides on the evaluated rows, how to fit it."""

    settings: dict[str, float]
    after: Decisions
    fitted: Callable[[], Any]


Describe = Callable[[Point], tuple[Segments | None, Card | None]]


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
        constraints: str,
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
        self._trade_off = self._efficient_steps(method, describe)

    def __len__(self) -> int:
        return len(self._points)

    def __repr__(self) -> str:
        return (
            f"Frontier of {len(self)} updates, {CONSTRAINTS[self.constraints]} "
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
        fair than the base model; they go from there towards parity, at most 20 of them. All of it
        was computed when the frontier was made. Segments are None where lots are drawn, cards are
        None for updates without a scorecard, and both where `frontier` was told not to describe.
        """
        return self._trade_off

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
        metric = CONSTRAINTS[self.constraints]
        ax.set_xlabel(f"{metric} on the {len(self._rows):,} {self.rows_word}")
        ax.set_ylabel("share of decisions changed")
        ax.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
        if self.constraints != "demographic_parity":
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
            that says so. Chosen on the rows of the frontier: measure it on others.
        """
        if target is None and max_changes is None:
            raise InputError("select needs target=, max_changes= or both.")
        frame = self.frame()
        sign = 1.0 if self.constraints == "demographic_parity" else -1.0
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
        if value[within].max() == -np.inf:
            raise InputError(
                f"No update of this frontier has a defined {CONSTRAINTS[self.constraints]}: nobody "
                "is decided positively, or a group has no row with the label it is measured on."
            )
        candidates = np.flatnonzero(within & (value >= value[within].max()))
        best = int(candidates[np.argmin(changes[candidates])])
        if target is not None:
            warnings.warn(
                f"No update reaches {CONSTRAINTS[self.constraints]} {target:g} on the "
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

    def _efficient_steps(self, method: str, describe: Describe | None) -> TradeOff:
        sign = 1.0 if self.constraints == "demographic_parity" else -1.0
        steps = []
        for i in _efficient(self._figures, sign * self.base_fairness, sign):
            figures: dict[str, Any] = {n: plain(value) for n, value in self._figures[i].items()}
            segments, card = (None, None) if describe is None else describe(self._points[i])
            named = {name: figures.pop(name) for name in FIGURES}
            steps.append(Step(**named, settings=figures, segments=segments, card=card))
        return TradeOff(
            constraints=self.constraints,
            metric=CONSTRAINTS[self.constraints],
            method=method,
            rows=self.rows_word,
            n_rows=len(self._rows),
            base_fairness=plain(self.base_fairness),
            base_accuracy=plain(self.base_accuracy),
            steps=tuple(steps),
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


@dataclass(frozen=True)
class _Described:
    """Finds segments and points of updates on the evaluated rows, whose columns are read once.

    `terms` are the same rows as the scorecards of these updates read them, None without one.
    """

    finder: SegmentFinder
    rows: EvaluationRows
    terms: TermTable | None = None

    @classmethod
    def on(
        cls, rows: EvaluationRows, columns: Sequence[Column], terms: TermTable | None = None
    ) -> _Described:
        """Return what describes updates on these rows."""
        raw = InMemory([c for c in columns if c.name != MARGIN_COLUMN])
        return cls(SegmentFinder(raw, rows.before == rows.gain_raises), rows, terms)

    def __call__(self, point: Point) -> tuple[Segments | None, Card | None]:
        """Return the segments and the card of one update."""
        if point.after.dtype != np.bool_:
            return None, None
        changed = self.rows.before ^ point.after.astype(np.bool_)
        favorable = self.finder.favorable_before
        segments, _ = self.finder.find(changed & ~favorable, changed & favorable)
        if self.terms is None:
            return segments, None
        assert isinstance(point.fitted, Fitted | _Builder)
        return segments, make_card(point.fitted.scorecard(), self.terms, changed)


def frontier(
    update: ControlledDebiaser | COMMOD | Rival,
    X: Any,
    y: Any = None,
    *,
    sensitive_features: Any,
    targets: Sequence[float] | None = None,
    grid: Mapping[str, Sequence[float]] | None = None,
    X_eval: Any = None,
    y_eval: Any = None,
    sensitive_features_eval: Any = None,
    describe: bool = True,
) -> Frontier:
    """Return many updates along the trade-off, fitted together and measured on given rows.

    Parameters
    ----------
    update : ControlledDebiaser, COMMOD or one of commod.rivals
        What to fit; its own target, lambdas or strength are replaced.
    X, y, sensitive_features
        The fit rows, as in `update.fit`.
    targets : sequence of float, default=None
        ControlledDebiaser only: one update each, found in one warm-started computation on the same
        columns. None: 100 updates from the base model to past parity on the fit rows, the update's
        own target among them, at up to three degrees of leaning on the first guess (column
        `lean`).
    grid : mapping of str to sequence, default=None
        Values to combine: for COMMOD its lambdas and `random_state` (None: the published grid,
        one batched computation), for ControlledDebiaser `accuracy_weight`, for a rival `strength`
        (None: its `default_strengths`).
    X_eval, y_eval, sensitive_features_eval : default=None
        Rows to measure on, best new ones; the fit rows if None.
    describe : bool, default=True
        Find the segments and the points of the efficient updates on these rows, which
        `Frontier.trade_off` returns and a report shows. False saves the time.

    Returns
    -------
    Frontier

    Examples
    --------
    >>> from commod import ControlledDebiaser, frontier
    >>> from commod.datasets import make_biased
    >>> from sklearn.linear_model import LogisticRegression
    >>> old, new = make_biased(800, random_state=0), make_biased(800, random_state=1)
    >>> model = LogisticRegression().fit(old.data, old.target)
    >>> curve = frontier(
    ...     ControlledDebiaser(model),
    ...     old.data,
    ...     old.target,
    ...     sensitive_features=old.sensitive_features,
    ...     X_eval=new.data,
    ...     y_eval=new.target,
    ...     sensitive_features_eval=new.sensitive_features,
    ... )
    >>> len(curve)
    100
    >>> update = curve.select(target=0.8)
    >>> update.predict(new.data).shape
    (800,)
    """
    given = (X_eval, y_eval, sensitive_features_eval)
    rows, word = rows_to_measure((X, y, sensitive_features), given)
    if isinstance(update, ControlledDebiaser):
        return _controlled(update, (X, y, sensitive_features), targets, grid, rows, word, describe)
    if isinstance(update, COMMOD):
        if targets is not None:
            raise InputError("COMMOD has lambdas, not targets: pass grid={'lambda_fair': [...]}.")
        return _commod(update, (X, y, sensitive_features), grid, rows, word, describe)
    if isinstance(update, Rival):
        if targets is not None:
            raise InputError("A rival has a strength, no targets: pass grid={'strength': [...]}.")
        return _rival(update, (X, y, sensitive_features), grid, rows, word, describe)
    raise InputError(
        "frontier takes a ControlledDebiaser, a COMMOD or one of commod.rivals; got "
        f"{type(update).__name__}. For other classifiers use compare."
    )


def rows_to_measure(
    fit_rows: tuple[Any, Any, Any], eval_rows: tuple[Any, Any, Any]
) -> tuple[tuple[Any, Any, Any], str]:
    """Return the rows given for measuring, or the fit rows where none are, and what they are."""
    X, y, sensitive_features = eval_rows
    if X is None:
        if y is not None or sensitive_features is not None:
            raise InputError("y_eval and sensitive_features_eval belong to X_eval, which is None.")
        return fit_rows, "fit rows"
    if sensitive_features is None:
        raise InputError("X_eval needs sensitive_features_eval: fairness is measured on its rows.")
    return eval_rows, "evaluated rows"


# ---------------------------------------------------------------------------------------------
# ControlledDebiaser


def _controlled(
    update: ControlledDebiaser,
    fit_rows: tuple[Any, Any, Any],
    targets: Sequence[float] | None,
    grid: Mapping[str, Sequence[float]] | None,
    eval_rows: tuple[Any, Any, Any],
    word: str,
    describe: bool,
) -> Frontier:
    unknown = sorted(set(grid or {}) - {"accuracy_weight"})
    if unknown:
        raise InputError(
            f"A ControlledDebiaser's grid may hold accuracy_weight; got {', '.join(unknown)}. "
            "Give targets= for the rest of the trade-off."
        )
    weights = _numbers("accuracy_weight", (grid or {}).get("accuracy_weight"))
    weights = [update.accuracy_weight] if weights is None else weights
    targets = _numbers("targets", targets)
    points: list[Point] = []
    evaluated: EvaluationRows | None = None
    X, y, sensitive_features = fit_rows
    begin = perf_counter()
    for weight in weights:
        model = clone(update).set_params(accuracy_weight=weight, confidence=None)
        search = model._prepare(X, y, sensitive_features, None)
        model._blank_scorecard(search)  # what reading rows needs of a fitted update
        base, columns = model._read_rows(eval_rows[0])
        evaluated = _evaluated(model, search, base, eval_rows)
        free = _free(model, base)
        terms = search.encoding.encode(columns)
        for settings, found in _path(model, search, targets):
            eta = eta_of(found, terms, search.moments)
            names = {**settings, "n_terms": int((found.weights != 0).sum())}
            if len(weights) > 1:
                names["accuracy_weight"] = weight
            fitted = _Builder(model, search, found, settings["target"])
            acts = ((search.eta(found) > 0) & search.free).any()  # otherwise r = 1 is kept
            points.append(Point(names, base.decisions ^ ((eta > 0) & free & acts), fitted))
    assert evaluated is not None
    seconds = perf_counter() - begin
    return Frontier(
        update.constraints,
        points,
        evaluated,
        model._allowed_directions(),
        word,
        fit_seconds=seconds,
        method=type(update).__name__,
        describe=_Described.on(evaluated, columns, terms) if describe else None,
    )


def _numbers(name: str, values: Any) -> list[float] | None:
    """Return a list of numbers, None where nothing was given."""
    if values is None:
        return None
    try:
        numbers = [float(value) for value in values]
    except (TypeError, ValueError):
        numbers = []
    if not numbers:
        raise InputError(f"{name} must be a list of numbers, such as [0.7, 0.8]; got {values!r}.")
    return numbers


def _path(
    model: ControlledDebiaser, search: Search, targets: Sequence[float] | None
) -> Iterable[tuple[dict[str, float], Any]]:
    """Return (settings, update) along the path."""
    is_floor = model.constraints == "demographic_parity"
    leans: Sequence[float | None] = (None,)
    wanted = targets
    if wanted is None:
        ends = search.base_value, ideal_fairness(model.constraints)
        way = 1 - np.linspace(1, 0, N_TARGETS + 1)[1:] ** 1.5
        wanted = _with_own(model, (ends[0] + (ends[1] - ends[0]) * way).tolist())
        leans = LEANS
    ordered = sorted({float(t) for t in wanted}, reverse=not is_floor)
    for value in ordered:
        model.set_params(target=value)._check_parameters()
    with progress_bar("frontier", model.progress, "targets") as report:
        found = search.path(ordered, report, leans)
    for target, several in zip(ordered, found, strict=True):
        for one in several:
            yield {"target": target, "lean": one.found.lean}, one
    if targets is None:
        for last, extras in zip((found[-1][0], found[-1][-1]), BEYOND, strict=True):
            for extra in extras:
                settings = {"target": float("nan"), "lean": last.found.lean}
                yield settings, search.beyond(last, extra)


def _with_own(model: ControlledDebiaser, targets: list[float]) -> list[float]:
    """Return the targets with the nearest one moved to the update's own, if it lies among them."""
    own = model._target
    if not min(targets) < own < max(targets):
        return targets
    nearest = int(np.argmin(np.abs(np.array(targets) - own)))
    return [*targets[:nearest], own, *targets[nearest + 1 :]]


@dataclass(frozen=True)
class _Builder:
    """How to make the fitted estimator: only those that are wanted are made."""

    model: ControlledDebiaser
    search: Search
    found: Any
    target: float

    def scorecard(self) -> Scorecard:
        """Return the points of the update alone: nothing is measured on the fit rows."""
        fitted = clone(self.model)
        fitted._take_reading(self.model)
        fitted._store_update(self.search, self.found)
        return fitted.scorecard_

    def __call__(self) -> LinearUpdate:
        goal = ideal_fairness(self.model.constraints) if np.isnan(self.target) else self.target
        fitted = clone(self.model).set_params(target=goal)
        fitted._take_reading(self.model)
        fitted._keep(self.search, self.found)
        return fitted


@dataclass(frozen=True)
class Fitted:
    """An update that is there already."""

    update: Any

    def __call__(self) -> Any:
        """Return it."""
        return self.update

    def scorecard(self) -> Scorecard:
        """Return its points."""
        return self.update.scorecard_


def _free(model: ControlledDebiaser, base: BaseScores) -> Mask:
    may_raise, may_lower = model._allowed_directions()
    allowed = np.where(base.decisions, may_lower, may_raise)
    return np.asarray(allowed & (base.scores != base.threshold))


def _evaluated(
    model: BaseUpdate, search: Search, base: BaseScores, rows: tuple[Any, Any, Any]
) -> EvaluationRows:
    fit_rows = search.rows
    kept = np.unique(fit_rows.groups.codes[fit_rows.in_constraint])
    labels = [fit_rows.groups.labels[i] for i in kept]
    return read_evaluated(model, labels, base, rows)


def read_evaluated(
    model: BaseUpdate, labels: Sequence[Any], base: BaseScores, rows: tuple[Any, Any, Any]
) -> EvaluationRows:
    """Read labels and groups of the evaluated rows; groups outside the constraint are left out."""
    _, y, sensitive_features = rows
    n = len(base.scores)
    groups = read_groups(sensitive_features, n)
    position = {label: i for i, label in enumerate(labels)}
    group = np.array([position.get(label, -1) for label in groups.labels], dtype=np.intp)
    missing = [repr(label) for label in labels if label not in groups.labels]
    if missing:
        raise InputError(
            f"The evaluated rows have nobody of group {missing[0]}, which the constraint compares. "
            "Pass rows of every group."
        )
    label = None
    if y is not None:
        values = read_labels(y, "y_eval")
        check_length(values, "y_eval", n)
        unknown = [v for v in different_labels(values) if v not in model.classes_.tolist()]
        if unknown:
            raise InputError(
                f"y_eval holds {unknown[:3]}, which the base model does not know; its labels are "
                f"{model.classes_.tolist()}."
            )
        label = np.asarray(values == model.pos_label_, dtype=bool)
    elif model.constraints != "demographic_parity":
        raise InputError(f"constraints={model.constraints!r} needs y_eval, but it is None.")
    return EvaluationRows(
        constraints=model.constraints,
        before=base.decisions,
        label=label,
        group=group[groups.codes],
        n_groups=len(labels),
        gain_raises=model._raising_is_a_gain(),
    )


# ---------------------------------------------------------------------------------------------
# COMMOD


def _commod(
    update: COMMOD,
    fit_rows: tuple[Any, Any, Any],
    grid: Mapping[str, Sequence[float]] | None,
    eval_rows: tuple[Any, Any, Any],
    word: str,
    describe: bool,
) -> Frontier:
    chosen = DEFAULT_GRID if grid is None else grid
    settings = [dict(zip(chosen, v, strict=True)) for v in itertools.product(*chosen.values())]
    if not chosen or not settings:
        raise InputError("grid is empty: give at least one value of one lambda.")
    X, y, sensitive_features = fit_rows
    models: list[COMMOD] = []
    begin = perf_counter()
    for done in range(0, len(settings), BATCH):
        batch = settings[done : done + BATCH]
        models += fit_grid(update, batch, X, y, sensitive_features=sensitive_features)
    seconds = perf_counter() - begin
    first = models[0]
    base, columns = first._read_rows(eval_rows[0])
    terms = first.scorecard_.encoding.encode(columns)
    points = []
    for setting, model in zip(settings, models, strict=True):
        card = model.scorecard_
        ratio = terms.total(card.points, card.intercept)
        names = {**setting, "n_terms": card.n_terms_used}
        after = decide(base.scores, ratio, base.threshold)
        points.append(Point(names, after, Fitted(model)))
    rows = read_evaluated(first, groups_compared(update, X, sensitive_features), base, eval_rows)
    return Frontier(
        update.constraints,
        points,
        rows,
        (True, True),
        word,
        fit_seconds=seconds,
        method=type(update).__name__,
        describe=_Described.on(rows, columns, terms) if describe else None,
    )


# ---------------------------------------------------------------------------------------------
# Rivals


def _rival(
    update: Rival,
    fit_rows: tuple[Any, Any, Any],
    grid: Mapping[str, Sequence[float]] | None,
    eval_rows: tuple[Any, Any, Any],
    word: str,
    describe: bool,
) -> Frontier:
    unknown = sorted(set(grid or {}) - {"strength"})
    if unknown:
        raise InputError(f"A rival's grid may hold strength; got {', '.join(unknown)}.")
    strengths = _numbers("strength", (grid or {}).get("strength"))
    strengths = list(update.default_strengths) if strengths is None else strengths
    X, y, sensitive_features = fit_rows
    begin = perf_counter()
    models = fit_strengths(update, strengths, X, y, sensitive_features=sensitive_features)
    seconds = perf_counter() - begin
    rows = models[0]._read_rows(eval_rows[0], eval_rows[2])
    points = [
        Point({"strength": strength}, as_made(model._decided(rows)), Fitted(model))
        for strength, model in zip(strengths, models, strict=True)
    ]
    labels = groups_compared(update, X, sensitive_features)
    evaluated = read_evaluated(models[0], labels, rows.base, eval_rows)
    return Frontier(
        update.constraints,
        points,
        evaluated,
        (True, True),
        word,
        fit_seconds=seconds,
        needs_sensitive_features=update.needs_sensitive_features,
        method=type(update).__name__,
        describe=_Described.on(evaluated, rows.columns) if describe else None,
    )


def groups_compared(update: BaseUpdate, X: Any, sensitive_features: Any) -> list[Any]:
    """Return the groups of the fit rows that are large enough to be part of the constraint."""
    groups = read_groups(sensitive_features, n_rows_of(X))
    sizes = zip(groups.labels, groups.sizes, strict=True)
    return [group for group, n in sizes if n >= update.min_group_size]
