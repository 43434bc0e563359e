"""What a method of one's own must keep, checked on rows: `check_rival`."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import _safe_indexing

from commod.exceptions import InputError
from commod.rivals.base import DecisionRows, Rival

__all__ = ["check_rival"]


def check_rival(update: Rival, X: Any, y: Any = None, *, sensitive_features: Any) -> None:
    """Raise where a method breaks the contract of a rival; for the tests of its author.

    It is fitted on half of the rows and decides on the others. Checked: strength 0 changes nothing
    on either; the default sweep begins with 0 and rises; decisions have the right shape and range,
    depend on their row alone, and survive copying; what is declared as needed at predict time, and
    as drawn by lot, is; a group that is not known keeps its base decisions.

    Parameters
    ----------
    update : Rival
        Unfitted, with a fitted base model.
    X, y, sensitive_features
        Rows as in `fit`.

    Examples
    --------
    >>> from commod.datasets import make_biased
    >>> from commod.rivals import RejectOption, check_rival
    >>> from sklearn.linear_model import LogisticRegression
    >>> data = make_biased(400, random_state=0)
    >>> model = LogisticRegression().fit(data.data, data.target)
    >>> groups = data.sensitive_features
    >>> check_rival(RejectOption(model), data.data, data.target, sensitive_features=groups)
    """
    if not isinstance(update, Rival):
        raise InputError(f"check_rival takes a Rival; got {type(update).__name__}.")
    n = X.shape[0] if hasattr(X, "shape") else len(X)
    halves = np.arange(0, n, 2), np.arange(1, n, 2)
    fit_rows, new_rows = (
        [
            None if part is None else _safe_indexing(part, rows)
            for part in (X, y, sensitive_features)
        ]
        for rows in halves
    )
    sweep = update.default_strengths
    _require(
        sweep[0] == 0 and bool((np.diff(sweep) > 0).all()), "default_strengths must rise from 0"
    )
    _require(clone(update).get_params() == update.get_params(), "clone must keep the parameters")
    _check_neutral(_fitted(update, 0.0, fit_rows), [fit_rows, new_rows])
    _check_decisions(_fitted(update, sweep[-1], fit_rows), new_rows)


def _require(holds: bool, rule: str) -> None:
    if not holds:
        raise AssertionError(f"{rule}. See docs/rivals.md.")


def _fitted(update: Rival, strength: float, rows: list[Any]) -> Rival:
    X, y, groups = rows
    fitted: Rival = clone(update).set_params(strength=strength)
    return fitted.fit(X, y, sensitive_features=groups)


def _read(update: Rival, rows: list[Any], order: Any = slice(None)) -> DecisionRows:
    X, groups = (_safe_indexing(part, order) for part in (rows[0], rows[2]))
    return update._read_rows(X, groups)


def _check_neutral(update: Rival, parts: list[list[Any]]) -> None:
    for rows in parts:
        read = _read(update, rows)
        n_changed = int((update._checked_decisions(read) != read.base.decisions).sum())
        _require(n_changed == 0, f"strength=0 must change nothing; it changes {n_changed} rows")


def _check_decisions(update: Rival, rows: list[Any]) -> None:
    positive = update._checked_decisions(_read(update, rows))
    n = len(rows[2])
    by_lot = positive.dtype != np.bool_ and not np.isin(positive, (0.0, 1.0)).all()
    _require(not by_lot or update.randomised, "a method that returns chances sets randomised=True")
    order = np.arange(n)[::-3]
    _require(
        bool((update._checked_decisions(_read(update, rows, order)) == positive[order]).all()),
        "a decision must depend on its row alone, not on the others or their order",
    )
    again = copy.deepcopy(update)
    _require(
        bool((again._checked_decisions(_read(again, rows)) == positive).all()),
        "a copy decides the same",
    )
    if update.needs_sensitive_features:
        _check_groups(update, rows)


def _check_groups(update: Rival, rows: list[Any]) -> None:
    read = _read(update, rows)
    nobody = replace(read, group=np.full(len(read), -1, dtype=np.intp))
    _require(
        bool((update._checked_decisions(nobody) == read.base.decisions).all()),
        "a group that is not known (rows.group is -1) must keep its base decisions",
    )
    try:
        update.predict(rows[0])
    except InputError:
        return
    _require(False, "a method that needs the group must derive from AwareRival and refuse")
