"""The contract of a rival: a subclass defines `_learn` and `_decide`; all else is shared.

A rival is an update, as COMMOD and ControlledDebiaser are, with one parameter `strength`.

1. `fit` checks the rows and calls `_learn`, which stores what the rival needs to decide.
2. `predict` reads new rows and calls `_decide`, which returns decisions or probabilities.
3. Strength 0 changes no decision.

`Rival` decides from X alone, `AwareRival` from X and the group. docs/rivals.md has an example.
"""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit
from sklearn.base import clone
from sklearn.metrics import accuracy_score
from sklearn.utils import Tags, _safe_indexing, check_random_state
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import _num_samples, check_is_fitted, validate_data

from commod._data.arrays import Floats, Mask
from commod._data.columns import Column, Kind, as_fitted, read_columns
from commod._data.disclosure import MIN_CATEGORY_SIZE
from commod._data.encoding import Encoding, TermTable, learn_encoding
from commod._data.groups import sensitive_names
from commod._data.parameters import check_choice, check_number
from commod._data.tables import check_same_rows
from commod._solvers.threads import single_blas_thread
from commod.exceptions import InputError
from commod.metrics._constraint import ALL_CONSTRAINTS, Constraint, get_constraint
from commod.metrics._language import AllOf
from commod.rivals._rows import (
    DecisionRows,
    RivalFitRows,
    check_decisions,
    read_fitted_groups,
    rival_fit_rows,
)
from commod.scorecard import edited_scores, on_their_side
from commod.updates._fit_rows import check_group_columns
from commod.updates._interface import (
    Decisions,
    FittedCandidate,
    Grid,
    RawRows,
    RowEvaluation,
    Sweep,
    UpdateTags,
    check_no_bounds,
    read_grid,
)
from commod.updates.base import LARGEST_WEIGHT, BaseUpdate, ChangedDecisions


def _compared_labels(constraint: Constraint) -> tuple[bool | None, ...]:
    """Return the true label that each compared rate is restricted to; None means all rows."""
    return tuple(row.label for row in constraint.rate_rows)


def number(default: Any, **limits: Any) -> Any:
    """Return a parameter of a rival: a number within the limits that `check_number` takes."""
    return field(default=default, metadata=limits)


def choice(default: str, *others: str) -> Any:
    """Return a parameter of a rival: one of some texts."""
    return field(default=default, metadata={"choices": (default, *others)})


OWN_TAGS = tuple(tag.name for tag in fields(UpdateTags) if tag not in fields(Tags))


@dataclass(eq=False, repr=False, kw_only=True)
class Rival(BaseUpdate):
    """An update that decides from X alone. A subclass defines `_learn` and `_decide`.

    The fields below are the parameters that all methods have. A subclass adds its own: as fields of
    a dataclass, or in a constructor that it writes.

    Attributes
    ----------
    default_strengths : tuple of float
        The sweep of `frontier` and `compare`, from no change (0) to the strongest useful value.
    needs_sensitive_features : bool
        Whether `predict` takes the sensitive features.
    randomised : bool
        Whether random draws decide some rows; `decision_proba` then lies between 0 and 1.
    known_constraints : tuple of str
        The constraints that the method knows, by ratio or difference; all others are refused.
    several_groups, sample_weights : bool
        Whether the method knows more than two groups, and sample weights; otherwise `fit` refuses
        them.
    needs_labels, needs_tree, needs_network, needs_group_in_model, trained_anew : bool
        Further tags, see `UpdateTags`.

    Examples
    --------
    >>> class Inverse(Rival):
    ...     def _learn(self, rows):
    ...         self.width_ = 0.1 * self.strength
    ...     def _decide(self, rows):
    ...         return rows.base.decisions ^ (abs(rows.base.scores - 0.5) < self.width_)
    """

    estimator: Any = field(kw_only=False)
    strength: float = 1.0
    constraints: Any = "demographic_parity"
    min_group_size: int = 30
    threshold: float = 0.5
    pos_label: Any = None
    favorable_label: Any = None

    needs_sensitive_features: ClassVar[bool] = False
    randomised: ClassVar[bool] = False
    known_constraints: ClassVar[tuple[str, ...]] = ALL_CONSTRAINTS
    several_groups: ClassVar[bool] = True
    sample_weights: ClassVar[bool] = True
    needs_labels: ClassVar[bool] = False
    needs_tree: ClassVar[bool] = False
    needs_network: ClassVar[bool] = False
    needs_group_in_model: ClassVar[bool] = False
    trained_anew: ClassVar[bool] = False
    largest_strength: ClassVar[float] = LARGEST_WEIGHT
    _draw_seed = 0

    def _stated(self) -> AllOf:
        """Return the constraint; refuse any that rivals would compute as if it were another one."""
        asked = super()._stated()
        method, others = type(self).__name__, "Use ControlledDebiaser for any constraint"
        check_no_bounds(asked, method, "strength")
        names = " and ".join(constraint.name for constraint in asked.constraints)
        if len(asked.parts) > 1 or not asked.constraints[0].is_simple:
            what = "one constraint" if len(asked.parts) > 1 else "rates of all people"
            raise InputError(
                f"{method} compares {what} by ratio or difference; got {names!r}. {others}, or "
                "COMMOD for parity within a column and for several parities at once.",
                parameter="constraints",
            )
        known = [_compared_labels(get_constraint(name)) for name in self.known_constraints]
        if _compared_labels(asked.constraints[0]) not in known:
            knows = " and ".join(map(repr, self.known_constraints))
            raise InputError(
                f"{method} knows {knows}; got {names!r}. {others}.", parameter="constraints"
            )
        return asked

    # -- what a rival must define ---------------------------------------------------------------

    def _learn(self, rows: RivalFitRows) -> None:
        """Store what `_decide` needs in attributes whose names end with an underscore."""
        raise NotImplementedError(f"{type(self).__name__} must define _learn or _learn_all.")

    @abstractmethod
    def _decide(self, rows: DecisionRows) -> Decisions:
        """Return decisions (booleans), or probabilities of a positive decision, shape (n,)."""

    # -- what a rival may override --------------------------------------------------------------

    def _check_base_model(self) -> None:
        """Raise an error where the method cannot work with the base model, before any work.

        `lineup` leaves the method out then, and names this reason.
        """

    def _check_parameters(self) -> None:
        """Raise an error for parameters out of range, before any work."""
        super()._check_parameters()
        self._check_base_model()
        is_share = self.largest_strength == 1
        check_number(self, "strength", low=0.0, high=self.largest_strength, is_share=is_share)
        for parameter in fields(self):
            limits = dict(parameter.metadata)
            if choices := limits.get("choices"):
                check_choice(getattr(self, parameter.name), parameter.name, choices)
            elif limits:
                check_number(self, parameter.name, **limits)

    def _check_rows(self, rows: RivalFitRows) -> None:
        """Raise an error for groups and weights that the method does not know."""
        method = type(self).__name__
        if rows.n_groups > 2 and not self.several_groups:
            groups = ", ".join(map(repr, rows.group_labels[:6]))
            raise InputError(
                f"{method} compares two groups; got {rows.n_groups}: {groups}. Pass a column with "
                "two values, such as one group and all others, or use a method for several groups, "
                "such as ControlledDebiaser or LPP.",
                parameter="sensitive_features",
            )
        if (rows.weight != rows.weight[0]).any() and not self.sample_weights:
            raise InputError(
                f"{method} does not know sample weights. Leave out sample_weight, or use a method "
                "that knows them, such as ControlledDebiaser.",
                parameter="sample_weight",
            )

    def _learn_all(self, models: Sequence[Self], rows: RivalFitRows) -> None:
        """Learn several models, which differ in strength; override this to share work."""
        for model in models:
            model._learn(rows)

    def _scores(self, rows: DecisionRows, positive: Decisions) -> Floats:
        """Return the edited scores, shape (n,).

        A randomised rival has the probabilities. Any other has the base scores, mirrored at the
        threshold where the decision changes.
        """
        if self.randomised:
            return positive.astype(np.float64)
        ratio = np.where(positive == rows.base.decisions, 1.0, -1.0)
        edited = edited_scores(rows.base.scores, ratio, rows.base.threshold)
        # A score at the threshold is its own mirror image.
        return on_their_side(edited, positive.astype(np.bool_), rows.base.threshold)

    # -- fitting --------------------------------------------------------------------------------

    def fit(
        self, X: Any, y: Any = None, *, sensitive_features: Any = None, sample_weight: Any = None
    ) -> Self:
        """Learn the update, best on rows that the base model was not trained on.

        Parameters
        ----------
        X : table of shape (n, n_features)
            NumPy array, pandas or polars frame. The base model gets it unchanged.
        y : array-like of shape (n,)
            True labels. May be None for demographic parity, unless the method trains on them.
        sensitive_features : array-like of shape (n,) or (n, n_sensitive)
            The group of each row; several columns mean their intersections.
        sample_weight : array-like of shape (n,), default=None
            Weight of each row in rates and losses. Changes are counted in people.

        Returns
        -------
        self
        """
        with self._as_it_was_on_error():
            _fit_together([self], X, y, sensitive_features, sample_weight)
        return self

    # -- deciding -------------------------------------------------------------------------------

    def predict(self, X: Any, *, sensitive_features: Any = None) -> NDArray[Any]:
        """Return the new decision of each row, shape (n,), as one of `classes_`.

        Parameters
        ----------
        X : table of shape (n, n_features)
        sensitive_features : array-like of shape (n,) or (n, n_sensitive), default=None
            The group of each row, for a method that decides by group; no other reads it. A group
            that was missing or too small in the fit rows keeps its base decisions, with a warning.
        """
        return self._labels_of(self._final_decisions(self._read_rows(X, sensitive_features)))

    def predict_proba(self, X: Any, *, sensitive_features: Any = None) -> Floats:
        """Return the edited scores, shape (n, 2), columns in the order of `classes_`.

        For a randomised method they are the probabilities of the two decisions. A method that has
        no score of its own mirrors the base score at the threshold where the decision changes.
        """
        rows = self._read_rows(X, sensitive_features)
        edited, base = self._deployed_scores(rows), rows.base.deployed
        same = edited == base.scores
        proba = np.column_stack([np.where(same, base.proba[:, 0], 1 - edited), edited])
        return proba if self._score_label() == self.classes_[1] else proba[:, ::-1]

    def decision_function(self, X: Any, *, sensitive_features: Any = None) -> Floats:
        """Return the edited margin, shape (n,): positive where `classes_[1]` is predicted.

        It is logit(edited score) − logit(threshold), with the sign of the final decision.
        """
        rows = self._read_rows(X, sensitive_features)
        edited = self._scores(rows, self._decide_rows(rows))
        threshold = 0.5 if self.randomised else rows.base.threshold
        size = np.abs(np.clip(logit(np.clip(edited, 1e-15, 1 - 1e-15)) - logit(threshold), -30, 30))
        is_upper = self._final_decisions(rows) == (self.classes_[1] == self._pos_label)
        return np.where(is_upper, 1.0, -1.0) * np.maximum(size, np.finfo(float).tiny)

    def decision_proba(self, X: Any, *, sensitive_features: Any = None) -> Floats:
        """Return the probability of a positive decision, shape (n,); 0 or 1 if not randomised."""
        return self._decide_rows(self._read_rows(X, sensitive_features)).astype(np.float64)

    def changes(self, X: Any, *, sensitive_features: Any = None) -> ChangedDecisions:
        """Return which rows change, and whether they gain or lose; after the random draws."""
        rows = self._read_rows(X, sensitive_features)
        return self._changes(rows.base.decisions, self._final_decisions(rows))

    def score(
        self, X: Any, y: Any, sample_weight: Any = None, *, sensitive_features: Any = None
    ) -> float:
        """Return the accuracy of `predict`, for cross-validation."""
        rows = {"X": X, "y": y, "sensitive_features": sensitive_features}
        check_same_rows({**rows, "sample_weight": sample_weight})
        labels = self.predict(X, sensitive_features=sensitive_features)
        return float(accuracy_score(y, labels, sample_weight=sample_weight))

    # -- from rows to what scikit-learn expects ----------------------------------------------------

    def _read_rows(self, X: Any, sensitive_features: Any = None) -> DecisionRows:
        """Return new rows, checked and scored by the base model."""
        check_is_fitted(self, "n_rows_")
        check_same_rows({"X": X, "sensitive_features": sensitive_features})
        columns = read_columns(X, self._column_kinds, self._unread())
        columns = [self._as_fitted(column) for column in columns]
        validate_data(self, X, skip_check_array=True, reset=False)
        base = self._base(X, columns).for_positive
        group = None
        if self.needs_sensitive_features:
            known, method = (self.group_labels_, self.sensitive_names_), type(self).__name__
            group = read_fitted_groups(sensitive_features, len(columns[0]), *known, method)
        return DecisionRows(X, self._features(columns), base, group)

    def _decide_rows(self, rows: DecisionRows) -> Decisions:
        """Return what `_decide` returns: decisions, or probabilities of positive ones."""
        return check_decisions(self._decide(rows), len(rows), f"_decide of {type(self).__name__}")

    def _final_decisions(self, rows: DecisionRows) -> Mask:
        """Return decisions; a row's random draw depends on the row and `random_state` alone."""
        positive = self._decide_rows(rows)
        if positive.dtype == np.bool_:
            return positive.astype(np.bool_)
        return random_draws(rows.columns, rows.base.scores, self._draw_seed) < positive

    def _deployed_scores(self, rows: DecisionRows) -> Floats:
        """Return the edited scores of the label that the base score predicts, shape (n,)."""
        positive = self._decide_rows(rows)
        edited, base = self._scores(rows, positive), rows.base.deployed
        if base.is_for_positive:
            return edited
        mirrored = np.where(edited == rows.base.scores, base.scores, 1 - edited)
        if self.randomised:
            return mirrored
        return on_their_side(mirrored, ~positive.astype(np.bool_), base.threshold)

    # -- what users are told --------------------------------------------------------------------

    def __sklearn_tags__(self) -> UpdateTags:
        tags = super().__sklearn_tags__()
        for name in OWN_TAGS:
            setattr(tags, name, bool(getattr(self, name)))
        return tags

    def _sentence(self) -> str:
        return " ".join([super()._sentence(), *self._remarks()])

    def _remarks(self) -> Iterator[str]:
        """Yield what `status_` says beside the figures, sentence by sentence."""
        if self.randomised:
            yield "Random draws decide some rows: these figures are expected values."
        if self.needs_sensitive_features:
            yield "Every decision needs the sensitive features."

    # -- internal interface: see updates/_interface.py ---------------------------------------------

    def _as_fitted(self, column: Column) -> Column:
        """Return a column in the kind that it had in the fit rows; a changed type is refused."""
        types = getattr(self, "_column_types", {}).get(column.name)  # version 0.1 stored none
        return as_fitted(column, self._column_kinds[column.name], types) if types else column

    def _evaluate_rows(self, rows: DecisionRows) -> RowEvaluation:
        """Return final decisions and edited scores on rows that were read."""
        return RowEvaluation(self._final_decisions(rows), self._deployed_scores(rows))

    @property
    def default_strengths(self) -> tuple[float, ...]:
        """Return the sweep of `strength` for `frontier` and `compare`: 0 to 1 in 30 steps."""
        return tuple(i / 30 for i in range(31))

    def _sweep(
        self, rows: RawRows, targets: Sequence[float] | None = None, grid: Grid | None = None
    ) -> Sweep:
        """Return fitted copies at each strength of the grid (None: `default_strengths`)."""
        if targets is not None:
            raise InputError("A rival has a strength, no targets: pass grid={'strength': [...]}.")
        strengths = read_grid(grid, "strength", "A rival")
        strengths = list(clone(self).default_strengths) if strengths is None else strengths
        X, y, groups = rows
        models = fit_strengths(self, strengths, X, y, sensitive_features=groups)
        settings = [{"strength": strength} for strength in strengths]
        return Sweep(list(map(FittedCandidate, settings, models)), models[0])


@dataclass(eq=False, repr=False, kw_only=True)
class TermsRival(Rival):
    """A rival that reads the columns of X as terms."""

    locked_features: Sequence[str] = ()
    min_category_size: int = number(MIN_CATEGORY_SIZE, low=1, whole=True)

    def _learn_terms(
        self, columns: Sequence[Column], weight: Floats, **options: Any
    ) -> tuple[Encoding, TermTable]:
        """Return the encoding that the parameters ask for, and the columns as its terms."""
        smallest, locked = int(self.min_category_size), self.locked_features
        encoding = learn_encoding(
            columns, weight, min_category_size=smallest, locked=locked, **options
        )
        return encoding, encoding.encode(columns)


class ScoredRival(Rival):
    """A rival with a score of its own: a subclass defines `_new_scores`, which decides."""

    @abstractmethod
    def _new_scores(self, rows: DecisionRows) -> Floats:
        """Return the new score of each row, shape (n,); bit for bit the base score if unmoved."""

    def _decide(self, rows: DecisionRows) -> Decisions:
        scores = self._new_scores(rows)
        is_same = scores == rows.base.scores
        return np.where(is_same, rows.base.decisions, scores > rows.base.threshold)

    def _scores(self, rows: DecisionRows, positive: Decisions) -> Floats:
        """Return the new scores, on the side of the threshold that their decision has."""
        return on_their_side(self._new_scores(rows), positive.astype(np.bool_), rows.base.threshold)


class AwareRival(Rival):
    """An update that decides by group: ``predict(X, sensitive_features=...)``.

    Examples
    --------
    >>> from commod.datasets import make_biased
    >>> from sklearn.linear_model import LogisticRegression
    >>> class Bonus(AwareRival):
    ...     def _learn(self, rows):
    ...         self.bonus_ = 0.1 * self.strength
    ...     def _decide(self, rows):
    ...         return rows.base.scores + self.bonus_ * rows.group_index > rows.base.threshold
    >>> data = make_biased(400, random_state=0)
    >>> model, groups = LogisticRegression().fit(data.data, data.target), data.sensitive_features
    >>> update = Bonus(model).fit(data.data, data.target, sensitive_features=groups)
    >>> update.predict(data.data, sensitive_features=groups).shape
    (400,)
    """

    needs_sensitive_features = True


# scikit-learn routes the groups to the methods of those rivals only that decide by group
for _method in ("predict", "predict_proba", "decision_function", "score"):
    setattr(Rival, f"__metadata_request__{_method}", {"sensitive_features": UNUSED})
    setattr(AwareRival, f"__metadata_request__{_method}", {"sensitive_features": None})


def fit_strengths(
    update: Rival,
    strengths: Iterable[float],
    X: Any,
    y: Any = None,
    *,
    sensitive_features: Any = None,
    sample_weight: Any = None,
) -> list[Rival]:
    """Return fitted copies of `update`, one for each strength; the rows are read once.

    Each copy equals one that is fitted alone; on a GPU, up to rounding.

    Examples
    --------
    >>> from commod.datasets import make_biased
    >>> from commod.rivals import RejectOption
    >>> from sklearn.linear_model import LogisticRegression
    >>> data = make_biased(800, random_state=0)
    >>> model = LogisticRegression().fit(data.data, data.target)
    >>> unchanged, changed = fit_strengths(
    ...     RejectOption(model), [0, 0.1], data.data, data.target,
    ...     sensitive_features=data.sensitive_features,
    ... )
    >>> unchanged.change_rate_, changed.change_rate_ > 0
    (0.0, True)
    """
    models: list[Rival] = [clone(update).set_params(strength=s) for s in strengths]
    if models:
        _fit_together(models, X, y, sensitive_features, sample_weight)
    return models


def _fit_together(
    models: Sequence[Rival], X: Any, y: Any, sensitive_features: Any, sample_weight: Any
) -> None:
    """Fit models that differ in strength: read the rows once, learn, measure on the fit rows."""
    first = models[0]
    for model in models:
        model._record_params()
        model._check_parameters()
    fit_rows = first._read_fit_rows(X, y, sensitive_features, sample_weight)
    first._check_locked(fit_rows.columns)
    if not first.needs_sensitive_features:
        locked = getattr(first, "locked_features", None)
        check_group_columns(fit_rows, locked or (), is_refused=locked is not None)
    rows = rival_fit_rows(X, fit_rows)
    first._check_rows(rows)
    kinds: dict[str, Kind] = {column.name: column.kind for column in fit_rows.columns}
    types = {column.name: tuple(sorted(column.types)) for column in fit_rows.columns}
    for model in models:
        model._take_reading(first)
        if model.needs_sensitive_features:  # any other must not know the groups' values
            model.group_labels_ = rows.group_labels
            model.sensitive_names_ = sensitive_names(sensitive_features)
        model._column_kinds, model._column_types = kinds, types
        model._draw_seed = seed_from(getattr(model, "random_state", None))
    with single_blas_thread:
        first._learn_all(models, rows)
    for model in models:
        model._store_outcome(fit_rows, model._decide_rows(rows))


# ---------------------------------------------------------------------------------------------
# Random draws that belong to a row: the same row and seed always give the same number

Bits = NDArray[np.uint64]


def seed_from(random_state: Any) -> int:
    """Return the seed of an update's random draws, taken once by `fit`; None means 0."""
    if random_state is None:
        return 0
    return int(check_random_state(random_state).randint(2**31 - 1))


def random_draws(columns: Sequence[Column], scores: Floats, seed: int) -> Floats:
    """Return a uniform number in [0, 1) for each row, shape (n,).

    The number depends on the row's values and the seed. It does not depend on other rows, their
    order or a random generator: equal rows are decided alike, in every call.

    The base score counts only where there are no columns, and is rounded first: its last bit may
    depend on the batch.

    Examples
    --------
    >>> ages = Column("age", "numeric", np.array([30.0, 40.0, 30.0]))
    >>> draws = random_draws([ages], np.array([0.5, 0.5, 0.5]), seed=0)
    >>> bool(draws[0] == draws[2] != draws[1])
    True
    """
    state = np.full(len(scores), seed, dtype=np.uint64)
    for bits in [_column_bits(column) for column in columns] or [_number_bits(np.round(scores, 9))]:
        state = _mix(state, bits)
    return (state >> np.uint64(11)).astype(np.float64) / 2.0**53


def _number_bits(numbers: Floats) -> Bits:
    """Return the bits of each number; −0 counts as 0, and all NaN are equal."""
    canonical = np.where(np.isnan(numbers), np.nan, numbers) + 0.0
    return canonical.astype(np.float64).view(np.uint64)


def _column_bits(column: Column) -> Bits:
    if column.kind == "numeric":
        return _number_bits(column.values)
    from pandas.util import hash_array

    # hash the value of a category, not its code: the code depends on the other rows
    values = np.array([f"{type(c).__name__} {c}" for c in (*column.categories, None)], dtype=object)
    return hash_array(values, categorize=False)[column.values].astype(np.uint64)


def _mix(state: Bits, bits: Bits) -> Bits:
    """Return the state after mixing in the bits of each row: the finaliser of splitmix64."""
    with np.errstate(over="ignore"):
        mixed = state * np.uint64(0x9E3779B97F4A7C15) + bits + np.uint64(0x632BE59BD9B4E019)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


# ---------------------------------------------------------------------------------------------
# The contract, checked on rows of a method's author


def check_rival(update: Rival, X: Any, y: Any = None, *, sensitive_features: Any) -> None:
    """Raise an error where a method breaks the contract of a rival; for its author's tests.

    The method is fitted on half of the rows and decides on the other half. These rules are
    checked:

    - Strength 0 changes nothing on either half.
    - `default_strengths` begins with 0 and rises.
    - Decisions have the right shape and range, and depend on their own row alone.
    - A copy decides the same.
    - `randomised` is True for a method that returns probabilities.
    - A method that needs the group refuses to decide without it. A row of an unknown group keeps
      its base decision.

    Parameters
    ----------
    update : Rival
        Unfitted, with a fitted base model.
    X, y, sensitive_features
        Rows as in `fit`.

    Examples
    --------
    >>> from commod.datasets import make_biased
    >>> from commod.rivals import RejectOption, check_rival
    >>> from sklearn.linear_model import LogisticRegression
    >>> data = make_biased(400, random_state=0)
    >>> model = LogisticRegression().fit(data.data, data.target)
    >>> groups = data.sensitive_features
    >>> check_rival(RejectOption(model), data.data, data.target, sensitive_features=groups)
    """
    if not isinstance(update, Rival):
        raise InputError(f"check_rival takes a Rival; got {type(update).__name__}.")
    check_same_rows({"X": X, "y": y, "sensitive_features": sensitive_features})

    def require(holds: bool, rule: str) -> None:
        if not holds:
            raise AssertionError(f"{rule}. See docs/rivals.md.")

    def take(index: Any) -> tuple[Any, Any, Any]:
        parts = (X, y, sensitive_features)
        taken = (None if part is None else _safe_indexing(part, index) for part in parts)
        return tuple(taken)  # type: ignore[return-value]

    def fitted(strength: float) -> Rival:
        table, labels, groups = fit_half
        model: Rival = clone(update).set_params(strength=strength)
        return model.fit(table, labels, sensitive_features=groups)

    fit_half, new_half = (take(np.arange(first, _num_samples(X), 2)) for first in (0, 1))
    strengths = update.default_strengths
    rises = strengths[0] == 0 and bool((np.diff(strengths) > 0).all())
    require(rises, "default_strengths must rise from 0")
    require(clone(update).get_params() == update.get_params(), "clone must keep the parameters")
    unchanged = fitted(0.0)
    for table, _, groups in (fit_half, new_half):
        rows = unchanged._read_rows(table, groups)
        n_changes = int((unchanged._decide_rows(rows) != rows.base.decisions).sum())
        require(n_changes == 0, f"strength=0 must change nothing; it changes {n_changes} rows")

    changed, (table, _, groups) = fitted(strengths[-1]), new_half
    rows = changed._read_rows(table, groups)
    positive = changed._decide_rows(rows)
    require(
        changed.randomised or bool(np.isin(positive, (0.0, 1.0)).all()),
        "a method that returns probabilities sets randomised=True",
    )
    order = np.arange(len(rows))[::-3]
    few = (_safe_indexing(part, order) for part in (table, groups))
    require(
        bool((changed._decide_rows(changed._read_rows(*few)) == positive[order]).all()),
        "a decision must depend on its row alone, not on the others or their order",
    )
    copied = copy.deepcopy(changed)
    same = copied._decide_rows(copied._read_rows(table, groups)) == positive
    require(bool(same.all()), "a copy decides the same")
    if changed.needs_sensitive_features:
        unknown = replace(rows, group=np.full(len(rows), -1, dtype=np.intp))
        require(
            bool((changed._decide_rows(unknown) == rows.base.decisions).all()),
            "a group that is not known (rows.group is -1) must keep its base decisions",
        )
        try:
            changed.predict(table)
        except InputError:
            return
        require(False, "a method that needs the group must derive from AwareRival and refuse")
