"""Open frames of any dataframe engine, lazily, read their columns, and fetch tables of groups."""

from __future__ import annotations

import math
import os
from collections.abc import Hashable, Mapping, Sequence
from glob import glob
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

import narwhals as nw
import numpy as np
from narwhals.exceptions import DuplicateError
from numpy.typing import NDArray

from commod._data.arrays import Floats
from commod._data.codes import plain
from commod._data.spark_lookup import is_spark, spark_functions
from commod._data.tables import duplicate_names
from commod._io.queries import quoted
from commod._text import did_you_mean, list_names, shown
from commod.exceptions import InputError, InputTypeError

GLOB = "*?["  # a path with one of these is a pattern

GroupTable = dict[str, list[Any]]

ENGINES = "pandas, polars (lazy too), pyarrow, DuckDB or PySpark"


def as_lazy(frame: Any, way_out: str) -> nw.LazyFrame[Any]:
    """Return a frame of any engine, lazily; `way_out` says what to do with anything else."""
    try:
        native = nw.from_native(frame, pass_through=True)
        if isinstance(native, nw.DataFrame | nw.LazyFrame):
            lazy = native.lazy()
            lazy.collect_schema()  # DuckDB notices repeated names only here
            return lazy
    except DuplicateError as error:
        columns = getattr(frame, "column_names", None) or frame.columns
        raise duplicate_names("frame", columns) from error
    raise InputTypeError(
        f"frame must be a table of {ENGINES}; got {type(frame).__name__}. {way_out}"
    )


def no_column(name: str, column: Hashable, schema: Mapping[Any, Any]) -> InputError:
    """Return the error for a parameter that names a column which the frame does not have."""
    known = list(map(str, schema))
    return InputError(
        f"{name}: no column {shown(column)} in the frame (columns: {list_names(known)})."
        f"{did_you_mean(column, known)}",
        parameter=name,
    )


def check_scalar_type(column: Any, dtype: Any) -> None:
    """Refuse a column of lists or structures."""
    if dtype.is_nested():
        raise InputTypeError(
            f"Column {column!r} holds values of type {dtype}, which are neither a label nor the "
            "name of a group. Name a column of numbers, text or booleans."
        )


def number_column(name: str, column: Any, dtype: Any) -> nw.Expr:
    """Return a column of numbers as float64, null where it is NaN or missing."""
    if not (dtype.is_numeric() or dtype == nw.Boolean):
        raise InputError(
            f"{name} must hold numbers; column {column!r} is {dtype}. Cast it to a float first."
        )
    return without_nan(nw.col(column).cast(nw.Float64))


def without_nan(values: nw.Expr) -> nw.Expr:
    """Return floats with null in place of NaN."""
    return nw.when(values <= math.inf).then(values)  # False for NaN in every engine


# ---------------------------------------------------------------------------------------------
# Tables of groups


def fetch(query: nw.LazyFrame[Any], max_lines: int) -> GroupTable | None:
    """Run the query and return its table, by column; None where it has more than `max_lines`."""
    try:
        table = query.head(max_lines + 1).collect()
    except ImportError as error:
        raise InputError(
            "Group tables of this engine come back through pyarrow: pip install "
            "'commod-debiasing[parquet]'."
        ) from error
    if len(table) > max_lines:
        return None
    return {name: [plain(v) for v in table[name].to_list()] for name in table.columns}


def numbers(table: GroupTable, name: str) -> Floats:
    """Return a column of the table as numbers, 0 where it is null."""
    return np.array([0.0 if v is None else float(v) for v in table[name]], dtype=np.float64)


def objects(values: list[Any]) -> NDArray[Any]:
    """Return the values as an array of objects, shape (n,)."""
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


# ---------------------------------------------------------------------------------------------
# Frames of any engine, datasets and files


def open_frame(frame: Any) -> nw.LazyFrame[Any]:
    """Return a frame of any engine, an Arrow dataset or Parquet files by path, lazily."""
    if isinstance(frame, str | os.PathLike):
        frame = _open_parquet(str(frame))
    elif type(frame).__module__.startswith("pyarrow") and hasattr(frame, "scanner"):
        if find_spec("duckdb") is not None:
            frame = import_module("duckdb").from_arrow(frame)
        elif find_spec("polars") is not None:
            frame = import_module("polars").scan_pyarrow_dataset(frame)
        else:
            raise _no_engine("An Arrow dataset")
    lazy = as_lazy(frame, "Use fit for arrays.")
    return _as_arrow(lazy) if lazy.implementation.is_pandas_like() else lazy


def _as_arrow(lazy: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
    """Return a pandas frame as an Arrow table: comparisons of pandas lose what is missing."""
    try:
        return nw.from_native(lazy.collect().to_arrow()).lazy()
    except ImportError as error:
        raise InputError(
            "A pandas frame is read through pyarrow: pip install 'commod-debiasing[parquet]'."
        ) from error
    except (ValueError, TypeError) as error:  # those of Arrow are subclasses
        raise InputTypeError(
            f"The frame cannot be read as an Arrow table: {error}. Give each column values of one "
            "type, or drop the column.",
            parameter="frame",
        ) from error


def _open_parquet(path: str) -> Any:
    if not any(mark in path for mark in GLOB) and not Path(path).exists():
        raise InputError(
            f"frame={path!r}: there is no such file or folder. Pass the path of Parquet files, "
            "such as 'lake/*.parquet'.",
            parameter="frame",
        )
    path = parquet_pattern(path)
    if find_spec("duckdb") is not None:
        duckdb, literal = import_module("duckdb"), quoted(path, "'")
        options = "hive_partitioning = true, hive_types_autocast = false"
        try:
            return duckdb.sql(f"SELECT * FROM read_parquet({literal}, {options})")
        except duckdb.Error as error:
            raise InputError(
                f"frame={path!r} cannot be read as Parquet: {error}", parameter="frame"
            ) from error
    if find_spec("polars") is not None:
        polars = import_module("polars")
        frame = polars.scan_parquet(path, hive_partitioning=True)
        known, folders = frame.collect_schema(), hive_columns(glob(path, recursive=True))
        schema = {name: polars.String for name in folders if name in known}
        if not schema:
            return frame
        return polars.scan_parquet(path, hive_partitioning=True, hive_schema=schema)
    raise _no_engine("A path of Parquet files")


def parquet_pattern(path: str) -> str:
    """Return the pattern of the Parquet files in a folder; another path or pattern as it is."""
    is_folder = not any(mark in path for mark in GLOB) and Path(path).is_dir()
    return str(Path(path) / "**" / "*.parquet") if is_folder else path


def hive_columns(files: Sequence[str]) -> list[str]:
    """Return the columns that folders called "column=value" add, which are text in every engine.

    Examples
    --------
    >>> hive_columns(["lake/year=2026/town=Oslo/a.parquet"])
    ['year', 'town']
    """
    folders = Path(files[0]).parts[:-1] if files else ()
    return [folder.split("=", 1)[0] for folder in folders if "=" in folder]


def _no_engine(what: str) -> InputError:
    return InputError(
        f"{what} is read by DuckDB or polars, and neither is installed: pip install duckdb.",
        parameter="frame",
    )


# ---------------------------------------------------------------------------------------------
# Text that compares byte by byte, in engines that may ignore case, accents or blanks

Frame = TypeVar("Frame", nw.LazyFrame[Any], nw.DataFrame[Any] | nw.LazyFrame[Any])

TEXT_TYPES = (nw.String, nw.Categorical, nw.Enum)


def has_collations(frame: nw.DataFrame[Any] | nw.LazyFrame[Any]) -> bool:
    """Return whether a text column of this frame may compare otherwise than byte by byte."""
    return frame.implementation.is_duckdb() or is_spark(frame)


def with_binary_text(frame: Frame, copies: Mapping[str, str]) -> Frame:
    """Add copies of text columns that compare byte by byte; `copies` maps new names to old ones.

    In an engine without collations, a copy equals its column.

    Examples
    --------
    >>> import duckdb
    >>> people = duckdb.sql("SELECT 'Bonn' COLLATE NOCASE AS town")
    >>> frame = with_binary_text(nw.from_native(people), {"copy": "town"})
    >>> frame.select(nw.col("town") == "bonn", nw.col("copy") == "bonn").collect().row(0)
    (True, False)
    """
    if not copies:
        return frame
    if not has_collations(frame):
        return frame.with_columns(nw.col(old).alias(new) for new, old in copies.items())
    native: Any = frame.to_native()
    if frame.implementation.is_duckdb():
        # the cast is for ENUM columns, which have no collation but that of the connection
        pairs = [(quoted(new), quoted(old)) for new, old in copies.items()]
        added: list[str] = [
            f'CAST({old} AS VARCHAR) COLLATE "binary" AS {new}' for new, old in pairs
        ]
        return nw.from_native(native.project(", ".join(["*", *added])))
    functions = spark_functions(frame)
    columns = {new: functions.col(quoted(old, "`")) for new, old in copies.items()}
    return nw.from_native(
        native.withColumns({n: functions.collate(c, "UTF8_BINARY") for n, c in columns.items()})
    )
