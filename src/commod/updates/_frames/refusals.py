"""Refuse rows of a frame that a fit cannot use, with their number."""

from __future__ import annotations

from commod._text import n_of
from commod.exceptions import BaseModelError, InputError
from commod.updates._frames.columns import FrameTable


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
