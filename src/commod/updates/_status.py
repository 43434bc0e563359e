"""Write the sentences of `status_`: what was asked for, what was reached, and the limits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commod._data.disclosure import MIN_CATEGORY_SIZE
from commod._evidence.task import Caps
from commod._text import MAX_CHANGED, capitalised, most_change_text, n_of, verb
from commod.updates._compared import all_kept
from commod.updates._constraint_values import standing_texts, strata_texts
from commod.updates._edit_text import edit_texts, why_missed
from commod.updates._expectation_text import expectation_texts, round_up
from commod.updates._found_update import MAX_ALIKE, FittedUpdate
from commod.updates._problem import FitProblem, is_exact_limit, proven_limit
from commod.updates._promise import PromiseTest
from commod.updates._unknown_groups import (
    KNOWING_METHOD,
    knowing_method,
    known_limit_texts,
    unknown_texts,
)
from commod.updates._whom import outscoring_sentences


def sentences(
    update: Any, problem: FitProblem, fitted: FittedUpdate, test: PromiseTest | None
) -> Iterator[str]:
    """Yield the sentences of `status_` of a `ControlledDebiaser`, the most important first.

    `problem` has the rows that were measured. `test` is None without `confidence`.
    """
    for sentence in _sentences(update, problem, fitted, test):
        yield capitalised(sentence)  # the name of a metric may come first


def _sentences(
    update: Any, problem: FitProblem, fitted: FittedUpdate, test: PromiseTest | None
) -> Iterator[str]:
    expectation = fitted.expectation
    metric = update.compared_text().metric
    goal = f"{metric} {problem.constraint.sign} {update.target_:g}"
    is_missed = not problem.constraint.is_met(update.fairness_, update.target_)
    covered, left_out, _ = (text.named for text in update._group_texts)
    yield from degenerate_texts(update)
    if test is not None:
        yield promise_text(goal, update.confidence, test, covered)
    elif update.edits_:
        yield from edit_texts(update, goal, is_missed=is_missed, groups=covered)
    elif update._is_budget:
        yield budget_text(metric, problem.caps, covered)
    elif expectation is None or not expectation.is_known or (is_missed and not update.reached_):
        yield target_text(goal, not is_missed, covered, is_success=not update._is_degenerate)
    if expectation is not None:
        yield from expectation_texts(update, problem, goal, expectation, covered)
    rows_word = "fit rows" if test is None else "held-out rows"
    yield from standing_texts(update, rows_word)
    yield from strata_texts(update, problem.rows)
    if left_out:
        yield left_out
    yield update._figures_text(rows_word)
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
    if update.limit_ >= 0 and update.change_rate_:
        is_exact = is_exact_limit(same, update.fairness_)
        yield limit_text(update.limit_, is_exact=is_exact, knowing=knowing_method(problem))
        yield from known_limit_texts(update)
    is_missed = not problem.constraint.is_met(update.fairness_, update.target_)
    if problem.standing:
        is_missed |= not all_kept(problem.standing, _standing_values(update, problem))
        goal = "The set of all bounds"
    # A target that is expected on new people may be missed on the fit rows by chance.
    if is_missed and not (update.reached_ or update._is_budget or is_test):
        asked = problem.with_direction(*update._moves(update.direction))
        limit = proven_limit(asked, update.target_)
        reason = why_missed(update)
        knowing = knowing_method(problem)
        yield missed_text(goal, limit, update.direction, problem.caps, knowing, reason)
    if update.n_losses_ > update.n_gains_ and update.direction == "any":
        raise_only = update._raising_is_a_gain()
        yield gains_text(proven_limit(same, update.fairness_, raise_only=raise_only))


def same_fairness(update: Any, problem: FitProblem) -> FitProblem:
    """Return the problem whose limit is that of the fairness which the update reaches.

    It has the direction that the user states. A bound that stands and is missed is what is reached.
    """
    asked = problem.with_direction(*update._moves(update.fitted_param("direction")))
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


def budget_text(metric: str, caps: Caps, groups: str) -> str:
    """Return what was sought within a budget of changes."""
    best = f"the best {metric} found {groups}".rstrip()
    return f"This is {best} with at most {caps.changes:.1%} of the decisions changed."


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
    bound = (
        f"{tested} has {test.observed:.3f} on the held-out rows, and {test.promised:.3f} is what "
        "these rows can promise"
    )
    if test.choice.failure == "unfair" or not np.isfinite(test.n_rows_needed):
        return f"{tested} is not fairer than the target on the held-out rows ({test.observed:.3f})"
    return f"{bound}; about {round_up(test.n_rows_needed):,} rows would be needed"


def whom_texts(update: Any) -> Iterator[str]:
    """Yield the direction that was kept, and what the extra changes were spent on."""
    if update.direction_ != update.direction:
        kept = "gains" if update.direction_ == "gains_only" else "losses"
        yield f"Of the directions that were counted, {kept} only was kept."
    if update.nearness_ > 0.05:
        yield "Of two people with the same points, the one nearer to the threshold changes first."


def limit_text(limit: float, *, is_exact: bool = True, knowing: str = KNOWING_METHOD) -> str:
    """Return the smallest share of changes for the same fairness.

    A limit that is not exact is a proven lower bound. `knowing` says for whom it holds.
    """
    text = f"The same fairness needs at least {limit:.1%} changed, {knowing}."
    if not is_exact:
        text += " This is a proven lower bound: the exact number was not found in time."
    return text


def missed_text(
    goal: str,
    limit: float,
    direction: str,
    caps: Caps,
    knowing: str = KNOWING_METHOD,
    reason: str = "",
) -> str:
    """Return the smallest share of changes for a goal that was not reached, and the reason.

    `limit` is infinite where no decisions reach the goal. `reason` goes before that of the caps.
    """
    if np.isinf(limit):
        return f"{goal} cannot be reached with direction={direction!r} by any update."
    reason = reason or _set_caps(caps) or "no update of these columns was found that reaches it"
    if np.isnan(limit):
        return f"How many changes {goal} needs is not known; {reason}."
    return f"{goal} needs at least {limit:.1%} of decisions changed, {knowing}; {reason}."


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


def _set_caps(caps: Caps) -> str:
    """Return the caps that the user set; empty without any."""
    named = asdict(caps).items()
    return ", ".join(f"max_{name} is {cap:.1%}" for name, cap in named if cap is not None)


def gains_text(limit: float) -> str:
    """Return the smallest share of changes for the same fairness with gains only."""
    if np.isinf(limit):
        return "Gains alone cannot reach the same fairness."
    return f"With gains only the same fairness needs at least {limit:.1%} changed."
