"""Count the people of a frame in its engine, and read the lines of the count as fit rows.

One query groups people by sensitive columns, true label, columns of conditions, side of the
threshold and whether the decision may change. Each combination is a line: a row that stands for
many people.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from commod._data.arrays import Codes, Floats
from commod._data.base_model import BaseScores, base_classes
from commod._data.columns import code_array
from commod._data.frames import (
    GroupTable,
    SparkLookup,
    can_be_looked_up,
    fetch,
    is_spark,
    numbers,
    objects,
    with_looked_up,
)
from commod._data.groups import group_names_of, read_groups
from commod._data.labels import read_labels
from commod.exceptions import InputError
from commod.metrics._cells import Strata, strata_of
from commod.metrics._constraint import Constraint
from commod.updates._fit_rows import FitRows, outcomes_of, rows_of_large_groups
from commod.updates._frames.columns import FrameTable
from commod.updates._frames.refusals import (
    check_key,
    check_weights,
    missing_scores,
    missing_values,
    rows_differ,
)
from commod.updates._targeted import TargetedUpdate

MAX_LINES = 50_000  # a longer table holds single rows instead of groups
MAX_CHAIN = 24  # engines overflow on longer chains of comparisons


@dataclass(frozen=True)
class Lines:
    """The lines of a count: what each combination of values holds, and how many people it has.

    - `values`: for each key of the table, its value in each line.
    - `people`, `weight`, `squares` (n,): people, the sum of weights and of squared weights.
    """

    table: FrameTable
    values: dict[str, list[Any]]
    people: Floats
    weight: Floats
    squares: Floats

    def __len__(self) -> int:
        return len(self.people)

    @cached_property
    def known(self) -> dict[str, list[Any]]:
        """Return the different values of each key, in the order of the lines."""
        return {role: list(dict.fromkeys(values)) for role, values in self.values.items()}

    @cached_property
    def numbers(self) -> NDArray[np.int64]:
        """Return the number that `with_number` gives to the rows of each line, (n,)."""
        number: NDArray[np.int64] = np.zeros(len(self), dtype=np.int64)
        for role, values in self.values.items():
            position = {value: i for i, value in enumerate(self.known[role])}
            codes = np.array([position[value] for value in values], dtype=np.int64)
            number = number * len(position) + codes
        return number

    def with_number(self, lazy: nw.LazyFrame[Any], name: str) -> nw.LazyFrame[Any]:
        """Return the frame with the number of each row's line; negative where it is in none."""
        keys, names = self.table.keys, self.table.names
        lookups: dict[str, SparkLookup] = {}
        codes = []
        for role, known in self.known.items():
            if is_spark(lazy) and len(known) > MAX_CHAIN and can_be_looked_up(known):
                added = names.take("_commod_code")
                positions = {value: float(i) for i, value in enumerate(known)}
                lookups[added] = SparkLookup(keys[role], positions, unknown=-1.0, missing=-1.0)
                code = nw.col(added).cast(nw.Int64)
            else:
                code = _code(nw.col(keys[role]), known)
            codes.append((code, len(known)))
        start = nw.lit(0, nw.Int64)
        number = reduce(lambda number, code: number * code[1] + code[0], codes, start)
        return with_looked_up(lazy, lookups).with_columns(number.alias(name))

    def of_numbers(self, row_numbers: NDArray[np.int64]) -> Codes:
        """Return the line of rows with these numbers."""
        order = np.argsort(self.numbers)
        position = np.searchsorted(self.numbers[order], row_numbers)
        line = order[np.minimum(position, len(order) - 1)]
        if not np.array_equal(self.numbers[line], row_numbers):
            raise rows_differ()
        return line


def _code(value: nw.Expr, known: Sequence[Any]) -> nw.Expr:
    """Return the position of each value among the known ones."""
    if len(known) > MAX_CHAIN:
        positions = list(range(len(known)))
        return value.replace_strict(list(known), positions, default=-1, return_dtype=nw.Int64)
    code = nw.lit(0, nw.Int64)
    for i, one in enumerate(known[1:], 1):
        code = nw.when(value == one).then(nw.lit(i, nw.Int64)).otherwise(code)
    return code


# ---------------------------------------------------------------------------------------------
# Counting


def count_lines(table: FrameTable) -> Lines:
    """Return the lines of a frame; refuse missing and invalid values, with their number."""
    keys = list(table.keys.values())
    n, weight, squares, bad_key, bad_weight = (
        table.names.take(f"_commod_{name}")
        for name in ("n", "weight", "squares", "bad_key", "bad_weight")
    )
    one, zero = nw.lit(1.0, nw.Float64), nw.lit(0.0, nw.Float64)

    def flag(condition: nw.Expr) -> nw.Expr:
        return nw.when(condition.fill_null(True)).then(one).otherwise(zero)

    amount = one if table.weight is None else nw.col(table.weight)
    is_valid = (amount >= 0) & (amount < float("inf"))
    # not the draws: a count is quicker without them
    no_key = nw.lit(False) if table.key is None else nw.col(table.key).is_null()
    lazy = table.lazy.with_columns(
        (one if table.weight is None else flag(amount > 0)).alias(n),
        amount.alias(weight),
        (amount * amount).alias(squares),
        flag(no_key).alias(bad_key),
        (zero if table.weight is None else flag(~is_valid)).alias(bad_weight),
    )
    sums = [nw.col(name).sum() for name in (n, weight, squares, bad_key, bad_weight)]
    fetched = fetch(lazy.group_by(*keys).agg(*sums), MAX_LINES)
    if fetched is None:
        raise InputError(
            f"Sensitive columns and conditions make more than {MAX_LINES:,} combinations, too many "
            "to be compared. Put numbers into bins, or name fewer columns.",
            parameter="sensitive_features",
        )
    check_key(table, int(numbers(fetched, bad_key).sum()))
    check_weights(table, int(numbers(fetched, bad_weight).sum()))
    _check_known(table, fetched, numbers(fetched, n))
    _check_sums(table, numbers(fetched, weight), numbers(fetched, squares))
    kept = np.flatnonzero(numbers(fetched, n) > 0)
    # engines return groups in any order
    values = {role: [fetched[c][i] for i in kept] for role, c in table.keys.items()}
    order = sorted(
        range(len(kept)), key=lambda i: [(type(v[i]).__name__, v[i]) for v in values.values()]
    )
    return Lines(
        table,
        {role: [column[i] for i in order] for role, column in values.items()},
        *(numbers(fetched, name)[kept][order] for name in (n, weight, squares)),
    )


def _check_known(table: FrameTable, fetched: GroupTable, n: Floats) -> None:
    """Refuse an empty frame, and missing groups, labels, conditions and scores."""
    n_rows = int(n.sum())
    if not n_rows:
        raise InputError("frame has 0 rows with a weight; at least 1 is needed.", parameter="frame")
    for role, column in table.keys.items():
        n_missing = int(n[[value is None for value in fetched[column]]].sum())
        if n_missing and role in ("above", "open"):
            raise missing_scores(str(table.named.score), n_missing, n_rows)
        if n_missing:
            raise missing_values(role, n_missing, n_rows)


def _check_sums(table: FrameTable, weight: Floats, squares: Floats) -> None:
    """Refuse weights whose squares are too large or too small for a float."""
    with np.errstate(over="ignore"):
        total, of_squares = weight.sum(), squares.sum()
    if not np.isfinite(total) or not np.finfo(float).tiny <= of_squares < np.inf:
        raise InputError(
            f"sample_weight: column {table.named.sample_weight!r} sums up to {total:.3g}, and its "
            f"squares to {of_squares:.3g}: too large or too small to compute with. Divide the "
            "weights by their mean.",
            parameter="sample_weight",
        )


# ---------------------------------------------------------------------------------------------
# Lines as fit rows


def rows_of_lines(update: TargetedUpdate, lines: Lines) -> FitRows:
    """Return the lines as fit rows, each of many people; also set the labels of the update."""
    table, n = lines.table, len(lines)
    given = lines.values.get("y_true")
    labels = None if given is None else read_labels(np.array(given), "y_true")
    update.classes_ = base_classes(update.estimator, labels)
    update._set_labels()
    constraints = update._stated().constraints
    label = outcomes_of(labels, update.classes_, update.pos_label_, constraints)
    sensitive = {
        name: objects(lines.values[f"group {i}"]) for i, name in enumerate(table.named.sensitive)
    }
    several = len(sensitive) > 1
    groups = read_groups(sensitive if several else next(iter(sensitive.values())), n)
    names = group_names_of(groups.labels, tuple(sensitive) if several else None)
    sizes = np.bincount(groups.codes, lines.people, len(groups.labels)).astype(np.intp)
    size = update.min_group_size
    in_constraint = rows_of_large_groups(groups, lines.weight, size, names, sizes)
    base = _base_of_lines(update, lines)
    hashes = np.zeros(n, dtype=np.uint64)  # a line has no fold
    rows = FitRows([], base, label, groups, in_constraint, lines.weight, names)
    rows = replace(rows, people=lines.people, squares=lines.squares, hashes=hashes)
    return replace(rows, strata=_strata(rows, lines, constraints))


def _base_of_lines(update: TargetedUpdate, lines: Lines) -> BaseScores:
    """Return a score for each line, with its decision, that may change where the line may."""
    threshold, margin = float(update.threshold), update.max_margin
    above, is_open = (np.array(lines.values[role], dtype=bool) for role in ("above", "open"))
    end = above * 1.0
    near = (end - threshold) / 2
    if margin is not None:
        near = np.clip(near, -margin / 2, margin / 2)
    is_beyond = (np.abs(end - threshold) > (np.inf if margin is None else margin)) | above
    scores = np.where(is_open, threshold + near, np.where(is_beyond, end, threshold))
    is_for_positive = bool(update._score_label() == update.pos_label_)
    return BaseScores(np.column_stack([1 - scores, scores]), threshold, is_for_positive)


def _strata(
    rows: FitRows, lines: Lines, constraints: Sequence[Constraint]
) -> dict[Constraint, Strata]:
    """Return the strata of all constraints that have a condition."""
    group, n_groups = rows.large_groups
    strata = {}
    n_people = np.rint(lines.people).astype(np.intp)
    for constraint in constraints:
        if constraint.within is None:
            continue
        i = lines.table.named.conditions.index(constraint.within.column)
        coded = code_array(objects(lines.values[f"within {i}"]))
        codes = coded.codes.astype(np.intp)
        people = group, n_groups, rows.label, None, n_people
        strata[constraint] = strata_of(constraint, codes, coded.values, *people)
    return strata
