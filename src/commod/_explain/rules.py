"""Finding the rule that describes changed rows best: few conditions, few wrong rows, many right.

A rule is a conjunction of conditions on different columns. A beam search adds the best range or the
best list of categories of any column, found for all columns in one count; then each condition is
sought again beside the others, and the ends of ranges are moved to the best round numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from commod._explain.bins import Binned
from commod._explain.conditions import Measure, Part, best_parts, log_choices, with_end_moved

__all__ = ["Rule", "Task", "best_of_each_length", "polished"]

Mask = NDArray[np.bool_]

BEAM = 3
N_MENDED = 3  # times that each condition is sought again, at most
NO_BETTER = 1e-12


@dataclass(frozen=True)
class Rule:
    """Conditions that hold together, the binned rows they describe, and how good that is."""

    parts: tuple[Part, ...]
    rows: Mask
    quality: float

    @property
    def cost(self) -> float:
        """Return how much there is to read, in conditions."""
        return sum(part.cost for part in self.parts)


@dataclass(frozen=True)
class Task:
    """What a rule is to describe: the rows `right`, and none of the rows `wrong`.

    Both are masks over the binned rows; a row that is neither does not count. A right row stands
    for `right_weight` people, a wrong one for `wrong_weight`.
    """

    binned: Binned
    right: Mask
    wrong: Mask
    right_weight: float
    wrong_weight: float
    max_conditions: int

    @cached_property
    def measure(self) -> Measure:
        """Return how good rules are."""
        n_people = self.right_weight * int(self.right.sum())
        return Measure(self.right_weight, self.wrong_weight, n_people)

    def rule(self, parts: tuple[Part, ...], rows: Mask | None = None) -> Rule:
        """Return the rule of these conditions."""
        if rows is None:
            rows = np.ones(len(self.right), dtype=bool)
            for part in parts:
                rows &= part.mask(self.binned)
        cost = sum(part.cost for part in parts)
        quality = self.measure.quality((rows & self.right).sum(), (rows & self.wrong).sum(), cost)
        return Rule(parts, rows, float(quality))

    def log_choices(self, rule: Rule) -> float:
        """Return the logarithm of how many rules of this form there are to choose from."""
        return sum(log_choices(part, self.binned) for part in rule.parts)


def best_of_each_length(task: Task) -> list[Rule]:
    """Return the best rule found with each number of conditions, the best of all first."""
    beam = [task.rule(())]
    best: list[Rule] = []
    for _ in range(task.max_conditions):
        grown = [(q, i, part) for i, r in enumerate(beam) for q, part in _extensions(task, r)]
        grown.sort(key=lambda found: -found[0])
        if not grown:
            break
        beam = _different(task, beam, grown)
        if best and beam[0].quality <= best[0].quality:
            break
        best.insert(0, beam[0])
    return best


def _different(
    task: Task, rules: Sequence[Rule], grown: Sequence[tuple[float, int, Part]]
) -> list[Rule]:
    """Return the best rules that do not describe the same rows."""
    kept: list[Rule] = []
    for _, i, part in grown:
        rows = rules[i].rows & part.mask(task.binned)
        if not any(np.array_equal(rows, other.rows) for other in kept):
            kept.append(task.rule((*rules[i].parts, part), rows))
        if len(kept) == BEAM:
            break
    return kept


def _extensions(task: Task, rule: Rule) -> list[tuple[float, Part]]:
    """Return the best conditions on other columns with the quality they would give, best first."""
    binned = task.binned
    right, wrong = (
        binned.count(np.flatnonzero(rule.rows & some)) for some in (task.right, task.wrong)
    )
    used = {part.column for part in rule.parts}
    found = [
        (quality, part)
        for quality, part in best_parts(task.measure, binned, right, wrong, rule.cost)
        if part.column not in used
    ]
    return sorted(found, key=lambda f: -f[0])[:BEAM]


def polished(task: Task, rule: Rule) -> Rule:
    """Return the rule with each condition dropped, sought again or moved where that is better."""
    for _ in range(N_MENDED):
        mended = _mended(task, rule)
        if mended.quality <= rule.quality + NO_BETTER:
            break
        rule = mended
    rounded = _rounded(task, rule)
    return _rounded(task, rounded) if len(rule.parts) > 1 else rounded  # one end may move another


def _mended(task: Task, rule: Rule) -> Rule:
    for i in reversed(range(len(rule.parts))):
        others = task.rule(rule.parts[:i] + rule.parts[i + 1 :])
        if others.parts and others.quality >= rule.quality:
            rule = others
            continue
        best = next(iter(_extensions(task, others)), None)
        if best is not None and best[0] > rule.quality + NO_BETTER:
            rule = task.rule((*rule.parts[:i], best[1], *rule.parts[i + 1 :]))
    return rule


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
            rule = task.rule((*rule.parts[:i], part, *rule.parts[i + 1 :]))
    return rule
