"""Make names from outside safe to show, list them, and suggest the one that was meant."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
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
    characters. It may have a remark in brackets. Where names have commas, semicolons separate them.

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
