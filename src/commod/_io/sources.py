"""Find the files that a user names, check them and their columns, and make them readable."""

from __future__ import annotations

import codecs
import glob
import gzip
import io
import os
import re
import stat
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import IO

from commod.exceptions import InputError

TEXT_SUFFIXES = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz")
PARQUET_SUFFIXES = (".parquet", ".pq")
_CHUNK = 1 << 20
_BROKEN_GZIP = (gzip.BadGzipFile, EOFError, zlib.error)


@dataclass(frozen=True)
class SourceFile:
    """One file: `name` is what the user wrote, `path` is what DuckDB reads."""

    name: str
    path: Path
    suffix: str

    @property
    def is_text(self) -> bool:
        """Return whether the file holds delimited text, not Parquet."""
        return self.suffix in TEXT_SUFFIXES

    def open(self) -> IO[bytes] | gzip.GzipFile:
        """Open the bytes of the file; a .gz file is unpacked."""
        if self.suffix.endswith(".gz"):
            return gzip.open(self.path, "rb")
        return open(self.path, "rb")

    def damaged(self) -> InputError:
        """Return the error for a packed file that cannot be unpacked."""
        return InputError(
            f"{self.name!r} ends in .gz, but it is not a whole gzip file: it is cut off, damaged, "
            "or plain text. Copy it again, or remove .gz from its name if it is plain text."
        )


def find_sources(paths: Sequence[str]) -> list[SourceFile]:
    """Return the files that `paths` (names and glob patterns) name, after checks.

    A path that exists is taken literally, whatever characters it has. The files of a pattern come
    in sorted order. A folder stands for all Parquet files in it and below it.
    """
    if isinstance(paths, str):
        paths = [paths]
    names = [name for path in paths for name in _expand_path(os.fspath(path))]
    if not names:
        raise InputError("No table was named. Name at least one CSV or Parquet file.")
    sources = [_check_source(name) for name in names]
    _check_compatible(sources)
    return sources


def _expand_path(path: str) -> list[str]:
    if not os.path.lexists(path):
        path = os.path.expanduser(path)  # the shell leaves a quoted "~/data/*.csv" as it is
    if os.path.isdir(path):
        return _parquet_files(path) or [path]
    if os.path.lexists(path):
        return [path]
    if "://" in path:
        raise InputError(f"{path!r} is not a local file. Fetch it first, and name the local copy.")
    if not glob.has_magic(path):
        raise InputError(f"There is no file {path!r}. Check the name and the folder you are in.")
    matches = sorted(glob.glob(path, recursive=True))
    if not matches:
        raise InputError(f"No file matches {path!r}. Check the pattern and the folder you are in.")
    return matches


def _parquet_files(folder: str) -> list[str]:
    """Return the Parquet files below a folder, sorted; nothing where it has text files, too.

    Names with _ or . in front are no data.
    """
    if _has_text(folder):
        return []
    found = (
        os.path.join(root, name)
        for root, _, names in os.walk(folder)
        for name in names
        if name.lower().endswith(PARQUET_SUFFIXES)
    )
    return sorted(
        path
        for path in found
        if not any(part[0] in "._" for part in Path(os.path.relpath(path, folder)).parts)
    )


def hive_root(paths: Sequence[str], sources: Sequence[SourceFile]) -> str | None:
    """Return the folder whose subfolders are called column=value; None where there is none.

    Such names hold the values of a column, which the files themselves do not have.
    """
    if len(paths) != 1 or not os.path.isdir(os.path.expanduser(paths[0])):
        return None
    root = os.path.abspath(os.path.expanduser(paths[0]))
    folders = [Path(os.path.relpath(source.path, root)).parts[:-1] for source in sources]
    is_hive = any("=" in part for parts in folders for part in parts)
    return root if is_hive else None


def _check_source(name: str) -> SourceFile:
    if os.path.isdir(name):
        pattern = os.path.join(name, "*.csv" if _has_text(name) else "*.parquet")
        raise InputError(f"{name!r} is a folder; name its files, such as {pattern!r}.")
    check_file(name, "a table with a header and rows")
    return SourceFile(name, Path(os.path.abspath(name)), _suffix(name))


def _has_text(folder: str) -> bool:
    return any(glob.glob(os.path.join(glob.escape(folder), f"*{s}")) for s in TEXT_SUFFIXES)


def check_file(name: str, content: str) -> None:
    """Refuse a path that is no readable file; `content` says what the file should hold."""
    try:
        status = os.stat(name)
        is_file = stat.S_ISREG(status.st_mode)
        if is_file:
            open(name, "rb").close()
    except OSError as error:
        reason = "it points to a file that is gone" if os.path.islink(name) else error.strerror
        raise InputError(
            f"{name!r} cannot be opened: {reason}. Check the name, the folder you are in, and "
            "your permission to read it."
        ) from error
    if os.path.isdir(name):
        raise InputError(f"{name!r} is a folder; name a file in it.")
    if not is_file:
        raise InputError(
            f"{name!r} is a pipe, socket or device, but expected was {content}, which is read "
            "more than once. Write it to a file first, and name that."
        )
    if not status.st_size:
        raise InputError(f"{name!r} is empty (0 bytes); expected {content}.")


def _suffix(name: str) -> str:
    lower = name.lower()
    for suffix in (*reversed(TEXT_SUFFIXES), *PARQUET_SUFFIXES):
        if lower.endswith(suffix):
            return suffix
    raise InputError(
        f"{name!r} has an unknown ending. Expected .csv, .tsv or .txt (each also with .gz), or "
        ".parquet; rename the file to what it holds."
    )


def _check_compatible(sources: Sequence[SourceFile]) -> None:
    first = sources[0]
    seen: dict[tuple[int, int], str] = {}
    for source in sources:
        if source.is_text != first.is_text:
            raise InputError(
                f"{first.name!r} and {source.name!r} are of different formats. Read text files or "
                "Parquet files, not both at once."
            )
        status = os.stat(source.path)
        identity = (status.st_dev, status.st_ino)
        earlier = seen.get(identity)
        seen[identity] = source.name
        if earlier is not None:
            raise InputError(
                f"{source.name!r} is named twice (first as {earlier!r}), so that its rows would "
                "count twice. Name every file once."
            )


# ---------------------------------------------------------------------------------------------
# Files that DuckDB cannot read directly


def make_readable(
    source: SourceFile, folder: Path, number: int, encoding: str | None
) -> SourceFile:
    """Return the file in UTF-8 under a name that DuckDB takes literally.

    Where this needs a copy or a link, it lies in the private `folder`, and `number` is its name.
    """
    codec = _find_codec(encoding)
    if source.is_text and codec != "utf-8":
        return _copy_as_utf8(source, folder / f"{number}.csv", codec)
    if _is_plain(str(source.path), source.suffix):
        return source
    link = folder / f"{number}{source.suffix}"
    link.symlink_to(source.path)
    return replace(source, path=link)


def _is_plain(path: str, suffix: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:  # the file name is not UTF-8
        return False
    return path.endswith(suffix) and not any(character in path for character in "*?[]{}\\")


def _find_codec(encoding: str | None) -> str:
    try:
        name = codecs.lookup(encoding or "utf-8").name
    except LookupError as error:
        raise InputError(
            f"The encoding {encoding!r} is unknown. Use a name that Python knows, such as utf-8, "
            "latin-1, cp1252 or utf-16."
        ) from error
    return "utf-8" if name == "utf-8-sig" else name


def _copy_as_utf8(source: SourceFile, path: Path, encoding: str) -> SourceFile:
    """Copy a text file of another encoding as UTF-8, in chunks; return the copy."""
    try:
        with (
            source.open() as raw,
            io.TextIOWrapper(raw, encoding=encoding, newline="") as reader,
            open(path, "w", encoding="utf-8", newline="") as writer,
        ):
            while text := reader.read(_CHUNK):
                writer.write(text)
    except UnicodeError as error:
        raise InputError(
            f"{source.name!r} is not text in the encoding {encoding} ({error}). Pass the encoding "
            "of the file with --csv encoding=NAME."
        ) from error
    except LookupError as error:  # codecs such as base64 turn bytes into bytes
        raise InputError(
            f"{encoding!r} is not an encoding of text. Use one such as utf-8, latin-1 or utf-16."
        ) from error
    except _BROKEN_GZIP as error:
        raise source.damaged() from error
    return SourceFile(source.name, path, ".csv")


def check_bytes(source: SourceFile) -> None:
    """Refuse a text file that is cut off, holds a NUL byte, or is not UTF-8."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    position, line = 0, 1  # of the next byte; the line counts from 1
    try:
        with source.open() as file:
            while chunk := file.read(_CHUNK):
                if position == 0:
                    _check_start(source, chunk)
                fault = _find_bad_byte(chunk, decoder)
                if fault is not None:
                    start, reason = fault
                    line += chunk.count(b"\n", 0, max(start, 0))
                    raise InputError(
                        f"{source.name!r} is not UTF-8: byte {position + start + 1}, in line "
                        f"{line}, is {reason}."
                    )
                position += len(chunk)
                line += chunk.count(b"\n")
    except _BROKEN_GZIP as error:
        raise source.damaged() from error
    if not position:
        raise InputError(f"{source.name!r} holds no text; expected a header and rows.")
    if decoder.getstate()[0]:
        raise InputError(f"{source.name!r} ends inside a character; copy the file again.")


def _find_bad_byte(chunk: bytes, decoder: codecs.IncrementalDecoder) -> tuple[int, str] | None:
    """Return the place of the first byte that is no text in UTF-8, and a description of it.

    The place is negative where the character began in an earlier chunk.
    """
    start = chunk.find(b"\0")  # first, because a NUL byte shows the encoding
    if start >= 0:
        way_out = "Name the encoding, such as --csv encoding=utf-16, or remove the byte"
        return start, f"a NUL byte. {way_out}"
    n_held = len(decoder.getstate()[0])  # bytes of a character that the last chunk cut
    try:
        decoder.decode(chunk)
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        way_out = "Pass its encoding, such as --csv encoding=latin-1"
        return error.start - n_held, f"0x{byte:02x}. {way_out}"
    return None


def _check_start(source: SourceFile, chunk: bytes) -> None:
    if chunk.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise InputError(
            f"{source.name!r} begins like text in UTF-16, but UTF-8 was expected. Pass "
            "--csv encoding=utf-16."
        )
    known = {b"PAR1": "a Parquet file", b"PK\x03\x04": "a zip or Excel file"}
    if not source.suffix.endswith(".gz"):
        known[b"\x1f\x8b"] = "a gzip file"
    for magic, description in known.items():
        if chunk.startswith(magic):
            raise InputError(
                f"{source.name!r} is {description}, not text as its name says. Rename it, or "
                "save it as CSV or Parquet."
            )


# ---------------------------------------------------------------------------------------------
# The columns of tables in files


_INTEGERS = ("tinyint", "smallint", "int", "integer", "bigint", "utinyint", "usmallint", "uinteger")
_NUMBERS = ("float", "double", "decimal", "hugeint", "uhugeint", "ubigint")
_KIND_OF_TYPE = {
    **dict.fromkeys(_INTEGERS, "integer"),
    **dict.fromkeys(_NUMBERS, "number"),
    **dict.fromkeys(("varchar", "enum", "string"), "text"),
    **{"boolean": "boolean", "date": "date", "timestamp": "timestamp"},
}


def kind_of_type(name: str) -> str:
    """Return the kind of a column from the name of its type in DuckDB or Spark.

    Examples
    --------
    >>> kind_of_type("bigint"), kind_of_type("decimal(10,2)"), kind_of_type("array<int>")
    ('integer', 'number', 'other')
    >>> kind_of_type("timestamp_ntz"), kind_of_type("string collate UNICODE")
    ('timestamp', 'text')
    """
    return _KIND_OF_TYPE.get(re.split("[( _]", name)[0], "other")


_MAX_COLUMNS = 2_000  # DuckDB needs memory per column: 4,000 columns do not fit in 1 GB


def check_names(names: Sequence[str], where: str) -> None:
    """Refuse names that are empty, occur twice, or are the same for DuckDB."""
    if len(names) > _MAX_COLUMNS:
        raise InputError(
            f"{where!r} has {len(names):,} columns, but at most {_MAX_COLUMNS:,} are "
            "read. Keep the columns that are needed."
        )
    seen: dict[str, str] = {}
    for position, name in enumerate(names, start=1):
        if not name:
            raise InputError(
                f"Column {position} of {where!r} has no name. Name it, or leave it out (pandas "
                "writes such a column for its index unless index=False)."
            )
        earlier = seen.get(name.lower())
        seen[name.lower()] = name
        if earlier == name:
            raise InputError(f"{where!r} has two columns {name!r}. Rename or remove one of them.")
        if earlier is not None:
            raise InputError(
                f"{where!r} has the columns {earlier!r} and {name!r}, which differ only in upper "
                "and lower case; SQL does not tell them apart. Rename one of them."
            )


def check_same_columns(names: Mapping[str, Sequence[str]]) -> None:
    """Refuse files with different columns; `names` maps a file to its columns."""
    for (first, first_names), (other, other_names) in pairwise(names.items()):
        if list(first_names) == list(other_names):
            continue
        difference = "they come in another order"
        for which, own, others in (
            ("second", other_names, set(first_names)),
            ("first", first_names, set(other_names)),
        ):
            alone = [name for name in own if name not in others]
            difference = f"only the {which} has {alone[0]!r}" if alone else difference
        raise InputError(
            f"{first!r} and {other!r} have different columns ({difference}). Read files with the "
            "same columns in the same order."
        )
