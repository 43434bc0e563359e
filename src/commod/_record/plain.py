"""Turn records into plain Python objects and back, by their type hints."""

from __future__ import annotations

import datetime
import hashlib
import json
import math
import sys
import types
import typing
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, TypeVar

from commod._text import shorten
from commod.exceptions import InputError

Record = TypeVar("Record")
ADDED_LATER = {"optional": True}  # metadata of a field that files of earlier versions lack
IF_SET = {**ADDED_LATER, "if_set": True}  # of one whose default is not written: digests stay


def utc_now() -> str:
    """Return the present time in UTC, to the second, as ISO 8601 writes it."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def to_plain(value: Any) -> Any:
    """Return a record as dicts, lists, text, numbers, booleans and None.

    Fields whose metadata says ``{"plain": False}`` are left out, and those of `IF_SET` that have
    their default.

    Examples
    --------
    >>> from commod._record.explanation import Estimate
    >>> to_plain(Estimate(0.5, 0.4, 0.6))
    {'value': 0.5, 'low': 0.4, 'high': 0.6}
    """
    if is_dataclass(value):
        values = ((f, getattr(value, f.name)) for f in fields(value) if _is_kept(f))
        return {
            f.name: to_plain(one)
            for f, one in values
            if not (f.metadata.get("if_set") and one == f.default)
        }
    if isinstance(value, tuple | list):
        return [to_plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): to_plain(item) for key, item in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        raise AssertionError("a record holds None where a number is undefined: a bug in commod")
    return value


def plain_digest(data: Any) -> str:
    """Return the SHA-256 of plain objects; it depends neither on layout nor on order of keys.

    Examples
    --------
    >>> plain_digest({"a": 1, "b": [0.5]}) == plain_digest({"b": [0.5], "a": 1})
    True
    """
    text = json.dumps(
        data, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False
    )
    return hashlib.sha256(text.encode()).hexdigest()


def from_plain(kind: type[Record], data: Any, name: str | None = None) -> Record:
    """Return the record that `to_plain` turned into `data`; errors call it by `name`.

    A field that is missing, unknown or of a wrong type raises `InputError`. Only a field whose
    metadata is `ADDED_LATER` may be missing; it then has its default.

    Examples
    --------
    >>> from commod._record.explanation import Estimate
    >>> from_plain(Estimate, {"value": 0.5, "low": None, "high": None})
    Estimate(value=0.5, low=None, high=None)
    >>> from_plain(Estimate, {"value": "half", "low": None, "high": None})
    Traceback (most recent call last):
    commod.exceptions.InputError: Estimate.value must be float | None; got 'half'.
    """
    return typing.cast(Record, _read(kind, data, name or kind.__name__))


def _read(hint: Any, data: Any, where: str) -> Any:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if isinstance(hint, type) and is_dataclass(hint):
        names, hints = _present_fields(hint, data, where), _hints(hint)
        return hint(**{name: _read(hints[name], data[name], f"{where}.{name}") for name in names})
    if origin in (typing.Union, types.UnionType):
        return _read_one_of(hint, arguments, data, where)
    if origin is tuple and isinstance(data, list):
        return tuple([_read(arguments[0], item, f"{where}[{i}]") for i, item in enumerate(data)])
    if origin is dict and isinstance(data, dict):
        return {key: _read(arguments[1], v, f"{where}[{key!r}]") for key, v in data.items()}
    if (origin is typing.Literal and _is_one_of(data, arguments)) or _is_plain(hint, data):
        return float(data) if hint is float else data
    raise _wrong(hint, data, where)


def _is_plain(hint: Any, data: Any) -> bool:
    """Return whether the data has this plain type.

    A whole number counts as a float. Infinite numbers and NaN are never accepted.
    """
    if type(data) is float and not math.isfinite(data):
        return False
    if hint is float and type(data) is int:
        return abs(data) <= sys.float_info.max
    return type(data) is hint


def _is_one_of(data: Any, allowed: tuple[Any, ...]) -> bool:
    return any(type(data) is type(value) and data == value for value in allowed)


def _read_one_of(hint: Any, arguments: tuple[Any, ...], data: Any, where: str) -> Any:
    if type(data) in arguments and _is_plain(type(data), data):
        return data
    kinds = [kind for kind in arguments if kind is not type(None)]
    matching = kinds if len(kinds) == 1 else [kind for kind in kinds if _names_kind(kind, data)]
    if len(matching) == 1 and is_dataclass(matching[0]):
        return _read(matching[0], data, where)
    for kind in kinds:
        try:
            return _read(kind, data, where)
        except InputError:
            continue
    raise _wrong(hint, data, where)


def _names_kind(kind: Any, data: Any) -> bool:
    """Return whether data names this kind of record in all its fields with literal types."""
    if not isinstance(kind, type) or not is_dataclass(kind) or not isinstance(data, dict):
        return False
    hints = _hints(kind).items()
    literals = [(name, hint) for name, hint in hints if typing.get_origin(hint) is typing.Literal]
    return bool(literals) and all(
        _is_one_of(data.get(name), typing.get_args(hint)) for name, hint in literals
    )


def _present_fields(kind: type, data: Any, where: str) -> list[str]:
    """Return the fields of a record that data has; refuse data that lacks some or has others."""
    if not isinstance(data, dict):
        raise _wrong(kind, data, where)
    kept = {f.name: f.metadata.get("optional", False) for f in fields(kind) if _is_kept(f)}
    wrong = sorted({name for name in kept if not kept[name]} - set(data) | set(data) - set(kept))
    if wrong:
        problem = "lacks" if wrong[0] in kept else "has an unknown"
        raise InputError(f"{where} {problem} field {wrong[0]!r}; expected {', '.join(kept)}.")
    return [name for name in kept if name in data]


@cache
def _hints(kind: type) -> dict[str, Any]:
    return typing.get_type_hints(kind)  # evaluates text: once per kind of record is enough


def _is_kept(field: Any) -> bool:
    return bool(field.metadata.get("plain", True))


def _wrong(hint: Any, data: Any, where: str) -> InputError:
    name = hint.__name__ if isinstance(hint, type) else str(hint).replace("typing.", "")
    return InputError(f"{where} must be {name}; got {shorten(repr(data))}.")
