"""Compare text byte by byte in frames whose engine may ignore case, accents or blanks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import narwhals as nw

from commod._data.spark_lookup import is_spark, spark_functions

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


def quoted(name: str, mark: str = '"') -> str:
    """Return a name in the quotes of DuckDB, or in others."""
    return mark + name.replace(mark, 2 * mark) + mark
