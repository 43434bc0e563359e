"""Compare methods: fit them on the same rows, measure them on the same rows, and draw them."""

from __future__ import annotations

import copy
import inspect
import warnings
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from numbers import Real
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from commod._data.groups import read_groups
from commod._data.labels import check_length, distinct_labels, read_labels
from commod._data.parameters import check_flag, check_number_parameter
from commod._data.tables import n_rows_of
from commod._study.evaluation import (
    EvaluationRows,
    as_decisions,
    choose_evaluated,
    compared_groups,
    each_warning_once,
    read_evaluation_rows,
)
from commod._study.frontier import Frontier, Point, frontier
from commod._study.pictures import draw_method, zoom
from commod._text import Table, n_of, number, percent, snippet, visible
from commod.exceptions import DataWarning, InputError
from commod.metrics._language import AllOf
from commod.metrics._named_constraints import read_constraints
from commod.rivals._lineup import Lineup
from commod.rivals._rows import DecisionRows, RivalFitRows, check_decisions
from commod.rivals.base import Rival
from commod.updates._interface import Decisions, FittedCandidate, RawRows, progress_bar
from commod.updates.base import BaseUpdate

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

TITLES = {False: "decide without the group", True: "need the group to decide"}
SHARED_PARAMETERS = ("constraints", "min_group_size", "threshold", "pos_label", "favorable_label")
LINE = [
    *("strength", "fairness", "accuracy", "change_rate", "n_changes", "n_gains", "n_losses"),
    *("limit", "accuracy_loss", "outscoring", "outscoring_losses"),
]
DEFAULT_LEVELS = (0.6, 0.7, 0.8, 0.9)  # P-rules
DISPARITY_SHARES = (0.75, 0.5, 0.25)  # shares of the base model's disparity
LIMIT_NAMES = ("exact limit", "limit with random draws")  # in whole people, in expectation


def compare(
    methods: Mapping[str, Any] | Iterable[Any],
    X: Any,
    y: Any = None,
    *,
    sensitive_features: Any = None,
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
        The fit rows, as in an update's `fit`. The group of every person must be known: for
        probabilities of groups use `commod.frontier`.
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
    check_flag(progress, "progress", optional=True)
    named = _named(methods)
    _check_known_groups(named.values(), X, sensitive_features)
    shared = (constraints, min_group_size, threshold, pos_label, favorable_label)
    settings = dict(zip(SHARED_PARAMETERS, shared, strict=True))
    reference = _reference(named.values(), estimator, settings)
    fit_rows = RawRows(X, y, sensitive_features)
    given = RawRows(X_eval, y_eval, sensitive_features_eval)
    frontiers: dict[str, Frontier] = {}
    failures: dict[str, str] = {}
    with each_warning_once(), progress_bar("compare", progress, "methods") as report:
        # an error in the rows is raised before any method is fitted
        measured, rows_word = choose_evaluated(fit_rows, given)
        reference.fit(X, y, sensitive_features=sensitive_features)
        base, compared = reference._read_rows(measured.X).base, compared_groups(reference, fit_rows)
        rows = read_evaluation_rows(reference, compared, base, measured, rows_word)
        for done, (name, method) in enumerate(named.items()):
            try:
                if isinstance(method, BaseUpdate):
                    update = clone(method)
                    if "progress" in update.get_params():
                        update.set_params(progress=False)
                    told = {"describe": False, **fit_rows.by_name(), **given.by_name("_eval")}
                    frontiers[name] = frontier(update, **told)
                else:
                    known = measured, rows, reference
                    frontiers[name] = _classifier_frontier(method, fit_rows, *known)
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
    return Comparison(frontiers, rows, failures, updates, left_out)


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

    def _stated(self) -> AllOf:
        """Return all constraints: a base model changes nothing, so it stands beside any of them."""
        return read_constraints(self._fitted_param("constraints"))

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
    first, *others = updates
    if estimator is not None:
        settings["estimator"] = estimator
    shared = (*SHARED_PARAMETERS, "estimator")
    for other in others:
        own = {name: getattr(other, name) for name in shared}
        _check_same(type(other).__name__, first, own)
    _check_same("compare", first, settings)
    return _BaseModel(**{name: getattr(first, name) for name in shared})


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


def _classifier_frontier(
    classifier: Any, fit_rows: RawRows, given: RawRows, rows: EvaluationRows, base: _BaseModel
) -> Frontier:
    """Return the frontier of a classifier that is no update: a single point.

    `given` are the rows that it is measured on, as the user passed them; `rows` are the same.
    """
    begin = perf_counter()
    fitted = _fitted(classifier, fit_rows)
    fit_seconds = perf_counter() - begin
    needs_groups = _takes_groups(fitted.predict)
    groups = {"sensitive_features": given.sensitive_features} if needs_groups else {}
    after = as_decisions(_decisions(fitted, given.X, groups, base))
    return Frontier(
        [Point(FittedCandidate({}, fitted), after)],
        rows,
        fit_seconds=fit_seconds,
        needs_sensitive_features=needs_groups,
    )


def _decisions(classifier: Any, X: Any, groups: dict[str, Any], base: _BaseModel) -> Decisions:
    """Return decisions, or probabilities of a positive one where a classifier has them."""
    name, n = type(classifier).__name__, n_rows_of(X)
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
    known = base.classes_.tolist()
    unknown = [value for value in distinct_labels(labels) if value not in known]
    if unknown:
        raise InputError(
            f"predict of {name} returned {unknown[0]!r}; the base model's labels are {known}."
        )
    return np.asarray(labels == base._pos_label, dtype=bool)


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


# ---------------------------------------------------------------------------------------------
# What is returned: the frontiers of the methods, and the changes that each needs to be as fair


class Comparison:
    """The frontiers of several methods on the same rows; made by `compare`.

    Attributes
    ----------
    frontiers : dict of str to Frontier
        The updates of each method; `select` of a frontier returns a fitted update.
    constraints : str
        The fairness constraint.
    base_fairness, base_accuracy : float
        The base model's figures on the same rows.
    failures : dict of str to str
        The error of each method that could not be fitted.
    left_out : dict of str to str
        Why `commod.rivals.lineup` left a method out; empty for methods that the user chose.

    Examples
    --------
    >>> from commod import ControlledDebiaser, compare
    >>> from commod.datasets import make_biased
    >>> from commod.rivals import MinimalFlip
    >>> from sklearn.linear_model import LogisticRegression
    >>> data = make_biased(800, random_state=0)
    >>> model = LogisticRegression().fit(data.data, data.target)
    >>> comparison = compare(
    ...     [ControlledDebiaser(model), MinimalFlip(model)],
    ...     data.data,
    ...     data.target,
    ...     sensitive_features=data.sensitive_features,
    ... )
    >>> list(comparison.frontiers)
    ['ControlledDebiaser', 'MinimalFlip']
    """

    def __init__(
        self,
        frontiers: Mapping[str, Frontier],
        rows: EvaluationRows,
        failures: Mapping[str, str],
        updates: Collection[str],
        left_out: Mapping[str, str] | None = None,
    ) -> None:
        self.frontiers = dict(frontiers)
        self.failures = dict(failures)
        self.left_out = dict(left_out or {})
        self._updates = frozenset(updates)
        self.constraints = rows.constraint.name
        self.base_fairness, self.base_accuracy = rows.base_fairness, rows.base_accuracy
        self._rows = rows

    def __repr__(self) -> str:
        text = (
            f"Comparison of {n_of(len(self.frontiers), 'method')}, {self._rows.metric} "
            f"{self.base_fairness:.3f} before, measured on {self._rows.name}\n"
            f"{self.changes_needed().to_string(float_format='{:.3f}'.format, na_rep='-')}"
        )
        for name, reason in (self.failures | self.left_out).items():
            text += f"\n{name} is left out: {reason}"
        return visible(text, keep="\n")

    def _repr_html_(self) -> str:
        sentence = (
            f"The base model has {self._rows.metric} {number(self.base_fairness, 3)} on the "
            f"{self._rows.name}. For each method, the best update on these rows counts. plot() "
            "draws all."
        )
        needed = self.changes_needed()
        levels = needed.columns[1:]
        cells = [
            (
                name,
                "yes" if line["needs group"] else "no",
                *("not reached" if np.isnan(line[c]) else percent(line[c]) for c in levels),
            )
            for name, line in needed.iterrows()
        ]
        sign = "≥" if self._rows.constraint.higher_is_fairer else "≤"
        header = ("method", "needs the group", *(f"{sign} {level:g}" for level in levels))
        tables: list[Table] = [
            (f"Share of decisions changed to reach each {self._rows.metric}", header, cells)
        ]
        for caption, noun, methods in (
            ("Methods that could not be fitted", "error", self.failures),
            ("Methods that are left out", "reason", self.left_out),
        ):
            if methods:
                tables.append((caption, ("method", noun), list(methods.items())))
        title = f"Comparison of {n_of(len(self.frontiers), 'method')}"
        return snippet(title, [sentence], tables)

    def frame(self) -> pd.DataFrame:
        """Return one line per update of every method as a pandas frame.

        Columns:

        - `method`;
        - `strength`: a rival's strength, COMMOD's lambda_fair, ControlledDebiaser's target; NaN for
          a classifier that has none of them;
        - `fairness`, `accuracy`, `change_rate`, `n_changes`, `n_gains`, `n_losses`: expected
          figures where the update is randomised;
        - `limit`: the fewest changes for the same fairness, as a share;
        - `accuracy_loss`: the base model's accuracy minus `accuracy`;
        - `outscoring`, `outscoring_losses`: the share of pairs of the same group in which a person
          who gains has a higher base score than one who stays rejected, and in which a person who
          loses has a lower one than one who does not; see `Frontier.frame`;
        - `needs_sensitive_features`: whether deciding needs the group;
        - `randomised`;
        - `collapsed`: fairness is undefined because nobody is decided positively;
        - `fit_seconds`: of all updates of the method together.
        """
        import pandas as pd

        frames = [_frame_of(name, curve) for name, curve in self.frontiers.items()]
        return pd.concat(frames, ignore_index=True)

    def changes_needed(
        self,
        levels: Sequence[float] | None = None,
        *,
        max_accuracy_loss: float | None = None,
    ) -> pd.DataFrame:
        """Return the fewest changes with which each method reaches each level of fairness.

        Parameters
        ----------
        levels : sequence of float, default=None
            Floors on the P-rule or ceilings on the disparity. None: those of 0.6, 0.7, 0.8 and 0.9
            that are above the base model's P-rule, or 75 %, 50 % and 25 % of its disparity.
        max_accuracy_loss : float, default=None
            Count only updates that lose at most this accuracy against the base model.

        Returns
        -------
        DataFrame
            One line per method and one column per level: the share of changed decisions. NaN where
            no update of the method reaches the level; 0 where the base model reaches it and the
            method is an update. With several constraints, only updates that keep the bounds of the
            others count. The last lines are the exact limit at any accuracy: in whole
            people and, where a method is randomised, in expectation.

        Notes
        -----
        For each method, the best update on these very rows counts. The figures compare methods;
        as a promise for one update they are too good.
        """
        import pandas as pd

        levels = self._default_levels() if levels is None else self._read_levels(levels)
        floor = -np.inf
        if max_accuracy_loss is not None:
            if np.isnan(self.base_accuracy):
                raise InputError(
                    "max_accuracy_loss needs true labels, which are not known on these rows."
                )
            floor = self.base_accuracy - check_number_parameter(
                max_accuracy_loss, "max_accuracy_loss", Real, min_val=-1, max_val=1
            )
        table = {
            name: [self._fewest(name, level, floor) for level in levels] for name in self.frontiers
        }
        needs = {name: curve.needs_sensitive_features for name, curve in self.frontiers.items()}
        randomised = any(curve.randomised for curve in self.frontiers.values())
        for name, in_expectation in zip(LIMIT_NAMES[: 1 + randomised], (False, True), strict=False):
            table[name] = [
                self._rows.limit_at(level, in_expectation=in_expectation) for level in levels
            ]
            needs[name] = True
        frame = pd.DataFrame.from_dict(table, orient="index", columns=levels)
        frame.insert(0, "needs group", pd.Series(needs))
        return frame.rename_axis(index="method", columns=self._rows.metric)

    def plot(self) -> Figure:
        """Draw changes and accuracy against fairness, one column for each kind of method.

        Methods that decide without the group are on the left, those that need it on the right. A
        dot is one update. A line joins the updates that no other one of the method beats. The exact
        limit is black, and a cross marks the base model.
        """
        import matplotlib.pyplot as plt
        from matplotlib.lines import Line2D
        from matplotlib.ticker import PercentFormatter

        frame, limit_curve, constraint = self.frame(), self.limit_curve(), self._rows.constraint
        kinds = sorted(frame["needs_sensitive_features"].unique())
        figure, grid = plt.subplots(
            2,
            len(kinds),
            figsize=(1.5 + 5.5 * len(kinds), 8),
            sharex=True,
            sharey="row",
            squeeze=False,
            layout="constrained",
        )
        for (top, bottom), needs_group in zip(grid.T, kinds, strict=True):
            of_kind = frame[frame["needs_sensitive_features"] == needs_group]
            for i, (name, lines) in enumerate(of_kind.groupby("method", sort=False)):
                style = {"color": f"C{i % 10}", "ls": ("-", "--", ":")[i // 10 % 3]}
                draw_method(top, bottom, str(name), lines, style, constraint.higher_is_fairer)
            top.plot(*limit_curve, color="black", lw=1.4, label="fewest possible changes", zorder=3)
            for ax, value in ((top, 0.0), (bottom, self.base_accuracy)):
                ax.plot([self.base_fairness], [value], "x", color="black", ms=8, zorder=4)
            top.set_title(TITLES[bool(needs_group)])
            top.legend(frameon=False, fontsize=8, loc="upper left")
            bottom.set_xlabel(f"{self._rows.metric} on the {self._rows.rows_word}")
        top, bottom = grid[:, 0]
        top.set_ylabel("share of decisions changed")
        top.yaxis.set_major_formatter(PercentFormatter(1.0))
        bottom.set_ylabel("accuracy")
        if frame["accuracy"].isna().all():
            middle = {"ha": "center", "transform": bottom.transAxes}
            bottom.text(0.5, 0.5, "true labels not known", **middle)
        marks = [
            Line2D([], [], color="grey", marker="o", ms=4, alpha=0.5, ls="", label="one update"),
            Line2D([], [], color="grey", lw=1.3, label="updates that no other of its method beats"),
            Line2D([], [], color="black", marker="x", ms=8, ls="", label="base model"),
        ]
        below: Any = {"loc": "outside lower center", "ncols": 3, "frameon": False, "fontsize": 8}
        figure.legend(handles=marks, **below)
        zoom(grid, self.base_fairness, constraint.ideal)
        return figure

    def limit_curve(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return levels from the base model's fairness to parity, and the limit at each.

        The limit is in expectation: a smooth curve that no method is below. In whole people it
        would have steps, and a jump where rates must be exactly equal.
        """
        levels = np.linspace(self.base_fairness, self._rows.constraint.ideal, 60)
        limits = [self._rows.limit_at(level, in_expectation=True) for level in levels.tolist()]
        return levels, np.array(limits)

    def _read_levels(self, levels: Any) -> list[float]:
        largest = self._rows.constraint.largest
        try:
            numbers = [float(level) for level in levels]
        except (TypeError, ValueError):
            numbers = [np.nan]
        if not all(0 <= level <= largest for level in numbers):
            raise InputError(
                f"levels must be a list of numbers from 0 to {largest:g}, values of the "
                f"{self._rows.metric}; got {levels!r}."
            )
        return numbers

    def _fewest(self, name: str, level: float, floor: float) -> float:
        """Return the fewest changes of an update at least as fair as `level`, NaN if none is.

        Only updates that keep the constraints that stand count.
        """
        frame = self.frontiers[name].frame()
        is_kept = [self._rows.keeps_others(line) for line in frame.to_dict("records")]
        names = ["fairness", "accuracy", "change_rate"]
        fairness, accuracy, changes = frame[names].to_numpy(dtype=np.float64).T
        if name in self._updates:  # an update can always be left out
            fairness = np.append(fairness, self.base_fairness)
            accuracy, changes = np.append(accuracy, self.base_accuracy), np.append(changes, 0.0)
            is_kept.append(self._rows.keeps_others(self._rows.other_values(self._rows.before)))
        is_good = self._rows.constraint.is_met(fairness, level) & np.array(is_kept)
        is_good = is_good & ((accuracy >= floor) | (floor == -np.inf))
        return float(changes[is_good].min()) if is_good.any() else float("nan")

    def _default_levels(self) -> list[float]:
        is_ratio, base = self._rows.constraint.is_ratio, self.base_fairness
        if np.isnan(base):
            return list(DEFAULT_LEVELS) if is_ratio else [0.1]
        if is_ratio:
            return [level for level in DEFAULT_LEVELS if level > base] or [0.95]
        return [round(share * base, 3) for share in DISPARITY_SHARES] if base else [0.0]


def _frame_of(name: str, curve: Frontier) -> pd.DataFrame:
    """Return the lines of one method."""
    figures = curve.frame()
    strength = next(c for c in ("strength", "lambda_fair", "target") if c in figures)
    figures["strength"] = figures[strength]
    figures["accuracy_loss"] = curve.base_accuracy - figures["accuracy"]
    frame = figures[LINE].assign(
        needs_sensitive_features=curve.needs_sensitive_features,
        randomised=curve.randomised,
        collapsed=figures["fairness"].isna(),
        fit_seconds=curve.fit_seconds,
    )
    frame.insert(0, "method", name)
    return frame
