"""State what a fit depends on: fingerprints of model, scores and columns, and versions."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import platform
from collections.abc import Iterable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
    state = _StateHash()
    try:
        state.add(estimator)
    except Exception:  # a foreign object may raise anything when its state is read
        return None
    return state.hash.hexdigest()


class _StateHash:
    """A hash of the state of objects by value. It ignores which objects share parts."""

    def __init__(self) -> None:
        self.hash = hashlib.sha256()
        self._inside: list[int] = []

    def add(self, value: Any) -> None:
        if isinstance(value, np.generic):  # NumPy's and Python's numbers count as equal
            value = value.item()
        if type(value) in PLAIN:
            self._text(type(value).__name__, repr(value))
        elif id(value) in self._inside:
            self._text("the", str(len(self._inside) - self._inside.index(id(value))), "th outside")
        else:
            self._inside.append(id(value))
            self._add_object(value)
            self._inside.pop()

    def _add_object(self, value: Any) -> None:
        if isinstance(value, np.ndarray):
            self._add_array(value)
        elif isinstance(value, list | tuple):
            self._add_many(type(value).__name__, value)
        elif isinstance(value, dict):
            entries = sorted(value.items(), key=lambda entry: repr(entry[0]))
            self._add_many(type(value).__name__, [part for entry in entries for part in entry])
        elif isinstance(value, set | frozenset):
            self._add_many(type(value).__name__, sorted(value, key=repr))
        elif isinstance(value, RANDOM):  # changes with every draw and has no effect on decisions
            self._text("random", type(value).__name__)
        elif isinstance(value, type) or hasattr(value, "__qualname__"):
            self._text("name", value.__module__, value.__qualname__)
        else:
            made, *parts = value.__reduce_ex__(2)  # the parts that pickle would store
            self._text("object", f"{type(value).__module__}.{type(value).__qualname__}")
            self.add(made)
            for part in parts:
                self.add(list(part) if hasattr(part, "__next__") else part)

    def _add_array(self, array: NDArray[Any]) -> None:
        names = array.dtype.names
        self._text("array", array.dtype.str, str(array.shape))
        if names is not None:  # padding between fields is not part of the model
            self._add_many("fields", [array[name] for name in names])
        elif array.dtype.hasobject:
            self._add_many("objects", array.tolist())
        else:
            self.hash.update(np.ascontiguousarray(array).tobytes())

    def _add_many(self, kind: str, values: Any) -> None:
        self._text(kind, str(len(values)))
        for value in values:
            self.add(value)

    def _text(self, *parts: str) -> None:
        self.hash.update(json.dumps(parts).encode())


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
