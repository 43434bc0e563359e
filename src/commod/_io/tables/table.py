"""Tables on disk, opened through DuckDB: CSV and its like, and Parquet.

How the kinds of the columns of a text file are found is told in `commod._io.tables.kinds`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import TYPE_CHECKING, Any

from commod._io.files import private_folder
from commod._io.tables.delimited import KindHints, open_text
from commod._io.tables.kinds import quote_name
from commod._io.tables.parquet import kind_of_type, open_parquet
from commod._io.tables.queries import (
    Progress,
    connect,
    row_order_kept,
    run_query,
    translated_errors,
)
from commod._io.tables.sources import find_sources, make_readable
from commod.exceptions import InputError

if TYPE_CHECKING:
    import duckdb
    import pandas as pd

__all__ = ["SourceTable", "open_tables", "read_frame"]


@dataclass(frozen=True)
class SourceTable:
    """A table in files: nothing is in memory until it is asked for.

    Close it, or use it in a `with` block: copies and links it needed are then removed.
    """

    relation: duckdb.DuckDBPyRelation
    connection: duckdb.DuckDBPyConnection
    kinds: Mapping[str, str]  # text, integer, number, boolean, date, timestamp or other
    n_rows: int
    files: tuple[str, ...]
    _resources: ExitStack = field(default_factory=ExitStack, repr=False, compare=False)

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the columns of the relation."""
        return tuple(self.relation.columns)

    @property
    def display_name(self) -> str:
        """Return what a sentence calls the table."""
        first = repr(self.files[0])
        return first if len(self.files) == 1 else f"{first} and {len(self.files) - 1} more"

    def with_relation(self, relation: duckdb.DuckDBPyRelation) -> SourceTable:
        """Return the table with another relation on the same connection, such as an edited one."""
        return replace(self, relation=relation)

    def close(self) -> None:
        """Close the connection and remove what was kept for it on disk."""
        self.connection.close()
        self._resources.close()

    def __enter__(self) -> SourceTable:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def open_tables(
    paths: Sequence[str],
    *,
    types: Mapping[str, str] | None = None,
    expected: Mapping[str, str] | None = None,
    others: str | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
    memory_limit: str | None = None,
    progress: Progress | None = None,
) -> SourceTable:
    """Return the table that some local files hold, their rows one after the other.

    All rows of text files are looked at once, so that what is wrong with a file is said here and
    in one sentence, and so that no later row has a surprise. Of Parquet files only the footer is
    read; what is wrong inside shows when the rows are, through `translated_errors`.

    Parameters
    ----------
    paths : sequence of str
        CSV, TSV or TXT files, each also packed (.gz), or Parquet files; names or glob patterns.
    types : mapping from column to "text", "number", "integer" or "boolean", default=None
        Corrects the kinds found. A value that does not fit is an error that names its line.
    expected : mapping from column to kind, default=None
        The same for columns of a text file that need not be there; `types` goes before it.
    others : str, default=None
        The kind of all other columns of a text file; found from all rows unless given.
    delimiter : str, default=None
        What separates the fields of a text file: a comma, in .tsv a tab, unless given.
    encoding : str, default=None
        Of a text file: UTF-8 (with or without a byte order mark) unless given.
    memory_limit : str, default=None
        Of DuckDB, such as "2GB"; "1GB" unless given. What needs more goes to disk meanwhile.
    progress : callable, default=None
        Called now and then with the share that is done, from 0 to 1.

    Returns
    -------
    SourceTable
        Its relation has the columns of the files in their order.

    Raises
    ------
    InputError
        What came, what was expected and the way out.
    """
    sources = find_sources(paths)
    with ExitStack() as stack:
        folder = stack.enter_context(private_folder())
        connection = connect(folder / "spill", memory_limit)
        stack.callback(connection.close)
        readable = [make_readable(s, folder, i, encoding) for i, s in enumerate(sources)]
        given = {} if types is None else types
        if sources[0].is_text:
            hints = KindHints(given, expected or {}, others)
            relation, kinds, n_rows = open_text(connection, readable, hints, delimiter, progress)
        else:
            relation, kinds, n_rows = open_parquet(connection, readable, given, delimiter, progress)
        if not n_rows:
            raise InputError(
                f"{sources[0].name!r} has a header but no rows; expected at least one row of data."
            )
        files = tuple(source.name for source in sources)
        return SourceTable(relation, connection, kinds, n_rows, files, stack.pop_all())


# ---------------------------------------------------------------------------------------------
# Into memory


def read_frame(
    table: SourceTable, columns: Sequence[str] | None = None, *, progress: Progress | None = None
) -> pd.DataFrame:
    """Return the rows of a table, or some of its columns, as a pandas frame.

    Whole numbers are int64, with missing ones float64; all other numbers are float64; booleans
    are bool, with missing ones objects with None.
    """
    relation = table.relation
    dtypes = dict(zip(relation.columns, relation.types, strict=True))
    wanted = table.names if columns is None else tuple(columns)
    for name in wanted:
        if name not in dtypes:
            shown = ", ".join(list(dtypes)[:20]) + (", ..." if len(dtypes) > 20 else "")
            raise InputError(f"{table.display_name} has no column {name!r} (columns: {shown}).")
    read = relation.project(", ".join(_plain_type(name, dtypes[name]) for name in wanted))
    with translated_errors(), row_order_kept(table.connection, relation):
        frame = run_query(table.connection, read.df, progress=progress)
    for name in wanted:
        if not isinstance(frame[name].dtype, _numpy_dtype()):
            frame[name] = _plain_column(frame[name])
    return frame


def _plain_type(name: str, dtype: Any) -> str:
    column = quote_name(name)
    wide = {"integer": "BIGINT", "number": "DOUBLE", "text": "VARCHAR"}.get(kind_of_type(dtype))
    return column if wide is None else f"CAST({column} AS {wide}) AS {column}"


def _plain_column(series: pd.Series[Any]) -> pd.Series[Any]:
    """Return a column with missing values of the masked types of pandas without them."""
    import numpy as np

    if series.dtype == "boolean":
        return (
            series.astype(object).where(series.notna(), None)
            if series.hasnans
            else series.astype(bool)
        )
    if series.dtype == "Int64":
        return series.astype(np.float64) if series.hasnans else series.astype(np.int64)
    return series


def _numpy_dtype() -> type:
    import numpy as np

    return np.dtype
