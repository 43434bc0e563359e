"""Name the columns of a frame that a fit reads, and prepare, count and fetch its rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from importlib import import_module
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from commod._data.arrays import Codes, Floats
from commod._data.base_model import BaseScores, ScoreColumn, base_classes, warn_about_base_model
from commod._data.columns import plain
from commod._data.draws import FIT_SEEDS, key_hashes, with_draws, with_key
from commod._data.frames import (
    SparkLookup,
    as_number,
    can_be_looked_up,
    fetch,
    is_spark,
    no_column,
    number_column,
    numbers,
    objects,
    open_frame,
    read_names,
    with_copies,
    with_looked_up,
)
from commod._data.groups import Groups, read_groups, read_stratum_column
from commod._data.labels import read_labels
from commod._data.tables import FreeNames
from commod._text import n_of, shown
from commod.exceptions import BaseModelError, InputError
from commod.updates._fit_rows import FitRows
from commod.updates._targeted import TargetedUpdate

if TYPE_CHECKING:
    import pyarrow as pa

Named = Mapping[str, tuple[str, ...]]  # the columns that each parameter names

SINGLE = ("y_true", "sample_weight", "key")  # parameters that name one column


def name_columns(
    update: TargetedUpdate, sensitive_features: Any, features: Any, **single: Any
) -> dict[str, tuple[str, ...]]:
    """Return the columns that each parameter of a fit names, checked; `single` may be None.

    "constraints" names those that constraints are within, and "estimator" a column of scores.
    """
    estimator = update.estimator
    listed: dict[str, Any] = {}
    if not isinstance(estimator, ScoreColumn):
        base_classes(estimator, None)  # refuses what is no model with two labels
    elif isinstance(estimator.column, str):
        listed["estimator"] = estimator.column
    else:
        raise InputError(
            f"The columns of a frame have names; got {shown(estimator)}. Pass "
            "ScoreColumn('name of the column').",
            parameter="estimator",
        )
    listed |= {"sensitive_features": sensitive_features, **single, "features": features}
    conditions = [one.within.column for one in update._stated().constraints if one.within]
    named = read_names(listed, "Use fit for arrays.")
    for parameter in ("y_true", "sensitive_features", "key"):
        for name in {*named.get(parameter, ())} - {*update.locked_features}:
            if name in named.get("features", ()):
                raise InputError(
                    f"Column {name!r} is named by {parameter} and by features; it can be one. "
                    "Leave it out of features, or put it into locked_features for the base model.",
                    parameter="features",
                )
    return {
        **named,
        "constraints": tuple(dict.fromkeys(conditions)),
    }


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
    named: Named
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
    frame: Any, named: Named, threshold: float, max_margin: float | None
) -> FrameTable:
    """Return the frame with its prepared columns; nothing is computed yet."""
    lazy = open_frame(frame)
    schema: Mapping[Any, Any] = lazy.collect_schema()
    features = feature_columns(named, schema)
    _check_spark_names(lazy, schema, named, features)
    names = FreeNames(schema)
    read = {f"group {i}": name for i, name in enumerate(named["sensitive_features"])}
    read |= {name: named[name][0] for name in ("y_true",) if name in named}
    read |= {f"within {i}": name for i, name in enumerate(named["constraints"])}
    work = {role: names.take(f"_commod_{role.replace(' ', '_')}") for role in read}
    lazy = with_copies(lazy, {work[role]: column for role, column in read.items()})
    (column,) = named["estimator"]  # a model has scored the frame
    value = number_column("estimator", column, schema[column])
    score, above, is_open = (names.take(f"_commod_{name}") for name in ("score", "above", "open"))
    lazy = lazy.with_columns(nw.when((value >= 0) & (value <= 1)).then(value).alias(score))
    weight = key = None
    for column in named.get("sample_weight", ()):
        weight = names.take("_commod_weight")
        amount = number_column("sample_weight", column, schema[column])
        lazy = lazy.with_columns(amount.alias(weight))
    for column in named.get("key", ()):
        key = names.take("_commod_key")
        lazy = with_key(lazy, column, key)
    distance = (nw.col(score) - threshold).abs()
    acts = nw.col(score) != threshold
    lazy = lazy.with_columns(
        (nw.col(score) > threshold).alias(above),
        (acts if max_margin is None else acts & (distance <= max_margin)).alias(is_open),
    )
    keys = {**work, "above": above, "open": is_open}
    return FrameTable(lazy, named, keys, features, score, key, weight, names)


def feature_columns(named: Named, schema: Mapping[Any, Any]) -> tuple[str, ...]:
    """Return the columns of X; refuse names that the frame does not have."""
    for parameter, columns in named.items():
        for column in columns:
            if column not in schema:
                raise no_column(parameter, column, schema)
    score, features = named.get("estimator", ()), named.get("features")
    if features is None:
        others = {*named["sensitive_features"], *(c for n in SINGLE for c in named.get(n, ()))}
        return tuple(name for name in schema if name not in others or name in score)
    for column in named["constraints"]:
        if column not in features:
            raise InputError(
                f"A constraint is within {column!r}, which is not among the features. Add it to "
                "features, and to locked_features if r must not read it.",
                parameter="features",
            )
    return tuple(dict.fromkeys([*features, *score]))


def _check_spark_names(
    lazy: nw.LazyFrame[Any], schema: Mapping[Any, Any], named: Named, features: Sequence[str]
) -> None:
    """Refuse columns that Spark cannot find by their name: it splits names at dots."""
    if not is_spark(lazy):
        return
    session = lazy.to_native().sparkSession
    ignores_case = session.conf.get("spark.sql.caseSensitive") != "true"
    for column in dict.fromkeys([*features, *(c for columns in named.values() for c in columns)]):
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
# Refuse rows that a fit cannot use, or that differ from one query to the next: a frame that is a
# query runs anew each time, so a random number or a limit without an order gives other rows. Every
# later query must count the people of the first.


MAX_WEIGHT_DEVIATION = 1e-6  # relative, of two sums of the same weights
INVALID = {"key": "missing", "sample_weight": "missing, negative, NaN or infinite"}


def parameter_of(role: str) -> str:
    """Return the parameter that names the column of a role, such as "group 0".

    Examples
    --------
    >>> parameter_of("group 0"), parameter_of("y_true")
    ('sensitive_features', 'y_true')
    """
    names = {"group": "sensitive_features", "within": "constraints"}
    names |= dict.fromkeys(("score", "above", "open"), "estimator")
    return names.get(role.split()[0], role)


def _refuse_bad(table: FrameTable, n_bad: Mapping[str, int], n_rows: int) -> None:
    """Refuse rows without a valid value; `n_bad` counts them by role."""
    for role, n in n_bad.items():
        if not n:
            continue
        parameter = parameter_of(role)
        column = table.named[parameter][0]
        if parameter == "estimator":
            raise BaseModelError(
                f"Column {column!r} holds no score in [0, 1] in {n:,} of {n_rows:,} rows (NaN, "
                "null or outside). Every row needs a score: drop these rows, or make probabilities "
                "of margins with 1 / (1 + exp(-m))."
            )
        if role in INVALID:
            raise InputError(
                f"{role}: column {column!r} is {INVALID[role]} in {n_of(n, 'row')}. Drop these "
                "rows, or correct them.",
                parameter=parameter,
            )
        raise InputError(
            f"{parameter}: {n_of(n, 'missing value')} in {n_rows:,} rows. Drop those rows, or "
            "give them a value of their own, e.g. with fill_null('unknown').",
            parameter=parameter,
        )


def _shared_keys(table: FrameTable, found: str) -> InputError:
    """Return the error for a key that many rows share; `found` says what was counted."""
    column = next(iter(table.named.get("key", (None,))))
    return InputError(
        f"key={column!r}: {found}. Too many rows share a key. Name a column that differs from row "
        "to row.",
        parameter="key",
    )


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
    one = nw.lit(1.0, nw.Float64)
    amount = one if table.weight is None else nw.col(table.weight)
    amounts = {"n": one, "weight": amount, "squares": amount * amount}
    if table.key is not None:  # not the draws: a count is quicker without them
        amounts["key"] = as_number(nw.col(table.key).is_null())
    if table.weight is not None:
        is_valid = ((amount >= 0) & (amount < float("inf"))).fill_null(False)
        amounts |= {"n": as_number(amount > 0), "sample_weight": as_number(~is_valid)}
    names = {name: table.names.take(f"_commod_{name}") for name in amounts}
    lazy = table.lazy.with_columns(*(amounts[name].alias(names[name]) for name in amounts))
    sums = [nw.col(name).sum() for name in names.values()]
    fetched = fetch(lazy.group_by(*table.keys.values()).agg(*sums), MAX_LINES)
    if fetched is None:
        raise InputError(
            f"Sensitive columns and conditions make more than {MAX_LINES:,} combinations, too many "
            "to be compared. Put numbers into bins, or name fewer columns.",
            parameter="sensitive_features",
        )
    sum_of = {name: numbers(fetched, column) for name, column in names.items()}
    n_rows = int(sum_of["n"].sum())
    _refuse_bad(table, {n: int(sum_of[n].sum()) for n in INVALID if n in sum_of}, n_rows)
    if not n_rows:
        raise InputError("frame has 0 rows with a weight; at least 1 is needed.", parameter="frame")
    is_missing = {r: [v is None for v in fetched[column]] for r, column in table.keys.items()}
    _refuse_bad(table, {r: int(sum_of["n"][m].sum()) for r, m in is_missing.items()}, n_rows)
    _check_sums(table, sum_of["weight"], sum_of["squares"])
    kept = np.flatnonzero(sum_of["n"] > 0)
    # engines return groups in any order
    values = {role: [fetched[c][i] for i in kept] for role, c in table.keys.items()}
    order = sorted(
        range(len(kept)), key=lambda i: [(type(v[i]).__name__, v[i]) for v in values.values()]
    )
    return Lines(
        table,
        {role: [column[i] for i in order] for role, column in values.items()},
        *(sum_of[name][kept][order] for name in ("n", "weight", "squares")),
    )


def _check_sums(table: FrameTable, weight: Floats, squares: Floats) -> None:
    """Refuse weights whose squares are too large or too small for a float."""
    with np.errstate(over="ignore"):
        total, of_squares = weight.sum(), squares.sum()
    if not np.isfinite(total) or not np.finfo(float).tiny <= of_squares < np.inf:
        raise InputError(
            f"sample_weight: column {table.named['sample_weight'][0]!r} sums up to {total:.3g}, "
            f"and its squares to {of_squares:.3g}: too large or too small to compute with. Divide "
            "the weights by their mean.",
            parameter="sample_weight",
        )


# ---------------------------------------------------------------------------------------------
# Rows for a fit: lines, each of many people; all rows of the table; or those that points come from


MAX_ROWS_PER_KEY = 10  # on average: households are fine, regions are not
MAX_DEVIATION = 8.0  # standard deviations of the number of rows: rows do not share keys


def rows_of_lines(update: TargetedUpdate, lines: Lines) -> FitRows:
    """Return the lines as fit rows, each of many people; also set the labels of the update."""
    table, n, given = lines.table, len(lines), lines.values.get("y_true")
    names = table.named["sensitive_features"]
    columns = {name: objects(lines.values[f"group {i}"]) for i, name in enumerate(names)}
    several = len(names) > 1
    groups = read_groups(columns if several else columns[names[0]], n)

    def condition(name: str) -> Groups:
        role = f"within {table.named['constraints'].index(name)}"
        return read_stratum_column(objects(lines.values[role]), n, name, "constraints")

    rows = update._as_fit_rows(
        None if given is None else read_labels(np.array(given), "y_true"),
        groups,
        names if several else None,
        lines.weight,
        lambda: _base_of_lines(update, lines),
        condition,
        people=lines.people,
        squares=lines.squares,
    )
    return replace(rows, hashes=np.zeros(n, dtype=np.uint64))  # a line has no fold


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


def read_whole(update: TargetedUpdate, table: FrameTable) -> tuple[Any, ...]:
    """Return all rows on this machine: X, y, groups, weights and hashes of the key, as a fit reads.

    Missing and invalid values are refused; missing groups only if the update refuses them.
    """
    roles = {role: name for role, name in table.keys.items() if role not in ("above", "open")}
    others = [name for name in (table.weight, table.key) if name is not None]
    rows = _collect(table.lazy, [*table.features, table.score, *others, *roles.values()])
    if not len(rows):
        raise InputError("frame has 0 rows; at least 1 is needed.", parameter="frame")
    weight = None if table.weight is None else rows[table.weight].to_numpy()
    may_miss = "sensitive_features" if update.unknown_groups == "ignore" else ""
    required = {r: n for r, n in roles.items() if parameter_of(r) != may_miss}
    required["score"] = table.score
    n_bad = {role: rows[name].null_count for role, name in required.items()}
    if weight is not None:
        n_bad["sample_weight"] = int((~((weight >= 0) & (weight < np.inf))).sum())
    if table.key is not None:
        n_bad["key"] = rows[table.key].null_count
    _refuse_bad(table, n_bad, len(rows))
    names = table.named["sensitive_features"]
    groups = {name: _values(rows[roles[f"group {i}"]]) for i, name in enumerate(names)}
    label = _values(rows[roles["y_true"]], typed=True) if "y_true" in roles else None
    return (
        _features(table, rows),
        label,
        groups if len(groups) > 1 else groups[names[0]],
        weight,
        None if table.key is None else _hashes(table, rows[table.key]),
    )


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
    for score in table.named["estimator"]:
        if score in X:
            X[score] = rows[table.score].to_numpy()
    return X


def _hashes(table: FrameTable, keys: pa.ChunkedArray) -> NDArray[np.uint64]:
    """Return the hashes of keys; refuse them if so many rows share one that folds are clusters."""
    hashes = key_hashes(keys.to_numpy())
    n_rows, n_keys = len(hashes), len(np.unique(hashes))
    if n_rows > MAX_ROWS_PER_KEY * n_keys:
        raise _shared_keys(table, f"{n_rows:,} rows have {n_keys:,} different keys")
    return hashes


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


def read_point_rows(
    update: TargetedUpdate, all_lines: FitRows, lines: Lines, bound: int
) -> FitRows:
    """Return the rows whose draw is below the bound: points come from them.

    Groups, labels and strata are those of the lines of all people, `all_lines`. The position of a
    row is that of its line.
    """
    table = lines.table
    number, key, draw = (table.names.take(f"_commod_{name}") for name in ("line", "number", "draw"))
    lazy = lines.with_number(table.with_draws(key, draw), number)
    lazy = lazy.filter(nw.col(draw) < bound)
    weights = [] if table.weight is None else [table.weight]
    pulled = _collect(lazy, [*table.features, table.score, key, number, *weights])
    hashes = _hashes(table, pulled[key])
    expected = lines.people.sum() * bound / 2**31
    if abs(len(pulled) - expected) > max(MAX_DEVIATION * np.sqrt(expected), expected / 2):
        raise _shared_keys(table, f"{len(pulled):,} rows were drawn instead of {expected:,.0f}")
    X = _features(table, pulled)
    rows = all_lines.take(lines.of_numbers(pulled[number].to_numpy()))
    columns = update._read_columns(X)
    base = update._fit_base(X, columns)
    known = {"classes": update.classes_, "pos_label": update._pos_label, "label": rows.label}
    warn_about_base_model(update.estimator, X, base, **known)
    weight = np.ones(len(rows)) if table.weight is None else pulled[table.weight].to_numpy()
    features = update._keep_features(columns)
    update._n_fit_rows, update._scores_digest = all_lines.n_people, None
    rows = replace(rows, columns=features, base=base, weight=weight, hashes=hashes)
    return replace(rows, people=None, squares=None)
