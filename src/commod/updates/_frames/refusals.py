"""Refuse rows of a frame that a fit cannot use, or that differ from one query to the next."""

from __future__ import annotations

from typing import Any

import numpy as np

from commod._data.arrays import Codes
from commod._text import n_of
from commod.exceptions import BaseModelError, InputError
from commod.updates._frames.columns import FrameTable

MAX_WEIGHT_DEVIATION = 1e-6  # relative, of two sums of the same weights


def parameter_of(role: str) -> str:
    """Return the parameter that names the column of a role, such as "group 0".

    Examples
    --------
    >>> parameter_of("group 0"), parameter_of("y_true")
    ('sensitive_features', 'y_true')
    """
    return {"group": "sensitive_features", "within": "constraints"}.get(role.split()[0], role)


def missing_values(role: str, n_missing: int, n_rows: int) -> InputError:
    """Return the error for missing groups, labels or conditions."""
    parameter = parameter_of(role)
    return InputError(
        f"{parameter}: {n_of(n_missing, 'missing value')} in {n_rows:,} rows. Drop those rows, or "
        "give them a value of their own, e.g. with fill_null('unknown').",
        parameter=parameter,
    )


def missing_scores(column: str, n_missing: int, n_rows: int) -> BaseModelError:
    """Return the error for scores that are missing or outside [0, 1]."""
    return BaseModelError(
        f"Column {column!r} holds no score in [0, 1] in {n_missing:,} of {n_rows:,} rows (NaN, "
        "null or outside). Every row needs a score: drop these rows, or make probabilities of "
        "margins with 1 / (1 + exp(-m))."
    )


def check_key(table: FrameTable, n_bad: int) -> None:
    """Refuse missing keys."""
    _refuse_bad("key", table.named.key, "missing", n_bad)


def check_weights(table: FrameTable, n_bad: int) -> None:
    """Refuse invalid weights."""
    what = "missing, negative, NaN or infinite"
    _refuse_bad("sample_weight", table.named.sample_weight, what, n_bad)


def _refuse_bad(name: str, column: str | None, what: str, n_bad: int) -> None:
    if n_bad:
        raise InputError(
            f"{name}: column {column!r} is {what} in {n_of(n_bad, 'row')}. Drop these rows, or "
            "correct them.",
            parameter=name,
        )


def rows_share_keys(table: FrameTable, found: str) -> InputError:
    """Return the error for a key that many rows share; `found` says what was counted."""
    return InputError(
        f"key={table.named.key!r}: {found}. Too many rows share a key. Name a column that differs "
        "from row to row.",
        parameter="key",
    )


# ---------------------------------------------------------------------------------------------
# Rows that differ between queries
#
# A fit asks its engine several times. A frame that is a query runs anew each time, so a random
# number or a limit without an order gives other rows. Every later query must count the people of
# the first.


def rows_differ() -> InputError:
    """Return the error for a frame whose rows are not the same in two queries."""
    return InputError(
        "The rows of the frame differ between two queries of the same fit. The frame may be a "
        "query with random numbers or with a limit, or somebody writes to its table. Store its "
        "rows first (as a table, in a file, or with cache() in Spark), and fit on these.",
        parameter="frame",
    )


def check_same_people(
    first: tuple[Codes, Any], second: tuple[Codes, Any], tolerance: float = 0.0
) -> None:
    """Refuse two counts, each of lines and their people, that differ in any line.

    None as people: one for each entry. Weights may differ by a relative `tolerance`, because
    engines add them in any order.

    Examples
    --------
    >>> check_same_people((np.array([0, 1]), np.ones(2)), (np.array([1, 0]), np.ones(2)))
    """
    n_lines = max(int(line.max(initial=-1)) for line, _ in (first, second)) + 1
    before, after = (np.bincount(line, people, n_lines) for line, people in (first, second))
    if not np.allclose(before, after, rtol=tolerance, atol=0.0):
        raise rows_differ()
