"""Name what is close to a wrong name, and list names without hiding that there are more."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any

from commod._text.names import LIMIT, shorten

MAX_SUGGESTED = 3
MAX_LISTED = 20  # names in a message
MAX_LISTED_GROUPS = 6  # in a sentence, which must not list everybody's values
MAX_COMPARED = 80  # characters of a name


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
