"""Run one DuckDB query so that it can be watched and interrupted, with errors in plain words."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from commod._io.optional import import_optional
from commod.exceptions import InputError

if TYPE_CHECKING:
    import duckdb

__all__ = [
    "Progress",
    "connect",
    "error_sentence",
    "memory_error",
    "row_order_kept",
    "run_query",
    "translated_errors",
]

Result = TypeVar("Result")
Progress = Callable[[float], None]  # gets the share that is done, from 0 to 1

_POLL = 0.05  # seconds between two looks at a running query


def connect(spill: Path, memory_limit: str | None = None) -> duckdb.DuckDBPyConnection:
    """Return a connection to a database in memory that spills to the folder `spill` only."""
    connection: duckdb.DuckDBPyConnection = import_optional(
        "duckdb", "files", "Reading and writing files of tables"
    ).connect()
    settings: dict[str, str | bool] = {
        "temp_directory": str(spill),
        "preserve_insertion_order": True,  # the rows of the output stand in the input's order
        "memory_limit": memory_limit or "1GB",  # measured: 20 million rows pass in 0.7 GB
        "autoinstall_known_extensions": False,  # nothing is fetched behind the user's back
        "autoload_known_extensions": False,
        "enable_progress_bar": True,  # without it a query does not say how far it is
        "enable_progress_bar_print": False,
    }
    for setting, value in settings.items():
        _set(connection, setting, value)
    return connection


def _set(connection: duckdb.DuckDBPyConnection, setting: str, value: str | bool) -> None:
    import duckdb

    text = "'" + str(value).replace("'", "''") + "'"
    try:
        connection.execute(f"SET {setting} = {text}")
    except duckdb.Error as error:
        raise InputError(
            f"{setting.replace('_', ' ')} {value!r} cannot be used ({error_sentence(error)}). Give "
            "a size such as '2GB'."
        ) from error


def run_query(
    connection: duckdb.DuckDBPyConnection,
    work: Callable[[], Result],
    *,
    progress: Progress | None = None,
) -> Result:
    """Return what `work`, a query on `connection`, returns; Ctrl-C stops it at once.

    A query is one blocking call, in which Python sees no signal: it runs in a thread of its own,
    while this one waits, reports the progress and interrupts it when asked to stop.

    Raises
    ------
    duckdb.Error
        As the query raised it; see `error_sentence`.
    """
    outcome: dict[str, Any] = {}
    done = threading.Event()

    def call() -> None:
        try:
            outcome["result"] = work()
        except BaseException as error:
            outcome["error"] = error
        finally:
            done.set()

    thread = threading.Thread(target=call, name="commod-query", daemon=True)
    thread.start()
    try:
        while not done.wait(_POLL):
            if progress is not None:
                progress(min(max(connection.query_progress() / 100, 0.0), 1.0))
    finally:  # the query is over before anything that it uses is taken away
        while not done.wait(_POLL):
            connection.interrupt()
        thread.join()
    if "error" in outcome:
        raise outcome["error"]
    if progress is not None:
        progress(1.0)
    return outcome["result"]


@contextmanager
def row_order_kept(
    connection: duckdb.DuckDBPyConnection, relation: duckdb.DuckDBPyRelation
) -> Iterator[None]:
    """Let what is read from a relation in the block come in the order of the rows of its files.

    DuckDB turns a list of values (x IN ('a', 'b', ...), which narwhals writes for replace_strict)
    into a join, and a join on several threads gives the rows in any order, whatever
    preserve_insertion_order says. On one thread it keeps them.
    """
    n_threads = connection.execute("SELECT current_setting('threads')").fetchall()[0][0]
    # the name of an operator, as versions of DuckDB write it; a column may be called join_date
    has_join = re.search(r"[A-Z]_JOIN\b|╭─ [A-Za-z ]*Join\b", str(relation.explain())) is not None
    if has_join:
        connection.execute("SET threads = 1")
    try:
        yield
    finally:
        if has_join:
            connection.execute(f"SET threads = {int(n_threads)}")


def error_sentence(error: Exception) -> str:
    """Return the first line of an error of DuckDB, without its kind and its full stop."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    first = lines[0] if lines else type(error).__name__
    head, colon, rest = first.partition(" Error: ")
    return (rest if colon and len(head) < 25 else first)[:300].rstrip(".")


@contextmanager
def translated_errors() -> Iterator[None]:
    """Turn an error of DuckDB into one sentence; for queries on a table that was opened."""
    import duckdb

    try:
        yield
    except duckdb.OutOfMemoryException as error:
        raise memory_error() from error
    except duckdb.Error as error:
        raise InputError(
            f"The table cannot be read ({error_sentence(error)}). Check that its files are whole, "
            "and that nobody changed them meanwhile."
        ) from error


def memory_error() -> InputError:
    """Return the error for a query that needs more memory than it may use."""
    return InputError(
        "The table needs more memory than DuckDB may use. Pass fewer columns or rows; commod apply "
        "takes a larger --memory-limit."
    )
