"""Measure how well a column alone predicts the group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from commod._data.columns import Column, code_array, joint_codes

# A column with this area or more nearly determines the group. A copy of the group with one of ten
# rows altered at random has 0.9, and the strongest column of the bundled data sets has 0.79: so the
# bar lies above columns that go together with the group, and below copies of it.
NEAR_COPY_AREA = 0.9
MAX_ROWS_OF_GROUP = 2_000  # in the sample: 1,000,000 rows are as quick as 10,000
MAX_ROWS = 50_000  # in the sample, over all groups
MIN_ROWS_OF_GROUP = 10  # below this, a column that does not depend on the group reaches 0.9
MAX_GROUPS = 50  # the largest groups; all others count as one
MAX_BINS = 50  # of a numeric column
MAX_VALUES = 50  # of a column that determines the group
ROWS_OF_VALUE = 30  # so many are not one row that is repeated
# Values with fewer rows of the sample count as one. Its rows may stand for several people.
MIN_ROWS_OF_VALUE = 5

Counts = NDArray[np.float64]


@dataclass(frozen=True)
class ColumnPrediction:
    """How well a column alone predicts who belongs to one of `groups`, the codes of groups.

    `area` is the area under the curve: the probability that the column ranks a person of these
    groups above a person of the other groups. 0.5 is chance and 1 is exact.
    """

    area: float
    groups: tuple[int, ...]

    @property
    def is_near_copy(self) -> bool:
        """Return whether the column nearly determines the group."""
        return self.area >= NEAR_COPY_AREA


NO_PREDICTION = ColumnPrediction(0.5, ())


@dataclass(frozen=True)
class GroupSample:
    """The rows on which columns are measured, and the group of each of them.

    `rows` are positions in the table. `numbers`, of the same shape, index `members`, the codes
    of the groups that a number stands for.
    """

    rows: NDArray[np.intp]
    numbers: NDArray[np.intp]
    members: list[tuple[int, ...]]


def sample_groups(codes: NDArray[np.intp]) -> GroupSample:
    """Return at most MAX_ROWS_OF_GROUP rows of each group, drawn with a fixed seed.

    Groups that are small, or beyond the MAX_GROUPS largest, share the last number.
    """
    rows = _rows_of_groups(codes)
    sizes = np.bincount(codes[rows])
    largest = np.argsort(-sizes, kind="stable")[:MAX_GROUPS]
    kept = np.sort(largest[sizes[largest] >= MIN_ROWS_OF_GROUP])
    number = np.full(len(sizes), len(kept))
    number[kept] = np.arange(len(kept))
    members: list[tuple[int, ...]] = [(int(code),) for code in kept]
    others = tuple(np.setdiff1d(np.flatnonzero(sizes), kept).tolist())
    return GroupSample(rows, number[codes[rows]], [*members, others] if others else members)


@dataclass(frozen=True)
class ProxyTest:
    """How columns are compared with the group of each row.

    `codings` holds the codes (n,) of the groups, and those of each sensitive feature where there
    are several: `Groups.codings`.
    """

    codings: tuple[NDArray[np.intp], ...]

    @cached_property
    def _samples(self) -> list[GroupSample]:
        return [sample_groups(codes) for codes in self.codings]

    def determines(self, column: Column) -> bool:
        """Return whether the column determines the group or one of the sensitive features."""
        return any(determines_group(column, codes) for codes in self.codings)

    def surely_determines(self, column: Column, columns: Sequence[Column]) -> bool:
        """Return whether the column determines a group also where equal rows count once.

        Numbers of a table whose rows are repeated share their groups, and say nothing about them. A
        column with ROWS_OF_VALUE rows for each value needs no others that tell its rows apart.
        """
        if not self.determines(column):
            return False
        values = np.unique(code_array(column.values).codes)
        if len(column) >= ROWS_OF_VALUE * len(values):
            return True
        _, first = joint_codes([code_array(c.values).codes + 1 for c in columns])
        distinct = ProxyTest(tuple(codes[first] for codes in self.codings))
        return distinct.determines(column.take(first))

    def predict(self, column: Column) -> ColumnPrediction:
        """Return how well the column alone predicts the group, or the feature that it fits best."""
        predictions = (predict_group(column, sample) for sample in self._samples)
        return max(predictions, key=lambda p: p.area, default=NO_PREDICTION)


def determines_group(column: Column, codes: NDArray[np.intp]) -> bool:
    """Return whether the column determines the group through at most MAX_VALUES values.

    Each value must be shared by two rows on average, and all rows of a value by one group.
    """
    n = len(codes)
    for step in (-(-n // 1_000), 1):  # a subsample of 1,000 rows rules out most columns
        values, groups = code_array(column.values[::step]).codes + 1, codes[::step]  # 0: missing
        n_pairs = len(joint_codes([values, groups])[1])
        if n_pairs > min(MAX_VALUES, n // 2) or n_pairs > len(np.unique(values)):
            return False
    return len(np.unique(codes)) > 1


def predict_group(column: Column, sample: GroupSample) -> ColumnPrediction:
    """Return how well the values of a column predict the group.

    The groups compared are each group against all others, and sets of groups that the column
    separates best, so that a merged copy of the groups is found as well. A row is ranked by the
    share of the other rows with its value that belong to the groups. Its own group is never used,
    so a column of identifiers predicts nothing. Missing is a value, and numbers are cut into at
    most MAX_BINS bins.

    Examples
    --------
    >>> group = np.arange(60) % 3
    >>> merged = Column("merged", "category", np.where(group == 2, 1, 0), ("x", "y"))
    >>> predict_group(merged, sample_groups(group))
    ColumnPrediction(area=1.0, groups=(2,))
    >>> predict_group(Column("id", "category", np.arange(60)), sample_groups(group)).area
    0.5
    """
    values = _values(column.take(sample.rows))
    shape = len(sample.members), int(values.max()) + 1
    counts = np.bincount(sample.numbers * shape[1] + values, minlength=shape[0] * shape[1])
    table = counts.reshape(shape).astype(np.float64)
    candidates = [(_area(table, chosen), chosen) for chosen in _sets_of_groups(table)]
    if not candidates:
        return NO_PREDICTION
    area, chosen = max(candidates, key=lambda pair: pair[0])
    return ColumnPrediction(area, tuple(c for i in chosen for c in sample.members[i]))


def _rows_of_groups(codes: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return rows of every group, at most MAX_ROWS_OF_GROUP each; the same rows every time."""
    sizes = np.bincount(codes)
    per_group = MAX_ROWS // int(np.count_nonzero(sizes))
    most = max(MIN_ROWS_OF_GROUP, min(MAX_ROWS_OF_GROUP, per_group))
    if sizes.max() <= most:
        return np.arange(len(codes))
    order = np.random.default_rng(0).permutation(len(codes))
    order = order[np.argsort(codes[order], kind="stable")]
    first = np.repeat(np.cumsum(sizes) - sizes, sizes)
    return np.sort(order[np.arange(len(codes)) - first < most])


def _values(column: Column) -> NDArray[np.intp]:
    """Return the value of each row as a code from 0; rare values share one code."""
    codes = _bins(column.values) if column.kind == "numeric" else column.values + 1
    codes = code_array(codes).codes
    n_rows = np.bincount(codes)
    is_kept = n_rows >= MIN_ROWS_OF_VALUE
    number = np.where(is_kept, np.cumsum(is_kept) - 1, is_kept.sum())
    return np.asarray(number[codes], dtype=np.intp)


def _bins(values: NDArray[np.float64]) -> NDArray[np.intp]:
    """Return the bin of each number, from 1, and 0 if missing; few values are their own bins."""
    bins = np.zeros(len(values), dtype=np.intp)
    is_known = ~np.isnan(values)
    known = values[is_known]
    edges = np.unique(known)
    if len(edges) > MAX_BINS:
        ranks = np.arange(1, MAX_BINS) * len(known) // MAX_BINS
        edges = np.unique(np.sort(known)[ranks])
    bins[is_known] = 1 + np.searchsorted(edges, known, side="right")
    return bins


def _sets_of_groups(table: Counts) -> list[tuple[int, ...]]:
    """Return the sets of groups to predict, as rows of `table`: (n_groups, n_values) of counts.

    Each group is a set. The first axis of a correspondence analysis orders the groups by their
    values; the groups below each cut along this axis are further sets.
    """
    n_groups, sizes = len(table), table.sum(axis=1)
    if n_groups < 2:
        return []
    sets: list[tuple[int, ...]] = [(i,) for i in range(n_groups) if sizes[i] >= MIN_ROWS_OF_GROUP]
    if n_groups > 3:  # up to three, every set is one group or all groups but one
        scale = np.sqrt(sizes)
        scaled = table / scale[:, None]
        similarity = scaled @ (scaled / table.sum(axis=0)).T
        similarity -= np.outer(scale, scale) / table.sum()  # the trivial axis
        order = np.argsort(np.linalg.eigh(similarity)[1][:, -1] / scale, kind="stable").tolist()
        sets += [tuple(sorted(order[:cut])) for cut in range(2, n_groups - 1)]
    return sets


def _area(table: Counts, chosen: tuple[int, ...]) -> float:
    """Return the area under the curve of the rows of `chosen` groups against all other rows.

    Each pair of a member and another row is compared without these two rows (leave-pair-out): by
    the share of members among the remaining rows of their values. Two rows with one value tie.
    """
    inside = table[list(chosen)].sum(axis=0)
    total = table.sum(axis=0)
    outside = total - inside
    n_inside, n_outside = inside.sum(), outside.sum()
    prior = n_inside / (n_inside + n_outside)  # one row of it, where a value has no other row
    share_of_member = (inside - 1 + prior) / total
    share_of_other = (inside + prior) / total
    order = np.argsort(share_of_other, kind="stable")
    below = np.append(0.0, np.cumsum(outside[order]))
    n_lower, n_not_higher = (
        below[np.searchsorted(share_of_other[order], share_of_member, side=side)]
        for side in ("left", "right")
    )
    won = (inside * (n_lower + n_not_higher)).sum() / 2 + (inside * outside).sum() / 2
    return float(won / (n_inside * n_outside))
