"""Describe a table by group: how many people, how often each label, how many missing values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from commod._data.columns import iter_columns
from commod._data.disclosure import hidden_groups, in_totals
from commod._data.groups import group_names_of, read_groups, sensitive_names
from commod._data.labels import binary_outcome, check_length, read_labels
from commod._data.tables import FreeNames, check_same_rows, n_rows_of
from commod._text import visible
from commod.exceptions import InputError

if TYPE_CHECKING:
    from pandas import DataFrame

ALPHA = 0.025  # error of each side of an interval: 95 % together
UNKNOWN, ALL = "unknown", "all"


def describe_groups(
    X: Any,
    y: Any = None,
    *,
    sensitive_features: Any = None,
    pos_label: Any = 1,
) -> DataFrame:
    """Return a table of the groups: people, share, rate of a label, missing values.

    Look at it before you fit anything: it shows small groups, groups whose labels differ, and
    groups about whom less is known.

    Parameters
    ----------
    X : Bunch, or table of shape (n_samples, n_features)
        What a loader of `commod.datasets` returns, or your own columns.
    y : array-like of shape (n_samples,), default=None
        Labels; two different values. None: those of the Bunch. Without labels, the columns of their
        rate are left out.
    sensitive_features : array-like or table with n_samples rows, default=None
        The group of each person; several columns mean their intersections. A missing value is an
        unknown group. None: those of the Bunch.
    pos_label : int, float, str or bool, default=1
        The label whose rate is shown.

    Returns
    -------
    DataFrame
        One row per group, the largest first, then people whose group is unknown, then all of them.
        The columns are

        - `people`: how many;
        - `share`: of all people of the table, in [0, 1];
        - `label …`: share of people with `pos_label`, in [0, 1], named after this label;
        - `low`, `high`: its 95 % interval (Wilson), as if the people were drawn at random;
        - `missing`: share of people with at least one missing value in X, in [0, 1].

        A group of fewer than five people shows its size only, because a rate would reveal one
        person. These people are not part of the row "all" either.

    Raises
    ------
    InputError
        Groups are missing, `y` has more than two values, or lengths differ.

    Examples
    --------
    >>> from commod.datasets import describe_groups, load_compas
    >>> people = load_compas()
    >>> describe_groups(people).round(3)
               people  share  label 1    low   high  missing
    race
    not white    4067  0.659    0.489  0.473  0.504      0.0
    white        2100  0.341    0.391  0.371  0.412      0.0
    all          6167  1.000    0.455  0.443  0.468      0.0

    Other groups of the same people, and the rate of the favourable label:

    >>> describe_groups(people, sensitive_features=people.race, pos_label=0).round(2)["label 0"]
    race
    African-American    0.48
    Caucasian           0.61
    Hispanic            0.63
    Other               0.64
    Asian               0.74
    Native American     0.55
    all                 0.54
    Name: label 0, dtype: float64
    """
    import pandas as pd

    X, y, sensitive_features = _parts(X, y, sensitive_features)
    check_same_rows({"X": X, "y": y, "sensitive_features": sensitive_features})
    groups = read_groups(sensitive_features, n_rows_of(X), unknown="ignore")
    measured: dict[str, NDArray[np.bool_]] = {}
    if y is not None:
        labels = read_labels(y, "y")
        check_length(labels, "y", len(groups.codes))
        measured[visible(f"label {pos_label}")] = binary_outcome(labels, "y", pos_label)
    measured["missing"] = np.zeros(len(groups.codes), dtype=bool)
    for column in iter_columns(X):
        measured["missing"] |= column.is_missing()
    columns = _names(sensitive_features)
    lines = _lines(groups.codes, groups.sizes, measured)
    names = [visible(name) for name in group_names_of(groups.labels, columns)]
    free = FreeNames(names)  # a group may have one of these names
    names += [free.take(UNKNOWN), free.take(ALL)]
    first = np.argsort(-groups.sizes, kind="stable")
    last = [-2, -1] if (groups.codes < 0).any() else [-1]
    order = [*first, *last]
    title = ", ".join(map(visible, columns)) if columns else "group"
    index = pd.Index([names[number] for number in order], name=title)
    return pd.DataFrame([lines[number] for number in order], index=index)


def _parts(X: Any, y: Any, sensitive_features: Any) -> tuple[Any, Any, Any]:
    """Return columns, labels and groups; a Bunch states those that are not passed."""
    from sklearn.utils import Bunch

    if isinstance(X, Bunch):
        y = X.get("target") if y is None else y
        if sensitive_features is None:
            sensitive_features = X.get("sensitive_features")
        X = X.get("data")
    if X is None or sensitive_features is None:
        raise InputError(
            "describe_groups needs people and their groups: pass a Bunch of commod.datasets, or X "
            "and sensitive_features=.",
            parameter="sensitive_features",
        )
    return X, y, sensitive_features


def _names(sensitive_features: Any) -> tuple[str, ...] | None:
    """Return the names of the sensitive columns, or of one series; None where they have none."""
    name = getattr(sensitive_features, "name", None)
    return sensitive_names(sensitive_features) or (None if name is None else (str(name),))


def _lines(
    codes: NDArray[np.intp], sizes: NDArray[np.intp], measured: Mapping[str, NDArray[np.bool_]]
) -> list[dict[str, float]]:
    """Return the figures of each group, of people without a known group, and of all people."""
    is_hidden = hidden_groups(sizes, np.zeros(len(sizes), dtype=bool))
    counted = in_totals(codes, is_hidden, int((codes < 0).sum()))
    lines = []
    for rows in [*(codes == code for code in range(len(sizes))), codes < 0]:
        is_shown = bool(counted[rows].all())
        lines.append(_line(rows, len(codes), measured if is_shown else dict.fromkeys(measured)))
    return [*lines, _line(counted, len(codes), measured)]


def _line(
    rows: NDArray[np.bool_], n_people: int, measured: Mapping[str, NDArray[np.bool_] | None]
) -> dict[str, float]:
    """Return the figures of some rows; NaN where what is measured is None."""
    from commod._statistics.intervals import share_interval  # SciPy loads slowly

    size = int(rows.sum())
    line: dict[str, float] = {"people": size, "share": size / n_people}
    for name, values in measured.items():
        count = float("nan") if values is None else float(values[rows].sum())
        line[name] = count / size if size else float("nan")
        if name != "missing":
            low, high = share_interval(count, size, ALPHA)
            line |= {"low": float(low), "high": float(high)}
    return line
