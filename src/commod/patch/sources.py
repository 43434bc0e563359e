"""Prepare columns of a frame, so that the expressions of a patch can read them in every engine.

All columns are added at once: adding them one by one takes time with the square of their number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from commod._data.columns import Column as RawColumn
from commod._data.columns import read_columns, type_of
from commod._data.encoding import Encoding, matching_column
from commod._data.frames import TEXT_TYPES, has_collations, with_binary_text
from commod._data.spark_lookup import SparkLookup, is_spark, with_looked_up
from commod._data.tables import FreeNames
from commod._io.queries import quoted
from commod._record import Value
from commod.patch.content import (
    BinColumn,
    CategoryColumn,
    Column,
    ColumnOfScore,
    NumberColumn,
    term_points_of,
    terms_of,
)

Frame = nw.DataFrame[Any] | nw.LazyFrame[Any]

OBJECT_TYPES = (nw.Object, nw.Categorical, nw.Enum)  # their values may have any type
MAX_BRANCHES = 24  # engines overflow on longer chains of comparisons


@dataclass(frozen=True)
class Sources:
    """Columns to read in place of a column of the patch, by the name of the latter.

    `numbers` hold doubles. `texts` compare byte by byte. `points` are the points themselves.
    """

    numbers: dict[str, str] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    points: dict[str, str] = field(default_factory=dict)

    def name(self, column: str) -> str:
        """Return the column to read in place of a column of the patch: often that column itself."""
        every = (self.points, self.texts, self.numbers)
        return next((names[column] for names in every if column in names), column)


def with_sources(
    table: Frame, schema: nw.Schema, columns: Sequence[Column], names: FreeNames
) -> tuple[Frame, Sources]:
    """Return the table with the prepared columns, and their names."""
    sources = Sources()
    series: list[nw.Series[Any]] = []
    looked_up: dict[str, CategoryColumn] = {}  # in DuckDB
    lookups: dict[str, SparkLookup] = {}
    is_collated, in_spark = has_collations(table), is_spark(table)
    for i, column in enumerate(columns):
        if isinstance(column, ColumnOfScore):
            continue
        dtype, is_category = schema[column.name], isinstance(column, CategoryColumn)
        if _must_be_read(table, column.name, dtype) and (not is_category or dtype in OBJECT_TYPES):
            assert isinstance(table, nw.DataFrame)
            name = names.take(f"_commod_column_{i}")
            series.append(as_series(table, name, _read_values(table, column)))
            (sources.points if is_category else sources.numbers)[column.name] = name
        elif isinstance(column, CategoryColumn) and in_spark and _has_many(column, dtype):
            name = names.take(f"_commod_column_{i}")
            lookups[name] = _spark_lookup(column, dtype)
            sources.points[column.name] = name
        elif isinstance(column, CategoryColumn) and is_collated and dtype in TEXT_TYPES:
            name = names.take(f"_commod_column_{i}")
            if table.implementation.is_duckdb() and _can_be_looked_up(column, dtype):
                looked_up[name] = column
                sources.points[column.name] = name
            else:
                sources.texts[column.name] = name
    table = table.with_columns(*series) if series else table
    table = with_binary_text(table, {new: old for old, new in sources.texts.items()})
    return _with_looked_up(with_looked_up(table, lookups), looked_up), sources


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


def _has_many(column: CategoryColumn, dtype: Any) -> bool:
    return len(category_points_of(column, dtype)) > MAX_BRANCHES


def _spark_lookup(column: CategoryColumn, dtype: Any) -> SparkLookup:
    keys = category_points_of(column, dtype)
    points = {float(k) if dtype.is_numeric() else str(k): p for k, p in keys}
    missing = 0.0 if column.missing is None else column.missing.points
    return SparkLookup(column.name, points, unknown=0.0, missing=missing)


def _can_be_looked_up(column: CategoryColumn, dtype: Any) -> bool:
    keys = category_points_of(column, dtype)
    has_nul = any("\x00" in str(key) for key, _ in keys)
    return dtype == nw.String and not has_nul and _has_many(column, dtype)


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
    missing = 0.0 if column.missing is None else column.missing.points
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


def _read_values(
    table: nw.DataFrame[Any], column: NumberColumn | BinColumn | CategoryColumn
) -> NDArray[np.float64]:
    """Return numbers in place of Python objects, which expressions cannot read.

    They are the points of a column of categories.
    """
    encoding = Encoding((terms_of(column),))
    read = _read(table, column.name, encoding)
    if isinstance(column, CategoryColumn):
        points = np.array([line.points for line in term_points_of(column)])
        return encoding.encode([read]).total(points, 0.0)
    return matching_column(encoding.columns[0], {read.name: read}).values


def _read(table: nw.DataFrame[Any], name: str, encoding: Encoding) -> RawColumn:
    if not len(table):
        return RawColumn(name, encoding.kinds[name], np.zeros(0, dtype=np.intp))
    return read_columns(table.select(name).to_native(), encoding.kinds)[0]


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
