"""Check parameters: single numbers, choices, flags, seeds and names of columns."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from typing import Any

import numpy as np
from sklearn.utils import check_random_state, check_scalar

from commod._text import did_you_mean, shown
from commod.exceptions import InputError, InputTypeError


def check_number_parameter(value: Any, name: str, kinds: Any, **limits: Any) -> Any:
    """Return a finite number that scikit-learn's `check_scalar` accepts; errors name the parameter.

    True and False are not numbers here.

    Examples
    --------
    >>> check_number_parameter(0, "min_group_size", int, min_val=1)
    Traceback (most recent call last):
    commod.exceptions.InputError: min_group_size == 0, must be >= 1.
    >>> check_number_parameter(float("nan"), "level", float, min_val=0)
    Traceback (most recent call last):
    commod.exceptions.InputError: level=nan must be a finite number.
    """
    if isinstance(value, bool | np.bool_):
        raise InputTypeError(f"{name}={value!r} must be a finite number.", parameter=name)
    try:
        check_scalar(value, name, kinds, **limits)
        is_finite = math.isfinite(value)
    except TypeError as error:
        raise InputTypeError(str(error), parameter=name) from error
    except OverflowError:  # a whole number beyond all floats
        is_finite = False
    except ValueError as error:
        raise InputError(str(error), parameter=name) from error
    if not is_finite:
        raise InputError(f"{name}={shown(value)} must be a finite number.", parameter=name)
    return value


_BETWEEN = {"max_val": 1, "include_boundaries": "neither"}
NUMBERS: dict[str, tuple[tuple[type, ...], dict[str, Any]]] = {  # types and limits of each kind
    "count": ((int, np.integer), {"min_val": 1}),
    "share": ((float, np.floating), {"min_val": 0, **_BETWEEN}),
    "level": ((float, np.floating), {"min_val": 0.5, **_BETWEEN}),
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
    kinds = (int, np.integer) if whole else (int, float, np.integer, np.floating)
    value = check_number_parameter(getattr(owner, name), name, kinds)
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
    """Return scikit-learn's random state for a seed; other values are refused.

    Examples
    --------
    >>> check_seed(-1)
    Traceback (most recent call last):
    commod.exceptions.InputError: random_state=-1 cannot be a seed: pass None, a whole number from
    0 to 4294967295, or a numpy.random.RandomState.
    """
    try:
        if not isinstance(random_state, bool | np.bool_):
            return check_random_state(random_state)
    except (TypeError, ValueError):
        pass
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
