"""Read and write tables on disk through DuckDB or Spark. A bad file is refused in one sentence.

`commod._io.delimited` opens delimited text, and this file opens Parquet.
"""

from __future__ import annotations

import glob
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from commod._io.delimited import (
    cast_expression,
    check_corrections,
    find_kinds,
    misfit_condition,
    open_text,
)
from commod._io.files import private_folder, replacement_file
from commod._io.queries import (
    Progress,
    close_connection,
    connect,
    error_sentence,
    quoted,
    row_order_kept,
    run_query,
    translated_errors,
)
from commod._io.sources import (
    SourceFile,
    check_names,
    check_same_columns,
    find_sources,
    hive_root,
    kind_of_type,
    make_readable,
)
from commod._text import did_you_mean, list_names
from commod.exceptions import InputError

if TYPE_CHECKING:
    import duckdb
    import pandas as pd


_WIDE = {"integer": "bigint", "number": "double", "text": "string"}  # types in memory, by kind


@dataclass(frozen=True)
class StoredTable:
    """A table in files, and an engine that reads them. No row is in memory until a query runs.

    `relation` are the rows, and `kinds` says of each column text, integer, number, boolean, date,
    timestamp or other. `connection` is that of DuckDB, None in Spark. Close the table, or use it in
    a `with` block: this calls `_close`, which removes temporary copies, or stops Spark.
    """

    relation: Any
    kinds: Mapping[str, str]
    n_rows: int
    files: tuple[str, ...]
    _close: Callable[[], None] = field(repr=False, compare=False)
    connection: Any = field(default=None, repr=False)

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the columns of the relation."""
        return tuple(self.relation.columns)

    @property
    def display_name(self) -> str:
        """Return the name of the table in messages."""
        first = repr(self.files[0])
        return first if len(self.files) == 1 else f"{first} and {len(self.files) - 1} more"

    def with_relation(self, relation: Any) -> Self:
        """Return the table with another relation of the same engine, such as edited rows."""
        return replace(self, relation=relation)

    def close(self) -> None:
        """Release what was opened for this table: temporary files, a connection, a session."""
        self._close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def plain_rows(self, columns: Sequence[str]) -> Any:
        """Return some columns in the types that they have in memory.

        Integers have 64 bits, all other numbers are doubles, and text has no categories.
        """
        if self.connection is not None:
            dtypes = dict(zip(self.relation.columns, self.relation.types, strict=True))
            return self.relation.project(", ".join(_plain(name, dtypes[name]) for name in columns))
        chosen = []
        for name in columns:
            column = self.relation[quoted(name, "`")]
            kind = _WIDE.get(self.kinds[name])
            chosen.append(column if kind is None else column.cast(kind).alias(name))
        return self.relation.select(*chosen)


def _plain(name: str, dtype: Any) -> str:
    """Return a column of DuckDB as SQL in the type that it has in memory."""
    column = quoted(name)
    wide = _WIDE.get(_kind_of_column(dtype))
    return column if wide is None else f"CAST({column} AS {wide}) AS {column}"


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
) -> StoredTable:
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
    StoredTable
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
            relation, kinds, n_rows = open_text(
                connection,
                readable,
                given=given,
                expected=expected or {},
                others=others,
                delimiter=delimiter,
                progress=progress,
            )
        else:
            if delimiter is not None:
                raise InputError(
                    "A delimiter was given, but Parquet files have none. Leave it out."
                )
            has_folders = hive_root(paths, sources) is not None
            relation, kinds, n_rows = _open_parquet(
                connection, readable, given, progress, columns_in_folders=has_folders
            )
        if not n_rows:
            raise InputError(
                f"{sources[0].name!r} has a header but no rows; expected at least one row of data."
            )
        files = tuple(source.name for source in sources)
        return StoredTable(relation, kinds, n_rows, files, stack.pop_all().close, connection)


# ---------------------------------------------------------------------------------------------
# Parquet


def _open_parquet(
    connection: duckdb.DuckDBPyConnection,
    sources: Sequence[SourceFile],
    types: Mapping[str, str],
    progress: Progress | None,
    *,
    columns_in_folders: bool,
) -> tuple[duckdb.DuckDBPyRelation, dict[str, str], int]:
    """Return the rows of Parquet files, the kinds of their columns, and the number of rows.

    If `columns_in_folders`, names of folders such as "year=2025" hold values of further columns,
    which are text.
    """
    kinds_by_file = {source.name: _read_kinds(connection, source) for source in sources}
    check_same_columns({file: list(kinds) for file, kinds in kinds_by_file.items()})
    _check_same_kinds(kinds_by_file)
    relation = _read_files(connection, sources, columns_in_folders)
    names = list(relation.columns)
    check_corrections(types, names, repr(sources[0].name))
    kinds = dict(zip(names, map(_kind_of_column, relation.types), strict=True))
    with translated_errors():
        if types:
            relation, n_rows = _correct_kinds(connection, relation, types, progress)
        else:
            n_rows = run_query(connection, relation.aggregate("count(*)").fetchall)[0][0]
    return relation, {**kinds, **types}, n_rows


def _read_files(
    connection: duckdb.DuckDBPyConnection, sources: Sequence[SourceFile], columns_in_folders: bool
) -> duckdb.DuckDBPyRelation:
    import duckdb

    paths = [str(source.path) for source in sources]
    with translated_errors():  # some versions of DuckDB read rows here
        try:
            return connection.sql(
                "SELECT * FROM read_parquet($1, union_by_name = true, hive_partitioning = $2, "
                "hive_types_autocast = false)",
                params=[paths, columns_in_folders],
            )
        except duckdb.BinderException as error:
            raise InputError(
                f"The folders of {sources[0].name!r} and of {len(sources) - 1} more files do not "
                f"name the same columns ({error_sentence(error)}). Name the files themselves."
            ) from error


def _read_kinds(connection: duckdb.DuckDBPyConnection, source: SourceFile) -> dict[str, str]:
    """Return the kind of each column of a file."""
    import duckdb

    try:
        relation = connection.read_parquet(str(source.path), hive_partitioning=False)
        schema = connection.execute(
            "SELECT name, num_children FROM parquet_schema($1)", [str(source.path)]
        ).fetchall()
    except duckdb.Error as error:
        reason = error_sentence(error).replace(str(source.path), source.path.name)
        raise InputError(
            f"{source.name!r} is not a whole Parquet file ({reason}). Copy it again, or "
            "give it the ending of what it is."
        ) from error
    names = list(_top_level(schema))
    check_names(names, source.name)
    return dict(zip(names, map(_kind_of_column, relation.types), strict=True))


def _top_level(schema: Sequence[tuple[str, int | None]]) -> Iterator[str]:
    """Yield the columns that are not nested in others; the schema lists them depth first."""
    elements = iter(schema[1:])
    for name, n_children in elements:
        yield name
        n_nested = n_children or 0
        while n_nested:
            n_nested += (next(elements)[1] or 0) - 1


def _check_same_kinds(kinds_by_file: Mapping[str, Mapping[str, str]]) -> None:
    (first, first_kinds), *others = kinds_by_file.items()
    for other, kinds in others:
        for name, kind in first_kinds.items():
            if kind != kinds[name] and {kind, kinds[name]} != {"integer", "number"}:
                raise InputError(
                    f"Column {name!r} is {kind} in {first!r} but {kinds[name]} in {other!r}. "
                    "Write the files with the same types."
                )


def _correct_kinds(
    connection: duckdb.DuckDBPyConnection,
    relation: duckdb.DuckDBPyRelation,
    types: Mapping[str, str],
    progress: Progress | None,
) -> tuple[duckdb.DuckDBPyRelation, int]:
    """Return the relation with columns of the given kinds, and the number of its rows."""
    names = relation.columns
    as_text = {name: f"CAST({quoted(name)} AS VARCHAR) AS {quoted(name)}" for name in types}
    texts = relation.project(", ".join(as_text.get(name, quoted(name)) for name in names))
    corrected = texts.project(", ".join(map(quoted, types)))
    kinds, n_rows = find_kinds(connection, corrected, types, progress)
    for name, kind in types.items():
        if not kinds[name]:
            numbered = texts.project(f"{quoted(name)} AS value, row_number() OVER () AS line")
            wrong = numbered.filter(misfit_condition("value", kind, is_corrected=True)).limit(1)
            value, row = run_query(connection, wrong.fetchall)[0]
            raise InputError(
                f"Column {name!r} holds {value[:60]!r} in row {row}, but it was given the type "
                f"{kind}. Correct the value, or give the column the type text."
            )
    casts = {name: cast_expression(name, kind) for name, kind in types.items()}
    return texts.project(", ".join(casts.get(name, quoted(name)) for name in names)), n_rows


def _kind_of_column(dtype: Any) -> str:
    return kind_of_type(str(dtype.id))


# ---------------------------------------------------------------------------------------------
# Parquet files in Spark; the rows stay there

_LOCAL = "local[*]"  # all cores of this machine
_SPARK_SETTINGS = {
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",  # "01" stays text
}


def open_spark(paths: Sequence[str], master: str | None = None) -> StoredTable:
    """Return the table in Parquet files, read by Spark.

    Parameters
    ----------
    paths : sequence of str
        Files, folders or patterns on this machine, or addresses that Spark reads
        (hdfs://, s3a://).
    master : str, default=None
        Address of Spark: "local[2]", "spark://host:7077", "yarn", or "sc://host" (Spark Connect).
        None means all cores of this machine.

    Raises
    ------
    InputError
        The files cannot be used. The message says why, and how to correct it.
    """
    files = [name for path in paths for name in _spark_paths(os.fspath(path))]
    session, stop = _session(master or _LOCAL)
    try:
        with _translated_spark_errors():
            frame = session.read.parquet(*files)
            n_rows = int(frame.count())
        check_names(list(frame.columns), files[0])
        if not n_rows:
            raise InputError(f"{files[0]!r} has no rows; expected at least one row of data.")
    except BaseException:
        stop()
        raise
    kinds = {name: kind_of_type(dtype) for name, dtype in frame.dtypes}
    return StoredTable(frame, kinds, n_rows, tuple(files), stop)


def _spark_paths(path: str) -> list[str]:
    if "://" in path:
        return [path]
    sources = find_sources([path])
    if sources[0].is_text:
        raise InputError(
            f"--engine spark reads Parquet files, and {sources[0].name!r} is text. Pass --engine "
            "duckdb, which finds the types of text from all rows, or write the table as Parquet."
        )
    if hive_root([path], sources) is not None:  # Spark finds columns in the names of folders
        return [os.path.abspath(path)]
    return [str(source.path) for source in sources]


def _session(master: str) -> tuple[Any, Callable[[], None]]:
    """Return a session of Spark, and what stops it; a running session is used and stays."""
    try:
        sql = import_module("pyspark.sql")
    except ImportError as error:
        raise InputError(
            "--engine spark needs the package pyspark, which is not installed. Install it in the "
            "version of your cluster: pip install pyspark."
        ) from error
    running = sql.SparkSession.getActiveSession()
    if running is not None:
        return running, lambda: None
    builder = sql.SparkSession.builder.appName("commod")
    address = builder.remote if master.startswith("sc://") else builder.master
    try:
        session = address(master).config(map=_SPARK_SETTINGS).getOrCreate()
    except Exception as error:  # of Java, of the network, or of the address
        reason = " ".join(str(error).split())[:200]
        raise InputError(
            f"Spark does not start at {master} ({reason}). Check the address, and "
            "that Java is installed; or pass --engine duckdb."
        ) from error
    if hasattr(session, "_jsc"):  # the driver is this process: its log would fill the screen
        session.sparkContext.setLogLevel("ERROR")
    return session, session.stop


@contextmanager
def _translated_spark_errors() -> Iterator[None]:
    from pyspark.errors import PySparkException

    try:
        yield
    except PySparkException as error:
        first = str(error).strip().partition("\n")[0][:300].rstrip(".")
        raise InputError(
            f"Spark cannot read the table ({first}). Check that the files are whole, and that "
            "every executor can read them."
        ) from error


# ---------------------------------------------------------------------------------------------
# Into memory


def read_frame(
    table: StoredTable, columns: Sequence[str] | None = None, *, progress: Progress | None = None
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
    table: StoredTable,
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
    table : StoredTable
        An opened table, or `table.with_relation(edited)`.
    path : str or path
        Ends in .csv, .tsv, .csv.gz, .tsv.gz, .parquet or .pq.
    force : bool
        Whether to replace a file that exists.
    progress : callable, default=None
        Called repeatedly with the share that is done, from 0 to 1.
    """
    target = check_output(path, force, inputs=table.files, suffixes=TABLE_SUFFIXES)
    suffix = max((s for s in _OPTIONS if target.name.lower().endswith(s)), key=len)

    def explain(error: Exception) -> InputError:
        return _write_error(str(path), error)

    try:
        with translated_errors(explain), replacement_file(target) as temporary:
            _copy(table, temporary, _OPTIONS[suffix], progress)
    except OSError as error:
        raise explain(error) from error
    return target


def _copy(table: StoredTable, path: Path, options: str, progress: Progress | None) -> None:
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
