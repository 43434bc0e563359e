"""The contract every update shares: a fitted base model in, scikit-learn's methods out.

`BaseUpdate` keeps the base model fitted through `clone`, reads the fit rows and counts changes.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import Tags, check_scalar, get_tags
from sklearn.utils.validation import validate_data

from commod._data.base_model import (
    BaseScores,
    ScoreColumn,
    base_classes,
    base_scores,
    warn_about_base_model,
)
from commod._data.encoding import Encoding, TermTable
from commod._data.inputs import (
    Column,
    Groups,
    check_length,
    check_weights,
    determines_group,
    different_labels,
    read_columns,
    read_groups,
    read_labels,
)
from commod._solvers.concepts import Concepts, partition_by_column
from commod.exceptions import DataWarning, InputError
from commod.metrics._constraint import Constraint, ConstraintLike, get_constraint
from commod.metrics._fairness import fairness_of
from commod.updates._notebook import notebook_html

__all__ = [
    "BaseUpdate",
    "Changes",
    "Decisions",
    "FitRows",
    "UpdateTags",
    "by_column",
    "check_locked",
    "check_number",
    "determines_group",
    "expected_moves",
    "warn_about_group_columns",
]

CONCEPT_ROWS = 20_000  # rows on which columns are grouped into concepts

Decisions = NDArray[np.bool_] | NDArray[np.float64]  # made, or the chance of a positive one


@dataclass(frozen=True)
class Changes:
    """Which decisions an update changes, and for better or worse; arrays of shape (n,).

    Examples
    --------
    >>> import numpy as np
    >>> changes = Changes(gain=np.array([True, False]), loss=np.array([False, False]))
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


@dataclass(frozen=True)
class FitRows:
    """The checked rows an update is fitted on; `label` is None where y was not given."""

    columns: list[Column]
    base: BaseScores
    label: NDArray[np.bool_] | None
    groups: Groups
    in_constraint: NDArray[np.bool_]
    weight: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.weight)

    def fairness(self, constraints: ConstraintLike, decisions: Decisions) -> float:
        """Return the metric of `constraints` over the groups that are large enough."""
        codes, n_groups = self.large_groups
        kept = slice(None) if self.in_constraint.all() else self.in_constraint
        label = None if self.label is None else self.label[kept]
        weight = self.weight[kept]
        return fairness_of(constraints, decisions[kept], label, codes[kept], n_groups, weight)

    @cached_property
    def large_groups(self) -> tuple[NDArray[np.intp], int]:
        """Return the group of each row among those that are large enough, and how many they are.

        A row whose group is left out of the constraint has −1.
        """
        codes = self.groups.codes
        is_large = np.bincount(codes, self.in_constraint) > 0
        number = np.cumsum(is_large) - 1
        return np.where(self.in_constraint, number[codes], -1), int(is_large.sum())

    def accuracy(self, decisions: Decisions) -> float:
        """Return the weighted accuracy, NaN where labels are not known."""
        if self.label is None:
            return float("nan")
        return float(np.average(1 - np.abs(decisions - self.label * 1.0), weights=self.weight))


@dataclass(slots=True)
class UpdateTags(Tags):  # type: ignore[misc]
    """scikit-learn's tags, and what an update needs to decide on new rows."""

    needs_sensitive_features: bool = False
    randomised: bool = False


class BaseUpdate(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """What all updates share. A subclass stores its parameters and defines `fit` and `predict`."""

    estimator: Any
    constraints: ConstraintLike
    threshold: float
    pos_label: Any
    favorable_label: Any
    min_group_size: int
    classes_: NDArray[Any]
    feature_names_in_: NDArray[Any]

    @property
    def _constraint(self) -> Constraint:
        """Return what `constraints` names."""
        return get_constraint(self.constraints)

    # -- the base model stays as it is --------------------------------------------------------

    @property
    def estimator_(self) -> Any:
        """Return the base model; it is never refitted, so it is the one that was passed."""
        return self.estimator

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters of the update; those of the base model are not the update's."""
        return dict(super().get_params(deep=False))

    def set_params(self, **params: Any) -> Self:
        """Set parameters of the update; those of the base model, never refitted, are refused."""
        nested = sorted(name for name in params if name.startswith("estimator__"))
        if nested:
            raise InputError(
                f"{', '.join(nested)} would change the base model, which was validated and is "
                "never refitted. Fit another model and pass it as estimator=."
            )
        super().set_params(**params)
        return self

    def __sklearn_clone__(self) -> Self:
        params = self.get_params()
        fresh = {
            name: clone(value, safe=False) for name, value in params.items() if name != "estimator"
        }
        copied = type(self)(estimator=self.estimator, **fresh)
        if hasattr(self, "_metadata_request"):  # what set_fit_request asked for
            copied._metadata_request = copy.deepcopy(self._metadata_request)
        return copied

    def __sklearn_tags__(self) -> UpdateTags:
        given = super().__sklearn_tags__()
        tags = UpdateTags(**{f.name: getattr(given, f.name) for f in fields(given)})
        tags.classifier_tags.multi_class = False
        # we read mixed columns and missing values, but the base model gets X untouched
        for name in ("allow_nan", "categorical", "string"):
            takes = isinstance(self.estimator, ScoreColumn)
            if hasattr(self.estimator, "__sklearn_tags__") and not isinstance(self.estimator, type):
                takes = getattr(get_tags(self.estimator).input_tags, name)
            setattr(tags.input_tags, name, takes)
        return tags

    # -- reading rows ---------------------------------------------------------------------------

    def _read_fit_rows(
        self, X: Any, y: Any, sensitive_features: Any, sample_weight: Any
    ) -> FitRows:
        """Check everything before any work, set `classes_` and the labels, score the rows."""
        check_scalar(
            self.threshold,
            "threshold",
            (float, np.floating),
            min_val=0,
            max_val=1,
            include_boundaries="neither",
        )
        check_scalar(self.min_group_size, "min_group_size", (int, np.integer), min_val=1)
        get_constraint(self.constraints)
        columns = read_columns(X, skip=self._unread())
        n_rows = len(columns[0])
        validate_data(self, X, skip_check_array=True, reset=True)
        labels = None if y is None else read_labels(y, "y")
        if labels is not None:
            check_length(labels, "y", n_rows)
        groups = read_groups(sensitive_features, n_rows)
        weight = check_weights(sample_weight, n_rows)
        self.classes_ = base_classes(self.estimator, labels)
        self._set_labels()
        label = self._read_target(labels)
        base = self._base(X, columns)
        warn_about_base_model(self.estimator, X, base, pos_label=self.pos_label_, label=label)
        kept = self._large_groups(groups, weight)
        features = self._features(columns)
        self._columns_seen = [column.name for column in features]
        return FitRows(features, base, label, groups, kept, weight)

    def _take_reading(self, other: BaseUpdate) -> None:
        """Take over what another update of the same kind learned from reading the rows."""
        names = ("classes_", "pos_label_", "favorable_label_", "n_features_in_", "_columns_seen")
        for name in names:
            setattr(self, name, getattr(other, name))
        if hasattr(other, "feature_names_in_"):
            self.feature_names_in_ = other.feature_names_in_

    def _set_labels(self) -> None:
        self.pos_label_ = self.classes_[1] if self.pos_label is None else self.pos_label
        if self.pos_label_ not in self.classes_:
            raise InputError(
                f"pos_label={self.pos_label!r} is not a label of the base model: "
                f"{self.classes_.tolist()}."
            )
        self.favorable_label_ = (
            self.pos_label_ if self.favorable_label is None else self.favorable_label
        )
        if self.favorable_label_ not in self.classes_:
            raise InputError(
                f"favorable_label={self.favorable_label!r} is not a label of the base model: "
                f"{self.classes_.tolist()}."
            )

    def _read_target(self, labels: NDArray[Any] | None) -> NDArray[np.bool_] | None:
        if labels is None:
            if self._constraint.needs_labels:
                raise InputError(
                    f"This estimator requires y to be passed, but the target y is None: "
                    f"constraints={self.constraints!r} compares errors, and errors need labels. "
                    "Only demographic_parity can do without."
                )
            return None
        unknown = [v for v in different_labels(labels) if v not in self.classes_.tolist()]
        if unknown:
            raise InputError(
                f"y holds {unknown[:3]}, which the base model does not know; its labels are "
                f"{self.classes_.tolist()}."
            )
        label = np.asarray(labels == self.pos_label_, dtype=bool)
        if label.all() or not label.any():
            raise InputError(
                f"y holds one class only ({labels[:1].tolist()[0]!r}); both are needed to tell "
                "errors from right decisions."
            )
        return label

    def _large_groups(self, groups: Groups, weight: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return the rows whose group has enough rows with weight to be part of the constraint."""
        sizes = np.bincount(groups.codes[weight > 0], minlength=len(groups.labels))
        large = sizes >= self.min_group_size
        if large.sum() < 2:
            counted = _some(
                f"{label!r}: {size}"
                for label, size in zip(groups.labels, sizes.tolist(), strict=True)
            )
            raise InputError(
                f"sensitive_features has {int(large.sum())} group(s) of at least min_group_size="
                f"{self.min_group_size} rows ({counted}), but fairness compares at least 2. Merge "
                "groups (cut a number into bins), add rows or lower min_group_size."
            )
        if not large.all():
            small = [repr(g) for g, kept in zip(groups.labels, large, strict=True) if not kept]
            warnings.warn(
                f"{len(small)} group(s) with fewer than min_group_size={self.min_group_size} rows "
                f"are left out of the constraint: {_some(small)}. Nothing is promised for them.",
                DataWarning,
                stacklevel=5,
            )
        return np.asarray(large[groups.codes])

    def _unread(self) -> frozenset[str]:
        """Return the columns that only the base model reads, whatever they hold."""
        locked = getattr(self, "locked_features", ())
        return frozenset() if isinstance(locked, str) else frozenset(locked)

    def _features(self, columns: Sequence[Column]) -> list[Column]:
        """Return the columns an update may use: a score column is not one of them."""
        if isinstance(self.estimator, ScoreColumn):
            return [c for c in columns if c.name != self.estimator.name]
        return list(columns)

    def _base(self, X: Any, columns: Sequence[Column]) -> BaseScores:
        return base_scores(
            self.estimator,
            X,
            columns,
            classes=self.classes_,
            pos_label=self.pos_label_,
            threshold=float(self.threshold),
        )

    # -- what was reached ---------------------------------------------------------------------

    def _store_outcome(self, rows: FitRows, positive: Decisions) -> None:
        """Keep what was reached on the fit rows, in numbers and in a sentence.

        `positive` (n,) are decisions, or the chances of a positive one where lots are drawn; the
        figures are then expected ones.
        """
        before = rows.base.decisions
        raised, lowered = expected_moves(before, positive)
        gains, losses = (raised, lowered) if self._raising_is_a_gain() else (lowered, raised)
        self.n_rows_ = len(rows)
        self.change_rate_ = (gains + losses) / len(rows)
        self.n_gains_, self.n_losses_ = gains, losses
        self.base_fairness_ = rows.fairness(self.constraints, before)
        self.fairness_ = rows.fairness(self.constraints, positive)
        self.base_accuracy_, self.accuracy_ = rows.accuracy(before), rows.accuracy(positive)
        self.status_ = self._sentence()

    def _sentence(self) -> str:
        return self._figures_text("fit rows")

    def _figures_text(self, rows: str) -> str:
        """Return the figures in a sentence; `rows` names the rows that they were measured on."""
        metric = self._constraint.metric
        text = (
            f"On the {self.n_rows_:,} {rows}: {metric} {self.base_fairness_:.3f} → "
            f"{self.fairness_:.3f}, {self.change_rate_:.1%} of the decisions changed "
            f"({self.n_gains_:,.0f} gains, {self.n_losses_:,.0f} losses of the favourable outcome)"
        )
        if not np.isnan(self.accuracy_):
            text += f", accuracy {self.base_accuracy_:.3f} → {self.accuracy_:.3f}"
        text += "; new rows may differ." if rows == "fit rows" else "."
        if np.isnan(self.base_fairness_):
            text += (
                f" The {metric} of the base model is undefined here: nobody is above the "
                "threshold, or a group has no row with the label it is measured on."
            )
        if self.n_losses_ > self.n_gains_:
            text += " Most of the changes are losses: people lose the favourable outcome."
        return text

    def _html_repr(self) -> str:
        """Return what `_repr_html_` shows in a notebook: scikit-learn's diagram until fitted."""
        diagram = str(super()._html_repr())
        return notebook_html(self, diagram) if hasattr(self, "status_") else diagram

    # -- changes --------------------------------------------------------------------------------

    def _labels_of(self, decisions: NDArray[np.bool_]) -> NDArray[Any]:
        negative = self.classes_[self.classes_ != self.pos_label_][0]
        return np.where(decisions, self.pos_label_, negative).astype(self.classes_.dtype)

    def _changes(self, before: NDArray[np.bool_], after: NDArray[np.bool_]) -> Changes:
        up, down = ~before & after, before & ~after
        return Changes(up, down) if self._raising_is_a_gain() else Changes(down, up)

    def _raising_is_a_gain(self) -> bool:
        return bool(self.favorable_label_ == self.pos_label_)


def expected_moves(before: NDArray[np.bool_], positive: Decisions) -> tuple[float, float]:
    """Return how many rows are raised and how many lowered; whole numbers for made decisions.

    Examples
    --------
    >>> expected_moves(np.array([False, False, True]), np.array([0.5, 0.0, 1.0]))
    (0.5, 0.0)
    """
    if positive.dtype == np.bool_:
        made = positive.astype(np.bool_)
        return int((made & ~before).sum()), int((before & ~made).sum())
    return float(positive[~before].sum()), float((1 - positive[before]).sum())


def _some(items: Iterable[str], most: int = 6) -> str:
    """Return the first few items in words: a message must not list everybody's values."""
    every = list(items)
    rest = f", and {len(every) - most} more" if len(every) > most else ""
    return ", ".join(every[:most]) + rest


def by_column(
    concepts: Concepts,
    encoding: Encoding,
    terms: TermTable,
    scale: NDArray[np.float64],
    weight: NDArray[np.float64],
) -> Concepts:
    """Return the same ratio with each raw column in one concept, told apart on the rows given.

    Of many rows some are taken: the correlations of columns need no more.
    """
    there = np.flatnonzero(weight)
    some = there[:: -(-len(there) // CONCEPT_ROWS)]
    if len(some) < len(terms):
        terms, weight = terms.take(some), weight[some]
    total = concepts.contributions @ concepts.weights
    columns = np.array(encoding.term_columns, dtype=object)
    used = dict.fromkeys(columns[total != 0])
    added = [terms.total(np.where(columns == name, total / scale, 0.0), 0.0) for name in used]
    if not added:
        return concepts
    return partition_by_column(concepts, encoding.term_columns, np.column_stack(added), weight)


def check_number(
    update: BaseUpdate,
    name: str,
    *,
    low: float,
    high: float = np.inf,
    whole: bool = False,
    include: str = "left",
) -> None:
    """Refuse a parameter that is no finite number from `low` to `high`."""
    kinds = (int, np.integer) if whole else (int, float, np.integer, np.floating)
    value = check_scalar(getattr(update, name), name, kinds)
    if (
        isinstance(value, bool)
        or not np.isfinite(value)
        or not low <= value <= high
        or (include == "right" and value == low)
    ):
        sign = ">" if include == "right" else ">="
        most = f" and <= {high:g}" if high < np.inf else ""
        raise InputError(f"{name}={value!r} must be a finite number {sign} {low:g}{most}.")


def check_locked(locked: Collection[str], columns: Sequence[Any]) -> None:
    """Refuse locked features that X does not have."""
    if isinstance(locked, str):
        raise InputError(f"locked_features={locked!r} is text; pass a list: [{locked!r}].")
    names = [c.name for c in columns]
    if any(name not in names for name in locked):
        raise InputError(
            f"locked_features={locked!r} names columns that X does not have "
            f"(columns: {', '.join(names)})."
        )


def warn_about_group_columns(rows: FitRows, locked: Collection[str]) -> None:
    """Warn where a column of X is a sensitive attribute under this or another name."""
    for column in rows.columns:
        if column.name in locked:
            continue
        if any(
            determines_group(column, codes) for codes in (rows.groups.codes, *rows.groups.parts)
        ):
            warnings.warn(
                f"Column {column.name!r} of X tells the sensitive group exactly, so the update "
                "would use the sensitive attribute when it predicts. Put it into locked_features "
                "to keep it out.",
                DataWarning,
                stacklevel=4,
            )
