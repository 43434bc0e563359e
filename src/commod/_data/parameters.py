"""Check parameters that are single numbers."""

from __future__ import annotations

from typing import Any

from sklearn.utils import check_scalar

from commod.exceptions import InputError, InputTypeError


def check_number_parameter(value: Any, name: str, kinds: Any, **limits: Any) -> Any:
    """Return a number that scikit-learn's `check_scalar` accepts; errors name the parameter.

    Examples
    --------
    >>> check_number_parameter(0, "min_group_size", int, min_val=1)
    Traceback (most recent call last):
    commod.exceptions.InputError: min_group_size == 0, must be >= 1.
    """
    try:
        return check_scalar(value, name, kinds, **limits)
    except TypeError as error:
        raise InputTypeError(str(error), parameter=name) from error
    except ValueError as error:
        raise InputError(str(error), parameter=name) from error
