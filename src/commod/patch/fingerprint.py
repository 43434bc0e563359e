"""State what a fit depends on: fingerprints of model, scores and columns, and versions."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import platform
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

import numpy as np

RANDOM = (np.random.RandomState, np.random.Generator, np.random.BitGenerator)
PLAIN = (type(None), bool, int, float, complex, str, bytes)
PACKAGE = "commod-debiasing"
PACKAGES = (PACKAGE, "numpy", "scipy", "scikit-learn")


def columns_digest(names: Iterable[str]) -> str:
    """Return the SHA-256 of column names, in their order.

    Examples
    --------
    >>> columns_digest(["age", "town"])[:8]
    'a07daba4'
    """
    return hashlib.sha256(json.dumps(list(names)).encode()).hexdigest()


def model_digest(estimator: Any) -> str | None:
    """Return the SHA-256 of a fitted model's state; None where the state cannot be read.

    The digest stays the same when pickle, joblib or skops store and load the model. Another version
    of the model's library may store the same model differently, which gives another digest.

    Examples
    --------
    >>> model_digest([1, 2.5]) == model_digest([1, 2.5]) != model_digest([1, 2.0])
    True
    """
    digest = hashlib.sha256()
    try:
        for part in _state_of(estimator, []):
            digest.update(part)
    except Exception:  # a foreign object may raise anything when its state is read
        return None
    return digest.hexdigest()


def _state_of(value: Any, inside: list[int]) -> Iterator[bytes]:
    """Yield the state of an object by value. Which objects share parts does not matter.

    `inside` are the identities of the objects that hold this one.
    """
    if isinstance(value, np.generic):  # NumPy's and Python's numbers count as equal
        value = value.item()
    if type(value) in PLAIN:
        yield _line(type(value).__name__, repr(value))
    elif id(value) in inside:
        yield _line("the", str(len(inside) - inside.index(id(value))), "th outside")
    else:
        inside.append(id(value))
        yield from _parts_of(value, inside)
        inside.pop()


def _parts_of(value: Any, inside: list[int]) -> Iterator[bytes]:
    kind = type(value).__name__
    if isinstance(value, np.ndarray):
        yield _line("array", value.dtype.str, str(value.shape))
        if value.dtype.names is not None:  # padding between fields is not part of the model
            yield from _many("fields", [value[name] for name in value.dtype.names], inside)
        elif value.dtype.hasobject:
            yield from _many("objects", value.tolist(), inside)
        else:
            yield np.ascontiguousarray(value).tobytes()
    elif isinstance(value, list | tuple):
        yield from _many(kind, value, inside)
    elif isinstance(value, dict):
        entries = sorted(value.items(), key=lambda entry: repr(entry[0]))
        yield from _many(kind, [part for entry in entries for part in entry], inside)
    elif isinstance(value, set | frozenset):
        yield from _many(kind, sorted(value, key=repr), inside)
    elif isinstance(value, RANDOM):  # changes with every draw and has no effect on decisions
        yield _line("random", kind)
    elif isinstance(value, type) or hasattr(value, "__qualname__"):
        yield _line("name", value.__module__, value.__qualname__)
    else:
        made, *parts = value.__reduce_ex__(2)  # the parts that pickle would store
        yield _line("object", f"{type(value).__module__}.{type(value).__qualname__}")
        for part in (made, *parts):
            yield from _state_of(list(part) if hasattr(part, "__next__") else part, inside)


def _many(kind: str, values: Any, inside: list[int]) -> Iterator[bytes]:
    yield _line(kind, str(len(values)))
    for value in values:
        yield from _state_of(value, inside)


def _line(*parts: str) -> bytes:
    return json.dumps(parts).encode()


def library_versions(*others: str) -> dict[str, str]:
    """Return the versions of Python, of commod and its foundations, and of `others`.

    Examples
    --------
    >>> list(library_versions("narwhals"))
    ['python', 'commod-debiasing', 'numpy', 'scipy', 'scikit-learn', 'narwhals']
    """
    packages = {name: _version(name) for name in (*PACKAGES, *others)}
    return {"python": platform.python_version(), **packages}


@cache  # every audit and patch states versions, and each takes milliseconds to read
def _version(package: str) -> str:
    return importlib.metadata.version(package)
