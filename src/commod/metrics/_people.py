"""People in cells, counted once: who is in which cell, what holds, and which bounds are kept."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from numbers import Rational, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commod._data.arrays import Floats, Mask
from commod._text import n_of
from commod.exceptions import InputError
from commod.metrics._cells import GroupComparison, comparisons, worst_value
from commod.metrics._constraint import Constraint, ConstraintLike, get_constraint

IntArray = NDArray[np.intp]
Counts = NDArray[np.int64]
Events = Mask | Floats  # where the event happened, or its probability

Bound = float | Fraction | None  # of a constraint; None if there is none

LOOSER = 1e-9  # than values that were reached: they have 12 digits
MAX_STRATA = 200  # that are compared: a search looks at each of them, and so do people


@dataclass(frozen=True)
class People:
    """People of compared groups: a row is one person, or stands for `each` (n,) people.

    - `constraints`: what is compared. The target of the first one may change from question to
      question, and the bounds of the others stand.
    - `group` (n,): the number of the group among `n_groups`; −1 for people whom nothing counts.
    - `label` (n,): where the true label is positive; None if it is not known.
    - `weight` (n,): the sum of the weights of the people of a row; None: everybody has weight 1.
    - `strata`: those of the constraints that have a condition.
    - `probabilities` (n, G): those of the groups where these are not known; sums and rates are
      expectations.

    A cell is a group in a row of cells. There is one row per combination of strata and true label;
    a constraint that needs no labels adds up both. Demographic parity of all people has one row.
    Equalized odds has two: people with a positive true label, then those with a negative one.

    Examples
    --------
    >>> from commod.metrics._constraint import get_constraint
    >>> parity = get_constraint("demographic_parity")
    >>> people = People((parity,), np.array([0, 0, 1, 1]), 2)
    >>> decisions = np.array([True, True, True, False])
    >>> people.sizes, people.rates(decisions), people.fairness(decisions)
    (array([[2, 2]]), array([[1. , 0.5]]), 0.5)
    """

    constraints: tuple[Constraint, ...]
    group: IntArray
    n_groups: int
    label: Mask | None = None
    weight: Floats | None = None
    each: Floats | None = None
    strata: Mapping[Constraint, Strata] = field(default_factory=dict)
    probabilities: Floats | None = None

    @property
    def constraint(self) -> Constraint:
        """Return the first constraint."""
        return self.constraints[0]

    @property
    def is_simple(self) -> bool:
        """Return whether there is one constraint, for which exact algorithms are known."""
        return len(self.constraints) == 1 and self.constraint.is_simple

    def take(self, rows: NDArray[Any]) -> People:
        """Return some of the rows: a mask (n,), or places (m,)."""
        names = ("group", "label", "weight", "each", "probabilities")
        arrays: dict[str, Any] = {name: getattr(self, name) for name in names}
        taken: dict[str, Any] = {name: None if a is None else a[rows] for name, a in arrays.items()}
        strata = {one: strata.take(rows) for one, strata in self.strata.items()}
        return replace(self, strata=strata, **taken)

    # -- cells ---------------------------------------------------------------------------------

    @cached_property
    def _strata(self) -> list[Strata]:
        """Return the strata of each constraint; one of all people where it has no condition."""
        everybody = Strata.everybody(len(self.group), self.n_groups)
        return [everybody if c.within is None else self.strata[c] for c in self.constraints]

    @cached_property
    def _rows(self) -> tuple[IntArray, IntArray, tuple[IntArray, ...]]:
        """Return the row of cells of each person, and the true label and the strata of the rows."""
        joint, members = _joint_strata([one.codes for one in self._strata])
        labels = _labels_of(self.constraints)
        row = np.full(len(self.group), -1, dtype=np.intp)
        for i, value in enumerate(labels):
            counted = self.group >= 0
            if value is not None:
                assert self.label is not None
                counted &= self.label == value
            row = np.where(counted, joint * len(labels) + i, row)
        row_label = np.tile([-1 if v is None else int(v) for v in labels], len(members[0]))
        return row, row_label, tuple(np.repeat(m, len(labels)) for m in members)

    @property
    def row(self) -> IntArray:
        """Return the row of cells that counts each person, (n,); −1 if none does."""
        return self._rows[0]

    @property
    def row_label(self) -> IntArray:
        """Return the true label of each row of cells, (R,): 1, 0, or −1 if both count."""
        return self._rows[1]

    @property
    def row_strata(self) -> tuple[IntArray, ...]:
        """Return the stratum of each row, (R,), for each constraint; −1 if it is left out."""
        return self._rows[2]

    @cached_property
    def index(self) -> IntArray:
        """Return the cell of each person, row · G + group, (n,); −1 for people nothing counts.

        With probabilities of the groups, it is the most likely cell.
        """
        return np.where(self.row < 0, -1, self.row * self.n_groups + self.group)

    @property
    def shape(self) -> tuple[int, int]:
        """Return (R, G)."""
        return len(self.row_label), self.n_groups

    def totals(self, values: Floats) -> Floats:
        """Return the sum of `values` (n,) in each cell, (R, G); an expected one for chances."""
        n_rows, n_groups = self.shape
        if self.probabilities is not None:
            expected = [
                np.bincount(self.row + 1, values * shares, minlength=n_rows + 1)[1:]
                for shares in self.probabilities.T
            ]
            return np.stack(expected, axis=1).astype(np.float64, copy=False)
        sums = np.bincount(self.index + 1, values, minlength=n_rows * n_groups + 1)[1:]
        return np.asarray(sums, dtype=np.float64).reshape(self.shape)

    @property
    def each_or_one(self) -> Floats:
        """Return how many people each row stands for, (n,)."""
        return np.ones(len(self.group)) if self.each is None else self.each

    @property
    def weight_or_one(self) -> Floats:
        """Return the sum of the weights of the people of each row, (n,)."""
        return self.each_or_one if self.weight is None else self.weight

    @cached_property
    def sizes(self) -> Counts:
        """Return the number of people in each cell, (R, G)."""
        return np.rint(self.totals(self.each_or_one)).astype(np.int64)

    @cached_property
    def weights(self) -> Floats:
        """Return the weight of the people in each cell, (R, G)."""
        return self.totals(self.weight_or_one)

    def counts(self, decisions: Mask) -> tuple[Counts, Counts]:
        """Return people and positive decisions of each cell, both (R, G); both are rounded."""
        negatives, positives = (
            np.rint(self.totals(kind * self.each_or_one)).astype(np.int64)
            for kind in (~decisions, decisions)
        )
        return negatives + positives, positives

    def rates(self, decisions: Events) -> Floats:
        """Return the weighted rate of positive decisions in each cell, (R, G); 0 for nobody."""
        weights = np.where(self.weights > 0, self.weights, 1.0)
        return self.totals(self.weight_or_one * decisions) / weights

    def comparisons(self, i: int, sizes: Floats) -> list[GroupComparison]:
        """Return the comparisons of the i-th constraint where cells have `sizes` (R, G)."""
        rows = self.row_strata[i], self.row_label
        return comparisons(self.constraints[i], *rows, sizes, self._strata[i].is_compared)

    @cached_property
    def by_rates(self) -> list[list[GroupComparison]]:
        """Return the comparisons of each constraint as functions of the weighted rates, (A,)."""
        return [
            [one.per_rate(self.weights.ravel()) for one in self.comparisons(i, self.weights)]
            for i in range(len(self.constraints))
        ]

    @cached_property
    def by_counts(self) -> list[list[GroupComparison]]:
        """Return the comparisons of each constraint as functions of the numbers of positives."""
        sizes = self.sizes.astype(np.float64)
        return [self.comparisons(i, sizes) for i in range(len(self.constraints))]

    @cached_property
    def compared_by_each(self) -> list[Mask]:
        """Return the cells that the comparisons of each constraint depend on, (R, G) each."""
        masks = []
        for compared in self.by_counts:
            used = np.zeros(self.shape, dtype=bool)
            for one in compared:
                for table in one.tables:
                    used.flat[table.cells] = True
            masks.append(used)
        return masks

    @cached_property
    def n_counted(self) -> Counts:
        """Return how many people each number that is compared counts, shape (n_numbers,)."""
        sizes = self.sizes.ravel()
        counts = [
            int(sizes[is_counted].sum())
            for compared in self.by_counts
            for one in compared
            for table in one.tables
            for is_counted in table.counted
        ]
        return np.array(counts, dtype=np.int64)

    # -- what holds ----------------------------------------------------------------------------

    def fairness(self, decisions: Events) -> float:
        """Return the metric of the first constraint; NaN if it is not defined.

        Probabilities of a positive decision give the metric of expected rates.
        """
        if self.probabilities is not None or not self.constraint.is_simple:
            return worst_value(self.constraint, self.by_rates[0], self.rates(decisions).ravel())
        counted = self.group >= 0
        weight, group = self.weight_or_one[counted], self.group[counted]
        rates = []
        for row in self.constraint.rate_rows:
            own = weight
            if row.label is not None:
                assert self.label is not None
                own = weight * (self.label[counted] == row.label)
            rates.append(_exact_shares(decisions[counted], group, self.n_groups, own))
        value = self.constraint.value_from_rates(rates) if all(rates) else None
        return math.nan if value is None else float(value)

    def other_values(self, decisions: Events) -> tuple[float, ...]:
        """Return the metrics of all constraints but the first one."""
        if len(self.constraints) == 1:
            return ()
        rates = self.rates(decisions).ravel()
        others = zip(self.constraints[1:], self.by_rates[1:], strict=True)
        return tuple(worst_value(one, compared, rates) for one, compared in others)

    def reached_bounds(self, after: Mask, bounds: Sequence[Bound]) -> list[Bound]:
        """Return the bounds that decisions keep; `bounds` are those that are stated.

        The first constraint has the value that it reached, exactly where it stands alone. A bound
        that is missed, or not stated, becomes the value reached. All are a little looser than that,
        because these values are rounded.
        """
        if self.is_simple:
            sizes, positives = self.counts(after)
            is_defined = self.n_groups > 1 and bool(sizes.all())
            return [self.constraint.value_from_counts(sizes, positives) if is_defined else None]
        others = map(loosened, self.constraints[1:], bounds[1:], self.other_values(after))
        return self.looser([self.fairness(after), *others])

    def looser(self, bounds: Sequence[Bound]) -> list[Bound]:
        """Return bounds that rounded values keep, too; one alone is compared exactly."""
        if self.is_simple:
            return list(bounds)
        signs = (-1 if one.higher_is_fairer else 1 for one in self.constraints)
        return [
            None if bound is None else bound + sign * LOOSER
            for bound, sign in zip(bounds, signs, strict=True)
        ]


# ---------------------------------------------------------------------------------------------
# Bounds: those of several constraints keep their order


def read_target(constraints: ConstraintLike, target: Any) -> Fraction:
    """Return the exact fraction to compare the exact value of the metric with.

    A metric is computed exactly and then rounded to a float. So the values that pass ``>= 0.8``
    begin halfway between 0.8 and the float below it; 4/5 is among them. No table of counts has
    a value exactly halfway between two floats. A fraction or an integer is used as it is.
    """
    constraint = get_constraint(constraints)
    largest, is_floor = constraint.largest, constraint.higher_is_fairer
    is_number = isinstance(target, Real) and not isinstance(target, bool | np.bool_)
    if not is_number or not 0 <= target <= largest or (is_floor and target == 0):
        opening = "(" if is_floor else "["
        raise InputError(
            f"target={target!r} must be a number in {opening}0, {largest:g}]: it is a "
            f"{'floor' if is_floor else 'ceiling'} on the {constraint.metric}.",
            parameter="target",
        )
    if isinstance(target, Rational):
        return Fraction(int(target.numerator), int(target.denominator))
    value = float(str(target))  # a 32-bit 0.8 means 0.8, not 0.800000011920929
    neighbour = math.nextafter(value, -math.inf if is_floor else math.inf)
    (a, b), (c, d) = value.as_integer_ratio(), neighbour.as_integer_ratio()
    return Fraction(a * d + b * c, 2 * b * d)


def is_kept(constraint: Constraint, bound: Bound, value: float | None) -> bool:
    """Return whether a value of the metric keeps the bound; False for NaN, and without a bound."""
    if value is None or bound is None:
        return False
    return bool(constraint.is_met(value, bound))


def loosened(constraint: Constraint, bound: Bound, value: float | None) -> Bound:
    """Return a bound that the value keeps: the value, if it misses the given one."""
    if value is None or np.isnan(value) or is_kept(constraint, bound, value):
        return bound
    return value


# ---------------------------------------------------------------------------------------------
# Strata, labels and rows of cells


@dataclass(frozen=True)
class Strata:
    """The strata of one constraint: `codes` (n,) index `labels`; −1 if a stratum is left out.

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
