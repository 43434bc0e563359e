"""Read the columns of an audit from a frame of any dataframe engine, lazily.

Each column has a role: "before", "after", "y_true", "scores_before", "scores_after", and
"group_0", "group_1", ... for the sensitive features.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping
from typing import Any

import narwhals as nw

from commod._data.collation import TEXT_TYPES, has_collations, with_binary_text
from commod._data.frames import as_lazy, check_scalar_type, no_column, number_column, without_nan
from commod._data.tables import FreeNames
from commod.exceptions import InputError, InputTypeError

SCORES = ("scores_before", "scores_after")


def is_group(role: str) -> bool:
    """Return whether the role is a sensitive feature."""
    return role.startswith("group_")


def read_roles(columns: Mapping[str, Any], sensitive_features: Any) -> dict[str, Hashable]:
    """Return the name of the column in each role.

    `columns` maps each parameter that names one column to that name, None where it is not given.
    """
    given = {role: column for role, column in columns.items() if column is not None}
    for role in ("before", "after"):
        if role not in given:
            raise InputError(f"{role} is None; pass the name of the column of decisions.")
    is_list = isinstance(sensitive_features, list | tuple)
    sensitive = list(sensitive_features) if is_list else [sensitive_features]
    if not sensitive or sensitive == [None]:
        raise InputError(
            "sensitive_features is missing. Name the column of the group of each row, or a list of "
            "several: an audit compares groups."
        )
    for name, column in [*given.items(), *(("sensitive_features", c) for c in sensitive)]:
        if not isinstance(column, str | int):
            raise InputTypeError(
                f"{name} must be the name of a column of the frame; got "
                f"{type(column).__name__}. Use commod.audit for arrays."
            )
    repeated = [column for column, count in Counter(sensitive).items() if count > 1]
    if repeated:
        raise InputError(f"sensitive_features names {repeated[0]!r} twice; name each column once.")
    return {**given, **{f"group_{i}": column for i, column in enumerate(sensitive)}}


def select_roles(frame: Any, roles: Mapping[str, Hashable]) -> nw.LazyFrame[Any]:
    """Return the columns under the names of their roles, lazily.

    NaN becomes null and scores become float64.
    """
    lazy = as_lazy(frame, "Use commod.audit for arrays.")
    schema: Mapping[Any, Any] = lazy.collect_schema()
    for role, column in roles.items():
        if column not in schema:
            raise no_column("sensitive_features" if is_group(role) else role, column, schema)
    if has_collations(lazy):  # groups and labels differ where they differ in Python
        free = FreeNames(schema)
        text = [role for role, column in roles.items() if schema[column] in TEXT_TYPES]
        names = {role: free.take(f"_commod_{role}") for role in text}
        lazy = with_binary_text(lazy, {names[role]: str(roles[role]) for role in text})
        roles, schema = {**roles, **names}, lazy.collect_schema()
    return lazy.select(*(_convert(role, column, schema[column]) for role, column in roles.items()))


def _convert(role: str, column: Any, dtype: Any) -> nw.Expr:
    """Return a column under its role, in a type that every engine counts in the same way."""
    check_scalar_type(column, dtype)
    if role in SCORES:
        return number_column(role, column, dtype).alias(role)
    values = nw.col(column)
    if dtype.is_decimal() and not is_group(role):
        values = values.cast(nw.Float64)
    elif not is_group(role) and dtype in (nw.Int128, nw.UInt128):
        values = values.cast(nw.Int64)
    if dtype.is_float():
        values = without_nan(values)
    return values.alias(role)
