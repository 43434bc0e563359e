"""Find the line of a text file that DuckDB refuses, with the csv module of Python.

DuckDB is fast, but it counts rows instead of lines and its advice is about its own options. So a
file that DuckDB has refused is read again here, slowly, for one clear sentence.

The rejects table of DuckDB (`store_rejects`) does not replace this module. The table counts rows,
too; it does not tell an open quote from text after a closing quote; and it misses faults in the
header and mixed line ends.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice

from commod._io.tables.kinds import is_of_kind
from commod._io.tables.sources import SourceFile
from commod.exceptions import InputError

MAX_LINE = 2_000_000


def find_fault(sources: Sequence[SourceFile], n_columns: int, delimiter: str) -> InputError | None:
    """Return the error for the first line that cannot be read; None if all lines can."""
    for source in sources:
        try:
            for line, fields in read_records(source, delimiter):
                if fields and len(fields) != n_columns:
                    return InputError(
                        f"{source.name!r} has {len(fields)} fields in line {line}, but its header "
                        f"names {n_columns} columns. Correct the line, or quote a field that holds "
                        "the delimiter."
                    )
        except InputError as error:
            return error
        with source.open() as file:
            line_ends = {line[-2:] == b"\r\n" for line in file if line.endswith(b"\n")}
        if len(line_ends) == 2:
            return InputError(
                f"{source.name!r} mixes line ends of Windows (CR LF) and Unix (LF). Make them "
                "alike, for example with dos2unix."
            )
    return None


def find_misfit_value(
    sources: Sequence[SourceFile], names: Sequence[str], delimiter: str, types: Mapping[str, str]
) -> InputError:
    """Return the error for the first value that is not of the kind given to its column."""
    position_of = {name: position for position, name in enumerate(names)}
    columns = [(position_of[name], name, kind) for name, kind in types.items()]
    for source in sources:
        for line, fields in islice(read_records(source, delimiter), 1, None):
            for position, name, kind in columns:
                if fields and not is_of_kind(fields[position], kind):
                    return InputError(
                        f"{source.name!r} holds {fields[position][:60]!r} in column {name!r}, line "
                        f"{line}, but the column was given the type {kind}. Correct the value, or "
                        "give the column the type text."
                    )
    return InputError(f"A value does not fit the types given: {dict(types)}.")


def read_records(source: SourceFile, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the first line and the fields of each record; `check_bytes` has passed the file."""
    start = 1
    with (
        source.open() as raw,
        io.TextIOWrapper(raw, encoding="utf-8-sig", newline="") as file,
        _long_fields_allowed(),
    ):
        reader = csv.reader(_read_lines(source, file), delimiter=delimiter, strict=True)
        try:
            for fields in reader:
                yield start, fields
                start = reader.line_num + 1
        except csv.Error as error:
            raise _quote_error(source, start, error) from error


def _read_lines(source: SourceFile, file: io.TextIOWrapper) -> Iterator[str]:
    for number, line in enumerate(iter(lambda: file.readline(MAX_LINE), ""), start=1):
        if len(line) == MAX_LINE:
            raise InputError(
                f"{source.name!r} has a line of more than {MAX_LINE:,} characters (line "
                f"{number}), more than any table should. Check that it is a table, and that its "
                "line ends are there."
            )
        yield line


@contextmanager
def _long_fields_allowed() -> Iterator[None]:
    earlier = csv.field_size_limit(MAX_LINE)
    try:
        yield
    finally:
        csv.field_size_limit(earlier)


def _quote_error(source: SourceFile, line: int, error: csv.Error) -> InputError:
    if "end of data" in str(error) or "field larger" in str(error):
        return InputError(
            f"{source.name!r} opens a quote in the row that begins in line {line} and never closes "
            'it. Close it, or write a quote that belongs to the text twice ("").'
        )
    return InputError(
        f"{source.name!r} has text after a closing quote in the row that begins in line {line}. "
        'Put the whole field in quotes, and write a quote that belongs to the text twice ("").'
    )
