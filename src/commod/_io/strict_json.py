"""Read JSON that somebody else wrote: strictly, with limits, as data and never as code."""

from __future__ import annotations

import json
import re
from typing import Any

from commod.exceptions import InputError

MAX_DEPTH = 64  # patches and audits nest to about ten levels

_STRING = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*+"?', re.DOTALL)  # an open one goes to the end
_BRACKET = re.compile(r"[\[\]{}]")


def read_object(
    data: bytes, what: str, max_bytes: int, *, surrogates: bool = False
) -> dict[str, Any]:
    """Return the object of a JSON file of at most `max_bytes`; `what` it should be, for messages.

    Refused are: text that is not UTF-8, NaN and infinity, a key that occurs twice in one object,
    nesting beyond `MAX_DEPTH`, and anything but an object. Half a surrogate pair, which is no
    text, is refused unless `surrogates` is True.

    Examples
    --------
    >>> read_object(b'{"n": 1}', "a patch", 100)
    {'n': 1}
    >>> read_object(b'{"n": 1, "n": 2}', "a patch", 100)
    Traceback (most recent call last):
    commod.exceptions.InputError: It is not JSON: the key 'n' occurs twice in one object.
    """
    if len(data) > max_bytes:
        raise InputError(
            f"It is larger than {max_bytes / 2**20:g} MiB, the largest size of {what}. Check "
            "whether it is the right file."
        )
    try:
        text = data.decode("utf-8-sig")
        _check_depth(text, what)
        parsed = json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=as_object)
        if not surrogates:
            json.dumps(parsed, ensure_ascii=False).encode()  # refuses half a surrogate pair
    except UnicodeError as error:
        raise InputError(f"It is not text in UTF-8 ({error}).") from error
    except ValueError as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"It is not JSON: {error}.") from error
    if not isinstance(parsed, dict):
        raise InputError(f"It holds JSON of type {type(parsed).__name__}, expected an object.")
    return parsed


def as_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the pairs of a JSON object as a dict; refuse a key that occurs twice."""
    entries = dict(pairs)
    if len(entries) < len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise ValueError(f"the key {key[:80]!r} occurs twice in one object")
            seen.add(key)
    return entries


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a number in JSON")


def _check_depth(text: str, what: str) -> None:
    """Refuse deep nesting before parsing, which is recursive."""
    depth = 0
    for bracket in _BRACKET.finditer(_STRING.sub("", text)):
        depth += 1 if bracket.group() in "[{" else -1
        if depth > MAX_DEPTH:
            raise InputError(f"It nests too deeply to be {what}: beyond {MAX_DEPTH} levels.")
