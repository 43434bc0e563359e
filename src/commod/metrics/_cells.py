"""Put people into cells of stratum, true label and group, and measure constraints on the cells."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commod._data.arrays import Floats, Mask
from commod._text import n_of
from commod.exceptions import InputError
from commod.metrics._comparison import CellRows, GroupComparison, comparisons
from commod.metrics._constraint import Constraint, ConstraintLike, get_constraint

IntArray = NDArray[np.intp]
Events = Mask | Floats  # where the event happened, or its probability

MAX_STRATA = 200  # that are compared: a search looks at each of them, and so do people
DIGITS = 12  # of a value: rates are ratios of counts, so more digits are rounding errors


@dataclass(frozen=True)
class Strata:
    """The strata of one constraint: `codes` (n,) index `labels`; −1 where a stratum is left out.

    `is_compared` (n_strata, G) says which groups have enough rows there. `n_left_out` is the number
    of strata that are left out, because fewer groups than the constraint needs are large enough.
    """

    codes: IntArray
    labels: tuple[Hashable, ...]
    is_compared: Mask
    n_left_out: int = 0

    @classmethod
    def everybody(cls, n_rows: int, n_groups: int) -> Strata:
        """Return one stratum of all people, where all groups are compared."""
        codes = np.broadcast_to(np.intp(0), n_rows)  # takes no memory
        return cls(codes, ("",), np.ones((1, n_groups), dtype=bool))

    def take(self, index: IntArray) -> Strata:
        """Return the strata of the rows `index` (m,); the same groups are compared."""
        return replace(self, codes=self.codes[index])


def strata_of(
    constraint: Constraint,
    codes: IntArray,
    labels: Sequence[Hashable],
    group: IntArray,
    n_groups: int,
    label: Mask | None,
    is_counted: Mask | None = None,
    n_people: IntArray | None = None,
) -> Strata:
    """Return the strata of a conditional constraint; `codes` (n,) index the values `labels`.

    A group is compared in a stratum where every number that is compared counts at least `min_rows`
    of its rows: all of them, or those with one true label. Only rows `is_counted` (n,) count; all
    of them if None. A row stands for one person, or for `n_people` (n,). An average over strata
    needs the same groups everywhere, so it leaves out strata where one of them is too small.
    """
    assert constraint.within is not None
    kept = group >= 0 if is_counted is None else (group >= 0) & is_counted
    smallest = np.full((len(labels), n_groups), np.iinfo(np.int64).max)
    for measure in constraint.measures:
        only = measure.label if measure.needs_labels else None
        counted = kept if only is None or label is None else kept & (label == only)
        cell = codes[counted] * n_groups + group[counted]
        people = None if n_people is None else n_people[counted]
        sizes = np.bincount(cell, people, minlength=smallest.size).reshape(smallest.shape)
        smallest = np.minimum(smallest, sizes.astype(np.int64))
    is_large = smallest >= max(constraint.within.min_rows, 1)
    needed = n_groups if constraint.within.over == "average" else constraint.min_groups
    is_kept = is_large.sum(axis=1) >= needed
    _check_strata(constraint, is_kept, smallest)
    number = np.where(is_kept, np.cumsum(is_kept) - 1, -1)
    names = tuple(name for name, keep in zip(labels, is_kept.tolist(), strict=True) if keep)
    n_left_out = len(labels) - len(names)
    return Strata(number[codes], names, is_large[is_kept], n_left_out)


def _check_strata(constraint: Constraint, is_kept: Mask, smallest: NDArray[np.int64]) -> None:
    """Refuse a condition that leaves nothing to compare, or too much."""
    within = constraint.within
    assert within is not None
    n_kept = int(is_kept.sum())
    needed = "every group" if within.over == "average" else n_of(constraint.min_groups, "group")
    if not n_kept:
        which = "second largest" if constraint.min_groups > 1 else "largest"
        most = f"the {which} group of a stratum has"
        second = np.sort(smallest, axis=1)[:, -min(constraint.min_groups, smallest.shape[1])]
        raise InputError(
            f"within={within.column!r} leaves nothing to compare: none of its "
            f"{n_of(len(is_kept), 'stratum')} has {needed} with at least "
            f"min_rows={within.min_rows} rows that count; {most} "
            f"{int(second.max()):,} at most. Merge values of the column, or lower min_rows.",
            parameter="constraints",
        )
    if n_kept > MAX_STRATA:
        raise InputError(
            f"within={within.column!r} has {n_kept:,} strata that are large enough, and at most "
            f"{MAX_STRATA} can be compared. Merge values of the column (cut a number into bins), "
            "or raise min_rows.",
            parameter="constraints",
        )


@dataclass(frozen=True)
class Cells:
    """The cell of each of n people for one constraint, or for several at once.

    - `index` (n,): the cell, row · G + group; −1 for people whom no constraint counts.
    - `stratum` (n,): the combination of strata; its cells are the same number for each of them.
    - `rows`: what each row of cells holds for each constraint, as their strata differ.
    - `is_compared`: for each constraint, which groups are compared in each of its strata.
    - `probabilities` (n, G): those of the groups where these are not known. `index` is then the
      most likely cell, and sums are expectations.

    Demographic parity of all people has one row. Equalized odds has two: people with a positive
    true label, then those with a negative one.
    """

    constraints: tuple[Constraint, ...]
    index: IntArray
    stratum: IntArray
    n_groups: int
    rows: tuple[CellRows, ...]
    is_compared: tuple[Mask, ...]
    probabilities: Floats | None = None

    @classmethod
    def of(
        cls,
        constraints: ConstraintLike | Sequence[Constraint],
        group: IntArray,
        n_groups: int,
        label: Mask | None,
        *,
        strata: Mapping[Constraint, Strata] | None = None,
        probabilities: Floats | None = None,
    ) -> Cells:
        """Return the cells of the people whose `group` (n,) is not −1.

        There is one row per combination of strata and true label. A constraint that needs no labels
        adds up both. `strata` are those of the constraints that have a condition.
        """
        if isinstance(constraints, str | Constraint):
            constraints = [get_constraint(constraints)]
        everybody = Strata.everybody(len(group), n_groups)
        known = strata or {}
        parts = [everybody if one.within is None else known[one] for one in constraints]
        labels = _labels_of(constraints)
        joint, members = _joint_strata([one.codes for one in parts])
        index = np.full(len(group), -1, dtype=np.intp)
        for i, value in enumerate(labels):
            counted = group >= 0
            if value is not None:
                assert label is not None
                counted &= label == value
            row = joint * len(labels) + i
            index = np.where(counted, row * n_groups + group, index)
        label_rows = np.tile([-1 if v is None else int(v) for v in labels], len(members[0]))
        rows = tuple(CellRows(np.repeat(m, len(labels)), label_rows) for m in members)
        compared = tuple(one.is_compared for one in parts)
        return cls(tuple(constraints), index, joint, n_groups, rows, compared, probabilities)

    def take(self, people: NDArray[Any]) -> Cells:
        """Return the cells of some people: a mask (n,), or places (m,)."""
        shares = self.probabilities
        return replace(
            self,
            index=self.index[people],
            stratum=self.stratum[people],
            probabilities=None if shares is None else shares[people],
        )

    @property
    def shape(self) -> tuple[int, int]:
        """Return (R, G)."""
        return len(self.rows[0].label), self.n_groups

    @property
    def row(self) -> IntArray:
        """Return the row of cells that counts each person, (n,); −1 if none does."""
        return np.where(self.index < 0, -1, self.index // self.n_groups)

    def totals(self, values: Floats) -> Floats:
        """Return the sum of `values` (n,) in each cell, shape (R, G)."""
        if self.probabilities is not None:
            return expected_totals(self.row, self.shape[0], self.probabilities, values)
        n_cells = self.shape[0] * self.shape[1]
        sums = np.bincount(self.index + 1, values, minlength=n_cells + 1)[1:]
        return np.asarray(sums, dtype=np.float64).reshape(self.shape)

    def comparisons(self, i: int, sizes: Floats) -> list[GroupComparison]:
        """Return the comparisons of the i-th constraint where cells have `sizes` (R, G)."""
        return comparisons(self.constraints[i], self.rows[i], sizes, self.is_compared[i])

    def value(self, i: int, sizes: Floats, positives: Floats) -> float:
        """Return the i-th constraint's metric from counts of shape (R, G); NaN if not defined."""
        return worst_value(self.constraints[i], self.comparisons(i, sizes), positives.ravel())


def expected_totals(row: IntArray, n_rows: int, probabilities: Floats, values: Floats) -> Floats:
    """Return the expected sum of `values` (n,) in each cell, (n_rows, G).

    Person i is in row `row[i]` of the cells, or in none for −1, and in a group with
    `probabilities` (n, G).
    """
    sums = [
        np.bincount(row + 1, values * shares, minlength=n_rows + 1)[1:]
        for shares in probabilities.T
    ]
    return np.stack(sums, axis=1).astype(np.float64, copy=False)


def worst_value(
    constraint: Constraint, compared: Sequence[GroupComparison], positives: Floats
) -> float:
    """Return the least fair value of some comparisons at `positives` (A,).

    NaN where one of them is not defined, or where there is none.
    """
    values = np.array([comparison.value(positives) for comparison in compared])
    if not len(values):
        return float("nan")
    worst = values.min() if constraint.higher_is_fairer else values.max()
    return round(float(worst), DIGITS)


def _labels_of(constraints: Sequence[Constraint]) -> tuple[bool | None, ...]:
    """Return the labels that cells distinguish: all that a constraint counts separately."""
    found = {row.label for constraint in constraints for row in constraint.rate_rows}
    if found == {None}:
        return (None,)
    if len(found) == 1:
        return tuple(found)
    return (True, False)


def _joint_strata(codes: Sequence[IntArray]) -> tuple[IntArray, list[IntArray]]:
    """Return the combination of strata of each row, (n,), and its parts: one (J,) per constraint.

    Only combinations that occur are counted. A part of −1 is a stratum that is left out.
    """
    joint = np.zeros(len(codes[0]), dtype=np.intp)
    for part in codes:
        if not part.any():
            continue  # one stratum of all people splits no combination
        joint = joint * (int(part.max(initial=0)) + 2) + part + 1
        _, joint = np.unique(joint, return_inverse=True)
    first = np.zeros(int(joint.max(initial=0)) + 1, dtype=np.intp)
    first[joint[::-1]] = np.arange(len(joint))[::-1]
    return joint, [part[first] for part in codes]


def count_cells(
    cells: Cells, decisions: Mask, people: Floats | None = None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return size and number of positives of each cell, both of shape (n_rate_rows, n_groups).

    A row is one person, or stands for `people` (n,). Expected numbers are rounded.
    """
    each = np.ones(len(decisions)) if people is None else people
    negatives, positives = (
        np.rint(cells.totals(kind * each)).astype(np.int64) for kind in (~decisions, decisions)
    )
    return negatives + positives, positives


# ---------------------------------------------------------------------------------------------
# Kernels take checked arrays. `weight` times a mask restricts a rate to the rows of the mask.


def group_totals(
    events: Events, codes: NDArray[np.intp], n_groups: int, weight: Floats
) -> tuple[Floats, Floats]:
    """Return the weight of the rows with the event and of all rows, each of shape (n_groups,)."""
    # Both sums add up in the same order, so a share never exceeds 1 by rounding.
    hits = np.bincount(codes, weight * events, minlength=n_groups)
    totals = np.bincount(codes, weight, minlength=n_groups)
    return np.asarray(hits, np.float64), np.asarray(totals, np.float64)


def group_shares(events: Events, codes: NDArray[np.intp], n_groups: int, weight: Floats) -> Floats:
    """Return the weighted share of events per group, shape (n_groups,); NaN for no weight."""
    hits, totals = group_totals(events, codes, n_groups, weight)
    shares = np.full(n_groups, math.nan)
    np.divide(hits, totals, out=shares, where=totals > 0)
    return shares


def _exact_shares(
    events: Events, codes: NDArray[np.intp], n_groups: int, weight: Floats
) -> list[Fraction]:
    """Return the exact share of each group; [] for one group only, or a group without weight."""
    hits, totals = group_totals(events, codes, n_groups, weight)
    if n_groups < 2 or not totals.all():
        return []
    pairs = zip(hits.tolist(), totals.tolist(), strict=True)
    return [Fraction(hit) / Fraction(total) for hit, total in pairs]


def fairness_of(
    constraints: ConstraintLike,
    decisions: Events,
    outcomes: Mask | None,
    codes: NDArray[np.intp],
    n_groups: int,
    weight: Floats,
    strata: Strata | None = None,
) -> float:
    """Return the value of `fairness_value` from unchecked arrays of shape (n,).

    Pass probabilities of a positive decision as `decisions` to get the fairness of expected rates.
    A constraint with a condition needs its `strata`; NaN without them.
    """
    constraint = get_constraint(constraints)
    if constraint.within is not None and strata is None:
        return math.nan
    if not constraint.is_simple:
        given = None if strata is None else {constraint: strata}
        table = Cells.of(constraint, codes, n_groups, outcomes, strata=given)
        return table.value(0, table.totals(weight), table.totals(weight * decisions))
    rates = []
    for row in constraint.rate_rows:
        counted = weight if row.label is None else weight * (outcomes == row.label)
        rates.append(_exact_shares(decisions, codes, n_groups, counted))
    if not all(rates):
        return math.nan
    value = constraint.value_from_rates(rates)
    return math.nan if value is None else float(value)
