"""Write a constraint as comparisons of measures, which are functions of the cells' positives.

The cells of a table of counts have shape (R, G): one row per stratum and true label, one column
per group. x (A,) are the positives of all A = R·G cells, row by row. Whatever depends on the
decisions of people only through a constraint, depends on x alone:

- `Measures` holds one number per group, a ratio of two affine functions of x.
- `GroupComparison` says how these numbers are compared: by ratio, by difference, or with a bound.
- `comparisons` writes a constraint as comparisons; its metric is that of the least fair one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from commod._data.arrays import Floats, Mask
from commod.metrics._constraint import Constraint
from commod.metrics._measures import Measure, Weights

IntArray = NDArray[np.intp]

Kind = Literal["ratio", "difference", "floor", "ceiling"]
DIGITS = 12  # of a value: rates are ratios of counts, so more digits are rounding errors


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

    def linear_form(self, bound: float, x: Floats) -> tuple[Floats, Floats]:
        """Return the bound as inequalities matrix @ x ≤ limit, exact where measures are linear.

        Otherwise, they are those of the tangents at `x` (A,). There is one inequality per ordered
        pair of groups, or one per group for a floor or a ceiling. The sum of two differences has
        one per choice of a pair for each of them.
        """
        lines = [table.linearised(x) for table in self.tables]
        if self.kind in ("floor", "ceiling"):
            sign = -1.0 if self.kind == "floor" else 1.0
            return sign * lines[0].numerator, sign * (bound - lines[0].constant)
        low, high = np.array(list(permutations(range(len(self.groups)), 2))).T
        factor, allowance = (bound, 0.0) if self.kind == "ratio" else (1.0, bound / len(lines))
        slopes = [factor * line.numerator[high] - line.numerator[low] for line in lines]
        limits = [allowance - factor * line.constant[high] + line.constant[low] for line in lines]
        if len(lines) == 1:
            return slopes[0], limits[0]
        sums = slopes[0][:, None] + slopes[1][None]
        return sums.reshape(-1, sums.shape[2]), np.add.outer(*limits).ravel()


# ---------------------------------------------------------------------------------------------
# From a constraint to comparisons


def comparisons(
    constraint: Constraint,
    row_strata: IntArray,
    row_label: IntArray,
    sizes: Floats,
    is_compared: Mask,
) -> list[GroupComparison]:
    """Return the comparisons of a constraint, one per stratum, or one for their average.

    Each row of cells has a stratum, `row_strata` (R,), −1 where the constraint leaves it out, and a
    true label, `row_label` (R,): 1, 0, or −1 where both labels count. `sizes` (R, G) is the weight
    of the people of each cell, and `is_compared` (n_strata, G) says which groups are compared in a
    stratum. A stratum without enough groups has no comparison.
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
        rows = [np.flatnonzero(row_strata == s) for s in members]
        tables = [
            _average_of(
                [_measures(measure, own, row_label, sizes, groups) for own in rows],
                [sizes[own][_is_counted(measure, row_label[own])].sum(axis=0) for own in rows],
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
    measure: Measure, rows: IntArray, row_label: IntArray, sizes: Floats, groups: IntArray
) -> Measures:
    """Return a measure of `groups` (m,) in the `rows` of one stratum as functions of x."""
    shape = (len(groups), *sizes.shape)
    parts = []
    for weights in (measure.numerator, measure.denominator):
        slopes, constant = np.zeros(shape), np.zeros(len(groups))
        for r in rows:
            of_positive, of_negative = _weights_in(weights, int(row_label[r]))
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


def _is_counted(measure: Measure, label: IntArray) -> Mask:
    """Return whether a measure counts the people of rows with these labels."""
    if measure.needs_labels and measure.label is not None:
        return label == int(measure.label)
    return np.ones(len(label), dtype=bool)


def _average_of(
    tables: Sequence[Measures], counted: Sequence[Floats], groups: IntArray
) -> Measures:
    """Return the average of measures over strata, weighted by the share of people in each.

    `counted` are the people of all groups whom the measure counts in each stratum, (G,), and
    `groups` (m,) are compared. Where denominators move, numerators and denominators are averaged,
    and then divided.
    """
    if len(tables) == 1:
        return tables[0]
    people = np.stack(counted)
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
