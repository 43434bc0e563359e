"""Numbers, values and conditions in plain words; no name makes them longer than can be read."""

from __future__ import annotations

import re
from collections.abc import Sequence

from commod._record import Condition
from commod._record.explanation import Value

LONGEST_NAME = 80
_PART_OF_A_RULE = re.compile("[,;=<>≤≥“”]|\\b(and|or)\\b|^missing$")


def cut(name: str) -> str:
    """Return a name or a category, its end left out where it is too long to be read.

    Examples
    --------
    >>> cut("age"), len(cut("a" * 10_000))
    ('age', 80)
    """
    return name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…"


def column_text(name: str) -> str:
    """Return the name of a column as a rule has it; one that is a number is said to be a column.

    Examples
    --------
    >>> column_text("age"), column_text("2"), column_text(" ")
    ('age', 'column 2', 'column “ ”')
    """
    is_blank = name.strip() != name or not name
    return f"column {value_text(name) if is_blank else name}" if _is_odd(name) else cut(name)


def _is_odd(text: str) -> bool:
    """Return whether text is blank at an end, or looks like a number."""
    try:
        float(text)
    except ValueError:
        return text.strip() != text or not text
    return True


def number_text(number: float) -> str:
    """Return the shortest text that reads back as exactly this number, without powers if it can.

    Examples
    --------
    >>> number_text(25.0), number_text(0.1 + 0.2), number_text(1_200_000.0)
    ('25', '0.30000000000000004', '1200000')
    """
    if number == int(number) and abs(number) < 1e15:
        return str(int(number))
    return repr(float(number))


def value_text(value: Value | None) -> str:
    """Return one value as people write it; text that could be read as something else is quoted.

    Examples
    --------
    >>> value_text(52.0), value_text("F"), value_text(None), value_text(" "), value_text("52")
    ('52', 'F', 'missing', '“ ”', '“52”')
    >>> value_text("North, not Oslo"), value_text("missing")
    ('“North, not Oslo”', '“missing”')
    """
    if value is None:
        return "missing"
    if isinstance(value, str):
        is_odd = _is_odd(value) or _PART_OF_A_RULE.search(value)
        return f"“{cut(value)}”" if is_odd else cut(value)
    if isinstance(value, bool):
        return str(value)
    return number_text(value)


def short_value(value: Value | None) -> str:
    """Return one value as `value_text` does, a number with at most seven digits that count.

    Examples
    --------
    >>> short_value(-2.51926849063594), short_value(123456.0), short_value("F")
    ('-2.519268', '123456', 'F')
    """
    is_number = isinstance(value, float) and not value.is_integer()
    return f"{value:.7g}" if is_number else value_text(value)


def signed(number: float) -> str:
    """Return a number with its sign and a real minus; a small one never looks like 0.

    Examples
    --------
    >>> signed(-0.623), signed(0.5), signed(-0.0004)
    ('−0.62', '+0.50', '−0.0004')
    """
    text = f"{number:+.1g}" if 0 < abs(number) < 0.005 else f"{number:+.2f}"
    return text.replace("-", "−")


def in_words(
    column: str,
    *,
    low: float | None,
    high: float | None,
    values: Sequence[Value] | None,
    missing: bool,
    negated: bool,
    some_missing: bool = True,
) -> str:
    """Return one condition in words; `some_missing`: whether missing values need a word.

    Examples
    --------
    >>> in_words("age", low=None, high=25.0, values=None, missing=False, negated=False)
    'age < 25'
    >>> in_words("town", low=None, high=None, values=["Oslo"], missing=False, negated=True)
    'town is known and not Oslo'
    """
    if values is None:
        return _range_in_words(column, low, high, missing)
    column = column_text(column)
    if not values:
        return f"{column} is missing" if missing else f"{column} is not missing"
    listed = ", ".join(value_text(v) for v in values)
    if negated:
        text = f"not one of {listed}" if len(values) > 1 else f"not {listed}"
        if not some_missing:
            return f"{column} is {text}"
        return f"{column} is {text} (or missing)" if missing else f"{column} is known and {text}"
    text = f"{column} is one of {listed}" if len(values) > 1 else f"{column} = {listed}"
    return f"{text} (or missing)" if missing else text


def _range_in_words(column: str, low: float | None, high: float | None, missing: bool) -> str:
    column = column_text(column)
    if low is None and high is None:
        return f"{column} is not missing"
    if low is None:
        text = f"{column} < {number_text(high or 0.0)}"
    elif high is None:
        text = f"{column} ≥ {number_text(low)}"
    else:
        text = f"{number_text(low)} ≤ {column} < {number_text(high)}"
    return f"{text} (or missing)" if missing else text


def rule_text(conditions: Sequence[Condition]) -> str:
    """Return a whole rule in words: "everyone" where it has no condition."""
    return " and ".join(condition.text for condition in conditions) or "everyone"
