"""Write numbers, names from outside, plurals and small tables: one way for each in the library.

A number that is undefined is "not known", never 0 or NaN.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from html import escape
from typing import Any

MAX_SUGGESTED = 3
MAX_LISTED = 20  # names in a message
MAX_LISTED_GROUPS = 6  # in a sentence, which must not list everybody's values
MAX_COMPARED = 80  # characters of a name

# Control characters, lone surrogates, and characters that are invisible or that reverse the
# reading direction: with them, one name can look like another. Terminals obey control characters.
# Joiners are part of the spelling of some languages and of emoji, but not beside Latin letters.
_LATIN = "[\x00-\u024f]"
_INVISIBLE = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u115f\u1160\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\u3164\ufeff\uffa0\ud800-\udfff\ufff9-\ufffb\ufffe\uffff\U000e0000-\U000e007f]"
    f"|(?<={_LATIN})[\u200c\u200d]|[\u200c\u200d](?={_LATIN})|^[\u200c\u200d]|[\u200c\u200d]$"
)
LIMIT = 80  # characters of a name


def visible(text: Any, *, keep: str = "") -> str:
    r"""Return text with codes for control, invisible and direction-changing characters.

    Everything that is printed goes through this function: a terminal obeys control characters, so
    a name from a table could clear the screen or forge a line. A line break and a tab become a
    space.

    Parameters
    ----------
    text : object
    keep : str, default=""
        Characters that stay as they are, such as line breaks.

    Examples
    --------
    >>> visible("\x1b[31mred"), visible("two\nlines"), visible("two\nlines", keep="\n")
    ('⟨U+001B⟩[31mred', 'two lines', 'two\nlines')
    """

    def shown(match: re.Match[str]) -> str:
        character = match[0]
        if character in keep:
            return character
        is_break = character == "\t" or len(f"a{character}a".splitlines()) > 1
        return " " if is_break else f"⟨U+{ord(character):04X}⟩"

    return _INVISIBLE.sub(shown, str(text).replace("\r\n", "\n"))


def json_text(text: str) -> str:
    r"""Return a JSON text in which the characters that `visible` shows are escaped.

    The text means the same. Only the line breaks between its values stay.

    Examples
    --------
    >>> json_text('{"a": "\x9b31m"}')
    '{"a": "\\u009b31m"}'
    """
    return _INVISIBLE.sub(lambda m: m[0] if m[0] == "\n" else json.dumps(m[0])[1:-1], text)


def plain(text: Any) -> str:
    r"""Return text on one line, with codes for invisible and direction-changing characters.

    Examples
    --------
    >>> plain("two\nlines"), plain("a\x00b"), plain("\u202egnp"), plain("  ")
    ('two lines', 'a⟨U+0000⟩b', '⟨U+202E⟩gnp', '(blank)')
    """
    return visible(" ".join(str(text).split())) or "(blank)"


def shorten(text: Any, limit: int = LIMIT) -> str:
    """Return `plain` text of at most `limit` characters; an ellipsis replaces what is cut.

    Examples
    --------
    >>> shorten("a" * 100, 10)
    'aaaaaaaaa…'
    """
    clean = plain(text)
    return clean if len(clean) <= limit else clean[: limit - 1].rstrip() + "…"


# ---------------------------------------------------------------------------------------------
# Lists and suggestions


def did_you_mean(wanted: Any, known: Iterable[Any]) -> str:
    """Return a sentence with the known names that are close to a wrong one; empty if none is.

    The sentence begins with a space, so it can follow another one. Capitals do not matter.

    Examples
    --------
    >>> did_you_mean("Aeg", ["age", "income"])
    " Did you mean 'age'?"
    >>> did_you_mean("town", ["age", "income"])
    ''
    """
    originals: dict[str, list[Any]] = {}
    for name in known:
        originals.setdefault(_comparable(name), []).append(name)
    matches = get_close_matches(_comparable(wanted), list(originals), MAX_SUGGESTED)
    names = [name for match in matches for name in originals[match]][:MAX_SUGGESTED]
    return f" Did you mean {' or '.join(map(shown, names))}?" if names else ""


def _comparable(name: Any) -> str:
    return str(name)[:MAX_COMPARED].casefold().replace("_", "-").strip()


def list_names(
    names: Sequence[Any], most: int = MAX_LISTED, *, n: int | None = None, width: int = LIMIT
) -> str:
    """Return names with commas; where there are more than `most`, the text says how many more.

    `n` is the number of all names, where `names` are the first of them. A name is cut after `width`
    characters. It may have a remark in brackets. If names have commas, semicolons separate them.

    Examples
    --------
    >>> list_names(["a", "b", "c"]), list_names(range(7), most=5), list_names([])
    ('a, b, c', '0, 1, 2, 3, 4 and 2 more', 'none')
    >>> list_names(["sex = f, age = old", "sex = m, age = old"])
    'sex = f, age = old; sex = m, age = old'
    """
    n = len(names) if n is None else n
    first = [shorten(name, width) for name in names[:most]]
    has_commas = any("," in name.split(" (")[0] for name in first)
    listed = ("; " if has_commas else ", ").join(first) or "none"
    return f"{listed} and {n - most:,} more" if n > most else listed


def shown(value: Any) -> str:
    r"""Return a value as Python writes it, on one line and not too long for a message.

    Examples
    --------
    >>> shown("age"), shown(10**5000), shown("two\nlines")
    ("'age'", 'a value of type int', "'two\\nlines'")
    """
    try:
        return shorten(repr(value))
    except Exception:  # Python refuses to write whole numbers of over 4,300 digits
        return f"a value of type {type(value).__name__}"


# ---------------------------------------------------------------------------------------------
# Numbers

NOT_KNOWN = "not known"


def count(value: float | None) -> str:
    """Return a count with commas between thousands; one decimal only where it is not whole.

    Examples
    --------
    >>> count(12345), count(3.0), count(2.25), count(None)
    ('12,345', '3', '2.2', 'not known')
    """
    if _unknown(value):
        return NOT_KNOWN
    is_whole = float(value).is_integer()  # type: ignore[arg-type]
    return f"{value:,.0f}" if is_whole else _minus(f"{value:,.1f}")


def number(value: float | None, digits: int = 2) -> str:
    """Return a number with `digits` digits behind the point.

    Examples
    --------
    >>> number(0.8049, 3), number(-1.5), number(float("nan"))
    ('0.805', '−1.50', 'not known')
    """
    return NOT_KNOWN if _unknown(value) else _minus(f"{value:,.{digits}f}")


def signed_number(value: float | None, digits: int = 2) -> str:
    """Return a difference with its sign and `digits` digits behind the point.

    Examples
    --------
    >>> signed_number(0.0312, 3), signed_number(-0.5), signed_number(0.0001), signed_number(None)
    ('+0.031', '−0.50', '0.00', 'not known')
    """
    return NOT_KNOWN if _unknown(value) else _signed(float(value), digits)  # type: ignore[arg-type]


def percent(value: float | None, digits: int = 1) -> str:
    """Return a share between 0 and 1 in percent.

    Examples
    --------
    >>> percent(0.1234), percent(0.95, 0), percent(None)
    ('12.3%', '95%', 'not known')
    """
    return NOT_KNOWN if _unknown(value) else _minus(f"{value:,.{digits}%}")


def percentage_points(value: float | None, digits: int = 1) -> str:
    """Return the difference of two shares in percentage points, with its sign.

    Examples
    --------
    >>> percentage_points(-0.031), percentage_points(0.0004)
    ('−3.1 points', '0.0 points')
    """
    if _unknown(value):
        return NOT_KNOWN
    return f"{_signed(100 * float(value), digits)} points"  # type: ignore[arg-type]


def points(value: float | None) -> str:
    """Return the points of a scorecard term: a sign and three significant digits.

    A whole number has no decimals.

    Examples
    --------
    >>> points(0.61249), points(-0.00412), points(12.0), points(0.0)
    ('+0.612', '−0.00412', '+12', '0')
    >>> points(-3.2e-11)
    '−3.20e−11'
    """
    if _unknown(value):
        return NOT_KNOWN
    if not value:
        return "0"
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    if digits > 9:
        return _minus(f"{value:+.2e}")
    return _signed(float(value), 0 if float(value).is_integer() else digits)


def of_hundred(value: float | None) -> str:
    """Return a share as people out of 100; one decimal only below 1 and above 99.

    Examples
    --------
    >>> of_hundred(0.423), of_hundred(0.004), of_hundred(0.0)
    ('42', '0.4', '0')
    """
    if _unknown(value):
        return NOT_KNOWN
    people = 100 * float(value)  # type: ignore[arg-type]
    is_near_end = 0 < people < 1 or 99 < people < 100
    return f"{people:.1f}" if is_near_end else f"{people:.0f}"


def estimate(figure: Any, kind: str = "percent", digits: int | None = None) -> str:
    """Return a figure of type `Estimate` and its interval; None is not known.

    `kind` is "percent", "points" or "number".

    Examples
    --------
    >>> from commod._record.explanation import Estimate
    >>> estimate(Estimate(0.423, 0.391, 0.456))
    '42.3% (39.1% to 45.6%)'
    >>> estimate(Estimate(0.8, 0.71, None), "number"), estimate(Estimate(None, None, None))
    ('0.80 (at least 0.71)', 'not known')
    """
    if figure is None or _unknown(figure.value):
        return NOT_KNOWN
    write = {"percent": percent, "points": percentage_points, "number": number}[kind]
    value, low, high = (
        NOT_KNOWN if part is None else write(part) if digits is None else write(part, digits)
        for part in (figure.value, figure.low, figure.high)
    )
    if figure.low is None and figure.high is None:
        return value
    if figure.high is None:
        return f"{value} (at least {low})"
    return f"{value} (at most {high})" if figure.low is None else f"{value} ({low} to {high})"


def _unknown(value: float | None) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def _signed(value: float, digits: int) -> str:
    text = f"{value:+,.{digits}f}"
    return text[1:] if not text.strip("+-0.,") else _minus(text)


def _minus(text: str) -> str:
    return text.replace("-", "−") if text.strip("-0.,%") else text.replace("-", "")


# ---------------------------------------------------------------------------------------------
# Plurals, bounds and labels

_IRREGULAR = {"person": "people", "loss": "losses", "stratum": "strata"}
_LONGEST_LABEL = 30  # characters
_MOST_DIGITS = 8  # of `distinct`, before the number is written in full


def plural(n: float, noun: str) -> str:
    """Return the noun in the form that follows the number `n`.

    Examples
    --------
    >>> plural(1, "row"), plural(0, "row"), plural(2, "person"), plural(1.5, "loss")
    ('row', 'rows', 'people', 'losses')
    """
    return noun if n == 1 else _IRREGULAR.get(noun, f"{noun}s")


def capitalised(sentence: str) -> str:
    """Return a sentence with a capital first letter; all other letters stay.

    Examples
    --------
    >>> capitalised("lowest TPR of label 1")
    'Lowest TPR of label 1'
    """
    return sentence[:1].upper() + sentence[1:]


def n_of(n: float, noun: str) -> str:
    """Return a number of things.

    Examples
    --------
    >>> n_of(1, "row"), n_of(1200, "new error"), n_of(3, "person"), n_of(2.25, "gain")
    ('1 row', '1,200 new errors', '3 people', '2.2 gains')
    """
    return f"{count(n)} {plural(n, noun)}"


def verb(n: float, infinitive: str) -> str:
    """Return the verb in the form that follows `n` subjects.

    Examples
    --------
    >>> verb(1, "lose"), verb(2, "lose"), verb(1, "be"), verb(0, "be"), verb(1, "have")
    ('loses', 'lose', 'is', 'are', 'has')
    """
    one, many = {"be": ("is", "are"), "have": ("has", "have")}.get(
        infinitive, (f"{infinitive}s", infinitive)
    )
    return one if n == 1 else many


def at_bound(value: str, higher_is_fairer: bool) -> str:
    """Return a target in words, from its value as text.

    Examples
    --------
    >>> at_bound("80%", higher_is_fairer=True), at_bound("0.1", higher_is_fairer=False)
    ('at least 80%', 'at most 0.1')
    """
    return f"at {'least' if higher_is_fairer else 'most'} {value}"


def label_text(name: str | None, label: Any) -> str:
    """Return a label in words: its quoted name, else "label" and its value; empty for None.

    Examples
    --------
    >>> label_text("high risk", 1), label_text("1", 1), label_text(None, 1), label_text(None, None)
    ('“high risk”', 'label 1', 'label 1', '')
    """
    if name is not None and name != str(label):
        return f"“{shorten(name, _LONGEST_LABEL)}”"
    return "" if label is None else f"label {shorten(label, _LONGEST_LABEL)}"


def distinct(
    value: float, reference: float | None, *, digits: int, in_percent: bool = False
) -> str:
    """Return a number with enough digits to differ from a reference that it does not equal.

    `digits` behind the point are the fewest. If eight do not suffice, the number is written in
    full.

    Examples
    --------
    >>> distinct(0.7998, 0.8, digits=1, in_percent=True), distinct(0.7, 0.8, digits=3)
    ('79.98%', '0.700')
    """
    other = value if reference is None else reference
    return distinct_pair(value, other, digits=digits, in_percent=in_percent)[0]


def distinct_pair(
    value: float, reference: float, *, digits: int, in_percent: bool = False
) -> tuple[str, str]:
    """Return a number and its reference, both with enough digits to differ unless they are equal.

    Both have the same number of digits, so that the one that is larger also reads as larger.

    Examples
    --------
    >>> distinct_pair(0.80041, 0.80044, digits=1, in_percent=True)
    ('80.041%', '80.044%')
    """
    kind = "%" if in_percent else "f"
    for n in range(digits, _MOST_DIGITS + 1):
        pair = _without_minus_zero(f"{value:.{n}{kind}}", f"{reference:.{n}{kind}}")
        if value == reference or pair[0] != pair[1]:
            return pair[0], pair[1]
    return repr(value), repr(reference)


def _without_minus_zero(*texts: str) -> tuple[str, ...]:
    return tuple(text if text.strip("-0.%") else text.lstrip("-") for text in texts)


# ---------------------------------------------------------------------------------------------
# Small HTML pieces for notebooks

# Colours are inherited from the notebook, so that the text is readable in light and dark themes.
_STYLE = """
.commod-snippet{font:14px/1.45 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif;color:inherit;
 max-width:60em;overflow-wrap:anywhere}
.commod-snippet .commod-title{font-weight:600;font-size:1.1em;margin:0 0 .3em}
.commod-snippet p{margin:.25em 0}
.commod-snippet table{border-collapse:collapse;margin:.7em 0;background:transparent;color:inherit;
 font-variant-numeric:tabular-nums}
.commod-snippet caption{caption-side:top;text-align:left;font-weight:600;padding:.2em 0;
 color:inherit}
.commod-snippet th,.commod-snippet td{padding:.2em .8em .2em 0;text-align:left;vertical-align:top;
 border:0;border-bottom:1px solid rgba(128,128,128,.4);background:transparent;color:inherit}
.commod-snippet th{overflow-wrap:normal}
.commod-snippet .commod-number{text-align:right;white-space:nowrap}
.commod-snippet .commod-code{white-space:nowrap}
"""
_NUMBER = re.compile(r"[+−-]?[\d.,]+%?|not known")


Table = tuple[str, Sequence[str], Sequence[Sequence[Any]]]  # caption, header, rows


def snippet(title: str, sentences: Sequence[str], tables: Sequence[Table] = ()) -> str:
    """Return a small self-contained piece of HTML for a notebook; all texts are escaped.

    Parameters
    ----------
    title : str
    sentences : sequence of str
        One paragraph each.
    tables : sequence of (caption, header, rows)
        Cells are text or numbers; write numbers with the functions of `commod._text`.

    Examples
    --------
    >>> html = snippet("<b>", ["Two & two."], [("Sums", ["a", "b"], [["<i>", 2]])])
    >>> "<b>" in html, "&lt;b&gt;" in html, "&lt;i&gt;" in html
    (False, True, True)
    """
    parts = [
        f"<style>{_STYLE}</style>",
        f'<div class="commod-title">{_bdi(title)}</div>',
        *(f"<p>{_bdi(sentence, 600)}</p>" for sentence in sentences),
        *(_table(*table) for table in tables),
    ]
    return f'<div class="commod-snippet">{"".join(parts)}</div>'


def first_rows(
    caption: str, header: Sequence[str], rows: Sequence[Sequence[Any]], *, most: int, all_in: str
) -> Table:
    """Return a table of the first rows; its caption says how many there are and what has all.

    Examples
    --------
    >>> first_rows("Sums", ["a"], [[1], [2], [3]], most=2, all_in="frame()")
    ('Sums (first 2 of 3; frame() has all)', ['a'], [[1], [2]])
    >>> first_rows("Sums", ["a"], [[1]], most=2, all_in="frame()")
    ('Sums', ['a'], [[1]])
    """
    if len(rows) > most:
        caption += f" (first {most:,} of {len(rows):,}; {all_in} has all)"
    return caption, header, rows[:most]


def _table(caption: str, header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    head = "".join(f'<th scope="col">{_bdi(cell)}</th>' for cell in header)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    return (
        f"<table><caption>{_bdi(caption, 200)}</caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{body}</tbody></table>"
    )


def _cell(value: Any) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        value = NOT_KNOWN
    is_number = isinstance(value, int | float) or bool(_NUMBER.fullmatch(str(value)))
    kind = "commod-number" if is_number else "commod-code" if len(str(value)) <= 8 else ""
    return f"<td{f' class={kind}' if kind else ''}>{_bdi(value, 300)}</td>"


def _bdi(text: Any, limit: int = LIMIT) -> str:
    short, full = shorten(text, limit), shorten(text, 1000)
    title = "" if short == full else f' title="{escape(full)}"'
    return f"<bdi{title}>{escape(short)}</bdi>"
