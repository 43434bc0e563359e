"""Measure updates on rows: fairness, accuracy and changes, checked against the exact limit."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from commod._data.arrays import Mask
from commod._data.base_model import BaseScores
from commod._data.codes import plain
from commod._data.columns import Column
from commod._data.disclosure import FEWEST_DESCRIBED, in_totals
from commod._data.groups import read_groups
from commod._data.labels import check_length, distinct_labels, read_labels
from commod._data.tables import check_same_rows, n_rows_of
from commod._text import did_you_mean, label_text, list_names, n_of
from commod.bounds import exact_fairness, fewest_expected_changes
from commod.bounds._blind import BlindChanges, BlindPeople
from commod.bounds._counts import fewest_number
from commod.bounds._general import fewest_changes_of
from commod.exceptions import InputError
from commod.metrics._cells import Cells, Strata, count_cells, fairness_of
from commod.metrics._constraint import Constraint, ConstraintLike, get_constraint
from commod.metrics._outscoring import Sides, change_shares
from commod.updates._fit_rows import read_strata
from commod.updates._interface import AllowedChanges, Decisions, RawRows
from commod.updates._problem import ComparedCells, Standing
from commod.updates.base import BaseUpdate, expected_moves

Counts = NDArray[np.int64]
Rows = TypeVar("Rows", bound="EvaluationRows")

ROUNDING = 1e-9  # share of all rows by which sums of probabilities may be off
LOOSER = 1e-9  # than the values of several constraints, which have 12 digits
ANY_CHANGE = AllowedChanges()
EVERYBODY = slice(None)
NAME = "sensitive_probabilities"


@dataclass(frozen=True)
class EvaluationRows:
    """The rows that updates are measured on, with the base model's decisions `before` (n,).

    `group` (n,) numbers the groups of the constraint; −1 is a group that is left out. `label` is
    None where true labels are not known. `gain_raises` says whether the positive decision is the
    favourable one. `n_groups_left_out` groups have too few fit rows, or none. `in_totals` selects
    the rows that totals count: all but those of very small groups left out, because a report with
    these totals and those of an audit would reveal single people. `outcome` is the label whose
    rates are compared, in words. `scores` (n,) are the base model's scores of that label; None
    where they are not known. They are not pickled: no file may hold columns. `standing` are further
    constraints that keep their bounds, and `strata` those of constraints with a condition. A row is
    one person, or stands for `people` (n,).
    """

    constraints: ConstraintLike
    before: Mask
    label: Mask | None
    group: NDArray[np.intp]
    n_groups: int
    gain_raises: bool
    n_groups_left_out: int = 0
    in_totals: Mask | slice = field(default_factory=lambda: EVERYBODY)
    outcome: str = ""
    scores: NDArray[np.float64] | None = None
    standing: tuple[Standing, ...] = ()
    strata: Mapping[Constraint, Strata] = field(default_factory=dict)
    people: NDArray[np.float64] | None = None

    def __len__(self) -> int:
        return round(float(self._each[self.in_totals].sum()))

    @property
    def _each(self) -> NDArray[np.float64]:
        """Return the number of people that each row stands for, shape (n,)."""
        return np.ones(len(self.before)) if self.people is None else self.people

    def __getstate__(self) -> dict[str, Any]:
        state = {name: value for name, value in self.__dict__.items() if name != "_sides"}
        return {**state, "scores": None}

    @property
    def left_out_text(self) -> str:
        """Return how many groups and rows are in no fairness figure; empty without any.

        No group is named, because studies are saved to files.
        """
        n = self.n_groups_left_out
        if not n:
            return ""
        n_rows = n_of(int(self._each[self.group < 0].sum()), "row")
        return f"{n_of(n, 'group')} ({n_rows}) left out of the fairness figures: too few fit rows"

    def name_with_left_out(self, rows_word: str) -> str:
        """Return the number and the name of these rows, and the groups left out of the figures."""
        return "; ".join(filter(None, (f"{len(self):,} {rows_word}", self.left_out_text)))

    @property
    def constraint(self) -> Constraint:
        """Return what is compared between groups."""
        return get_constraint(self.constraints)

    @property
    def metric(self) -> str:
        """Return the metric of the constraint with the label that it counts."""
        return self.constraint.metric_of(self.outcome)

    def fairness(self, decisions: Decisions) -> float:
        """Return the metric of the constraint; of expected rates for probabilities."""
        if not self.constraint.is_simple:
            return self._compared.value(decisions)
        counted = self.group >= 0
        label = None if self.label is None else self.label[counted]
        weight = self._each[counted]
        group = self.group[counted]
        return fairness_of(
            self.constraints, decisions[counted], label, group, self.n_groups, weight
        )

    def accuracy(self, decisions: Decisions) -> float:
        """Return the (expected) share of right decisions; NaN where labels are not known."""
        if self.label is None:
            return float("nan")
        right = 1 - np.abs(decisions - self.label * 1.0)
        return float(np.average(right[self.in_totals], weights=self._each[self.in_totals]))

    def measure(self, after: Decisions, allowed: AllowedChanges = ANY_CHANGE) -> dict[str, float]:
        """Return the figures of an update that decides `after`, among them the limit.

        An update that changes fewer decisions than the limit at its own fairness is a bug in one
        of the two. Then an AssertionError stops the program.
        """
        after = as_decisions(after)
        people = None if self.people is None else self.people[self.in_totals]
        counted = self.before[self.in_totals], after[self.in_totals]
        raised, lowered = expected_moves(*counted, people)
        n_gains, n_losses = (raised, lowered) if self.gain_raises else (lowered, raised)
        n_changes = raised + lowered
        limit = self._limit_of(after, allowed)
        if n_changes < limit - ROUNDING * len(self) * (after.dtype != np.bool_):
            raise AssertionError(
                f"An update changes {n_changes} decisions, but its fairness takes at least {limit} "
                "changes: this is a bug in commod, please report it."
            )
        return {
            "fairness": self.fairness(after),
            "accuracy": self.accuracy(after),
            "change_rate": n_changes / len(self),
            "n_changes": n_changes,
            "n_gains": n_gains,
            "n_losses": n_losses,
            "limit": limit / len(self),
            **self._outscoring(after),
            **self.standing_values(after),
        }

    def standing_values(self, after: Decisions) -> dict[str, float]:
        """Return the metrics of the constraints that stand, by their names."""
        values = self._compared.standing_values(after) if self.standing else ()
        names = (one.constraint.name for one in self.standing)
        return dict(zip(names, values, strict=True))

    def keeps_standing(self, figures: Mapping[str, float]) -> bool:
        """Return whether measured figures keep the bounds of all constraints that stand."""
        return all(one.is_met(figures[one.constraint.name]) for one in self.standing)

    @property
    def _is_simple(self) -> bool:
        return self.constraint.is_simple and not self.standing

    @cached_property
    def _compared(self) -> ComparedCells:
        people = (self.strata, self.group, self.n_groups, self.label, self._each)
        made = ComparedCells.of_people(self.constraint, self.standing, *people)
        return replace(made, people=self.people)

    def _outscoring(self, after: Decisions) -> dict[str, float]:
        """Return how often those who change score nearer to the other decision, by direction.

        The figures are of pairs of the same compared group; NaN where there are none.
        """
        sides = self._sides
        if sides is None:
            return {"outscoring": float("nan"), "outscoring_losses": float("nan")}
        changed = change_shares(self.before, after)
        return {
            "outscoring": sides.share(changed, "gain"),
            "outscoring_losses": sides.share(changed, "loss"),
        }

    @cached_property
    def _sides(self) -> Sides | None:
        if self.scores is None:
            return None
        scores = self.scores if self.gain_raises else -self.scores
        return Sides.of(scores, self.before == self.gain_raises, self.group, self.n_groups)

    def limit_at(
        self,
        fairness: float,
        allowed: AllowedChanges = ANY_CHANGE,
        *,
        in_expectation: bool = False,
    ) -> float:
        """Return the fewest changes that reach a fairness, as a share; NaN where undefined.

        With `in_expectation`, decisions may be random and `allowed` does not count.
        """
        if np.isnan(fairness) or (self._is_simple and not self._counts[0].all()):
            return float("nan")
        if not self._is_simple:
            return self._general_limit(self._compared, fairness, allowed) / len(self)
        return self._fewest(fairness, allowed, in_expectation) / len(self)

    def blind_limits(
        self, columns: Sequence[Column], values: Sequence[float], allowed: AllowedChanges
    ) -> list[BlindChanges]:
        """Return the estimated fewest changes of a rule without the group for each fairness.

        They are counted on the rows of compared groups. `columns` have all rows.
        """
        counted = self.group >= 0
        people = BlindPeople.of(
            [column.take(counted) for column in columns],
            self.constraint,
            self.before[counted],
            self.group[counted],
            self.n_groups,
            None if self.label is None else self.label[counted],
        )
        moves = {"may_raise": allowed.may_raise, "may_lower": allowed.may_lower}
        return [people.fewest(value, **moves) for value in values]

    # -- the limit at the fairness that was reached ------------------------------------------------

    @cached_property
    def _cells(self) -> Cells:
        return Cells.of(self.constraints, self.group, self.n_groups, self.label)

    @cached_property
    def _counts(self) -> tuple[Counts, Counts]:
        """Return sizes and positives of the cells, before any change."""
        return count_cells(self._cells, self.before, self.people)

    def _limit_of(self, after: Decisions, allowed: AllowedChanges) -> float:
        """Return the fewest changes for exactly the fairness of `after`; NaN where undefined.

        For several constraints it is a proven lower bound.
        """
        if not self._is_simple:
            is_fixed = after.dtype == np.bool_
            value = self.fairness(after) if is_fixed else float("nan")
            return self._general_limit(self._compared.loosened(after), value, allowed)
        if not self._counts[0].all():
            return float("nan")
        if after.dtype != np.bool_:
            value = self.fairness(after)
            return value if np.isnan(value) else self._fewest(value, allowed, True)
        counts = count_cells(self._cells, after.astype(np.bool_), self.people)
        exact = exact_fairness(self.constraints, *counts)
        return float("nan") if exact is None else self._fewest(exact, allowed, False)

    def _general_limit(
        self, compared: ComparedCells, value: float, allowed: AllowedChanges
    ) -> float:
        """Return a proven lower bound of the changes that reach a value; NaN where none do."""
        if np.isnan(value):
            return float("nan")
        # Values that were reached are rounded: loosen bounds by more than that.
        required = [
            (one, bound - LOOSER if one.kind in ("ratio", "floor") else bound + LOOSER)
            for one, bound in compared.required(value, by_counts=True)
        ]
        positives = compared.table.totals(self.before * self._each).astype(np.int64)
        best = fewest_changes_of(
            required,
            compared.sizes,
            positives,
            may_raise=allowed.may_raise,
            may_lower=allowed.may_lower,
            is_rough=True,
        )
        return float("nan") if best is None else float(best.lower_bound)

    def _fewest(
        self, target: float | Fraction, allowed: AllowedChanges, in_expectation: bool
    ) -> float:
        """Return the fewest changes that reach a target; NaN where none do."""
        table = self.constraints, *self._counts, target
        if in_expectation:
            is_met = self.constraint.is_ratio and target <= 0
            return 0.0 if is_met else fewest_expected_changes(*table)
        may_raise, may_lower, _ = allowed
        fewest = fewest_number(*table, may_raise=may_raise, may_lower=may_lower)
        return float("nan") if fewest is None else fewest


def as_decisions(decisions: Decisions) -> Decisions:
    """Return probabilities that are all 0 or 1 as booleans; other arrays as they are.

    Examples
    --------
    >>> as_decisions(np.array([0.0, 1.0]))
    array([False,  True])
    >>> as_decisions(np.array([0.0, 0.5]))
    array([0. , 0.5])
    """
    if decisions.dtype != np.bool_ and np.isin(decisions, (0.0, 1.0)).all():
        return decisions.astype(np.bool_)
    return decisions


# -- reading the rows -----------------------------------------------------------------------------


def choose_evaluated(
    fit_rows: RawRows, eval_rows: RawRows, *, needs_groups: bool = True
) -> tuple[RawRows, str]:
    """Return the rows to measure on and their name: `eval_rows`, or the fit rows without X_eval.

    Rows whose pandas indexes disagree are refused.
    """
    check_same_rows(fit_rows.by_name())
    check_same_rows(eval_rows.by_name("_eval"))
    if eval_rows.X is None:
        if eval_rows.y is not None or eval_rows.sensitive_features is not None:
            raise InputError("y_eval and sensitive_features_eval belong to X_eval, which is None.")
        return fit_rows, "fit rows"
    if needs_groups and eval_rows.sensitive_features is None:
        raise InputError("X_eval needs sensitive_features_eval: fairness is measured on its rows.")
    return eval_rows, "evaluated rows"


def compared_groups(update: BaseUpdate, fit_rows: RawRows) -> list[Hashable]:
    """Return the groups of the fit rows that are large enough to be part of the constraint."""
    unknown = getattr(update, "unknown_groups", "error")
    groups = read_groups(fit_rows.sensitive_features, n_rows_of(fit_rows.X), unknown)
    sizes = zip(groups.labels, groups.sizes, strict=True)
    return [label for label, n in sizes if n >= update.min_group_size]


def read_evaluation_rows(
    update: BaseUpdate, compared: Sequence[Hashable], base: BaseScores, rows: RawRows
) -> EvaluationRows:
    """Read labels and groups of the evaluated rows; groups that are not `compared` get −1.

    So do rows whose group is not known, where the update allows these.
    """
    n = len(base.scores)
    groups = read_groups(rows.sensitive_features, n, getattr(update, "unknown_groups", "error"))
    missing = [repr(label) for label in compared if label not in groups.labels]
    if missing:
        raise InputError(
            f"The evaluated rows have nobody of group {missing[0]}, which the constraint compares. "
            "Pass rows of every group."
        )
    position = {label: i for i, label in enumerate(compared)}
    numbers = np.array([position.get(label, -1) for label in groups.labels], dtype=np.intp)
    is_hidden = (numbers < 0) & (groups.sizes < FEWEST_DESCRIBED)
    counted = in_totals(groups.codes, is_hidden, int((~groups.is_known).sum()))
    group, label = np.append(numbers, -1)[groups.codes], _read_true_labels(update, rows.y, n)
    constraints = update.stated().constraints
    return rows_of_update(
        EvaluationRows,
        update,
        counted=counted,
        before=base.decisions,
        label=label,
        group=group,
        n_groups=len(compared),
        n_groups_left_out=int((numbers < 0).sum()),
        scores=base.for_positive.scores,
        strata=read_strata(constraints, rows.X, group, len(compared), label),
    )


def rows_of_update(kind: type[Rows], update: BaseUpdate, *, counted: Mask, **rows: Any) -> Rows:
    """Return rows with what a fitted update states; totals have those that are `counted` (n,)."""
    return kind(
        constraints=update.stated().constraints[0],
        gain_raises=bool(update.favorable_label_ == update.pos_label_),
        in_totals=EVERYBODY if counted.all() else counted,
        outcome=label_text(None, plain(update.pos_label_)),
        standing=update.standing(),
        **rows,
    )


def _read_true_labels(update: BaseUpdate, y: Any, n: int) -> Mask | None:
    """Return where the true label is positive; None where y is None and not needed."""
    if y is None:
        needing = [one for one in update.stated().parts if one.needs_labels]
        if needing:
            raise InputError(
                f"constraints={needing[0].constraint.name!r} needs y_eval, but it is None.",
                parameter="constraints",
            )
        return None
    labels, known = read_labels(y, "y_eval"), update.classes_.tolist()
    check_length(labels, "y_eval", n)
    unknown = [value for value in distinct_labels(labels) if value not in known]
    if unknown:
        raise InputError(
            f"y_eval holds [{list_names([repr(v) for v in unknown], 3)}], which the base model "
            f"does not know; its labels are {known}.{did_you_mean(unknown[0], known)}",
            parameter="y_eval",
        )
    return np.asarray(labels == update.pos_label_, dtype=bool)


@contextmanager
def each_warning_once() -> Iterator[None]:
    """Collect the warnings of the block, and show each text once where the study was called.

    Use this in the function that the user calls: warnings point to the line of its call.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for message, category in dict.fromkeys((str(w.message), w.category) for w in caught):
        warnings.warn(message, category, stacklevel=4)


def refuse_probabilities(sensitive_probabilities: Any, reason: str) -> None:
    """Refuse probabilities of groups; `reason` says why, and what to do instead."""
    if sensitive_probabilities is not None:
        raise InputError(f"{NAME} cannot be used here: {reason}", parameter=NAME)
