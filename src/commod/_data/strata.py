"""Read the columns that people are compared within: columns of X, or control features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from commod._data.codes import Coded, code_array
from commod._data.columns import read_columns
from commod._data.groups import (
    Groups,
    array_of_values,
    check_values,
    code_values,
    columns_by_name,
    sorted_groups,
)
from commod._text import did_you_mean, list_names, n_of, shown
from commod.exceptions import InputError

UNNAMED = "control_features"  # the name of a column that has none


@dataclass(frozen=True)
class ControlFeatures:
    """Columns that people may be compared within, by name. A column is read where it is needed."""

    values: dict[str, Any]
    n_rows: int

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the columns; that of a column without a name is UNNAMED."""
        return tuple(self.values)

    def strata(self, name: str) -> Groups:
        """Return the stratum of each row in the column `name`.

        A column without a name is taken for it.

        Examples
        --------
        >>> columns = read_control_features({"unit": ["a", "b"], "band": [1, None]}, 2)
        >>> columns.strata("unit").labels
        ('a', 'b')
        >>> columns.strata("units")
        Traceback (most recent call last):
        commod.exceptions.InputError: control_features has no column 'units'; it has unit, band. Did
        you mean 'unit'?
        """
        known = UNNAMED if self.names == (UNNAMED,) else name
        if known not in self.values:
            raise InputError(
                f"control_features has no column {name!r}; it has {list_names(self.names)}."
                f"{did_you_mean(name, self.names)}",
                parameter="control_features",
            )
        return read_stratum_column(self.values[known], self.n_rows, known)


def read_control_features(control_features: Any, n_rows: int) -> ControlFeatures:
    """Return the columns of `control_features`.

    A column is a series, an array (n,), an array (n, 1), or one of a frame or a dict. A column
    without a name is called "control_features".
    """
    named = columns_by_name(control_features, "control_features")
    if named is not None:
        names = {name: UNNAMED if name in (None, "") else str(name) for name in named}
        return ControlFeatures({names[name]: named[name] for name in named}, n_rows)
    array = array_of_values(control_features)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise InputError(
            "control_features must be one value per row, or a frame or a dict of named columns; "
            f"got shape {array.shape}.",
            parameter="control_features",
        )
    return ControlFeatures({UNNAMED: array}, n_rows)


def read_stratum_column(
    values: Any, n_rows: int, name: str, parameter: str = "control_features"
) -> Groups:
    """Return the stratum of each row of one column; missing values are refused.

    `values` is a narwhals series or an array (n,), `name` is that of the column, and `parameter` is
    what the caller passed it as.
    """
    place = f"{parameter}[{name!r}]" if name != parameter else parameter
    coded = code_values(values, place, "stratum", parameter=parameter)
    check_values(coded, place, parameter, n_rows)
    refuse_missing(int((coded.codes < 0).sum()), n_rows, place, parameter)
    return sorted_groups(coded)


def read_condition(X: Any, name: str) -> Groups:
    """Return the strata of the column `name` of X; missing values are refused.

    Examples
    --------
    >>> import pandas as pd
    >>> read_condition(pd.DataFrame({"unit": ["b", "a", "b"]}), "unit").labels
    ('a', 'b')
    """
    columns = {column.name: column for column in read_columns(X, only={name})}
    if name not in columns:
        names = list(columns)
        raise InputError(
            f"A constraint is within {shown(name)}, but X has no such column (columns: "
            f"{list_names(names)}).{did_you_mean(name, names)}",
            parameter="constraints",
        )
    column = columns[name]
    n_missing = int(column.is_missing().sum())
    refuse_missing(n_missing, len(column), f"Column {shown(name)}", "constraints")
    if column.kind == "numeric":
        return sorted_groups(code_array(column.values))
    return sorted_groups(Coded(column.values, list(column.categories)))


def refuse_missing(n_missing: int, n_rows: int, place: str, parameter: str) -> None:
    """Refuse a column of strata with missing values; `place` names the column."""
    if n_missing:
        raise InputError(
            f"{place} has {n_of(n_missing, 'missing value')} in {n_rows:,} rows, and people are "
            "compared within its values. Give them a value of their own, such as 'unknown', or "
            "drop these rows.",
            parameter=parameter,
        )
