"""Read sample weights and costs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commod._data.codes import is_numeric, plain
from commod._data.labels import check_length, one_dimensional
from commod.exceptions import InputError


def check_weights(
    sample_weight: Any, n_rows: int, name: str = "sample_weight"
) -> NDArray[np.float64]:
    """Return one non-negative finite weight per row, shape (n_rows,); ones where None."""
    if sample_weight is None:
        return np.ones(n_rows)
    weight = _amounts(sample_weight, n_rows, name, "weights")
    if not weight.any():
        raise InputError(
            f"{name} is zero in every row; at least one must be positive.", parameter=name
        )
    return weight


def check_costs(change_cost: Any, n_rows: int, name: str = "change_cost") -> NDArray[np.float64]:
    """Return one non-negative finite cost per row, shape (n_rows,); all may be zero.

    Examples
    --------
    >>> check_costs([0.5, -1], 2)
    Traceback (most recent call last):
    commod.exceptions.InputError: change_cost contains negative, NaN or infinite values; costs must
    be finite and at least 0.
    """
    return _amounts(change_cost, n_rows, name, "costs")


def _amounts(values: Any, n_rows: int, name: str, kind: str) -> NDArray[np.float64]:
    weight = one_dimensional(values, name)
    if weight.dtype.kind not in "fiub":
        scalars = [math.nan if v is None else v for v in map(plain, weight.tolist())]
        wrong = [v for v in scalars if not isinstance(v, bool) and not is_numeric(type(v))]
        if wrong:
            raise InputError(f"{name} must hold numbers; got {wrong[0]!r}.", parameter=name)
        weight = np.array(scalars)
    try:
        weight = weight.astype(np.float64)
    except OverflowError:  # a whole number beyond all floats
        weight = np.full(len(weight), np.inf)
    check_length(weight, name, n_rows)
    with np.errstate(over="ignore"):
        is_finite = bool(np.isfinite(weight.sum()))
    if not is_finite or (weight < 0).any():
        raise InputError(
            f"{name} contains negative, NaN or infinite values; {kind} must be finite and "
            "at least 0.",
            parameter=name,
        )
    return weight
