"""Count people in the order of their evidence, and cut where the target is expected.

1. Sort people by side · v / cost, on values that each person's own row did not shape.
2. Count the rates exactly along this order. People of equal evidence change together.
3. Take the first count at which every metric is expected to keep its bound in a new sample.

Where no count is enough, the cut is the first one whose expectation is not clearly worse than the
best one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from commod._data.arrays import Codes, Floats, Mask
from commod._evidence.task import TINY, EvidenceTask
from commod.metrics._changes import is_degenerate

MAX_STOPS = 20_000  # counts along an order; the counts around the cut are then taken one by one
N_TRIED = 16  # counts at which the chance of new samples is computed where none is enough
N_CORRECTIONS = 12  # of the chance of new samples, which depends on the count
CUT_DIGITS, MOST_DIGITS = 6, 17  # significant digits of the cut; more where evidence is close


@dataclass(frozen=True)
class Path:
    """Rates after the first people of an order have changed, at m counts.

    - `n_changed` (m,): people changed; `rates` (C, m): of the cells; `caps` (2, m): gain of
      accuracy and change of volume.
    - `values` (n_constraints, m): the metrics; `is_within_caps` (m,): whether all caps hold.
    - `is_degenerate` (m,): whether most decisions change, or become alike.
    - `lowest` (m,): the least evidence of a person who has changed; infinite at the first count.
    - `next` (m,): the evidence of the people who change next; 0 at the last count.
    """

    n_changed: Floats
    rates: Floats
    caps: Floats
    values: Floats
    is_within_caps: Mask
    is_degenerate: Mask
    lowest: Floats
    next: Floats

    def __len__(self) -> int:
        return len(self.n_changed)

    @property
    def is_allowed(self) -> Mask:
        """Return at which counts all caps hold, and decisions still tell people apart, (m,)."""
        return self.is_within_caps & ~self.is_degenerate

    def cut(self, at: int) -> float:
        """Return the evidence between the last person who changes and the next; inf for nobody."""
        if at == 0:
            return np.inf
        low, high = float(self.next[at]), float(self.lowest[at])
        for digits in range(CUT_DIGITS, MOST_DIGITS + 1):
            cut = float(f"{(low + high) / 2:.{digits - 1}e}")
            if low <= cut < high:
                return cut
        return low


def evidence(task: EvidenceTask, v: Floats, cost: Floats) -> Floats:
    """Return side · v / cost of each person, (n,); −inf where a decision may not change."""
    score = task.side * v / np.maximum(cost, 1e-9)
    return np.where(task.may_change, score, -np.inf)


def order_of(score: Floats) -> Codes:
    """Return who may change in the order of `score` (n,), highest first, down to 0.

    Nobody changes whose change is expected to hurt.
    """
    order = np.flatnonzero(score > 0)
    return np.asarray(order[np.argsort(-score[order], kind="stable")])


def path_of(
    task: EvidenceTask,
    score: Floats,
    order: Codes | None = None,
    window: tuple[float, float] | None = None,
) -> Path:
    """Return the counts along the order of `score` (n,).

    Of very many counts, MAX_STOPS are taken, and all of them where the score lies in `window`.
    """
    order = order_of(score) if order is None else order
    sorted_score = score[order]
    ends = np.flatnonzero(np.diff(sorted_score, append=-np.inf)) + 1
    if len(ends) > MAX_STOPS:
        kept = np.zeros(len(ends), dtype=bool)
        kept[np.linspace(0, len(ends) - 1, MAX_STOPS).astype(np.intp)] = True
        if window is not None:
            at = sorted_score[ends - 1]
            kept |= (at >= window[0]) & (at <= window[1])
        ends = ends[kept]
    n_stops = len(ends)
    interval = np.repeat(np.arange(n_stops), np.diff(ends, prepend=0))
    side = task.side[order]
    people = np.bincount(interval, task.people[order], n_stops)
    n_cells = task.n_cells
    steps = np.zeros((n_stops, n_cells + 1))
    for cell, step in zip(task.cell[order].T, task.step[order].T, strict=True):
        sums = np.bincount(interval * (n_cells + 1) + cell, side * step, steps.size)
        steps += sums.reshape(steps.shape)
    caps = [np.bincount(interval, side * c, n_stops) for c in task.caps_steps[order].T]
    rates = np.vstack([np.zeros(n_cells), np.cumsum(steps[:, :-1], axis=0)]).T
    rates += task.base_rates[:, None]
    last = sorted_score[ends - 1] if n_stops else np.zeros(0)
    following = np.append(sorted_score, 0.0)[ends] if n_stops else np.zeros(0)
    first = sorted_score[:1] if n_stops else np.zeros(1)
    weight = task.weight[order]
    changed, volume = (
        np.append(0.0, np.cumsum(np.bincount(interval, w, n_stops)))
        for w in (weight, side * weight)
    )
    n_changed, rates = np.append(0.0, np.cumsum(people)), np.clip(rates, 0.0, 1.0)
    added = np.array([np.append(0.0, np.cumsum(c)) for c in caps]).reshape(-1, n_stops + 1)
    return Path(
        n_changed=n_changed,
        rates=rates,
        caps=added,
        values=task.values(rates),
        is_within_caps=is_within_caps(task, n_changed, added),
        is_degenerate=degenerate_counts(task, changed, volume),
        lowest=np.append(np.inf, last),
        next=np.append(first, following),
    )


class Stop(NamedTuple):
    """The count that a path is cut at: `cut` is inf where nobody changes.

    `expected` (n_constraints,) are the metrics to expect, and `is_reached` whether they keep their
    bounds. `n_changed` people change, of those that were counted. `is_allowed`: as in a path.
    `is_blocked`: whether degenerate counts alone keep the bounds.
    """

    cut: float
    n_changed: float
    is_reached: bool
    expected: Floats
    rates: Floats
    is_allowed: bool = True
    is_blocked: bool = False

    def rank(self, task: EvidenceTask) -> tuple[bool, float]:
        """Return what two stops are compared by: bounds kept, then changes or distance."""
        if self.is_reached:
            return False, self.n_changed
        return True, -float(task.slack(self.expected).min())


def best_stop(task: EvidenceTask, score: Floats, *, is_budget: bool = False) -> Stop:
    """Return the first count at which all bounds are expected to hold, within the caps.

    With `is_budget`, the best expectation within the caps is sought, whatever the bounds are.
    """
    order = order_of(score)
    path = path_of(task, score, order)
    stop = stop_on(task, path, is_budget=is_budget)
    if len(path) > MAX_STOPS and np.isfinite(stop.cut):
        at = int(np.searchsorted(-path.lowest, -stop.cut)) - 1
        window = path.lowest[at], path.lowest[at - 1]
        stop = stop_on(task, path_of(task, score, order, window), is_budget=is_budget)
    return stop


def stop_on(task: EvidenceTask, path: Path, *, is_budget: bool = False) -> Stop:
    """Return the first count of a path at which all bounds are expected to hold."""
    at, expected = _stop_at(task, path, is_budget)
    is_allowed = bool(path.is_allowed[at])
    is_reached = bool(is_allowed and (task.slack(expected) >= -TINY).all())
    is_blocked = not (is_reached or is_budget) and bool(path.is_degenerate.any())
    if is_blocked:
        slack = np.where(path.is_within_caps, task.slack(path.values), -np.inf)
        is_blocked = _first_expected(task, path, slack) is not None
    n_changed, rates = float(path.n_changed[at]), path.rates[:, at]
    return Stop(path.cut(at), n_changed, is_reached, expected, rates, is_allowed, is_blocked)


def is_kept_without_chance(task: EvidenceTask, score: Floats) -> bool:
    """Return whether a count keeps all bounds, if the chance of new samples is left out."""
    path = path_of(task, score)
    return bool(((task.slack(path.values) >= -TINY).all(axis=0) & path.is_allowed).any())


def stop_at_cut(task: EvidenceTask, score: Floats, cut: float) -> Stop:
    """Return what is counted where everybody with a score above the cut changes."""
    changed = score > cut
    side = task.side * changed
    rates = np.clip(task.base_rates + task.added(side), 0.0, 1.0)
    expected = task.expected(rates[:, None])[:, 0]
    n_changed = float(task.people[changed].sum())
    is_reached = bool((task.slack(expected) >= -TINY).all())
    counts = np.array([n_changed]), (side @ task.caps_steps)[:, None]
    is_allowed = is_within_caps(task, *counts)
    weights = (np.array([one @ task.weight]) for one in (np.abs(side), side))
    is_allowed &= ~degenerate_counts(task, *weights)
    return Stop(cut, n_changed, is_reached, expected, rates, bool(is_allowed[0]))


def is_within_caps(task: EvidenceTask, n_changed: Floats, caps: Floats) -> Mask:
    """Return at which counts all caps hold, (m,)."""
    limits, kept = task.caps, np.ones(len(n_changed), dtype=bool)
    if limits.changes is not None:
        kept &= n_changed <= limits.changes * task.people.sum() + 1e-9
    if limits.accuracy_loss is not None:
        kept &= caps[0] >= -limits.accuracy_loss - TINY
    if limits.volume_change is not None:
        kept &= np.abs(caps[1]) <= limits.volume_change + TINY
    return kept


def degenerate_counts(task: EvidenceTask, changed: Floats, volume: Floats) -> Mask:
    """Return at which counts most decisions change, or become alike, (m,).

    `changed` (m,) is the weight that changes, and `volume` that of the positive decisions added.
    """
    whole = task.weight.sum()
    before = float(task.weight[task.positive].sum() / whole)
    return np.asarray(is_degenerate(changed / whole, before, before + volume / whole))


def _stop_at(task: EvidenceTask, path: Path, is_budget: bool) -> tuple[int, Floats]:
    """Return the count to stop at, and the metrics to expect there, (n_constraints,).

    Counts beyond the fairest one do not count: there, more changes only lessen the chance of new
    samples.
    """
    slack, allowed = task.slack(path.values), path.is_allowed
    if task.for_new:
        fairest = _fairest(task, path, np.where(allowed, slack, -np.inf))
        allowed = allowed & (np.arange(len(path)) <= fairest)
    if not is_budget:
        first = _first_expected(task, path, np.where(allowed, slack, -np.inf))
        if first is not None:
            return first
    at = _best(task, path, slack, allowed, is_budget) if allowed.any() else 0
    return at, task.expected(path.rates[:, [at]])[:, 0]


def _fairest(task: EvidenceTask, path: Path, slack: Floats) -> int:
    """Return the first count whose worst slack is the best one, but for one person of a cell.

    It keeps all bounds if any count does.
    """
    worst = slack.min(axis=0)
    best = int(np.argmax(worst))
    one_person = np.abs(_sensitivity(task, path.rates[:, best])) / np.maximum(task.sizes, 1.0)
    least = max(worst[best] - one_person.max(initial=0.0), min(worst[best], 0.0))
    return int(np.argmax(worst >= least))


def _first_expected(task: EvidenceTask, path: Path, slack: Floats) -> tuple[int, Floats] | None:
    """Return the first count whose expected metrics keep their bounds, and these metrics.

    The answer is None if none is found.

    An expectation differs from the counted metric by the chance of new samples, which changes
    slowly along the path. So the difference at one count says where to look next.
    """
    at = _first(slack, 0)
    for step in range(N_CORRECTIONS):
        if at is None:
            return None
        expected = task.expected(path.rates[:, [at]])[:, 0]
        gap = task.slack(expected)
        if (gap >= -TINY).all():
            return at, expected
        margin = 1e-6 * 2**step  # so that counts that go up and down by chance end it
        shift = np.minimum(gap - slack[:, at], 0.0) - margin
        at = _first(slack + shift[:, None], at)  # beyond `at`, whose own slack is negative now
    return None


def _first(slack: Floats, start: int) -> int | None:
    """Return the first count from `start` on at which no slack (k, m) is negative."""
    kept = np.flatnonzero((slack[:, start:] >= -TINY).all(axis=0))
    return int(kept[0]) + start if len(kept) else None


def _best(task: EvidenceTask, path: Path, slack: Floats, allowed: Mask, is_budget: bool) -> int:
    """Return the allowed count with the best worst expected slack.

    Without a budget, it is the first count whose slack is not clearly below the best one. "Clearly"
    is half of the standard error of the difference, which only the people between the two make. For
    new people it is a whole one where nobody changes: what is out of reach is not worth a change
    that may be worse.
    """
    counts = np.flatnonzero(allowed)
    worst = _expected_slack(task, path, slack, counts).min(axis=0)
    best = int(counts[np.argmax(worst)])
    if is_budget:
        return best
    slope = _sensitivity(task, path.rates[:, best])
    between = np.abs(path.rates[:, counts] - path.rates[:, [best]])
    variance = (slope**2 / np.maximum(task.sizes, 1.0)) @ between
    errors = np.sqrt(variance) / 2
    if task.for_new:
        errors[counts == 0] *= 2
    return int(counts[np.flatnonzero(worst >= worst.max() - errors)[0]])


def _expected_slack(task: EvidenceTask, path: Path, slack: Floats, counts: Codes) -> Floats:
    """Return the expected slack at some counts (m,), (n_constraints, m).

    It differs from the counted `slack` by the chance of new samples, which changes slowly along
    the path. So the chance is computed at N_TRIED counts, and interpolated between them.
    """
    tried = np.unique(counts[np.linspace(0, len(counts) - 1, N_TRIED).astype(np.intp)])
    chance = task.slack(task.expected(path.rates[:, tried])) - slack[:, tried]
    return slack[:, counts] + np.array([np.interp(counts, tried, one) for one in chance])


def _sensitivity(task: EvidenceTask, rates: Floats) -> Floats:
    """Return by how much the worst slack changes with each rate, (C,)."""
    width = 1e-4
    moved = np.clip(rates[:, None] + width * np.eye(len(rates)), 0.0, 1.0)
    slack = task.slack(task.values(np.column_stack([rates, moved]))).min(axis=0)
    return np.nan_to_num((slack[1:] - slack[0]) / width)
