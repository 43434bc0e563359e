r"""The kinds of columns in a text file: which one fits every value, and how it is read.

A kind is chosen from all values of a column, the first that fits:

- `integer`: digits, at most 18; `number`: also a decimal point, an exponent, or "inf";
- `boolean`: true or false in any case; `date`: 2026-01-31; `timestamp`: 2026-01-31 12:00:00;
- `text`: everything else. So are digits that begin with 0 or are longer than 18 (a postcode,
  an account number): as a number they would come back different.

An empty field is missing, quote_name or not. The words NA, N/A, NaN, null and None, in any case,
are missing in a column whose other values all fit one of the first kinds; in a text column they
are text, as some people are called Null and some live in Namibia. A column without any value is
`number`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from commod.exceptions import InputError

__all__ = [
    "CORRECTIONS",
    "cast_expression",
    "check_corrections",
    "count_known",
    "count_misfits",
    "count_nonempty",
    "is_of_kind",
    "misfit_condition",
    "possible_kinds",
    "quote_name",
]

_MISSING = r"(na|n/a|nan|null|none)?"
_NUMBER = r"[+-]?((0|[1-9][0-9]{0,17})(\.[0-9]*)?|\.[0-9]+)(e[+-]?[0-9]{1,4})?"
_ANY_NUMBER = r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)(e[+-]?[0-9]{1,4})?"
_INFINITE = r"[+-]?inf(inity)?"
_DAY = r"[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
_TRUE, _FALSE = ("true", "t", "yes", "y", "1"), ("false", "f", "no", "n", "0")

# the same patterns for RE2 in DuckDB and for Python, hence [0-9] and spaces by name
_PATTERNS = {
    "integer": r"[+-]?(0|[1-9][0-9]{0,17})",
    "number": rf"{_NUMBER}|{_INFINITE}",
    "boolean": "true|false",
    "date": _DAY,
    "timestamp": rf"{_DAY}[ t]([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]{{1,6}})?)?",
}
_CORRECTED_PATTERNS = {  # what the user says it is may be written more freely
    "integer": r"[+-]?0*[0-9]{1,18}(\.0*)?",
    "number": rf"{_ANY_NUMBER}|{_INFINITE}",
    "boolean": "|".join(_TRUE + _FALSE),
    "text": None,
}
CORRECTIONS = tuple(_CORRECTED_PATTERNS)


def check_corrections(types: Mapping[str, str], names: Sequence[str], where: str) -> None:
    """Refuse a correction of a column that is not there, or to a kind that is not one."""
    for name, kind in types.items():
        if name not in names:
            shown = ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")
            raise InputError(
                f"The type of column {name!r} is given, but {where} has no such column (columns: "
                f"{shown}). Name one of these."
            )
        if kind not in _CORRECTED_PATTERNS:
            raise InputError(
                f"The type {kind!r} of column {name!r} is not one that can be asked for. Use one "
                f"of {', '.join(CORRECTIONS)}."
            )


def possible_kinds(values: Sequence[str | None]) -> list[str]:
    """Return the kinds that fit all of some first values, in the order they are preferred."""
    known = [v for v in values if v is not None]
    return [kind for kind in _PATTERNS if all(map(_compiled(kind, False).fullmatch, known))]


def is_of_kind(value: str | None, kind: str) -> bool:
    """Return whether a value can be read as the kind that the user gave its column."""
    return value is None or _compiled(kind, True).fullmatch(value) is not None


def _compiled(kind: str, is_corrected: bool) -> re.Pattern[str]:
    return re.compile(_pattern(kind, is_corrected))


def _pattern(kind: str, is_corrected: bool) -> str:
    own = (_CORRECTED_PATTERNS if is_corrected else _PATTERNS)[kind]
    return "(?is).*" if own is None else rf"(?i)[ \t]*({own}|{_MISSING})[ \t]*"


def count_misfits(name: str, kind: str, *, is_corrected: bool = False) -> str:
    """Return the SQL aggregate that counts the values of a text column that are no `kind`."""
    return f"count(CASE WHEN {misfit_condition(name, kind, is_corrected=is_corrected)} THEN 1 END)"


def misfit_condition(name: str, kind: str, *, is_corrected: bool = False) -> str:
    """Return the SQL condition that a value of a text column is there and is no `kind`."""
    column = quote_name(name)
    bad = f"NOT regexp_full_match({column}, '{_pattern(kind, is_corrected)}')"
    if kind in ("date", "timestamp"):  # 31 February is written like a date
        written = f"regexp_full_match({column}, '(?i)[ \\t]*{_MISSING}[ \\t]*')"
        bad += f" OR (TRY_CAST({column} AS {kind}) IS NULL AND NOT {written})"
    return bad  # NULL, not true, where the field is empty


def count_nonempty(name: str) -> str:
    """Return the SQL aggregate that counts the fields of a column that are not empty."""
    return f"count({quote_name(name)})"


def count_known(name: str) -> str:
    """Return the SQL aggregate that counts the values that are not missing in any spelling."""
    column = quote_name(name)
    word = f"regexp_full_match({column}, '(?i)[ \\t]*{_MISSING}[ \\t]*')"
    return f"count(CASE WHEN NOT {word} THEN 1 END)"


def cast_expression(name: str, kind: str) -> str:
    """Return the SQL expression that reads a text column as `kind`; every value must fit it."""
    column = quote_name(name)
    # a cast of the column itself is done by DuckDB's reader, where TRY_CAST fails on "NA"
    text = f"trim({column}, ' \t')"
    if kind == "integer":
        return f"TRY_CAST({text} AS BIGINT) AS {column}"
    if kind == "number":  # for DuckDB "nan" is a number like others; for us it is missing
        return f"nullif(TRY_CAST({text} AS DOUBLE), 'nan'::DOUBLE) AS {column}"
    if kind == "boolean":
        true, false = (f"regexp_full_match({text}, '(?i){'|'.join(w)}')" for w in (_TRUE, _FALSE))
        return f"CASE WHEN {true} THEN true WHEN {false} THEN false END AS {column}"
    if kind in ("date", "timestamp"):
        return f"TRY_CAST({text} AS {kind}) AS {column}"
    return column


def quote_name(name: str) -> str:
    """Return a column name as SQL writes it."""
    return '"' + name.replace('"', '""') + '"'
