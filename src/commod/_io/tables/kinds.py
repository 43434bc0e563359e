r"""Find the kind of each column of a text file, and write the SQL that reads it.

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

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise

from commod._text import did_you_mean, list_names
from commod.exceptions import InputError

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
CORRECTIONS = tuple(_CORRECTED_PATTERNS)


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
                f"{', '.join(CORRECTIONS)}.{did_you_mean(kind, CORRECTIONS)}"
            )


def possible_kinds(values: Sequence[str | None]) -> list[str]:
    """Return the kinds that fit all values, in the order of preference."""
    known = [value for value in values if value is not None]
    return [kind for kind in _PATTERNS if all(map(_compiled(kind, False).fullmatch, known))]


def is_of_kind(value: str | None, kind: str) -> bool:
    """Return whether a value can be read as the kind that the user gave to its column."""
    return value is None or _compiled(kind, True).fullmatch(value) is not None


def _compiled(kind: str, is_corrected: bool) -> re.Pattern[str]:
    return re.compile(_pattern(kind, is_corrected))


def _pattern(kind: str, is_corrected: bool) -> str:
    pattern = (_CORRECTED_PATTERNS if is_corrected else _PATTERNS)[kind]
    return "(?is).*" if pattern is None else rf"(?i)[ \t]*({pattern}|{_MISSING})[ \t]*"


def count_misfits(name: str, kind: str, *, is_corrected: bool = False) -> str:
    """Return the SQL that counts the values of a text column that are not of the kind."""
    return f"count(CASE WHEN {misfit_condition(name, kind, is_corrected=is_corrected)} THEN 1 END)"


def misfit_condition(name: str, kind: str, *, is_corrected: bool = False) -> str:
    """Return the SQL condition that a value of a text column is not of the kind.

    The condition is NULL where the field is empty.
    """
    column = quote_name(name)
    condition = f"NOT regexp_full_match({column}, '{_pattern(kind, is_corrected)}')"
    if kind in ("date", "timestamp"):  # 31 February looks like a date
        written = f"regexp_full_match({column}, '(?i)[ \\t]*{_MISSING}[ \\t]*')"
        condition += f" OR (TRY_CAST({column} AS {kind}) IS NULL AND NOT {written})"
    return condition


def count_nonempty(name: str) -> str:
    """Return the SQL that counts the fields of a column that are not empty."""
    return f"count({quote_name(name)})"


def count_known(name: str) -> str:
    """Return the SQL that counts the values of a column that are not missing in any spelling."""
    column = quote_name(name)
    word = f"regexp_full_match({column}, '(?i)[ \\t]*{_MISSING}[ \\t]*')"
    return f"count(CASE WHEN NOT {word} THEN 1 END)"


def cast_expression(name: str, kind: str) -> str:
    """Return the SQL that reads a text column as `kind`; every value must be of that kind."""
    column = quote_name(name)
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


def quote_name(name: str) -> str:
    """Return a column name in the quotes of SQL."""
    return '"' + name.replace('"', '""') + '"'


# ---------------------------------------------------------------------------------------------
# Check the names of the columns of a table

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
        known, others = set(first_names), set(other_names)
        missing = [name for name in first_names if name not in others]
        added = [name for name in other_names if name not in known]
        difference = (
            f"only the first has {missing[0]!r}"
            if missing
            else f"only the second has {added[0]!r}"
            if added
            else "they come in another order"
        )
        raise InputError(
            f"{first!r} and {other!r} have different columns ({difference}). Read files with the "
            "same columns in the same order."
        )
