"""Bring rows of a frame onto this machine: all of them, or those that points come from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import validate_data

from commod._data.arrays import Codes
from commod._data.base_model import warn_about_base_model
from commod._data.columns import may_hold_codes, plain, read_columns
from commod._data.draws import key_hashes
from commod.exceptions import InputError
from commod.updates._fit_rows import FitRows, hash_order, warn_about_group_columns
from commod.updates._frames.columns import FrameTable
from commod.updates._frames.lines import Lines
from commod.updates._frames.refusals import (
    check_key,
    check_weights,
    missing_scores,
    missing_values,
    parameter_of,
    rows_share_keys,
)
from commod.updates._targeted import TargetedUpdate

if TYPE_CHECKING:
    import pyarrow as pa


MAX_ROWS_PER_KEY = 10  # on average: households are fine, regions are not
MAX_DEVIATION = 8.0  # standard deviations of the number of rows: rows do not share keys


# ---------------------------------------------------------------------------------------------
# All rows


class WholeTable(NamedTuple):
    """All rows of a table on this machine, as `fit` takes them.

    `hashes` (n,) are those of the key; None without one.
    """

    X: Any
    y: Any
    sensitive_features: Any
    sample_weight: Any
    hashes: NDArray[np.uint64] | None


def pull_whole(table: FrameTable, *, allow_unknown: bool = False) -> WholeTable:
    """Return all rows; missing and invalid values are refused, but groups if `allow_unknown`."""
    roles = {role: name for role, name in table.keys.items() if role not in ("above", "open")}
    others = [name for name in (table.weight, table.key) if name is not None]
    rows = _collect(table.lazy, [*table.features, table.score, *others, *roles.values()])
    if not len(rows):
        raise InputError("frame has 0 rows; at least 1 is needed.", parameter="frame")
    for role, name in roles.items():
        n_missing = rows[name].null_count
        if n_missing and not (allow_unknown and parameter_of(role) == "sensitive_features"):
            raise missing_values(role, n_missing, len(rows))
    if n_missing := rows[table.score].null_count:
        raise missing_scores(str(table.named.score), n_missing, len(rows))
    weight = hashes = None
    if table.weight is not None:
        weight = rows[table.weight].to_numpy()
        is_valid = (weight >= 0) & (weight < np.inf)
        check_weights(table, int((~is_valid).sum()))
    if table.key is not None:
        check_key(table, rows[table.key].null_count)
        hashes = key_hashes(rows[table.key].to_numpy())
        _check_keys(table, hashes)
    named = table.named
    groups = {name: _values(rows[roles[f"group {i}"]]) for i, name in enumerate(named.sensitive)}
    label = None if named.y_true is None else _values(rows[roles["y_true"]], typed=True)
    sensitive = groups if len(groups) > 1 else next(iter(groups.values()))
    return WholeTable(_features(table, rows), label, sensitive, weight, hashes)


def _collect(lazy: nw.LazyFrame[Any], columns: Sequence[str]) -> pa.Table:
    try:
        return lazy.select(*columns).collect(backend="pyarrow").to_native()
    except ImportError as error:
        raise InputError(
            "Rows of a frame come back through pyarrow: pip install 'commod-debiasing[parquet]'."
        ) from error


def _features(table: FrameTable, rows: pa.Table) -> Any:
    """Return X as a pandas frame; the scores are doubles."""
    X = rows.select(list(table.features)).to_pandas()
    if table.named.score in X:
        X[table.named.score] = rows[table.score].to_numpy()
    return X


def _values(column: pa.ChunkedArray, *, typed: bool = False) -> NDArray[Any]:
    """Return the values of a column as Python's own, None where missing, shape (n,).

    If `typed`, the array has their type; then no value is missing.
    """
    compute = import_module("pyarrow.compute")
    coded = column.combine_chunks().dictionary_encode()
    known = [plain(value) for value in coded.dictionary.to_pylist()]
    codes = compute.fill_null(coded.indices, len(known)).to_numpy(zero_copy_only=False)
    if typed:
        return np.asarray(np.array(known)[codes])
    values = np.empty(len(known) + 1, dtype=object)
    values[:-1] = known
    return np.asarray(values[codes])


# ---------------------------------------------------------------------------------------------
# Rows that points come from


class PulledRows(NamedTuple):
    """The rows that points come from: X, and the line, weight and hash of each row."""

    X: Any
    line: Codes
    weight: NDArray[np.float64]
    hashes: NDArray[np.uint64]


def pull_point_rows(lines: Lines, bound: int) -> PulledRows:
    """Return the rows whose draw is below the bound."""
    table = lines.table
    number, key, draw = (table.names.take(f"_commod_{name}") for name in ("line", "number", "draw"))
    lazy = lines.with_number(table.with_draws(key, draw), number)
    lazy = lazy.filter(nw.col(draw) < bound)
    weights = [] if table.weight is None else [table.weight]
    rows = _collect(lazy, [*table.features, table.score, key, number, *weights])
    hashes = key_hashes(rows[key].to_numpy())
    _check_keys(table, hashes)
    expected = lines.people.sum() * bound / 2**31
    if abs(len(rows) - expected) > max(MAX_DEVIATION * np.sqrt(expected), expected / 2):
        raise rows_share_keys(table, f"{len(rows):,} rows were drawn instead of {expected:,.0f}")
    return PulledRows(
        X=_features(table, rows),
        line=lines.of_numbers(rows[number].to_numpy()),
        weight=np.ones(len(rows)) if table.weight is None else rows[table.weight].to_numpy(),
        hashes=hashes,
    )


def _check_keys(table: FrameTable, hashes: NDArray[np.uint64]) -> None:
    """Refuse a key that so many rows share that folds are few clusters."""
    n_rows, n_keys = len(hashes), len(np.unique(hashes))
    if n_rows > MAX_ROWS_PER_KEY * n_keys:
        raise rows_share_keys(table, f"{n_rows:,} rows have {n_keys:,} different keys")


def read_point_rows(
    update: TargetedUpdate, all_lines: FitRows, pulled: PulledRows
) -> tuple[FitRows, Codes]:
    """Return the rows that points come from, in the order of their hashes, and their lines.

    Groups, labels and strata are those of the lines of all people, `all_lines`.
    """
    X = pulled.X
    columns = read_columns(X, skip=update._unread())
    validate_data(update, X, skip_check_array=True, reset=True)
    base = update._base(X, columns)
    rows = all_lines.take(pulled.line)
    known = {"classes": update.classes_, "pos_label": update.pos_label_, "label": rows.label}
    warn_about_base_model(update.estimator, X, base, **known)
    features = update._features(columns)
    update._columns_seen = [column.name for column in features]
    update._code_columns = [column.name for column in features if may_hold_codes(column)]
    update._n_fit_rows, update._scores_digest = all_lines.n_people, None
    rows = replace(rows, columns=features, base=base, weight=pulled.weight, hashes=pulled.hashes)
    rows = replace(rows, people=None, squares=None)
    update._check_locked(rows.columns)
    warn_about_group_columns(rows, update.locked_features)
    order = hash_order(rows)
    return rows.take(order), pulled.line[order]
