"""Delimited text: its header, how DuckDB is told to read it, and what is wrong with a file.

DuckDB's own guessing is left out on purpose: on a file with ragged rows it may take a later line
for the header and skip all that come before it. The header is read here, every column comes as
text, and the kinds are found afterwards from all rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from commod._io.tables import kinds as _kinds
from commod._io.tables.faults import MAX_LINE, find_fault, find_misfit_value, read_records
from commod._io.tables.names import check_names, check_same_columns
from commod._io.tables.queries import Progress, error_sentence, memory_error, run_query
from commod._io.tables.sources import SourceFile, check_bytes
from commod.exceptions import InputError

if TYPE_CHECKING:
    import duckdb

__all__ = ["KindHints", "open_text"]

_SAMPLE = 2_000  # rows that rule out most kinds before all rows are looked at
_DELIMITERS = {",": "a comma", ";": "a semicolon", "\t": "a tab", "|": "a bar"}
_SPELLED = {"tab": "\t", r"\t": "\t", "comma": ",", "semicolon": ";", "space": " ", "pipe": "|"}


@dataclass(frozen=True)
class KindHints:
    """What is known of the kinds of columns before any row is read.

    `given` by the user, `expected` where a column is there, `others` for the rest (None: found from
    all rows).
    """

    given: Mapping[str, str]
    expected: Mapping[str, str]
    others: str | None

    def of(self, names: Sequence[str]) -> dict[str, str]:
        """Return the kinds of those columns that need not be found."""
        rest = {} if self.others is None else dict.fromkeys(names, self.others)
        expected = {name: kind for name, kind in self.expected.items() if name in names}
        return {**rest, **expected, **self.given}


def open_text(
    connection: duckdb.DuckDBPyConnection,
    sources: Sequence[SourceFile],
    hints: KindHints,
    delimiter: str | None,
    progress: Progress | None,
) -> tuple[duckdb.DuckDBPyRelation, dict[str, str], int]:
    """Return the rows of text files, the kinds of their columns, and how many rows there are."""
    for source in sources:
        check_bytes(source)
    sign = _delimiter_of(sources[0], delimiter)
    headers = {source.name: _read_header(source, sign) for source in sources}
    names = headers[sources[0].name]
    check_names(names, sources[0].name)
    check_same_columns(headers)
    _kinds.check_corrections(hints.given, names, repr(sources[0].name))
    types = hints.of(names)
    with _explained_errors(sources, len(names), sign):
        texts = _scan(connection, sources, names, sign)
        kinds, n_rows = _find_kinds(connection, texts, types, progress)
    wrong = {name: types[name] for name, kind in kinds.items() if kind == ""}
    if wrong:
        raise find_misfit_value(sources, names, sign, wrong)
    return (
        texts.project(", ".join(_kinds.cast_expression(*item) for item in kinds.items())),
        kinds,
        n_rows,
    )


def _delimiter_of(source: SourceFile, delimiter: str | None) -> str:
    """Return what separates the fields: as given, else a tab in .tsv and a comma in .csv."""
    if delimiter is not None:
        sign = _SPELLED.get(delimiter, delimiter)
        if len(sign) != 1 or sign in '"\r\n\0':
            raise InputError(
                f"The delimiter {delimiter!r} cannot separate fields. Give one character, such as "
                "';' or '|', or the word tab."
            )
        return sign
    if source.suffix.startswith(".txt"):
        with source.open() as file:
            return "\t" if b"\t" in file.readline(MAX_LINE) else ","
    return "\t" if source.suffix.startswith(".tsv") else ","


def _read_header(source: SourceFile, delimiter: str) -> list[str]:
    """Return the column names of a file; spaces around them are dropped."""
    _, fields = next(read_records(source, delimiter), (1, []))
    names = [field.strip() for field in fields]
    if not any(names):
        raise InputError(
            f"{source.name!r} begins with an empty line; expected the names of the columns there."
        )
    _check_delimiter(source, names, delimiter)
    return names


def _check_delimiter(source: SourceFile, names: Sequence[str], delimiter: str) -> None:
    if len(names) > 1:
        return
    for sign, word in _DELIMITERS.items():
        if sign != delimiter and sign in names[0]:
            shown = "tab" if sign == "\t" else f"'{sign}'"
            raise InputError(
                f"{source.name!r} has one column, {names[0][:60]!r}, if "
                f"{_DELIMITERS.get(delimiter, repr(delimiter))} separates its fields; it looks as "
                f"if {word} does. Pass --delimiter {shown}."
            )


def _scan(
    connection: duckdb.DuckDBPyConnection,
    sources: Sequence[SourceFile],
    names: Sequence[str],
    delimiter: str,
) -> duckdb.DuckDBPyRelation:
    """Return the rows of the files, one after the other, every column as text."""
    paths: Any = [str(source.path) for source in sources]  # the stubs know one path only
    return connection.read_csv(
        paths,
        auto_detect=False,
        header=True,
        columns=dict.fromkeys(names, "VARCHAR"),
        sep=delimiter,
        quotechar='"',
        escapechar='"',
        strict_mode=True,  # what is not as it should be is an error, not a guess
        max_line_size=MAX_LINE,
        hive_partitioning=False,  # a folder "a=1" adds no column
    )


@contextmanager
def _explained_errors(
    sources: Sequence[SourceFile], n_columns: int, delimiter: str
) -> Iterator[None]:
    """Turn an error of DuckDB about a text file into the sentence that names the line."""
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
    """Return the kind of each column of text, "" where a given one does not fit; and the rows."""
    first = run_query(connection, texts.limit(_SAMPLE).fetchall)
    sample = zip(*first, strict=True) if first else ([] for _ in texts.columns)
    possible = {
        name: [types[name]] if name in types else _kinds.possible_kinds(values)
        for name, values in zip(texts.columns, sample, strict=True)
    }
    asked = [
        (name, kind, _kinds.count_misfits(name, kind, is_corrected=name in types))
        for name, kinds in possible.items()
        for kind in kinds
    ]
    # every column is counted, so that every field of every row is parsed and checked
    counts = [
        _kinds.count_known(name) if len(kinds) > 2 else _kinds.count_nonempty(name)
        for name, kinds in possible.items()
    ]
    query = texts.aggregate(", ".join(["count(*)", *counts, *(sql for _, _, sql in asked)]))
    n_rows, *numbers = run_query(connection, query.fetchall, progress=progress)[0]
    n_known = dict(zip(texts.columns, numbers, strict=False))
    n_misfits = {item[:2]: n for item, n in zip(asked, numbers[len(counts) :], strict=True)}

    def kind_of(name: str) -> str:
        fitting = [kind for kind in possible[name] if not n_misfits[name, kind]]
        if name in types:
            return fitting[0] if fitting else ""
        if not n_known[name]:
            return "number"
        return fitting[0] if fitting else "text"

    return {name: kind_of(name) for name in texts.columns}, n_rows
