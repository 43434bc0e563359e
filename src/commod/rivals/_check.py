"""`check_rival`: check on a user's rows that a rival of their own keeps the contract."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from commod._data.tables import check_same_rows
from commod.exceptions import InputError
from commod.rivals._rows import DecisionRows
from commod.rivals.base import Rival


def check_rival(update: Rival, X: Any, y: Any = None, *, sensitive_features: Any) -> None:
    """Raise an error where a method breaks the contract of a rival; for its author's tests.

    The method is fitted on half of the rows and decides on the other half. These rules are
    checked:

    - Strength 0 changes nothing on either half.
    - `default_strengths` begins with 0 and rises.
    - Decisions have the right shape and range, and depend on their own row alone.
    - A copy decides the same.
    - `randomised` is True for a method that returns probabilities.
    - A method that needs the group refuses to decide without it. A row of an unknown group keeps
      its base decision.

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
    check_same_rows({"X": X, "y": y, "sensitive_features": sensitive_features})
    table = _LabelledTable(X, y, sensitive_features)
    fit_half, new_half = (table.take(np.arange(first, _num_samples(X), 2)) for first in (0, 1))
    strengths = update.default_strengths
    rises = strengths[0] == 0 and bool((np.diff(strengths) > 0).all())
    _require(rises, "default_strengths must rise from 0")
    _require(clone(update).get_params() == update.get_params(), "clone must keep the parameters")
    _check_strength_zero(fit_half.fit(update, 0.0), [fit_half, new_half])
    _check_decisions(fit_half.fit(update, strengths[-1]), new_half)


class _LabelledTable(NamedTuple):
    """A user's rows as `fit` takes them; `y` may be None."""

    X: Any
    y: Any
    groups: Any

    def take(self, index: Any) -> _LabelledTable:
        parts = (None if part is None else _safe_indexing(part, index) for part in self)
        return _LabelledTable(*parts)

    def fit(self, update: Rival, strength: float) -> Rival:
        fitted: Rival = clone(update).set_params(strength=strength)
        return fitted.fit(self.X, self.y, sensitive_features=self.groups)

    def read(self, update: Rival) -> DecisionRows:
        return update._read_rows(self.X, self.groups)


def _require(holds: bool, rule: str) -> None:
    if not holds:
        raise AssertionError(f"{rule}. See docs/rivals.md.")


def _check_strength_zero(update: Rival, tables: list[_LabelledTable]) -> None:
    for table in tables:
        rows = table.read(update)
        n_changes = int((update._decide_rows(rows) != rows.base.decisions).sum())
        _require(n_changes == 0, f"strength=0 must change nothing; it changes {n_changes} rows")


def _check_decisions(update: Rival, table: _LabelledTable) -> None:
    rows = table.read(update)
    positive = update._decide_rows(rows)
    _require(
        update.randomised or bool(np.isin(positive, (0.0, 1.0)).all()),
        "a method that returns probabilities sets randomised=True",
    )
    order = np.arange(len(rows))[::-3]
    reordered = update._decide_rows(table.take(order).read(update))
    _require(
        bool((reordered == positive[order]).all()),
        "a decision must depend on its row alone, not on the others or their order",
    )
    copied = copy.deepcopy(update)
    same = copied._decide_rows(table.read(copied)) == positive
    _require(bool(same.all()), "a copy decides the same")
    if update.needs_sensitive_features:
        _check_groups(update, table, rows)


def _check_groups(update: Rival, table: _LabelledTable, rows: DecisionRows) -> None:
    unknown = replace(rows, group=np.full(len(rows), -1, dtype=np.intp))
    _require(
        bool((update._decide_rows(unknown) == rows.base.decisions).all()),
        "a group that is not known (rows.group is -1) must keep its base decisions",
    )
    try:
        update.predict(table.X)
    except InputError:
        return
    _require(False, "a method that needs the group must derive from AwareRival and refuse")
