"""Fit several methods on the same rows and measure them on the same others."""

from __future__ import annotations

import copy
import inspect
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from commod._data.labels import check_length, distinct_labels, read_labels
from commod._study.compare.comparison import LIMITS, Comparison
from commod._study.evaluation import EvaluationRows, as_made
from commod._study.frontier import (
    Fitted,
    Frontier,
    Point,
    frontier,
    groups_compared,
    read_evaluated,
    rows_to_measure,
)
from commod.exceptions import DataWarning, InputError
from commod.rivals.base import LearningRows, Rival, Rows, check_decisions
from commod.updates._progress import progress_bar
from commod.updates.base import BaseUpdate, Decisions

__all__ = ["compare"]

SHARED = ("constraints", "min_group_size", "threshold", "pos_label", "favorable_label")

Table = tuple[Any, Any, Any]  # X, y and sensitive features of some rows


def compare(
    methods: Mapping[str, Any] | Iterable[Any],
    X: Any,
    y: Any = None,
    *,
    sensitive_features: Any,
    estimator: Any = None,
    constraints: str | None = None,
    min_group_size: int | None = None,
    threshold: float | None = None,
    pos_label: Any = None,
    favorable_label: Any = None,
    X_eval: Any = None,
    y_eval: Any = None,
    sensitive_features_eval: Any = None,
    progress: bool | None = None,
) -> Comparison:
    """Return the trade-offs of several methods, fitted and measured on the same rows.

    Parameters
    ----------
    methods : mapping of str to method, or sequence of methods
        Updates (each is fitted along its default sweep) and any other classifiers: a fitted one is
        taken as it is, an unfitted one is fitted on the rows, with `sensitive_features` where its
        `fit` takes them. `commod.rivals.lineup(model)` is all of them.
    X, y, sensitive_features
        The fit rows, as in an update's `fit`.
    estimator : fitted classifier or ScoreColumn, default=None
        The base model that changes are counted against. Needed where `methods` has no update.
    constraints, min_group_size, threshold, pos_label, favorable_label : default=None
        As in every update; None takes the updates' own, or the usual defaults where `methods` has
        none.
    X_eval, y_eval, sensitive_features_eval : default=None
        Rows to measure on, best new ones; the fit rows if None.
    progress : bool, default=None
        Show a progress bar; None shows it on a terminal only.

    Returns
    -------
    Comparison

    Notes
    -----
    All updates must edit the same base model with the same threshold and constraint; each is fitted
    anew along its sweep. Every update is held against the exact limit at its own fairness. A method
    that cannot be fitted is left out with a warning and named in `failures`. Rows have no weights
    here: people are counted.

    Examples
    --------
    >>> from commod import compare
    >>> from commod.datasets import make_biased
    >>> from commod.rivals import LPP, RejectOption
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> data = make_biased(800, random_state=0)
    >>> model = LogisticRegression().fit(data.data, data.target)
    >>> comparison = compare(
    ...     {"LPP": LPP(model), "reject option": RejectOption(model),
    ...      "a tree": DecisionTreeClassifier(max_depth=3)},
    ...     data.data,
    ...     data.target,
    ...     sensitive_features=data.sensitive_features,
    ... )
    >>> comparison.changes_needed([0.8, 0.9]).shape
    (4, 3)
    """
    named = _named(methods)
    asked = (constraints, min_group_size, threshold, pos_label, favorable_label)
    reference = _reference(named.values(), estimator, dict(zip(SHARED, asked, strict=True)))
    fit_rows = (X, y, sensitive_features)
    eval_rows, word = rows_to_measure(fit_rows, (X_eval, y_eval, sensitive_features_eval))
    found: dict[str, Frontier] = {}
    failures: dict[str, str] = {}
    with _each_warning_once() as said, progress_bar("compare", progress, "methods") as report:
        ground = _Ground.of(reference, fit_rows, eval_rows, word)
        for done, (name, method) in enumerate(named.items()):
            try:
                found[name] = ground.frontier(method)
            except AssertionError:  # an update below its limit: somebody's figures are wrong
                raise
            except Exception as error:  # whatever a method of somebody's may raise
                failures[name] = f"{error}" or type(error).__name__
                said.append((f"{name} is left out: {failures[name]}", DataWarning))
            if report is not None:
                report(done + 1, len(named))
    for message, category in dict.fromkeys(said):
        warnings.warn(message, category, stacklevel=2)
    if not found:
        raise InputError(f"No method could be fitted: {failures}")
    updates = [name for name, method in named.items() if isinstance(method, BaseUpdate)]
    return Comparison(found, ground.rows, failures, updates)


@contextmanager
def _each_warning_once() -> Iterator[list[tuple[str, type[Warning]]]]:
    """Collect warnings: what is to be said about the rows, every method would say."""
    said: list[tuple[str, type[Warning]]] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield said
    said[:0] = [(str(warning.message), warning.category) for warning in caught]


def _named(methods: Mapping[str, Any] | Iterable[Any]) -> dict[str, Any]:
    """Return the methods by name: their classes' names where none are given."""
    if isinstance(methods, Mapping):
        named = dict(methods)
    else:
        named = {}
        alone = hasattr(methods, "predict") or not isinstance(methods, Iterable)
        for method in [methods] if alone or isinstance(methods, str) else methods:
            name = type(method).__name__
            name += " (aware)" if getattr(method, "aware", False) else ""
            taken = sum(other == name or other.startswith(f"{name} #") for other in named)
            named[f"{name} #{taken + 1}" if taken else name] = method
    if not named:
        raise InputError("methods is empty: pass at least one update or classifier.")
    for name, method in named.items():
        if isinstance(method, type) or not hasattr(method, "predict"):
            raise InputError(
                f"{method!r} is neither an update nor a classifier: it is no object with predict. "
                "Pass updates from commod or commod.rivals, such as LPP(model), or classifiers."
            )
        if name in LIMITS:
            raise InputError(f"{name!r} names a line of the table; call the method otherwise.")
    return named


class _BaseModel(Rival):
    """The base model itself, as an update that changes nothing: it reads the rows for all."""

    def __init__(
        self,
        estimator: Any,
        *,
        constraints: str = "demographic_parity",
        min_group_size: int = 30,
        threshold: float = 0.5,
        pos_label: Any = None,
        favorable_label: Any = None,
    ) -> None:
        self.estimator = estimator
        self.strength = 0.0
        self.constraints = constraints
        self.min_group_size = min_group_size
        self.threshold = threshold
        self.pos_label = pos_label
        self.favorable_label = favorable_label

    def _learn(self, rows: LearningRows) -> None:
        pass

    def _decide(self, rows: Rows) -> Decisions:
        return rows.base.decisions


def _reference(methods: Iterable[Any], estimator: Any, asked: dict[str, Any]) -> _BaseModel:
    """Return the base model with the settings that all updates share; refuse where they differ."""
    settings = {name: value for name, value in asked.items() if value is not None}
    updates = [method for method in methods if isinstance(method, BaseUpdate)]
    if not updates:
        if estimator is None:
            raise InputError(
                "Without an update among the methods, the base model that changes are counted "
                "against must be given: estimator=model."
            )
        return _BaseModel(estimator, **settings)
    first = updates[0]
    for other in updates[1:]:
        _check_same(type(other).__name__, first, {n: getattr(other, n) for n in SHARED})
        _check_estimator(other.estimator, type(other).__name__, first)
    _check_same("compare", first, settings)
    if estimator is not None:
        _check_estimator(estimator, "compare", first)
    return _BaseModel(first.estimator, **{name: getattr(first, name) for name in SHARED})


def _check_same(who: str, first: BaseUpdate, settings: Mapping[str, Any]) -> None:
    for name, value in settings.items():
        if value != getattr(first, name):
            raise InputError(
                f"{who} has {name}={value!r} and {type(first).__name__} {name}="
                f"{getattr(first, name)!r}: methods are compared on one base model and one "
                "constraint. Give all of them the same."
            )


def _check_estimator(estimator: Any, who: str, first: BaseUpdate) -> None:
    if estimator is not first.estimator and estimator != first.estimator:
        raise InputError(
            f"{who} has another estimator than {type(first).__name__}: methods are compared on one "
            "base model. Give all of them the same."
        )


@dataclass(frozen=True)
class _Ground:
    """What all methods are compared on."""

    reference: _BaseModel
    fit_rows: Table
    eval_rows: Table
    rows: EvaluationRows
    word: str

    @classmethod
    def of(cls, reference: _BaseModel, fit_rows: Table, eval_rows: Table, word: str) -> _Ground:
        """Read everything once: what is wrong with the rows is wrong for every method."""
        X, y, sensitive_features = fit_rows
        reference.fit(X, y, sensitive_features=sensitive_features)
        labels = groups_compared(reference, X, sensitive_features)
        base = reference._read_rows(eval_rows[0]).base
        rows = read_evaluated(reference, labels, base, eval_rows)
        return cls(reference, fit_rows, eval_rows, rows, word)

    def frontier(self, method: Any) -> Frontier:
        """Return the frontier of an update, or the one point of another classifier."""
        if not isinstance(method, BaseUpdate):
            return self._point(method)
        quiet = clone(method)
        if "progress" in quiet.get_params():
            quiet.set_params(progress=False)
        X, y, sensitive_features = self.fit_rows
        names = ("X_eval", "y_eval", "sensitive_features_eval")
        eval_rows: dict[str, Any] = {}
        if self.word == "evaluated rows":
            eval_rows = dict(zip(names, self.eval_rows, strict=True))
        groups = {"sensitive_features": sensitive_features}
        return frontier(quiet, X, y, **groups, **eval_rows, describe=False)

    def _point(self, model: Any) -> Frontier:
        begin = perf_counter()
        fitted = _fitted(model, *self.fit_rows)
        seconds = perf_counter() - begin
        aware = _takes_groups(fitted.predict)
        after = self._decisions(fitted, aware)
        return Frontier(
            self.rows.constraints,
            [Point({}, after, Fitted(fitted))],
            self.rows,
            (True, True),
            self.word,
            fit_seconds=seconds,
            needs_sensitive_features=aware,
        )

    def _decisions(self, model: Any, aware: bool) -> Decisions:
        X, _, sensitive_features = self.eval_rows
        groups = {"sensitive_features": sensitive_features} if aware else {}
        name = type(model).__name__
        if hasattr(model, "decision_proba"):
            chances = model.decision_proba(X, **groups)
            return as_made(check_decisions(chances, len(self.rows), f"decision_proba of {name}"))
        if hasattr(model, "_pmf_predict"):  # Fairlearn's randomised classifiers: count expectations
            chances = np.asarray(model._pmf_predict(X, **groups))[:, 1]
            return as_made(check_decisions(chances, len(self.rows), f"_pmf_predict of {name}"))
        labels = read_labels(model.predict(X, **groups), f"predict of {name}")
        known = self.reference.classes_.tolist()
        check_length(labels, f"predict of {name}", len(self.rows))
        unknown = [value for value in distinct_labels(labels) if value not in known]
        if unknown:
            raise InputError(
                f"predict of {name} gave {unknown[0]!r}; the base model's labels are {known}."
            )
        return np.asarray(labels == self.reference.pos_label_, dtype=bool)


def _fitted(model: Any, X: Any, y: Any, sensitive_features: Any) -> Any:
    """Return a classifier that is fitted; one that is not is fitted on the rows."""
    if not hasattr(model, "fit") or not hasattr(model, "get_params"):
        return model
    try:
        check_is_fitted(model)
    except NotFittedError:
        # a copy, not a clone: what it wraps may be fitted already and must stay so
        fresh = copy.deepcopy(model)
        if _takes_groups(model.fit) or type(model).__module__.startswith("fairlearn."):
            return fresh.fit(X, y, sensitive_features=sensitive_features)
        return fresh.fit(X, y)
    return model


def _takes_groups(method: Any) -> bool:
    return "sensitive_features" in inspect.signature(method).parameters
