"""Fit several methods on the same rows and measure them on the same rows."""

from __future__ import annotations

import copy
import inspect
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from commod._data.groups import read_groups
from commod._data.labels import (
    check_label_parameter,
    check_length,
    distinct_labels,
    read_labels,
)
from commod._data.parameters import check_flag, check_number_parameter
from commod._data.tables import n_rows_of
from commod._study.compare.comparison import LIMIT_NAMES, Comparison
from commod._study.evaluation import (
    EvaluationRows,
    as_decisions,
    choose_evaluated,
    compared_groups,
    each_warning_once,
    read_evaluation_rows,
    refuse_probabilities,
)
from commod._study.frontier import Frontier, Point, frontier
from commod._text import n_of
from commod.exceptions import DataWarning, InputError
from commod.metrics._requirements import Requirements, read_constraints
from commod.rivals._lineup import Lineup
from commod.rivals._rows import DecisionRows, RivalFitRows, check_decisions
from commod.rivals.base import Rival
from commod.updates._interface import Decisions, FittedCandidate, RawRows
from commod.updates._progress import progress_bar
from commod.updates.base import BaseUpdate

SHARED_PARAMETERS = ("constraints", "min_group_size", "threshold", "pos_label", "favorable_label")


def compare(
    methods: Mapping[str, Any] | Iterable[Any],
    X: Any,
    y: Any = None,
    *,
    sensitive_features: Any = None,
    sensitive_probabilities: Any = None,
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
        Updates and any other classifiers. Each update is fitted along its default sweep. A fitted
        classifier is taken as it is; an unfitted one is fitted on the rows, with
        `sensitive_features` if its `fit` takes them. `commod.rivals.lineup(model)` returns every
        method of this library.
    X, y, sensitive_features
        The fit rows, as in an update's `fit`. The group of every person must be known.
    sensitive_probabilities : default=None
        Refused: most methods need the group of each person. `commod.frontier` takes probabilities.
    estimator : fitted classifier or ScoreColumn, default=None
        The base model. Changes are counted against its decisions. Needed only if `methods` has no
        update.
    constraints, min_group_size, threshold, pos_label, favorable_label : default=None
        As in every update. None: the values of the updates, or the usual defaults if `methods` has
        no update.
    X_eval, y_eval, sensitive_features_eval : default=None
        Rows to measure on, preferably new ones; the fit rows if None.
    progress : bool, default=None
        Show a progress bar; None shows it on a terminal only.

    Returns
    -------
    Comparison

    Notes
    -----
    All updates must edit the same base model with the same threshold and constraint. Copies of the
    updates are fitted; the updates themselves stay as they are. Every update is checked against the
    exact limit at its own fairness. A method that cannot be fitted is left out with a warning and
    named in `failures`. Rows have no weights here: people are counted.

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
    refuse_probabilities(
        sensitive_probabilities,
        "most methods need the group of each person. Use commod.frontier for ControlledDebiaser "
        "alone, or pass sensitive_features of people whose group is known.",
    )
    check_flag(progress, "progress", optional=True)
    check_label_parameter(pos_label, "pos_label")
    check_label_parameter(favorable_label, "favorable_label")
    if constraints is not None:
        read_constraints(constraints)
    for name, value, kinds in (
        ("min_group_size", min_group_size, (int, np.integer)),
        ("threshold", threshold, (float, np.floating)),
    ):
        if value is not None:
            check_number_parameter(value, name, kinds)
    named = _named(methods)
    _check_known_groups(named.values(), X, sensitive_features)
    given = (constraints, min_group_size, threshold, pos_label, favorable_label)
    settings = dict(zip(SHARED_PARAMETERS, given, strict=True))
    reference = _reference(named.values(), estimator, settings)
    fit_rows = RawRows(X, y, sensitive_features)
    eval_rows = RawRows(X_eval, y_eval, sensitive_features_eval)
    frontiers: dict[str, Frontier] = {}
    failures: dict[str, str] = {}
    with each_warning_once(), progress_bar("compare", progress, "methods") as report:
        common = _CommonRows.read(reference, fit_rows, eval_rows)
        for done, (name, method) in enumerate(named.items()):
            try:
                frontiers[name] = common.frontier(method)
            except AssertionError:  # an update below its limit is a bug, not a failure of a method
                raise
            except Exception as error:  # a user's method may raise anything
                failures[name] = f"{error}" or type(error).__name__
                warnings.warn(f"{name} is left out: {failures[name]}", DataWarning, stacklevel=2)
            if report is not None:
                report(done + 1, len(named))
    if not frontiers:
        raise InputError(f"No method could be fitted: {failures}")
    updates = [name for name, method in named.items() if isinstance(method, BaseUpdate)]
    left_out = methods.left_out if isinstance(methods, Lineup) else {}
    return Comparison(frontiers, common.rows, failures, updates, left_out)


def _check_known_groups(methods: Iterable[Any], X: Any, sensitive_features: Any) -> None:
    """Refuse people of unknown groups, also where an update allows them: others do not."""
    if not any(getattr(method, "unknown_groups", "error") == "ignore" for method in methods):
        return  # the base model refuses them as every update does
    n_unknown = int((~read_groups(sensitive_features, n_rows_of(X), "ignore").is_known).sum())
    if n_unknown:
        raise InputError(
            f"The group of {n_of(n_unknown, 'row')} is not known, and most methods need every "
            "group, so compare does not take unknown_groups='ignore'. Drop these rows, or use "
            "commod.frontier for ControlledDebiaser alone.",
            parameter="sensitive_features",
        )


def _named(methods: Mapping[str, Any] | Iterable[Any]) -> dict[str, Any]:
    """Return the methods by name: the name of the class where the user gave none."""
    named = dict(methods) if isinstance(methods, Mapping) else _named_by_class(methods)
    if not named:
        raise InputError("methods is empty: pass at least one update or classifier.")
    for name, method in named.items():
        if isinstance(method, type) or not hasattr(method, "predict"):
            raise InputError(
                f"{method!r} is neither an update nor a classifier: it is no object with predict. "
                "Pass updates from commod or commod.rivals, such as LPP(model), or classifiers."
            )
        if name in LIMIT_NAMES:
            raise InputError(f"{name!r} names a line of the table; give the method another name.")
    return named


def _named_by_class(methods: Any) -> dict[str, Any]:
    is_single = hasattr(methods, "predict") or not isinstance(methods, Iterable)
    is_single = is_single or getattr(methods, "ndim", 1) == 0
    named: dict[str, Any] = {}
    for method in [methods] if is_single or isinstance(methods, str) else methods:
        name = type(method).__name__
        name += " (aware)" if getattr(method, "aware", False) else ""
        n_same = sum(other == name or other.startswith(f"{name} #") for other in named)
        named[f"{name} #{n_same + 1}" if n_same else name] = method
    return named


class _BaseModel(Rival):
    """The base model as an update that changes nothing. It reads the rows for all methods."""

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
        self.constraints, self.min_group_size = constraints, min_group_size
        self.threshold, self.pos_label, self.favorable_label = threshold, pos_label, favorable_label

    def stated(self) -> Requirements:
        """Return all constraints: a base model changes nothing, so it stands beside any of them."""
        return read_constraints(self.fitted_param("constraints"))

    def _learn(self, rows: RivalFitRows) -> None:
        pass

    def _decide(self, rows: DecisionRows) -> Decisions:
        return rows.base.decisions


def _reference(methods: Iterable[Any], estimator: Any, given: dict[str, Any]) -> _BaseModel:
    """Return the base model with the parameters that all updates share; refuse different ones."""
    settings = {name: value for name, value in given.items() if value is not None}
    updates = [method for method in methods if isinstance(method, BaseUpdate)]
    if not updates:
        if estimator is None:
            raise InputError(
                "Without an update among the methods, compare needs the base model that changes "
                "are counted against: pass estimator=model."
            )
        return _BaseModel(estimator, **settings)
    first = updates[0]
    for other in updates[1:]:
        _check_same(type(other).__name__, first, _parameters(other))
    if estimator is not None:
        settings["estimator"] = estimator
    _check_same("compare", first, settings)
    return _BaseModel(**_parameters(first))


def _parameters(update: BaseUpdate) -> dict[str, Any]:
    return {name: getattr(update, name) for name in (*SHARED_PARAMETERS, "estimator")}


def _check_same(owner: str, first: BaseUpdate, settings: Mapping[str, Any]) -> None:
    """Refuse parameters of `owner` that differ from those of the first update."""
    for name, value in settings.items():
        own = getattr(first, name)
        is_same = value is own or value == own
        if name == "constraints":  # each method may have its own target
            is_same = read_constraints(value).constraints == read_constraints(own).constraints
        if isinstance(is_same, bool | np.bool_) and is_same:
            continue
        difference = f"{name}={value!r} and {type(first).__name__} {name}={own!r}"
        if name == "estimator":
            difference = f"another estimator than {type(first).__name__}"
        raise InputError(
            f"{owner} has {difference}: methods are compared on one base model and one "
            "constraint. Give all of them the same."
        )


@dataclass(frozen=True)
class _CommonRows:
    """The rows on which all methods are fitted and measured, and the base model.

    `eval_rows` are the rows that the user gave, `measured_rows` those that methods are measured on;
    `rows` are the same after reading.
    """

    reference: _BaseModel
    fit_rows: RawRows
    eval_rows: RawRows
    measured_rows: RawRows
    rows: EvaluationRows
    rows_word: str

    @classmethod
    def read(cls, reference: _BaseModel, fit_rows: RawRows, eval_rows: RawRows) -> _CommonRows:
        """Read the rows once, so that an error in them is raised before any method is fitted."""
        measured, rows_word = choose_evaluated(fit_rows, eval_rows)
        reference.fit(fit_rows.X, fit_rows.y, sensitive_features=fit_rows.sensitive_features)
        base = reference.read_rows(measured.X).base
        compared = compared_groups(reference, fit_rows)
        rows = read_evaluation_rows(reference, compared, base, measured)
        return cls(reference, fit_rows, eval_rows, measured, rows, rows_word)

    def frontier(self, method: Any) -> Frontier:
        """Return the frontier of an update; another classifier has a frontier of one point."""
        if not isinstance(method, BaseUpdate):
            return self._classifier_frontier(method)
        update = clone(method)
        if "progress" in update.get_params():
            update.set_params(progress=False)
        return frontier(
            update,
            self.fit_rows.X,
            self.fit_rows.y,
            sensitive_features=self.fit_rows.sensitive_features,
            X_eval=self.eval_rows.X,
            y_eval=self.eval_rows.y,
            sensitive_features_eval=self.eval_rows.sensitive_features,
            describe=False,
        )

    def _classifier_frontier(self, classifier: Any) -> Frontier:
        begin = perf_counter()
        fitted = _fitted(classifier, self.fit_rows)
        fit_seconds = perf_counter() - begin
        needs_groups = _takes_groups(fitted.predict)
        after = as_decisions(self._decisions(fitted, needs_groups))
        return Frontier(
            [Point(FittedCandidate({}, fitted), after)],
            self.rows,
            self.rows_word,
            fit_seconds=fit_seconds,
            needs_sensitive_features=needs_groups,
        )

    def _decisions(self, classifier: Any, needs_groups: bool) -> Decisions:
        """Return decisions, or probabilities of a positive one where a classifier has them."""
        X, _, sensitive_features = self.measured_rows
        groups = {"sensitive_features": sensitive_features} if needs_groups else {}
        name, n = type(classifier).__name__, len(self.rows.before)
        if hasattr(classifier, "decision_proba"):
            proba = classifier.decision_proba(X, **groups)
            return check_decisions(proba, n, f"decision_proba of {name}")
        # Fairlearn's randomised classifiers have probabilities in this method only
        predict_proba = getattr(classifier, "_pmf_predict", None)
        if predict_proba is not None:
            proba = np.asarray(predict_proba(X, **groups))[:, 1]
            return check_decisions(proba, n, f"_pmf_predict of {name}")
        labels = read_labels(classifier.predict(X, **groups), f"predict of {name}")
        check_length(labels, f"predict of {name}", n)
        known = self.reference.classes_.tolist()
        unknown = [value for value in distinct_labels(labels) if value not in known]
        if unknown:
            raise InputError(
                f"predict of {name} returned {unknown[0]!r}; the base model's labels are {known}."
            )
        return np.asarray(labels == self.reference.pos_label_, dtype=bool)


def _fitted(classifier: Any, rows: RawRows) -> Any:
    """Return a fitted classifier; an unfitted one is copied and fitted on the rows."""
    if not hasattr(classifier, "fit") or not hasattr(classifier, "get_params"):
        return classifier
    try:
        check_is_fitted(classifier)
    except NotFittedError:
        # a clone would lose the fit of a wrapped model
        copied = copy.deepcopy(classifier)
        groups = {}
        if _takes_groups(copied.fit) or type(copied).__module__.startswith("fairlearn."):
            groups = {"sensitive_features": rows.sensitive_features}
        return copied.fit(rows.X, rows.y, **groups)
    return classifier


def _takes_groups(method: Callable[..., Any]) -> bool:
    return "sensitive_features" in inspect.signature(method).parameters
