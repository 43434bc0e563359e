"""Open tables on disk through DuckDB: delimited text and Parquet.

`commod._io.tables.kinds` explains how the kinds of the columns of a text file are found.
"""

from __future__ import annotations

import glob
import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from commod._io.files import private_folder, replacement_file
from commod._io.tables.delimited import KindHints, open_text
from commod._io.tables.kinds import quote_name
from commod._io.tables.parquet import kind_of_type, open_parquet
from commod._io.tables.queries import (
    Progress,
    close_connection,
    connect,
    error_sentence,
    memory_error,
    row_order_kept,
    run_query,
    translated_errors,
)
from commod._io.tables.sources import find_sources, hive_root, make_readable
from commod._text import did_you_mean, list_names
from commod.exceptions import InputError

if TYPE_CHECKING:
    import duckdb
    import pandas as pd


@dataclass(frozen=True)
class SourceTable:
    """A table in files. No row is in memory until a query reads it.

    Close the table, or use it in a `with` block: this removes its temporary copies and links.
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
        """Return the name of the table in messages."""
        first = repr(self.files[0])
        return first if len(self.files) == 1 else f"{first} and {len(self.files) - 1} more"

    def with_relation(self, relation: duckdb.DuckDBPyRelation) -> SourceTable:
        """Return the table with another relation on the same connection, such as edited rows."""
        return replace(self, relation=relation)

    def plain_rows(self, columns: Sequence[str]) -> duckdb.DuckDBPyRelation:
        """Return some columns in the types that they have in memory.

        Integers are BIGINT, all other numbers DOUBLE, and text is VARCHAR.
        """
        dtypes = dict(zip(self.relation.columns, self.relation.types, strict=True))
        return self.relation.project(", ".join(_plain_type(name, dtypes[name]) for name in columns))

    def close(self) -> None:
        """Close the connection and remove its temporary files."""
        close_connection(self.connection)
        self._resources.close()

    def __enter__(self) -> SourceTable:
        return self

    def __exit__(self, *exception: object) -> None:
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
    """Return the table in local files; its rows are those of the files, one after the other.

    Every row of a text file is checked here, so no error follows later. Of a Parquet file only the
    footer is read; `translated_errors` reports damage inside when the rows are read.

    Parameters
    ----------
    paths : sequence of str
        CSV, TSV or TXT files, each also with .gz, or Parquet files; names, glob patterns, or
        folders of Parquet files.
    types : mapping from column to "text", "number", "integer" or "boolean", default=None
        Corrects the kinds found. A value of another kind is an error that names its line.
    expected : mapping from column to kind, default=None
        The same for columns that a text file may lack. `types` overrides it.
    others : str, default=None
        Kind of all other columns of a text file. By default it is found from all rows.
    delimiter : str, default=None
        Character between the fields of a text file. By default a comma, in .tsv a tab.
    encoding : str, default=None
        Encoding of a text file. By default UTF-8, with or without a byte order mark.
    memory_limit : str, default=None
        Memory of DuckDB, such as "2GB"; by default "1GB". DuckDB spills the rest to disk.
    progress : callable, default=None
        Called repeatedly with the share that is done, from 0 to 1.

    Returns
    -------
    SourceTable
        Its relation has the columns of the files in their order.

    Raises
    ------
    InputError
        The files cannot be used. The message says why, and how to correct it.
    """
    sources = find_sources(paths)
    with ExitStack() as stack:
        folder = stack.enter_context(private_folder())
        connection = connect(folder / "spill", memory_limit)
        stack.callback(close_connection, connection)
        readable = [make_readable(s, folder, i, encoding) for i, s in enumerate(sources)]
        given = {} if types is None else types
        if sources[0].is_text:
            hints = KindHints(given, expected or {}, others)
            relation, kinds, n_rows = open_text(connection, readable, hints, delimiter, progress)
        else:
            if delimiter is not None:
                raise InputError(
                    "A delimiter was given, but Parquet files have none. Leave it out."
                )
            has_folders = hive_root(paths, sources) is not None
            relation, kinds, n_rows = open_parquet(
                connection, readable, given, progress, columns_in_folders=has_folders
            )
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

    Integers are int64, or float64 if one is missing. All other numbers are float64. Booleans are
    bool, or objects with None if one is missing.
    """
    relation = table.relation
    wanted = table.names if columns is None else tuple(columns)
    for name in wanted:
        if name not in table.names:
            shown = list_names(table.names)
            raise InputError(
                f"{table.display_name} has no column {name!r} (columns: {shown})."
                f"{did_you_mean(name, table.names)}"
            )
    read = table.plain_rows(wanted)
    with translated_errors(), row_order_kept(table.connection, relation):
        frame = run_query(table.connection, read.df, progress=progress)
    for name in wanted:
        if str(frame[name].dtype) in ("boolean", "Int64"):
            frame[name] = _unmasked(frame[name])
    return frame


def _plain_type(name: str, dtype: Any) -> str:
    column = quote_name(name)
    wide = {"integer": "BIGINT", "number": "DOUBLE", "text": "VARCHAR"}.get(kind_of_type(dtype))
    return column if wide is None else f"CAST({column} AS {wide}) AS {column}"


def _unmasked(series: pd.Series[Any]) -> pd.Series[Any]:
    """Return a column of a masked pandas type as a plain NumPy type."""
    if series.dtype == "Int64":
        return series.astype("float64" if series.hasnans else "int64")
    if series.hasnans:
        return series.astype(object).where(series.notna(), None)
    return series.astype(bool)


# ---------------------------------------------------------------------------------------------
# Write tables to disk in the order of their rows, whole or not at all

_OPTIONS = {
    # small row groups, because some wait in memory for the group before them
    ".parquet": "FORMAT parquet, COMPRESSION snappy, ROW_GROUP_SIZE 122880",
    ".pq": "FORMAT parquet, COMPRESSION snappy, ROW_GROUP_SIZE 122880",
    ".csv": "FORMAT csv, HEADER, COMPRESSION none",
    ".csv.gz": "FORMAT csv, HEADER, COMPRESSION gzip",
    ".tsv": "FORMAT csv, HEADER, DELIMITER '\t', COMPRESSION none",
    ".tsv.gz": "FORMAT csv, HEADER, DELIMITER '\t', COMPRESSION gzip",
}
TABLE_SUFFIXES = tuple(_OPTIONS)


def check_output(
    path: str | os.PathLike[str],
    force: bool,
    *,
    inputs: Iterable[str | os.PathLike[str]] = (),
    suffixes: Sequence[str] | None = None,
) -> Path:
    """Return the path if a file can be written there; call this before any work.

    Parameters
    ----------
    path : str or path
    force : bool
        Whether to replace a file that exists.
    inputs : iterable of paths, default=()
        The files being read. They are never replaced.
    suffixes : sequence of str, default=None
        The allowed endings, such as `TABLE_SUFFIXES`; None allows any.
    """
    target = Path(path)
    shown = repr(str(path))
    if target.is_dir():
        raise InputError(f"{shown} is a folder; name a file in it.")
    if suffixes is not None and not target.name.lower().endswith(tuple(suffixes)):
        raise InputError(
            f"{shown} does not say in which format to write. Use one of the endings "
            f"{', '.join(suffixes)}."
        )
    folder = Path(os.path.realpath(target)).parent  # works for a link that points to itself, too
    if not folder.is_dir():
        raise InputError(f"There is no folder {str(folder)!r} to write {target.name!r} in.")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InputError(
            f"The folder {str(folder)!r} may not be written to. Write {target.name!r} elsewhere."
        )
    if target.exists():
        _check_replaceable(target, shown, force, inputs)
    return target


def _check_replaceable(
    target: Path, shown: str, force: bool, inputs: Iterable[str | os.PathLike[str]]
) -> None:
    if not stat.S_ISREG(target.stat().st_mode):
        raise InputError(f"{shown} is a pipe, socket or device. Name a file to write to.")
    for path in _expand_patterns(inputs):
        if os.path.samefile(path, target):
            raise InputError(
                f"{shown} is one of the files being read, so it is not replaced. Write to another "
                "file."
            )
    if not force:
        raise InputError(f"{shown} is already there. Pass --force to replace it.")


def _expand_patterns(paths: Iterable[str | os.PathLike[str]]) -> Iterator[str]:
    """Yield the files that names and patterns match."""
    for path in (os.fspath(p) for p in paths):
        yield from [path] if os.path.exists(path) else glob.glob(os.path.expanduser(path))


def check_outputs(
    outputs: Iterable[tuple[str | os.PathLike[str] | None, Sequence[str]]],
    force: bool,
    *,
    inputs: Iterable[str | os.PathLike[str] | None] = (),
) -> None:
    """Refuse outputs that cannot be written, and two outputs in one file.

    Each output comes with its allowed endings. None among the outputs or inputs is left out.
    """
    inputs_read = [path for path in inputs if path is not None]
    seen: set[str] = set()
    for path, suffixes in outputs:
        if path is None:
            continue
        check_output(path, force, inputs=inputs_read, suffixes=suffixes)
        place = os.path.realpath(path)
        if place in seen:
            raise InputError(
                f"{str(path)!r} is named for two outputs, so one would replace the other. Name two "
                "files."
            )
        seen.add(place)


def write_table(
    table: SourceTable,
    path: str | os.PathLike[str],
    *,
    force: bool,
    progress: Progress | None = None,
) -> Path:
    """Write a table to CSV or Parquet, as the ending of `path` says; return the path.

    The rows keep their order; memory is bounded. The file is written under a temporary name and
    moved when it is whole, so a run that fails or is interrupted changes nothing. Values are kept,
    their spelling is not: 1.50 becomes 1.5.

    Parameters
    ----------
    table : SourceTable
        An opened table, or `table.with_relation(edited)`.
    path : str or path
        Ends in .csv, .tsv, .csv.gz, .tsv.gz, .parquet or .pq.
    force : bool
        Whether to replace a file that exists.
    progress : callable, default=None
        Called repeatedly with the share that is done, from 0 to 1.
    """
    import duckdb

    target = check_output(path, force, inputs=table.files, suffixes=TABLE_SUFFIXES)
    suffix = max((s for s in _OPTIONS if target.name.lower().endswith(s)), key=len)
    try:
        with replacement_file(target) as temporary:
            _copy(table, temporary, _OPTIONS[suffix], progress)
    except duckdb.OutOfMemoryException as error:
        raise memory_error() from error
    except (duckdb.Error, OSError) as error:
        raise _write_error(str(path), error) from error
    return target


def _copy(table: SourceTable, path: Path, options: str, progress: Progress | None) -> None:
    def copy() -> None:
        rows = table.relation  # noqa: F841  (DuckDB finds it by this name)
        table.connection.execute(
            f"COPY (FROM rows) TO $1 ({options}, USE_TMP_FILE false)", [str(path)]
        )

    with row_order_kept(table.connection, table.relation):
        run_query(table.connection, copy, progress=progress)


def _write_error(path: str, error: Exception) -> InputError:
    reason = error_sentence(error)
    if "No space left" in str(error):
        return InputError(
            f"The disk is full: {path!r} could not be written, and nothing was changed there. Make "
            "room, or write to another disk."
        )
    return InputError(
        f"{path!r} could not be written ({reason}), and nothing was changed there. Check the disk, "
        "or write elsewhere."
    )
