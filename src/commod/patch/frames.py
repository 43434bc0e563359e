"""Apply a patch to a dataframe of any engine through narwhals. A lazy frame stays lazy.

Engines treat NaN differently. In all of them NaN, NULL and infinity lie outside a finite range, so
every number is compared with a range first.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any

import narwhals as nw
import numpy as np
from narwhals.exceptions import DuplicateError
from numpy.typing import NDArray

from commod._data.columns import Column as RawColumn
from commod._data.columns import read_columns, type_of
from commod._data.encoding import ColumnTerms, Encoding, matching_column
from commod._data.frames import (
    TEXT_TYPES,
    SparkLookup,
    counts_in,
    has_collations,
    is_spark,
    with_binary_text,
    with_looked_up,
)
from commod._data.parameters import check_flag
from commod._data.tables import FreeNames
from commod._io.queries import quoted
from commod._record.explanation import Value
from commod._statistics.score_map import MapPiece
from commod._text import did_you_mean, list_names, shown
from commod.exceptions import InputError, InputTypeError
from commod.patch.content import (
    BinColumn,
    CategoryColumn,
    Column,
    ColumnOfScore,
    Content,
    FrameColumn,
    NumberColumn,
    Ratio,
    missing_points_of,
    term_points_of,
    terms_of,
)
from commod.patch.rule import FINITE, PatchOperations, calibrated_in, parts_in, ratio_in
from commod.scorecard import edited_in, is_changed, logit_of, margins_in

Frame = nw.DataFrame[Any] | nw.LazyFrame[Any]

ALL_MISSING = nw.Unknown  # type of a column without any value
MAY_BE_EMPTY = (nw.Float32, nw.Float64, nw.String, nw.Boolean)  # types of columns without values
OBJECT_TYPES = (nw.Object, nw.Categorical, nw.Enum)  # their values may have any type
MAX_BRANCHES = 24  # engines overflow on longer chains of comparisons
MAX_COLUMNS_PER_EXPRESSION = 20  # engines overflow on deep expressions
MAX_LISTED = 8  # columns in a message
ADDED_COLUMNS = ("score", "decision", "changed", "direction")
CALIBRATED, RATIO = "calibrated", "r"
ON_REQUEST = (CALIBRATED, RATIO)  # further columns


@dataclass(frozen=True)
class PatchCounts:
    """Numbers of rows and changes after a patch; rows without a score have no decision.

    Examples
    --------
    >>> counts = PatchCounts(n_rows=100, n_without_score=0, n_changed=5, n_gains=4, n_losses=1)
    >>> counts.n_changed == counts.n_gains + counts.n_losses
    True
    """

    n_rows: int
    n_without_score: int
    n_changed: int
    n_gains: int
    n_losses: int


# ---------------------------------------------------------------------------------------------
# Frames in and out


def from_frame(frame: Any) -> Frame:
    """Return a frame of any engine through narwhals."""
    try:
        native = nw.from_native(frame, pass_through=True)
    except DuplicateError as error:
        raise InputError(
            f"The frame has several columns with the same name ({error}). Rename them."
        ) from error
    if isinstance(native, nw.DataFrame | nw.LazyFrame):
        return native
    raise InputTypeError(
        f"A patch needs a pandas, polars, pyarrow, DuckDB or PySpark frame; got "
        f"{type(frame).__module__}.{type(frame).__name__}. Put the columns into a frame. The "
        "columns of an array are called x0, x1, ..."
    )


def check_calibrated(content: Content, calibrated: Any) -> bool:
    """Return whether calibrated probabilities are requested; refuse a patch without them."""
    check_flag(calibrated, "calibrated")
    if calibrated and content.calibration is None:
        raise InputError(
            "calibrated=True, but the patch has no calibration map: its update was fitted without "
            "true labels, or by an earlier version of commod. Fit the update with y, and make the "
            "patch again.",
            parameter="calibrated",
        )
    return bool(calibrated)


def added_columns(content: Content, prefix: str, calibrated: bool, columns: Any) -> list[str]:
    """Return which columns `apply_to` adds, without their prefix and in their order.

    `columns` are names with the prefix, or None. With `calibrated`, the probability is among them.
    """
    chosen = list(ADDED_COLUMNS)
    if columns is not None:
        chosen = [name.removeprefix(prefix) for name in _known_names(columns, prefix)]
    if check_calibrated(content, calibrated) and CALIBRATED not in chosen:
        chosen.append(CALIBRATED)
    check_calibrated(content, CALIBRATED in chosen)
    return chosen


def _known_names(columns: Any, prefix: str) -> list[str]:
    known = [prefix + name for name in (*ADDED_COLUMNS, *ON_REQUEST)]
    listed = [columns] if isinstance(columns, str) else columns
    if not isinstance(listed, list | tuple) or not listed:
        raise InputError(
            f"columns={shown(columns)} must be a list of names of new columns, at least one; None "
            "adds the usual four.",
            parameter="columns",
        )
    for i, name in enumerate(listed):
        if name not in known:
            raise InputError(
                f"columns: a patch adds no column {shown(name)} (it can add: {list_names(known)})."
                f"{did_you_mean(name, known)}",
                parameter="columns",
            )
        if name in listed[:i]:
            raise InputError(
                f"columns names {name!r} twice; name each column once.", parameter="columns"
            )
    return list(listed)


def apply_to(content: Content, frame: Any, score: str, prefix: str, chosen: Sequence[str]) -> Any:
    """Return the frame with the columns that `added_columns` returned."""
    is_pandas = type(frame).__module__.partition(".")[0] == "pandas" and hasattr(frame, "columns")
    # an update knows column 0 as "0"
    is_numbered = is_pandas and not all(isinstance(name, str) for name in frame.columns)
    named = frame.set_axis(map(str, frame.columns), axis=1) if is_numbered else frame
    table = from_frame(named)
    schema = schema_of(table)
    check_columns(content, schema, score, is_eager=isinstance(table, nw.DataFrame))
    added = [prefix + name for name in chosen]
    _check_free(schema, added)
    applied = Applied(table, schema, [*schema, *added])
    read_score(applied, score, content.base.threshold)
    total = total_of(applied, content.ratio)
    r = ratio_in(applied, content, total, applied.score, applied.distance)
    ratio = applied.kept(r, "r")
    made = _made(applied, content, ratio, chosen)
    table = applied.table.with_columns(*(made[name].alias(prefix + name) for name in chosen))
    table = table.select(*schema, *added)
    is_in_pandas = isinstance(table, nw.DataFrame) and table.implementation.is_pandas_like()
    if "decision" in chosen and is_in_pandas:
        decision, dtype = prefix + "decision", _label_type(content)
        # pandas makes labels floats for missing values
        if dtype != nw.String and not table[decision].is_null().any():
            table = table.with_columns(nw.col(decision).cast(dtype))
    native = table.to_native()
    if is_numbered:
        native.columns = [*frame.columns, *added]
    return native


def _made(
    applied: Applied, content: Content, ratio: nw.Expr, chosen: Sequence[str]
) -> dict[str, nw.Expr]:
    """Return the chosen columns, and compute only what they need."""
    made = {RATIO: applied.if_scored(ratio)}
    if any(name != RATIO for name in chosen):
        changed, decided = decisions_of(applied, content, ratio)
        made["changed"] = changed
        made["decision"] = label(applied, content, decided)
        made["direction"] = direction(applied, content, changed, decided)
        if "score" in chosen or CALIBRATED in chosen:
            values = applied.score, ratio, applied.margin, changed, decided
            edited = edited_in(applied, *values, content.base.threshold, content.score_edit)
            made["score"] = applied.if_scored(edited)
    if CALIBRATED in chosen:
        made["score"] = applied.kept(made["score"], "edited")
        probability = calibrated_in(applied, content, made["score"])
        made[CALIBRATED] = nw.when(~made["score"].is_null()).then(probability)
    return made


def revert_from(frame: Any, prefix: str) -> Any:
    """Return the frame without the columns that `apply_to` added."""
    table = from_frame(frame)
    names = set(table.collect_schema())
    ours = [prefix + name for name in (*ADDED_COLUMNS, *ON_REQUEST)]
    present = [name for name in ours if name in names]
    if not present:
        raise InputError(
            f"The frame has no column {ours[0]!r}: no patch was applied with prefix={prefix!r}."
        )
    return table.drop(*present).to_native()


def count_changes(frame: Any, prefix: str) -> PatchCounts:
    """Return how many decisions changed, counted inside the engine."""
    table = from_frame(frame)
    names = set(table.collect_schema())
    if prefix + "direction" not in names:
        raise InputError(
            f"The frame has no column {prefix + 'direction'!r}: apply the patch first, with "
            f"prefix={prefix!r}, and name this column if you pass columns=."
        )
    direction = nw.col(prefix + "direction")
    counted = (
        table.lazy()
        .select(
            n_rows=nw.len(),
            n_known=direction.count(),
            n_gains=_number_of(direction == "gain"),
            n_losses=_number_of(direction == "loss"),
        )
        .collect()
    )
    n_rows, n_known, n_gains, n_losses = counts_in(counted)
    return PatchCounts(n_rows, n_rows - n_known, n_gains + n_losses, n_gains, n_losses)


def _number_of(condition: nw.Expr) -> nw.Expr:
    return nw.when(condition.fill_null(False)).then(nw.lit(1)).otherwise(nw.lit(0)).sum()


def schema_of(table: Frame) -> nw.Schema:
    """Return the types of the columns; `nw.Unknown` for columns in memory that are all missing.

    A column without any value may get any type: an empty column of a CSV becomes numbers in pandas.
    """
    schema = table.collect_schema()
    if isinstance(table, nw.DataFrame):
        for name in list(schema):
            if schema[name] in MAY_BE_EMPTY and _is_all_missing(table[name]):
                schema[name] = ALL_MISSING()
    return schema


def _is_all_missing(series: nw.Series[Any]) -> bool:
    """Return whether no row has a value; one row is looked at before all are."""
    for part in (series.head(1), series):
        missing = part.is_null()
        if part.dtype.is_float():
            missing = missing | part.is_nan().fill_null(True)
        if not missing.all():
            return False
    return True


# ---------------------------------------------------------------------------------------------
# Checking the columns


def check_columns(content: Content, schema: nw.Schema, score: str, *, is_eager: bool) -> None:
    """Refuse a frame in which a column of the patch is missing or has another type."""
    if score not in schema:
        raise InputError(
            f"The frame has no column {score!r} with the base model's scores (columns: "
            f"{list_names(list(schema), MAX_LISTED)}). Name it: score=...",
            parameter="score",
        )
    is_read = is_eager and schema[score] == nw.Object  # read_columns checks these values
    if not (schema[score].is_numeric() or schema[score] == ALL_MISSING or is_read):
        raise InputError(
            f"Column {score!r} has type {schema[score]}, but a score is a number between 0 and 1."
        )
    for column in content.ratio.frame_columns:
        _check_column(column, schema, is_eager)


def _check_free(schema: nw.Schema, added: Sequence[str]) -> None:
    lowered = {name.lower() for name in schema}
    taken = [name for name in added if name.lower() in lowered]
    if taken:
        raise InputError(
            f"The frame has a column {taken[0]!r} already. Pass another prefix=, or drop the "
            "columns of an earlier patch with revert."
        )


def _check_column(column: FrameColumn, schema: nw.Schema, is_eager: bool) -> None:
    if column.name not in schema:
        raise InputError(
            f"The patch reads column {column.name!r}, which the frame does not have (columns: "
            f"{list_names(list(schema), MAX_LISTED)}). The patch was made for other columns, or "
            "they were renamed."
        )
    dtype = schema[column.name]
    if dtype == ALL_MISSING or (dtype in OBJECT_TYPES and is_eager):
        return  # read_columns checks Python objects
    if isinstance(column, CategoryColumn):
        is_unknown = not column.categories and not dtype.is_numeric()
        is_readable = bool(category_points_of(column, dtype)) or is_unknown
        known = [repr(category.value) for category in column.categories]
        expected = f"categories such as {list_names(known, 3)}"
    else:
        is_readable, expected = dtype.is_numeric(), "numbers"
    if not is_readable:
        raise InputError(
            f"The patch reads {expected} in column {column.name!r}, but this column has type "
            f"{dtype}. Convert it to the type that it had when the update was fitted."
        )


# ---------------------------------------------------------------------------------------------
# The operations of the rule on the columns of a frame


class Applied(PatchOperations):
    """A frame to which a patch is applied, and the operations of the rule on its columns.

    Values are expressions. `table` has the columns of the frame and those that were kept. `taken`
    are names of columns that it must not get. Some columns are read in place of a column of the
    patch, by the name of the latter: `numbers` hold doubles, `texts` compare byte by byte, and
    `points` are the points themselves.
    """

    score: nw.Expr
    distance: nw.Expr
    margin: nw.Expr

    def __init__(self, table: Frame, schema: nw.Schema, taken: Iterable[str]) -> None:
        self.table, self.schema, self.names = table, schema, FreeNames(taken)
        self.numbers: dict[str, str] = {}
        self.texts: dict[str, str] = {}
        self.points: dict[str, str] = {}

    def kept(self, value: Any, name: str = "step") -> nw.Expr:
        """Return a new column: an engine computes a repeated part of an expression twice."""
        column = self.names.take(f"_commod_{name}")
        self.table = self.table.with_columns(value.alias(column))
        return nw.col(column)

    def where(self, condition: Any, value: Any, other: Any) -> Any:
        """Return the other value also where the condition is NULL."""
        return nw.when(condition).then(_expression(value)).otherwise(_expression(other))

    def minimum(self, value: Any, bound: float) -> Any:
        """Return the smaller one; the bound for NULL."""
        return self.where(value < bound, value, bound)

    def maximum(self, value: Any, bound: float) -> Any:
        """Return the larger one; the bound for NULL."""
        return self.where(value > bound, value, bound)

    def clip(self, value: Any, low: Any, high: Any) -> Any:
        """Return NULL for NULL."""
        return value.clip(low, high)

    def logit(self, share: Any, threshold: float) -> Any:
        """Return the logarithm of odds."""
        odds = self.kept(share / (1.0 - share))
        return odds.log() - logit_of(threshold)

    def sigmoid(self, value: Any, one: Any) -> Any:
        """Return the quotient in the order of the formula."""
        return one / (one + (-value).exp())

    def is_between(self, value: Any, low: float, high: float) -> Any:
        """Return False for NULL."""
        return ((value >= low) & (value <= high)).fill_null(False)

    def number_column(self, column: NumberColumn | BinColumn) -> nw.Expr:
        """Return a column as it was prepared, or as doubles."""
        prepared = self.numbers.get(column.name)
        return _number(column.name, self.schema) if prepared is None else nw.col(prepared)

    def source(self, name: str) -> str:
        """Return the column to read in place of a column of the patch: often that column itself."""
        every = (self.points, self.texts, self.numbers)
        return next((names[name] for names in every if name in names), name)

    def in_bins(self, value: Any, edges: Sequence[float], points: Sequence[float]) -> nw.Expr:
        """Return points by bisection; engines overflow on long chains."""
        if len(set(points)) == 1:
            return nw.lit(float(points[0]))
        middle = len(edges) // 2
        below = self.in_bins(value, edges[:middle], points[: middle + 1])
        above = self.in_bins(value, edges[middle + 1 :], points[middle + 1 :])
        return nw.when(value < edges[middle]).then(below).otherwise(above)

    def on_lines(self, value: Any, lines: Sequence[MapPiece]) -> nw.Expr:
        """Return values by bisection; engines overflow on long chains."""
        if len(lines) == 1:
            return (value - lines[0].start) * lines[0].slope + lines[0].value
        middle = len(lines) // 2
        below, above = (self.on_lines(value, part) for part in (lines[:middle], lines[middle:]))
        return nw.when(value < lines[middle].start).then(below).otherwise(above)

    def category_points(self, column: CategoryColumn) -> nw.Expr:
        """Return the points as they were prepared, or by comparisons."""
        source, dtype = self.source(column.name), self.schema[column.name]
        if column.name in self.points:
            return nw.col(source)
        missing = missing_points_of(column)
        if dtype == ALL_MISSING:
            return nw.lit(missing)
        value, points = nw.col(source), dict(category_points_of(column, dtype))
        is_missing = value.is_null()
        if dtype == nw.Boolean:
            if_true, if_false = (nw.lit(points.get(key, 0.0)) for key in (True, False))
            known = nw.when(value).then(if_true).otherwise(if_false)
        elif dtype.is_numeric():
            value = value.cast(nw.Float64)
            is_missing = ~self.is_between(value, -FINITE, FINITE)
            known = _replaced(value, {float(key): p for key, p in points.items()})
        else:
            known = _replaced(value.cast(nw.String), points)
        return nw.when(is_missing).then(nw.lit(missing)).otherwise(known)

    def if_scored(self, value: nw.Expr) -> nw.Expr:
        """Return a value, NULL where there is no score."""
        return nw.when(~self.score.is_null()).then(value)


def _expression(value: Any) -> nw.Expr:
    return value if isinstance(value, nw.Expr) else nw.lit(value)


def _number(name: str, schema: nw.Schema) -> nw.Expr:
    """Return a column as doubles."""
    if schema[name] == ALL_MISSING:
        return nw.lit(math.nan, nw.Float64)
    return nw.col(name).cast(nw.Float64)


def _replaced(value: nw.Expr, points: dict[Any, float]) -> nw.Expr:
    """Return the points of each category, 0 for any other value."""
    if len(points) > MAX_BRANCHES:
        old, new = list(points), list(points.values())
        return value.replace_strict(old, new, default=0.0, return_dtype=nw.Float64)
    chain = nw.lit(0.0)
    for key, number in points.items():
        chain = nw.when(value == key).then(nw.lit(number)).otherwise(chain)
    return chain


# ---------------------------------------------------------------------------------------------
# The steps of the rule


def total_of(applied: Applied, ratio: Ratio) -> nw.Expr:
    """Add the sum of the points as a column: in the order of the file, a few columns at a time."""
    _prepare(applied, ratio.columns)
    name = applied.names.take("_commod_ratio")
    table = applied.table.with_columns(nw.lit(ratio.intercept, nw.Float64).alias(name))
    total: Any = table.select(name) if isinstance(table, nw.DataFrame) else None
    for start in range(0, len(ratio.columns), MAX_COLUMNS_PER_EXPRESSION):
        few = ratio.columns[start : start + MAX_COLUMNS_PER_EXPRESSION]
        reads_score = any(isinstance(column, ColumnOfScore) for column in few)
        # A count of people by their evidence prepares no score.
        values = (applied.margin, applied.distance) if reads_score else (None, None)
        parts = [part for column in few for part in parts_in(applied, column, *values)]
        added = reduce(add, parts, nw.col(name)).alias(name)
        if total is None:
            table = table.with_columns(added)
        else:  # `with_columns` would copy the whole table for every sum
            read = [applied.source(c.name) for c in few if not isinstance(c, ColumnOfScore)]
            of_score = [*values] if reads_score else []
            total = table.select(*of_score, *read).with_columns(total[name]).select(added)
    applied.table = table if total is None else table.with_columns(total[name])
    return nw.col(name)


def read_score(applied: Applied, name: str, threshold: float) -> None:
    """Add the base score as doubles, NULL where missing or invalid, its distance and margin."""
    schema, table = applied.schema, applied.table
    value = _number(name, schema)
    if schema[name] == nw.Object and isinstance(table, nw.DataFrame) and len(table):
        read = read_columns(table.select(name).to_native())[0]
        if read.kind != "numeric":
            raise InputError(
                f"Column {name!r} holds {read.first_value()!r}, but a score is a number between "
                "0 and 1."
            )
        column = applied.names.take("_commod_read_score")
        applied.table = table.with_columns(as_series(table, column, read.values))
        value = nw.col(column)
    is_score = applied.is_between(value, 0.0, 1.0)
    applied.score = score = applied.kept(nw.when(is_score).then(value), "score")
    applied.distance = applied.kept((score - threshold).abs(), "distance")
    margin = margins_in(applied, score, score == threshold, threshold)
    applied.margin = applied.kept(margin, "margin")


def decisions_of(applied: Applied, content: Content, ratio: nw.Expr) -> tuple[nw.Expr, nw.Expr]:
    """Add whether the decision changes, and the new decision; both False without a score."""
    score, threshold = applied.score, content.base.threshold
    moved = is_changed(ratio, score == threshold) & ~score.is_null()
    changed = applied.kept(moved.fill_null(False), "changed")
    base = (score > threshold).fill_null(False)
    return changed, applied.kept(applied.where(changed, ~base, base), "decided")


def label(applied: Applied, content: Content, decided: nw.Expr) -> nw.Expr:
    """Return the new decision as a label, NULL where there is no score."""
    positive, negative = (
        nw.lit(label, _label_type(content))
        for label in (content.labels.positive, content.labels.negative)
    )
    return applied.if_scored(applied.where(decided, positive, negative))


def _label_type(content: Content) -> Any:
    kinds = {type(content.labels.positive), type(content.labels.negative)}
    if kinds <= {bool}:
        return nw.Boolean
    if kinds <= {int, bool}:
        return nw.Int64
    return nw.String if kinds == {str} else nw.Float64


def direction(applied: Applied, content: Content, changed: nw.Expr, decided: nw.Expr) -> nw.Expr:
    """Return "gain", "loss" or "kept", NULL where there is no score."""
    up, down = ("gain", "loss") if content.labels.favorable_above else ("loss", "gain")
    moved = applied.where(decided, up, down)
    return applied.if_scored(applied.where(changed, moved, "kept"))


# ---------------------------------------------------------------------------------------------
# Columns that are prepared, so that expressions can read them in every engine


def _prepare(applied: Applied, columns: Sequence[Column]) -> None:
    """Add the prepared columns, all at once: one by one takes time with their square."""
    table, schema = applied.table, applied.schema
    series: list[nw.Series[Any]] = []
    looked_up: dict[str, CategoryColumn] = {}  # in DuckDB
    lookups: dict[str, SparkLookup] = {}
    is_collated, in_spark = has_collations(table), is_spark(table)
    for i, column in enumerate(columns):
        if isinstance(column, ColumnOfScore):
            continue
        dtype, name = schema[column.name], f"_commod_column_{i}"
        is_category = isinstance(column, CategoryColumn)
        if _must_be_read(table, column.name, dtype) and (not is_category or dtype in OBJECT_TYPES):
            assert isinstance(table, nw.DataFrame)
            name = applied.names.take(name)
            series.append(as_series(table, name, _read_values(table, column)))
            (applied.points if is_category else applied.numbers)[column.name] = name
            continue
        if not isinstance(column, CategoryColumn):
            continue
        keys = category_points_of(column, dtype)
        has_many = len(keys) > MAX_BRANCHES
        if in_spark and has_many:
            applied.points[column.name] = name = applied.names.take(name)
            points = {float(k) if dtype.is_numeric() else str(k): p for k, p in keys}
            missing = missing_points_of(column)
            lookups[name] = SparkLookup(column.name, points, unknown=0.0, missing=missing)
        elif is_collated and dtype in TEXT_TYPES:
            has_nul = any("\x00" in str(key) for key, _ in keys)
            in_duckdb = table.implementation.is_duckdb() and dtype == nw.String
            in_duckdb = in_duckdb and has_many and not has_nul
            name = applied.names.take(name)
            (applied.points if in_duckdb else applied.texts)[column.name] = name
            if in_duckdb:
                looked_up[name] = column
    table = table.with_columns(*series) if series else table
    table = with_binary_text(table, {new: old for old, new in applied.texts.items()})
    applied.table = _with_looked_up(with_looked_up(table, lookups), looked_up)


def category_points_of(column: CategoryColumn, dtype: Any) -> list[tuple[Value, float]]:
    """Return the categories that a column of this type can contain, with their points."""
    if dtype == nw.Boolean:
        held = "boolean"
    elif dtype.is_numeric():
        held = "number"
    elif dtype in TEXT_TYPES:
        held = "text"
    else:
        return []
    return [(c.value, c.points) for c in column.categories if type_of(c.value) == held]


# ---------------------------------------------------------------------------------------------
# Many categories in Spark and DuckDB


def _with_looked_up(table: Frame, columns: dict[str, CategoryColumn]) -> Frame:
    """Add the points of many categories in DuckDB, looked up by their code in an enumeration.

    DuckDB would turn `replace_strict` into a join, which loses the order of rows and takes longer.
    A text becomes a code byte by byte, whatever the collation of its column.
    """
    if not columns:
        return table
    added = [f"{_points_in_sql(column)} AS {quoted(name)}" for name, column in columns.items()]
    native: Any = table.to_native()
    return nw.from_native(native.project(", ".join(["*", *added])))


def _points_in_sql(column: CategoryColumn) -> str:
    keys = category_points_of(column, nw.String)
    missing = missing_points_of(column)
    value = quoted(column.name)
    texts = ", ".join("'" + str(key).replace("'", "''") + "'" for key, _ in keys)
    points = ", ".join(_double(p) for _, p in keys)
    code = f"enum_code(TRY_CAST({value} AS ENUM ({texts})))::INTEGER"
    known = f"coalesce(list_extract([{points}], {code} + 1), 0e0)"
    return f"CASE WHEN {value} IS NULL THEN {_double(missing)} ELSE {known} END"


def _double(number: float) -> str:
    """Return a literal that DuckDB reads as this double; without an exponent it is a decimal."""
    text = repr(number)
    return text if "e" in text else f"{text}e0"


# ---------------------------------------------------------------------------------------------
# Python objects and Arrow integers


def read_as(table: nw.DataFrame[Any], terms: ColumnTerms) -> RawColumn:
    """Return a column in memory, read as the terms read it."""
    if not len(table):
        return RawColumn(terms.name, terms.kind, np.zeros(0, dtype=np.intp))
    (read,) = read_columns(table.select(terms.name).to_native(), {terms.name: terms.kind})
    return matching_column(terms, {terms.name: read})


def _read_values(table: Any, column: FrameColumn) -> NDArray[np.float64]:
    """Return numbers in place of Python objects, which expressions cannot read.

    They are the points of a column of categories.
    """
    terms = terms_of(column)
    read = read_as(table, terms)
    if isinstance(column, CategoryColumn):
        points = np.array([line.points for line in term_points_of(column)])
        return Encoding((terms,)).encode([read]).total(points, 0.0)
    return read.values


def as_series(table: nw.DataFrame[Any], name: str, values: Any) -> nw.Series[Any]:
    """Return numbers as a series that fits beside the columns of a table."""
    series = nw.Series.from_numpy(name, values, nw.Float64, backend=table.implementation)
    if table.implementation.is_pandas_like():
        native = series.to_native().set_axis(table.to_native().index)
        return nw.from_native(native, series_only=True)
    return series


def _must_be_read(table: Frame, name: str, dtype: Any) -> bool:
    """Return whether NumPy must read a column: objects, and Arrow integers that are not cast."""
    if not isinstance(table, nw.DataFrame):
        return False
    if dtype in OBJECT_TYPES:
        return True
    native = table[name].to_native()
    is_arrow = (
        table.implementation.is_pyarrow()
        or "Arrow" in type(getattr(native, "dtype", None)).__name__
    )
    return is_arrow and dtype in (nw.Int64, nw.UInt64)
