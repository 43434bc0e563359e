"""Check parameters: single numbers, choices, flags, seeds and names of columns."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from contextlib import suppress
from numbers import Integral
from typing import Any

import numpy as np

from commod._text import did_you_mean, shown
from commod.exceptions import InputError, InputTypeError

ANY_NUMBER = (int, float, np.integer, np.floating)


def check_number_parameter(
    value: Any,
    name: str,
    kinds: Any,
    *,
    min_val: float = -math.inf,
    max_val: float = math.inf,
    ends_included: bool = True,
) -> Any:
    """Return a finite number of one of the `kinds` in a range; errors name the parameter.

    True and False are not numbers here.

    Examples
    --------
    >>> check_number_parameter(0, "min_group_size", int, min_val=1)
    Traceback (most recent call last):
    commod.exceptions.InputError: min_group_size == 0, must be >= 1.
    >>> check_number_parameter(float("nan"), "level", float, min_val=0)
    Traceback (most recent call last):
    commod.exceptions.InputError: level=nan must be a finite number.
    >>> check_number_parameter(2.5, "n_samples", int)
    Traceback (most recent call last):
    commod.exceptions.InputTypeError: n_samples=2.5 must be a whole number.
    """
    if isinstance(value, bool | np.bool_) or not isinstance(value, kinds):
        kind = "finite" if isinstance(0.5, kinds) else "whole"
        raise InputTypeError(f"{name}={shown(value)} must be a {kind} number.", parameter=name)
    if not _is_finite(value):
        raise InputError(f"{name}={shown(value)} must be a finite number.", parameter=name)
    is_low, is_high = value < min_val, value > max_val
    if not ends_included:
        is_low, is_high = value <= min_val, value >= max_val
    if is_low or is_high:
        sign, limit = (">", min_val) if is_low else ("<", max_val)
        sign += "=" * ends_included
        raise InputError(f"{name} == {value}, must be {sign} {limit}.", parameter=name)
    return value


def _is_finite(value: Any) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number beyond all floats
        return False


_BETWEEN = {"max_val": 1, "ends_included": False}
NUMBERS: dict[str, tuple[Any, dict[str, Any]]] = {  # types and limits of each kind
    "count": (Integral, {"min_val": 1}),
    "share": (ANY_NUMBER, {"min_val": 0, **_BETWEEN}),
    "level": (ANY_NUMBER, {"min_val": 0.5, **_BETWEEN}),
}


def check_numbers(kind: str, **values: Any) -> None:
    """Refuse parameters, by their names, that are not numbers of this kind of NUMBERS.

    Examples
    --------
    >>> check_numbers("count", min_group_size=30, min_rows=0)
    Traceback (most recent call last):
    commod.exceptions.InputError: min_rows == 0, must be >= 1.
    """
    kinds, limits = NUMBERS[kind]
    for name, value in values.items():
        check_number_parameter(value, name, kinds, **limits)


def check_number(
    owner: Any,
    name: str,
    *,
    low: float,
    high: float = math.inf,
    whole: bool = False,
    include: str = "left",
    is_share: bool = False,
) -> None:
    """Raise InputError unless the attribute `name` is a finite number from `low` to `high`.

    With `include` "right", `low` itself is refused. If the number `is_share`, the error of a
    percentage names the share to pass instead.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> check_number(SimpleNamespace(target=85), "target", low=0.0, high=1.0, is_share=True)
    Traceback (most recent call last):
    commod.exceptions.InputError: target=85 must be a finite number >= 0 and <= 1. If you mean 85%,
    pass 0.85.
    """
    value = check_number_parameter(getattr(owner, name), name, Integral if whole else ANY_NUMBER)
    if low <= value <= high and not (include == "right" and value == low):
        return
    sign = ">" if include == "right" else ">="
    most = f" and <= {high:g}" if high < math.inf else ""
    is_percent = is_share and 2 <= value <= 100
    hint = f" If you mean {value:g}%, pass {value / 100:g}." if is_percent else ""
    raise InputError(
        f"{name}={value!r} must be a finite number {sign} {low:g}{most}.{hint}", parameter=name
    )


def check_choice(value: Any, name: str, choices: Iterable[str]) -> str:
    """Return the value if it is one of the texts to choose from.

    Examples
    --------
    >>> check_choice("bin", "numeric", ("auto", "unit", "bins"))
    Traceback (most recent call last):
    commod.exceptions.InputError: numeric='bin' is not known; choose one of auto, unit, bins. Did
    you mean 'bins'?
    """
    choices = list(choices)
    if isinstance(value, str) and value in choices:
        return value
    raise InputError(
        f"{name}={shown(value)} is not known; choose one of {', '.join(choices)}."
        f"{did_you_mean(value, choices)}",
        parameter=name,
    )


def check_flag(value: Any, name: str, *, optional: bool = False) -> bool | None:
    """Return the value if it is True or False, or None if that is allowed.

    Examples
    --------
    >>> check_flag("yes", "aware")
    Traceback (most recent call last):
    commod.exceptions.InputTypeError: aware='yes' must be True or False.
    """
    if isinstance(value, bool | np.bool_) or (optional and value is None):
        return value  # type: ignore[return-value]
    allowed = "True, False or None" if optional else "True or False"
    raise InputTypeError(f"{name}={shown(value)} must be {allowed}.", parameter=name)


def check_seed(random_state: Any) -> np.random.RandomState:
    """Return the random state of a seed, as in scikit-learn; other values are refused.

    Examples
    --------
    >>> check_seed(-1)
    Traceback (most recent call last):
    commod.exceptions.InputError: random_state=-1 cannot be a seed: pass None, a whole number from
    0 to 4294967295, or a numpy.random.RandomState.
    """
    if random_state is None or random_state is np.random:
        return np.random.mtrand._rand
    if isinstance(random_state, np.random.RandomState):
        return random_state
    if isinstance(random_state, int | np.integer) and not isinstance(random_state, bool):
        with suppress(ValueError):  # beyond 32 bits
            return np.random.RandomState(random_state)
    raise InputError(
        f"random_state={shown(random_state)} cannot be a seed: pass None, a whole number from 0 to "
        f"{2**32 - 1}, or a numpy.random.RandomState.",
        parameter="random_state",
    )


def check_names(value: Any, name: str) -> frozenset[str]:
    """Return names of columns as a set; anything but a collection of texts is refused.

    Examples
    --------
    >>> check_names(None, "locked_features")
    Traceback (most recent call last):
    commod.exceptions.InputTypeError: locked_features=None must be a list of names of columns, such
    as ['age']; pass [] for none.
    """
    if isinstance(value, str):
        raise InputError(f"{name}={value!r} is text; pass a list: [{value!r}].", parameter=name)
    is_list = isinstance(value, Collection) and not isinstance(value, bytes | bytearray)
    if not is_list or getattr(value, "ndim", 1) != 1 or not all(isinstance(n, str) for n in value):
        raise InputTypeError(
            f"{name}={shown(value)} must be a list of names of columns, such as ['age']; pass [] "
            "for none.",
            parameter=name,
        )
    return frozenset(value)
