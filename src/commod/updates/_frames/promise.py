"""Test the promises of an update on the held-out half of a frame, from counts by bins of η.

1. Rows with an odd draw are held out. The direction is searched for on the others.
2. The direction gets an offset for each of 24 targets, from the stated one up to parity. These
   offsets lie between bins of η, and are determined on the people who are not held out.
3. The promises of these updates are tested on held-out people, as in memory (`_promise.py`).

All choices before the tests use the fit half only, so they do not change the error of a promise.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commod._statistics.promises import promised_fairness, rows_factor
from commod.updates._cross_fit import with_target
from commod.updates._expectation import strictest_target
from commod.updates._fitted_update import FittedUpdate
from commod.updates._frames.cut import problem_of_counts
from commod.updates._frames.lines import CountedProblem, Lines, take_lines
from commod.updates._frames.offset import FrameCut, FrameFit
from commod.updates._frames.texts import frame_texts
from commod.updates._held_out import (
    PromiseTest,
    choose_update,
    fairest_first,
    is_degenerate,
)
from commod.updates._promise import N_TESTED_TARGETS
from commod.updates._search import SearchOutcome, changed_rows, no_change, price_of_target

Mask = NDArray[np.bool_]


def store_promise(update: Any, fitted: FrameFit, lines: Lines) -> None:
    """Store in a `ControlledDebiaser` the cheapest update whose promise holds."""
    constraint, target, confidence = update._constraint, update._target, float(update.confidence)
    problem, cut = fitted.kept.problem, fitted.cut
    held_out, tested = _tested_updates(update, fitted, lines)
    base, people = held_out.rows.base.decisions, held_out.rows.each
    decided = [base ^ changed_rows(held_out, outcome) for outcome in tested]
    tables = [held_out.counts(decisions) for decisions in decided]
    degenerate = [is_degenerate(base, decisions, people) for decisions in decided]
    unchanged = held_out.counts(base)
    choice = choose_update(constraint, tables, unchanged, target, confidence, degenerate)
    update.promised_ = choice.is_promised
    kept = no_change(tested[0]) if choice.kept is None else tested[choice.kept]
    own = no_change(fitted.kept.outcome)
    if choice.kept is not None and cut is not None:
        own = _on_sample(cut, held_out, kept)
    table = unchanged if choice.kept is None else tables[choice.kept]
    both = _both_halves(fitted, lines, held_out, kept)
    update._frame_texts = tuple(frame_texts(lines.table, fitted, both.rows.n_people))
    update._store_update(problem, own)
    update.multiplier_ = price_of_target(fitted.everybody, kept)
    bounds = [promised_fairness(constraint, *one, confidence) for one in tables]
    update.path_ = [
        {
            "step": "tested" if i < choice.n_tested else "not tested",
            "change_rate": fitted.everybody.rows.count(changed_rows(fitted.everybody, outcome))
            / fitted.everybody.rows.n_people,
            "n_terms": int(np.count_nonzero(fitted.kept.outcome.weights)),
            "promised_fairness": bounds[i],
        }
        for i, outcome in enumerate(tested)
    ]
    observed = constraint.value_from_counts(*tables[0])
    changed = decided[0] != base
    test = PromiseTest(
        problem=both,
        n_fit_rows=fitted.everybody.rows.n_people,
        n_rows_needed=rows_factor(constraint, *table, target, confidence)
        * 2
        * held_out.rows.n_people,
        choice=choice,
        observed=float("nan") if observed is None else float(observed),
        promised=bounds[0],
        change_rate=held_out.rows.count(changed) / held_out.rows.n_people,
    )
    measured = replace(held_out, changed=changed_rows(held_out, kept))
    update._store_figures(measured, FittedUpdate(problem, own), test)


def _tested_updates(
    update: Any, fitted: FrameFit, lines: Lines
) -> tuple[CountedProblem, list[SearchOutcome]]:
    """Return the problem of held-out people, and the updates in the order of their tests."""
    constraint, target, cut = update._constraint, update._target, fitted.cut
    moves = fitted.kept.problem.may_raise, fitted.kept.problem.may_lower
    if cut is None:
        index = np.flatnonzero(lines.held_out)
        return take_lines(fitted.everybody, index), [fitted.outcome]
    held_out = problem_of_counts(cut.counted, cut.held_out, moves)
    targets = np.linspace(target, strictest_target(constraint, target), N_TESTED_TARGETS)
    outcomes = [with_target(cut.on_all, float(one)).outcome for one in targets]
    return held_out, fairest_first(cut.everybody, outcomes)


def _on_sample(cut: FrameCut, held_out: CountedProblem, kept: SearchOutcome) -> SearchOutcome:
    """Return the update in the unit of its sample; its offset lies between bins of both halves."""
    counts = cut.counts.join(cut.held_out)
    moves = held_out.may_raise, held_out.may_lower
    middle = cut.middle_at(problem_of_counts(cut.counted, counts, moves), counts, kept.offset)
    offset = cut.kept.outcome.mean_total - middle / cut.factor
    return replace(cut.kept.outcome, offset=offset, violation=kept.violation)


def _both_halves(
    fitted: FrameFit, lines: Lines, held_out: CountedProblem, kept: SearchOutcome
) -> CountedProblem:
    """Return the problem of both halves, with the rows that the update changes."""
    if fitted.cut is None:
        return fitted.everybody
    counts = fitted.cut.counts.join(fitted.cut.held_out)
    moves = held_out.may_raise, held_out.may_lower
    both = problem_of_counts(fitted.cut.counted, counts, moves)
    return replace(both, changed=changed_rows(both, kept))
