"""Write names from outside (groups, columns, categories) so that they are safe to show."""

from __future__ import annotations

import re
from typing import Any

__all__ = ["plain", "shorten"]

# C0 and C1 controls, lone surrogates, and characters that turn the direction of what follows:
# invisible, or able to make a name read as another.
_UNSEEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u200b\u200e\u200f\u2060\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff\ufffe\uffff]"
)
LIMIT = 80  # characters of a name


def plain(text: Any) -> str:
    r"""Return text on one line in which nothing is invisible or turns the reading direction.

    Examples
    --------
    >>> plain("two\nlines"), plain("a\x00b"), plain("\u202egnp"), plain("  ")
    ('two lines', 'a⟨U+0000⟩b', '⟨U+202E⟩gnp', '(blank)')
    """
    one_line = " ".join(str(text).split())
    return _UNSEEN.sub(lambda found: f"⟨U+{ord(found[0]):04X}⟩", one_line) or "(blank)"


def shorten(text: Any, limit: int = LIMIT) -> str:
    """Return `plain` text of at most `limit` characters, an ellipsis where some were cut.

    Examples
    --------
    >>> shorten("a" * 100, 10)
    'aaaaaaaaa…'
    """
    clean = plain(text)
    return clean if len(clean) <= limit else clean[: limit - 1].rstrip() + "…"
