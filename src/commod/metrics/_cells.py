"""Write a constraint as comparisons of measures, which are functions of the cells' positives.

The cells of a table of counts have shape (R, G): one row per stratum and true label, one column
per group. x (A,) are the positives of all A = R·G cells, row by row. Whatever depends on the
decisions of people only through a constraint, depends on x alone:

- `Measures` holds one number per group, a ratio of two affine functions of x.
- `GroupComparison` says how these numbers are compared: by ratio, by difference, or with a bound.
- `comparisons` writes a constraint as comparisons; its metric is that of the least fair one.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from commod._data.arrays import Floats, Mask
from commod._text import n_of
from commod.exceptions import InputError
from commod.metrics._constraint import Constraint, ConstraintLike, get_constraint
from commod.metrics._measures import Measure, Weights

IntArray = NDArray[np.intp]

Kind = Literal["ratio", "difference", "floor", "ceiling"]


@dataclass(frozen=True)
class Measures:
    """One number for each of m groups: (numerator @ x + constant) / (denominator @ x + scale).

    `numerator` and `denominator` have shape (m, A), `constant` and `scale` (m,). `denominator` is
    None where the numbers are linear in x.
    """

    numerator: Floats
    constant: Floats
    scale: Floats
    denominator: Floats | None = None

    def values(self, x: Floats) -> Floats:
        """Return the numbers at `x` (A,) or at each column of `x` (A, k); NaN for x / 0."""
        tops, bottoms = self._parts(x)
        result = np.full(np.broadcast_shapes(tops.shape, bottoms.shape), np.nan)
        np.divide(tops, bottoms, out=result, where=bottoms > 0)
        return result

    def _parts(self, x: Floats) -> tuple[Floats, Floats]:
        across = (slice(None), *(None,) * (x.ndim - 1))
        tops = self.numerator @ x + self.constant[across]
        scale = self.scale[across]
        return tops, scale if self.denominator is None else self.denominator @ x + scale

    def per_rate(self, sizes: Floats) -> Measures:
        """Return the same numbers as functions of the rates x / sizes; `sizes` has shape (A,)."""
        denominator = None if self.denominator is None else self.denominator * sizes
        return replace(self, numerator=self.numerator * sizes, denominator=denominator)

    @property
    def counted(self) -> Mask:
        """Return the cells that each number depends on, (m, A)."""
        if self.denominator is None:
            return self.numerator != 0
        return (self.numerator != 0) | (self.denominator != 0)

    @property
    def cells(self) -> IntArray:
        """Return the cells that the numbers depend on."""
        return np.flatnonzero(self.counted.any(axis=0))

    def on_cells(self, cells: IntArray) -> Measures:
        """Return the same numbers as functions of x at `cells` (k,) alone."""
        denominator = None if self.denominator is None else self.denominator[:, cells]
        return replace(self, numerator=self.numerator[:, cells], denominator=denominator)

    def linearised(self, x: Floats, least: float = 1e-9) -> Measures:
        """Return the tangents of the numbers at `x` (A,), which are linear in x.

        Denominators below `least` count as `least`: nearly nobody is counted there.
        """
        tops, bottoms = self._parts(x)
        bottoms = np.maximum(bottoms, least)
        values = tops / bottoms
        slopes = self.numerator
        if self.denominator is not None:
            slopes = slopes - values[:, None] * self.denominator
        slopes = slopes / bottoms[:, None]
        return Measures(slopes, values - slopes @ x, np.ones_like(values))


class LinearForm(NamedTuple):
    """Inequalities matrix @ x ≤ bound + split·θ, where θ is free; `split` is 0 for one table."""

    matrix: Floats
    bound: Floats
    split: Floats


@dataclass(frozen=True)
class GroupComparison:
    """How the numbers of some groups are compared; its value is one number.

    - `kind`: "ratio" (lowest over highest), "difference" (highest minus lowest, summed over the
      tables), "floor" (the lowest) or "ceiling" (the highest).
    - `tables`: the numbers; two tables for the sum of two differences, one otherwise.
    - `stratum`: the number of the stratum; None for all people, and for an average over strata.
    - `groups`: the groups that are compared.
    """

    kind: Kind
    tables: tuple[Measures, ...]
    stratum: int | None
    groups: tuple[int, ...]

    @property
    def is_linear(self) -> bool:
        """Return whether all numbers are linear in x."""
        return all(table.denominator is None for table in self.tables)

    def per_rate(self, sizes: Floats) -> GroupComparison:
        """Return the same comparison as a function of the rates x / sizes; `sizes` is (A,)."""
        return replace(self, tables=tuple(table.per_rate(sizes) for table in self.tables))

    def value(self, x: Floats) -> Floats:
        """Return the value at `x` (A,), or at each column of `x` (A, k); NaN if not defined."""
        numbers = [table.values(x) for table in self.tables]
        if self.kind in ("floor", "ceiling"):
            return numbers[0].min(axis=0) if self.kind == "floor" else numbers[0].max(axis=0)
        highest = np.stack([table.max(axis=0) for table in numbers])
        lowest = np.stack([table.min(axis=0) for table in numbers])
        if self.kind == "difference":
            return np.asarray((highest - lowest).sum(axis=0))
        result = np.full(highest[0].shape, np.nan)
        np.divide(lowest[0], highest[0], out=result, where=highest[0] > 0)
        return result

    def linear_form(self, bound: float, x: Floats) -> LinearForm:
        """Return the bound as linear inequalities, which are exact where measures are linear.

        Otherwise, they are those of the tangents at `x` (A,). There is one inequality per table
        and ordered pair of groups, or one per group for a floor or a ceiling. Two tables get half
        of the bound each, and θ moves allowance between them.
        """
        lines = [table.linearised(x) for table in self.tables]
        if self.kind in ("floor", "ceiling"):
            sign = -1.0 if self.kind == "floor" else 1.0
            matrix = sign * lines[0].numerator
            limit = sign * (bound - lines[0].constant)
            return LinearForm(matrix, limit, np.zeros(len(limit)))
        pairs = [(i, j) for i in range(len(self.groups)) for j in range(len(self.groups)) if i != j]
        low, high = np.array(pairs).T
        factor, allowance = (bound, 0.0) if self.kind == "ratio" else (1.0, bound / len(lines))
        slopes = [factor * line.numerator[high] - line.numerator[low] for line in lines]
        limits = [allowance - factor * line.constant[high] + line.constant[low] for line in lines]
        split = np.repeat((1.0, -1.0) if len(lines) == 2 else (0.0,), len(pairs))
        return LinearForm(np.vstack(slopes), np.concatenate(limits), split)


# ---------------------------------------------------------------------------------------------
# From a constraint to comparisons


class CellRows(NamedTuple):
    """What each row of a table of cells holds: `stratum` (R,) and true label (R,).

    A stratum of −1 is left out of the constraint. `label` is 1, 0, or −1 where both labels count.
    """

    stratum: IntArray
    label: IntArray


def comparisons(
    constraint: Constraint, rows: CellRows, sizes: Floats, is_compared: Mask
) -> list[GroupComparison]:
    """Return the comparisons of a constraint, one per stratum, or one for their average.

    `sizes` (R, G) is the weight of the people of each cell, and `is_compared` (n_strata, G) says
    which groups are compared in a stratum. A stratum without enough groups has no comparison.
    """
    strata = [
        s for s, compared in enumerate(is_compared) if compared.sum() >= constraint.min_groups
    ]
    if not strata:
        return []
    if constraint.within is not None and constraint.within.over == "average":
        groups = np.flatnonzero(is_compared[strata].all(axis=0))
        blocks: list[tuple[int | None, list[int], IntArray]] = [(None, strata, groups)]
    else:
        blocks = [(s, [s], np.flatnonzero(is_compared[s])) for s in strata]
    result = []
    for stratum, members, groups in blocks:
        if len(groups) < constraint.min_groups:
            continue
        tables = [
            _average_of(
                [_measures(measure, rows, sizes, s, groups) for s in members],
                _people_counted(measure, rows, sizes, members),
                groups,
            )
            for measure in constraint.measures
        ]
        parts = [tuple(tables)] if constraint.comparison == "difference" else [(t,) for t in tables]
        place = stratum if constraint.within is not None else None
        kind: Kind = "difference" if constraint.comparison == "largest" else constraint.comparison
        result += [GroupComparison(kind, part, place, tuple(groups.tolist())) for part in parts]
    return result


def _measures(
    measure: Measure, rows: CellRows, sizes: Floats, stratum: int, groups: IntArray
) -> Measures:
    """Return a measure of `groups` (m,) in one stratum as functions of x."""
    shape = (len(groups), *sizes.shape)
    parts = []
    for weights in (measure.numerator, measure.denominator):
        slopes, constant = np.zeros(shape), np.zeros(len(groups))
        for r in np.flatnonzero(rows.stratum == stratum):
            of_positive, of_negative = _weights_in(weights, int(rows.label[r]))
            slopes[np.arange(len(groups)), r, groups] = of_positive - of_negative
            constant += of_negative * sizes[r, groups]
        parts.append((slopes.reshape(len(groups), -1), constant))
    (numerator, constant), (denominator, scale) = parts
    moves = bool(denominator.any())
    return Measures(numerator, constant, scale, denominator if moves else None)


def _weights_in(weights: Weights, label: int) -> tuple[float, float]:
    """Return the weights of a positive and of a negative decision in cells of a label."""
    if label == 0:
        return weights.fp, weights.tn
    return weights.tp, weights.fn  # the weights are those of false ones where both labels count


def _people_counted(
    measure: Measure, rows: CellRows, sizes: Floats, strata: Sequence[int]
) -> Floats:
    """Return the people of each stratum and group whom a measure counts, (n_strata, G)."""
    is_counted = np.ones(len(rows.label), dtype=bool)
    if measure.needs_labels and measure.label is not None:
        is_counted = rows.label == int(measure.label)
    return np.stack([sizes[is_counted & (rows.stratum == s)].sum(axis=0) for s in strata])


def _average_of(tables: Sequence[Measures], people: Floats, groups: IntArray) -> Measures:
    """Return the average of measures over strata, weighted by the share of people in each.

    `people` (n_strata, G) are those whom the measures count, and `groups` (m,) are compared. Where
    denominators move, numerators and denominators are averaged, and then divided.
    """
    if len(tables) == 1:
        return tables[0]
    shares = people.sum(axis=1) / people.sum()
    factors = shares[:, None] / people[:, groups]  # each group counts as its stratum does

    def mean(parts: Sequence[Floats]) -> Floats:
        across = (slice(None), slice(None), *(None,) * (parts[0].ndim - 1))
        return np.asarray((factors[across] * np.stack(parts)).sum(axis=0))

    moving = [t.denominator for t in tables if t.denominator is not None]
    return Measures(
        numerator=mean([t.numerator for t in tables]),
        constant=mean([t.constant for t in tables]),
        scale=mean([t.scale for t in tables]),
        denominator=mean(moving) if moving else None,
    )


# ---------------------------------------------------------------------------------------------
# Put people into the cells, and measure constraints on them

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
        """Return the sum of `values` (n,) in each cell, (R, G); an expected one for chances."""
        if self.probabilities is not None:
            n_rows = self.shape[0]
            expected = [
                np.bincount(self.row + 1, values * shares, minlength=n_rows + 1)[1:]
                for shares in self.probabilities.T
            ]
            return np.stack(expected, axis=1).astype(np.float64, copy=False)
        n_cells = self.shape[0] * self.shape[1]
        sums = np.bincount(self.index + 1, values, minlength=n_cells + 1)[1:]
        return np.asarray(sums, dtype=np.float64).reshape(self.shape)

    def comparisons(self, i: int, sizes: Floats) -> list[GroupComparison]:
        """Return the comparisons of the i-th constraint where cells have `sizes` (R, G)."""
        return comparisons(self.constraints[i], self.rows[i], sizes, self.is_compared[i])

    def value(self, i: int, sizes: Floats, positives: Floats) -> float:
        """Return the i-th constraint's metric from counts of shape (R, G); NaN if not defined."""
        return worst_value(self.constraints[i], self.comparisons(i, sizes), positives.ravel())


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
