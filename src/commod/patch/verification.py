"""A patch against the data it must not contain: nobody's group, nobody's own values."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from commod._data.columns import Column, iter_columns
from commod._data.groups import Groups, determines_group, read_groups
from commod._data.tables import n_rows_of
from commod.patch.content import (
    BinColumn,
    CategoryColumn,
    Content,
    MarginColumn,
    NumberColumn,
)
from commod.patch.fingerprint import columns_digest, model_digest

__all__ = ["Verification", "verify_against"]

FEW = 5  # people; a value that fewer share could be somebody's own
ROUND = 3  # significant digits; a number with no more is nobody's own, whoever has it
MOSTLY = 0.9  # of the people with a category in the group of the same name: it is that group


@dataclass(frozen=True)
class Verification:
    """What was looked for in a patch on `n_rows` rows, and what was found.

    Examples
    --------
    >>> Verification(100, ("values of the sensitive attribute",), ()).passed
    True
    """

    n_rows: int
    checked: tuple[str, ...]
    problems: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """Return whether nothing was found."""
        return not self.problems

    def __str__(self) -> str:
        if self.passed:
            return f"Nothing found on {self.n_rows:,} rows: {'; '.join(self.checked)}."
        return "\n".join([f"{len(self.problems)} found on {self.n_rows:,} rows:", *self.problems])


def verify_against(
    content: Content, X: Any, sensitive_features: Any, estimator: Any
) -> Verification:
    """Return what a patch holds that it must not."""
    read = {column.name: column for column in iter_columns(X, unread=[])}
    groups = read_groups(sensitive_features, n_rows_of(X))
    columns = {name: c for name, c in read.items() if name != content.base.score}
    checked = [
        "no value of the sensitive attribute",
        f"no category and no long number that fewer than {FEW} people share",
        "no column that tells the group exactly",
        "the columns of the fit rows",
    ]
    problems = [
        *_columns(content, columns),
        *_group_values(content, columns, groups),
        *_own_values(content, columns),
        *_telling(content, columns, groups),
    ]
    if estimator is not None:
        checked.append("the base model of the fit")
        problems += _model(content, estimator)
    return Verification(n_rows_of(X), tuple(checked), tuple(problems))


def _columns(content: Content, columns: Mapping[str, Column]) -> Iterator[str]:
    if columns_digest(columns) != content.seen.digest:
        yield (
            f"X has {len(columns)} columns that are not the {content.seen.n_columns} of the fit "
            "rows, or have another order."
        )
    for column in content.ratio.columns:
        if not isinstance(column, MarginColumn) and column.name not in columns:
            yield f"The patch reads column {column.name!r}, which X does not have."


def _group_values(content: Content, columns: Mapping[str, Column], groups: Groups) -> Iterator[str]:
    parts = [label if isinstance(label, tuple) else (label,) for label in groups.labels]
    scalars = {v for part in parts for v in part}
    values = {v for v in scalars if isinstance(v, str) and v}
    for column in content.ratio.columns:
        if column.name in values:
            yield f"The patch names a value of the sensitive attribute, {column.name!r}."
        if isinstance(column, CategoryColumn):
            named = [c.value for c in column.categories if c.value in scalars]
            for value in named:
                if _is_the_group(value, columns.get(column.name), groups):
                    yield (
                        f"Column {column.name!r} of the patch holds {value!r}, a value of the "
                        "sensitive attribute."
                    )
    texts = [*vars(content.reached).values(), *vars(content.base).values(), content.method]
    said = " ".join(text for text in texts if isinstance(text, str))
    for value in sorted(values):
        if len(value) > 2 and re.search(rf"(?<!\w){re.escape(value)}(?!\w)", said):
            yield f"The words of the patch hold {value!r}, a value of the sensitive attribute."


def _is_the_group(value: Any, column: Column | None, groups: Groups) -> bool:
    """Return whether a category is a group, not only called alike ("yes", "other")."""
    if column is None or value not in column.categories:
        return True
    has_it = column.values == column.categories.index(value)
    like = [value in (g if isinstance(g, tuple) else (g,)) for g in groups.labels]
    in_group = np.array(like)[groups.codes]
    return not has_it.any() or bool(in_group[has_it].mean() >= MOSTLY)


def _own_values(content: Content, columns: Mapping[str, Column]) -> Iterator[str]:
    for column in content.ratio.columns:
        found = columns.get(column.name)
        if found is None or isinstance(column, MarginColumn):
            continue
        if isinstance(column, CategoryColumn):
            n_rows = dict(zip(found.categories, _n_rows(found), strict=True))
            for category in column.categories:
                n = n_rows.get(category.value, 0)
                if n < FEW:
                    yield (
                        f"Column {column.name!r} of the patch holds {category.value!r}, a value of "
                        f"{n} of the {len(found):,} rows of X: fewer than {FEW}."
                    )
        else:
            yield from _own_numbers(column, found)


def _n_rows(column: Column) -> list[int]:
    counted = np.bincount(column.values[column.values >= 0], minlength=len(column.categories))
    return list(counted.tolist())


def _own_numbers(column: NumberColumn | BinColumn, found: Column) -> Iterator[str]:
    if found.kind != "numeric":
        yield f"The patch reads numbers in column {column.name!r}; X holds categories there."
        return
    numbers = column.edges if isinstance(column, BinColumn) else [column.if_missing]
    for number in numbers:
        n = int((found.values == number).sum())
        if 0 < n < FEW and float(f"{number:.{ROUND}g}") != number:
            yield (
                f"Column {column.name!r} of the patch holds {number!r}, the value of {n} of the "
                f"{len(found):,} rows of X: fewer than {FEW}."
            )


def _telling(content: Content, columns: Mapping[str, Column], groups: Groups) -> Iterator[str]:
    for column in content.ratio.columns:
        found = columns.get(column.name)
        if found is not None and any(
            determines_group(found, codes) for codes in (groups.codes, *groups.parts)
        ):
            yield f"The patch reads column {column.name!r}, which tells the group exactly."


def _model(content: Content, estimator: Any) -> Iterator[str]:
    if content.base.digest is None:
        yield "The patch has no fingerprint of its base model to compare with."
    elif model_digest(estimator) != content.base.digest:
        yield (
            f"The base model differs from the {content.base.model} that the update was fitted on, "
            "or was stored by another version of its library."
        )
