"""Measure and judge whether those who change are nearer to the threshold than those who do not."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from commod._data.disclosure import FEWEST_DESCRIBED
from commod._record import Estimate, GroupOutscoring, Outscoring, State
from commod._record.explanation import Direction
from commod._reporting.audit.counts import UNDEFINED
from commod._reporting.audit.evidence import Evidence
from commod._reporting.audit.people import AuditedPeople
from commod._statistics.intervals import share_estimate
from commod._text import (
    count,
    list_names,
    n_of,
    outscoring_text,
    percent,
    shorten,
    true_shares_text,
)
from commod.metrics._outscoring import Sides

CHANCE = 0.5  # share of pairs in which the one who changes is the one nearer to the threshold
MAX_LISTED_GROUPS = 3  # in the sentence of a check
DIRECTIONS: tuple[Direction, ...] = ("gain", "loss")


def outscoring_of(
    people: AuditedPeople, is_compared: NDArray[np.bool_], level: float
) -> tuple[Outscoring, ...]:
    """Return the figures of gains and of losses, whichever occur; none without base scores.

    Only compared groups count: a pair is made within a group, and a small group has few pairs.
    """
    if people.scores_before is None or not is_compared.any():
        return ()
    # a high score may predict the favourable label, or the other one
    coding = people.coding
    is_good = coding.favorable_is_positive == coding.score_is_for_positive
    scores = people.scores_before if is_good else -people.scores_before
    number = np.where(is_compared, np.cumsum(is_compared) - 1, -1)
    names = [str(n) for n in np.array(people.coding.group_names, dtype=object)[is_compared]]
    sides = Sides.of(
        scores, people.favorable(people.before), number[people.groups.codes], len(names)
    )
    figures = (_of_direction(people, sides, change, names, level) for change in DIRECTIONS)
    return tuple(figure for figure in figures if figure.n_changed)


def _of_direction(
    people: AuditedPeople, sides: Sides, change: Direction, names: list[str], level: float
) -> Outscoring:
    side, changed = sides.side_of(change), people.changed
    pairs = side.count_pairs(changed)
    true_shares: list[Estimate | None] = [None, None]
    if people.label is not None:
        is_true, own = people.favorable(people.label)[side.rows], changed[side.rows]
        true_shares = [
            share_estimate(int(is_true[part].sum()), int(part.sum()), level) for part in (own, ~own)
        ]
    groups = []
    for i, name in enumerate(names):
        n_changed, n_others = int(pairs.n_changed[i]), int(pairs.n_others[i])
        # the rank of one person among few would tell about that person
        is_described = min(n_changed, n_others) >= FEWEST_DESCRIBED
        figure = pairs.of_group(i).estimate(level) if is_described else UNDEFINED
        groups.append(GroupOutscoring(name, n_changed, n_others, figure))
    return Outscoring(
        change=change,
        n_changed=int(pairs.n_changed.sum()),
        n_others=int(pairs.n_others.sum()),
        same_group=pairs.estimate(level),
        overall=side.without_groups().count_pairs(changed).estimate(level),
        true_share_changed=true_shares[0],
        true_share_others=true_shares[1],
        groups=tuple(groups),
    )


# ---------------------------------------------------------------------------------------------
# Sentences and checks


def outscoring_sentences(evidence: Evidence) -> Iterable[str]:
    """Yield a sentence for gains and one for losses, whichever are known."""
    for figures in evidence.outscoring:
        text = outscoring_text(figures.change, figures.same_group, evidence.level)
        if text:
            yield f"{text} {_true_shares(figures)}".rstrip()


def _true_shares(figures: Outscoring) -> str:
    changed, others = figures.true_share_changed, figures.true_share_others
    if changed is None or others is None:
        return ""
    return true_shares_text(figures.change, changed.value, others.value)


def gainers_answer(evidence: Evidence) -> tuple[State, str] | None:
    """Return whether those who gain score lower than those who stay rejected."""
    return _answer(evidence, "gain")


def losers_answer(evidence: Evidence) -> tuple[State, str] | None:
    """Return whether those who lose score higher than those who keep the favourable outcome."""
    return _answer(evidence, "loss")


def _answer(evidence: Evidence, change: Direction) -> tuple[State, str] | None:
    figures = next((f for f in evidence.outscoring if f.change == change), None)
    if figures is None:
        return None
    people = f"{n_of(figures.n_changed, change)}, {count(figures.n_others)} others"
    text = outscoring_text(change, figures.same_group, evidence.level)
    value, high = figures.same_group.value, figures.same_group.high
    if value is None:
        return "not enough evidence", f"No group has people on both sides to compare ({people})."
    text = f"{text} This check requires {CHANCE:.0%}, which is chance ({people}).{_worst(figures)}"
    if value >= CHANCE:
        return "passed", text
    return ("failed" if high is not None and high < CHANCE else "not enough evidence"), text


def _worst(figures: Outscoring) -> str:
    """Return the groups whose interval lies below chance, lowest first."""
    known = [
        (g.probability.value, g.name)
        for g in figures.groups
        if g.probability.high is not None and g.probability.high < CHANCE
    ]
    if not known:
        return ""
    listed = [f"{shorten(name)} ({percent(value)})" for value, name in sorted(known)]
    return f" Lowest by group: {list_names(listed, MAX_LISTED_GROUPS)}."
