"""Measure the stated constraints of a request: values, intervals, and the fewest changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commod._data.arrays import Codes, Floats, Mask
from commod._data.disclosure import FEWEST_DESCRIBED, hidden_groups, in_totals
from commod._data.groups import Groups
from commod._data.strata import read_condition, read_control_features
from commod._record import Estimate, Request
from commod._reporting.audit.counts import UNDEFINED, DecisionCounts, finite_or_none
from commod._reporting.audit.people import AuditedPeople
from commod._statistics.promises import sampled_interval
from commod.bounds._general import GeneralLimit, fewest_changes_of
from commod.exceptions import InputError
from commod.metrics._cells import CellTable, Strata, strata_of
from commod.metrics._comparison import GroupComparison
from commod.metrics._constraint import Constraint, get_constraint

IntArray = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class ConditionCounts:
    """People by all that constraints depend on; all arrays have shape (k,), one line per cell.

    A line stands for `n` people of the same group, true label and decisions, with the same values
    of all `columns`. `group` is −1 where it is not known.
    """

    group: Codes
    label: Mask | None
    before: Mask
    after: Mask
    n: IntArray
    columns: Mapping[str, Groups]

    @classmethod
    def of_counts(cls, counts: DecisionCounts) -> ConditionCounts:
        """Return the lines of counts; there are no conditions."""
        group, label, before, after = np.nonzero(counts.cells)
        return cls(
            group=group,
            label=label == 1 if counts.has_labels else None,
            before=before == 1,
            after=after == 1,
            n=counts.cells[group, label, before, after],
            columns={},
        )

    @classmethod
    def of_people(
        cls, people: AuditedPeople, columns: Mapping[str, Groups], n: IntArray | None = None
    ) -> ConditionCounts:
        """Return the lines of people; a row stands for one person, or for `n` (rows,)."""
        label = np.zeros(len(people), dtype=bool) if people.label is None else people.label
        key = people.groups.codes.astype(np.int64) + 1
        for part, size in [
            *((one.codes, len(one.labels)) for one in columns.values()),
            *((flag, 2) for flag in (label, people.before, people.after)),
        ]:
            _, key = np.unique(key * size + part, return_inverse=True)
        first = np.zeros(int(key.max(initial=0)) + 1, dtype=np.intp)
        first[key[::-1]] = np.arange(len(key))[::-1]
        totals = np.bincount(key, n, minlength=len(first)).astype(np.int64)
        return cls(
            group=people.groups.codes[first],
            label=None if people.label is None else people.label[first],
            before=people.before[first],
            after=people.after[first],
            n=totals,
            columns={name: replace(c, codes=c.codes[first]) for name, c in columns.items()},
        )

    def shown(
        self, n_hidden: NDArray[np.int64] | None, n_unknown_hidden: int = 0
    ) -> ConditionCounts:
        """Return the lines of people who are not hidden.

        `n_hidden` (n_groups,) counts those of hidden groups, `n_unknown_hidden` those whose group
        is not known.
        """
        if n_hidden is None:
            return self
        kept = in_totals(self.group, n_hidden > 0, n_unknown_hidden)
        return ConditionCounts(
            group=self.group[kept],
            label=None if self.label is None else self.label[kept],
            before=self.before[kept],
            after=self.after[kept],
            n=self.n[kept],
            columns={name: replace(c, codes=c.codes[kept]) for name, c in self.columns.items()},
        )


def condition_columns(constraints: Sequence[Constraint]) -> tuple[str, ...]:
    """Return the columns that constraints are within, each once."""
    conditions = (constraint.within for constraint in constraints)
    return tuple(dict.fromkeys(within.column for within in conditions if within is not None))


def read_conditions(
    names: Sequence[str], X: Any, control_features: Any, n_rows: int
) -> dict[str, Groups]:
    """Return the columns of conditions, from `control_features` where given, else from X."""
    if not names:
        return {}
    if control_features is not None:
        given = read_control_features(control_features, n_rows)
        return {name: given.strata(name) for name in names}
    if X is None:
        raise InputError(
            f"The request compares people within {names[0]!r}, and that column is not known here. "
            f"Pass it as control_features=data[{names[0]!r}], or among the columns of X.",
            parameter="control_features",
        )
    return {name: read_condition(X, name) for name in names}


LOOSER = 1e-9  # than values that were reached: they have 12 digits
TIME_LIMIT = 1.0  # seconds for each number of fewest changes


@dataclass(frozen=True)
class StatedConstraint:
    """A constraint of the request, and its bound; None where none is stated."""

    constraint: Constraint
    bound: float | None

    def is_kept(self, value: float | None) -> bool | None:
        """Return whether a value keeps the bound; None without a bound. An unknown value fails."""
        if self.bound is None:
            return None
        return value is not None and bool(self.constraint.is_met(value, self.bound))


def stated_constraints(request: Request) -> tuple[StatedConstraint, ...]:
    """Return all constraints of a request, the first one first.

    Examples
    --------
    >>> [one.constraint.metric for one in stated_constraints(Request(target=0.8))]
    ['P-rule']
    """
    pairs = [(request.constraints, request.target)]
    pairs += [(one.constraints, one.bound) for one in request.further]
    return tuple(StatedConstraint(get_constraint(name), bound) for name, bound in pairs)


@dataclass(frozen=True, eq=False)
class StatedCells:
    """The cells of the stated constraints, counted from lines of people.

    `is_compared` (n_groups,) says which groups are large enough. Strata need at least five rows per
    group even where the condition allows fewer: values tell about these people.
    """

    stated: tuple[StatedConstraint, ...]
    lines: ConditionCounts
    is_compared: Mask

    @property
    def is_simple(self) -> bool:
        """Return whether there is one constraint, whose limit has an exact algorithm."""
        return len(self.stated) == 1 and self.stated[0].constraint.is_simple

    @cached_property
    def group(self) -> NDArray[np.intp]:
        """Return the number of each line's group among the compared ones, (k,); −1 if it is not."""
        number = np.where(self.is_compared, np.cumsum(self.is_compared) - 1, -1)
        return np.append(number, -1)[self.lines.group]  # −1: the last entry

    @property
    def n_groups(self) -> int:
        """Return the number of compared groups."""
        return int(self.is_compared.sum())

    @cached_property
    def _read_strata(self) -> tuple[tuple[Strata, str], ...]:
        return tuple(self._strata(one.constraint) for one in self.stated)

    def strata(self, i: int) -> Strata:
        """Return the strata of the i-th constraint."""
        return self._read_strata[i][0]

    def why_undefined(self, i: int) -> str:
        """Return why a condition leaves nothing to compare; empty where it does not."""
        return self._read_strata[i][1]

    def _strata(self, constraint: Constraint) -> tuple[Strata, str]:
        within = constraint.within
        n_lines = len(self.lines.n)
        if within is None:
            return Strata.everybody(n_lines, self.n_groups), ""
        least = max(within.min_rows, FEWEST_DESCRIBED)
        constraint = replace(constraint, within=within._replace(min_rows=least))
        column = self.lines.columns[within.column]
        cells = (column.codes.astype(np.intp), column.labels, self.group, self.n_groups)
        try:
            if self.n_groups < constraint.min_groups:
                raise InputError("fewer than two groups are large enough.")
            return strata_of(constraint, *cells, self.lines.label, n_people=self.lines.n), ""
        except InputError as error:
            nothing = np.zeros((1, self.n_groups), dtype=bool)
            codes = np.full(n_lines, -1, dtype=np.intp)
            return Strata(codes, ("",), nothing, len(column.labels)), str(error)

    @cached_property
    def table(self) -> CellTable:
        """Return the cell of each line."""
        constraints = [one.constraint for one in self.stated]
        strata = [self.strata(i) for i in range(len(self.stated))]
        return CellTable.of(constraints, strata, self.group, self.n_groups, self.lines.label)

    @cached_property
    def sizes(self) -> Floats:
        """Return the people of each cell, (R, G)."""
        return self.table.totals(self.lines.n.astype(np.float64))

    def positives(self, after: bool) -> Floats:
        """Return the people of each cell with a positive decision before or after, (R, G)."""
        decided = self.lines.after if after else self.lines.before
        return self.table.totals(self.lines.n.astype(np.float64) * decided)

    @cached_property
    def compared(self) -> list[list[GroupComparison]]:
        """Return the comparisons of each constraint as functions of the positives."""
        return [self.table.comparisons(i, self.sizes) for i in range(len(self.stated))]

    def value(self, i: int, after: bool) -> float | None:
        """Return the i-th metric before or after; None where it is undefined."""
        if not self.n_groups:
            return None
        return finite_or_none(self.table.value(i, self.sizes, self.positives(after)))

    def estimate(self, i: int, after: bool, level: float) -> Estimate:
        """Return the i-th metric with an approximate interval, from simulated samples."""
        value = self.value(i, after)
        if value is None:
            return UNDEFINED
        by_rates = [one.per_rate(self.sizes.ravel()) for one in self.compared[i]]
        rates = self.positives(after) / np.maximum(self.sizes, 1.0)
        constraint = self.stated[i].constraint
        low, high = sampled_interval(constraint, by_rates, self.sizes, rates, level)
        # Samples look less fair than the people they come from, so these may be fairer than the
        # fairest samples: as far from the value as the least fair samples are.
        if constraint.higher_is_fairer:
            high = min(max(high, 2 * value - low, value), constraint.largest)
            low = min(low, value)
        else:
            low = max(min(low, 2 * value - high, value), 0.0)
            high = max(high, value)
        return Estimate(value, finite_or_none(low), finite_or_none(high))

    # -- the fewest changes ----------------------------------------------------------------------

    def reached_bounds(self) -> list[float | None]:
        """Return the bounds that the update keeps, a little looser.

        The first constraint has the value that it reached. A bound that is missed, or not stated,
        becomes the value that was reached.
        """
        bounds: list[float | None] = []
        for i, one in enumerate(self.stated):
            value = self.value(i, after=True)
            keeps = i > 0 and one.bound is not None and one.is_kept(value)
            bound = one.bound if keeps else value
            looser = -LOOSER if one.constraint.higher_is_fairer else LOOSER
            bounds.append(None if bound is None else bound + looser)
        return bounds

    def fewest(
        self, bounds: list[float | None], *, may_raise: bool, may_lower: bool
    ) -> GeneralLimit | None:
        """Return the fewest changes that keep all bounds; None if undefined or impossible."""
        required = []
        for compared, bound in zip(self.compared, bounds, strict=True):
            if bound is None or not compared:
                return None
            required += [(one, bound) for one in compared]
        return fewest_changes_of(
            required,
            self.sizes.astype(np.int64),
            self.positives(after=False).astype(np.int64),
            may_raise=may_raise,
            may_lower=may_lower,
            time_limit=TIME_LIMIT,
        )


# ---------------------------------------------------------------------------------------------
# Leave out people of groups that are too small to be shown; every figure counts the others


@dataclass(frozen=True)
class ShownPeople:
    """The people outside hidden groups, whom figures count.

    `is_shown` (n,) says who they are. `n_hidden` (n_groups,) counts the others by group, and
    `n_unknown_hidden` those whose group is not known.
    """

    people: AuditedPeople
    is_shown: NDArray[np.bool_]
    n_hidden: NDArray[np.int64]
    n_unknown_hidden: int

    @property
    def is_complete(self) -> bool:
        """Return whether nobody is hidden."""
        return bool(self.is_shown.all())

    @cached_property
    def is_known(self) -> NDArray[np.bool_]:
        """Return which of the people who are shown have a known group."""
        return self.people.groups.is_known

    @cached_property
    def known(self) -> AuditedPeople:
        """Return the people of known groups, whom comparisons count."""
        return self.people if self.is_known.all() else self.people.take(self.is_known)

    def figures(self) -> dict[str, Any]:
        """Return the fields of `Evidence` that count these people and the hidden ones."""
        return {
            "coding": self.people.coding,
            "counts": self.people.count(),
            "unknown": self.people.count_unknown(),
            "n_hidden": self.n_hidden,
            "n_unknown_hidden": self.n_unknown_hidden,
        }


def without_hidden(everybody: AuditedPeople, min_group_size: int) -> ShownPeople:
    """Return the people outside groups that are too small to be shown."""
    sizes = everybody.groups.sizes.astype(np.int64)
    is_hidden = hidden_groups(sizes, sizes >= min_group_size)
    is_unknown = ~everybody.groups.is_known
    is_shown = in_totals(everybody.groups.codes, is_hidden, int(is_unknown.sum()))
    people = everybody if is_shown.all() else everybody.take(is_shown)
    n_unknown_hidden = int((is_unknown & ~is_shown).sum())
    return ShownPeople(people, is_shown, np.where(is_hidden, sizes, 0), n_unknown_hidden)


def count_conditions(
    everybody: AuditedPeople, conditions: Mapping[str, Groups], shown_people: ShownPeople
) -> ConditionCounts | None:
    """Return the counts of people outside hidden groups by stratum; None without a condition."""
    if not conditions:
        return None
    lines = ConditionCounts.of_people(everybody, conditions)
    return lines.shown(shown_people.n_hidden, shown_people.n_unknown_hidden)
