r"""Open delimited text files with DuckDB, and find the kind of each of their columns.

DuckDB does not detect the format: in a file with ragged rows it may take a later line for the
header and skip all lines before. Instead:

1. Python reads the header.
2. DuckDB reads every column as text.
3. The kinds of the columns are found from all rows.

The kind of a column is the first in this list that fits all its values:

- `integer`: digits, at most 18; `number`: also a decimal point, an exponent, or "inf";
- `boolean`: true or false in any case; `date`: 2026-01-31; `timestamp`: 2026-01-31 12:00:00;
- `text`: everything else. Digits that begin with 0 or are longer than 18 are text, too: as a
  number, a postcode or an account number would change.

An empty field is missing, with or without quotes. The words NA, N/A, NaN, null and None, in any
case, are missing unless the column is text. In a text column they are text: some people are called
Null, and some live in Namibia. A column without any value is `number`.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Any

from commod._io.queries import Progress, error_sentence, quoted, run_query, translated_errors
from commod._io.sources import SourceFile, check_bytes, check_names, check_same_columns
from commod._text import did_you_mean, list_names
from commod.exceptions import InputError

if TYPE_CHECKING:
    import duckdb

_SAMPLE = 2_000  # rows that rule out most kinds before all rows are read
_DELIMITERS = {",": "a comma", ";": "a semicolon", "\t": "a tab", "|": "a bar"}
_SPELLED = {"tab": "\t", r"\t": "\t", "comma": ",", "semicolon": ";", "space": " ", "pipe": "|"}


def open_text(
    connection: duckdb.DuckDBPyConnection,
    sources: Sequence[SourceFile],
    *,
    given: Mapping[str, str],
    expected: Mapping[str, str],
    others: str | None,
    delimiter: str | None,
    progress: Progress | None,
) -> tuple[duckdb.DuckDBPyRelation, dict[str, str], int]:
    """Return the rows of text files, the kinds of their columns, and the number of rows.

    The user gives kinds of columns in `given`. `expected` holds those of columns that the files
    may have; a column of expected numbers is integer if all are whole. `others` is the kind of the
    remaining columns; None means that it is found from all rows.
    """
    for source in sources:
        check_bytes(source)
    character = _find_delimiter(sources[0], delimiter)
    headers = {source.name: _read_header(source, character) for source in sources}
    names = headers[sources[0].name]
    check_names(names, sources[0].name)
    check_same_columns(headers)
    check_corrections(given, names, repr(sources[0].name))
    types = {} if others is None else dict.fromkeys(names, others)
    types |= {name: kind for name, kind in expected.items() if name in names}
    types |= given
    numbers = {name for name, kind in expected.items() if kind == "number"} - {*given}

    def explain(error: Exception) -> InputError:
        return _find_fault(sources, len(names), character) or InputError(
            f"{sources[0].name!r} cannot be read as a table of text ({error_sentence(error)}). "
            "Save it again as CSV."
        )

    with translated_errors(explain):
        texts = _scan(connection, sources, names, character)
        kinds, n_rows = find_kinds(connection, texts, types, progress, numbers)
    wrong = {name: types[name] for name, kind in kinds.items() if kind == ""}
    if wrong:
        raise _find_misfit_value(sources, names, character, wrong)
    casts = ", ".join(cast_expression(*item) for item in kinds.items())
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
    _, fields = next(_read_records(source, delimiter), (1, []))
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


def find_kinds(
    connection: duckdb.DuckDBPyConnection,
    texts: duckdb.DuckDBPyRelation,
    types: Mapping[str, str],
    progress: Progress | None,
    numbers: Collection[str] = (),
) -> tuple[dict[str, str], int]:
    """Return the kind of each column, "" where a given kind is wrong, and the number of rows.

    Columns of `numbers` are given as number, and are integer if they hold whole numbers only.
    """
    rows = run_query(connection, texts.limit(_SAMPLE).fetchall)
    sample = zip(*rows, strict=True) if rows else ([] for _ in texts.columns)

    def is_corrected(name: str, kind: str) -> bool:
        return types.get(name) == kind

    def possible_of(name: str, values: Sequence[str | None]) -> list[str]:
        if name in types and name not in numbers:
            return [types[name]]
        tried = ["integer", "number"] if name in types else [*_PATTERNS]
        return [
            kind
            for kind in tried
            if is_corrected(name, kind) or _fits(values, kind, is_corrected=False)
        ]

    possible = {
        name: possible_of(name, values) for name, values in zip(texts.columns, sample, strict=True)
    }
    misfits = {
        (name, kind): _count_where(misfit_condition(name, kind, is_corrected(name, kind)))
        for name, kinds in possible.items()
        for kind in kinds
    }
    # counting every column makes DuckDB parse and check every field
    counts = [
        _count_where(f"NOT {_spells_missing(name)}") if len(kinds) > 2 else f"count({quoted(name)})"
        for name, kinds in possible.items()
    ]
    query = texts.aggregate(", ".join(["count(*)", *counts, *misfits.values()]))
    n_rows, *counted = run_query(connection, query.fetchall, progress=progress)[0]
    n_known = dict(zip(texts.columns, counted, strict=False))
    n_misfits = dict(zip(misfits, counted[len(counts) :], strict=True))

    def kind_of(name: str) -> str:
        fitting = [kind for kind in possible[name] if not n_misfits[name, kind]]
        if not n_known[name] and (name not in types or name in numbers):
            return "number"
        return fitting[0] if fitting else "" if name in types else "text"

    return {name: kind_of(name) for name in texts.columns}, n_rows


# ---------------------------------------------------------------------------------------------
# Find the line of a text file that DuckDB refuses, with the csv module of Python

MAX_LINE = 2_000_000


def _find_fault(sources: Sequence[SourceFile], n_columns: int, delimiter: str) -> InputError | None:
    """Return the error for the first line that cannot be read; None if all lines can."""
    for source in sources:
        try:
            for line, fields in _read_records(source, delimiter):
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


def _find_misfit_value(
    sources: Sequence[SourceFile], names: Sequence[str], delimiter: str, types: Mapping[str, str]
) -> InputError:
    """Return the error for the first value that is not of the kind given to its column."""
    position_of = {name: position for position, name in enumerate(names)}
    columns = [(position_of[name], name, kind) for name, kind in types.items()]
    for source in sources:
        for line, fields in islice(_read_records(source, delimiter), 1, None):
            for position, name, kind in columns:
                if fields and not _fits([fields[position]], kind, is_corrected=True):
                    return InputError(
                        f"{source.name!r} holds {fields[position][:60]!r} in column {name!r}, line "
                        f"{line}, but the column was given the type {kind}. Correct the value, or "
                        "give the column the type text."
                    )
    return InputError(f"A value does not fit the types given: {dict(types)}.")


def _read_records(source: SourceFile, delimiter: str) -> Iterator[tuple[int, list[str]]]:
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


# ---------------------------------------------------------------------------------------------
# Kinds of columns, and the SQL that reads them

_MISSING = r"(na|n/a|nan|null|none)?"
_NUMBER = r"[+-]?((0|[1-9][0-9]{0,17})(\.[0-9]*)?|\.[0-9]+)(e[+-]?[0-9]{1,4})?"
_ANY_NUMBER = r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)(e[+-]?[0-9]{1,4})?"
_INFINITE = r"[+-]?inf(inity)?"
_DAY = r"[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
_TRUE, _FALSE = ("true", "t", "yes", "y", "1"), ("false", "f", "no", "n", "0")

# the patterns must mean the same in DuckDB (RE2) and Python, hence [0-9] and [ \t]
_PATTERNS = {
    "integer": r"[+-]?(0|[1-9][0-9]{0,17})",
    "number": rf"{_NUMBER}|{_INFINITE}",
    "boolean": "true|false",
    "date": _DAY,
    "timestamp": rf"{_DAY}[ t]([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]{{1,6}})?)?",
}
_CORRECTED_PATTERNS = {  # where the user states the kind, more spellings are read
    "integer": r"[+-]?0*[0-9]{1,18}(\.0*)?",
    "number": rf"{_ANY_NUMBER}|{_INFINITE}",
    "boolean": "|".join(_TRUE + _FALSE),
    "text": None,
}


def check_corrections(types: Mapping[str, str], names: Sequence[str], where: str) -> None:
    """Refuse a correction of an unknown column or to an unknown kind."""
    for name, kind in types.items():
        if name not in names:
            raise InputError(
                f"The type of column {name!r} is given, but {where} has no such column (columns: "
                f"{list_names(names)}).{did_you_mean(name, names)} Name one of these."
            )
        if kind not in _CORRECTED_PATTERNS:
            raise InputError(
                f"The type {kind!r} of column {name!r} is not known. Use one of "
                f"{', '.join(_CORRECTED_PATTERNS)}.{did_you_mean(kind, _CORRECTED_PATTERNS)}"
            )


def _fits(values: Sequence[str | None], kind: str, *, is_corrected: bool) -> bool:
    """Return whether all values can be read as the kind; `is_corrected` as in `_pattern`."""
    fullmatch = re.compile(_pattern(kind, is_corrected)).fullmatch
    return all(fullmatch(value) for value in values if value is not None)


def _pattern(kind: str, is_corrected: bool) -> str:
    """Return the pattern of a kind; `is_corrected` says that the user gave it."""
    pattern = (_CORRECTED_PATTERNS if is_corrected else _PATTERNS)[kind]
    return "(?is).*" if pattern is None else rf"(?i)[ \t]*({pattern}|{_MISSING})[ \t]*"


def _count_where(condition: str) -> str:
    """Return the SQL that counts the rows for which a condition holds."""
    return f"count(CASE WHEN {condition} THEN 1 END)"


def _spells_missing(name: str) -> str:
    return f"regexp_full_match({quoted(name)}, '(?i)[ \\t]*{_MISSING}[ \\t]*')"


def misfit_condition(name: str, kind: str, is_corrected: bool) -> str:
    """Return the SQL condition that a value of a text column is not of the kind.

    The condition is NULL if the field is empty.
    """
    column = quoted(name)
    condition = f"NOT regexp_full_match({column}, '{_pattern(kind, is_corrected)}')"
    if kind in ("date", "timestamp"):  # 31 February looks like a date
        is_written = f"NOT {_spells_missing(name)}"
        condition += f" OR (TRY_CAST({column} AS {kind}) IS NULL AND {is_written})"
    return condition


def cast_expression(name: str, kind: str) -> str:
    """Return the SQL that reads a text column as `kind`; every value must be of that kind."""
    column = quoted(name)
    # the trim keeps DuckDB from casting inside its reader, where TRY_CAST fails on "NA"
    text = f"trim({column}, ' \t')"
    if kind == "integer":
        return f"TRY_CAST({text} AS BIGINT) AS {column}"
    if kind == "number":  # "nan" is a number for DuckDB, but missing here
        return f"nullif(TRY_CAST({text} AS DOUBLE), 'nan'::DOUBLE) AS {column}"
    if kind == "boolean":
        true, false = (f"regexp_full_match({text}, '(?i){'|'.join(w)}')" for w in (_TRUE, _FALSE))
        return f"CASE WHEN {true} THEN true WHEN {false} THEN false END AS {column}"
    if kind in ("date", "timestamp"):
        return f"TRY_CAST({text} AS {kind}) AS {column}"
    return column
