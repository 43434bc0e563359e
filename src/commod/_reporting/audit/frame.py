"""A frame of any dataframe engine → the counts of an audit: two group tables, and never rows."""

from __future__ import annotations

import difflib
import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
from narwhals.exceptions import DuplicateError
from numpy.typing import NDArray

from commod._data.codes import plain
from commod._data.groups import read_groups
from commod._data.labels import binary_outcome, read_labels
from commod._data.tables import duplicate_names
from commod._record import Agreement
from commod._reporting.audit.coding import Coding, names_of_groups, read_two_labels
from commod._reporting.audit.counts import Counts, count_people
from commod.exceptions import InputError, InputTypeError

__all__ = ["Decisions", "Tally", "read_decisions", "read_names", "read_rows", "tally"]

FloatArray = NDArray[np.float64]

SCORES = {"scores_before": "before", "scores_after": "after"}  # scores, and their decisions
MOST_DECISIONS = 27  # two values or none, of before, after and y_true
MOST_CELLS = 100_000  # a longer table is no table of groups, but of rows
ENGINES = "pandas, polars (lazy too), pyarrow, DuckDB or PySpark"


# ---------------------------------------------------------------------------------------------
# Which columns


def read_names(columns: Mapping[str, Any], sensitive_features: Any) -> dict[str, Hashable]:
    """Return the column of each part of the audit; sensitive ones are "group_0", "group_1", ...

    `columns` are those of the parameters that name one column, None where it is not given.
    """
    given = {name: column for name, column in columns.items() if column is not None}
    for name in ("before", "after"):
        if name not in given:
            raise InputError(f"{name} is None; pass the name of the column of decisions.")
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
                f"{type(column).__name__}. Arrays are audited by commod.audit."
            )
    repeated = [column for column in sensitive if sensitive.count(column) > 1]
    if repeated:
        raise InputError(f"sensitive_features names {repeated[0]!r} twice; name each column once.")
    return {**given, **{f"group_{i}": column for i, column in enumerate(sensitive)}}


def read_rows(frame: Any, names: Mapping[str, Hashable]) -> nw.LazyFrame[Any]:
    """Return the named columns under our names, lazily; NaN is null, scores are float64."""
    lazy, schema = _read_schema(frame)
    for name, column in names.items():
        if column not in schema:
            raise _no_column("sensitive_features" if _is_group(name) else name, column, schema)
    return lazy.select(*(_tidy(name, column, schema[column]) for name, column in names.items()))


def _read_schema(frame: Any) -> tuple[nw.LazyFrame[Any], Mapping[Any, Any]]:
    try:
        native = nw.from_native(frame, pass_through=True)
        if isinstance(native, nw.DataFrame | nw.LazyFrame):
            lazy = native.lazy()
            return lazy, lazy.collect_schema()
    except DuplicateError as error:
        columns = getattr(frame, "column_names", None) or frame.columns
        raise duplicate_names("frame", columns) from error
    raise InputTypeError(
        f"frame must be a table of {ENGINES}; got {type(frame).__name__}. Arrays are audited by "
        "commod.audit."
    )


def _is_group(name: str) -> bool:
    return name.startswith("group_")


def _no_column(name: str, column: Hashable, schema: Mapping[Any, Any]) -> InputError:
    known = list(map(str, schema))
    near = difflib.get_close_matches(str(column), known, n=1)
    listed = ", ".join(known[:20]) + (", ..." if len(known) > 20 else "")
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return InputError(f"{name}: no column {column!r} in the frame (columns: {listed}).{hint}")


def _tidy(name: str, column: Any, dtype: Any) -> nw.Expr:
    """Return a column under our name; scores and decisions in types every engine counts alike."""
    if dtype.is_nested():
        raise InputTypeError(
            f"Column {column!r} holds values of type {dtype}, which are neither a label nor the "
            "name of a group. Name a column of numbers, text or booleans."
        )
    values = nw.col(column)
    if name in SCORES:
        if not (dtype.is_numeric() or dtype == nw.Boolean):
            raise InputError(
                f"{name} must hold numbers; column {column!r} is {dtype}. Cast it to a float first."
            )
        values = values.cast(nw.Float64)
    elif not _is_group(name) and dtype.is_decimal():
        values = values.cast(nw.Float64)
    elif not _is_group(name) and dtype in (nw.Int128, nw.UInt128):
        values = values.cast(nw.Int64)
    if name in SCORES or dtype.is_float():
        values = nw.when(values <= math.inf).then(values)  # false of NaN in every engine
    return values.alias(name)


# ---------------------------------------------------------------------------------------------
# The first query: which decisions there are


@dataclass(frozen=True)
class Decisions:
    """What has to be known before groups are counted.

    `two_labels` are the negative and the positive one, and whether the latter is good. `means` and
    `ends` (lowest, highest) are of the scores that are given, by their name; `by_decision` are the
    mean scores of negative and of positive decisions, None where one is not made.
    """

    n_undecided: int
    two_labels: tuple[Any, Any, bool]
    means: dict[str, float]
    ends: dict[str, tuple[float, float]]
    by_decision: dict[str, tuple[float, float] | None]


def read_decisions(
    rows: nw.LazyFrame[Any], names: Mapping[str, Hashable], labels: tuple[Any, Any]
) -> Decisions:
    """Count people by decisions and true label, and refuse what cannot be audited.

    `labels` are pos_label and favorable_label, None where not named.
    """
    keys = [name for name in ("before", "after", "y_true") if name in names]
    scores = [name for name in SCORES if name in names]
    table = _fetch(_by_decisions(rows, keys, scores), MOST_DECISIONS)
    if table is None:
        raise InputError(
            "Decisions and labels hold more than two different values. Give all one coding; scores "
            "are compared with the threshold first."
        )
    n = _numbers(table, "n")
    missing = {name: np.array([v is None for v in table[name]], dtype=bool) for name in keys}
    decided = ~(missing["before"] & missing["after"])
    _check_decided(n, decided)
    _check_known(names, {name: int(n[lacks & decided].sum()) for name, lacks in missing.items()})
    kept = {name: [v for v, k in zip(vs, decided, strict=True) if k] for name, vs in table.items()}
    _check_scores(names, kept, scores)
    read = {name: read_labels(kept[name], name) for name in keys}
    two_labels = read_two_labels(read, labels)
    outcome = {name: binary_outcome(v, name, two_labels[1]) for name, v in read.items()}
    return Decisions(
        n_undecided=int(n[~decided].sum()),
        two_labels=two_labels,
        means={s: float(_numbers(kept, f"{s}_sum").sum() / n[decided].sum()) for s in scores},
        ends={s: (min(kept[f"{s}_low"]), max(kept[f"{s}_high"])) for s in scores},
        by_decision={s: _by_decision(kept, s, outcome[SCORES[s]]) for s in scores},
    )


def _by_decisions(rows: nw.LazyFrame[Any], keys: list[str], scores: list[str]) -> nw.LazyFrame[Any]:
    """Return people by decisions and label, with the missing, outside, sum and ends of scores."""
    per_row: dict[str, nw.Expr] = {}
    sums: list[nw.Expr] = [nw.len().alias("n")]
    for name in scores:
        score = nw.col(name)
        per_row[f"{name}_missing"] = score.is_null()
        per_row[f"{name}_outside"] = (score < 0) | (score > 1)
        sums += [nw.col(f"{name}_{what}").sum() for what in ("missing", "outside")]
        sums += [
            score.sum().alias(f"{name}_sum"),
            score.min().alias(f"{name}_low"),
            score.max().alias(f"{name}_high"),
        ]
    return _counted(rows, per_row).group_by(*keys).agg(*sums)


def _counted(rows: nw.LazyFrame[Any], flags: Mapping[str, nw.Expr]) -> nw.LazyFrame[Any]:
    """Return the rows with flags as 0.0 and 1.0: every engine adds floats, few add booleans."""
    if not flags:
        return rows
    return rows.with_columns(
        **{
            name: nw.when(flag).then(nw.lit(1.0)).otherwise(nw.lit(0.0))
            for name, flag in flags.items()
        }
    )


def _fetch(query: nw.LazyFrame[Any], most: int) -> dict[str, list[Any]] | None:
    """Bring a group table of at most `most` lines to Python; None where it is longer."""
    try:
        table = query.head(most + 1).collect()
    except ImportError as error:
        raise InputError(
            "Group tables of this engine come back through pyarrow: pip install "
            "'commod-debiasing[parquet]'."
        ) from error
    if len(table) > most:
        return None
    return {name: [plain(v) for v in table[name].to_list()] for name in table.columns}


def _numbers(table: Mapping[str, list[Any]], name: str) -> FloatArray:
    return np.array([0.0 if v is None else v for v in table[name]], dtype=np.float64)


def _check_decided(n: FloatArray, decided: NDArray[np.bool_]) -> None:
    if not n.sum():
        raise InputError("frame has 0 rows; at least 1 is needed.")
    if not decided.any():
        raise InputError(
            f"before and after are missing in all {int(n.sum()):,} rows. Pass the columns of the "
            "decisions."
        )


def _check_known(names: Mapping[str, Hashable], n_missing: Mapping[str, int]) -> None:
    for name, n in n_missing.items():
        if n:
            rest = " Rows without either decision are left out." if name != "y_true" else ""
            raise InputError(
                f"{name}: column {names[name]!r} is missing (NaN or null) in {n:,} row(s) that "
                f"have a decision. Decisions and labels must be known: drop those rows first.{rest}"
            )


def _check_scores(
    names: Mapping[str, Hashable], table: Mapping[str, list[Any]], scores: list[str]
) -> None:
    for name in scores:
        n_missing, n_outside = (
            int(_numbers(table, f"{name}_{what}").sum()) for what in ("missing", "outside")
        )
        if n_missing:
            raise InputError(
                f"{name}: column {names[name]!r} is missing (NaN or null) in {n_missing:,} row(s) "
                "that have a decision. Drop those rows first, or leave the scores out."
            )
        if n_outside:
            raise InputError(
                f"{name} has {n_outside:,} value(s) outside [0, 1] in column {names[name]!r}; pass "
                "probabilities. Margins become scores through the sigmoid 1 / (1 + exp(-z))."
            )


def _by_decision(
    table: Mapping[str, list[Any]], name: str, positive: NDArray[np.bool_]
) -> tuple[float, float] | None:
    """Return the mean scores of negative and of positive decisions."""
    if positive.all() or not positive.any():
        return None
    n, total = _numbers(table, "n"), _numbers(table, f"{name}_sum")
    no, yes = (float(total[kept].sum() / n[kept].sum()) for kept in (~positive, positive))
    return no, yes


# ---------------------------------------------------------------------------------------------
# The second query: people by group


@dataclass(frozen=True)
class Tally:
    """What was counted: people, and sums of scores, by group.

    `mean_scores` (n_groups,) are before and after. `n_unlike` decisions are not what score >
    threshold says; None without either.
    """

    coding: Coding
    counts: Counts
    mean_scores: tuple[FloatArray | None, FloatArray | None]
    agreement: Agreement | None
    n_unlike: int | None


def tally(
    rows: nw.LazyFrame[Any],
    names: Mapping[str, Hashable],
    decisions: Decisions,
    threshold: float | None,
) -> Tally:
    """Count people by group, true label and decisions."""
    keys = [name for name in names if name not in SCORES]
    decided = rows.filter(~(nw.col("before").is_null() & nw.col("after").is_null()))
    table = _fetch(_by_group(decided, keys, decisions, threshold), MOST_CELLS)
    if table is None:
        raise InputError(
            f"sensitive_features make more than {MOST_CELLS:,} lines of groups and decisions, too "
            "many to be compared. Put numbers into bins, or name fewer columns."
        )
    sensitive = {name: table[name] for name in keys if _is_group(name)}
    _check_groups(sensitive, _numbers(table, "n"))
    groups = read_groups({name: _objects(v) for name, v in sensitive.items()}, len(table["n"]))
    columns = tuple(str(names[name]) for name in sensitive)
    outcome = {
        name: binary_outcome(read_labels(table[name], name), name, decisions.two_labels[1])
        for name in keys
        if not _is_group(name)
    }
    counts = count_people(
        groups.codes,
        len(groups.labels),
        outcome["before"],
        outcome["after"],
        outcome.get("y_true"),
        _numbers(table, "n"),
    )
    before, after = (_group_means(table, name, groups.codes, counts) for name in SCORES)
    return Tally(
        coding=Coding(names_of_groups(groups.labels, columns), *decisions.two_labels),
        counts=counts,
        mean_scores=(before, after),
        agreement=_agreement(table, decisions.ends),
        n_unlike=_n_unlike(table, outcome["after"]),
    )


def _by_group(
    decided: nw.LazyFrame[Any], keys: list[str], decisions: Decisions, threshold: float | None
) -> nw.LazyFrame[Any]:
    """Return people by group, label and decisions, with sums of their scores."""
    scores = list(decisions.means)
    flags: dict[str, nw.Expr] = {}
    products: dict[str, nw.Expr] = {}
    if threshold is not None and "scores_after" in scores:
        flags["above"] = nw.col("scores_after") > threshold
    if len(scores) == 2:
        before, after = nw.col(scores[0]), nw.col(scores[1])
        flags["same"] = before == after
        first, second = (_centred(name, decisions) for name in scores)
        products = {
            "distance": (before - after).abs(),
            "first": first * first,
            "second": second * second,
            "both": first * second,
        }
    summed = [*scores, *flags, *products]
    prepared = _counted(decided, flags)
    prepared = prepared.with_columns(**products) if products else prepared
    return prepared.group_by(*keys).agg(
        nw.len().alias("n"), *(nw.col(name).sum().alias(f"{name}_sum") for name in summed)
    )


def _centred(name: str, decisions: Decisions) -> nw.Expr:
    """Return the distance of scores from their mean, as a share of their range: sums stay exact."""
    low, high = decisions.ends[name]
    return (nw.col(name) - decisions.means[name]) / (high - low or 1.0)


def _check_groups(sensitive: Mapping[str, list[Any]], n: FloatArray) -> None:
    missing = np.any([[v is None for v in values] for values in sensitive.values()], axis=0)
    n_missing = int(n[missing].sum())
    if n_missing:
        plural = "s" if n_missing > 1 else ""
        raise InputError(
            f"sensitive_features has {n_missing:,} missing value{plural} in {int(n.sum()):,} rows. "
            "Drop those rows, or give them a group of their own, e.g. with fill_null('unknown')."
        )


def _objects(values: list[Any]) -> NDArray[Any]:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _group_means(
    table: Mapping[str, list[Any]], name: str, codes: NDArray[np.intp], counts: Counts
) -> FloatArray | None:
    if f"{name}_sum" not in table:
        return None
    sums = np.bincount(codes, _numbers(table, f"{name}_sum"), minlength=len(counts.sizes))
    return np.asarray(sums / counts.sizes)


def _agreement(
    table: Mapping[str, list[Any]], ends: Mapping[str, tuple[float, float]]
) -> Agreement | None:
    """Return how close the scores are; ranks, which need rows, are not compared."""
    if len(ends) < 2:
        return None
    total = {
        name: float(_numbers(table, f"{name}_sum").sum())
        for name in ("distance", "same", "first", "second", "both")
    }
    n = float(_numbers(table, "n").sum())
    correlation = None
    if all(low < high for low, high in ends.values()):
        correlation = total["both"] / math.sqrt(total["first"] * total["second"])
        correlation = min(max(correlation, -1.0), 1.0)
    return Agreement(
        mean_absolute_difference=total["distance"] / n,
        correlation=correlation,
        rank_correlation=None,
        share_identical=total["same"] / n,
    )


def _n_unlike(table: Mapping[str, list[Any]], after: NDArray[np.bool_]) -> int | None:
    if "above_sum" not in table:
        return None
    n, above = _numbers(table, "n"), _numbers(table, "above_sum")
    return int(np.where(after, n - above, above).sum())
