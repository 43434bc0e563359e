"""Count the people of a frame inside its dataframe engine.

Two queries run. Each brings back a table with one line per combination of values:

1. by decisions and true label, to check missing values and to learn the range of the scores;
2. by group, decisions and true label, for the counts of the audit.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from itertools import compress
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from commod._data.arrays import Floats, Mask
from commod._data.disclosure import hidden_groups, in_totals
from commod._data.frames import (
    TEXT_TYPES,
    GroupTable,
    as_lazy,
    check_scalar_type,
    fetch,
    has_collations,
    no_column,
    number_column,
    numbers,
    objects,
    with_binary_text,
    without_nan,
)
from commod._data.tables import FreeNames
from commod._record import Agreement, Request
from commod._reporting.audit.counts import Coding, DecisionCounts
from commod._reporting.audit.people import read_people
from commod._reporting.audit.scores import ScoreFigures
from commod._text import n_of, verb
from commod.exceptions import InputError, InputTypeError

IntArray = NDArray[np.int64]

CONSTANT = 1e-12  # product of two variances below which one score is constant
MAX_DECISIONS = 27  # two values or none, of before, after and y_true
MAX_CELLS = 100_000  # a longer table holds single rows instead of groups


def _total(table: GroupTable, name: str) -> float:
    return float(numbers(table, name).sum())


def _as_numbers(frame: nw.LazyFrame[Any], flags: Mapping[str, nw.Expr]) -> nw.LazyFrame[Any]:
    """Add flags as columns of 0.0 and 1.0: every engine adds floats, few engines add booleans."""
    if not flags:
        return frame
    one, zero = nw.lit(1.0), nw.lit(0.0)
    return frame.with_columns(
        **{name: nw.when(flag).then(one).otherwise(zero) for name, flag in flags.items()}
    )


# ---------------------------------------------------------------------------------------------
# The first query: decisions and true labels


@dataclass(frozen=True)
class DecisionSummary:
    """What must be known before groups are counted.

    `n_undecided` people have no decision. The mappings hold the mean, and the lowest and highest,
    of each given score, by parameter name.
    """

    n_undecided: int
    mean_scores: dict[str, float]
    score_ranges: dict[str, tuple[float, float]]


def summarise_decisions(frame: nw.LazyFrame[Any], roles: Mapping[str, Hashable]) -> DecisionSummary:
    """Count people by decisions and true label, and refuse missing values and wrong scores."""
    keys = [role for role in ("before", "after", "y_true") if role in roles]
    scores = [role for role in SCORES if role in roles]
    table = fetch(_by_decisions(frame, keys, scores), MAX_DECISIONS)
    if table is None:
        raise InputError(
            "Decisions and true labels hold more than two different values. Use the same two "
            "labels in all columns; compare scores with the threshold first."
        )
    decided, n_undecided = _decided(table)
    n = numbers(decided, "n")
    for role in keys:
        _check_not_missing(roles, role, int(n[[v is None for v in decided[role]]].sum()))
    for role in scores:
        _check_not_missing(roles, role, int(_total(decided, f"{role}_missing")))
        n_outside = int(_total(decided, f"{role}_outside"))
        if n_outside:
            raise InputError(
                f"{role} has {n_of(n_outside, 'value')} outside [0, 1] in column {roles[role]!r}; "
                "pass probabilities. Margins become scores through the sigmoid 1 / (1 + exp(-z))."
            )
    return DecisionSummary(
        n_undecided=n_undecided,
        mean_scores={role: float(_total(decided, f"{role}_sum") / n.sum()) for role in scores},
        score_ranges={
            role: (min(decided[f"{role}_low"]), max(decided[f"{role}_high"])) for role in scores
        },
    )


def _by_decisions(
    frame: nw.LazyFrame[Any], keys: list[str], scores: list[str]
) -> nw.LazyFrame[Any]:
    """Return people by decisions and label, with five figures of each score.

    These are the number of missing values, the number outside [0, 1], the sum, the lowest and the
    highest.
    """
    flags: dict[str, nw.Expr] = {}
    figures: list[nw.Expr] = [nw.len().alias("n")]
    for role in scores:
        score = nw.col(role)
        flags[f"{role}_missing"] = score.is_null()
        flags[f"{role}_outside"] = (score < 0) | (score > 1)
        figures += [
            nw.col(f"{role}_missing").sum(),
            nw.col(f"{role}_outside").sum(),
            score.sum().alias(f"{role}_sum"),
            score.min().alias(f"{role}_low"),
            score.max().alias(f"{role}_high"),
        ]
    return _as_numbers(frame, flags).group_by(*keys).agg(*figures)


def _decided(table: GroupTable) -> tuple[GroupTable, int]:
    """Return the lines with a decision before or after, and the number of people without either."""
    pairs = zip(table["before"], table["after"], strict=True)
    is_decided = [before is not None or after is not None for before, after in pairs]
    decided = {
        name: [v for v, kept in zip(values, is_decided, strict=True) if kept]
        for name, values in table.items()
    }
    n, n_decided = int(_total(table, "n")), int(_total(decided, "n"))
    if not n:
        raise InputError("frame has 0 rows; at least 1 is needed.")
    if not n_decided:
        raise InputError(
            f"before and after are missing in all {n:,} rows. Pass the columns of the decisions."
        )
    return decided, n - n_decided


def _check_not_missing(roles: Mapping[str, Hashable], role: str, n: int) -> None:
    if not n:
        return
    way_out = "Drop those rows first: decisions and true labels must be known."
    if role in SCORES:
        way_out = "Drop those rows first, or leave the scores out."
    elif role != "y_true":
        way_out += " Rows without either decision are left out."
    raise InputError(
        f"{role}: column {roles[role]!r} is missing (NaN or null) in {n_of(n, 'row')} that "
        f"{verb(n, 'have')} a decision. {way_out}"
    )


# ---------------------------------------------------------------------------------------------
# The second query: groups


def of_decided(frame: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
    """Return the rows that have a decision, before or after."""
    return frame.filter(~(nw.col("before").is_null() & nw.col("after").is_null()))


class FrameCounts(NamedTuple):
    """People counted by group, and figures of their scores.

    `n_hidden` (n_groups,) are people of hidden groups, who are in nothing else. `score_ranges` are
    the lowest and the highest of each given score.
    """

    coding: Coding
    counts: DecisionCounts
    scores: ScoreFigures
    n_hidden: IntArray
    score_ranges: dict[str, tuple[float, float]]
    unknown: DecisionCounts | None = None
    n_unknown_hidden: int = 0


def count_frame(
    frame: nw.LazyFrame[Any],
    roles: Mapping[str, Hashable],
    summary: DecisionSummary,
    request: Request,
    min_group_size: int,
    group_names: Mapping[Any, Any] | None = None,
    unknown_groups: str = "error",
) -> FrameCounts:
    """Return names, people by group, label and decisions, and figures of the scores.

    People of hidden groups are in no other figure (see `_data/disclosure.py`). Areas under the
    curve, calibration and the rank correlation need single rows and are None.
    """
    keys = [role for role in roles if role not in SCORES]
    table = fetch(_by_group(of_decided(frame), keys, summary, request.threshold), MAX_CELLS)
    if table is None:
        raise InputError(
            f"sensitive_features make more than {MAX_CELLS:,} combinations of groups and "
            "decisions, too many to be compared. Put numbers into bins, or name fewer columns."
        )
    n = numbers(table, "n")
    groups = {roles[role]: objects(table[role]) for role in keys if is_group(role)}
    if unknown_groups != "ignore":
        _check_groups(groups.values(), n)
    # each line of the table is read like a row that stands for n people
    decisions = {role: table.get(role) for role in ("before", "after", "y_true")}
    people = read_people(decisions, {}, groups, request, group_names, unknown_groups)
    n_groups = len(people.groups.labels)
    sizes = np.bincount(people.groups.codes + 1, n, n_groups + 1)[1:].astype(np.int64)
    is_hidden = hidden_groups(sizes, sizes >= min_group_size)
    is_unknown = ~people.groups.is_known
    n_unknown = int(n[is_unknown].sum())
    shown = in_totals(people.groups.codes, is_hidden, n_unknown)
    n_unknown_hidden = int(n[is_unknown & ~shown].sum())
    if not shown.all():
        people, n = people.take(shown), n[shown]
        table = {name: list(compress(values, shown)) for name, values in table.items()}
    sums = {role: numbers(table, f"{role}_sum") for role in SCORES if role in roles}
    before, after = (sums.get(role) for role in SCORES)
    squares = {r: numbers(table, f"{r}_square_sum") for r in SCORES if r in roles}
    people.warn_of_inverted_scores((before, after), n, stacklevel=4)
    scores = ScoreFigures(
        mean_before=people.group_means(before, n),
        mean_after=people.group_means(after, n),
        square_before=people.group_means(squares.get("scores_before"), n),
        square_after=people.group_means(squares.get("scores_after"), n),
        agreement=_agreement(table, summary),
        n_contradictions=_n_contradictions(
            table, people.after == people.coding.score_is_for_positive
        ),
    )
    ranges = {
        role: (min(table[f"{role}_low"]), max(table[f"{role}_high"]))
        for role in SCORES
        if role in roles
    }
    n_hidden, unknown = np.where(is_hidden, sizes, 0), people.count_unknown(n)
    counts = people.coding, people.count(n), scores, n_hidden, ranges, unknown, n_unknown_hidden
    return FrameCounts(*counts)


def _by_group(
    decided: nw.LazyFrame[Any], keys: list[str], summary: DecisionSummary, threshold: float | None
) -> nw.LazyFrame[Any]:
    """Return people by group, label and decisions, with sums of their scores."""
    scores = list(summary.mean_scores)
    flags: dict[str, nw.Expr] = {}
    products = {f"{role}_square": nw.col(role) * nw.col(role) for role in scores}
    if threshold is not None and "scores_after" in scores:
        flags["above"] = nw.col("scores_after") > threshold
    if len(scores) == 2:
        before, after = nw.col(scores[0]), nw.col(scores[1])
        flags["identical"] = before == after
        first, second = (_centred(role, summary) for role in scores)
        products |= {
            "distance": (before - after).abs(),
            "before_squared": first * first,
            "after_squared": second * second,
            "product": first * second,
        }
    prepared = _as_numbers(decided, flags)
    prepared = prepared.with_columns(**products) if products else prepared
    sums = (nw.col(name).sum().alias(f"{name}_sum") for name in (*scores, *flags, *products))
    ends = [
        figure
        for role in scores
        for figure in (
            nw.col(role).min().alias(f"{role}_low"),
            nw.col(role).max().alias(f"{role}_high"),
        )
    ]
    return prepared.group_by(*keys).agg(nw.len().alias("n"), *sums, *ends)


def _centred(role: str, summary: DecisionSummary) -> nw.Expr:
    """Return scores minus their mean, divided by their range, so that sums lose no digits."""
    low, high = summary.score_ranges[role]
    return (nw.col(role) - summary.mean_scores[role]) / (high - low or 1.0)


def _check_groups(columns: Iterable[NDArray[Any]], n: Floats) -> None:
    is_missing = np.any([[value is None for value in column] for column in columns], axis=0)
    n_missing = int(n[is_missing].sum())
    if n_missing:
        raise InputError(
            f"sensitive_features has {n_of(n_missing, 'missing value')} in {int(n.sum()):,} rows. "
            "Drop those rows, or give them a group of their own, e.g. with fill_null('unknown')."
        )


def _agreement(table: GroupTable, summary: DecisionSummary) -> Agreement | None:
    """Return how close the scores are; the rank correlation, which needs rows, is None."""
    if len(summary.score_ranges) < 2:
        return None
    n = _total(table, "n")
    # `_centred` took the mean of all people; hidden ones are not in the table
    first, second = (
        (_total(table, f"{role}_sum") - n * mean) / (high - low or 1.0)
        for (role, mean), (low, high) in zip(
            summary.mean_scores.items(), summary.score_ranges.values(), strict=True
        )
    )
    correlation = None
    squares = (_total(table, "before_squared_sum") - first**2 / n) * (
        _total(table, "after_squared_sum") - second**2 / n
    )
    # Sums of equal scores differ by rounding.
    if squares > CONSTANT * n**2 and all(low < high for low, high in summary.score_ranges.values()):
        product = _total(table, "product_sum") - first * second / n
        correlation = min(max(product / math.sqrt(squares), -1.0), 1.0)
    return Agreement(
        mean_absolute_difference=_total(table, "distance_sum") / n,
        correlation=correlation,
        rank_correlation=None,
        share_identical=_total(table, "identical_sum") / n,
    )


def _n_contradictions(table: GroupTable, after: Mask) -> int | None:
    """Return how many decisions differ from score > threshold; `after`: decided the score's label.

    None where scores or threshold are not given.
    """
    if "above_sum" not in table:
        return None
    n, above = numbers(table, "n"), numbers(table, "above_sum")
    return int(np.where(after, n - above, above).sum())


# ---------------------------------------------------------------------------------------------
# Read the columns of an audit from a frame of any dataframe engine, lazily

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
