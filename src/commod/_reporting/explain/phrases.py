"""Write numbers, values, conditions and rules as people read them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from commod._record import Condition
from commod._record.explanation import Value
from commod._text import points, shorten

LONGEST_VALUE = 80  # characters
_PART_OF_A_RULE = re.compile("[,;=<>≤≥“”]|\\b(and|or)\\b|^missing$")


def column_text(name: str) -> str:
    """Return the name of a column; a number or a blank name follows the word "column".

    Examples
    --------
    >>> column_text("age"), column_text("2"), column_text(" ")
    ('age', 'column 2', 'column “ ”')
    """
    if not _is_ambiguous(name):
        return shorten(name)
    is_blank = name.strip() != name or not name
    return f"column {value_text(name) if is_blank else name}"


def _is_ambiguous(text: str) -> bool:
    """Return whether text starts or ends with a blank, is empty, or looks like a number."""
    try:
        float(text)
    except ValueError:
        return text.strip() != text or not text
    return True


def number_text(number: float) -> str:
    """Return the shortest text that reads back as this number, without an exponent if possible.

    Examples
    --------
    >>> number_text(25.0), number_text(0.1 + 0.2), number_text(1_200_000.0)
    ('25', '0.30000000000000004', '1200000')
    """
    if number == int(number) and abs(number) < 1e15:
        return str(int(number))
    return repr(float(number))


def value_text(value: Value | None) -> str:
    """Return one value as text; text that could be mistaken for something else is quoted.

    Examples
    --------
    >>> value_text(52.0), value_text("F"), value_text(None), value_text(" "), value_text("52")
    ('52', 'F', 'missing', '“ ”', '“52”')
    >>> value_text("North, not Oslo"), value_text("missing")
    ('“North, not Oslo”', '“missing”')
    >>> value_text("a, " * 100)[-4:]
    'a,…”'
    """
    if value is None:
        return "missing"
    if isinstance(value, str):
        if not (_is_ambiguous(value) or _PART_OF_A_RULE.search(value)):
            return shorten(value, LONGEST_VALUE)
        quoted = shorten(f"“{value}”", LONGEST_VALUE - 1)
        return quoted if quoted.endswith("”") else f"{quoted}”"
    return str(value) if isinstance(value, bool) else number_text(value)


def short_value(value: Value | None) -> str:
    """Return `value_text`, but a number with at most seven significant digits.

    Examples
    --------
    >>> short_value(-2.51926849063594), short_value(123456.0), short_value("F")
    ('-2.519268', '123456', 'F')
    """
    is_fraction = isinstance(value, float) and not value.is_integer()
    return f"{value:.7g}" if is_fraction else value_text(value)


def contribution_text(column: str, value: Value | None, added: float) -> str:
    """Return a column, its value, and the points that it adds to r.

    Examples
    --------
    >>> contribution_text("priors", 0, -0.6234)
    'priors = 0 (−0.623)'
    """
    return f"{column_text(column)} = {short_value(value)} ({points(added)})"


def condition_text(condition: Condition, some_missing: bool = True) -> str:
    """Return one condition in words; `some_missing` says whether the column has missing values.

    Examples
    --------
    >>> condition_text(Condition("age", None, 25.0, None, False, False, ""))
    'age < 25'
    >>> condition_text(Condition("town", None, None, ("Oslo",), False, True, ""))
    'town is known and not Oslo'
    """
    column, values = column_text(condition.column), condition.values
    or_missing = " (or missing)" if condition.missing else ""
    if values is None:
        return _range_text(column, condition.low, condition.high) + or_missing
    if not values:
        return f"{column} is missing" if condition.missing else f"{column} is not missing"
    listed = ", ".join(value_text(value) for value in values)
    one_of = "one of " if len(values) > 1 else ""
    if not condition.negated:
        return f"{column} {'is one of' if one_of else '='} {listed}{or_missing}"
    known = "known and " if some_missing and not condition.missing else ""
    return f"{column} is {known}not {one_of}{listed}{or_missing if some_missing else ''}"


def _range_text(column: str, low: float | None, high: float | None) -> str:
    if low is not None and high is not None:
        return f"{number_text(low)} ≤ {column} < {number_text(high)}"
    if high is not None:
        return f"{column} < {number_text(high)}"
    return f"{column} is not missing" if low is None else f"{column} ≥ {number_text(low)}"


def rule_text(conditions: Sequence[Condition]) -> str:
    """Return a rule in words: "everyone" where it has no condition."""
    return " and ".join(condition.text for condition in conditions) or "everyone"
