"""Open frames of any dataframe engine, lazily, read their columns, and fetch tables of groups."""

from __future__ import annotations

import json
import math
import os
import zlib
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from glob import glob
from importlib import import_module
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import Any, TypeVar

import narwhals as nw
import numpy as np
from narwhals.exceptions import DuplicateError
from numpy.typing import NDArray

from commod._data.arrays import Floats
from commod._data.columns import plain
from commod._data.tables import duplicate_names
from commod._io.queries import quoted
from commod._text import did_you_mean, list_names, shorten, shown
from commod.exceptions import CommodError, InputError, InputTypeError

Frame = TypeVar("Frame", nw.LazyFrame[Any], nw.DataFrame[Any] | nw.LazyFrame[Any])

GLOB = "*?["  # a path with one of these is a pattern

LISTS = ("sensitive_features", "features")  # parameters that may name several columns

GroupTable = dict[str, list[Any]]

PACKAGES = ("duckdb", "_duckdb", "polars", "pyarrow", "narwhals", "pyspark", "py4j")
MAX_REASON = 300  # characters of an engine's error

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


@contextmanager
def engine_errors(frame: Any) -> Iterator[None]:
    """Turn an error of the engine that reads a frame, or of its files, into an InputError."""
    try:
        yield
    except (CommodError, ImportError):
        raise
    except Exception as error:
        kinds = [kind for kind in type(error).__mro__ if kind.__module__.split(".")[0] in PACKAGES]
        is_stopped = any("Interrupt" in kind.__name__ for kind in kinds)
        if is_stopped or not (kinds or isinstance(error, OSError)):
            raise
        what = f"frame={str(frame)!r}" if isinstance(frame, str | os.PathLike) else "The frame"
        reason = shorten(error, MAX_REASON).rstrip(".")
        raise InputError(
            f"{what} cannot be read: {reason}. Check that its files "
            "are there and whole, that all have the same columns of the same types, and that "
            "nobody changes them meanwhile. Or load the rows first, and pass these.",
            parameter="frame",
        ) from error


def no_column(name: str, column: Hashable, schema: Mapping[Any, Any]) -> InputError:
    """Return the error for a parameter that names a column which the frame does not have."""
    known = list(map(str, schema))
    return InputError(
        f"{name}: no column {shown(column)} in the frame (columns: {list_names(known)})."
        f"{did_you_mean(column, known)}",
        parameter=name,
    )


def read_names(
    columns: Mapping[str, Any], way_out: str, *, why: str = "", kinds: Any = str
) -> dict[str, tuple[Any, ...]]:
    """Return the columns that each parameter names, checked; what is None is left out.

    `kinds` are the types of a name, `way_out` is for who passes values, and `why` ends the sentence
    about missing groups.
    """
    named: dict[str, tuple[Any, ...]] = {}
    for parameter, given in columns.items():
        is_list = False
        if parameter in LISTS:
            given = given.tolist() if hasattr(given, "tolist") else given  # names in an array
            is_list = isinstance(given, list | tuple)
        names = tuple(given) if is_list else () if given is None else (given,)
        if parameter == "sensitive_features" and names in ((), (None,)):
            raise InputError(
                "sensitive_features is missing. Name the column of the group of each row, or a "
                f"list of several{why}.",
                parameter=parameter,
            )
        for i, name in enumerate(names):
            if not isinstance(name, kinds):
                raise InputTypeError(
                    f"{parameter} must be the name of a column of the frame; got "
                    f"{type(name).__name__}. {way_out}",
                    parameter=parameter,
                )
            if name in names[:i]:
                raise InputError(
                    f"{parameter} names {name!r} twice; name each column once.", parameter=parameter
                )
        if is_list or names:
            named[parameter] = names
    return named


def with_copies(
    lazy: nw.LazyFrame[Any], copies: Mapping[str, Any], exact: Collection[str] = ()
) -> nw.LazyFrame[Any]:
    """Add copies of groups, labels and conditions in types that every engine counts alike.

    `copies` maps free names to columns. Text compares byte by byte, and NaN becomes null. Decimals
    and whole numbers of more than 64 bits become smaller, unless the copy is to be `exact`.
    """
    schema: Mapping[Any, Any] = lazy.collect_schema()
    text, others = {}, {}
    for name, column in copies.items():
        dtype, value = schema[column], nw.col(column)
        if dtype.is_nested():
            raise InputTypeError(
                f"Column {column!r} holds values of type {dtype}, which are neither a label nor "
                "the name of a group. Name a column of numbers, text or booleans."
            )
        if dtype in TEXT_TYPES and has_collations(lazy):
            text[name] = column
            continue
        if dtype in TEXT_TYPES and not lazy.implementation.is_pandas_like():
            value = value.cast(nw.String)
        elif dtype.is_decimal() and name not in exact:
            value = value.cast(nw.Float64)
        elif dtype in (nw.Int128, nw.UInt128) and name not in exact:
            value = value.cast(nw.Int64)
        others[name] = without_nan(value) if dtype.is_float() else value
    lazy = with_binary_text(lazy, text)
    return (
        lazy
        if not others
        else lazy.with_columns(*(value.alias(name) for name, value in others.items()))
    )


def number_column(name: str, column: Any, dtype: Any) -> nw.Expr:
    """Return a column of numbers as float64, null where it is NaN or missing."""
    if not (dtype.is_numeric() or dtype == nw.Boolean):
        raise InputError(
            f"{name} must hold numbers; column {column!r} is {dtype}. Cast it to a float first."
        )
    return without_nan(nw.col(column).cast(nw.Float64))


def counts_in(table: Any) -> list[int]:
    """Return the counts in a table of one row, 0 for a missing one.

    `row` of narwhals would load pandas where the table is pyarrow's.
    """
    return [int(table[name].item() or 0) for name in table.columns]


def as_number(condition: nw.Expr) -> nw.Expr:
    """Return 1.0 where a condition holds: every engine adds floats, few engines add booleans."""
    return nw.when(condition).then(nw.lit(1.0)).otherwise(nw.lit(0.0))


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
        return duckdb.sql(f"SELECT * FROM read_parquet({literal}, {options})")
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


# ---------------------------------------------------------------------------------------------
# Spark. It searches a map literal linearly. So the known values of a column are spread over slots
# by a hash that NumPy and Spark compute alike, and a row is compared with the few values of one
# slot. The slots are two constants of the query, which Spark reads once for all rows.

VALUES_PER_SLOT = 4  # fewer values make more lists, which every task of Spark receives
LARGEST = 1e100  # larger numbers share a slot: a scaled number stays finite
SCALES = tuple(2.0**k for k in (0, 8, 16, 24, 32, 40))  # powers of two, which round nothing
N_MODULI = 4
EXACT = 2**53  # doubles hold whole numbers exactly up to here


def is_spark(frame: nw.DataFrame[Any] | nw.LazyFrame[Any]) -> bool:
    """Return whether Spark holds this frame, through Spark Connect or not."""
    return frame.implementation.is_pyspark() or frame.implementation.is_pyspark_connect()


def spark_functions(frame: nw.DataFrame[Any] | nw.LazyFrame[Any]) -> Any:
    """Return the module of Spark's functions for this frame."""
    is_remote = frame.implementation.is_pyspark_connect()
    return import_module("pyspark.sql.connect.functions" if is_remote else "pyspark.sql.functions")


@dataclass(frozen=True)
class SparkLookup:
    """The numbers that a lookup gives to the values of a column.

    - `column`: the column to read.
    - `numbers`: the number of each known value: all values are text, or all are floats.
    - `unknown`: the number of any other value.
    - `missing`: the number of NULL, and of NaN and infinity in a column of numbers.
    """

    column: str
    numbers: Mapping[Any, float]
    unknown: float
    missing: float

    @property
    def is_text(self) -> bool:
        """Return whether the known values are text."""
        return isinstance(next(iter(self.numbers)), str)


def can_be_looked_up(values: Sequence[Any]) -> bool:
    """Return whether these values are all text, or all numbers that a double holds exactly.

    Examples
    --------
    >>> can_be_looked_up(["a", "b"]), can_be_looked_up([1, 2.5]), can_be_looked_up([2**60 + 1])
    (True, True, False)
    """
    kinds = {type(value) for value in values}
    return kinds == {str} or (kinds <= {int, float} and all(abs(v) <= EXACT for v in values))


def with_looked_up(frame: Frame, lookups: Mapping[str, SparkLookup]) -> Frame:
    """Return a Spark frame with a new column of doubles for each lookup, by its name.

    Text is compared byte by byte, whatever the collation of its column.
    """
    if not lookups:
        return frame
    functions = spark_functions(frame)
    native: Any = frame.to_native()
    added = {name: _looked_up(functions, lookup) for name, lookup in lookups.items()}
    return nw.from_native(native.withColumns(added))


def _looked_up(F: Any, lookup: SparkLookup) -> Any:
    """Return the number of each row as a Spark column; `F` is the module of functions."""
    column = F.col(quoted(lookup.column, "`"))
    known = list(lookup.numbers)
    if lookup.is_text:
        value = F.collate(column, "UTF8_BINARY")
        is_missing = value.isNull()
        n_slots, slots = text_slots([str(key) for key in known])
        slot = (F.crc32(value.cast("binary")) % n_slots).cast("int")
    else:
        value = column.cast("double")
        is_missing = value.isNull() | (F.abs(value) >= float("inf"))  # NaN is above infinity
        n_slots, scale, slots = number_slots([float(key) for key in known])
        slot = (F.least(F.abs(value), F.lit(LARGEST)) * scale % float(n_slots)).cast("int")
    keys, numbers = _in_slots(n_slots, slots, known, list(lookup.numbers.values()))
    kind = "string" if lookup.is_text else "double"
    keys_of_slot = F.get(F.from_json(F.lit(keys), f"array<array<{kind}>>"), slot)
    numbers_of_slot = F.get(F.from_json(F.lit(numbers), "array<array<double>>"), slot)
    position = F.array_position(keys_of_slot, value).cast("int") - 1
    found = F.coalesce(F.get(numbers_of_slot, position), F.lit(float(lookup.unknown)))
    return F.when(is_missing, F.lit(float(lookup.missing))).otherwise(found)


def _in_slots(
    n_slots: int, slots: NDArray[np.intp], keys: Sequence[Any], numbers: Sequence[float]
) -> tuple[str, str]:
    """Return the keys and the numbers of all slots as JSON: a list for each slot."""
    keys_of_slot: list[list[Any]] = [[] for _ in range(n_slots)]
    numbers_of_slot: list[list[float]] = [[] for _ in range(n_slots)]
    for slot, key, number in zip(slots.tolist(), keys, numbers, strict=True):
        keys_of_slot[slot].append(key)
        numbers_of_slot[slot].append(float(number))
    dense = (",", ":")
    return json.dumps(keys_of_slot, separators=dense), json.dumps(numbers_of_slot, separators=dense)


def text_slots(texts: Sequence[str]) -> tuple[int, NDArray[np.intp]]:
    """Return the number of slots and the slot of each text, shape (n,).

    Examples
    --------
    >>> n_slots, slots = text_slots(["Bonn", "Köln"])
    >>> n_slots, slots.tolist()
    (1, [0, 0])
    """
    n_slots = len(texts) // VALUES_PER_SLOT + 1
    slots = [zlib.crc32(text.encode()) % n_slots for text in texts]
    return n_slots, np.array(slots, dtype=np.intp)


def number_slots(numbers: Sequence[float]) -> tuple[int, float, NDArray[np.intp]]:
    """Return the number of slots, a scale, and the slot of each number, shape (n,).

    The slot is the remainder of the scaled number. The scale and the number of slots are those
    that spread these numbers best: multiples of 1,000 and fractions of 1 need different ones.

    Examples
    --------
    >>> n_slots, scale, slots = number_slots([i / 1000 for i in range(1000)])
    >>> bool(max(np.bincount(slots)) < 10)
    True
    """
    size = np.minimum(np.abs(np.asarray(numbers, dtype=np.float64)), LARGEST)
    fewest = len(numbers) // VALUES_PER_SLOT + 1

    def slots_of(n_slots: int, scale: float) -> NDArray[np.intp]:
        return np.fmod(size * scale, float(n_slots)).astype(np.intp)

    choices = product(range(fewest, fewest + N_MODULI), SCALES)
    n_slots, scale = min(choices, key=lambda choice: np.bincount(slots_of(*choice)).max())
    return n_slots, scale, slots_of(n_slots, scale)
