"""Measure an update on its rows: figures, groups left out, unknown groups, and the limit.

What is measured here becomes the facts of `commod._words.update`, which has the sentences.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commod._data.arrays import Mask
from commod._data.disclosure import FEWEST_DESCRIBED, MIN_CATEGORY_SIZE
from commod._record.audit import LeftOutGroup
from commod._record.explanation import Estimate, ScoreMap
from commod._statistics.promises import (
    NO_INTERVAL,
    UnknownInterval,
    calibrated_interval,
    worst_interval,
)
from commod._statistics.score_map import learn_score_map, too_few_text
from commod._text import shown
from commod._words.update import DRAWS_LEVEL, Goal, GroupsLeftOut, NeededChanges, UnknownPeople
from commod.metrics._changes import Change, change_shares
from commod.metrics._constraint import Constraint
from commod.metrics._language import FairnessConstraint
from commod.metrics._people import People, group_shares, is_kept
from commod.scorecard import crossing_ends, edited_scores
from commod.updates._fit_rows import ComparedText, FitRows
from commod.updates._found_update import Expectation
from commod.updates._interface import Decisions
from commod.updates._problem import FitProblem, proven_limit

DIRECTIONS: tuple[Change, ...] = ("gain", "loss")
FIGURES = ("value", "low", "high", "true_share_changed", "true_share_others")
WholeFigures = dict[str, dict[str, float]]
Values = Mapping[str, float]  # of the metrics of all constraints, by their names


# ---------------------------------------------------------------------------------------------
# Constraints


def goals_of(
    stated: Sequence[FairnessConstraint],
    text: ComparedText,
    rows: FitRows,
    before: Values,
    after: Values,
) -> tuple[Goal, ...]:
    """Return the stated constraints with their metrics `before` and `after`, and their strata."""
    goals = []
    for one in stated:
        constraint = one.constraint
        value = after[constraint.name]
        strata: dict[str, Any] = {}
        if constraint.within is not None:
            compared = rows.strata_of(constraint)
            strata = {
                "within": constraint.within.column,
                "n_strata": len(compared.labels),
                "n_strata_left_out": compared.n_left_out,
                "n_rows_left_out": rows.count(compared.codes < 0),
                "min_rows": constraint.within.min_rows,
            }
        bound = None if one.bound is None else float(one.bound)
        goals.append(
            Goal(
                text.metric_of(constraint),
                constraint.sign,
                before[constraint.name],
                value,
                bound,
                is_kept(constraint, bound, value),
                **strata,
            )
        )
    return tuple(goals)


def expected_goals(goals: Sequence[Goal], expected: Expectation) -> tuple[Goal, ...]:
    """Return goals with what is expected of the update and of the base model on new people."""
    values, base = expected.values, expected.base_values
    return tuple(
        replace(goal, expected=values[name], base_expected=base.get(name, np.nan))
        for goal, name in zip(goals, values, strict=True)
    )


def n_small_terms(n_people: NDArray[np.intp], points: NDArray[np.float64]) -> int:
    """Return how many terms with points fewer than `MIN_CATEGORY_SIZE` people share.

    `n_people` (d,) have each term. Only a user's own `min_category_size` lets in such terms.
    """
    return int(((n_people < MIN_CATEGORY_SIZE) & (points != 0)).sum())


# ---------------------------------------------------------------------------------------------
# The limit


def same_fairness(problem: FitProblem, values: Values) -> FitProblem:
    """Return the problem whose limit is that of the fairness which the update reaches.

    It has the direction that the user states. A bound that is missed becomes what is reached.
    """
    return problem.in_asked_direction().loosened(_other_values(problem, values))


def keeps_bounds(problem: FitProblem, values: Values, target: float) -> bool:
    """Return whether values of the metrics keep the target and all bounds that stand."""
    is_met = problem.constraint.is_met(values[problem.constraint.name], target)
    return bool(is_met) and problem.keeps_others(_other_values(problem, values))


def _other_values(problem: FitProblem, values: Values) -> list[float]:
    return [values[one.name] for one in problem.compared.constraints[1:]]


def needed_changes(
    problem: FitProblem,
    values: Values,
    fairness: float,
    limit: float,
    known: tuple[float, float],
    *,
    is_loss: bool,
) -> NeededChanges:
    """Return the fewest changes that a fairness needs, with the bounds that the `values` keep.

    `limit` is their share. `known` are the shares of people of a known group who change, and who
    have to. If `is_loss`, most changes are losses, and the limit of gains alone is given too.
    """
    if problem.rows.is_weighted:
        return NeededChanges(is_weighted=True)
    same = same_fairness(problem, values)
    gains_only = None
    if is_loss and problem.asked.direction == "any":
        raising_is_a_gain = problem.asked.raising_is_a_gain
        gains_only = proven_limit(same, fairness, raise_only=raising_is_a_gain)
    is_all_known = bool(problem.rows.groups.is_known.all())
    return NeededChanges(
        n_fewest=float(np.rint(limit * problem.rows.n_people)),
        share=limit,
        is_exact=np.isnan(limit) or same.is_exact_limit(fairness),
        by_probability=problem.rows.probabilities is not None,
        known_changed=known[0],
        known_share=float("nan") if is_all_known else known[1],
        gains_only=gains_only,
        for_target=fairness != values[problem.constraint.name],
    )


def outscoring_figures(rows: FitRows, positive: Decisions, raising_is_a_gain: bool) -> WholeFigures:
    """Return, for gains and for losses, how those who change score beside those who do not.

    Each entry has the `value`, `low` and `high` of `commod.metrics.outscoring_probability` within
    the groups of the constraint, and the shares of both sides whose true label is favourable.
    `positive` (n,) holds the new decisions, or probabilities of a positive one.
    """
    if rows.people is not None:  # scores of single people are not known
        return {change: dict.fromkeys(FIGURES, float("nan")) for change in DIRECTIONS}
    changed = change_shares(rows.base.decisions, positive)
    sides = rows.sides if raising_is_a_gain else rows.sides.turned()
    label = rows.label if raising_is_a_gain or rows.label is None else ~rows.label
    figures: WholeFigures = {}
    for change in DIRECTIONS:
        measured = sides.outscoring(changed, change, is_truly_favorable=label)
        figures[change] = {name: getattr(measured, name) for name in FIGURES}
    return figures


def as_estimates(figures: Mapping[str, Mapping[str, float]]) -> dict[str, Estimate]:
    """Return the shares of pairs of `outscoring_figures` as facts."""
    return {
        change: Estimate(own["value"], own["low"], own["high"]) for change, own in figures.items()
    }


def calibration_of(
    rows: FitRows, ratio: NDArray[np.float64], score_edit: str
) -> tuple[str, ScoreMap | None]:
    """Return why scores cannot be calibrated, or the map; `ratio` (n,) is the effective r.

    People of hidden groups and rows without weight are left out, as in every total.
    """
    counted = np.flatnonzero(rows.in_totals & (rows.weight > 0))
    label = None if rows.label is None else (rows.label == rows.base.is_for_positive)[counted]
    reason = too_few_text(label)
    if label is None or reason:
        return reason, None
    base = rows.base.take(counted)
    edited = edited_scores(base.scores, ratio[counted], base.threshold, score_edit)
    ends = crossing_ends(base.threshold) if score_edit == "changed_only" else ()
    people = base.scores, edited, label, rows.weight[counted]
    return "", learn_score_map(*people, base.threshold, ends)


# ---------------------------------------------------------------------------------------------
# Unknown groups


def unknown_people(problem: FitProblem, decisions: Mask, metrics: Sequence[str]) -> UnknownPeople:
    """Return on how many known people the figures rest, and what the unknown could be.

    `decisions` (n,) are the new ones, and `metrics` the names of those of all constraints.
    """
    rows, constraint = problem.rows, problem.constraint
    worst, calibrated = _worst(problem, decisions), (float("nan"), float("nan"))
    if rows.probabilities is not None and constraint.is_simple:
        arrays = problem.compared.row, decisions, rows.probabilities, rows.weight
        calibrated = calibrated_interval(constraint, *arrays, DRAWS_LEVEL)
    n_known = rows.count(rows.groups.is_known)
    named = zip(problem.compared.constraints, metrics, strict=True)
    return UnknownPeople(
        n=rows.n_people - n_known,
        n_known=n_known,
        n_people=rows.n_people,
        n_rows=len(rows),
        is_hidden=_hides_unknown(rows),
        by_probability=rows.probabilities is not None,
        calibrated=calibrated,
        worst=(worst.low, worst.high),
        is_exact=worst.is_exact,
        without_interval=tuple(
            metric for i, (one, metric) in enumerate(named) if i or not one.is_simple
        ),
    )


def known_shares(rows: FitRows, decisions: Mask, limit: float) -> tuple[float, float]:
    """Return the shares of people of a known group who change, and who have to at least."""
    known = rows.groups.is_known
    counted = known & rows.in_totals
    if rows.probabilities is not None or not counted.any():
        return float("nan"), float("nan")
    changed = rows.count((decisions != rows.base.decisions) & counted) / rows.count(counted)
    return changed, limit * rows.n_people / rows.count(known)


def _hides_unknown(rows: FitRows) -> bool:
    """Return whether people of unknown groups are so few that no total counts them."""
    return bool((~rows.in_totals & ~rows.groups.is_known).any())


def _worst(problem: FitProblem, decisions: Mask) -> UnknownInterval:
    """Return between which values the metric lies, whatever the groups of unknown people are."""
    rows, constraint = problem.rows, problem.constraint
    if not constraint.is_simple:
        return NO_INTERVAL
    if _hides_unknown(rows):
        return NO_INTERVAL  # it would tell their decisions
    known, (group, n_groups) = rows.groups.is_known, rows.large_groups
    may_be_elsewhere = not rows.is_large_group.all()
    if rows.probabilities is not None:
        known_elsewhere = known & (rows.probabilities.max(axis=1) < 0.5)  # of a group left out
        group = np.where(known & ~known_elsewhere, group, -1)
        may_be_elsewhere |= bool((rows.probabilities[~known] == 0).any())
    cells = People((constraint,), group, n_groups, rows.label)
    of_unknown = People((constraint,), np.where(known, -1, 0), 1, rows.label)
    weights = rows.weight, rows.weight * decisions
    counts = [cells.totals(values) for values in weights]
    unknown = [of_unknown.totals(values)[:, 0] for values in weights]
    return worst_interval(constraint, *counts, *unknown, may_be_elsewhere=may_be_elsewhere)


# ---------------------------------------------------------------------------------------------
# Groups left out


def groups_left_out(rows: FitRows, positive: Decisions) -> tuple[LeftOutGroup, ...]:
    """Return the groups that are not in the constraint.

    `positive` (n,) holds the new decisions, or probabilities of a positive one.
    """
    before, after = (_group_rates(rows, d) for d in (rows.base.decisions, positive))
    sizes = rows.count_groups()
    groups = []
    for i in np.flatnonzero(~rows.is_large_group).tolist():
        is_described = sizes[i] >= FEWEST_DESCRIBED
        rates = [float(share[i]) if is_described else None for share in (before, after)]
        groups.append(LeftOutGroup(rows.group_names[i], int(sizes[i]), *rates))
    return tuple(groups)


def positive_rates(rows: FitRows, positive: Decisions) -> tuple[tuple[str, float, float], ...]:
    """Return the rate of positive decisions before and after: of all people, then by group.

    Groups are those that the constraint compares. `positive` (n,) is as in `groups_left_out`.
    """
    weight = rows.weight * rows.in_totals
    whom = (rows.base.decisions, positive)
    everybody = [float(np.average(decided, weights=weight)) for decided in whom]
    by_group = [_group_rates(rows, decided)[rows.is_large_group].tolist() for decided in whom]
    names = [rows.group_names[i] for i in np.flatnonzero(rows.is_large_group).tolist()]
    return (("", everybody[0], everybody[1]), *zip(names, *by_group, strict=True))


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


def left_out_facts(
    constraint: Constraint,
    groups: tuple[LeftOutGroup, ...],
    rows: FitRows,
    positive: Decisions,
    min_group_size: int,
    rows_text: str = "",
) -> GroupsLeftOut | None:
    """Return the groups left out with the metric over all groups; None if there are none.

    `rows_text` names the rows, such as "on the 600 rows of both halves", where the other figures
    are measured on other rows.
    """
    if not groups:
        return None
    return GroupsLeftOut(
        groups=groups,
        min_group_size=min_group_size,
        n_hidden=rows.count(~rows.in_totals & rows.groups.is_known),
        fewest_shown=FEWEST_DESCRIBED,
        over_all=_over_all_groups(constraint, rows, positive),
        rows=rows_text,
    )


def _over_all_groups(
    constraint: Constraint, rows: FitRows, positive: Decisions
) -> tuple[str, float]:
    """Return the metric over all groups whose rates may be shown and are defined: which, and it."""
    if rows.probabilities is not None or constraint.within is not None:
        return "", float("nan")  # rates of groups with few people, or of those in strata
    people = People((constraint,), rows.groups.codes, len(rows.groups.labels), rows.label)
    has_every_rate = (people.totals((rows.weight > 0).astype(np.float64)) > 0).all(axis=0)
    is_large = rows.count_groups() >= FEWEST_DESCRIBED
    is_defined = is_large & has_every_rate
    number = np.cumsum(is_defined) - 1
    kept = np.append(is_defined, False)[rows.groups.codes]  # −1 points at the last entry
    codes, n_groups = np.where(kept, number[rows.groups.codes], -1), int(is_defined.sum())
    people = People((constraint,), codes, n_groups, rows.label, rows.weight)
    value = people.fairness(positive)
    over = f"all {n_groups} groups"
    if not is_large.all():
        over = f"the {n_groups} groups of at least {FEWEST_DESCRIBED} rows"
    if not is_defined[is_large].all():
        over = f"the {n_groups} groups for which it is defined"
    return over, value


def covered_groups(
    rows: FitRows, *, with_held_out_rows: bool = False
) -> tuple[tuple[str, int | None], ...]:
    """Return the names of the groups that the constraint compares, with their numbers of rows.

    Empty if no group is left out and no number is wanted. `rows` are the held-out ones if it is.
    """
    is_covered = rows.is_large_group
    if is_covered.all() and not with_held_out_rows:
        return ()
    covered = np.flatnonzero(is_covered).tolist()
    sizes = rows.count_groups()[covered].tolist()
    named = zip(covered, sizes, strict=True)
    return tuple((rows.group_names[i], n if with_held_out_rows else None) for i, n in named)


# ---------------------------------------------------------------------------------------------
# The smallest cell


def smallest_cell(problem: FitProblem) -> tuple[str, int]:
    """Return the smallest cell in words, and its number of people.

    A cell is a group in a stratum of one constraint, with the true label where that counts.
    """
    size, name = min(_compared_cells(problem), key=lambda cell: cell[0])
    return name, size


def _compared_cells(problem: FitProblem) -> Iterator[tuple[int, str]]:
    """Yield the size of each cell that a constraint compares, and the cell in words."""
    people = problem.compared
    for constraint, strata, used in zip(
        people.constraints, people.row_strata, people.compared_by_each, strict=True
    ):
        label = np.where(constraint.needs_labels, people.row_label, -1)
        keys = np.stack([strata, label], axis=1)
        for stratum, value in np.unique(keys, axis=0).tolist():
            lines = (keys == (stratum, value)).all(axis=1)
            sizes = (people.sizes * used)[lines].sum(axis=0)
            for group in np.flatnonzero(used[lines].any(axis=0)).tolist():
                yield int(sizes[group]), _cell_name(problem, constraint, group, stratum, value)


def _cell_name(
    problem: FitProblem, constraint: Constraint, group: int, stratum: int, label: int
) -> str:
    """Return a cell in words: its group and, where it counts, its stratum and true label."""
    compared = np.flatnonzero(problem.rows.is_large_group)
    name = f"group {shown(problem.rows.group_names[compared[group]])}"
    if constraint.within is not None:
        value = problem.rows.strata_of(constraint).labels[stratum]
        name = f"{name} with {constraint.within.column} {shown(value)}"
    if label < 0:
        return name
    return f"{name} with a {'positive' if label else 'negative'} true label"
