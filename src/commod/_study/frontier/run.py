"""Many updates fitted together: targets, lambdas or strengths in one computation."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from commod._data.base_model import BaseScores
from commod._study.evaluation import EvaluationRows, as_made
from commod._study.frontier.curve import Fitted, Frontier, Point
from commod._study.frontier.described import Described
from commod._study.frontier.rows import groups_compared, read_evaluated, rows_to_measure
from commod.exceptions import InputError
from commod.metrics._constraint import get_constraint
from commod.rivals.base import Rival, fit_strengths
from commod.scorecard import Scorecard, decide
from commod.updates._problem import FitProblem
from commod.updates._progress import progress_bar
from commod.updates._search import changed_rows, extend_past_target, fit_path
from commod.updates.base import BaseUpdate
from commod.updates.commod import COMMOD, DEFAULT_GRID, fit_grid
from commod.updates.controlled import ControlledDebiaser
from commod.updates.ratio import RatioUpdate

__all__ = ["frontier"]

Mask = NDArray[np.bool_]

N_TARGETS = 28  # default targets between the base model and parity, denser towards parity
LEANS = (None, 0.5, 1.0)  # what fits the fit rows best is not what does best on new rows
# shares of changes past parity on the fit rows: as fitted, and by the first guess
BEYOND = (
    (0.03, 0.08, 0.15, 0.25),
    (0.015, 0.03, 0.045, 0.06, 0.08, 0.1, 0.125, 0.15, 0.19, 0.24, 0.3, 0.4),
)
BATCH = 64  # COMMOD models trained together: bounds memory


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
        fitted together), for ControlledDebiaser `accuracy_weight`, for a rival `strength`
        (None: its `default_strengths`).
    X_eval, y_eval, sensitive_features_eval : default=None
        Rows to measure on, best new ones; the fit rows if None.
    describe : bool, default=True
        Keep what finds the segments and the points of the efficient updates on these rows until
        `Frontier.trade_off` is first called, which returns them for a report to show. False saves
        the memory and that time.

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
        model._store_no_change(search)  # what reading rows needs of a fitted update
        base, columns = model._read_rows(eval_rows[0])
        evaluated = _evaluated(model, search, base, eval_rows)
        free = _free(model, base)
        terms = search.encoding.encode(columns)
        for settings, found in _path(model, search, targets):
            eta = found.eta(terms)
            names = {**settings, "n_terms": int((found.weights != 0).sum())}
            if len(weights) > 1:
                names["accuracy_weight"] = weight
            fitted = _Builder(model, search, found, settings["target"])
            acts = changed_rows(search, found).any()  # otherwise r = 1 is kept
            points.append(Point(names, base.decisions ^ ((eta > 0) & free & acts), fitted))
    assert evaluated is not None
    seconds = perf_counter() - begin
    return Frontier(
        update.constraints,
        points,
        evaluated,
        model._may_move(),
        word,
        fit_seconds=seconds,
        method=type(update).__name__,
        describe=Described.on(evaluated, columns, terms) if describe else None,
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
    model: ControlledDebiaser, search: FitProblem, targets: Sequence[float] | None
) -> Iterable[tuple[dict[str, float], Any]]:
    """Return (settings, update) along the path."""
    is_floor = get_constraint(model.constraints).higher_is_fairer
    leans: Sequence[float | None] = (None,)
    wanted = targets
    if wanted is None:
        ends = search.base_fairness, get_constraint(model.constraints).near_ideal
        way = 1 - np.linspace(1, 0, N_TARGETS + 1)[1:] ** 1.5
        wanted = _with_own(model, (ends[0] + (ends[1] - ends[0]) * way).tolist())
        leans = LEANS
    ordered = sorted({float(t) for t in wanted}, reverse=not is_floor)
    for value in ordered:
        model.set_params(target=value)._check_parameters()
    with progress_bar("frontier", model.progress, "targets") as report:
        found = fit_path(search, ordered, report, leans)
    for target, several in zip(ordered, found, strict=True):
        for one in several:
            yield {"target": target, "lean": one.shrinkage}, one
    if targets is None:
        for last, extras in zip((found[-1][0], found[-1][-1]), BEYOND, strict=True):
            for extra in extras:
                settings = {"target": float("nan"), "lean": last.shrinkage}
                yield settings, extend_past_target(search, last, extra)


def _with_own(model: ControlledDebiaser, targets: list[float]) -> list[float]:
    """Return the targets with the nearest one moved to the update's own, if it lies among them."""
    own = model._target
    if not min(targets) < own < max(targets):
        return targets
    nearest = int(np.argmin(np.abs(np.array(targets) - own)))
    return [*targets[:nearest], own, *targets[nearest + 1 :]]


@dataclass(frozen=True)
class _Builder:
    """How to make the fitted estimator: only those that are wanted are made.

    It holds the fit rows, so what is pickled in its place is the estimator.
    """

    model: ControlledDebiaser
    search: FitProblem
    found: Any
    target: float

    def scorecard(self) -> Scorecard:
        """Return the points of the update alone: nothing is measured on the fit rows."""
        fitted = clone(self.model)
        fitted._take_reading(self.model)
        fitted._store_update(self.search, self.found)
        return fitted.scorecard_

    def __call__(self) -> RatioUpdate:
        goal = (
            get_constraint(self.model.constraints).near_ideal
            if np.isnan(self.target)
            else self.target
        )
        fitted = clone(self.model).set_params(target=goal)
        fitted._take_reading(self.model)
        fitted._store_fit(self.search, self.found)
        return fitted

    def __reduce__(self) -> tuple[type[Fitted], tuple[RatioUpdate]]:
        return Fitted, (self(),)


def _free(model: ControlledDebiaser, base: BaseScores) -> Mask:
    may_raise, may_lower = model._may_move()
    allowed = np.where(base.decisions, may_lower, may_raise)
    return np.asarray(allowed & (base.scores != base.threshold))


def _evaluated(
    model: BaseUpdate, search: FitProblem, base: BaseScores, rows: tuple[Any, Any, Any]
) -> EvaluationRows:
    fit_rows = search.rows
    kept = np.unique(fit_rows.groups.codes[fit_rows.in_constraint])
    labels = [fit_rows.groups.labels[i] for i in kept]
    return read_evaluated(model, labels, base, rows)


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
    terms = first._ratio_function().encoding.encode(columns)
    points = []
    for setting, model in zip(settings, models, strict=True):
        card, ratio = model.scorecard_, model._ratio_function().evaluate(terms)
        names = setting if card is None else {**setting, "n_terms": card.n_terms_used}
        after = decide(base.scores, ratio, base.threshold)
        points.append(Point(names, after, Fitted(model)))
    rows = read_evaluated(first, groups_compared(update, X, sensitive_features), base, eval_rows)
    card_terms = None if first.scorecard_ is None else terms
    return Frontier(
        update.constraints,
        points,
        rows,
        (True, True),
        word,
        fit_seconds=seconds,
        method=type(update).__name__,
        describe=Described.on(rows, columns, card_terms) if describe else None,
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
        describe=Described.on(evaluated, rows.columns) if describe else None,
    )
