"""Open delimited text files with DuckDB.

DuckDB does not detect the format: in a file with ragged rows it may take a later line for the
header and skip all lines before. Instead:

1. Python reads the header.
2. DuckDB reads every column as text.
3. The kinds of the columns are found from all rows.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from commod._io.tables import kinds as _kinds
from commod._io.tables.kinds import check_names, check_same_columns, is_of_kind
from commod._io.tables.queries import Progress, error_sentence, memory_error, run_query
from commod._io.tables.sources import SourceFile, check_bytes
from commod.exceptions import InputError

if TYPE_CHECKING:
    import duckdb

_SAMPLE = 2_000  # rows that rule out most kinds before all rows are read
_DELIMITERS = {",": "a comma", ";": "a semicolon", "\t": "a tab", "|": "a bar"}
_SPELLED = {"tab": "\t", r"\t": "\t", "comma": ",", "semicolon": ";", "space": " ", "pipe": "|"}


@dataclass(frozen=True)
class KindHints:
    """Kinds of columns that are known before any row is read.

    The user gives the kinds in `given`. `expected` holds the kinds of columns that the file may
    have. `others` is the kind of the remaining columns; None means that it is found from all rows.
    """

    given: Mapping[str, str]
    expected: Mapping[str, str]
    others: str | None

    def known_kinds(self, names: Sequence[str]) -> dict[str, str]:
        """Return the kinds of the columns whose kind is known."""
        remaining = {} if self.others is None else dict.fromkeys(names, self.others)
        expected = {name: kind for name, kind in self.expected.items() if name in names}
        return {**remaining, **expected, **self.given}


def open_text(
    connection: duckdb.DuckDBPyConnection,
    sources: Sequence[SourceFile],
    hints: KindHints,
    delimiter: str | None,
    progress: Progress | None,
) -> tuple[duckdb.DuckDBPyRelation, dict[str, str], int]:
    """Return the rows of text files, the kinds of their columns, and the number of rows."""
    for source in sources:
        check_bytes(source)
    character = _find_delimiter(sources[0], delimiter)
    headers = {source.name: _read_header(source, character) for source in sources}
    names = headers[sources[0].name]
    check_names(names, sources[0].name)
    check_same_columns(headers)
    _kinds.check_corrections(hints.given, names, repr(sources[0].name))
    types = hints.known_kinds(names)
    with _explained_errors(sources, len(names), character):
        texts = _scan(connection, sources, names, character)
        kinds, n_rows = _find_kinds(connection, texts, types, progress)
    wrong = {name: types[name] for name, kind in kinds.items() if kind == ""}
    if wrong:
        raise find_misfit_value(sources, names, character, wrong)
    casts = ", ".join(_kinds.cast_expression(*item) for item in kinds.items())
    return texts.project(casts), kinds, n_rows


def _find_delimiter(source: SourceFile, delimiter: str | None) -> str:
    """Return the character between fields: as given, else a tab in .tsv and a comma in .csv."""
    if delimiter is not None:
        character = _SPELLED.get(delimiter, delimiter)
        if len(character) != 1 or character in '"\r\n\0':
            raise InputError(
                f"The delimiter {delimiter!r} cannot separate fields. Give one character, such as "
                "';' or '|', or the word tab."
            )
        return character
    if source.suffix.startswith(".txt"):
        with source.open() as file:
            return "\t" if b"\t" in file.readline(MAX_LINE) else ","
    return "\t" if source.suffix.startswith(".tsv") else ","


def _read_header(source: SourceFile, delimiter: str) -> list[str]:
    """Return the column names of a file without the spaces around them."""
    _, fields = next(read_records(source, delimiter), (1, []))
    names = [field.strip() for field in fields]
    if not any(names):
        raise InputError(
            f"{source.name!r} begins with an empty line; expected the names of the columns."
        )
    _check_delimiter(source, names, delimiter)
    return names


def _check_delimiter(source: SourceFile, names: Sequence[str], delimiter: str) -> None:
    if len(names) > 1:
        return
    for character, name in _DELIMITERS.items():
        if character != delimiter and character in names[0]:
            shown = "tab" if character == "\t" else f"'{character}'"
            raise InputError(
                f"{source.name!r} has one column, {names[0][:60]!r}, if "
                f"{_DELIMITERS.get(delimiter, repr(delimiter))} separates its fields; it looks as "
                f"if {name} does. Pass --csv delimiter={shown}."
            )


def _scan(
    connection: duckdb.DuckDBPyConnection,
    sources: Sequence[SourceFile],
    names: Sequence[str],
    delimiter: str,
) -> duckdb.DuckDBPyRelation:
    """Return the rows of the files in their order, every column as text."""
    paths: Any = [str(source.path) for source in sources]  # the type stubs allow one path only
    return connection.read_csv(
        paths,
        auto_detect=False,
        header=True,
        columns=dict.fromkeys(names, "VARCHAR"),
        sep=delimiter,
        quotechar='"',
        escapechar='"',
        strict_mode=True,  # a malformed line is an error
        max_line_size=MAX_LINE,
        hive_partitioning=False,  # a folder "a=1" adds no column
    )


@contextmanager
def _explained_errors(
    sources: Sequence[SourceFile], n_columns: int, delimiter: str
) -> Iterator[None]:
    """Turn a DuckDB error about a text file into an InputError that names the line."""
    import duckdb

    try:
        yield
    except duckdb.OutOfMemoryException as error:
        raise memory_error() from error
    except duckdb.Error as error:
        fault = find_fault(sources, n_columns, delimiter)
        if fault is None:
            fault = InputError(
                f"{sources[0].name!r} cannot be read as a table of text ({error_sentence(error)}). "
                "Save it again as CSV."
            )
        raise fault from error


def _find_kinds(
    connection: duckdb.DuckDBPyConnection,
    texts: duckdb.DuckDBPyRelation,
    types: Mapping[str, str],
    progress: Progress | None,
) -> tuple[dict[str, str], int]:
    """Return the kind of each column, "" where a given kind is wrong, and the number of rows."""
    rows = run_query(connection, texts.limit(_SAMPLE).fetchall)
    sample = zip(*rows, strict=True) if rows else ([] for _ in texts.columns)
    possible = {
        name: [types[name]] if name in types else _kinds.possible_kinds(values)
        for name, values in zip(texts.columns, sample, strict=True)
    }
    candidates = [
        (name, kind, _kinds.count_misfits(name, kind, is_corrected=name in types))
        for name, kinds in possible.items()
        for kind in kinds
    ]
    # counting every column makes DuckDB parse and check every field
    counts = [
        _kinds.count_known(name) if len(kinds) > 2 else _kinds.count_nonempty(name)
        for name, kinds in possible.items()
    ]
    query = texts.aggregate(", ".join(["count(*)", *counts, *(sql for *_, sql in candidates)]))
    n_rows, *numbers = run_query(connection, query.fetchall, progress=progress)[0]
    n_known = dict(zip(texts.columns, numbers, strict=False))
    n_misfits = {item[:2]: n for item, n in zip(candidates, numbers[len(counts) :], strict=True)}

    def kind_of(name: str) -> str:
        fitting = [kind for kind in possible[name] if not n_misfits[name, kind]]
        if name in types:
            return fitting[0] if fitting else ""
        if not n_known[name]:
            return "number"
        return fitting[0] if fitting else "text"

    return {name: kind_of(name) for name in texts.columns}, n_rows


# ---------------------------------------------------------------------------------------------
# Find the line of a text file that DuckDB refuses, with the csv module of Python

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
