"""Write tables to disk in the order of their rows, whole or not at all."""

from __future__ import annotations

import glob
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from commod._io.files import replacement_file
from commod._io.tables.queries import (
    Progress,
    error_sentence,
    memory_error,
    row_order_kept,
    run_query,
)
from commod._io.tables.table import SourceTable
from commod.exceptions import InputError

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
