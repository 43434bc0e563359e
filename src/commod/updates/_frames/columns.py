"""Name the columns of a frame that a fit reads, and prepare them lazily in its engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import narwhals as nw

from commod._data.base_model import ScoreColumn, base_classes
from commod._data.draws import FIT_SEEDS, with_draws, with_key
from commod._data.frames import (
    TEXT_TYPES,
    check_scalar_type,
    has_collations,
    is_spark,
    no_column,
    number_column,
    open_frame,
    with_binary_text,
    without_nan,
)
from commod._data.tables import FreeNames
from commod._text import shown
from commod.exceptions import InputError, InputTypeError


@dataclass(frozen=True)
class NamedColumns:
    """The columns that the user names; `conditions` are those that constraints are within.

    `score` is None where a model makes the scores.
    """

    score: str | None
    sensitive: tuple[str, ...]
    y_true: str | None
    sample_weight: str | None
    key: str | None
    conditions: tuple[str, ...] = ()
    features: tuple[str, ...] | None = None


def name_columns(
    estimator: Any,
    sensitive_features: Any,
    conditions: Sequence[str],
    features: Any,
    **others: Any,
) -> NamedColumns:
    """Return the names that the user gives, checked; `others` may be None."""
    is_column = isinstance(estimator, ScoreColumn)
    if not is_column:
        base_classes(estimator, None)  # refuses what is no model with two labels
    elif not isinstance(estimator.column, str):
        raise InputError(
            f"The columns of a frame have names; got {shown(estimator)}. Pass "
            "ScoreColumn('name of the column').",
            parameter="estimator",
        )
    sensitive = _list_of(sensitive_features)
    if not sensitive or sensitive == [None]:
        raise InputError(
            "sensitive_features is missing. Name the column of the group of each row, or a list of "
            "several.",
            parameter="sensitive_features",
        )
    listed = None if features is None else _list_of(features)
    named = [("sensitive_features", c) for c in sensitive]
    named += [(name, c) for name, c in others.items() if c is not None]
    named += [("features", c) for c in listed or ()]
    for name, column in named:
        if not isinstance(column, str):
            raise InputTypeError(
                f"{name} must be the name of a column of the frame; got {type(column).__name__}. "
                "Use fit for arrays.",
                parameter=name,
            )
    for name, columns in (("sensitive_features", sensitive), ("features", listed or ())):
        twice = [c for i, c in enumerate(columns) if c in columns[:i]]
        if twice:
            raise InputError(f"{name} names {twice[0]!r} twice; name each column once.")
    return NamedColumns(
        estimator.column if is_column else None,
        tuple(sensitive),
        conditions=tuple(dict.fromkeys(conditions)),
        features=None if listed is None else tuple(listed),
        **others,
    )


def _list_of(names: Any) -> list[Any]:
    if hasattr(names, "tolist"):  # names in an array
        names = names.tolist()
    return list(names) if isinstance(names, list | tuple) else [names]


# ---------------------------------------------------------------------------------------------
# Prepared columns


@dataclass(frozen=True)
class FrameTable:
    """A lazy frame with the columns that all queries of a fit share.

    - `keys`: the prepared columns that put a row into a line, by the name of what they hold: each
      sensitive column, "y_true", each condition, "above" (score > threshold) and "open" (whether
      `max_margin` lets the decision change).
    - `score`, `key`, `weight`: names of prepared columns; None where not given.
    - `features`: the columns of X; `names` gives free names of columns.
    """

    lazy: nw.LazyFrame[Any]
    named: NamedColumns
    keys: Mapping[str, str]
    features: tuple[str, ...]
    score: str
    key: str | None
    weight: str | None
    names: FreeNames = field(compare=False)

    def with_draws(self, number: str, draw: str, *kept: nw.Expr) -> nw.LazyFrame[Any]:
        """Return the `kept` rows with a weight, with their keys as numbers and their draws.

        Without a key, it is the number that the engine gives to the row. Rows are left out before
        draws are computed, which cost more than the other columns.
        """
        if self.key is None:
            lazy = with_key(self.lazy, None, number)
        else:
            lazy = self.lazy.with_columns(nw.col(self.key).alias(number))
        for condition in kept if self.weight is None else (nw.col(self.weight) > 0, *kept):
            lazy = lazy.filter(condition)
        return with_draws(lazy, number, draw, self.names.take("_commod_spare"), FIT_SEEDS)


def prepare_frame(
    frame: Any, named: NamedColumns, threshold: float, max_margin: float | None
) -> FrameTable:
    """Return the frame with its prepared columns; nothing is computed yet."""
    lazy = open_frame(frame)
    schema: Mapping[Any, Any] = lazy.collect_schema()
    features = check_names(named, schema)
    _check_spark_names(lazy, schema, named, features)
    names = FreeNames(schema)
    groups = {f"group {i}": name for i, name in enumerate(named.sensitive)}
    within = {f"within {i}": name for i, name in enumerate(named.conditions)}
    label = {} if named.y_true is None else {"y_true": named.y_true}
    read = {**groups, **label, **within}
    for column in read.values():
        check_scalar_type(column, schema[column])
    work = {role: names.take(f"_commod_{role.replace(' ', '_')}") for role in read}
    text = {role: column for role, column in read.items() if schema[column] in TEXT_TYPES}
    if has_collations(lazy):
        lazy = with_binary_text(lazy, {work[role]: column for role, column in text.items()})
    elif text:
        lazy = lazy.with_columns(
            *(nw.col(column).cast(nw.String).alias(work[role]) for role, column in text.items())
        )
    others = [_value(nw.col(c), schema[c]).alias(work[r]) for r, c in read.items() if r not in text]
    score, above, is_open = (names.take(f"_commod_{name}") for name in ("score", "above", "open"))
    assert named.score is not None  # a model has scored the frame
    value = number_column("estimator", named.score, schema[named.score])
    lazy = lazy.with_columns(*others, nw.when((value >= 0) & (value <= 1)).then(value).alias(score))
    weight = key = None
    if named.sample_weight is not None:
        weight = names.take("_commod_weight")
        amount = number_column("sample_weight", named.sample_weight, schema[named.sample_weight])
        lazy = lazy.with_columns(amount.alias(weight))
    if named.key is not None:
        key = names.take("_commod_key")
        lazy = with_key(lazy, named.key, key)
    distance = (nw.col(score) - threshold).abs()
    acts = nw.col(score) != threshold
    lazy = lazy.with_columns(
        (nw.col(score) > threshold).alias(above),
        (acts if max_margin is None else acts & (distance <= max_margin)).alias(is_open),
    )
    keys = {**work, "above": above, "open": is_open}
    return FrameTable(lazy, named, keys, features, score, key, weight, names)


def _value(value: nw.Expr, dtype: Any) -> nw.Expr:
    """Return a column of groups, labels or conditions in a type that every engine counts alike."""
    if dtype.is_decimal():
        value = value.cast(nw.Float64)
    elif dtype in (nw.Int128, nw.UInt128):
        value = value.cast(nw.Int64)
    return without_nan(value) if dtype.is_float() else value


def check_names(named: NamedColumns, schema: Mapping[Any, Any]) -> tuple[str, ...]:
    """Return the columns of X; refuse names that the frame does not have."""
    roles = {
        "estimator": () if named.score is None else (named.score,),
        "sensitive_features": named.sensitive,
        "constraints": named.conditions,
        "features": named.features or (),
    }
    single = ("y_true", "sample_weight", "key")
    roles |= {n: (getattr(named, n),) for n in single if getattr(named, n) is not None}
    for parameter, columns in roles.items():
        for column in columns:
            if column not in schema:
                raise no_column(parameter, column, schema)
    if named.features is not None:
        for column in named.conditions:
            if column not in named.features:
                raise InputError(
                    f"A constraint is within {column!r}, which is not among the features. Add it "
                    "to features, and to locked_features if r must not read it.",
                    parameter="features",
                )
    if named.features is None:
        others = {*named.sensitive, *(column for name in single for column in roles.get(name, ()))}
        return tuple(name for name in schema if name not in others or name == named.score)
    if named.score is None or named.score in named.features:
        return named.features
    return (*named.features, named.score)


def _check_spark_names(
    lazy: nw.LazyFrame[Any],
    schema: Mapping[Any, Any],
    named: NamedColumns,
    features: Sequence[str],
) -> None:
    """Refuse columns that Spark cannot find by their name: it splits names at dots."""
    if not is_spark(lazy):
        return
    single = (named.y_true, named.sample_weight, named.key)
    read = dict.fromkeys([*features, *named.sensitive, *(name for name in single if name)])
    session = lazy.to_native().sparkSession
    ignores_case = session.conf.get("spark.sql.caseSensitive") != "true"
    for column in read:
        alike = [name for name in schema if name != column and name.lower() == column.lower()]
        if alike and ignores_case:
            raise InputError(
                f"Spark does not tell the columns {column!r} and {alike[0]!r} apart. Rename one of "
                "them, or set spark.sql.caseSensitive to true.",
                parameter="frame",
            )
        if "." in column or "`" in column:
            raise InputError(
                f"Spark does not find the column {column!r}, because its name has a dot or a "
                "backtick. Rename it, for example with withColumnRenamed.",
                parameter="frame",
            )
