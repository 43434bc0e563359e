"""Search for the rule that describes changed rows best: high precision, high coverage, short.

A rule is a conjunction of conditions on different columns. The search has three steps:

1. A beam search adds conditions. One count over all bins gives the best range or list of categories
   of every column.
2. Each condition is dropped, or optimised again beside the others.
3. The bounds of ranges move to the best round numbers.

The rule with the highest quality may cover so many rows that it is not precise enough. So the beam
holds the best rules, from which narrower ones grow, and also the best acceptable rules.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtrc

from commod._reporting.explain.bins import BinnedColumns
from commod._reporting.explain.conditions import (
    CandidateCondition,
    RuleCondition,
    RuleMeasure,
    best_conditions,
    log_n_choices,
    move_bound,
)

Mask = NDArray[np.bool_]

BEAM_WIDTH = 3
MAX_REFINEMENTS = 3
TOLERANCE = 1e-12  # of the quality
SIGNIFICANCE = 0.1  # probability of a rule as good, among all rules, where changes are random


@dataclass(frozen=True)
class Rule:
    """Conditions that hold together, the binned rows that they cover, and the quality."""

    conditions: tuple[RuleCondition, ...]
    rows: Mask
    quality: float
    is_acceptable: bool = True

    @property
    def cost(self) -> float:
        """Return the length of the rule, in conditions."""
        return sum(condition.cost for condition in self.conditions)

    @property
    def rank(self) -> tuple[bool, float]:
        """Return the key by which rules are compared: acceptable ones first."""
        return self.is_acceptable, self.quality

    def without(self, i: int) -> tuple[RuleCondition, ...]:
        """Return all conditions but number i."""
        return self.conditions[:i] + self.conditions[i + 1 :]

    def with_replaced(self, i: int, condition: RuleCondition) -> tuple[RuleCondition, ...]:
        """Return all conditions, with another one as number i."""
        return (*self.conditions[:i], condition, *self.conditions[i + 1 :])


@dataclass(frozen=True)
class RuleSearch:
    """The task of a search: cover rows of `changed` and as few rows of `unchanged` as possible.

    Both are masks over the binned rows; a row in neither does not count. A changed row stands for
    `weights[0]` people, an unchanged one for `weights[1]`. A rule covers at least `min_changed` of
    the changed rows.
    """

    binned: BinnedColumns
    changed: Mask
    unchanged: Mask
    weights: tuple[float, float]
    max_conditions: int
    min_changed: float = 1.0

    @cached_property
    def measure(self) -> RuleMeasure:
        """Return the measure of quality."""
        n_changed, n_unchanged = self.counts().tolist()
        return RuleMeasure.of(n_changed, n_unchanged, self.weights, self.min_changed)

    def counts(self, rows: Mask | bool = True) -> NDArray[np.intp]:
        """Return how many changed and unchanged rows a mask covers, shape (2,)."""
        return np.array([np.count_nonzero(rows & m) for m in (self.changed, self.unchanged)])

    def rule(self, conditions: tuple[RuleCondition, ...], rows: Mask | None = None) -> Rule:
        """Return the rule with these conditions; `rows`, if known, are those it covers."""
        if rows is None:
            rows = np.ones(len(self.changed), dtype=bool)
            for condition in conditions:
                rows &= condition.mask(self.binned)
        counts, cost = self.counts(rows), sum(condition.cost for condition in conditions)
        quality = float(self.measure.quality(counts, cost))
        return Rule(conditions, rows, quality, bool(self.measure.is_acceptable(counts)))

    def is_significant(self, rule: Rule) -> bool:
        """Return whether the precision exceeds that of the best rule for random changes.

        The p-value of a binomial test is multiplied by the number of rules of this form.
        """
        n_changed, n_unchanged = self.counts(rule.rows)
        all_changed, all_unchanged = self.counts()
        if n_changed == all_changed and not n_unchanged and len(rule.conditions) == 1:
            return True  # one condition that holds for exactly the changed rows
        rate = all_changed / (all_changed + all_unchanged)
        p_value = bdtrc(n_changed - 1, n_changed + n_unchanged, rate)
        n_choices = np.exp(sum(log_n_choices(c, self.binned) for c in rule.conditions))
        return bool(p_value * n_choices <= SIGNIFICANCE)


def best_rules_by_length(search: RuleSearch) -> list[Rule]:
    """Return the best acceptable rule of each length, the one with the highest quality first."""
    beam = [search.rule(())]
    best: list[Rule] = []
    for _ in range(search.max_conditions):
        beam = _next_beam(search, beam)
        if beam and not beam[0].is_acceptable and search.is_significant(beam[0]):
            # With bounds between the edges of bins, the rule may become acceptable.
            beam.append(_with_round_bounds(search, beam[0]))
        acceptable = [rule for rule in beam if rule.is_acceptable]
        top = max(acceptable, key=lambda rule: rule.quality, default=None)
        if not beam or (best and (top is None or top.quality <= best[0].quality)):
            break
        if top is not None:
            best.insert(0, top)
    return best


def _next_beam(search: RuleSearch, beam: Sequence[Rule]) -> list[Rule]:
    """Return the best extended rules, and the best acceptable ones, that cover different rows."""
    extended = [(c, rule) for rule in beam for c in _extensions(search, rule)]
    kept: list[Rule] = []
    for candidate, rule in sorted(extended, key=lambda pair: -pair[0].quality):
        n_acceptable = sum(other.is_acceptable for other in kept)
        if len(kept) >= BEAM_WIDTH and (n_acceptable >= BEAM_WIDTH or not candidate.is_acceptable):
            continue
        rows = rule.rows & candidate.condition.mask(search.binned)
        if not any(np.array_equal(rows, other.rows) for other in kept):
            kept.append(search.rule((*rule.conditions, candidate.condition), rows))
    return kept


def _extensions(search: RuleSearch, rule: Rule) -> list[CandidateCondition]:
    """Return the best conditions on other columns, and the best acceptable ones."""
    masks = search.changed, search.unchanged
    counts = np.stack([search.binned.count(rule.rows & mask) for mask in masks])
    used = {condition.column for condition in rule.conditions}
    candidates = best_conditions(search.measure, search.binned, counts, rule.cost)
    ordered = sorted(
        (c for c in candidates if c.condition.column not in used), key=lambda c: -c.quality
    )
    acceptable = [c for c in ordered if c.is_acceptable][:BEAM_WIDTH]
    return ordered[:BEAM_WIDTH] + [c for c in acceptable if c not in ordered[:BEAM_WIDTH]]


def refine(search: RuleSearch, rule: Rule) -> Rule:
    """Return the rule with each condition dropped, replaced or moved where that is better."""
    for _ in range(MAX_REFINEMENTS):
        refined = _with_better_conditions(search, rule)
        if not _is_better(refined, rule):
            break
        rule = refined
    rounded = _with_round_bounds(search, rule)
    # A moved bound can change the best place of another one.
    return _with_round_bounds(search, rounded) if len(rule.conditions) > 1 else rounded


def _with_better_conditions(search: RuleSearch, rule: Rule) -> Rule:
    for i in reversed(range(len(rule.conditions))):
        others = search.rule(rule.without(i))
        if others.conditions and others.rank >= rule.rank:
            rule = others
            continue
        best = max(_extensions(search, others), key=lambda c: c.rank, default=None)
        if best is not None and _is_better(best, rule):
            rule = search.rule(rule.with_replaced(i, best.condition))
    return rule


def _is_better(new: Rule | CandidateCondition, rule: Rule) -> bool:
    return new.rank > (rule.is_acceptable, rule.quality + TOLERANCE)


def _with_round_bounds(search: RuleSearch, rule: Rule) -> Rule:
    """Return the rule with the bounds of its ranges at the best round numbers nearby."""
    for i, condition in enumerate(rule.conditions):
        covered = search.rule(rule.without(i)).rows
        rows = covered & search.changed, covered & search.unchanged
        moved = condition
        for is_low in (True, False):
            if (moved.low if is_low else moved.high) is not None:
                moved = move_bound(search.measure, search.binned, moved, rows, is_low=is_low)
        if moved is not condition:
            rounded = search.rule(rule.with_replaced(i, moved))
            rule = rounded if rounded.is_acceptable or not rule.is_acceptable else rule
    return rule
