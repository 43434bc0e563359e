"""Draw rows for refits, stratified by group and true label, and prepare an update for them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from commod._data.codes import code_array, joint_codes
from commod._data.columns import UNNAMED, Column, Scalar, read_columns
from commod._data.groups import Groups, read_groups
from commod._data.labels import check_length, read_labels
from commod._data.tables import check_same_rows, n_rows_of, take_rows
from commod.updates._interface import RawRows
from commod.updates.base import BaseUpdate

MAX_SEED = 2**31 - 1

CategorySets = Mapping[str, frozenset[Scalar | None]]
Stratum = tuple[NDArray[np.intp], int]  # the rows of a stratum, and how many of them to draw


@dataclass(frozen=True)
class RowSampler:
    """Draws the rows of refits, and prepares unfitted copies of an update for them.

    `rows` are the rows to draw from. `group` (n,) or (n, n_sensitive) holds their sensitive values.
    `share` is the share of the rows in a sample; None for the bootstrap. `common` has the
    categories of each column that may have points; None among them is "missing".
    """

    rows: RawRows
    group: NDArray[Any]
    share: float | None
    strata: list[Stratum]
    common: CategorySets

    @classmethod
    def read(cls, update: BaseUpdate, rows: RawRows, share: float | None) -> RowSampler:
        """Check the rows before any work."""
        check_same_rows(rows.by_name())
        n_rows = n_rows_of(rows.X)
        labels = None if rows.y is None else read_labels(rows.y, "y")
        if labels is not None:
            check_length(labels, "y", n_rows)
        unknown = getattr(update, "unknown_groups", "error")
        groups = read_groups(rows.sensitive_features, n_rows, unknown)
        # the last line, all None, is that of unknown groups, whose code is −1
        values = np.full((len(groups.labels) + 1, max(1, len(groups.parts))), None, dtype=object)
        values[:-1] = [label if groups.parts else (label,) for label in groups.labels]
        return cls(
            rows=RawRows(rows.X, labels, rows.sensitive_features),
            group=values[groups.codes] if groups.parts else values[groups.codes, 0],
            share=share,
            strata=_strata(groups, labels, share, update.min_group_size),
            common=_common_categories(rows.X, update),
        )

    def draw(self, random: np.random.RandomState) -> dict[str, Any]:
        """Return the arguments of `fit`: a sample of each stratum, in the order of the rows."""
        is_bootstrap = self.share is None
        drawn = [random.choice(rows, size, replace=is_bootstrap) for rows, size in self.strata]
        index = np.sort(np.concatenate(drawn))
        return {
            "X": take_rows(self.rows.X, index),
            "y": None if self.rows.y is None else self.rows.y[index],
            "sensitive_features": self.group[index],
        }

    def unfitted_copy(self, update: BaseUpdate, random: np.random.RandomState) -> BaseUpdate:
        """Return a copy for one refit: without a progress bar, with a seed and smaller minima."""
        copied: BaseUpdate = clone(update)
        params = copied.get_params()
        changed: dict[str, Any] = {}
        if "progress" in params:
            changed["progress"] = False
        if "random_state" in params and params["random_state"] is None:
            changed["random_state"] = int(random.randint(MAX_SEED))
        for name in ("min_group_size", "min_category_size"):
            if self.share is not None and isinstance(params.get(name), int | np.integer):
                # keep 2 or more: at 1, every category with one row would get points
                lowered = math.ceil(self.share * params[name])
                changed[name] = max(min(2, params[name]), lowered)
        copied.set_params(**changed)
        return copied.edit_columns(partial(_split_rare_categories, common=self.common))


def _strata(
    groups: Groups, labels: NDArray[Any] | None, share: float | None, min_group_size: int
) -> list[Stratum]:
    """Return the rows of each group and true label, and how many of them to draw.

    Sizes are rounded up in groups that are part of the constraint, and down in the others. As
    `min_group_size` is lowered by the same share, every refit compares the same groups.
    """
    is_large = np.append(groups.sizes >= min_group_size, False)  # −1, not known: the last entry
    known = groups.codes + 1
    parts = [known] if labels is None else [known, code_array(labels).codes]
    codes, _ = joint_codes(parts)
    order = np.argsort(codes, kind="stable")
    strata = []
    for rows in np.split(order, np.flatnonzero(np.diff(codes[order])) + 1):
        size = len(rows)
        if share is not None:
            rounded = math.ceil if is_large[groups.codes[rows[0]]] else math.floor
            size = min(size, rounded(share * size))
        strata.append((rows.astype(np.intp), size))
    return strata


def _common_categories(X: Any, update: BaseUpdate) -> CategorySets:
    """Return the categories of each column that may have points in a fit on all rows."""
    smallest = getattr(update, "min_category_size", None)
    if not isinstance(smallest, int | np.integer):
        return {}
    common = {}
    for column in read_columns(X, skip=update.unread_columns()):
        if column.kind == "category":
            n_rows = np.bincount(column.values + 1, minlength=len(column.categories) + 1)
            sizes = zip((None, *column.categories), n_rows.tolist(), strict=True)
            common[column.name] = frozenset(c for c, n in sizes if n >= smallest)
    return common


def _split_rare_categories(column: Column, common: CategorySets) -> Column:
    """Return a column in which each row of a rare category has a category of its own.

    A category with one row gets no points. Rare categories must not become "missing" instead:
    "missing" may have points, and together they could be common.
    """
    if column.kind != "category" or column.name not in common:
        return column
    kept = common[column.name]
    is_rare = np.array([c not in kept for c in (*column.categories, None)])[column.values]
    if not is_rare.any():
        return column
    n_known, n_rare = len(column.categories), int(is_rare.sum())
    values = column.values.copy()
    values[is_rare] = n_known + np.arange(n_rare)
    new_names = (f"{UNNAMED}rare {i}" for i in range(n_rare))
    return replace(column, values=values, categories=(*column.categories, *new_names))
