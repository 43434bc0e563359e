"""Count the people of a frame in its engine, and read the lines of the count as fit rows.

One query groups people by sensitive columns, true label, columns of conditions, side of the
threshold and whether the decision may change. Each combination is a line: a row that stands for
many people.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from commod._data.base_model import BaseScores, base_classes
from commod._data.codes import code_array
from commod._data.encoding import Encoding
from commod._data.frames import GroupTable, fetch, numbers, objects
from commod._data.group_names import group_names_of
from commod._data.groups import read_groups
from commod._data.labels import read_labels
from commod._data.spark_lookup import SparkLookup, can_be_looked_up, is_spark, with_looked_up
from commod._solvers.cells import Caps
from commod._text import n_of
from commod.exceptions import BaseModelError, InputError
from commod.metrics._cells import Strata, strata_of
from commod.metrics._constraint import Constraint
from commod.updates._fit_rows import FitRows, rows_of_large_groups
from commod.updates._frames.columns import FrameTable
from commod.updates._frames.rescans import rows_differ
from commod.updates._held_out import take_fit_rows
from commod.updates._labels import outcomes_of
from commod.updates._problem import Counts, FitProblem

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Codes = NDArray[np.intp]

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

    @cached_property
    def held_out(self) -> Mask:
        """Return the lines of held-out people, (n,); none without `confidence`."""
        values = self.values.get("held out")
        return np.zeros(len(self), dtype=bool) if values is None else np.array(values, dtype=bool)

    def with_number(self, name: str) -> nw.LazyFrame[Any]:
        """Return the frame with the number of each row's line; negative where it is in none."""
        lazy, keys, names = self.table.lazy, self.table.keys, self.table.names
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

    def lookup(self, number: nw.Expr, of_line: Sequence[int]) -> nw.Expr:
        """Return the whole number `of_line` (n,) of the line of each row, by bisection."""
        order = np.argsort(self.numbers)
        return _bisect(number, self.numbers[order].tolist(), [int(of_line[i]) for i in order])

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


def _bisect(value: nw.Expr, keys: Sequence[int], results: Sequence[int]) -> nw.Expr:
    if len(set(results)) == 1:
        return nw.lit(results[0], nw.Int64)
    middle = len(keys) // 2
    below = _bisect(value, keys[:middle], results[:middle])
    above = _bisect(value, keys[middle:], results[middle:])
    return nw.when(value < keys[middle]).then(below).otherwise(above)


# ---------------------------------------------------------------------------------------------
# Counting


def count_lines(table: FrameTable) -> Lines:
    """Return the lines of a frame; refuse missing and invalid values, with their number."""
    keys = list(table.keys.values())
    n, weight, squares, *bad = (
        table.names.take(f"_commod_{name}")
        for name in ("n", "weight", "squares", "bad_key", "bad_weight", "bad_cost")
    )
    one, zero = nw.lit(1.0, nw.Float64), nw.lit(0.0, nw.Float64)

    def flag(condition: nw.Expr) -> nw.Expr:
        return nw.when(condition.fill_null(True)).then(one).otherwise(zero)

    amount = one if table.weight is None else nw.col(table.weight)
    # not the draws: a count is quicker without them
    checks = [nw.lit(False) if table.key is None else nw.col(table.key).is_null()]
    for column in (table.weight, table.cost):
        given = one if column is None else nw.col(column)
        checks.append(~((given >= 0) & (given < float("inf"))))
    lazy = table.lazy.with_columns(
        (one if table.weight is None else flag(amount > 0)).alias(n),
        amount.alias(weight),
        (amount * amount).alias(squares),
        *(flag(check).alias(name) for check, name in zip(checks, bad, strict=True)),
    )
    sums = [nw.col(name).sum() for name in (n, weight, squares, *bad)]
    fetched = fetch(lazy.group_by(*keys).agg(*sums), MAX_LINES)
    if fetched is None:
        raise InputError(
            f"Sensitive columns and conditions make more than {MAX_LINES:,} combinations, too many "
            "to be compared. Put numbers into bins, or name fewer columns.",
            parameter="sensitive_features",
        )
    _check(table, fetched, numbers(fetched, n), bad)
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


def _check(table: FrameTable, fetched: GroupTable, n: Floats, bad: Sequence[str]) -> None:
    """Refuse an empty frame, missing groups, labels and conditions, and invalid numbers."""
    n_rows, named = int(n.sum()), table.named
    for name, column in zip(("key", "sample_weight", "change_cost"), bad, strict=True):
        n_bad = int(numbers(fetched, column).sum())
        if n_bad:
            what = "missing" if name == "key" else "missing, negative, NaN or infinite"
            raise InputError(
                f"{name}: column {getattr(named, name)!r} is {what} in {n_of(n_bad, 'row')}. Drop "
                "these rows, or correct them.",
                parameter=name,
            )
    if not n_rows:
        raise InputError("frame has 0 rows with a weight; at least 1 is needed.", parameter="frame")
    for role, column in table.keys.items():
        n_missing = int(n[[value is None for value in fetched[column]]].sum())
        if not n_missing:
            continue
        if role in ("above", "open"):
            raise BaseModelError(
                f"Column {named.score!r} holds no score in [0, 1] in {n_missing:,} of {n_rows:,} "
                "rows (NaN, null or outside). Every row needs a score: drop these rows, or make "
                "probabilities of margins with 1 / (1 + exp(-m))."
            )
        parameter = {"group": "sensitive_features", "within": "constraints"}.get(
            role.split()[0], role
        )
        raise InputError(
            f"{parameter}: {n_of(n_missing, 'missing value')} in {n_rows:,} rows. Drop those rows, "
            "or give them a value of their own, e.g. with fill_null('unknown').",
            parameter=parameter,
        )


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


def rows_of_lines(update: Any, lines: Lines) -> FitRows:
    """Return the lines as fit rows, each of many people; also set the labels of the update."""
    table, n = lines.table, len(lines)
    given = lines.values.get("y_true")
    labels = None if given is None else read_labels(np.array(given), "y_true")
    update.classes_ = base_classes(update.estimator, labels)
    update._set_labels()
    constraints = update._requirements.constraints
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
    threshold = float(update.threshold)
    above = np.array(lines.values["above"], dtype=bool)
    scores = np.where(above, (1 + threshold) / 2, threshold / 2)
    is_for_positive = bool(update._score_label() == update.pos_label_)
    base = BaseScores(np.column_stack([1 - scores, scores]), threshold, is_for_positive)
    rows = FitRows([], base, label, groups, in_constraint, lines.weight, names)
    rows = replace(rows, people=lines.people, squares=lines.squares)
    return replace(rows, strata=_strata(rows, lines, constraints))


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


# ---------------------------------------------------------------------------------------------
# The problem of all people


@dataclass(frozen=True)
class CountedTerms:
    """The only thing that is known of the terms of counted people: their η without an offset."""

    eta: Floats
    n_terms: int = 0

    def total(self, points: Floats, intercept: float) -> Floats:
        """Return η, shape (n,)."""
        return self.eta + intercept

    def moments(self, weight: Floats) -> tuple[Floats, Floats]:
        """Return no moments: there are no terms."""
        return np.zeros(0), np.zeros(0)


@dataclass(frozen=True)
class CountedProblem(FitProblem):
    """The problem of all people of a frame, whose rows are counts; `is_open` as in the lines.

    `changed` (n,) are the rows that an update changes.
    """

    is_open: Mask = field(default_factory=lambda: np.zeros(0, dtype=bool))
    changed: Mask | None = None

    @cached_property
    def may_change(self) -> Mask:
        """Return the rows whose decision may change, shape (n,)."""
        allowed = np.where(self.rows.base.decisions, self.may_lower, self.may_raise)
        return np.asarray(allowed & self.is_open)

    @property
    def decisions(self) -> Mask:
        """Return the new decisions, shape (n,)."""
        assert self.changed is not None
        return self.rows.base.decisions ^ self.changed

    @cached_property
    def _n_changeable(self) -> tuple[Counts, Counts]:
        decisions = self.rows.base.decisions
        raisable, lowerable = (
            np.rint(self.cells.totals((self.is_open & rows) * self.rows.each)).astype(np.int64)
            for rows in (~decisions, decisions)
        )
        return raisable, lowerable


def fit_half(problem: CountedProblem, lines: Lines) -> CountedProblem:
    """Return the problem of the people who are not held out."""
    if not lines.held_out.any():
        return problem
    return take_lines(problem, np.flatnonzero(~lines.held_out))


def take_lines(problem: CountedProblem, index: Codes) -> CountedProblem:
    """Return the problem of some lines (m,), whose η is not known."""
    return replace(
        problem,
        rows=take_fit_rows(problem.rows, index),
        terms=CountedTerms(np.zeros(len(index))),  # type: ignore[arg-type]
        is_open=problem.is_open[index],
        change_cost=None if problem.change_cost is None else problem.change_cost[index],
        changed=None if problem.changed is None else problem.changed[index],
    )


def counted_problem(
    update: Any,
    rows: FitRows,
    is_open: Mask,
    eta: Floats,
    random_state: np.random.RandomState,
    cost: Floats | None = None,
) -> CountedProblem:
    """Return the problem of an update on counted people; `cost` (n,) is that of one change."""
    may_raise, may_lower = update._may_move()
    return CountedProblem(
        rows=rows,
        encoding=Encoding(()),
        terms=CountedTerms(eta),  # type: ignore[arg-type]
        constraint=update._constraint,
        standing=update._standing,
        caps=Caps(update.max_changes, update.max_accuracy_loss, update.max_volume_change),
        may_raise=may_raise,
        may_lower=may_lower,
        sparsity=float(update.sparsity),
        accuracy_weight=0.0,
        monotone={},
        use_all=False,
        random_state=random_state,
        min_category_size=update.min_category_size,
        max_margin=update.max_margin,
        raising_is_a_gain=update._raising_is_a_gain(),
        borderline=float(update.borderline),
        change_cost=cost,
        cost_is_distance=rows.change_cost is None,
        is_open=is_open,
    )
