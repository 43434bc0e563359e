"""Finding the rule that describes changed rows best: few conditions, few wrong rows, many right.

A rule is a conjunction of conditions on different columns. A beam search adds the best range or the
best list of categories of any column, found for all columns in one count; then each condition is
sought again beside the others, and the ends of ranges are moved to the best round numbers.

The best rule may be one that is wrong too often to say who changes, because it reaches so many. So
the search keeps two beams, that of the best rules of all, from which narrower ones grow, and that
of the best ones that are right often enough.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtrc

from commod._reporting.explain.bins import Binned
from commod._reporting.explain.conditions import (
    Found,
    Measure,
    Part,
    best_parts,
    log_choices,
    with_end_moved,
)

Mask = NDArray[np.bool_]

BEAM = 3
N_MENDED = 3  # times that each condition is sought again, at most
NO_BETTER = 1e-12
CHANCE = 0.1  # of finding a rule as good among as many where nothing is to be found


@dataclass(frozen=True)
class Rule:
    """Conditions that hold together, the binned rows they describe, and how good that is."""

    parts: tuple[Part, ...]
    rows: Mask
    quality: float
    is_enough: bool = True

    @property
    def cost(self) -> float:
        """Return how much there is to read, in conditions."""
        return sum(part.cost for part in self.parts)

    @property
    def rank(self) -> tuple[bool, float]:
        """Return what rules are compared by: first whether they are right often enough."""
        return self.is_enough, self.quality


@dataclass(frozen=True)
class Task:
    """What a rule is to describe: the rows `right`, and none of the rows `wrong`.

    Both are masks over the binned rows; a row that is neither does not count. A right row stands
    for `right_weight` people, a wrong one for `wrong_weight`. A rule must describe `least_right`
    of the right rows at least.
    """

    binned: Binned
    right: Mask
    wrong: Mask
    right_weight: float
    wrong_weight: float
    max_conditions: int
    least_right: float = 1.0

    @cached_property
    def measure(self) -> Measure:
        """Return how good rules are."""
        counts = int(self.right.sum()), int(self.wrong.sum())
        return Measure.of(*counts, (self.right_weight, self.wrong_weight), self.least_right)

    def rule(self, parts: tuple[Part, ...], rows: Mask | None = None) -> Rule:
        """Return the rule of these conditions."""
        if rows is None:
            rows = np.ones(len(self.right), dtype=bool)
            for part in parts:
                rows &= part.mask(self.binned)
        cost = sum(part.cost for part in parts)
        counts = np.count_nonzero(rows & self.right), np.count_nonzero(rows & self.wrong)
        quality, is_enough = self.measure.quality(*counts, cost), self.measure.is_enough(*counts)
        return Rule(parts, rows, float(quality), bool(is_enough))

    def beats_chance(self, rule: Rule) -> bool:
        """Return whether more rows are right than the luckiest of as many rules would have had."""
        n_right, n_wrong = (np.count_nonzero(rule.rows & some) for some in (self.right, self.wrong))
        all_right, all_wrong = np.count_nonzero(self.right), np.count_nonzero(self.wrong)
        if n_right == all_right and not n_wrong and len(rule.parts) == 1:  # exactly the right rows
            return True
        luck = bdtrc(n_right - 1, n_right + n_wrong, all_right / (all_right + all_wrong))
        n_choices = np.exp(sum(log_choices(part, self.binned) for part in rule.parts))
        return bool(luck * n_choices <= CHANCE)


def best_of_each_length(task: Task) -> list[Rule]:
    """Return the best rule of each length that is right often enough, the best of all first."""
    beam = [task.rule(())]
    best: list[Rule] = []
    for _ in range(task.max_conditions):
        grown = [(found, i) for i, rule in enumerate(beam) for found in _extensions(task, rule)]
        grown.sort(key=lambda entry: -entry[0].quality)
        beam = _different(task, beam, grown)
        if beam and not beam[0].is_enough and task.beats_chance(beam[0]):
            beam.append(_rounded(task, beam[0]))  # ends between those of the bins may be enough
        top = max((rule for rule in beam if rule.is_enough), key=_quality, default=None)
        if not beam or (best and (top is None or top.quality <= best[0].quality)):
            break
        if top is not None:
            best.insert(0, top)
    return best


def _quality(rule: Rule) -> float:
    return rule.quality


def _different(task: Task, rules: Sequence[Rule], grown: Sequence[tuple[Found, int]]) -> list[Rule]:
    """Return the best rules, and the best that are enough, that do not describe the same rows."""
    kept: list[Rule] = []
    n_enough = 0
    for found, i in grown:
        if len(kept) >= BEAM and (n_enough >= BEAM or not found.is_enough):
            continue
        rows = rules[i].rows & found.part.mask(task.binned)
        if not any(np.array_equal(rows, other.rows) for other in kept):
            kept.append(task.rule((*rules[i].parts, found.part), rows))
            n_enough += kept[-1].is_enough
    return kept


def _extensions(task: Task, rule: Rule) -> list[Found]:
    """Return the best conditions on other columns, and the best that are enough, best first."""
    binned = task.binned
    right, wrong = (
        binned.count(np.flatnonzero(rule.rows & some)) for some in (task.right, task.wrong)
    )
    used = {part.column for part in rule.parts}
    every = best_parts(task.measure, binned, right, wrong, rule.cost)
    ordered = sorted((f for f in every if f.part.column not in used), key=lambda f: -f.quality)
    enough = [f for f in ordered if f.is_enough][:BEAM]
    return ordered[:BEAM] + [f for f in enough if f not in ordered[:BEAM]]


def polished(task: Task, rule: Rule) -> Rule:
    """Return the rule with each condition dropped, sought again or moved where that is better."""
    for _ in range(N_MENDED):
        mended = _mended(task, rule)
        if not _is_better(mended.rank, rule):
            break
        rule = mended
    rounded = _rounded(task, rule)
    return _rounded(task, rounded) if len(rule.parts) > 1 else rounded  # one end may move another


def _mended(task: Task, rule: Rule) -> Rule:
    for i in reversed(range(len(rule.parts))):
        others = task.rule(rule.parts[:i] + rule.parts[i + 1 :])
        if others.parts and others.rank >= rule.rank:
            rule = others
            continue
        best = max(_extensions(task, others), key=_rank, default=None)
        if best is not None and _is_better(_rank(best), rule):
            rule = task.rule((*rule.parts[:i], best.part, *rule.parts[i + 1 :]))
    return rule


def _rank(found: Found) -> tuple[bool, float]:
    return found.is_enough, found.quality


def _is_better(rank: tuple[bool, float], rule: Rule) -> bool:
    return rank > (rule.is_enough, rule.quality + NO_BETTER)


def _rounded(task: Task, rule: Rule) -> Rule:
    """Return the rule with the ends of its ranges at the best round numbers nearby."""
    for i in range(len(rule.parts)):
        others = task.rule(rule.parts[:i] + rule.parts[i + 1 :])
        left = others.rows & task.right, others.rows & task.wrong
        part = rule.parts[i]
        for is_low in (True, False):
            if (part.low if is_low else part.high) is not None:
                part = with_end_moved(task.measure, task.binned, part, *left, is_low=is_low)
        if part is not rule.parts[i]:
            moved = task.rule((*rule.parts[:i], part, *rule.parts[i + 1 :]))
            rule = moved if moved.is_enough or not rule.is_enough else rule
    return rule
