"""Make names from outside (groups, columns, categories) safe to show."""

from __future__ import annotations

import re
from typing import Any

# Control characters, lone surrogates, and characters that are invisible or that reverse the
# reading direction: with them, one name can look like another.
_INVISIBLE = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u200b\u200e\u200f\u2060\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff\ufffe\uffff]"
)
LIMIT = 80  # characters of a name


def plain(text: Any) -> str:
    r"""Return text on one line, with codes for invisible and direction-changing characters.

    Examples
    --------
    >>> plain("two\nlines"), plain("a\x00b"), plain("\u202egnp"), plain("  ")
    ('two lines', 'a⟨U+0000⟩b', '⟨U+202E⟩gnp', '(blank)')
    """
    one_line = " ".join(str(text).split())
    return _INVISIBLE.sub(lambda match: f"⟨U+{ord(match[0]):04X}⟩", one_line) or "(blank)"


def shorten(text: Any, limit: int = LIMIT) -> str:
    """Return `plain` text of at most `limit` characters; an ellipsis replaces what is cut.

    Examples
    --------
    >>> shorten("a" * 100, 10)
    'aaaaaaaaa…'
    """
    clean = plain(text)
    return clean if len(clean) <= limit else clean[: limit - 1].rstrip() + "…"
