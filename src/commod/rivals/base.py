"""The contract of a rival: two methods to write, everything else is shared.

A rival is an update like COMMOD and ControlledDebiaser. It has one `strength`, 0 changes nothing,
and learns from rows in `_learn` what `_decide` needs to decide on others. docs/rivals.md shows how
to add one.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit
from sklearn.base import clone
from sklearn.metrics import accuracy_score
from sklearn.utils.validation import check_is_fitted, validate_data

from commod._data.base_model import BaseScores
from commod._data.columns import Column, Kind, read_columns
from commod._data.groups import read_groups, sensitive_names
from commod._solvers.search.rates import Cells
from commod.exceptions import DataWarning, InputError
from commod.metrics._constraint import ConstraintLike
from commod.metrics._fairness import fairness_of
from commod.rivals._lots import draw_lots, seed_of
from commod.scorecard import edited_scores
from commod.updates.base import (
    BaseUpdate,
    Changes,
    Decisions,
    FitRows,
    UpdateTags,
    check_locked,
    check_number,
    warn_about_group_columns,
)

__all__ = [
    "AwareRival",
    "LearningRows",
    "Rival",
    "Rows",
    "check_decisions",
    "fit_strengths",
]

ROUNDING = 1e-9  # sums of chances may be off by this


@dataclass(frozen=True)
class Rows:
    """What a method sees of n rows it decides on.

    `X` is what was passed, `columns` the same as checked columns (a score column left out), `base`
    the base model's scores and decisions. `group` (n,) numbers the groups of the constraint from
    0, −1 for a group that is left out; None for a method that must do without it.
    """

    X: Any
    columns: list[Column]
    base: BaseScores
    group: NDArray[np.intp] | None

    def __len__(self) -> int:
        return len(self.base.scores)


@dataclass(frozen=True)
class LearningRows(Rows):
    """What a method learns from: also the groups, true labels (None if not given) and weights.

    `group_labels` names the groups of the constraint; a method that decides without them must not
    keep it.
    """

    group: NDArray[np.intp]
    group_labels: tuple[Hashable, ...]
    label: NDArray[np.bool_] | None
    weight: NDArray[np.float64]

    @property
    def n_groups(self) -> int:
        """Return how many groups the constraint compares."""
        return len(self.group_labels)

    @property
    def in_constraint(self) -> NDArray[np.bool_]:
        """Return the rows whose group is part of the constraint, shape (n,)."""
        return self.group >= 0

    def cells(self, constraints: ConstraintLike) -> Cells:
        """Return the cell of each row: group, and true label where the constraint looks at it."""
        return Cells.of(constraints, self.group, self.n_groups, self.label)

    def rates(self, constraints: ConstraintLike, positive: Decisions) -> NDArray[np.float64]:
        """Return the positive rate of each cell, shape (lines, n_groups); NaN for empty ones."""
        cells = self.cells(constraints)
        totals = cells.totals(self.weight)
        with np.errstate(invalid="ignore"):
            return cells.totals(self.weight * positive) / totals

    def fairness(self, constraints: ConstraintLike, positive: Decisions) -> float:
        """Return the P-rule, or the disparity, of these decisions or chances of positive ones."""
        kept = self.in_constraint
        label = None if self.label is None else self.label[kept]
        return fairness_of(
            constraints,
            positive[kept],
            label,
            self.group[kept],
            self.n_groups,
            self.weight[kept],
        )


class Rival(BaseUpdate):
    """An update that needs X alone to decide. A subclass defines `_learn` and `_decide`.

    Attributes
    ----------
    default_strengths : tuple of float
        The sweep from no change (0) to the strongest sensible setting, used by `frontier` and
        `compare`.
    needs_sensitive_features : bool
        Whether `predict` takes the sensitive attribute.
    randomised : bool
        Whether decisions are drawn by lot; `decision_proba` then lies between 0 and 1.

    Examples
    --------
    >>> class Inverse(Rival):
    ...     def __init__(self, estimator, *, strength=1.0, constraints="demographic_parity",
    ...                  min_group_size=30, threshold=0.5, pos_label=None, favorable_label=None):
    ...         self.estimator, self.strength, self.constraints = estimator, strength, constraints
    ...         self.min_group_size, self.threshold = min_group_size, threshold
    ...         self.pos_label, self.favorable_label = pos_label, favorable_label
    ...     def _learn(self, rows):
    ...         self.width_ = 0.1 * self.strength
    ...     def _decide(self, rows):
    ...         return rows.base.decisions ^ (abs(rows.base.scores - 0.5) < self.width_)
    """

    strength: float
    needs_sensitive_features: bool = False
    randomised: bool = False
    largest_strength: ClassVar[float] = np.inf
    locked_features: Sequence[str] = ()
    random_state: Any = None
    _lot_seed: int = 0

    @property
    def default_strengths(self) -> tuple[float, ...]:
        """Return the sweep of `strength` that `frontier` and `compare` use: 0 to 1 in 30 steps."""
        return tuple(i / 30 for i in range(31))

    # -- what a method defines ------------------------------------------------------------------

    @abstractmethod
    def _learn(self, rows: LearningRows) -> None:
        """Store what deciding needs in attributes that end with an underscore."""

    @abstractmethod
    def _decide(self, rows: Rows) -> Decisions:
        """Return decisions, or where lots are drawn the chance of a positive one, shape (n,)."""

    def _learn_all(self, models: Sequence[Self], rows: LearningRows) -> None:
        """Learn several strengths at once; a method that shares work between them overrides it."""
        for model in models:
            model._learn(rows)

    def _scores(self, rows: Rows, positive: Decisions) -> NDArray[np.float64]:
        """Return the edited scores: the base score, mirrored where the decision changes."""
        if self.randomised:
            return positive.astype(np.float64)
        ratio = np.where(positive == rows.base.decisions, 1.0, -1.0)
        return edited_scores(rows.base.scores, ratio, rows.base.threshold)

    def _check_parameters(self) -> None:
        """Refuse parameters that make no sense, before any work."""
        check_number(self, "strength", low=0.0, high=self.largest_strength)

    # -- fitting --------------------------------------------------------------------------------

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        sensitive_features: Any = None,
        sample_weight: Any = None,
    ) -> Self:
        """Learn the update on rows that are, best, new to the base model.

        Parameters
        ----------
        X : table of shape (n, n_features)
            NumPy array, pandas or polars frame; passed to the base model untouched.
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
        _fit_together([self], X, y, sensitive_features, sample_weight)
        return self

    def _remember_groups(self, labels: Sequence[Hashable], names: Sequence[str] | None) -> None:
        """Keep nothing: a method that decides from X alone must not know the groups' names."""

    # -- deciding -------------------------------------------------------------------------------

    def _unread(self) -> frozenset[str]:
        return frozenset(self.locked_features)

    def _read_rows(self, X: Any, sensitive_features: Any = None) -> Rows:
        """Return new rows as `_decide` wants them."""
        check_is_fitted(self, "n_rows_")
        columns = read_columns(X, self._column_kinds, self._unread())
        validate_data(self, X, skip_check_array=True, reset=False)
        base = self._base(X, columns)
        group = self._read_group(sensitive_features, len(columns[0]))
        return Rows(X, self._features(columns), base, group)

    def _read_group(self, sensitive_features: Any, n_rows: int) -> NDArray[np.intp] | None:
        return None

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the new decision of each row, shape (n,), as one of `classes_`."""
        return self._labels(self._read_rows(X))

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the edited scores, shape (n, 2), columns in the order of `classes_`.

        For a randomised method they are the chances of the two decisions. Where a method changes
        decisions and has no score of its own, the base score is mirrored at the threshold.
        """
        return self._proba(self._read_rows(X))

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return the edited margin, shape (n,): positive where `classes_[1]` is predicted."""
        return self._margin(self._read_rows(X))

    def decision_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the chance that a row is decided positively, shape (n,); 0 or 1 without lots."""
        return self._decided(self._read_rows(X)).astype(np.float64)

    def changes(self, X: Any) -> Changes:
        """Return which rows change and in which direction (as drawn, for a randomised method)."""
        return self._changed(self._read_rows(X))

    # -- from decisions to what scikit-learn expects -----------------------------------------------

    def _made(self, rows: Rows) -> NDArray[np.bool_]:
        """Return the decisions; lots depend on the row and `random_state` alone."""
        positive = self._decided(rows)
        if positive.dtype == np.bool_:
            return positive.astype(np.bool_)
        return draw_lots(rows.columns, rows.base.scores, self._lot_seed) < positive

    def _decided(self, rows: Rows) -> Decisions:
        """Return what `_decide` returned, checked."""
        return check_decisions(self._decide(rows), len(rows), f"_decide of {type(self).__name__}")

    def _labels(self, rows: Rows) -> NDArray[Any]:
        return self._labels_of(self._made(rows))

    def _proba(self, rows: Rows) -> NDArray[np.float64]:
        edited = self._scores(rows, self._decided(rows))
        same = edited == rows.base.scores
        proba = np.column_stack([np.where(same, rows.base.proba[:, 0], 1 - edited), edited])
        return proba if self.classes_[1] == self.pos_label_ else proba[:, ::-1]

    def _margin(self, rows: Rows) -> NDArray[np.float64]:
        """Return the logit of the edited score to the threshold, on the side of the decision."""
        edited = self._scores(rows, self._decided(rows))
        threshold = 0.5 if self.randomised else rows.base.threshold
        size = np.abs(np.clip(logit(np.clip(edited, 1e-15, 1 - 1e-15)) - logit(threshold), -30, 30))
        side = self._made(rows) == (self.classes_[1] == self.pos_label_)
        return np.where(side, 1.0, -1.0) * np.maximum(size, np.finfo(float).tiny)

    def _changed(self, rows: Rows) -> Changes:
        return self._changes(rows.base.decisions, self._made(rows))

    def __sklearn_tags__(self) -> UpdateTags:
        tags = super().__sklearn_tags__()
        tags.needs_sensitive_features = bool(self.needs_sensitive_features)
        tags.randomised = bool(self.randomised)
        return tags

    def _sentence(self) -> str:
        text = super()._sentence()
        if self.randomised:
            text += " Decisions are drawn by lot: these are expected figures."
        if self.needs_sensitive_features:
            text += " Every decision needs the sensitive attribute."
        return text


class AwareRival(Rival):
    """An update that decides by group: `predict(X, sensitive_features=...)`."""

    needs_sensitive_features = True

    def _remember_groups(self, labels: Sequence[Hashable], names: Sequence[str] | None) -> None:
        if self.needs_sensitive_features:
            self.group_labels_ = tuple(labels)
            self.sensitive_names_ = names

    def _read_group(self, sensitive_features: Any, n_rows: int) -> NDArray[np.intp] | None:
        if not self.needs_sensitive_features:
            return None
        if sensitive_features is None:
            raise InputError(
                f"{type(self).__name__} decides by group: pass "
                "predict(X, sensitive_features=...) with the group of each row. Where the "
                "sensitive attribute is not at hand for new rows, use a method that does "
                "without, such as ControlledDebiaser."
            )
        names = sensitive_names(sensitive_features)
        if names and self.sensitive_names_ and names != self.sensitive_names_:
            raise InputError(
                f"sensitive_features has the columns {', '.join(names)}, but the update was fitted "
                f"with {', '.join(self.sensitive_names_)}, in this order. Pass the same."
            )
        groups = read_groups(sensitive_features, n_rows)
        position = {label: i for i, label in enumerate(self.group_labels_)}
        unknown = [repr(label) for label in groups.labels if label not in position]
        if len(unknown) == len(groups.labels):
            raise InputError(
                f"sensitive_features holds none of the groups the update was fitted with "
                f"({', '.join(map(repr, self.group_labels_[:6]))}); got {', '.join(unknown[:6])}. "
                "Pass the same values, of the same type."
            )
        if unknown:
            warnings.warn(
                f"{type(self).__name__} learned nothing about the group(s) {', '.join(unknown[:6])}"
                "; their base decisions are kept.",
                DataWarning,
                stacklevel=4,
            )
        found = np.array([position.get(label, -1) for label in groups.labels], dtype=np.intp)
        return found[groups.codes]

    def predict(self, X: Any, *, sensitive_features: Any = None) -> NDArray[Any]:
        """Return the new decision of each row, shape (n,), as one of `classes_`.

        Parameters
        ----------
        X : table of shape (n, n_features)
        sensitive_features : array-like of shape (n,) or (n, n_sensitive)
            The group of each row. The base decision is kept for a group that was not in the fit
            rows, or too small there, with a warning.
        """
        return self._labels(self._read_rows(X, sensitive_features))

    def predict_proba(self, X: Any, *, sensitive_features: Any = None) -> NDArray[np.float64]:
        """Return the edited scores, shape (n, 2), columns in the order of `classes_`.

        For a randomised method they are the chances of the two decisions. Where a method changes
        decisions and has no score of its own, the base score is mirrored at the threshold.
        """
        return self._proba(self._read_rows(X, sensitive_features))

    def decision_function(self, X: Any, *, sensitive_features: Any = None) -> NDArray[np.float64]:
        """Return the edited margin, shape (n,): positive where `classes_[1]` is predicted."""
        return self._margin(self._read_rows(X, sensitive_features))

    def decision_proba(self, X: Any, *, sensitive_features: Any = None) -> NDArray[np.float64]:
        """Return the chance that a row is decided positively, shape (n,); 0 or 1 without lots."""
        return self._decided(self._read_rows(X, sensitive_features)).astype(np.float64)

    def changes(self, X: Any, *, sensitive_features: Any = None) -> Changes:
        """Return which rows change and in which direction (as drawn, for a randomised method)."""
        return self._changed(self._read_rows(X, sensitive_features))

    def score(
        self, X: Any, y: Any, sample_weight: Any = None, *, sensitive_features: Any = None
    ) -> float:
        """Return the accuracy of `predict`; what cross-validation asks for."""
        decided = self.predict(X, sensitive_features=sensitive_features)
        return float(accuracy_score(y, decided, sample_weight=sample_weight))


def check_decisions(positive: Any, n_rows: int, name: str) -> Decisions:
    """Return decisions or chances of positive ones, shape (n,); refuse what is neither."""
    array = np.asarray(positive)
    if array.shape != (n_rows,):
        raise InputError(
            f"{name} must return shape ({n_rows},), one entry per row; got {array.shape}."
        )
    if array.dtype == np.bool_:
        return array
    is_number = array.dtype.kind in "fiu"
    if not is_number or not ((array >= -ROUNDING) & (array <= 1 + ROUNDING)).all():
        raise InputError(
            f"{name} must return booleans, or chances between 0 and 1; got {array.dtype} "
            f"with {array[:3].tolist()}..."
        )
    return np.clip(array.astype(np.float64), 0.0, 1.0)


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

    Each copy equals one fitted alone, on a GPU up to rounding.

    Examples
    --------
    >>> from commod.datasets import make_biased
    >>> from commod.rivals import RejectOption
    >>> from sklearn.linear_model import LogisticRegression
    >>> data = make_biased(800, random_state=0)
    >>> model = LogisticRegression().fit(data.data, data.target)
    >>> none, some = fit_strengths(
    ...     RejectOption(model), [0, 0.1], data.data, data.target,
    ...     sensitive_features=data.sensitive_features,
    ... )
    >>> none.change_rate_, some.change_rate_ > 0
    (0.0, True)
    """
    models: list[Rival] = [clone(update).set_params(strength=s) for s in strengths]
    if models:
        _fit_together(models, X, y, sensitive_features, sample_weight)
    return models


def _fit_together(
    models: Sequence[Rival], X: Any, y: Any, sensitive_features: Any, sample_weight: Any
) -> None:
    """Read the rows once, learn all models and store what each does to the fit rows."""
    first = models[0]
    for model in models:
        model._check_parameters()
    fit_rows = first._read_fit_rows(X, y, sensitive_features, sample_weight)
    check_locked(first.locked_features, fit_rows.columns)
    if not first.needs_sensitive_features:
        warn_about_group_columns(fit_rows, first.locked_features)
    rows = _learning_rows(X, fit_rows)
    kinds: dict[str, Kind] = {c.name: c.kind for c in fit_rows.columns}
    for model in models:
        model._take_reading(first)
        model._remember_groups(rows.group_labels, sensitive_names(sensitive_features))
        model._column_kinds = kinds
        model._lot_seed = seed_of(model.random_state)
    first._learn_all(models, rows)
    for model in models:
        model._store_outcome(fit_rows, model._decided(rows))


def _learning_rows(X: Any, rows: FitRows) -> LearningRows:
    """Return the rows with the groups of the constraint numbered from 0."""
    kept = np.unique(rows.groups.codes[rows.in_constraint])
    position = np.full(len(rows.groups.labels), -1, dtype=np.intp)
    position[kept] = np.arange(len(kept))
    return LearningRows(
        X=X,
        columns=rows.columns,
        base=rows.base,
        group=position[rows.groups.codes],
        group_labels=tuple(rows.groups.labels[i] for i in kept),
        label=rows.label,
        weight=rows.weight,
    )
