"""Measure updates on rows: fairness, accuracy and changes, checked against the exact limit."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commod._data.arrays import Mask
from commod._data.base_model import BaseScores
from commod._data.columns import Column, plain
from commod._data.disclosure import FEWEST_DESCRIBED, in_totals
from commod._data.groups import read_condition, read_groups
from commod._data.labels import check_known_labels, check_length, read_labels
from commod._data.tables import check_same_rows, n_rows_of
from commod._text import label_text, n_of
from commod.bounds._blind import BlindPeople
from commod.bounds._general import fewest_changes
from commod.bounds._limits import fewest_expected_changes
from commod.exceptions import InputError
from commod.metrics._changes import Sides, change_shares
from commod.metrics._constraint import Constraint
from commod.metrics._people import Bound, People, is_kept
from commod.scorecard import AllowedChanges
from commod.updates._fit_rows import read_strata
from commod.updates._interface import Decisions, RawRows
from commod.updates.base import BaseUpdate, expected_moves

ROUNDING = 1e-9  # share of all rows by which sums of probabilities may be off
ANY_CHANGE = AllowedChanges()
EVERYBODY = slice(None)


@dataclass(frozen=True)
class EvaluationRows:
    """The rows that updates are measured on, with the base model's decisions `before` (n,).

    - `people`: who is compared. Where rows stand for many people, an update comes as the number of
      people of each row whose decision it changes.
    - `gain_raises`: whether the positive decision is the favourable one.
    - `n_groups_left_out`: groups that have too few fit rows, or none.
    - `in_totals`: the rows that totals count, all but those of very small groups left out. A report
      with these totals and those of an audit would reveal single people.
    - `outcome`: the label whose rates are compared, in words.
    - `rows_word`: what these rows are called.
    - `scores` (n,): the base model's scores of that label; None where they are not known. They are
      not pickled: no file may hold columns.
    - `bounds`: those that the update states; the first is None, because its target moves.
    """

    people: People
    before: Mask
    gain_raises: bool
    n_groups_left_out: int = 0
    in_totals: Mask | slice = field(default_factory=lambda: EVERYBODY)
    outcome: str = ""
    rows_word: str = "fit rows"
    scores: NDArray[np.float64] | None = None
    bounds: tuple[Bound, ...] = ()

    def __len__(self) -> int:
        return round(float(self._each[self.in_totals].sum()))

    @property
    def _each(self) -> NDArray[np.float64]:
        """Return the number of people that each row stands for, shape (n,)."""
        each = self.people.each
        return np.ones(len(self.before)) if each is None else each

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
        n_rows = n_of(int(self._each[self.people.group < 0].sum()), "row")
        return f"{n_of(n, 'group')} ({n_rows}) left out of the fairness figures: too few fit rows"

    @property
    def name(self) -> str:
        """Return the number and the name of these rows, and the groups left out of the figures."""
        return "; ".join(filter(None, (f"{len(self):,} {self.rows_word}", self.left_out_text)))

    @cached_property
    def base_fairness(self) -> float:
        """Return the metric of the constraint for the base model."""
        return self.people.fairness(self.before)

    @cached_property
    def base_accuracy(self) -> float:
        """Return the accuracy of the base model; NaN where labels are not known."""
        return self.accuracy(self.before)

    @property
    def constraint(self) -> Constraint:
        """Return what is compared between groups."""
        return self.people.constraint

    @property
    def metric(self) -> str:
        """Return the metric of the constraint with the label that it counts."""
        return self.constraint.metric_of(self.outcome)

    def accuracy(self, decisions: Decisions) -> float:
        """Return the (expected) share of right decisions; NaN where labels are not known."""
        label = self.people.label
        if label is None:
            return float("nan")
        right = 1 - np.abs(decisions - label * 1.0)
        return float(np.average(right[self.in_totals], weights=self._each[self.in_totals]))

    def measure(self, after: Decisions, allowed: AllowedChanges = ANY_CHANGE) -> dict[str, float]:
        """Return the figures of an update that decides `after`, among them the limit.

        An update that changes fewer decisions than the limit at its own fairness is a bug in one
        of the two. Then an AssertionError stops the program.
        """
        if self.people.each is not None and after.dtype != np.bool_:
            is_changed = np.repeat([False, True], len(after))
            return self._split(after).measure(np.tile(self.before, 2) ^ is_changed, allowed)
        after = as_decisions(after)
        each = None if self.people.each is None else self.people.each[self.in_totals]
        counted = self.before[self.in_totals], after[self.in_totals]
        raised, lowered = expected_moves(*counted, each)
        n_gains, n_losses = (raised, lowered) if self.gain_raises else (lowered, raised)
        n_changes = raised + lowered
        if after.dtype == np.bool_:
            bounds = self.people.reached_bounds(after.astype(np.bool_), self.bounds)
            limit = self._fewest(bounds, allowed)
        else:
            limit = self._fewest_expected(self.people.fairness(after))
        if n_changes < limit - ROUNDING * len(self) * (after.dtype != np.bool_):
            raise AssertionError(
                f"An update changes {n_changes} decisions, but its fairness takes at least {limit} "
                "changes: this is a bug in commod, please report it."
            )
        return {
            "fairness": self.people.fairness(after),
            "accuracy": self.accuracy(after),
            "change_rate": n_changes / len(self),
            "n_changes": n_changes,
            "n_gains": n_gains,
            "n_losses": n_losses,
            "limit": limit / len(self),
            **self._outscoring(after),
            **self.other_values(after),
        }

    def _split(self, n_changed: NDArray[Any]) -> EvaluationRows:
        """Return each row twice: its people who stay, and then those who change."""
        twice = np.tile(np.arange(len(self.before)), 2)
        people = replace(
            self.people.take(twice), each=np.concatenate([self._each - n_changed, n_changed])
        )
        counted = self.in_totals
        in_totals = counted if isinstance(counted, slice) else counted[twice]
        return replace(self, before=self.before[twice], people=people, in_totals=in_totals)

    def other_values(self, after: Decisions) -> dict[str, float]:
        """Return the metrics of all constraints but the first one, by their names."""
        names = (one.name for one in self.people.constraints[1:])
        return dict(zip(names, self.people.other_values(after), strict=True))

    def keeps_others(self, figures: Mapping[str, float]) -> bool:
        """Return whether measured figures keep the bounds of all constraints but the first one."""
        others = zip(self.people.constraints[1:], self.bounds[1:], strict=True)
        return all(is_kept(one, bound, figures[one.name]) for one, bound in others)

    def _outscoring(self, after: Decisions) -> dict[str, float]:
        """Return how often people who change are nearer to the other decision, by direction.

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
        people = self.people.group, self.people.n_groups
        return Sides.of(scores, self.before == self.gain_raises, *people)

    def limit_at(
        self,
        fairness: float,
        allowed: AllowedChanges = ANY_CHANGE,
        *,
        in_expectation: bool = False,
    ) -> float:
        """Return the fewest changes that reach a fairness, as a share; NaN where undefined.

        For several constraints it is a proven lower bound. With `in_expectation`, decisions may be
        random and `allowed` does not count.
        """
        if np.isnan(fairness):
            return float("nan")
        if in_expectation and self.people.is_simple:
            return self._fewest_expected(fairness) / len(self)
        bounds = self.people.looser((fairness, *self.bounds[1:]))
        return self._fewest(bounds, allowed) / len(self)

    def blind_people(self, columns: Sequence[Column]) -> BlindPeople:
        """Return the rows of compared groups, for the limit of a rule without the group.

        `columns` have all rows.
        """
        counted = self.people.group >= 0
        taken = [column.take(counted) for column in columns]
        people = replace(self.people.take(counted), constraints=(self.constraint,), each=None)
        return BlindPeople.of(taken, people, self.before[counted])

    def _fewest(self, bounds: Sequence[Bound], allowed: AllowedChanges) -> float:
        """Return the fewest changes that keep bounds, or a lower bound; NaN where none do."""
        moves = {"may_raise": allowed.may_raise, "may_lower": allowed.may_lower}
        known = fewest_changes(self.people, self.before, bounds, is_rough=True, **moves)
        return float("nan") if known is None else float(known.lower_bound)

    def _fewest_expected(self, fairness: float) -> float:
        """Return the fewest expected changes where decisions may be random; NaN where undefined."""
        counts = self.people.counts(self.before)
        if np.isnan(fairness) or not self.people.is_simple or not counts[0].all():
            return float("nan")
        is_met = self.constraint.is_ratio and fairness <= 0
        return 0.0 if is_met else fewest_expected_changes(self.constraint, *counts, fairness)


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
    update: BaseUpdate,
    compared: Sequence[Hashable],
    base: BaseScores,
    rows: RawRows,
    rows_word: str,
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
    constraints = update._stated().constraints
    condition = partial(read_condition, rows.X)
    strata = read_strata(constraints, condition, group, len(compared), label)
    people = People(constraints, group, len(compared), label=label, strata=strata)
    return rows_of_update(
        update,
        counted=counted,
        people=people,
        before=base.decisions,
        n_groups_left_out=int((numbers < 0).sum()),
        scores=base.for_positive.scores,
        rows_word=rows_word,
    )


def rows_of_update(update: BaseUpdate, *, counted: Mask, **rows: Any) -> EvaluationRows:
    """Return rows with what a fitted update states; totals have those that are `counted` (n,)."""
    return EvaluationRows(
        gain_raises=bool(update._favorable_label == update._pos_label),
        in_totals=EVERYBODY if counted.all() else counted,
        outcome=label_text(None, plain(update._pos_label)),
        bounds=update._bounds(),
        **rows,
    )


def _read_true_labels(update: BaseUpdate, y: Any, n: int) -> Mask | None:
    """Return where the true label is positive; None where y is None and not needed."""
    if y is None:
        needing = [one for one in update._stated().parts if one.needs_labels]
        if needing:
            raise InputError(
                f"constraints={needing[0].constraint.name!r} needs y_eval, but it is None.",
                parameter="constraints",
            )
        return None
    labels = read_labels(y, "y_eval")
    check_length(labels, "y_eval", n)
    check_known_labels(labels, update.classes_.tolist(), "y_eval")
    return np.asarray(labels == update._pos_label, dtype=bool)


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
