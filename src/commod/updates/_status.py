"""Write the sentences of `status_`: what was asked for, what was reached, and the limits."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np
from numpy.typing import NDArray

from commod._data.disclosure import MIN_CATEGORY_SIZE
from commod._solvers.search.rates import Caps
from commod._text import most_change_text, n_of, verb
from commod.updates._search import SearchOutcome

KNOWING_METHOD = "even for a method that knows the sensitive features"


def target_text(goal: str, reached: bool, change_rate: float = 0.0) -> str:
    """Return whether a goal such as "P-rule ≥ 0.8" is reached on the fit rows.

    An update that changes more than half of all decisions is not said to have reached its goal.
    """
    if reached and most_change_text(change_rate):
        return f"The changed decisions have {goal} on the fit rows, but this is no success."
    if reached:
        return f"{goal} is reached on the fit rows."
    return f"{goal} was not reached on the fit rows; the update that comes closest was kept."


def promise_text(goal: str, confidence: float, promised: bool, n_rows_needed: float) -> str:
    """Return whether a goal is promised; otherwise, how many rows the promise would need.

    `n_rows_needed` is not finite where no update that was tried is fair enough.
    """
    promise = f"for new people with confidence {confidence:g}"
    if promised:
        return (
            f"{goal} is promised {promise}, if the rows are new to the base model and new people "
            "come from the same population."
        )
    reason = "no update that was tried is fairer than the target on the held-out rows"
    if np.isfinite(n_rows_needed):
        reason = f"about {_round_up(n_rows_needed):,} rows would be needed"
    return f"Insufficient evidence that {goal} holds {promise}: {reason}."


def sample_text(outcome: SearchOutcome, n_fit_rows: int) -> str:
    """Return how large the search sample was, and whether all rows agree with it."""
    text = (
        f"The search ran on a sample of {outcome.n_search_rows:,} of the {n_fit_rows:,} rows that "
        "the update was fitted on, drawn by group and decision; the offset was determined on all "
        "of them."
    )
    if not outcome.verified:
        return text
    agreement = "the share of changed decisions agrees with the sample within sampling error."
    return f"{text} On all of them, {agreement}"


def limit_text(limit: float) -> str:
    """Return the smallest share of changes for the same fairness."""
    return f"The same fairness needs at least {limit:.1%} changed, {KNOWING_METHOD}."


def missed_text(goal: str, limit: float, direction: str, caps: Caps) -> str:
    """Return the smallest share of changes for a goal that was not reached, and the reason.

    `limit` is infinite where no decisions reach the goal.
    """
    if np.isinf(limit):
        return f"{goal} cannot be reached with direction={direction!r} by any update."
    set_caps = [f"max_{name} is {cap:.1%}" for name, cap in asdict(caps).items() if cap is not None]
    reason = ", ".join(set_caps) or "no update of these columns was found that reaches it"
    return f"{goal} needs at least {limit:.1%} of decisions changed, {KNOWING_METHOD}; {reason}."


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
        f"{MIN_CATEGORY_SIZE} people each, because min_category_size is below "
        f"{MIN_CATEGORY_SIZE}: they may tell about single people."
    )
    return (sentence,)


def gains_text(limit: float) -> str:
    """Return the smallest share of changes for the same fairness with gains only."""
    if np.isinf(limit):
        return "Gains alone cannot reach the same fairness."
    return f"With gains only the same fairness needs at least {limit:.1%} changed."


def _round_up(n_rows: float) -> int:
    """Return a number of rows rounded up to two significant digits."""
    step = 10 ** max(0, int(np.floor(np.log10(max(n_rows, 1)))) - 1)
    return int(np.ceil(n_rows / step) * step)
