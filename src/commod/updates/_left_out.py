"""Describe the groups that the constraint covers and those that it leaves out.

Each phrase is made twice. The user reads the one with names, sizes and rates. Files (a patch, a
saved update) get the one with counts, because no file may hold the name or the rate of a group.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from commod._data.disclosure import FEWEST_DESCRIBED, hidden_groups, in_totals
from commod._record import LeftOutGroup
from commod._text import (
    MAX_LISTED_GROUPS,
    list_names,
    n_of,
    shorten,
    small_group_text,
    verb,
)
from commod.metrics._constraint import Constraint
from commod.metrics._fairness import fairness_of, group_shares
from commod.updates._fit_rows import FitRows
from commod.updates._interface import Decisions

LONGEST_NAME = 40  # characters


class GroupText(NamedTuple):
    """A phrase about groups: with their names for the user, with counts for files."""

    named: str
    counted: str


# ---------------------------------------------------------------------------------------------
# Measuring


def groups_left_out(rows: FitRows, positive: Decisions) -> tuple[LeftOutGroup, ...]:
    """Return the groups that are not in the constraint.

    `positive` (n,) holds the new decisions, or probabilities of a positive one.
    """
    before, after = (_group_rates(rows, d) for d in (rows.base.decisions, positive))
    sizes = _sizes(rows)
    groups = []
    for i in np.flatnonzero(~_is_covered(rows)).tolist():
        is_described = sizes[i] >= FEWEST_DESCRIBED
        rates = [float(share[i]) if is_described else None for share in (before, after)]
        groups.append(LeftOutGroup(rows.group_names[i], int(sizes[i]), *rates))
    return tuple(groups)


def rows_in_totals(rows: FitRows) -> NDArray[np.bool_]:
    """Return which rows count in totals, shape (n,): all but those of hidden groups.

    Fewer than five people whose group is not known are hidden, too. An audit hides the same people.
    If the totals of a patch held them, the difference between the two would reveal their decisions
    and true labels.
    """
    if rows.probabilities is not None:
        return np.ones(len(rows), dtype=bool)  # it is not known who belongs to a hidden group
    is_hidden = hidden_groups(_sizes(rows), _is_covered(rows))
    n_unknown = int((~rows.groups.is_known & (rows.weight > 0)).sum())
    return in_totals(rows.groups.codes, is_hidden, n_unknown)


def _sizes(rows: FitRows) -> NDArray[np.intp]:
    """Return how many people with a weight each group has, shape (n_groups,)."""
    return rows.count_groups()


def _is_covered(rows: FitRows) -> NDArray[np.bool_]:
    """Return which groups are in the constraint, shape (n_groups,)."""
    return rows.is_large_group


def _group_rates(rows: FitRows, decisions: Decisions) -> NDArray[np.float64]:
    """Return the rate of positive decisions of each group, (n_groups,); NaN without weight."""
    stated = rows.groups.probabilities
    if stated is not None:
        totals = rows.weight @ stated
        rates = (rows.weight * decisions) @ stated / np.where(totals > 0, totals, np.nan)
        return np.asarray(rates)
    known = rows.groups.is_known
    codes, n_groups = rows.groups.codes[known], len(rows.groups.labels)
    return group_shares(decisions[known], codes, n_groups, rows.weight[known])


# ---------------------------------------------------------------------------------------------
# Phrases


def covered_text(rows: FitRows, *, with_held_out_rows: bool = False) -> GroupText:
    """Return the groups that the constraint covers, such as "for the groups a, b".

    The phrase is empty if no group is left out, unless it states the number of held-out rows of
    each group; `rows` are these rows then. It then names the groups that are not covered, too.
    """
    is_covered = _is_covered(rows)
    if is_covered.all() and not with_held_out_rows:
        return GroupText("", "")
    covered = np.flatnonzero(is_covered).tolist()
    names = [shorten(rows.group_names[i], LONGEST_NAME) for i in covered]
    if with_held_out_rows:
        sizes = _sizes(rows)[covered].tolist()
        sized = zip(names, sizes, strict=True)
        names = [f"{name} ({n_of(n, 'held-out row')})" for name, n in sized]
    n, n_all = len(covered), len(is_covered)
    counted = f"for {n} groups" if n == n_all else f"for {n} of the {n_all} groups"
    named = f"for the groups {list_names(names, MAX_LISTED_GROUPS)}"
    others = [shorten(rows.group_names[i], LONGEST_NAME) for i in np.flatnonzero(~is_covered)]
    if with_held_out_rows and others:
        named += f", but not for {list_names(others, MAX_LISTED_GROUPS)}"
    return GroupText(named, counted)


def left_out_text(
    groups: Sequence[LeftOutGroup],
    constraint: Constraint,
    rows: FitRows,
    positive: Decisions,
    min_group_size: int,
    rows_text: str = "",
    metric: str = "",
) -> GroupText:
    """Return a sentence about the groups left out; empty if there are none.

    It states the metric over all groups, too, on the same rows. `rows_text` names the rows, such
    as "on the 600 rows of both halves", where the other figures are measured on other rows.
    `metric` is the metric with the label that it counts.
    """
    if not groups:
        return GroupText("", "")
    n_hidden = rows.count(~rows_in_totals(rows) & rows.groups.is_known)
    hidden = ""
    if n_hidden:
        n_rows = n_of(n_hidden, "row")
        hidden = f" No total counts the {n_rows} of groups of fewer than {FEWEST_DESCRIBED} rows."
    subject = f"{n_of(len(groups), 'group')} with fewer than min_group_size={min_group_size} rows"
    statement = f"{verb(len(groups), 'be')} left out of the constraint"
    listed = list_names([_group_text(group) for group in groups], MAX_LISTED_GROUPS)
    named = f"{subject} {statement}: {listed}."
    total = n_of(sum(group.n for group in groups), "row")
    over_all = _over_all_groups(constraint, rows, positive, rows_text, metric)
    # "left" may be a group, and `Patch.verify` looks for the names of groups in a patch
    counted = f"{subject} ({total} in all) {verb(len(groups), 'be')} not part of the constraint."
    return GroupText(f"{named}{hidden} {over_all}".rstrip(), counted + hidden)


def _group_text(group: LeftOutGroup) -> str:
    return small_group_text(group.name, group.n, "row", group.rate_before, group.rate_after)


def _over_all_groups(
    constraint: Constraint, rows: FitRows, positive: Decisions, rows_text: str, metric: str
) -> str:
    """Return the metric over all groups whose rates may be shown and are defined."""
    is_large = _sizes(rows) >= FEWEST_DESCRIBED
    is_defined = is_large & _has_every_rate(constraint, rows)
    number = np.cumsum(is_defined) - 1
    if rows.probabilities is not None:
        return ""  # rates of groups with few expected people are hardly known
    kept = np.append(is_defined, False)[rows.groups.codes]  # −1 points at the last entry
    codes, n_groups = number[rows.groups.codes[kept]], int(is_defined.sum())
    label = None if rows.label is None else rows.label[kept]
    weight = rows.weight[kept]
    value = fairness_of(constraint, positive[kept], label, codes, n_groups, weight)
    if np.isnan(value):
        return ""
    over = f"all {n_groups} groups"
    if not is_large.all():
        over = f"the {n_groups} groups of at least {FEWEST_DESCRIBED} rows"
    if not is_defined[is_large].all():
        over = f"the {n_groups} groups for which it is defined"
    return f"Over {over} the {metric} is {value:.3f} {rows_text}".rstrip() + "."


def _has_every_rate(constraint: Constraint, rows: FitRows) -> NDArray[np.bool_]:
    """Return which groups have a row for every rate that is compared, shape (n_groups,)."""
    n_groups = len(rows.groups.labels)
    counted = rows.weight > 0
    codes = np.where(counted, rows.groups.codes, -1)
    cells = constraint.cells(codes, n_groups, rows.label)
    n_cells = n_groups * len(constraint.rate_rows)
    sizes = np.bincount(cells[cells >= 0], minlength=n_cells).reshape(-1, n_groups)
    return np.asarray((sizes > 0).all(axis=0))


# ---------------------------------------------------------------------------------------------
# What files hold


def without_names(groups: Sequence[LeftOutGroup]) -> tuple[LeftOutGroup, ...]:
    """Return the groups with their sizes only."""
    return tuple(LeftOutGroup("", group.n, None, None) for group in groups)


def count_groups(status: str, texts: Sequence[GroupText]) -> str:
    """Return `status_` with counts in the place of every phrase that names groups.

    Examples
    --------
    >>> text = GroupText("for the groups a, b", "for 2 groups")
    >>> count_groups("It is promised for the groups a, b.", [text])
    'It is promised for 2 groups.'
    """
    for text in texts:
        if text.named:
            status = status.replace(text.named, text.counted)
    return status
