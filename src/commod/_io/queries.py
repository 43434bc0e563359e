"""Run queries and other blocking calls that report progress, can be ended, and fail in a sentence.

Python runs signal handlers in the main thread, between two of its instructions. A call into
another library blocks them. So the call runs in a thread of its own, and a signal ends the wait
for it within seconds. No handler is installed here: the command line has its own.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from commod._io.optional import import_optional
from commod.exceptions import InputError

if TYPE_CHECKING:
    import duckdb

Result = TypeVar("Result")
Progress = Callable[[float], None]  # gets the share that is done, from 0 to 1

POLL = 0.05  # seconds between two checks of a running call
PATIENCE = 2.0  # seconds that an interrupted call has to end

_abandoned: list[threading.Thread] = []


def connect(spill: Path, memory_limit: str | None = None) -> duckdb.DuckDBPyConnection:
    """Return a connection to a database in memory; large results go to the folder `spill`."""
    package = import_optional("duckdb", "files", "Reading and writing files of tables")
    connection: duckdb.DuckDBPyConnection = package.connect()
    settings: dict[str, str | bool] = {
        "temp_directory": str(spill),
        "preserve_insertion_order": True,  # the output has the order of the input
        "memory_limit": memory_limit or "1GB",  # measured: 0.7 GB for 20 million rows
        "autoinstall_known_extensions": False,  # no download without the user's consent
        "autoload_known_extensions": False,
        "enable_progress_bar": True,  # needed by query_progress
        "enable_progress_bar_print": False,
    }
    for setting, value in settings.items():
        text = quoted(str(value), "'")
        try:
            connection.execute(f"SET {setting} = {text}")
        except package.Error as error:
            raise InputError(
                f"{setting.replace('_', ' ')} {value!r} cannot be used ({error_sentence(error)}). "
                "Give a size such as '2GB'."
            ) from error
    return connection


def quoted(name: str, mark: str = '"') -> str:
    """Return a name in the quotes of DuckDB, or in others; a text in those of SQL with "'"."""
    return mark + name.replace(mark, 2 * mark) + mark


def run_query(
    connection: duckdb.DuckDBPyConnection,
    work: Callable[[], Result],
    *,
    progress: Progress | None = None,
) -> Result:
    """Return the result of `work`, a query on `connection`; Ctrl-C stops the query at once.

    A query is one blocking call, in which Python sees no signal. So the query runs in its own
    thread. The calling thread waits, reports the progress, and interrupts the query. DuckDB does
    not answer every interrupt: after a few seconds the query is abandoned. DuckDB's progress of a
    query may also fall, when another part of it begins; what is reported never does.

    Raises
    ------
    duckdb.Error
        The error of the query; see `error_sentence`.
    """
    reported = 0.0

    def report() -> None:
        nonlocal reported
        reported = min(max(connection.query_progress() / 100, reported), 1.0)
        if progress is not None:
            progress(reported)

    result = run_interruptibly(work, connection.interrupt, poll=report)
    if progress is not None:
        progress(1.0)
    return result


def close_connection(connection: duckdb.DuckDBPyConnection) -> None:
    """Close a connection; do not wait long for one whose query was abandoned."""
    if not has_abandoned_work():
        connection.close()
        return

    def close() -> None:
        with suppress(Exception):  # abandoned work may still hold the connection
            connection.close()

    thread = _thread(close)
    thread.start()
    thread.join(PATIENCE)


@contextmanager
def row_order_kept(
    connection: duckdb.DuckDBPyConnection, relation: duckdb.DuckDBPyRelation
) -> Iterator[None]:
    """Let queries in the block return the rows of a relation in the order of its files.

    narwhals writes x IN ('a', 'b', ...) for replace_strict, and DuckDB turns that into a join. A
    join on several threads loses the order of the rows, whatever preserve_insertion_order says. A
    join on one thread keeps it.
    """
    n_threads = connection.execute("SELECT current_setting('threads')").fetchall()[0][0]
    # operator names of several versions of DuckDB; a column may be called join_date
    has_join = re.search(r"[A-Z]_JOIN\b|╭─ [A-Za-z ]*Join\b", str(relation.explain())) is not None
    if has_join:
        connection.execute("SET threads = 1")
    try:
        yield
    finally:
        if has_join and not has_abandoned_work():
            connection.execute(f"SET threads = {int(n_threads)}")


def error_sentence(error: Exception) -> str:
    """Return the first line of a DuckDB error, without its kind and its full stop."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    first = lines[0] if lines else type(error).__name__
    kind, separator, message = first.partition(" Error: ")
    return (message if separator and len(kind) < 25 else first)[:300].rstrip(".")


def _unreadable_table(error: Exception) -> InputError:
    return InputError(
        f"The table cannot be read ({error_sentence(error)}). Check that its files are whole, and "
        "that nobody changed them meanwhile."
    )


@contextmanager
def translated_errors(
    explain: Callable[[Exception], InputError] = _unreadable_table,
) -> Iterator[None]:
    """Turn DuckDB errors into an InputError: that of `explain`, unless memory ran out."""
    import duckdb

    try:
        yield
    except duckdb.OutOfMemoryException as error:
        raise InputError(
            "The table needs more memory than DuckDB may use. Pass fewer columns or rows; commod "
            "apply takes a larger --memory-limit."
        ) from error
    except duckdb.Error as error:
        raise explain(error) from error


# ---------------------------------------------------------------------------------------------
# Blocking calls


def run_interruptibly(
    work: Callable[[], Result],
    interrupt: Callable[[], None],
    *,
    poll: Callable[[], None] | None = None,
) -> Result:
    """Return the result of `work`, which runs in its own thread; raise its error.

    If the wait is broken off, for example by Ctrl-C, `interrupt` is called until the work ends.
    Work that has not ended after `PATIENCE` seconds is abandoned: its thread runs on, and
    `has_abandoned_work` returns True from then on. Do not use again what the work uses.

    Parameters
    ----------
    work : callable
        The blocking call.
    interrupt : callable
        Asks the work to end. It may block, too.
    poll : callable, default=None
        Called in the calling thread every `POLL` seconds.
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

    thread = _thread(call)
    try:
        thread.start()  # waits until the thread runs, so a signal can break that off, too
        while not done.wait(POLL):
            if poll is not None:
                poll()
    except BaseException:
        _stop(thread, done, interrupt)
        raise
    thread.join()
    if "error" in outcome:
        raise outcome["error"]
    return outcome["result"]


def has_abandoned_work() -> bool:
    """Return whether this process ever abandoned a call, which may still be running."""
    return bool(_abandoned)


def _stop(thread: threading.Thread, done: threading.Event, interrupt: Callable[[], None]) -> None:
    def repeat() -> None:
        while not done.is_set():
            interrupt()
            done.wait(POLL)

    _thread(repeat).start()
    if done.wait(PATIENCE):
        thread.join()
    else:
        _abandoned.append(thread)


def _thread(target: Callable[[], None]) -> threading.Thread:
    return threading.Thread(target=target, name="commod-work", daemon=True)
