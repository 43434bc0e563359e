"""The contract that all updates share: a fitted base model in, scikit-learn's methods out.

`BaseUpdate` keeps the base model fitted through `clone`, reads the fit rows and counts changes.
The fit rows themselves are in `_fit_rows.py`.
"""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from functools import lru_cache, partial, wraps
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import get_tags
from sklearn.utils.validation import validate_data

from commod._data.arrays import Floats
from commod._data.base_model import (
    BaseScores,
    ScoreColumn,
    base_classes,
    base_scores,
    score_label,
    scores_digest,
    warn_about_base_model,
)
from commod._data.columns import Column, may_hold_codes, plain, read_columns
from commod._data.disclosure import MIN_CATEGORY_SIZE
from commod._data.groups import Groups, group_names_of, read_condition, read_groups, sensitive_names
from commod._data.labels import check_length, check_weights, read_labels
from commod._data.parameters import check_flag, check_names, check_numbers, check_seed
from commod._data.tables import check_same_rows
from commod._record.audit import LeftOutGroup, Request
from commod._text import did_you_mean, label_text, list_names, n_of, shown
from commod._words.update import GroupsLeftOut, UpdateFacts, status_text
from commod.exceptions import InputError, InputTypeError
from commod.metrics._constraint import Constraint
from commod.metrics._language import AllOf
from commod.metrics._named_constraints import read_constraints
from commod.scorecard import AllowedChanges
from commod.updates import _status as status
from commod.updates._fit_rows import (
    ComparedText,
    FitRows,
    check_both_decisions,
    counted_labels,
    outcomes_of,
    with_large_groups,
    with_strata,
)
from commod.updates._found_update import columns_of_codes
from commod.updates._interface import (
    Decisions,
    Grid,
    RawRows,
    ReadRows,
    RowEvaluation,
    Sweep,
    UpdateTags,
    further_constraints,
)
from commod.updates._notebook import notebook_html

READING_ATTRIBUTES = (
    *("classes_", "_pos_label", "_favorable_label", "n_features_in_", "feature_names_in_"),
    *("_columns_seen", "_code_columns", "_n_fit_rows", "_scores_digest"),
)
FLAGS = frozenset(  # parameters that are True or False; progress may be None
    ("progress", "aware", "concepts_by_column", "search")
)
STORED_AS = 3  # the form of a saved update; each form that differs has another number
COPIED = (list, set, dict, np.ndarray)  # parameters that a user may change in place
LARGEST_WEIGHT = 1e9  # of a loss, a strength or a learning rate: beyond it, sums overflow


read_text = lru_cache(maxsize=64)(read_constraints)  # an update asks it often


@dataclass(frozen=True)
class ChangedDecisions:
    """The decisions that an update changes: gains and losses, boolean arrays of shape (n,).

    Examples
    --------
    >>> import numpy as np
    >>> changes = ChangedDecisions(gain=np.array([True, False]), loss=np.array([False, False]))
    >>> changes.n_changes, changes.rate
    (1, 0.5)
    """

    gain: NDArray[np.bool_]
    loss: NDArray[np.bool_]

    @property
    def changed(self) -> NDArray[np.bool_]:
        """Return where the decision differs from the base model's."""
        return self.gain | self.loss

    @property
    def n_gains(self) -> int:
        """Return how many rows gain the favourable outcome."""
        return int(self.gain.sum())

    @property
    def n_losses(self) -> int:
        """Return how many rows lose the favourable outcome."""
        return int(self.loss.sum())

    @property
    def n_changes(self) -> int:
        """Return how many decisions change."""
        return self.n_gains + self.n_losses

    @property
    def rate(self) -> float:
        """Return the share of decisions that change, in [0, 1]."""
        return self.n_changes / len(self.gain)


class BaseUpdate(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """The base class of all updates; a subclass stores parameters, defines `fit` and `predict`.

    Examples
    --------
    >>> from commod.rivals import LPP
    >>> issubclass(LPP, BaseUpdate)
    True
    """

    estimator: Any
    constraints: Any
    threshold: float
    pos_label: Any
    favorable_label: Any
    min_group_size: int
    classes_: NDArray[Any]
    feature_names_in_: NDArray[Any]
    status_: str
    n_rows_: int
    change_rate_: float
    n_gains_: float
    n_losses_: float
    fairness_: float
    base_fairness_: float
    values_: dict[str, float]
    base_values_: dict[str, float]
    accuracy_: float
    base_accuracy_: float
    target_: float
    groups_left_out_: tuple[LeftOutGroup, ...]
    _facts: UpdateFacts
    _params_of_fit: dict[str, Any]
    _scores_digest: str | None
    _edit_column: Callable[[Column], Column] | None = None

    @property
    def _constraint(self) -> Constraint:
        """Return the constraint whose target moves: the first one."""
        return self._stated().constraints[0]

    def _stated(self) -> AllOf:
        """Return all constraints that the parameters state."""
        constraints, target = self._fitted_param("constraints"), self._fitted_param("target", None)
        is_plain = isinstance(constraints, str) and isinstance(target, int | float | None)
        return (read_text if is_plain else read_constraints)(constraints, target)

    def _bounds(self) -> tuple[float | None, ...]:
        """Return the bound of each constraint; None for the first one, whose target moves."""
        _, *others = self._stated().parts
        for part in self._stated().parts if others else ():
            if part.bound is None:
                raise InputError(
                    f"constraints has {len(others) + 1} parts, but {part.text!r} has no bound. "
                    "State a bound for each of them, such as 'demographic parity >= 0.8'.",
                    parameter="constraints",
                )
        return None, *(part.bound for part in others)

    # -- the base model stays as it is --------------------------------------------------------

    @property
    def _base_model(self) -> Any:
        """Return the base model that was passed to `fit`; it is never refitted."""
        return self._fitted_param("estimator")

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters of the update, without those of the base model."""
        return dict(super().get_params(deep=False))

    def set_params(self, **params: Any) -> Self:
        """Set parameters of the update; parameters of the base model are refused."""
        nested = sorted(name for name in params if name.startswith("estimator__"))
        if nested:
            raise InputError(
                f"{', '.join(nested)} would change the base model, which was validated and is "
                "never refitted. Fit another model and pass it as estimator=."
            )
        known = list(self.get_params())
        refuse_removed(type(self).__mro__, params)
        for name in params:
            if name not in known:
                raise InputError(
                    f"{type(self).__name__} has no parameter {name!r}; it has {', '.join(known)}."
                    f"{did_you_mean(name, known)}",
                    parameter=name,
                )
        super().set_params(**params)
        return self

    def __sklearn_clone__(self) -> Self:
        params = self.get_params()
        cloned = {
            name: clone(value, safe=False) for name, value in params.items() if name != "estimator"
        }
        copied = type(self)(estimator=self.estimator, **cloned)
        if hasattr(self, "_metadata_request"):  # stored by set_fit_request
            copied._metadata_request = copy.deepcopy(self._metadata_request)
        return copied

    def __sklearn_tags__(self) -> UpdateTags:
        inherited = super().__sklearn_tags__()
        tags = UpdateTags(**{f.name: getattr(inherited, f.name) for f in fields(inherited)})
        tags.classifier_tags.multi_class = False
        # updates read mixed columns and missing values, but the base model gets X untouched
        model, accepted = self._base_model, None
        if hasattr(model, "__sklearn_tags__") and not isinstance(model, type):
            accepted = get_tags(model).input_tags
        for name in ("allow_nan", "categorical", "string"):
            is_accepted = getattr(accepted, name, isinstance(model, ScoreColumn))
            setattr(tags.input_tags, name, is_accepted)
        return tags

    # -- the parameters of the last fit decide -----------------------------------------------------

    def _record_params(self) -> None:
        """Keep the present parameters. `fit` calls this before it reads any of them.

        A later `set_params` waits for the next `fit`.
        """
        self._params_of_fit = {
            name: copy.copy(value) if isinstance(value, COPIED) else value
            for name, value in self.get_params().items()
        }

    @contextmanager
    def _as_it_was_on_error(self) -> Iterator[None]:
        """Undo what a failing `fit` has set, so that an earlier fit goes on deciding."""
        before = dict(vars(self))
        try:
            yield
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def _fitted_params(self) -> dict[str, Any]:
        """Return the parameters that the update was fitted with; the present ones before `fit`."""
        return {**self.get_params(), **vars(self).get("_params_of_fit", {})}

    def _fitted_param(self, name: str, default: Any = None) -> Any:
        """Return one of `_fitted_params`; the default where the update has no such parameter."""
        fitted = vars(self).get("_params_of_fit", {})  # updates stored by version 0.1 have none
        return fitted[name] if name in fitted else getattr(self, name, default)

    # -- saved without the names of groups ---------------------------------------------------------

    def __getstate__(self) -> Any:
        """Return what a file may hold: counts where the update in memory names groups."""
        state: Any = {**super().__getstate__(), "_stored_as": STORED_AS}
        if "groups_left_out_" not in self.__dict__:
            return state
        return {
            **state,
            "status_": self._status_without_names(),
            "groups_left_out_": tuple(
                LeftOutGroup("", group.n, None, None) for group in self.groups_left_out_
            ),
            "_facts": self._facts.without_names(),
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Read what a file holds; refuse updates that an earlier version saved."""
        state = dict(state)
        if state.pop("_stored_as", None) != STORED_AS:
            raise InputError(
                f"This {type(self).__name__} was saved by another version of commod, which stores "
                "fitted updates in another form. Fit it again, or load its patch: patches of all "
                "versions can be read."
            )
        super().__setstate__(state)

    def __copy__(self) -> Self:
        return self._with_attributes(self.__dict__)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self._with_attributes(copy.deepcopy(self.__dict__, memo))

    def _with_attributes(self, attributes: Mapping[str, Any]) -> Self:
        """Return a copy in memory; unlike a saved update, it keeps the names of groups."""
        copied = type(self).__new__(type(self))
        copied.__dict__.update(attributes)
        return copied

    def _status_without_names(self) -> str:
        """Return `status_` with counts of groups in the place of their names and rates."""
        return status_text(self._facts.without_names())

    # -- parameters -----------------------------------------------------------------------------

    def _check_parameters(self) -> None:
        """Raise InputError for a parameter that cannot be used; a subclass checks its own."""
        params = self.get_params()
        for name in FLAGS & params.keys():
            check_flag(params[name], name, optional=name == "progress")
        if "random_state" in params:
            check_seed(params["random_state"])
        check_names(getattr(self, "locked_features", ()), "locked_features")

    # -- reading rows ---------------------------------------------------------------------------

    def _read_fit_rows(
        self, X: Any, y: Any, sensitive_features: Any, sample_weight: Any
    ) -> FitRows:
        """Return the checked and scored rows; also set `classes_` and the labels."""
        check_numbers("share", threshold=self.threshold)
        given = {"X": X, "y": y, "sensitive_features": sensitive_features}
        check_same_rows({**given, "sample_weight": sample_weight})
        check_numbers("count", min_group_size=self.min_group_size)
        self._bounds()  # refuses constraints that cannot be used
        columns = self._read_columns(X)
        n_rows = len(columns[0])
        labels = None if y is None else read_labels(y, "y")
        if labels is not None:
            check_length(labels, "y", n_rows)
        groups = read_groups(sensitive_features, n_rows, getattr(self, "unknown_groups", "error"))
        weight = check_weights(sample_weight, n_rows)
        names = sensitive_names(sensitive_features)
        read = partial(self._fit_base, X, columns), partial(read_condition, X)
        rows = self._as_fit_rows(labels, groups, names, weight, *read)
        known = {"classes": self.classes_, "pos_label": self._pos_label, "label": rows.label}
        warn_about_base_model(self.estimator, X, rows.base, **known)
        features = self._keep_features(columns)
        self._n_fit_rows, self._scores_digest = n_rows, scores_digest(rows.base.scores)
        return replace(rows, columns=features)

    def _read_columns(self, X: Any) -> list[Column]:
        columns = read_columns(X, skip=self._unread())
        validate_data(self, X, skip_check_array=True, reset=True)
        return columns

    def _keep_features(self, columns: Sequence[Column]) -> list[Column]:
        """Return the columns that the update may use, and remember their names."""
        features = self._features(columns)
        self._columns_seen = [column.name for column in features]
        self._code_columns = [column.name for column in features if may_hold_codes(column)]
        return features

    def _as_fit_rows(
        self,
        labels: NDArray[Any] | None,
        groups: Groups,
        names: tuple[str, ...] | None,
        weight: Floats,
        score: Callable[[], BaseScores],
        condition: Callable[[str], Groups],
        **counted: Any,
    ) -> FitRows:
        """Return checked rows without columns; also set `classes_` and the labels.

        `names` are those of the sensitive columns. `score` returns the base scores, and `condition`
        reads a column that constraints are within. Rows that stand for many people come with
        `people` and `squares`.
        """
        self.classes_ = base_classes(self.estimator, labels)
        self._set_labels()
        constraints = self._stated().constraints
        label = outcomes_of(labels, self.classes_, self._pos_label, constraints)
        base = score()
        everybody = np.ones(len(weight), dtype=bool)
        group_names = group_names_of(groups.labels, names)
        rows = FitRows([], base, label, groups, everybody, weight, group_names, **counted)
        rows = with_strata(with_large_groups(rows, self.min_group_size), constraints, condition)
        both = plain(self._other_label(self._pos_label)), plain(self._pos_label)
        check_both_decisions(rows, self._constraint, both)
        return rows

    def _take_reading(self, other: BaseUpdate) -> None:
        """Copy the attributes that reading the fit rows has set on another update.

        The parameters of the fit are this update's own.
        """
        self._record_params()
        for name in READING_ATTRIBUTES:
            if hasattr(other, name):
                setattr(self, name, getattr(other, name))

    def _set_labels(self) -> None:
        self._pos_label, self._favorable_label = counted_labels(
            self.pos_label, self.favorable_label, self.classes_
        )
        self._score_label()  # refuses a label that the base model does not know

    def _score_label(self) -> Any:
        """Return the label that a high score predicts; see `BaseScores`."""
        return score_label(self._base_model, self.classes_)

    def _unread(self) -> frozenset[str]:
        """Return the locked columns: only the base model reads them, so they may hold anything.

        A locked column of scores is not among them: it is read to get the scores.
        """
        locked = self._fitted_param("locked_features", ())
        return check_names(locked, "locked_features") - self._score_column()

    def _score_column(self) -> frozenset[str]:
        """Return the name of the column of scores, if the base model is one."""
        model = self._base_model
        return frozenset({model.name}) if isinstance(model, ScoreColumn) else frozenset()

    def _check_locked(self, columns: Sequence[Column]) -> None:
        """Refuse locked features that X does not have; `columns` has no column of scores."""
        locked, names = self._fitted_param("locked_features", ()), [c.name for c in columns]
        known = {*names, *self._score_column()}
        unknown = sorted(check_names(locked, "locked_features").difference(known))
        if unknown:
            suggestions = "".join(did_you_mean(name, names) for name in unknown[:3])
            raise InputError(
                f"locked_features={shown(locked)} names columns that X does not have: "
                f"{list_names(unknown)}."
                f"{suggestions} X has {n_of(len(names), 'column')}: {list_names(names)}.",
                parameter="locked_features",
            )

    def _features(self, columns: Sequence[Column]) -> list[Column]:
        """Return the columns that an update may use: all but a column of scores."""
        if score := self._score_column():
            columns = [c for c in columns if c.name not in score]
        return list(columns if self._edit_column is None else map(self._edit_column, columns))

    def _base(self, X: Any, columns: Sequence[Column]) -> BaseScores:
        return base_scores(
            self._base_model,
            X,
            columns,
            classes=self.classes_,
            pos_label=self._pos_label,
            threshold=float(self._fitted_param("threshold")),
        )

    def _fit_base(self, X: Any, columns: Sequence[Column]) -> BaseScores:
        """Return the scores of the fit rows."""
        return self._base(X, columns)

    # -- figures on the fit rows ----------------------------------------------------------------

    def _store_outcome(self, rows: FitRows, positive: Decisions) -> None:
        """Store the figures on the fit rows and the status.

        `positive` (n,) holds decisions or, where a method is randomised, the probability of a
        positive one. The figures are then expected values. Totals do not count people of groups
        left out with fewer than five rows.
        """
        before, counted = rows.base.decisions, rows.in_totals
        each = None if rows.people is None else rows.people[counted]
        raised, lowered = expected_moves(before[counted], positive[counted], each)
        gains, losses = (raised, lowered) if self._raising_is_a_gain() else (lowered, raised)
        self.n_rows_ = rows.count(counted)
        self.change_rate_ = (gains + losses) / self.n_rows_
        self.n_gains_, self.n_losses_ = gains, losses
        constraints, text = self._stated().constraints, self._compared_text()
        self.base_values_ = {one.name: rows.fairness(one, before) for one in constraints}
        self.values_ = {one.name: rows.fairness(one, positive) for one in constraints}
        first = constraints[0]
        self.base_fairness_ = self.base_values_[first.name]
        self.fairness_ = self.values_[first.name]
        people = replace(rows, weight=rows.weight * counted)
        self.base_accuracy_, self.accuracy_ = people.accuracy(before), people.accuracy(positive)
        self.outscoring_ = status.outscoring_figures(rows, positive, self._raising_is_a_gain())
        self.groups_left_out_ = status.groups_left_out(rows, positive)
        goal, *others = status.goals_of(
            self._stated().parts, text, rows, self.base_values_, self.values_
        )
        goal = replace(goal, meaning=text.spelled)
        if first.has_other_ratio:
            other = [
                rows.fairness(first, np.subtract(1.0, decisions, dtype=np.float64))
                for decisions in (before, positive)
            ]
            goal = replace(goal, other_metric=text.other_metric, other=(other[0], other[1]))
        self._facts = UpdateFacts(
            goals=(goal, *others),
            rows="fit rows",
            n_rows=self.n_rows_,
            change_rate=self.change_rate_,
            n_gains=gains,
            n_losses=losses,
            accuracy=(self.base_accuracy_, self.accuracy_),
            outcome=label_text(None, plain(self._pos_label)),
            rates=status.positive_rates(rows, positive),
            outscoring=status.as_estimates(self.outscoring_),
            left_out=self._left_out(rows, positive),
            notes=tuple(filter(None, [self._sentence().strip()])),
            smallest_category=MIN_CATEGORY_SIZE,
        )
        self.status_ = status_text(self._facts)

    def _left_out(
        self, rows: FitRows, positive: Decisions, rows_text: str = ""
    ) -> GroupsLeftOut | None:
        """Return `groups_left_out_` as facts, with the metric over all groups of these rows."""
        given = self.groups_left_out_, rows, positive, self.min_group_size, rows_text
        return status.left_out_facts(self._constraint, *given)

    def _sentence(self) -> str:
        """Return what a method says in its own words; empty by default."""
        return ""

    def _note(self, *notes: str) -> None:
        """Put remarks first among those of `status_`."""
        self._facts = replace(self._facts, notes=(*notes, *self._facts.notes))
        self.status_ = status_text(self._facts)

    def _compared_text(self) -> ComparedText:
        """Return which metric of which label is compared, in words."""
        other = self._other_label(self._pos_label)
        return ComparedText(self._constraint, plain(self._pos_label), plain(other))

    def _html_repr(self) -> str:
        """Return what `_repr_html_` shows in a notebook: scikit-learn's diagram until fitted."""
        diagram = str(super()._html_repr())
        if not hasattr(self, "status_"):
            return diagram
        card, weights = (getattr(self, name, None) for name in ("scorecard_", "concept_weights_"))
        codes = () if card is None else columns_of_codes(card, self._code_columns)
        shown = type(self).__name__, self._facts, codes, card, weights
        return notebook_html(*shown, self._allowed_changes().max_margin, diagram)

    # -- changes --------------------------------------------------------------------------------

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy of `predict`, in [0, 1]."""
        check_same_rows({"X": X, "y": y, "sample_weight": sample_weight})
        return float(super().score(X, y, sample_weight))

    def _labels_of(self, decisions: NDArray[np.bool_]) -> NDArray[Any]:
        """Return decisions as labels of the base model, shape (n,)."""
        negative = self._other_label(self._pos_label)
        return np.where(decisions, self._pos_label, negative).astype(self.classes_.dtype)

    def _other_label(self, label: Any) -> Any:
        return self.classes_[self.classes_ != label][0]

    def _changes(self, before: NDArray[np.bool_], after: NDArray[np.bool_]) -> ChangedDecisions:
        raised, lowered = ~before & after, before & ~after
        moved = (raised, lowered) if self._raising_is_a_gain() else (lowered, raised)
        return ChangedDecisions(*moved)

    def _raising_is_a_gain(self) -> bool:
        return bool(self._favorable_label == self._pos_label)

    # -- internal interface: what studies, explanations and displays call (see _interface.py) ------

    @abstractmethod
    def _read_rows(self, X: Any, sensitive_features: Any = None) -> ReadRows:
        """Return new rows, read once, for `_decide_rows` and `_evaluate_rows`.

        Only an update that decides by group looks at `sensitive_features`.
        """

    @abstractmethod
    def _decide_rows(self, rows: Any) -> Decisions:
        """Return decisions on rows that were read, or probabilities of a positive one, (n,)."""

    @abstractmethod
    def _evaluate_rows(self, rows: Any) -> RowEvaluation:
        """Return final decisions, edited scores and ratio on rows that were read."""

    @abstractmethod
    def _sweep(
        self, rows: RawRows, targets: Sequence[float] | None = None, grid: Grid | None = None
    ) -> Sweep:
        """Return several settings of this update, fitted on the same rows in one computation.

        `targets` and `grid` are those of `commod.frontier`. The update itself stays as it is.
        """

    def _read_base(self, X: Any) -> BaseScores:
        """Return the base model's scores of new rows; groups are not needed."""
        return self._base(X, read_columns(X, skip=self._unread()))

    def _unread_columns(self) -> frozenset[str]:
        """Return the columns that the update never uses: locked features and a score column."""
        return self._unread() | self._score_column()

    @abstractmethod
    def _as_fitted(self, column: Column) -> Column:
        """Return a column in the kind that it had in the fit rows; a changed type is refused.

        A column that the update does not know is returned as it is.
        """

    def _allowed_changes(self) -> AllowedChanges:
        """Return in which directions the update may change decisions."""
        return AllowedChanges()

    def _score_columns(self, scores: NDArray[np.float64]) -> list[Column]:
        """Return the columns that the update computes from base scores: none by default."""
        return []

    def _asked_changes(self) -> AllowedChanges:
        """Return which changes the user allows; the update may keep to fewer of them."""
        return self._allowed_changes()

    def request(self) -> Request:
        """Return what the user asked of this update, as a record."""
        return Request(
            constraints=self._constraint.name,
            threshold=float(self._fitted_param("threshold")),
            pos_label=plain(self._pos_label),
            favorable_label=plain(self._favorable_label),
            score_is_for=plain(self._score_label()),
            further=further_constraints(self._stated()),
        )

    def _edit_columns(self, edit: Callable[[Column], Column]) -> Self:
        """Let the update read every column through `edit`; the base model gets X as it is."""
        self._edit_column = edit
        return self


def expected_moves(
    before: NDArray[np.bool_], positive: Decisions, people: NDArray[np.float64] | None = None
) -> tuple[float, float]:
    """Return how many people are raised and how many lowered; expected numbers for probabilities.

    Examples
    --------
    >>> expected_moves(np.array([False, False, True]), np.array([0.5, 0.0, 1.0]))
    (0.5, 0.0)
    """
    if positive.dtype == np.bool_:
        after, each = positive.astype(np.bool_), 1 if people is None else people
        return int(((after & ~before) * each).sum()), int(((before & ~after) * each).sum())
    return float(positive[~before].sum()), float((1 - positive[before]).sum())


def check_update(given: object, caller: str, alternative: str = "") -> None:
    """Refuse an object that is not an update; `alternative` says what to call for other models.

    Examples
    --------
    >>> check_update(1, "stability")
    Traceback (most recent call last):
    commod.exceptions.InputError: stability takes a ControlledDebiaser, a COMMOD or one of
    commod.rivals; got int.
    """
    if not isinstance(given, BaseUpdate):
        raise InputError(
            f"{caller} takes a ControlledDebiaser, a COMMOD or one of commod.rivals; got "
            f"{type(given).__name__}. {alternative}".rstrip()
        )


# ---------------------------------------------------------------------------------------------
# Name the successor of each parameter and value that an earlier version had


P = ParamSpec("P")
Owner = TypeVar("Owner")

IN_TRAINING = (
    *("hidden", "batch_size", "learning_rate", "adversary_hidden", "adversary_steps"),
    *("adversary_learning_rate", "adaptive_fairness", "warmup_epochs", "ramp_epochs", "init"),
    *("concepts_by_column", "reads_score", "progress"),
)
SUCCESSORS = {  # by class and parameter
    "COMMOD": {
        **{name: f"Pass training={{{name!r}: ...}}." for name in IN_TRAINING},
        "condition_on_logit": "Pass training={'reads_score': ...}.",
    },
    "ControlledDebiaser": {
        "numeric": "Pass points='per unit' or 'per bin'.",
        "fit_rows_are_new": "If the fit rows are new to the base model, silence a "
        "commod.exceptions.SeenRowsWarning.",
        "reads_score": "Pass borderline=0 for the fewest changes, wherever people score.",
        "sparsity": "Pass max_lines for a shorter scorecard.",
        "accuracy_weight": "Pass borderline, and y to fit: the most accurate update is taken.",
        "n_concepts": "The scorecard has two concepts. Pass n_concepts to commod.explain for more.",
        "sample": "Leave it out: points come from all rows, or from a million of them.",
        "random_state": "Leave it out: no step is random.",
        "progress": "Leave it out: a fit takes moments.",
    },
}
REMOVED_VALUES = {"points": {"free": "Pass 'auto', 'per unit' or 'per bin'."}}  # by parameter


def successor_of(estimator: str, name: str) -> str:
    """Return what replaces a removed parameter of an estimator; empty if it had none of this name.

    Examples
    --------
    >>> successor_of("COMMOD", "ramp_epochs")
    "Pass training={'ramp_epochs': ...}."
    >>> successor_of("COMMOD", "epochs")
    ''
    """
    return SUCCESSORS.get(estimator, {}).get(name, "")


def refuse_removed(estimators: Iterable[type], names: Iterable[str]) -> None:
    """Raise InputError for the first name that is a removed parameter of one of the classes."""
    for estimator in estimators:
        for name in names:
            if successor := successor_of(estimator.__name__, name):
                text = f"{estimator.__name__} has no parameter {name!r} since version 0.3."
                raise InputTypeError(f"{text} {successor}", parameter=name)


def refuse_removed_value(name: str, value: object) -> None:
    """Raise InputError for a value that a parameter took in an earlier version."""
    successors = REMOVED_VALUES.get(name, {})
    if isinstance(value, str) and value in successors:
        text = f"{name}={value!r} is not known since version 0.3. {successors[value]}"
        raise InputError(text, parameter=name)


def naming_successors(
    init: Callable[Concatenate[Owner, P], None],
) -> Callable[Concatenate[Owner, P], None]:
    """Let a constructor refuse removed parameters with a sentence that names their successors."""

    @wraps(init)
    def checked(self: Owner, /, *args: P.args, **params: P.kwargs) -> None:
        refuse_removed(type(self).__mro__, params)
        init(self, *args, **params)

    return checked
