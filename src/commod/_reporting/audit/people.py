"""Read the people of an audit, leave out those who must not be shown, and count the others."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commod._data.arrays import Floats, Mask
from commod._data.columns import plain
from commod._data.disclosure import FEWEST_DESCRIBED, hidden_groups, in_totals
from commod._data.groups import (
    Groups,
    group_names_of,
    read_condition,
    read_control_features,
    read_groups,
    sensitive_names,
)
from commod._data.labels import (
    binary_outcome,
    check_length,
    distinct_labels,
    is_label_in,
    read_labels,
    read_scores,
)
from commod._record.audit import Request
from commod._record.explanation import Estimate
from commod._reporting.audit.request import condition_columns, stated_constraints
from commod.exceptions import DataWarning, InputError
from commod.metrics._constraint import Constraint
from commod.metrics._language import FairnessConstraint
from commod.metrics._people import People, Strata, strata_of

IntArray = NDArray[np.int64]

UNDEFINED = Estimate(None, None, None)
COMMON_POSITIVES = (1, True)
SCORES = ("scores_before", "scores_after", "scores_calibrated")
ROUNDING = 1e-12  # of a mean score
FEWEST_RIGHT = 100  # rows in which no decision of a model is right throughout


def finite_or_none(value: Any) -> float | None:
    """Return a finite float; None where the value is None, NaN or infinite."""
    return float(value) if value is not None and np.isfinite(value) else None


# ---------------------------------------------------------------------------------------------
# Labels


def read_two_labels(
    values: Mapping[str, NDArray[Any]], request: Request
) -> tuple[Any, Any, bool, bool]:
    """Return the negative and the positive label, and what the positive one is.

    The last two values say whether it is favourable, and whether scores predict it. `values` are
    decisions and true labels by parameter name. The request may name pos_label, favorable_label
    and score_is_for. Either of the first two stands for both. The negative label is None where
    nobody has it.
    """
    present = _present_labels(values)
    positive = _positive_label(present, request.pos_label, request.favorable_label)
    negative = next((label for label in present if label != positive), None)
    if negative is None and positive in COMMON_POSITIVES:
        negative = False if isinstance(positive, bool) else 0
    favorable = positive if request.favorable_label is None else request.favorable_label
    if favorable not in (negative, positive):
        raise InputError(
            f"favorable_label={favorable!r} is neither of the two labels, {negative!r} and "
            f"{positive!r}. Pass the label that is good for the person.",
            parameter="favorable_label",
        )
    is_scored = _scores_positive(negative, positive, request.score_is_for)
    return negative, positive, bool(favorable == positive), is_scored


def _scores_positive(negative: Any, positive: Any, score_is_for: Any) -> bool:
    """Return whether scores predict the positive label: by default, the larger of the two."""
    if score_is_for is None:
        return bool(negative is None or positive > negative)
    if score_is_for not in (negative, positive):
        raise InputError(
            f"score_is_for={score_is_for!r} is neither of the two labels, {negative!r} and "
            f"{positive!r}. Pass the label that a high score predicts.",
            parameter="score_is_for",
        )
    return bool(score_is_for == positive)


def _present_labels(values: Mapping[str, NDArray[Any]]) -> list[Any]:
    """Return the different labels, at most two; refuse more, and text mixed with numbers."""
    first_place: dict[Any, str] = {}
    for name, column in values.items():
        for label in distinct_labels(column):
            first_place.setdefault(label, name)
    n_texts = sum(isinstance(label, str) for label in first_place)
    if len(first_place) > 2 or 0 < n_texts < len(first_place):
        examples = ", ".join(f"{label!r} ({name})" for label, name in [*first_place.items()][:4])
        raise InputError(
            "Decisions and true labels must have two labels of one type, but hold "
            f"{len(first_place)} different values: {examples}. Use the same two labels in all "
            "columns; compare scores with the threshold first."
        )
    return list(first_place)


def _positive_label(present: list[Any], pos_label: Any, favorable_label: Any) -> Any:
    """Return the label whose rates are compared: `favorable_label` where only that is given."""
    if pos_label is None and is_label_in(favorable_label, present):
        pos_label = favorable_label
    if pos_label is None:
        pos_label = next((label for label in COMMON_POSITIVES if label in present), None)
    if pos_label is None or (pos_label not in present and len(present) == 2):
        raise InputError(
            f"pos_label={pos_label!r} is not one of the labels, {present}. Pass the label whose "
            "rates are counted as pos_label=.",
            parameter="pos_label",
        )
    return next((label for label in present if label == pos_label), pos_label)


# ---------------------------------------------------------------------------------------------
# Counts


@dataclass(frozen=True)
class DecisionCounts:
    """How many people have each true label and each pair of decisions, by group.

    `cells` has shape (n_groups, n_labels, 2, 2). Its axes are: group; true label (negative,
    positive; one entry where labels are not known); decision before; decision after (negative,
    positive).
    """

    cells: IntArray

    @property
    def has_labels(self) -> bool:
        """Return whether true labels are known."""
        return self.cells.shape[1] == 2

    @property
    def n(self) -> int:
        """Return the number of people."""
        return int(self.cells.sum())

    @property
    def sizes(self) -> IntArray:
        """Return the number of people in each group, shape (n_groups,)."""
        return np.asarray(self.cells.sum(axis=(1, 2, 3)))

    def of_groups(self, kept: Sequence[int] | Mask) -> DecisionCounts:
        """Return the counts of some groups only."""
        return DecisionCounts(self.cells[np.asarray(kept)])

    def gains_and_losses(self, favorable_is_positive: bool) -> tuple[int, int]:
        """Return the number of gains and the number of losses, over all groups."""
        raised, lowered = (int(self.cells[:, :, i, 1 - i].sum()) for i in (0, 1))
        return (raised, lowered) if favorable_is_positive else (lowered, raised)

    def fixed_and_introduced(self) -> tuple[IntArray, IntArray]:
        """Return the errors fixed and introduced in each group; true labels must be known."""
        cells = self.cells
        fixed = cells[:, 0, 1, 0] + cells[:, 1, 0, 1]
        introduced = cells[:, 0, 0, 1] + cells[:, 1, 1, 0]
        return fixed, introduced

    def by_decision(self, after: bool) -> IntArray:
        """Return people by group, true label and decision before or after; shape (G, L, 2)."""
        return np.asarray(self.cells.sum(axis=2 if after else 3))

    def table(self, constraint: Constraint, after: bool) -> tuple[IntArray, IntArray]:
        """Return sizes and positives of a constraint's cells, both of shape (n_rate_rows, G)."""
        by_rate_row = constraint.by_rate_row(self.by_decision(after), axis=1)
        return by_rate_row.sum(axis=2).T, by_rate_row[:, :, 1].T

    def is_comparable(self, constraint: Constraint) -> bool:
        """Return whether there are two groups or more and no cell of the constraint is empty."""
        if constraint.needs_labels and not self.has_labels:
            return False
        sizes, _ = self.table(constraint, after=False)
        return sizes.shape[1] > 1 and bool(sizes.all())


# ---------------------------------------------------------------------------------------------
# People


@dataclass(frozen=True)
class AuditedPeople:
    """The audited people; all arrays have shape (k,).

    A line stands for `n` people with the same group, decisions and true label. In memory each
    person has a line, and an engine counts people by line. Scores are sums over the people of a
    line, and `squares` are sums of squared scores, where a line stands for several people.
    `before`, `after` and `label` are True where the decision or true label is `positive_label`;
    nobody has a `negative_label` of None. Gains and losses refer to the favourable label.
    `group_names` are texts, all different. `conditions` has the columns that constraints are
    within.
    """

    before: Mask
    after: Mask
    label: Mask | None
    groups: Groups
    n: IntArray
    group_names: tuple[str, ...]
    negative_label: Any
    positive_label: Any
    favorable_is_positive: bool
    score_is_for_positive: bool
    scores_before: Floats | None = None
    scores_after: Floats | None = None
    scores_calibrated: Floats | None = None
    squares: Mapping[str, Floats] = field(default_factory=dict)
    conditions: Mapping[str, Groups] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.before)

    @property
    def favorable_label(self) -> Any:
        """Return the label that is good for the person."""
        return self.positive_label if self.favorable_is_positive else self.negative_label

    @property
    def score_label(self) -> Any:
        """Return the label that a high score predicts."""
        return self.positive_label if self.score_is_for_positive else self.negative_label

    @property
    def gain(self) -> Mask:
        """Return who gains the favourable outcome."""
        return ~self.favorable(self.before) & self.favorable(self.after)

    @property
    def loss(self) -> Mask:
        """Return who loses the favourable outcome."""
        return self.favorable(self.before) & ~self.favorable(self.after)

    @property
    def changed(self) -> Mask:
        """Return whose decision changes."""
        return np.asarray(self.before != self.after)

    def favorable(self, decisions: Mask) -> Mask:
        """Return where decisions, or true labels, are favourable."""
        return decisions if self.favorable_is_positive else ~decisions

    def take(self, kept: Mask | NDArray[np.intp]) -> AuditedPeople:
        """Return some of the lines; groups keep their numbers and names."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        taken: dict[str, Any] = {
            name: array[kept] for name, array in values.items() if isinstance(array, np.ndarray)
        }
        squares = {name: sums[kept] for name, sums in self.squares.items()}
        conditions = {name: column.take(kept) for name, column in self.conditions.items()}
        groups = self.groups.take(kept)
        return replace(self, **taken, groups=groups, squares=squares, conditions=conditions)

    def merged(self) -> AuditedPeople:
        """Return one line for all people who differ in nothing but their scores, without scores."""
        key = self.groups.codes.astype(np.int64) + 1
        for column in self.conditions.values():
            # numbered anew, because the product of many columns would be too large a number
            _, key = np.unique(key * len(column.labels) + column.codes, return_inverse=True)
        for flag in (self.label, self.before, self.after):
            key = 2 * key if flag is None else 2 * key + flag
        totals = np.bincount(key, self.n).astype(np.int64)
        line = np.zeros(len(totals), dtype=np.intp)
        line[key] = np.arange(len(key))
        no_scores: dict[str, Any] = dict.fromkeys(SCORES)
        lines = self.take(line[totals > 0])
        return replace(lines, n=totals[totals > 0], squares={}, **no_scores)

    def cells(self) -> IntArray:
        """Return all people by group, those without a group first, (n_groups + 1, L, 2, 2)."""
        n_groups, n_labels = len(self.group_names) + 1, 1 if self.label is None else 2
        cell = (self.groups.codes + 1) * (4 * n_labels)
        if self.label is not None:
            cell += 4 * self.label
        cell += 2 * self.before
        cell += self.after
        counts = np.bincount(cell, self.n, minlength=n_groups * n_labels * 4)
        return counts.reshape(n_groups, n_labels, 2, 2).astype(np.int64)

    def mean_scores(self, name: str) -> tuple[Floats, Floats] | None:
        """Return the mean of a score and of its square in each group, (n_groups,) each.

        None where this score is not given.
        """
        sums = getattr(self, name)
        if sums is None:
            return None
        squares = self.squares[name] if name in self.squares else sums**2
        codes, n_groups = self.groups.codes + 1, len(self.group_names) + 1
        totals, square_totals, n_people = (
            np.bincount(codes, values, minlength=n_groups)[1:] for values in (sums, squares, self.n)
        )
        known, n_people = n_people > 0, np.maximum(n_people, 1)
        means, square_means = (
            np.where(known, of / n_people, np.nan) for of in (totals, square_totals)
        )
        return means, square_means

    def warn_of_mix_ups(self, names: tuple[str, str, str], stacklevel: int) -> None:
        """Warn of decisions that are the true labels, and of scores that decisions go against.

        `names` are the parameters of decisions before and after, and of true labels. Decisions go
        against scores where those for the score's label have the lower mean score.
        """
        for name, decided in zip(names, (self.before, self.after), strict=False):
            if (
                self.label is not None
                and self.n.sum() >= FEWEST_RIGHT
                and (decided == self.label).all()
            ):
                warnings.warn(
                    f"{name} agrees with {names[2]} in all {self.n.sum():,} rows. It looks like "
                    f"the column of true labels. Pass the decisions of the model as {name}= (on "
                    "the command line: --before and --after).",
                    DataWarning,
                    stacklevel=stacklevel,
                )
        for name, decided in (("scores_before", self.before), ("scores_after", self.after)):
            totals, positive = getattr(self, name), decided == self.score_is_for_positive
            if totals is None or positive.all() or not positive.any():
                continue
            low, high = (totals[rows].sum() / self.n[rows].sum() for rows in (~positive, positive))
            if high < low - ROUNDING:
                warnings.warn(
                    f"{name} are read as scores of the label {self.score_label!r}, but are "
                    "lower where that is the decision. They look like scores of the other label. "
                    "Pass the label that a high score predicts as score_is_for= (on the command "
                    "line: --score-is-for).",
                    DataWarning,
                    stacklevel=stacklevel,
                )


def read_people(
    labels: Mapping[str, Any],
    scores: Mapping[str, Any],
    sensitive_features: Any,
    request: Request,
    group_names: Mapping[Any, Any] | None = None,
    unknown_groups: str = "error",
) -> AuditedPeople:
    """Return a checked line per row; people of unknown groups are refused, or kept without a group.

    `labels` are the decisions before, the decisions after and the true labels, by the name of
    their parameter; true labels may be None. `scores` are those of SCORES that are given, by name.
    The request may name pos_label and favorable_label.
    """
    before, after, truth = labels
    if sensitive_features is None:
        raise InputError(
            "sensitive_features is missing. Pass the group of each row: an audit compares groups."
        )
    values = {name: read_labels(v, name) for name, v in labels.items() if v is not None}
    for name in (before, after):
        if name not in values:
            raise InputError(f"{name} is None; pass the decision of every row.")
    n = len(values[before])
    if not n:
        raise InputError(f"{before} has 0 rows; at least 1 is needed.")
    for name, column in values.items():
        check_length(column, name, n)
    negative, positive, is_favorable, is_scored = read_two_labels(values, request)
    outcome = {name: binary_outcome(v, name, positive) for name, v in values.items()}
    groups = read_groups(sensitive_features, n, unknown_groups)
    names = group_names_of(groups.labels, sensitive_names(sensitive_features), group_names)
    checked: dict[str, Any] = {name: _scores(scores.get(name), name, n) for name in SCORES}
    return AuditedPeople(
        before=outcome[before],
        after=outcome[after],
        label=outcome.get(truth),
        groups=groups,
        n=np.ones(n, dtype=np.int64),
        group_names=names,
        negative_label=negative,
        positive_label=positive,
        favorable_is_positive=is_favorable,
        score_is_for_positive=is_scored,
        **checked,
    )


def _scores(values: Any, name: str, n: int) -> Floats | None:
    if values is None:
        return None
    scores = read_scores(values, name)
    check_length(scores, name, n)
    return scores


def with_conditions(
    people: AuditedPeople, request: Request, X: Any, control_features: Any = None
) -> AuditedPeople:
    """Return people with the columns of conditions, from `control_features` if given, else X."""
    names = condition_columns(request)
    if not names:
        return people
    if control_features is not None:
        given = read_control_features(control_features, len(people))
        return replace(people, conditions={name: given.strata(name) for name in names})
    if X is None:
        raise InputError(
            f"The request compares people within {names[0]!r}, and that column is not known here. "
            f"Pass it as control_features=data[{names[0]!r}], or among the columns of X.",
            parameter="control_features",
        )
    return replace(people, conditions={name: read_condition(X, name) for name in names})


# ---------------------------------------------------------------------------------------------
# Leave out people of groups that are too small to be shown; every figure counts the others


@dataclass(frozen=True, eq=False, kw_only=True)
class ShownPeople:
    """The people outside hidden groups, whom figures count, and what they are asked.

    `is_shown` (k,) says which lines they are. `n_hidden` (n_groups,) counts the others by group,
    and `n_unknown_hidden` those whose group is not known. Groups of `min_group_size` people are
    compared. All intervals have the `level`, and `rows` names the people.
    """

    people: AuditedPeople
    is_shown: Mask
    n_hidden: IntArray
    n_unknown_hidden: int
    request: Request
    rows: str
    level: float
    min_group_size: int

    @property
    def is_complete(self) -> bool:
        """Return whether nobody is hidden."""
        return bool(self.is_shown.all())

    @cached_property
    def is_known(self) -> Mask:
        """Return which of the lines that are shown have a known group."""
        return self.people.groups.is_known

    @cached_property
    def known(self) -> AuditedPeople:
        """Return the people of known groups, whom comparisons count."""
        return self.people if self.is_known.all() else self.people.take(self.is_known)

    # -- counts -----------------------------------------------------------------------------------

    @cached_property
    def _cells(self) -> IntArray:
        return self.people.cells()

    @cached_property
    def counts(self) -> DecisionCounts:
        """Return the counts of the people of known groups."""
        return DecisionCounts(self._cells[1:])

    @property
    def decision_shares(self) -> tuple[float, float, float]:
        """Return the shares of changed, formerly positive and now positive decisions of all."""
        table = self._cells.sum(axis=(0, 1)) / self._cells.sum()
        return float(table[0, 1] + table[1, 0]), float(table[1].sum()), float(table[:, 1].sum())

    @cached_property
    def unknown(self) -> DecisionCounts | None:
        """Return people of unknown groups, as one group: in totals only. None without any."""
        return DecisionCounts(self._cells[:1]) if self._cells[:1].any() else None

    @cached_property
    def everybody(self) -> DecisionCounts:
        """Return the counts by group, and those of people whose group is not known."""
        if self.unknown is None:
            return self.counts
        return DecisionCounts(np.vstack([self.counts.cells, self.unknown.cells]))

    @cached_property
    def sizes(self) -> IntArray:
        """Return the number of people in each group, hidden people included, shape (n_groups,)."""
        return self.counts.sizes + self.n_hidden

    @cached_property
    def is_compared(self) -> Mask:
        """Return which groups are large enough to be compared, shape (n_groups,)."""
        return np.asarray(self.sizes >= self.min_group_size)

    @cached_property
    def number(self) -> NDArray[np.intp]:
        """Return the number of each group among the compared ones, −1 if it is not one of them.

        The last entry is that of unknown groups, whose code is −1; shape (n_groups + 1,).
        """
        return np.append(np.where(self.is_compared, np.cumsum(self.is_compared) - 1, -1), -1)

    @cached_property
    def compared(self) -> DecisionCounts:
        """Return the counts of the compared groups."""
        return self.counts.of_groups(self.is_compared)

    @cached_property
    def compared_names(self) -> tuple[str, ...]:
        """Return the names of the compared groups."""
        return tuple(np.array(self.people.group_names, dtype=object)[self.is_compared])

    # -- the stated constraints -------------------------------------------------------------------

    @cached_property
    def stated(self) -> tuple[FairnessConstraint, ...]:
        """Return the constraints of the request with their bounds."""
        return stated_constraints(self.request)

    @property
    def constraint(self) -> Constraint:
        """Return the first constraint of the request."""
        return self.stated[0].constraint

    @cached_property
    def merged(self) -> AuditedPeople:
        """Return one line for all people who differ in nothing that constraints count."""
        return self.people.merged()

    @cached_property
    def strata(self) -> tuple[tuple[Strata, str], ...]:
        """Return the strata of each constraint, and why they leave nothing to compare, if so."""
        return tuple(self._strata(one.constraint) for one in self.stated)

    def _strata(self, constraint: Constraint) -> tuple[Strata, str]:
        lines, n_groups = self.merged, len(self.compared_names)
        within = constraint.within
        if within is None:
            return Strata.everybody(len(lines), n_groups), ""
        # Values tell about these people, even where the condition allows fewer.
        least = max(within.min_rows, FEWEST_DESCRIBED)
        constraint = replace(constraint, within=within._replace(min_rows=least))
        column, group = lines.conditions[within.column], self.number[lines.groups.codes]
        cells = (column.codes.astype(np.intp), column.labels, group, n_groups)
        try:
            if n_groups < constraint.min_groups:
                raise InputError("fewer than two groups are large enough.")
            return strata_of(constraint, *cells, lines.label, n_people=lines.n), ""
        except InputError as error:
            nothing = np.zeros((1, n_groups), dtype=bool)
            codes = np.full(len(lines), -1, dtype=np.intp)
            return Strata(codes, ("",), nothing, len(column.labels)), str(error)

    @cached_property
    def in_cells(self) -> People:
        """Return the merged lines as people of compared groups, in the cells of the constraints."""
        lines = self.merged
        return People(
            tuple(one.constraint for one in self.stated),
            self.number[lines.groups.codes],
            len(self.compared_names),
            label=lines.label,
            each=lines.n.astype(np.float64),
            strata={
                one.constraint: s for one, (s, _) in zip(self.stated, self.strata, strict=True)
            },
        )


def count_people(
    everybody: AuditedPeople,
    request: Request,
    label_names: Mapping[Any, str] | None,
    *,
    min_group_size: int,
    **settings: Any,
) -> ShownPeople:
    """Return the people outside groups that are too small to be shown.

    `settings` are the other fields of `ShownPeople` that people do not decide.
    """
    codes, n_groups = everybody.groups.codes, len(everybody.groups.labels)
    n_unknown, *known = np.bincount(codes + 1, everybody.n, n_groups + 1).astype(np.int64)
    sizes = np.array(known, dtype=np.int64)
    is_hidden = hidden_groups(sizes, sizes >= min_group_size)
    is_shown = in_totals(codes, is_hidden, int(n_unknown))
    return ShownPeople(
        people=everybody if is_shown.all() else everybody.take(is_shown),
        is_shown=is_shown,
        n_hidden=np.where(is_hidden, sizes, 0),
        n_unknown_hidden=int(everybody.n[(codes < 0) & ~is_shown].sum()),
        request=add_label_names(request, everybody, label_names),
        min_group_size=min_group_size,
        **settings,
    )


def add_label_names(
    request: Request, people: AuditedPeople, names: Mapping[Any, str] | None
) -> Request:
    """Return the request with the labels of the data and their names."""
    names = names or {}
    positive, favorable, other = (
        people.positive_label,
        people.favorable_label,
        people.negative_label,
    )
    for label in names:
        if label not in (other, positive):
            raise InputError(
                f"label_names has {label!r}, which is not a label; the labels are "
                f"{other!r} and {positive!r}."
            )
    return replace(
        request,
        pos_label=plain(positive),
        favorable_label=plain(favorable),
        pos_name=str(names.get(positive, request.pos_name or positive)),
        favorable_name=str(names.get(favorable, request.favorable_name or favorable)),
        other_label=plain(other),
        other_name=None if other is None else str(names.get(other, other)),
        score_is_for=plain(people.score_label),
    )
