"""What is wrong with a text file, and in which line: a slow look in Python.

DuckDB reads fast and says that a file is broken; it counts rows, not lines, and its advice is about
its own options. So once it has refused a file, the file is read again here for one clear sentence.
"""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice

from commod._io.tables.kinds import is_of_kind
from commod._io.tables.sources import SourceFile
from commod.exceptions import InputError

__all__ = ["MAX_LINE", "find_fault", "find_misfit_value", "read_records"]

MAX_LINE = 2_000_000


def find_fault(sources: Sequence[SourceFile], n_columns: int, delimiter: str) -> InputError | None:
    """Return the error for the first line that is not as it should be, None if all are."""
    for source in sources:
        try:
            for line, fields in read_records(source, delimiter):
                if fields and len(fields) != n_columns:
                    return InputError(
                        f"{source.name!r} has {len(fields)} fields in line {line}, but its header "
                        f"names {n_columns} columns. Mend the line, or quote a field that holds "
                        "the delimiter."
                    )
        except InputError as error:
            return error
        if _mixes_line_ends(source):
            return InputError(
                f"{source.name!r} mixes line ends of Windows (CR LF) and Unix (LF). Make them "
                "alike, with dos2unix say."
            )
    return None


def find_misfit_value(
    sources: Sequence[SourceFile], names: Sequence[str], delimiter: str, types: Mapping[str, str]
) -> InputError:
    """Return the error for the first value that is not of the kind its column was given."""
    places = [(names.index(name), name, kind) for name, kind in types.items()]
    for source in sources:
        for line, fields in islice(read_records(source, delimiter), 1, None):
            for place, name, kind in places:
                if fields and not is_of_kind(fields[place], kind):
                    return InputError(
                        f"{source.name!r} holds {fields[place][:60]!r} in column {name!r}, line "
                        f"{line}, but the column was given the type {kind}. Mend the value, or "
                        f"give the column the type text."
                    )
    return InputError(f"A value does not fit the types given: {dict(types)}.")


def read_records(source: SourceFile, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yield each record with the line it begins in; what cannot be parsed is an InputError."""
    start = 1
    try:
        with (
            source.open() as raw,
            io.TextIOWrapper(raw, encoding="utf-8-sig", newline="") as file,
            _long_fields(),
        ):
            reader = csv.reader(_lines(source, file), delimiter=delimiter, strict=True)
            for fields in reader:
                yield start, fields
                start = reader.line_num + 1
    except csv.Error as error:
        raise _broken_quotes(source, start, error) from error
    except UnicodeDecodeError as error:
        raise _not_utf8(source) from error


def _lines(source: SourceFile, file: io.TextIOWrapper) -> Iterator[str]:
    number = 0
    while line := file.readline(MAX_LINE):
        number += 1
        if len(line) == MAX_LINE:
            raise InputError(
                f"{source.name!r} has a line of more than {MAX_LINE:,} characters (line "
                f"{number}), more than any table should. Check that it is a table, and that its "
                "line ends are there."
            )
        yield line


@contextmanager
def _long_fields() -> Iterator[None]:
    earlier = csv.field_size_limit(MAX_LINE)
    try:
        yield
    finally:
        csv.field_size_limit(earlier)


def _broken_quotes(source: SourceFile, line: int, error: csv.Error) -> InputError:
    if "end of data" in str(error) or "field larger" in str(error):
        return InputError(
            f"{source.name!r} opens a quote in the row that begins in line {line} and never closes "
            'it. Close it, or write a quote that belongs to the text twice ("").'
        )
    return InputError(
        f"{source.name!r} has text after a closing quote in the row that begins in line {line}. "
        'Put the whole field in quotes, and write a quote that belongs to the text twice ("").'
    )


def _not_utf8(source: SourceFile) -> InputError:
    """Return the error that says where the first bytes are that are not UTF-8."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    position, line = 0, 1
    with source.open() as file:
        for chunk in iter(lambda: file.read(1 << 20), b""):
            held = decoder.getstate()[0]  # the beginning of a character that the last chunk cut
            try:
                decoder.decode(chunk)
            except UnicodeDecodeError as error:
                line += (held + chunk).count(b"\n", 0, error.start)
                at = position - len(held) + error.start
                return InputError(
                    f"{source.name!r} is not UTF-8: byte {at + 1}, in line {line}, is "
                    f"0x{(held + chunk)[error.start]:02x}. Pass the encoding it was written in, "
                    "such as --encoding latin-1."
                )
            position += len(chunk)
            line += chunk.count(b"\n")
    return InputError(f"{source.name!r} ends inside a character; copy the file again.")


def _mixes_line_ends(source: SourceFile) -> bool:
    with source.open() as file:
        kinds = {line[-2:] == b"\r\n" for line in file if line.endswith(b"\n")}
    return len(kinds) == 2
