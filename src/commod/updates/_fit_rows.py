"""The checked rows that an update is fitted on: what is read, measured and warned about."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commod._data.arrays import Codes, Mask
from commod._data.base_model import BaseScores
from commod._data.columns import Column
from commod._data.disclosure import hidden_groups, in_totals
from commod._data.draws import row_hashes
from commod._data.groups import Groups
from commod._data.labels import check_known_labels, is_label_in
from commod._data.proxies import NEAR_COPY_AREA, ProxyTest, determines_group
from commod._evidence.task import N_FOLDS
from commod._text import (
    MAX_LISTED_GROUPS,
    did_you_mean,
    label_text,
    list_names,
    n_of,
    shorten,
    shown,
    verb,
    visible,
)
from commod.exceptions import BaseModelWarning, DataWarning, InputError
from commod.metrics._changes import Sides, is_degenerate
from commod.metrics._constraint import Constraint
from commod.metrics._people import People, Strata, strata_of
from commod.updates._interface import Decisions

MAX_POINT_ROWS = 1_000_000  # that points come from
HASH_BITS = 31  # the first bits of a hash, by which rows are chosen: as many as a draw has

FEWEST_DECISIONS = 5  # of each kind, unless they are SMALLEST_SHARE of a small table
SMALLEST_SHARE = 0.01


@dataclass(frozen=True)
class FitRows:
    """The checked rows that an update is fitted on; `label` is None where y was not given.

    `group_names` are the labels of the groups as different texts. `strata` are those of the
    constraints that have a condition.

    A row whose group is not known is not `in_constraint`; its code is −1. Where users state
    probabilities of the groups, all rows are in the constraint, and rates are expectations.
    `kept_groups` (n_groups,) are then the groups that are large enough.

    A row may stand for several people: `people` (n,) is how many. `weight` and `squares` are then
    the sums of their weights, and of the squares of their weights. None: every row is one person.

    `hashes` (n,) are those of a key, or known already; None where the content of a row is hashed.
    `position` (n,) is the place of each row among those that the user gave; None: in their order.
    """

    columns: list[Column]
    base: BaseScores
    label: NDArray[np.bool_] | None
    groups: Groups
    in_constraint: NDArray[np.bool_]
    weight: NDArray[np.float64]
    group_names: tuple[str, ...]
    strata: Mapping[Constraint, Strata] = field(default_factory=dict)
    kept_groups: NDArray[np.bool_] | None = None
    people: NDArray[np.float64] | None = None
    squares: NDArray[np.float64] | None = None
    hashes: NDArray[np.uint64] | None = None
    position: NDArray[np.intp] | None = None

    def __len__(self) -> int:
        return len(self.weight)

    def take(self, index: NDArray[np.intp]) -> FitRows:
        """Return the rows `index` (m,)."""
        names = ("label", "in_constraint", "weight", "people", "squares", "hashes")
        arrays = {name: getattr(self, name) for name in names}
        taken: dict[str, Any] = {n: None if a is None else a[index] for n, a in arrays.items()}
        return replace(
            self,
            columns=[column.take(index) for column in self.columns],
            base=self.base.take(index),
            groups=self.groups.take(index),
            strata={one: strata.take(index) for one, strata in self.strata.items()},
            position=index if self.position is None else self.position[index],
            **taken,
        )

    @property
    def n_people(self) -> int:
        """Return how many people all rows stand for."""
        return len(self) if self.people is None else int(np.rint(self.people.sum()))

    def count(self, rows: NDArray[np.bool_]) -> int:
        """Return how many people some rows (n,) stand for."""
        return int(rows.sum() if self.people is None else np.rint(self.people[rows].sum()))

    def count_groups(self) -> NDArray[np.intp]:
        """Return how many people with a weight each group has, shape (n_groups,)."""
        if self.people is None:
            return self.groups.count(self.weight > 0)
        counted = self.groups.is_known & (self.weight > 0)
        sizes = np.bincount(
            self.groups.codes[counted], self.people[counted], len(self.groups.labels)
        )
        return np.rint(sizes).astype(np.intp)

    @property
    def own_hashes(self) -> NDArray[np.uint64]:
        """Return a number of 64 bits for each row, (n,), by its key or by its content."""
        return self.content_hashes if self.hashes is None else self.hashes

    @cached_property
    def content_hashes(self) -> NDArray[np.uint64]:
        """Return a number of 64 bits for each row, (n,), by its columns, group and label.

        The score is left out, because the last bit of a model's score depends on the processor. It
        orders rows that are equal otherwise, and then the weight does.
        """
        known = [*self.columns, Column("group", "category", self.groups.codes, self.group_names)]
        if self.label is not None:
            known.append(Column("label", "numeric", self.label.astype(np.float64)))
        return row_hashes(known, (self.base.scores, self.weight))

    @cached_property
    def fold(self) -> NDArray[np.int8]:
        """Return the fold of each row, (n,), by the hash of its content or of its key."""
        return (self.own_hashes % np.uint64(N_FOLDS)).astype(np.int8)

    @cached_property
    def is_weighted(self) -> bool:
        """Return whether rows have different weights."""
        if self.people is None:
            return bool((self.weight != self.weight[0]).any())
        weight = self.weight / self.people
        return not np.allclose(weight, weight[0], rtol=1e-9, atol=0.0)

    @property
    def each(self) -> NDArray[np.float64]:
        """Return how many people each row stands for, shape (n,)."""
        return np.ones(len(self)) if self.people is None else self.people

    @property
    def square_weight(self) -> NDArray[np.float64]:
        """Return the sum of the squared weights of the people of each row, shape (n,)."""
        return self.weight**2 / self.each if self.squares is None else self.squares

    def compared(self, constraints: Sequence[Constraint]) -> People:
        """Return the people of the groups that are large enough, whom constraints compare."""
        codes, n_groups = self.large_groups
        return People(
            tuple(constraints),
            codes,
            n_groups,
            label=self.label,
            weight=self.weight,
            each=self.people,
            strata=self.strata,
            probabilities=self.probabilities,
        )

    def fairness(self, constraint: Constraint, decisions: Decisions) -> float:
        """Return the metric of a constraint over the groups that are large enough."""
        return self.compared([constraint]).fairness(decisions)

    def strata_of(self, constraint: Constraint) -> Strata:
        """Return the strata of a constraint; one of all people where it has no condition."""
        if constraint.within is not None:
            return self.strata[constraint]
        return Strata.everybody(len(self), self.large_groups[1])

    @cached_property
    def large_groups(self) -> tuple[NDArray[np.intp], int]:
        """Return each row's group, numbered among the large enough ones, and how many these are.

        A row whose group is left out of the constraint has −1.
        """
        if self.probabilities is not None:
            return self.probabilities.argmax(axis=1), self.probabilities.shape[1]
        is_large = self.is_large_group
        number = np.append(np.cumsum(is_large) - 1, -1)  # the code −1 points at the last entry
        codes = number[self.groups.codes]
        return np.where(self.in_constraint, codes, -1), int(is_large.sum())

    @cached_property
    def is_large_group(self) -> NDArray[np.bool_]:
        """Return which groups are in the constraint, shape (n_groups,)."""
        if self.kept_groups is not None:
            return self.kept_groups
        return self.groups.count(self.in_constraint) > 0

    @cached_property
    def probabilities(self) -> NDArray[np.float64] | None:
        """Return the probabilities of the groups in the constraint, (n, n_large); None if known."""
        stated = self.groups.probabilities
        return None if stated is None else stated[:, self.is_large_group]

    @cached_property
    def in_totals(self) -> NDArray[np.bool_]:
        """Return which rows count in totals, shape (n,): all but those of hidden groups.

        Fewer than five people whose group is not known are hidden, too. An audit hides the same
        people. If the totals of a patch held them, the difference between the two would reveal
        their decisions and true labels.
        """
        if self.probabilities is not None:
            return np.ones(len(self), dtype=bool)  # it is not known who belongs to a hidden group
        is_hidden = hidden_groups(self.count_groups(), self.is_large_group)
        n_unknown = int((~self.groups.is_known & (self.weight > 0)).sum())
        return in_totals(self.groups.codes, is_hidden, n_unknown)

    @cached_property
    def sides(self) -> Sides:
        """Return the people of the constraint ranked by score, negative and positive decisions.

        Positive decisions count as favourable; `turned` is for the other case.
        """
        codes, n_groups = self.large_groups
        if self.probabilities is not None:  # nobody's group is certain: all people are compared
            codes, n_groups = np.zeros_like(codes), 1
        counted = np.where(self.weight > 0, codes, -1)
        return Sides.of(self.base.for_positive.scores, self.base.decisions, counted, n_groups)

    def is_degenerate(self, positive: NDArray[np.bool_]) -> bool:
        """Return whether new decisions (n,) are no correction of those of the base model."""
        changed = np.average(self.base.decisions != positive, weights=self.people)
        return bool(is_degenerate(changed, *self._volumes(positive)))

    def alike(self, positive: NDArray[np.bool_]) -> tuple[float, float]:
        """Return the share of people with the more frequent decision, before and after."""
        before, after = self._volumes(positive)
        return max(before, 1 - before), max(after, 1 - after)

    def _volumes(self, positive: NDArray[np.bool_]) -> tuple[float, float]:
        before, after = (
            float(np.average(decided, weights=self.weight))
            for decided in (self.base.decisions, positive)
        )
        return before, after

    def accuracy(self, decisions: Decisions) -> float:
        """Return the weighted accuracy; NaN where true labels are unknown."""
        if self.label is None:
            return float("nan")
        return float(np.average(1 - np.abs(decisions - self.label * 1.0), weights=self.weight))


def with_large_groups(rows: FitRows, min_group_size: int) -> FitRows:
    """Return the rows with those in the constraint whose groups have enough people with a weight.

    Smaller groups are left out of the constraint, with a warning. A row without a group belongs to
    none. With probabilities, every row belongs to some group.
    """
    groups, names, sizes = rows.groups, rows.group_names, rows.count_groups()
    is_large = sizes >= min_group_size
    listed = partial(list_names, most=MAX_LISTED_GROUPS, width=120)  # names are cut, sizes are not
    if is_large.sum() < 2:
        counts = [f"{shown(g)}: {n}" for g, n in zip(groups.labels, sizes.tolist(), strict=True)]
        raise InputError(
            f"sensitive_features has {n_of(int(is_large.sum()), 'group')} of at least "
            f"min_group_size={min_group_size} rows ({listed(counts)}), but fairness "
            "compares at least 2. Merge groups (cut a number into bins), add rows or lower "
            "min_group_size.",
            parameter="min_group_size",
        )
    if not is_large.all():
        sized = zip(names, sizes.tolist(), is_large, strict=True)
        small = [f"{visible(name)} ({n_of(n, 'row')})" for name, n, large in sized if not large]
        warnings.warn(
            f"{n_of(len(small), 'group')} with fewer than min_group_size={min_group_size} rows "
            f"{verb(len(small), 'be')} left out of the constraint: {listed(small)}. "
            "Nothing is promised about these groups.",
            DataWarning,
            stacklevel=6,
        )
    if groups.probabilities is not None:
        return replace(rows, kept_groups=is_large)
    in_constraint = np.append(is_large, False)[groups.codes]  # the code −1 points at the last entry
    return replace(rows, in_constraint=in_constraint)


def check_both_decisions(
    rows: FitRows, constraint: Constraint, labels: tuple[object, object]
) -> None:
    """Refuse, or warn of, a base model whose decisions are nearly all of one kind.

    A ratio of rates near zero is refused: it would rest on a handful of people, or on decisions
    that the update makes up. Elsewhere nearly equal decisions look fair, so a warning says why.
    `labels` are the negative and the positive label.
    """
    counted = rows.in_constraint & (rows.weight > 0)
    n_rows, n_positive = rows.count(counted), rows.count(counted & rows.base.decisions)
    for is_positive, n in ((False, n_rows - n_positive), (True, n_positive)):
        if n >= FEWEST_DECISIONS or n >= SMALLEST_SHARE * n_rows:
            continue
        share = f"Only {n} of" if n else "None of"
        text = (
            f"{share} the {n_rows:,} base decisions {verb(n, 'be')} {labels[is_positive]!r} at "
            f"threshold={rows.base.threshold:g}."
        )
        way_out = "Check the threshold, and which label a high score predicts."
        metric = constraint.metric_of(f"label {shown(labels[True])}")
        if is_positive and constraint.is_ratio:
            bar = f"at least {FEWEST_DECISIONS} of them, or {SMALLEST_SHARE:.0%} of the rows"
            raise InputError(
                f"{text} The {metric} needs {bar}: with fewer, it would compare "
                f"decisions that the update makes up. {way_out}",
                parameter="threshold",
            )
        reason = f"The {metric} over nearly equal decisions says little about fairness."
        warnings.warn(f"{text} {reason} {way_out}", BaseModelWarning, stacklevel=6)


def check_group_columns(rows: FitRows, locked: Collection[str], *, is_refused: bool = True) -> None:
    """Refuse an unlocked column of X that determines a sensitive feature; warn if it nearly does.

    A column nearly determines it if it alone predicts who belongs to a group with an area under
    the curve of at least NEAR_COPY_AREA. Rows without weight, or without a group, count as absent.
    A method without `locked_features` warns of both.
    """
    weighted = (rows.weight > 0) & rows.groups.is_known
    if rows.groups.probabilities is not None:
        return  # columns from which the probabilities come predict them, and this is no fault
    test = ProxyTest(tuple(codes[weighted] for codes in rows.groups.codings))
    way_out = "Put the column into locked_features to keep it out (on the command line: --ignore)."
    columns = rows.columns if weighted.all() else [c.take(weighted) for c in rows.columns]
    for column in columns:
        if column.name in locked:
            continue
        finding, is_exact = "determines the sensitive group", test.determines(column)
        if not is_exact:
            prediction = test.predict(column)
            if not prediction.is_near_copy:
                continue
            finding = (
                f"nearly determines the sensitive group: alone, it predicts who belongs to a group "
                f"with an area under the curve of {prediction.area:.3f} (0.5 is chance, 1 is "
                f"exact, the warning begins at {NEAR_COPY_AREA:g})"
            )
        message = (
            f"Column {column.name!r} of X {finding}, so the update would use the sensitive "
            f"features when it predicts. {way_out}"
        )
        if is_refused and test.surely_determines(column, columns):
            raise InputError(message, parameter="locked_features")
        warnings.warn(message, DataWarning, stacklevel=4)


def check_label_not_read(rows: FitRows, name: Any, locked: Collection[str]) -> None:
    """Refuse an unlocked column of X that has the name of y and determines the label."""
    for column in rows.columns:
        if rows.label is None or column.name != name or name in locked:
            continue
        if determines_group(column, rows.label.astype(np.intp)):
            raise InputError(
                f"X has the column {name!r}, which holds the true labels y. New people have none, "
                "so an update must not read them: drop the column.",
                parameter="X",
            )


# ---------------------------------------------------------------------------------------------
# Labels


@dataclass(frozen=True)
class ComparedText:
    """What an update compares, in words: each rate with the label that it counts.

    Examples
    --------
    >>> from commod.metrics._constraint import get_constraint
    >>> text = ComparedText(get_constraint("false_positive_rate_parity"), 1, 0)
    >>> text.metric, text.spelled
    ('FPR gap of label 1', ' The rate is how often people are decided 1 among those whose ...')
    """

    constraint: Constraint
    label: Any
    other_label: Any

    @property
    def metric(self) -> str:
        """Return the metric with the label that it counts."""
        return self.metric_of(self.constraint)

    def metric_of(self, constraint: Constraint) -> str:
        """Return the metric of another constraint with the label that it counts."""
        return constraint.metric_of(label_text(None, self.label))

    @property
    def other_metric(self) -> str:
        """Return the same metric of the other label."""
        return self.constraint.metric_of(label_text(None, self.other_label))

    @property
    def spelled(self) -> str:
        """Return a sentence on the rates among true labels; empty where everybody counts."""
        if not self.constraint.needs_labels:
            return ""
        text = self.constraint.meaning(*map(shorten, (self.label, self.other_label)))
        (measure, *others), is_rate = self.constraint.measures, self.constraint.compares_rates
        one = f"The {'rate' if is_rate else measure.name} is"
        return f" {'The rates are' if others else one} {text}."


def counted_labels(pos_label: Any, favorable_label: Any, classes: NDArray[Any]) -> tuple[Any, Any]:
    """Return the label whose rates are compared, and the label that is good for the person.

    Either of the two parameters stands for both where the other is None. Where both are None, both
    labels are `classes[1]`.

    Examples
    --------
    >>> classes = np.array(["denied", "granted"])
    >>> counted_labels(None, "denied", classes)
    ('denied', 'denied')
    >>> counted_labels("granted", "denied", classes)
    ('granted', 'denied')
    """
    known = classes.tolist()
    named = {"pos_label": pos_label, "favorable_label": favorable_label}
    for parameter, label in named.items():
        if label is not None and not is_label_in(label, known):
            raise InputError(
                f"{parameter}={shown(label)} is not a label of the base model: {known}."
                f"{did_you_mean(label, known)}",
                parameter=parameter,
            )
    stated = [label for label in (pos_label, favorable_label) if label is not None]
    default = stated[0] if stated else classes[1]
    return (
        default if pos_label is None else pos_label,
        default if favorable_label is None else favorable_label,
    )


def outcomes_of(
    labels: NDArray[Any] | None,
    classes: NDArray[Any],
    pos_label: Any,
    constraints: Sequence[Constraint],
) -> NDArray[np.bool_] | None:
    """Return where true labels are `pos_label`, shape (n,); None without labels."""
    if labels is None:
        needing = next((one for one in constraints if one.needs_labels), None)
        if needing is not None:
            raise InputError(
                f"This estimator requires y to be passed, but the target y is None: "
                f"constraints={needing.name!r} compares errors, and errors need labels. "
                "Only rates of all people, as in demographic_parity, can do without."
            )
        return None
    check_known_labels(labels, classes.tolist(), "y")
    label = np.asarray(labels == pos_label, dtype=bool)
    if label.all() or not label.any():
        raise InputError(
            f"y holds one class only ({labels[:1].tolist()[0]!r}); telling errors from right "
            "decisions needs both."
        )
    return label


# ---------------------------------------------------------------------------------------------
# Conditions


def with_strata(
    rows: FitRows, constraints: Sequence[Constraint], condition: Callable[[str], Groups]
) -> FitRows:
    """Return the fit rows with the strata of all constraints that have a condition."""
    if all(constraint.within is None for constraint in constraints):
        return rows
    people = *rows.large_groups, rows.label, rows.weight > 0
    n_people = None if rows.people is None else np.rint(rows.people).astype(np.intp)
    return replace(rows, strata=read_strata(constraints, condition, *people, n_people))


def read_strata(
    constraints: Sequence[Constraint],
    condition: Callable[[str], Groups],
    group: Codes,
    n_groups: int,
    label: Mask | None,
    is_counted: Mask | None = None,
    n_people: Codes | None = None,
) -> dict[Constraint, Strata]:
    """Return the strata of each constraint that has a condition.

    `condition` reads the column of this name. `group` (n,) is −1 for people whom no constraint
    counts. `n_people` (n,) is how many people a row stands for; None: one.
    """
    strata = {}
    for constraint in constraints:
        if constraint.within is None:
            continue
        column = condition(constraint.within.column)
        people = group, n_groups, label, is_counted, n_people
        strata[constraint] = strata_of(constraint, column.codes, column.labels, *people)
    return strata


# ---------------------------------------------------------------------------------------------
# The order of rows, and those that points come from


def may_come_whole(n_rows: int) -> bool:
    """Return whether points come from all of `n_rows` rows."""
    return n_rows <= MAX_POINT_ROWS


def hash_bound(n_rows: int) -> int:
    """Return the bound for the first HASH_BITS bits of the hash of a row that points come from.

    Examples
    --------
    >>> hash_bound(4_000_000) / 2**HASH_BITS
    0.25
    """
    return (MAX_POINT_ROWS << HASH_BITS) // n_rows


def hash_order(rows: FitRows) -> NDArray[np.intp]:
    """Return the order of the rows by their hashes, (n,), which their own order does not change."""
    hashes = rows.own_hashes
    order = np.argsort(hashes, kind="stable")
    if rows.hashes is not None and (np.diff(hashes[order]) == 0).any():  # rows share a key
        return np.lexsort([rows.content_hashes, hashes])
    return order


def ordered_by_hash(rows: FitRows) -> FitRows:
    """Return the rows in the order of their hashes, which the rows know from then on.

    So nothing that follows depends on the order in which a user gives the rows.
    """
    return replace(rows, hashes=rows.own_hashes).take(hash_order(rows))


def point_rows(rows: FitRows) -> FitRows:
    """Return the rows that points come from: the first ones, in the order of hashes."""
    if may_come_whole(len(rows)):
        return rows
    bound = np.uint64(hash_bound(len(rows)))
    n_rows = int(np.searchsorted(rows.own_hashes >> np.uint64(64 - HASH_BITS), bound))
    return rows if n_rows == len(rows) else rows.take(np.arange(n_rows))
