"""A patch against the data it must not contain: nobody's group, nobody's own values."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from commod._data.base_model import base_classes, base_scores, scores_digest, scores_digest_by_row
from commod._data.columns import Column, iter_columns
from commod._data.disclosure import MIN_CATEGORY_SIZE
from commod._data.groups import Groups, read_groups_or_unknown
from commod._data.proxies import ProxyTest
from commod._data.tables import check_same_rows, n_rows_of
from commod._statistics.score_map import ramp_ends
from commod._text import visible
from commod.patch.content import (
    BinColumn,
    CategoryColumn,
    Content,
    NumberColumn,
    before_last_edit,
)
from commod.patch.fingerprint import columns_digest, model_digest
from commod.scorecard import crossing_ends

ROUND = 3  # significant digits; a number with no more of them identifies nobody
MOSTLY = 0.9  # of the people with a category are in the group of that name: it is the group


@dataclass(frozen=True)
class Verification:
    """The checks of a patch against `n_rows` rows, and the problems that they found.

    Examples
    --------
    >>> Verification(100, ("values of the sensitive features",), ()).passed
    True
    """

    n_rows: int
    checked: tuple[str, ...]
    problems: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """Return whether there is no problem."""
        return not self.problems

    def __str__(self) -> str:
        if self.passed:
            return f"No problem on {self.n_rows:,} rows. Checked: {'; '.join(self.checked)}."
        head = f"Problems on {self.n_rows:,} rows: {len(self.problems)}."
        return "\n".join([head, *map(visible, self.problems)])


def verify_against(
    content: Content,
    X: Any,
    sensitive_features: Any,
    estimator: Any,
    *,
    rows_are_sample: bool = False,
) -> Verification:
    """Check that a patch fits the data and holds nothing that it must not hold.

    If `rows_are_sample`, nothing is said about values that few people share: a sample of the fit
    rows does not count them.
    """
    check_same_rows({"X": X, "sensitive_features": sensitive_features})
    read = {column.name: column for column in iter_columns(X, unread=[])}
    # nobody knows how columns go together with unknown groups
    groups = read_groups_or_unknown(sensitive_features, n_rows_of(X))
    known, is_known = groups.take(groups.is_known), groups.is_known
    columns = {name: c for name, c in read.items() if name != content.base.score}
    of_known = {name: column.take(is_known) for name, column in columns.items()}
    checked = [
        "no value of the sensitive features",
        *[f"no value, bin or long number that fewer than {MIN_CATEGORY_SIZE} people share"]
        * (not rows_are_sample),
        "no column that determines the group or nearly does",
        "the columns of the fit rows",
    ]
    problems = [*_columns(content, columns)]
    versions = [content]
    while versions[-1].history:  # the versions before edits by hand are in the file, too
        versions.append(before_last_edit(versions[-1]))
    for version in versions:
        found = (
            *_group_values(version, of_known, known),
            *([] if rows_are_sample else _own_values(version, columns)),
            *_determining_columns(version, of_known, known),
            *_own_scores(version),
        )
        problems += [problem for problem in found if problem not in problems]
    if estimator is not None:
        checked.append("the base model of the fit")
        problems += _model(content, estimator, X, list(read.values()))
    return Verification(n_rows_of(X), tuple(checked), tuple(problems))


def _columns(content: Content, columns: Mapping[str, Column]) -> Iterator[str]:
    if columns_digest(columns) != content.seen.digest:
        yield (
            f"X has {len(columns)} columns. They differ from the {content.seen.n_columns} columns "
            "of the fit rows, or have another order."
        )
    for column in content.ratio.frame_columns:
        if column.name not in columns:
            yield f"The patch reads column {column.name!r}, which X does not have."


def _group_values(content: Content, columns: Mapping[str, Column], groups: Groups) -> Iterator[str]:
    """Yield where the patch names a value of the sensitive features."""
    values = {value for label in groups.labels for value in _values_of(label)}
    names = {value for value in values if isinstance(value, str) and value}
    for column in content.ratio.columns:
        if column.name in names:
            yield f"The patch names a value of the sensitive features, {column.name!r}."
        for category in column.categories if isinstance(column, CategoryColumn) else ():
            value = category.value
            if value in values and _is_the_group(value, columns.get(column.name), groups):
                yield (
                    f"Column {column.name!r} of the patch holds {value!r}, a value of the "
                    "sensitive features."
                )
    # Only what users wrote: our own sentences have words such as "other", and name no group.
    texts = [content.base.score, content.by]
    texts += [text for edit in content.history for text in (edit.record.by, edit.record.note)]
    text = " ".join(filter(None, texts))
    for name in sorted(names):
        if len(name) > 2 and re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text):
            yield f"The texts of the patch contain {name!r}, a value of the sensitive features."


def _values_of(group: Any) -> tuple[Any, ...]:
    """Return the values of a group; several sensitive columns have one value each."""
    return group if isinstance(group, tuple) else (group,)


def _is_the_group(value: Any, column: Column | None, groups: Groups) -> bool:
    """Return whether a category is a group and does not just share its name ("yes", "other")."""
    if column is None or value not in column.categories:
        return True
    has_it = column.values == column.categories.index(value)
    named = [value in _values_of(label) for label in groups.labels]
    in_group = np.array(named)[groups.codes]
    return not has_it.any() or bool(in_group[has_it].mean() >= MOSTLY)


def _own_values(content: Content, columns: Mapping[str, Column]) -> Iterator[str]:
    for column in content.ratio.frame_columns:
        column_of_X = columns.get(column.name)
        if column_of_X is None:
            continue
        n_missing = int(column_of_X.is_missing().sum())
        if column.missing is not None and n_missing < MIN_CATEGORY_SIZE:
            yield _few(column.name, "points for missing values", n_missing, column_of_X)
        if isinstance(column, CategoryColumn):
            codes, values = column_of_X.values, column_of_X.categories
            counted = np.bincount(codes[codes >= 0], minlength=len(values)).tolist()
            n_rows = dict(zip(values, counted, strict=True))
            for category in column.categories:
                n = n_rows.get(category.value, 0)
                if n < MIN_CATEGORY_SIZE:
                    yield _few(column.name, f"{category.value!r}, a value", n, column_of_X)
        else:
            yield from _own_numbers(column, column_of_X)


def _own_numbers(column: NumberColumn | BinColumn, column_of_X: Column) -> Iterator[str]:
    if column_of_X.kind != "numeric":
        yield f"The patch reads numbers in column {column.name!r}; X holds categories there."
        return
    if isinstance(column, BinColumn):
        numbers = column.edges
    else:  # often the same number twice
        numbers = sorted({column.if_missing, column.centre})
    for number in numbers:
        n = int((column_of_X.values == number).sum())
        if 0 < n < MIN_CATEGORY_SIZE and float(f"{number:.{ROUND}g}") != number:
            yield _few(column.name, f"{number!r}, the value", n, column_of_X)
    if isinstance(column, BinColumn):
        known = column_of_X.values[~column_of_X.is_missing()]
        bins = np.searchsorted(column.edges, known, side="right")
        for i, n in enumerate(np.bincount(bins, minlength=len(column.bins)).tolist()):
            if n < MIN_CATEGORY_SIZE:
                yield _few(column.name, f"points for bin {i + 1}, the bin", n, column_of_X)


def _own_scores(content: Content) -> Iterator[str]:
    """Yield the knots of the calibration map that may be the score of one person.

    Knots that follow from the threshold tell about nobody.
    """
    if content.calibration is None:
        return
    threshold = content.base.threshold
    known = {threshold, *ramp_ends(threshold), *crossing_ends(threshold)}
    for knot in content.calibration.knots:
        if knot.score not in known and float(f"{knot.score:.{ROUND}g}") != knot.score:
            yield (
                f"The calibration map of the patch has a knot at {knot.score!r}. A number with "
                f"more than {ROUND} digits may be the score of one person."
            )


def _few(name: str, what: str, n: int, column_of_X: Column) -> str:
    return (
        f"Column {name!r} of the patch holds {what} of {n} of the {len(column_of_X):,} rows of X: "
        f"fewer than {MIN_CATEGORY_SIZE}."
    )


def _determining_columns(
    content: Content, columns: Mapping[str, Column], groups: Groups
) -> Iterator[str]:
    test = ProxyTest(groups.codings)
    for column in content.ratio.columns:
        column_of_X = columns.get(column.name)
        if column_of_X is None:
            continue
        if test.determines(column_of_X):
            yield f"The patch reads column {column.name!r}, which determines the group."
            continue
        prediction = test.predict(column_of_X)
        if prediction.is_near_copy:
            yield (
                f"The patch reads column {column.name!r}, which nearly determines the group: "
                f"alone, it predicts the group with an area under the curve of "
                f"{prediction.area:.3f}."
            )


def _model(content: Content, estimator: Any, X: Any, columns: list[Column]) -> Iterator[str]:
    base = content.base
    if base.digest is not None:
        if model_digest(estimator) != base.digest:
            yield (
                f"The base model differs from the {base.model} that the update was fitted on, "
                "or was stored by another version of its library."
            )
    elif base.scores_digest is None:
        yield "The patch has no fingerprint of its base model to compare with."
    else:
        labels = content.labels
        classes = base_classes(estimator, np.array([labels.negative, labels.positive]))
        pos_label, threshold = labels.positive, base.threshold
        scores = base_scores(
            estimator, X, columns, classes=classes, pos_label=pos_label, threshold=threshold
        ).scores
        if base.scores_digest not in (scores_digest(scores), scores_digest_by_row(scores)):
            yield (
                "The scores of the base model differ from those on the fit rows. X must be the fit "
                "rows."
            )
