"""Read one value per row: true labels, decisions, scores and weights as checked arrays, (n,)."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from commod._data.arrays import Mask
from commod._data.columns import check_text, code_series, is_numeric, plain
from commod._data.frames import objects
from commod._data.tables import as_array, from_native
from commod._text import did_you_mean, list_names, n_of, shown
from commod.exceptions import InputError, InputTypeError


def read_labels(values: Any, name: str, *, allow_empty: bool = True) -> NDArray[Any]:
    """Return one label per row, shape (n,); missing labels are refused.

    Accepts arrays, lists, Series, and tables of one column.
    """
    array = one_dimensional(values, name)
    if array.dtype.kind == "c":
        raise InputError(
            f"Complex data not supported: {name} holds complex numbers.", parameter=name
        )
    if array.dtype.kind == "f":
        n_missing = int(np.isnan(array).sum())
        if n_missing or np.isinf(array).any():
            raise _missing_labels(name, f"NaN or infinity ({n_missing} NaN)")
    elif array.dtype.kind == "O":
        array = _known_labels(array.tolist(), name)
    if array.dtype.kind == "U":
        check_text(map(str, distinct_labels(array)), name, name)
    if not allow_empty:
        _check_not_empty(array, name)
    return array


def _known_labels(scalars: list[Any], name: str) -> NDArray[Any]:
    if set(map(type, scalars)) not in ({int}, {bool}, {str}):
        scalars = [plain(v) for v in scalars]
        _check_single_values(scalars, name)
        n_missing = scalars.count(None)
        if n_missing:
            raise _missing_labels(name, f"NaN or None in {n_of(n_missing, 'row')}")
    return _typed(scalars)


def _check_single_values(scalars: list[Any], name: str) -> None:
    """Refuse labels that are lists, dicts, arrays or complex numbers."""
    for value in scalars:
        is_single = isinstance(value, Hashable) and not isinstance(value, tuple | frozenset)
        if not is_single or isinstance(value, complex) or hasattr(value, "__array__"):
            raise InputTypeError(
                f"{name} holds {shown(value)} of type {type(value).__name__}, which cannot be a "
                "label. Pass one number, text or boolean per row.",
                parameter=name,
            )


def _missing_labels(name: str, what_is_missing: str) -> InputError:
    return InputError(
        f"Input {name} contains {what_is_missing}. Labels must be known: drop those rows first.",
        parameter=name,
    )


def _check_not_empty(labels: NDArray[Any], name: str) -> None:
    if not len(labels):
        raise InputError(f"{name} has 0 rows; at least 1 is needed.", parameter=name)


def read_label_pair(
    first: Any, second: Any, names: tuple[str, str]
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return two columns of labels of the same length, each of shape (n,) with n ≥ 1."""
    labels = read_labels(first, names[0], allow_empty=False), read_labels(second, names[1])
    check_length(labels[1], names[1], len(labels[0]))
    return labels


def read_scores(values: Any, name: str) -> NDArray[np.float64]:
    """Return one score in [0, 1] per row, shape (n,) with n ≥ 1."""
    scores = read_ranking_scores(values, name)
    n_outside = int(np.sum((scores < 0) | (scores > 1)))
    if n_outside:
        raise InputError(
            f"{name} has {n_of(n_outside, 'value')} outside [0, 1]; pass probabilities. "
            "Margins become scores through the sigmoid 1 / (1 + exp(-z)).",
            parameter=name,
        )
    return scores


def read_ranking_scores(values: Any, name: str) -> NDArray[np.float64]:
    """Return one score per row, shape (n,) with n ≥ 1: any numbers and infinity, but not NaN.

    Examples
    --------
    >>> read_ranking_scores([1, float("inf")], "scores")
    array([ 1., inf])
    >>> read_ranking_scores([0.5, float("nan")], "scores")
    Traceback (most recent call last):
    commod.exceptions.InputError: scores has 1 missing value in 2 rows. Drop those rows first.
    """
    numbers = _numbers(values, name)
    _check_not_empty(numbers, name)
    n_missing = int(np.isnan(numbers).sum())
    if n_missing:
        raise InputError(
            f"{name} has {n_of(n_missing, 'missing value')} in {n_of(len(numbers), 'row')}. Drop "
            "those rows first.",
            parameter=name,
        )
    return numbers


def _numbers(values: Any, name: str) -> NDArray[np.float64]:
    """Return one number per row, shape (n,): NaN if missing, infinity beyond all floats."""
    array = one_dimensional(values, name)
    if array.dtype.kind in "fiub":
        return array.astype(np.float64)
    scalars = [math.nan if v is None else v for v in map(plain, array.tolist())]
    wrong = [v for v in scalars if not isinstance(v, bool) and not is_numeric(type(v))]
    if wrong:
        # Digits in quotes are text. A column read as text is a mistake, so it is refused.
        kind = type(wrong[0]).__name__
        raise InputError(
            f"{name} must hold numbers; got {wrong[0]!r} of type {kind}.", parameter=name
        )
    return np.array([_as_float(v) for v in scalars], dtype=np.float64)


def _as_float(number: Any) -> float:
    try:
        return float(number)
    except OverflowError:  # a whole number beyond all floats
        return math.inf if number > 0 else -math.inf


def one_dimensional(values: Any, name: str) -> NDArray[Any]:
    """Return an array of shape (n,) from an array, a list, a Series or a table of one column."""
    native = from_native(values, name)
    if isinstance(native, nw.DataFrame):
        if native.shape[1] != 1:
            raise InputError(f"{name} must have one column; got {native.shape[1]}.", parameter=name)
        native = next(native.iter_columns())
    if native is not None:
        return _array_of_series(native)
    array = as_array(values, name)
    if array.ndim == 2 and array.shape[1] == 1:
        return array[:, 0]
    if array.ndim != 1:
        raise InputError(
            f"{name} must be one-dimensional (a 1d array); got shape {array.shape}.", parameter=name
        )
    return array


def _array_of_series(series: nw.Series[Any]) -> NDArray[Any]:
    dtype = series.dtype
    if (dtype.is_numeric() or dtype == nw.Boolean) and not series.is_null().any():
        return series.to_numpy()
    if dtype in (nw.String, nw.Categorical, nw.Enum):
        coded = code_series(series)
        if coded.codes.min(initial=0) < 0:
            return coded.objects()
        return _typed(coded.values)[coded.codes]
    return objects(series.to_list())


def _typed(scalars: list[Any]) -> NDArray[Any]:
    """Return a typed array where all scalars share one type, else an object array."""
    if set(map(type, scalars)) in ({int}, {float}, {bool}, {str}):
        return np.array(scalars)
    return objects(scalars)


def is_label_in(label: Any, known: Sequence[Any]) -> bool:
    """Return whether a value of any type equals one of the known labels.

    Examples
    --------
    >>> is_label_in(np.int64(1), [0, 1]), is_label_in([1], [0, 1]), is_label_in({}, [0, 1])
    (True, False, False)
    """
    scalar = plain(label)
    is_single = isinstance(scalar, Hashable) and not hasattr(scalar, "__array__")
    return scalar is not None and is_single and scalar in known


def check_label_parameter(label: Any, parameter: str) -> None:
    """Refuse a label that is not a single value; None stands for the default."""
    if label is not None and not is_label_in(label, [plain(label)]):
        raise InputTypeError(
            f"{parameter}={shown(label)} cannot be a label: pass one number, text or boolean.",
            parameter=parameter,
        )


def check_length(values: Sequence[Any] | NDArray[Any], name: str, n_rows: int) -> None:
    """Refuse `values` if it does not have one entry per row."""
    if len(values) != n_rows:
        raise InputError(
            f"{name} has {len(values)} rows, but {n_rows} were expected: found input variables "
            "with inconsistent numbers of samples. Pass one entry per row, in the same order.",
            parameter=name,
        )


def check_known_labels(labels: NDArray[Any], known: list[Any], name: str) -> None:
    """Refuse labels that the base model does not know; `known` are its own."""
    unknown = [value for value in distinct_labels(labels) if value not in known]
    if unknown:
        raise InputError(
            f"{name} holds [{list_names([repr(v) for v in unknown], 3)}], which the base model "
            f"does not know; its labels are {known}.{did_you_mean(unknown[0], known)}",
            parameter=name,
        )


def binary_outcome(
    labels: NDArray[Any], name: str, pos_label: Any, parameter: str = "pos_label"
) -> Mask:
    """Return where `labels` equal `pos_label`, shape (n,); more than two labels are refused.

    `parameter` is what the caller calls `pos_label`.
    """
    _check_not_empty(labels, name)
    values = distinct_labels(labels)
    if len(values) > 2:
        raise InputError(
            f"{name} holds {len(values)} different values ({list_names(values, 4)}), but decisions "
            "have two. If these are scores, compare them with the threshold first: score > "
            "threshold.",
            parameter=name,
        )
    if not is_label_in(pos_label, values) and (
        len(values) == 2 or isinstance(values[0], str) != isinstance(pos_label, str)
    ):
        raise InputError(
            f"{parameter}={shown(pos_label)} is not among the values of {name}: {values}."
            f"{did_you_mean(pos_label, values)} Pass the value that is meant.",
            parameter=parameter,
        )
    return np.asarray(labels == pos_label, dtype=bool)


def binary_outcomes(
    pair: tuple[NDArray[Any], NDArray[Any]],
    names: tuple[str, str],
    pos_label: Any,
    parameter: str = "pos_label",
) -> tuple[Mask, Mask]:
    """Return where two columns of labels equal `pos_label`; both must use the same two labels."""
    first = binary_outcome(pair[0], names[0], pos_label, parameter)
    second = binary_outcome(pair[1], names[1], pos_label, parameter)
    # A column has at most one other label by now, so any of its rows shows this label.
    others = [_other_label(*column) for column in zip(pair, (first, second), strict=True)]
    if [] not in others and others[0] != others[1]:
        raise InputError(
            f"{names[0]} and {names[1]} do not use the same two labels: beside {pos_label!r}, "
            f"{names[0]} holds {others[0][0]!r} and {names[1]} holds {others[1][0]!r}. Give both "
            "one coding."
        )
    return first, second


def _other_label(labels: NDArray[Any], is_positive: Mask) -> list[Any]:
    return [] if is_positive.all() else labels[np.argmin(is_positive) :][:1].tolist()


def distinct_labels(labels: NDArray[Any]) -> list[Any]:
    """Return the labels that occur, in the order of their first rows."""
    # Two vectorised comparisons suffice for the usual case of two labels.
    first = labels[:1]
    is_first = labels == first
    second = labels[np.argmin(is_first) :][:1]  # label of the first row that differs, if any
    if np.all(is_first | (labels == second)):
        return list(dict.fromkeys([*first.tolist(), *second.tolist()]))
    return list(dict.fromkeys(labels.tolist()))


# ---------------------------------------------------------------------------------------------
# Weights


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


def check_costs(change_cost: Any, n_rows: int) -> NDArray[np.float64]:
    """Return one non-negative finite cost per row, shape (n_rows,); all may be zero.

    Examples
    --------
    >>> check_costs([0.5, -1], 2)
    Traceback (most recent call last):
    commod.exceptions.InputError: change_cost contains negative, NaN or infinite values; costs must
    be finite and at least 0.
    """
    return _amounts(change_cost, n_rows, "change_cost", "costs")


def _amounts(values: Any, n_rows: int, name: str, kind: str) -> NDArray[np.float64]:
    weight = _numbers(values, name)
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
