"""The figures of an update on its rows, and the sentences of `status_` about them.

A phrase about groups is made twice. The user reads the one with names, sizes and rates. Files (a
patch, a saved update) get the one with counts, because no file may hold the name or the rate of a
group.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from commod._data.arrays import Mask
from commod._data.disclosure import FEWEST_DESCRIBED, MIN_CATEGORY_SIZE
from commod._evidence.task import Caps
from commod._people import all_kept, is_kept
from commod._record import EditRecord, LeftOutGroup
from commod._statistics.unknown_groups import (
    UNDEFINED,
    UnknownInterval,
    calibrated_interval,
    no_interval_text,
    worst_interval,
)
from commod._text import (
    MAX_CHANGED,
    MAX_LISTED_GROUPS,
    capitalised,
    list_names,
    most_change_text,
    n_of,
    outscoring_text,
    plain,
    shorten,
    shown,
    small_group_text,
    verb,
)
from commod.metrics._cells import Cells, fairness_of, group_shares
from commod.metrics._constraint import Constraint
from commod.metrics._outscoring import Change, PairShare, change_shares
from commod.updates._fit_rows import FitRows
from commod.updates._found_update import LEVEL, MAX_ALIKE, Expectation, FittedUpdate
from commod.updates._interface import Decisions
from commod.updates._problem import FitProblem, proven_limit
from commod.updates._promise import PromiseTest

DIRECTIONS: tuple[Change, ...] = ("gain", "loss")
FIGURES = ("value", "low", "high", "true_share_changed", "true_share_others")
WholeFigures = dict[str, dict[str, float]]
DRAWS_LEVEL = 0.95  # of the interval where probabilities are calibrated
LONGEST_NAME = 40  # characters


def sentences(
    update: Any, problem: FitProblem, fitted: FittedUpdate, test: PromiseTest | None
) -> Iterator[str]:
    """Yield the sentences of `status_` of a `ControlledDebiaser`, the most important first.

    `problem` has the rows that were measured. `test` is None without `confidence`.
    """
    expectation = fitted.expectation
    metric = update._compared_text().metric
    goal = f"{metric} {problem.constraint.sign} {update.target_:g}"
    is_missed = not problem.constraint.is_met(update.fairness_, update.target_)
    covered, left_out, _ = (text.named for text in update._group_texts)
    yield from degenerate_texts(update)
    if test is not None:
        yield promise_text(goal, update.confidence, test, covered)
    elif update.edits_:
        yield from edit_texts(update, goal, is_missed=is_missed, groups=covered)
    elif update._is_budget:
        best = f"the best {metric} found {covered}".rstrip()
        cap = problem.asked.caps.changes
        yield f"This is {best} with at most {cap:.1%} of the decisions changed."
    elif expectation is None or not expectation.is_known or (is_missed and not update.reached_):
        yield target_text(goal, not is_missed, covered, is_success=not update._is_degenerate)
    if expectation is not None:
        yield from expectation_texts(update, problem, goal, expectation, covered)
    rows_word = "fit rows" if test is None else "held-out rows"
    yield from standing_texts(update, rows_word)
    yield from strata_texts(update, problem.rows)
    yield from filter(None, (left_out, update._figures_text(rows_word)))
    yield from unknown_texts(update, problem)
    yield from filter(None, (fitted.optimism,))
    yield from outscoring_sentences(update.outscoring_)
    if test is None and update.change_rate_:
        yield from whom_texts(update)
    yield from update._few_people_texts
    yield from limit_texts(update, problem, goal, is_test=test is not None)


def degenerate_texts(update: Any) -> Iterator[str]:
    """Yield that an update is not a correction: it changes most decisions, or makes them alike."""
    if too_many := most_change_text(update.change_rate_):
        yield too_many
    elif update._is_degenerate:
        yield (
            f"This is not a success: after the update, at least {MAX_ALIKE:.0%} of the decisions "
            "are the same, which is fair to everybody and useful to nobody."
        )


def limit_texts(update: Any, problem: FitProblem, goal: str, *, is_test: bool) -> Iterator[str]:
    """Yield how close the update came to the fewest changes possible, and why a goal is missed."""
    if problem.is_weighted:
        yield "With sample weights the limit is not given, because it counts people."
        return
    same = same_fairness(update, problem)
    is_known = problem.rows.probabilities is None
    known = "sensitive features" if is_known else "probabilities of the groups"
    knowing = f"even for a method that knows the {known}"
    if update.limit_ >= 0 and update.change_rate_:
        yield f"The same fairness needs at least {update.limit_:.1%} changed, {knowing}."
        if not same.is_exact_limit(update.fairness_):
            yield "This is a proven lower bound: the exact number was not found in time."
        if np.isfinite(update.known_limit_) and update.n_known_ < update.n_rows_:
            yield (
                "Only people of a known group have to change for that. Among them "
                f"{update.known_change_rate_:.1%} change, and at least {update.known_limit_:.1%} "
                "have to."
            )
    is_missed = not problem.constraint.is_met(update.fairness_, update.target_)
    if problem.standing:
        is_missed |= not all_kept(problem.standing, _standing_values(update, problem))
        goal = "The set of all bounds"
    # A target that is expected on new people may be missed on the fit rows by chance.
    if is_missed and not (update.reached_ or update._is_budget or is_test):
        asked = problem.in_asked_direction()
        limit = proven_limit(asked, update.target_)
        if np.isinf(limit):
            yield f"{goal} cannot be reached with direction={update.direction!r} by any update."
        else:
            needs = f"{goal} needs at least {limit:.1%} of decisions changed, {knowing}"
            unknown = f"How many changes {goal} needs is not known"
            reason = why_missed(update, problem.asked.caps)
            yield f"{unknown if np.isnan(limit) else needs}; {reason}."
    if update.n_losses_ > update.n_gains_ and update.direction == "any":
        limit = proven_limit(same, update.fairness_, raise_only=update._raising_is_a_gain())
        needs = f"With gains only the same fairness needs at least {limit:.1%} changed."
        yield "Gains alone cannot reach the same fairness." if np.isinf(limit) else needs


def same_fairness(update: Any, problem: FitProblem) -> FitProblem:
    """Return the problem whose limit is that of the fairness which the update reaches.

    It has the direction that the user states. A bound that stands and is missed is what is reached.
    """
    asked = problem.in_asked_direction()
    return asked.loosened(_standing_values(update, problem))


def _standing_values(update: Any, problem: FitProblem) -> list[float]:
    return [update.values_[one.constraint.name] for one in problem.standing]


def target_text(goal: str, reached: bool, groups: str = "", *, is_success: bool = True) -> str:
    """Return whether a goal such as "P-rule of label 1 ≥ 0.8" is reached on the fit rows.

    `groups` names the groups that are compared, where others are left out. A degenerate update is
    no success, and is not said to have reached its goal.
    """
    rows = f"on the fit rows {groups}".rstrip()
    if reached and not is_success:
        return f"The changed decisions have {goal} {rows}, but this is no success."
    if reached:
        return f"{goal} is reached {rows}."
    return f"{goal} was not reached {rows}; the update that comes closest was kept."


def promise_text(goal: str, confidence: float, test: PromiseTest, groups: str) -> str:
    """Return whether a goal is promised; otherwise, which check failed, with numbers.

    `groups` names the groups that the promise covers, and those that it does not cover.
    """
    promise = f"for new people with confidence {confidence:g}, {groups}"
    if test.choice.is_promised:
        return (
            f"{goal} is promised {promise}, if the rows are new to the base model and new people "
            "come from the same population."
        )
    text = f"Insufficient evidence that {goal} holds {promise}: {_failure_text(test)}."
    if test.choice.kept is None:
        text += (
            " The fairest update that was fitted is not fairer than the base model on the held-out "
            "rows, so no decision changes (r = 1)."
        )
    return text


def _failure_text(test: PromiseTest) -> str:
    """Return why the promise of the first tested update failed."""
    tested = "the tested update, the fairest on the fit half,"
    if test.choice.failure == "degenerate":
        return (
            f"{tested} changes {test.change_rate:.1%} of the held-out decisions. An update that "
            f"changes more than {MAX_CHANGED:.0%} of them, or that makes {MAX_ALIKE:.0%} of them "
            "alike, is not promised"
        )
    if not np.isfinite(test.observed):
        return f"on the held-out rows, {tested} has no positive decisions to compare"
    if test.choice.failure == "unfair" or not np.isfinite(test.n_rows_needed):
        return f"{tested} is not fairer than the target on the held-out rows ({test.observed:.3f})"
    # rounded up to two significant digits
    step = 10 ** max(0, int(np.floor(np.log10(max(test.n_rows_needed, 1)))) - 1)
    return (
        f"{tested} has {test.observed:.3f} on the held-out rows, and {test.promised:.3f} is what "
        f"these rows can promise; about {int(np.ceil(test.n_rows_needed / step) * step):,} rows "
        "would be needed"
    )


def whom_texts(update: Any) -> Iterator[str]:
    """Yield the direction that was kept, and what the extra changes were spent on."""
    if update.direction_ != update.direction:
        kept = "gains" if update.direction_ == "gains_only" else "losses"
        yield f"Of the directions that were counted, {kept} only was kept."
    if update.nearness_ > 0.05:
        yield "Of two people with the same points, the one nearer to the threshold changes first."


def few_people_sentences(
    n_people: NDArray[np.intp], points: NDArray[np.float64]
) -> tuple[str, ...]:
    """Return a sentence on the terms with points that few people share; none without such terms.

    `n_people` (d,) have each term. Only a user's own `min_category_size` lets in such terms.
    """
    n_terms = int(((n_people < MIN_CATEGORY_SIZE) & (points != 0)).sum())
    if not n_terms:
        return ()
    sentence = (
        f"{n_of(n_terms, 'term')} of the scorecard {verb(n_terms, 'describe')} fewer than "
        f"{MIN_CATEGORY_SIZE} people, because min_category_size is below {MIN_CATEGORY_SIZE}. "
        "Such a term may tell about single people."
    )
    return (sentence,)


def store_expectation(update: Any, expectation: Expectation | None) -> None:
    """Store the figures that are expected on new people; NaN where none are."""
    names = [one.name for one in update._stated().constraints]
    known = Expectation.unknown(len(names)) if expectation is None else expectation
    update.expected_values_ = dict(zip(names, known.values, strict=True))
    update.expected_fairness_ = known.values[0]
    update.expected_interval_ = known.interval
    update.expected_change_rate_ = known.change_rate
    update.expected_accuracy_ = known.accuracy


def expectation_texts(
    update: Any, problem: FitProblem, goal: str, expectation: Expectation, groups: str
) -> Iterator[str]:
    """Yield what is expected on new people, the goal first.

    `goal` is such as "P-rule of label 1 ≥ 0.8"; `groups` names the groups that are compared, where
    others are left out.
    """
    people = f"on as many new people {groups}".rstrip()
    smallest = smallest_cell_text(problem).named
    if not expectation.is_known:
        yield f"Nothing can be expected {people}: {smallest}, which is too few."
        return
    value, (low, high) = expectation.values[0], expectation.interval
    interval = f"{LEVEL:.0%} interval for a sample: {low:.3f} to {high:.3f}"
    if update._is_budget:
        yield f"The {update._compared_text().metric} expected {people} is {value:.3f} ({interval})."
    elif expectation.is_reached:
        but = ", but this is no success" if update._is_degenerate else ""
        yield f"{goal} is expected {people}: {value:.3f} ({interval}){but}."
    else:
        yield f"{goal} is not expected {people}: {value:.3f} is ({interval})."
        if problem.constraint.is_met(update.fairness_, update.target_):
            yield (
                f"No update of these columns is expected to reach it with "
                f"{problem.rows.n_people:,} rows; {smallest}."
            )
    text = f"{expectation.change_rate:.1%} of their decisions are expected to change"
    if not np.isnan(expectation.accuracy):
        text += f", with an accuracy of {expectation.accuracy:.3f}"
    yield f"{text}."


def smallest_cell_text(problem: FitProblem) -> GroupText:
    """Return the size of the smallest cell in words; files get it without the name of the group.

    A cell is a group in a stratum of one constraint, with the true label where that counts.
    """
    size, name = min(_compared_cells(problem), key=lambda cell: cell[0])
    few = f"fewer than {FEWEST_DESCRIBED} rows" if size < FEWEST_DESCRIBED else n_of(size, "row")
    return GroupText(f"the smallest cell, {name}, has {few}", f"the smallest cell has {few}")


def _compared_cells(problem: FitProblem) -> Iterator[tuple[int, str]]:
    """Yield the size of each cell that a constraint compares, and the cell in words."""
    compared, table = problem.compared, problem.compared.cells
    for constraint, rows, used in zip(
        table.constraints, table.rows, compared.compared_by_each, strict=True
    ):
        label = np.where(constraint.needs_labels, rows.label, -1)
        keys = np.stack([rows.stratum, label], axis=1)
        for stratum, value in np.unique(keys, axis=0).tolist():
            lines = (keys == (stratum, value)).all(axis=1)
            sizes = (compared.sizes * used)[lines].sum(axis=0)
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


def edit_texts(update: Any, goal: str, *, is_missed: bool, groups: str) -> Iterator[str]:
    """Yield how an update was edited and, where the fit rows miss the goal, what they reach.

    `goal` is such as "P-rule of label 1 ≥ 0.8"; `groups` names the groups that are compared, where
    others are left out.
    """
    last: EditRecord = update.edits_[-1]
    by = "" if last.by is None else f", the last time by {plain(last.by)}"
    times = "once" if len(update.edits_) == 1 else f"{len(update.edits_)} times"
    yield f"The scorecard was edited by hand {times}{by}."
    if last.pinned:
        n_terms = n_of(len(last.pinned), "term")
        yield f"The edit pinned {n_terms}: {list_names([plain(name) for name in last.pinned])}."
    if last.refit:
        yield "All terms that were neither edited nor pinned were fitted again."
    rows = f"on the fit rows {groups}".rstrip()
    if last.offset == "keep":
        is_reached = "is not reached" if is_missed else "is reached"
        yield f"The cut of the earlier update was kept; {goal} {is_reached} {rows}."
    elif is_missed and not (update.reached_ or update._is_budget):
        yield (
            f"{goal} cannot be reached {rows} with these points: the closest value that a cut "
            f"reaches is {update.fairness_:.3f}."
        )


def why_missed(update: Any, caps: Caps) -> str:
    """Return why a goal is missed: the last edit, the caps that the user set, or the columns."""
    if update.edits_:
        is_kept = update.edits_[-1].offset == "keep"
        return "the cut was kept by hand" if is_kept else "no cut of the edited points reaches it"
    named = [f"max_{name} is {cap:.1%}" for name, cap in asdict(caps).items() if cap is not None]
    return ", ".join(named) or "no update of these columns was found that reaches it"


def store_values(update: Any, rows: FitRows, decisions: Decisions) -> None:
    """Store the metric of each stated constraint by its name, before and after.

    The fairness of an update is that of the first constraint.
    """
    constraints = update._stated().constraints
    before = rows.base.decisions
    update.base_values_ = {one.name: rows.fairness(one, before) for one in constraints}
    update.values_ = {one.name: rows.fairness(one, decisions) for one in constraints}
    first = constraints[0].name
    update.base_fairness_, update.fairness_ = update.base_values_[first], update.values_[first]


def standing_texts(update: Any, rows: str) -> Iterator[str]:
    """Yield for each constraint that stands whether it is kept on `rows` and on new people."""
    for one in update._standing():
        before, after = (v[one.constraint.name] for v in (update.base_values_, update.values_))
        holds = "holds" if is_kept(one, after) else "does not hold"
        metric = capitalised(update._compared_text().metric_of(one.constraint))
        goal = f"{metric} {one.constraint.sign} {one.bound:g}"
        text = f"{goal} {holds} on the {rows}: {before:.3f} → {after:.3f}"
        expected = update.expected_values_[one.constraint.name]
        if expected == expected:
            is_expected = "is" if is_kept(one, expected) else "is not"
            text += f"; it {is_expected} expected on new people: {expected:.3f}"
        yield f"{text}."


def other_texts(update: Any) -> Iterator[str]:
    """Yield the metrics of all constraints but the first, which have no bound."""
    for constraint in update._stated().constraints[1:]:
        before, after = (v[constraint.name] for v in (update.base_values_, update.values_))
        metric = update._compared_text().metric_of(constraint)
        yield f"Beside it, {metric} {before:.3f} → {after:.3f}."


def strata_texts(update: Any, rows: FitRows) -> Iterator[str]:
    """Yield how many strata each condition compares, and how many are left out."""
    for constraint in update._stated().constraints:
        if constraint.within is None:
            continue
        strata, within = rows.strata_of(constraint), constraint.within
        text = f"Within {shown(within.column)}, {n_of(len(strata.labels), 'stratum')}"
        yield f"{text} {verb(len(strata.labels), 'be')} compared."
        if strata.n_left_out:
            n_rows = rows.count(strata.codes < 0)
            yield (
                f"{n_of(strata.n_left_out, 'stratum')} ({n_of(n_rows, 'row')}) "
                f"{verb(strata.n_left_out, 'be')} left out: too few groups have "
                f"min_rows={within.min_rows} rows there. Nothing is promised about these people."
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


def outscoring_sentences(figures: Mapping[str, Mapping[str, float]]) -> list[str]:
    """Return a sentence for gains and one for losses; none for what does not occur."""
    texts = (
        outscoring_text(change, PairShare(own["value"], own["low"], own["high"]))
        for change, own in figures.items()
    )
    return list(filter(None, texts))


def store_unknown(update: Any, problem: FitProblem, decisions: Mask) -> None:
    """Store on how many known people the figures rest, and what the unknown could be."""
    rows = problem.rows
    known = rows.groups.is_known
    counted = known & rows.in_totals
    update.n_known_ = rows.count(known)
    nan = float("nan")
    update.known_change_rate_ = update.known_limit_ = nan
    if rows.probabilities is None and counted.any():
        changed = decisions != rows.base.decisions
        update.known_change_rate_ = rows.count(changed & counted) / rows.count(counted)
        update.known_limit_ = update.limit_ * rows.n_people / update.n_known_
    worst, calibrated = _worst(problem, decisions), (nan, nan)
    if rows.probabilities is not None and problem.constraint.is_simple:
        arrays = problem.compared.cells.row, decisions, rows.probabilities, rows.weight
        calibrated = calibrated_interval(problem.constraint, *arrays, DRAWS_LEVEL)
    update.unknown_interval_ = {
        "worst_case": (worst.low, worst.high),
        "is_exact": worst.is_exact,
        "calibrated": calibrated,
    }


def _hides_unknown(rows: FitRows) -> bool:
    """Return whether people of unknown groups are so few that no total counts them."""
    return bool((~rows.in_totals & ~rows.groups.is_known).any())


def _worst(problem: FitProblem, decisions: Mask) -> UnknownInterval:
    """Return between which values the metric lies, whatever the groups of unknown people are."""
    rows, constraint = problem.rows, problem.constraint
    if not constraint.is_simple:
        return UNDEFINED
    if _hides_unknown(rows):
        return UNDEFINED  # it would tell their decisions
    known, (group, n_groups) = rows.groups.is_known, rows.large_groups
    may_be_elsewhere = not rows.is_large_group.all()
    if rows.probabilities is not None:
        known_elsewhere = known & (rows.probabilities.max(axis=1) < 0.5)  # of a group left out
        group = np.where(known & ~known_elsewhere, group, -1)
        may_be_elsewhere |= bool((rows.probabilities[~known] == 0).any())
    cells = Cells.of(constraint, group, n_groups, rows.label)
    of_unknown = Cells.of(constraint, np.where(known, -1, 0), 1, rows.label)
    weights = rows.weight, rows.weight * decisions
    counts = [cells.totals(values) for values in weights]
    unknown = [of_unknown.totals(values)[:, 0] for values in weights]
    return worst_interval(constraint, *counts, *unknown, may_be_elsewhere=may_be_elsewhere)


def unknown_texts(update: Any, problem: FitProblem) -> Iterator[str]:
    """Yield on how many known people the figures rest, and what the unknown could be."""
    rows, metric = problem.rows, update._compared_text().metric
    n_unknown = rows.n_people - update.n_known_
    if not n_unknown:
        return
    if _hides_unknown(rows):
        yield (
            f"The group of {n_of(n_unknown, 'row')} is not known. No figure and no total counts "
            f"fewer than {FEWEST_DESCRIBED} such people."
        )
    elif rows.probabilities is None:
        yield (
            f"The group of {n_of(n_unknown, 'row')} is not known. The {metric} rests on the "
            f"{update.n_known_:,} known rows; changes, volume and accuracy count all "
            f"{rows.n_people:,}."
        )
    else:
        yield (
            f"Groups are given by probabilities, and {update.n_known_:,} of the {len(rows):,} rows "
            f"have a certain group. The {metric} is that of expected rates."
        )
    low, high = update.unknown_interval_["calibrated"]
    if np.isfinite(low):
        yield (
            f"If the probabilities are calibrated, the {metric} of these rows lies between "
            f"{low:.3f} and {high:.3f} ({DRAWS_LEVEL:.0%} of draws)."
        )
    low, high = update.unknown_interval_["worst_case"]
    if np.isfinite(low):
        which = "which is exact" if update.unknown_interval_["is_exact"] else "a proven bound"
        yield (
            f"Whatever the unknown groups are, it lies between {low:.3f} and {high:.3f}, {which}."
        )
    constraints = update._stated().constraints
    names = [update._compared_text().metric_of(one) for one in constraints]
    if text := no_interval_text(constraints, names):
        yield text


# ---------------------------------------------------------------------------------------------
# Groups left out


class GroupText(NamedTuple):
    """A phrase about groups: with their names for the user, with counts for files."""

    named: str
    counted: str


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


def covered_text(rows: FitRows, *, with_held_out_rows: bool = False) -> GroupText:
    """Return the groups that the constraint covers, such as "for the groups a, b".

    The phrase is empty if no group is left out, unless it states the number of held-out rows of
    each group; `rows` are these rows then. It then names the groups that are not covered, too.
    """
    is_covered = rows.is_large_group
    if is_covered.all() and not with_held_out_rows:
        return GroupText("", "")
    covered = np.flatnonzero(is_covered).tolist()
    names = [shorten(rows.group_names[i], LONGEST_NAME) for i in covered]
    if with_held_out_rows:
        sizes = rows.count_groups()[covered].tolist()
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
    update: Any, rows: FitRows, positive: Decisions, rows_text: str = ""
) -> GroupText:
    """Return a sentence about the groups left out; empty if there are none.

    It states the metric over all groups, too, on the same rows. `rows_text` names the rows, such
    as "on the 600 rows of both halves", where the other figures are measured on other rows.
    """
    groups = update.groups_left_out_
    if not groups:
        return GroupText("", "")
    n_hidden = rows.count(~rows.in_totals & rows.groups.is_known)
    hidden = ""
    if n_hidden:
        n_rows = n_of(n_hidden, "row")
        hidden = f" No total counts the {n_rows} of groups of fewer than {FEWEST_DESCRIBED} rows."
    subject = (
        f"{n_of(len(groups), 'group')} with fewer than min_group_size={update.min_group_size} rows"
    )
    statement = f"{verb(len(groups), 'be')} left out of the constraint"
    listed = list_names(
        [small_group_text(g.name, g.n, "row", g.rate_before, g.rate_after) for g in groups],
        MAX_LISTED_GROUPS,
    )
    named = f"{subject} {statement}: {listed}."
    total = n_of(sum(group.n for group in groups), "row")
    over_all = _over_all_groups(update, rows, positive, rows_text)
    # "left" may be a group, and `Patch.verify` looks for the names of groups in a patch
    counted = f"{subject} ({total} in all) {verb(len(groups), 'be')} not part of the constraint."
    return GroupText(f"{named}{hidden} {over_all}".rstrip(), counted + hidden)


def _over_all_groups(update: Any, rows: FitRows, positive: Decisions, rows_text: str) -> str:
    """Return the metric over all groups whose rates may be shown and are defined."""
    if rows.probabilities is not None:
        return ""  # rates of groups with few expected people are hardly known
    constraint, metric = update._constraint, update._compared_text().metric
    cells = Cells.of(constraint, rows.groups.codes, len(rows.groups.labels), rows.label)
    has_every_rate = (cells.totals((rows.weight > 0).astype(np.float64)) > 0).all(axis=0)
    is_large = rows.count_groups() >= FEWEST_DESCRIBED
    is_defined = is_large & has_every_rate
    number = np.cumsum(is_defined) - 1
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


# ---------------------------------------------------------------------------------------------
# What files hold


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
