"""Name the columns of a frame that a fit reads, and prepare them lazily in its engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import validate_data

from commod._data.arrays import Codes, Floats
from commod._data.base_model import BaseScores, ScoreColumn, base_classes, warn_about_base_model
from commod._data.columns import code_array, may_hold_codes, plain, read_columns
from commod._data.draws import FIT_SEEDS, key_hashes, with_draws, with_key
from commod._data.frames import (
    TEXT_TYPES,
    GroupTable,
    SparkLookup,
    can_be_looked_up,
    check_scalar_type,
    fetch,
    has_collations,
    is_spark,
    no_column,
    number_column,
    numbers,
    objects,
    open_frame,
    with_binary_text,
    with_looked_up,
    without_nan,
)
from commod._data.groups import group_names_of, read_groups
from commod._data.labels import read_labels
from commod._data.tables import FreeNames
from commod._text import n_of, shown
from commod.exceptions import BaseModelError, InputError, InputTypeError
from commod.metrics._constraint import Constraint
from commod.metrics._people import Strata, strata_of
from commod.updates._fit_rows import (
    FitRows,
    hash_order,
    outcomes_of,
    rows_of_large_groups,
    warn_about_group_columns,
)
from commod.updates._targeted import TargetedUpdate


@dataclass(frozen=True)
class NamedColumns:
    """The columns that the user names; `conditions` are those that constraints are within.

    `score` is None where a model makes the scores.
    """

    score: str | None
    sensitive: tuple[str, ...]
    y_true: str | None
    sample_weight: str | None
    key: str | None
    conditions: tuple[str, ...] = ()
    features: tuple[str, ...] | None = None


def name_columns(
    estimator: Any,
    sensitive_features: Any,
    conditions: Sequence[str],
    features: Any,
    **others: Any,
) -> NamedColumns:
    """Return the names that the user gives, checked; `others` may be None."""
    is_column = isinstance(estimator, ScoreColumn)
    if not is_column:
        base_classes(estimator, None)  # refuses what is no model with two labels
    elif not isinstance(estimator.column, str):
        raise InputError(
            f"The columns of a frame have names; got {shown(estimator)}. Pass "
            "ScoreColumn('name of the column').",
            parameter="estimator",
        )
    sensitive = _list_of(sensitive_features)
    if not sensitive or sensitive == [None]:
        raise InputError(
            "sensitive_features is missing. Name the column of the group of each row, or a list of "
            "several.",
            parameter="sensitive_features",
        )
    listed = None if features is None else _list_of(features)
    named = [("sensitive_features", c) for c in sensitive]
    named += [(name, c) for name, c in others.items() if c is not None]
    named += [("features", c) for c in listed or ()]
    for name, column in named:
        if not isinstance(column, str):
            raise InputTypeError(
                f"{name} must be the name of a column of the frame; got {type(column).__name__}. "
                "Use fit for arrays.",
                parameter=name,
            )
    for name, columns in (("sensitive_features", sensitive), ("features", listed or ())):
        twice = [c for i, c in enumerate(columns) if c in columns[:i]]
        if twice:
            raise InputError(f"{name} names {twice[0]!r} twice; name each column once.")
    return NamedColumns(
        estimator.column if is_column else None,
        tuple(sensitive),
        conditions=tuple(dict.fromkeys(conditions)),
        features=None if listed is None else tuple(listed),
        **others,
    )


def _list_of(names: Any) -> list[Any]:
    if hasattr(names, "tolist"):  # names in an array
        names = names.tolist()
    return list(names) if isinstance(names, list | tuple) else [names]


# ---------------------------------------------------------------------------------------------
# Prepared columns


@dataclass(frozen=True)
class FrameTable:
    """A lazy frame with the columns that all queries of a fit share.

    - `keys`: the prepared columns that put a row into a line, by the name of what they hold: each
      sensitive column, "y_true", each condition, "above" (score > threshold) and "open" (whether
      `max_margin` lets the decision change).
    - `score`, `key`, `weight`: names of prepared columns; None where not given.
    - `features`: the columns of X; `names` gives free names of columns.
    """

    lazy: nw.LazyFrame[Any]
    named: NamedColumns
    keys: Mapping[str, str]
    features: tuple[str, ...]
    score: str
    key: str | None
    weight: str | None
    names: FreeNames = field(compare=False)

    def with_draws(self, number: str, draw: str, *kept: nw.Expr) -> nw.LazyFrame[Any]:
        """Return the `kept` rows with a weight, with their keys as numbers and their draws.

        Without a key, it is the number that the engine gives to the row. Rows are left out before
        draws are computed, which cost more than the other columns.
        """
        if self.key is None:
            lazy = with_key(self.lazy, None, number)
        else:
            lazy = self.lazy.with_columns(nw.col(self.key).alias(number))
        for condition in kept if self.weight is None else (nw.col(self.weight) > 0, *kept):
            lazy = lazy.filter(condition)
        return with_draws(lazy, number, draw, self.names.take("_commod_spare"), FIT_SEEDS)


def prepare_frame(
    frame: Any, named: NamedColumns, threshold: float, max_margin: float | None
) -> FrameTable:
    """Return the frame with its prepared columns; nothing is computed yet."""
    lazy = open_frame(frame)
    schema: Mapping[Any, Any] = lazy.collect_schema()
    features = check_names(named, schema)
    _check_spark_names(lazy, schema, named, features)
    names = FreeNames(schema)
    groups = {f"group {i}": name for i, name in enumerate(named.sensitive)}
    within = {f"within {i}": name for i, name in enumerate(named.conditions)}
    label = {} if named.y_true is None else {"y_true": named.y_true}
    read = {**groups, **label, **within}
    for column in read.values():
        check_scalar_type(column, schema[column])
    work = {role: names.take(f"_commod_{role.replace(' ', '_')}") for role in read}
    text = {role: column for role, column in read.items() if schema[column] in TEXT_TYPES}
    if has_collations(lazy):
        lazy = with_binary_text(lazy, {work[role]: column for role, column in text.items()})
    elif text:
        lazy = lazy.with_columns(
            *(nw.col(column).cast(nw.String).alias(work[role]) for role, column in text.items())
        )
    others = [_value(nw.col(c), schema[c]).alias(work[r]) for r, c in read.items() if r not in text]
    score, above, is_open = (names.take(f"_commod_{name}") for name in ("score", "above", "open"))
    assert named.score is not None  # a model has scored the frame
    value = number_column("estimator", named.score, schema[named.score])
    lazy = lazy.with_columns(*others, nw.when((value >= 0) & (value <= 1)).then(value).alias(score))
    weight = key = None
    if named.sample_weight is not None:
        weight = names.take("_commod_weight")
        amount = number_column("sample_weight", named.sample_weight, schema[named.sample_weight])
        lazy = lazy.with_columns(amount.alias(weight))
    if named.key is not None:
        key = names.take("_commod_key")
        lazy = with_key(lazy, named.key, key)
    distance = (nw.col(score) - threshold).abs()
    acts = nw.col(score) != threshold
    lazy = lazy.with_columns(
        (nw.col(score) > threshold).alias(above),
        (acts if max_margin is None else acts & (distance <= max_margin)).alias(is_open),
    )
    keys = {**work, "above": above, "open": is_open}
    return FrameTable(lazy, named, keys, features, score, key, weight, names)


def _value(value: nw.Expr, dtype: Any) -> nw.Expr:
    """Return a column of groups, labels or conditions in a type that every engine counts alike."""
    if dtype.is_decimal():
        value = value.cast(nw.Float64)
    elif dtype in (nw.Int128, nw.UInt128):
        value = value.cast(nw.Int64)
    return without_nan(value) if dtype.is_float() else value


def check_names(named: NamedColumns, schema: Mapping[Any, Any]) -> tuple[str, ...]:
    """Return the columns of X; refuse names that the frame does not have."""
    roles = {
        "estimator": () if named.score is None else (named.score,),
        "sensitive_features": named.sensitive,
        "constraints": named.conditions,
        "features": named.features or (),
    }
    single = ("y_true", "sample_weight", "key")
    roles |= {n: (getattr(named, n),) for n in single if getattr(named, n) is not None}
    for parameter, columns in roles.items():
        for column in columns:
            if column not in schema:
                raise no_column(parameter, column, schema)
    if named.features is not None:
        for column in named.conditions:
            if column not in named.features:
                raise InputError(
                    f"A constraint is within {column!r}, which is not among the features. Add it "
                    "to features, and to locked_features if r must not read it.",
                    parameter="features",
                )
    if named.features is None:
        others = {*named.sensitive, *(column for name in single for column in roles.get(name, ()))}
        return tuple(name for name in schema if name not in others or name == named.score)
    if named.score is None or named.score in named.features:
        return named.features
    return (*named.features, named.score)


def _check_spark_names(
    lazy: nw.LazyFrame[Any],
    schema: Mapping[Any, Any],
    named: NamedColumns,
    features: Sequence[str],
) -> None:
    """Refuse columns that Spark cannot find by their name: it splits names at dots."""
    if not is_spark(lazy):
        return
    single = (named.y_true, named.sample_weight, named.key)
    read = dict.fromkeys([*features, *named.sensitive, *(name for name in single if name)])
    session = lazy.to_native().sparkSession
    ignores_case = session.conf.get("spark.sql.caseSensitive") != "true"
    for column in read:
        alike = [name for name in schema if name != column and name.lower() == column.lower()]
        if alike and ignores_case:
            raise InputError(
                f"Spark does not tell the columns {column!r} and {alike[0]!r} apart. Rename one of "
                "them, or set spark.sql.caseSensitive to true.",
                parameter="frame",
            )
        if "." in column or "`" in column:
            raise InputError(
                f"Spark does not find the column {column!r}, because its name has a dot or a "
                "backtick. Rename it, for example with withColumnRenamed.",
                parameter="frame",
            )


# ---------------------------------------------------------------------------------------------
# Refuse rows of a frame that a fit cannot use, or that differ from one query to the next


MAX_WEIGHT_DEVIATION = 1e-6  # relative, of two sums of the same weights


def parameter_of(role: str) -> str:
    """Return the parameter that names the column of a role, such as "group 0".

    Examples
    --------
    >>> parameter_of("group 0"), parameter_of("y_true")
    ('sensitive_features', 'y_true')
    """
    return {"group": "sensitive_features", "within": "constraints"}.get(role.split()[0], role)


def missing_values(role: str, n_missing: int, n_rows: int) -> InputError:
    """Return the error for missing groups, labels or conditions."""
    parameter = parameter_of(role)
    return InputError(
        f"{parameter}: {n_of(n_missing, 'missing value')} in {n_rows:,} rows. Drop those rows, or "
        "give them a value of their own, e.g. with fill_null('unknown').",
        parameter=parameter,
    )


def missing_scores(column: str, n_missing: int, n_rows: int) -> BaseModelError:
    """Return the error for scores that are missing or outside [0, 1]."""
    return BaseModelError(
        f"Column {column!r} holds no score in [0, 1] in {n_missing:,} of {n_rows:,} rows (NaN, "
        "null or outside). Every row needs a score: drop these rows, or make probabilities of "
        "margins with 1 / (1 + exp(-m))."
    )


def check_key(table: FrameTable, n_bad: int) -> None:
    """Refuse missing keys."""
    _refuse_bad("key", table.named.key, "missing", n_bad)


def check_weights(table: FrameTable, n_bad: int) -> None:
    """Refuse invalid weights."""
    what = "missing, negative, NaN or infinite"
    _refuse_bad("sample_weight", table.named.sample_weight, what, n_bad)


def _refuse_bad(name: str, column: str | None, what: str, n_bad: int) -> None:
    if n_bad:
        raise InputError(
            f"{name}: column {column!r} is {what} in {n_of(n_bad, 'row')}. Drop these rows, or "
            "correct them.",
            parameter=name,
        )


def rows_share_keys(table: FrameTable, found: str) -> InputError:
    """Return the error for a key that many rows share; `found` says what was counted."""
    return InputError(
        f"key={table.named.key!r}: {found}. Too many rows share a key. Name a column that differs "
        "from row to row.",
        parameter="key",
    )


# ---------------------------------------------------------------------------------------------
# Rows that differ between queries
#
# A fit asks its engine several times. A frame that is a query runs anew each time, so a random
# number or a limit without an order gives other rows. Every later query must count the people of
# the first.


def rows_differ() -> InputError:
    """Return the error for a frame whose rows are not the same in two queries."""
    return InputError(
        "The rows of the frame differ between two queries of the same fit. The frame may be a "
        "query with random numbers or with a limit, or somebody writes to its table. Store its "
        "rows first (as a table, in a file, or with cache() in Spark), and fit on these.",
        parameter="frame",
    )


def check_same_people(
    first: tuple[Codes, Any], second: tuple[Codes, Any], tolerance: float = 0.0
) -> None:
    """Refuse two counts, each of lines and their people, that differ in any line.

    None as people: one for each entry. Weights may differ by a relative `tolerance`, because
    engines add them in any order.

    Examples
    --------
    >>> check_same_people((np.array([0, 1]), np.ones(2)), (np.array([1, 0]), np.ones(2)))
    """
    n_lines = max(int(line.max(initial=-1)) for line, _ in (first, second)) + 1
    before, after = (np.bincount(line, people, n_lines) for line, people in (first, second))
    if not np.allclose(before, after, rtol=tolerance, atol=0.0):
        raise rows_differ()


# ---------------------------------------------------------------------------------------------
# Count the people of a frame in its engine, and read the lines of the count as fit rows


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
    label = outcomes_of(labels, update.classes_, update._pos_label, constraints)
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
    is_for_positive = bool(update._score_label() == update._pos_label)
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


# ---------------------------------------------------------------------------------------------
# Bring rows of a frame onto this machine: all of them, or those that points come from


if TYPE_CHECKING:
    import pyarrow as pa


MAX_ROWS_PER_KEY = 10  # on average: households are fine, regions are not
MAX_DEVIATION = 8.0  # standard deviations of the number of rows: rows do not share keys


# ---------------------------------------------------------------------------------------------
# All rows


class WholeTable(NamedTuple):
    """All rows of a table on this machine, as `fit` takes them.

    `hashes` (n,) are those of the key; None without one.
    """

    X: Any
    y: Any
    sensitive_features: Any
    sample_weight: Any
    hashes: NDArray[np.uint64] | None


def pull_whole(table: FrameTable, *, allow_unknown: bool = False) -> WholeTable:
    """Return all rows; missing and invalid values are refused, but groups if `allow_unknown`."""
    roles = {role: name for role, name in table.keys.items() if role not in ("above", "open")}
    others = [name for name in (table.weight, table.key) if name is not None]
    rows = _collect(table.lazy, [*table.features, table.score, *others, *roles.values()])
    if not len(rows):
        raise InputError("frame has 0 rows; at least 1 is needed.", parameter="frame")
    for role, name in roles.items():
        n_missing = rows[name].null_count
        if n_missing and not (allow_unknown and parameter_of(role) == "sensitive_features"):
            raise missing_values(role, n_missing, len(rows))
    if n_missing := rows[table.score].null_count:
        raise missing_scores(str(table.named.score), n_missing, len(rows))
    weight = hashes = None
    if table.weight is not None:
        weight = rows[table.weight].to_numpy()
        is_valid = (weight >= 0) & (weight < np.inf)
        check_weights(table, int((~is_valid).sum()))
    if table.key is not None:
        check_key(table, rows[table.key].null_count)
        hashes = key_hashes(rows[table.key].to_numpy())
        _check_keys(table, hashes)
    named = table.named
    groups = {name: _values(rows[roles[f"group {i}"]]) for i, name in enumerate(named.sensitive)}
    label = None if named.y_true is None else _values(rows[roles["y_true"]], typed=True)
    sensitive = groups if len(groups) > 1 else next(iter(groups.values()))
    return WholeTable(_features(table, rows), label, sensitive, weight, hashes)


def _collect(lazy: nw.LazyFrame[Any], columns: Sequence[str]) -> pa.Table:
    try:
        return lazy.select(*columns).collect(backend="pyarrow").to_native()
    except ImportError as error:
        raise InputError(
            "Rows of a frame come back through pyarrow: pip install 'commod-debiasing[parquet]'."
        ) from error


def _features(table: FrameTable, rows: pa.Table) -> Any:
    """Return X as a pandas frame; the scores are doubles."""
    X = rows.select(list(table.features)).to_pandas()
    if table.named.score in X:
        X[table.named.score] = rows[table.score].to_numpy()
    return X


def _values(column: pa.ChunkedArray, *, typed: bool = False) -> NDArray[Any]:
    """Return the values of a column as Python's own, None where missing, shape (n,).

    If `typed`, the array has their type; then no value is missing.
    """
    compute = import_module("pyarrow.compute")
    coded = column.combine_chunks().dictionary_encode()
    known = [plain(value) for value in coded.dictionary.to_pylist()]
    codes = compute.fill_null(coded.indices, len(known)).to_numpy(zero_copy_only=False)
    if typed:
        return np.asarray(np.array(known)[codes])
    values = np.empty(len(known) + 1, dtype=object)
    values[:-1] = known
    return np.asarray(values[codes])


# ---------------------------------------------------------------------------------------------
# Rows that points come from


class PulledRows(NamedTuple):
    """The rows that points come from: X, and the line, weight and hash of each row."""

    X: Any
    line: Codes
    weight: NDArray[np.float64]
    hashes: NDArray[np.uint64]


def pull_point_rows(lines: Lines, bound: int) -> PulledRows:
    """Return the rows whose draw is below the bound."""
    table = lines.table
    number, key, draw = (table.names.take(f"_commod_{name}") for name in ("line", "number", "draw"))
    lazy = lines.with_number(table.with_draws(key, draw), number)
    lazy = lazy.filter(nw.col(draw) < bound)
    weights = [] if table.weight is None else [table.weight]
    rows = _collect(lazy, [*table.features, table.score, key, number, *weights])
    hashes = key_hashes(rows[key].to_numpy())
    _check_keys(table, hashes)
    expected = lines.people.sum() * bound / 2**31
    if abs(len(rows) - expected) > max(MAX_DEVIATION * np.sqrt(expected), expected / 2):
        raise rows_share_keys(table, f"{len(rows):,} rows were drawn instead of {expected:,.0f}")
    return PulledRows(
        X=_features(table, rows),
        line=lines.of_numbers(rows[number].to_numpy()),
        weight=np.ones(len(rows)) if table.weight is None else rows[table.weight].to_numpy(),
        hashes=hashes,
    )


def _check_keys(table: FrameTable, hashes: NDArray[np.uint64]) -> None:
    """Refuse a key that so many rows share that folds are few clusters."""
    n_rows, n_keys = len(hashes), len(np.unique(hashes))
    if n_rows > MAX_ROWS_PER_KEY * n_keys:
        raise rows_share_keys(table, f"{n_rows:,} rows have {n_keys:,} different keys")


def read_point_rows(
    update: TargetedUpdate, all_lines: FitRows, pulled: PulledRows
) -> tuple[FitRows, Codes]:
    """Return the rows that points come from, in the order of their hashes, and their lines.

    Groups, labels and strata are those of the lines of all people, `all_lines`.
    """
    X = pulled.X
    columns = read_columns(X, skip=update._unread())
    validate_data(update, X, skip_check_array=True, reset=True)
    base = update._base(X, columns)
    rows = all_lines.take(pulled.line)
    known = {"classes": update.classes_, "pos_label": update._pos_label, "label": rows.label}
    warn_about_base_model(update.estimator, X, base, **known)
    features = update._features(columns)
    update._columns_seen = [column.name for column in features]
    update._code_columns = [column.name for column in features if may_hold_codes(column)]
    update._n_fit_rows, update._scores_digest = all_lines.n_people, None
    rows = replace(rows, columns=features, base=base, weight=pulled.weight, hashes=pulled.hashes)
    rows = replace(rows, people=None, squares=None)
    update._check_locked(rows.columns)
    warn_about_group_columns(rows, update.locked_features)
    order = hash_order(rows)
    return rows.take(order), pulled.line[order]
