"""Segments: the few readable rules that describe the people whose decision changes.

Rules are sought on a sample, gains among those whose base decision is unfavourable and losses among
the others, and then counted on all rows, reading the columns they use one by one.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commod._data.columns import Column
from commod._data.labels import check_length
from commod._record import Condition, Estimate, Segment, Segments
from commod._record.explanation import Direction
from commod._reporting.explain.bins import Binned, cut_columns
from commod._reporting.explain.conditions import LEAST_PRECISION, Part, in_range
from commod._reporting.explain.rules import Rule, Task, best_of_each_length, polished
from commod._reporting.explain.source import Source, Table
from commod._reporting.explain.words import column_text, in_words, number_text, rule_text
from commod._statistics.intervals import share_interval
from commod.exceptions import InputError

Mask = NDArray[np.bool_]
Index = NDArray[np.intp]

SAMPLE_ROWS = 20_000  # rows of one universe on which rules are sought
LEAST_NEW = 0.05  # of the changes: a rule that adds less is not worth reading
LEAST_SIZE = 5  # rows of a rule: one of fewer names people
LEAST_OWN = 0.02  # of the changes: a rule that describes no more by itself alone is left out
ALL = 0.9  # of the universe: from here on "everyone" describes the changes


def find_segments(
    X: Any,
    gain: Any,
    loss: Any,
    favorable_before: Any,
    *,
    level: float = 0.95,
    max_segments: int = 4,
    max_conditions: int = 3,
    random_state: Any = 0,
    skip: Collection[str] = (),
) -> tuple[Segments, Index]:
    """Return the few rules that describe who changes, and the rule of each changed row.

    Parameters
    ----------
    X : table of shape (n, n_features)
        Raw columns; those that cannot be read (dates, nested values) are in no rule.
    gain, loss, favorable_before : array-like of bool, shape (n,)
        Who gains and who loses the favourable outcome, and who had it before.
    level : float, default=0.95
        Of the two-sided interval of each rule's precision.
    max_segments, max_conditions : int
        Most rules in each direction, and most conditions of a rule.
    random_state : int, Generator or None, default=0
        Draws the sample on which rules are sought where there are many rows.
    skip : collection of str, default=()
        Columns that are in no rule.

    Returns
    -------
    segments : Segments
        Counted on all rows.
    segment_of : ndarray of shape (n,)
        For a changed row the first segment of its direction that describes it; −1 elsewhere.

    Examples
    --------
    >>> import numpy as np
    >>> age = np.repeat(np.arange(18, 68), 4)
    >>> gain = age < 25
    >>> segments, segment_of = find_segments(age[:, None], gain, ~age.astype(bool), age > 99)
    >>> segments.segments[0].text, segments.segments[0].n_changed
    ('x0 < 25', 28)
    """
    gain, loss, before = (np.asarray(a, dtype=bool) for a in (gain, loss, favorable_before))
    table = Table(X, skip)
    for name, mask in {"gain": gain, "loss": loss, "favorable_before": before}.items():
        check_length(mask, name, len(table))
    if (gain & before).any() or (loss & ~before).any():
        raise InputError(
            "A gain needs an unfavourable base decision and a loss a favourable one: "
            "favorable_before does not fit gain and loss."
        )
    finder = SegmentFinder(table, before, level, max_segments, max_conditions, random_state)
    return finder.find(gain, loss)


@dataclass(frozen=True)
class SegmentFinder:
    """Finds segments among the same rows for one update after the other."""

    source: Source
    favorable_before: Mask
    level: float = 0.95
    max_segments: int = 4
    max_conditions: int = 3
    random_state: Any = 0
    _cut: dict[bool, Binned] = field(default_factory=dict, repr=False, compare=False)

    def find(self, gain: Mask, loss: Mask) -> tuple[Segments, Index]:
        """Return the segments of these changes, and the segment of each changed row, (n,)."""
        rng = np.random.default_rng(self.random_state)
        found: list[tuple[Direction, tuple[_Condition, ...]]] = []
        found += [("gain", rule) for rule in self._rules(False, gain, rng)]
        found += [("loss", rule) for rule in self._rules(True, loss, rng)]
        return self._count(found, gain, loss)

    # -- on the sample ----------------------------------------------------------------------------

    def _rules(self, favorable: bool, changed: Mask, rng: Any) -> list[tuple[_Condition, ...]]:
        if not changed.any():
            return []
        sample = _draw(self.favorable_before == favorable, changed, rng)
        binned = self._binned(favorable, sample)
        rules = _cover(binned, sample, self.max_segments, self.max_conditions)
        return [tuple(_Condition.of(binned, part) for part in rule.parts) for rule in rules]

    def _binned(self, favorable: bool, sample: _Sample) -> Binned:
        if not sample.is_whole:
            return cut_columns(self.source.some(sample.rows), sample.weights)
        if favorable not in self._cut:  # the same for every update
            self._cut[favorable] = cut_columns(self.source.some(sample.rows), sample.weights)
        return self._cut[favorable]

    # -- on all rows ------------------------------------------------------------------------------

    def _count(
        self,
        rules: Sequence[tuple[Direction, tuple[_Condition, ...]]],
        gain: Mask,
        loss: Mask,
    ) -> tuple[Segments, Index]:
        before = self.favorable_before
        inside = [before.copy() if direction == "loss" else ~before for direction, _ in rules]
        texts = self._apply(rules, inside)
        segments: list[Segment] = []
        segment_of = np.full(len(before), -1, dtype=np.intp)
        for (direction, conditions), rows in zip(rules, inside, strict=True):
            changed = loss if direction == "loss" else gain
            described = rows & changed
            new = described & (segment_of < 0)
            n_new = int(new.sum())
            n_all, size, n_changed = (int(m.sum()) for m in (changed, rows, described))
            # on all rows a rule may add nothing, be wrong too often, or read what cannot be read
            is_right = n_new and n_changed > LEAST_PRECISION * size
            if not is_right or not texts.keys() >= set(conditions):
                continue
            segment_of[new] = len(segments)
            written = tuple(c.record(texts[c]) for c in conditions)
            segments.append(
                Segment(
                    direction=direction,
                    conditions=written,
                    text=rule_text(written),
                    size=size,
                    n_changed=n_changed,
                    n_new=n_new,
                    precision=share(n_changed, size, self.level),
                    coverage=n_changed / n_all,
                )
            )
        is_described = segment_of >= 0
        return (
            Segments(
                segments=tuple(segments),
                n_rows=len(before),
                n_gains=int(gain.sum()),
                n_losses=int(loss.sum()),
                n_described_gains=int((is_described & gain).sum()),
                n_described_losses=int((is_described & loss).sum()),
            ),
            segment_of,
        )

    def _apply(
        self, rules: Sequence[tuple[Direction, tuple[_Condition, ...]]], inside: list[Mask]
    ) -> dict[_Condition, str]:
        """Narrow `inside` to the rows of each rule, column by column; return the words."""
        names = {c.column for _, conditions in rules for c in conditions}
        texts: dict[_Condition, str] = {}
        for column in self.source.whole(names):
            for (_, conditions), rows in zip(rules, inside, strict=True):
                for condition in conditions:
                    if condition.column == column.name:
                        holds = condition.holds(column)
                        texts.setdefault(condition, condition.text(column, holds))
                        rows &= holds
        return texts


def share(count: int, size: int, level: float) -> Estimate:
    """Return a share with Wilson's two-sided interval; None where there is nobody.

    Examples
    --------
    >>> share(0, 0, 0.95)
    Estimate(value=None, low=None, high=None)
    >>> share(5, 5, 0.95).value
    1.0
    """
    if not size:
        return Estimate(None, None, None)
    low, high = share_interval(count, size, (1 - level) / 2)
    return Estimate(count / size, float(low), float(high))


# ---------------------------------------------------------------------------------------------
# The sample


@dataclass(frozen=True)
class _Sample:
    """Rows of one universe: `changed` (n,) of them, which stand for so many people each."""

    rows: Index
    changed: Mask
    changed_weight: float
    other_weight: float
    is_whole: bool

    @property
    def weights(self) -> NDArray[np.float64]:
        return np.where(self.changed, self.changed_weight, self.other_weight)


def _draw(universe: Mask, changed: Mask, rng: np.random.Generator) -> _Sample:
    """Return a universe, or half changed rows and half others of a large one."""
    inside = np.flatnonzero(universe)
    if len(inside) <= SAMPLE_ROWS:
        return _Sample(inside, changed[inside], 1.0, 1.0, True)
    yes, no = inside[changed[inside]], inside[~changed[inside]]
    half = SAMPLE_ROWS // 2
    n_yes = min(len(yes), max(half, SAMPLE_ROWS - len(no)))
    n_no = min(len(no), SAMPLE_ROWS - n_yes)
    drawn = [
        rng.choice(rows, n, replace=False, shuffle=False) for rows, n in ((yes, n_yes), (no, n_no))
    ]
    rows = np.sort(np.concatenate(drawn))
    return _Sample(rows, changed[rows], len(yes) / n_yes, len(no) / max(n_no, 1), False)


# ---------------------------------------------------------------------------------------------
# One rule after the other


def _cover(binned: Binned, sample: _Sample, max_rules: int, max_conditions: int) -> list[Rule]:
    """Return rules until too little is added; each describes what the earlier ones leave."""
    changed, n_changed = sample.changed, int(sample.changed.sum())
    if _weighted_share(sample, sample.changed) >= ALL:
        return [Rule((), np.ones(len(changed), dtype=bool), 1.0)]
    left = changed.copy()
    rules: list[Rule] = []
    while len(rules) < max_rules and left.sum() >= LEAST_NEW * n_changed:
        weights = sample.changed_weight, sample.other_weight
        task = Task(binned, left, ~changed, *weights, max_conditions, LEAST_NEW * n_changed)
        rule = _worth_reading(task)
        if rule is None:
            break
        rules.append(rule)
        left &= ~rule.rows
    return _needed(rules, changed)


def _worth_reading(task: Task) -> Rule | None:
    """Return the best rule, a shorter one where that could be luck; None where none is left."""
    for rule in best_of_each_length(task):
        for tried in (polished(task, rule), rule) if _is_no_luck(rule, task) else ():
            if _is_no_luck(tried, task):
                return tried
    return None


def _is_no_luck(rule: Rule, task: Task) -> bool:
    return rule.is_enough and rule.rows.sum() >= LEAST_SIZE and task.beats_chance(rule)


def _weighted_share(sample: _Sample, rows: Mask) -> float:
    weights = sample.weights
    return float(weights[rows].sum() / weights.sum())


def _needed(rules: list[Rule], changed: Mask) -> list[Rule]:
    """Return the rules without those whose rows later ones describe, too."""
    kept = list(rules)
    for rule in rules[:-1]:
        others = [other.rows for other in kept if other is not rule]
        alone = rule.rows & changed & ~np.any(others, axis=0) if others else rule.rows & changed
        if alone.sum() < LEAST_OWN * changed.sum():
            kept.remove(rule)
    return kept


# ---------------------------------------------------------------------------------------------
# Conditions on raw columns


@dataclass(frozen=True)
class _Condition:
    """A condition as it is applied to raw columns; see the record `Condition`."""

    column: str
    low: float | None
    high: float | None
    values: tuple[Any, ...] | None
    missing: bool
    negated: bool

    @classmethod
    def of(cls, binned: Binned, part: Part) -> _Condition:
        """Return a condition on bins as one on raw values."""
        cut = binned.columns[part.column]
        values = None
        if part.chosen is not None:
            listed = [cut.categories[i] for i in part.chosen]
            values = tuple(sorted(listed, key=lambda value: (isinstance(value, str), value)))
        return cls(cut.column.name, part.low, part.high, values, part.missing, part.negated)

    def holds(self, column: Column) -> Mask:
        """Return which rows satisfy it, shape (n,)."""
        if column.kind == "numeric":
            if self.values is not None:
                return column.is_missing() == self.missing
            return in_range(column.values, self.low, self.high, self.missing)
        table = [self._holds_for(value) for value in column.categories]
        return np.array([*table, self.missing], dtype=bool)[column.values]

    def _holds_for(self, value: Any) -> bool:
        if self.values is not None:
            return (value in self.values) != self.negated
        if isinstance(value, str):  # a number on the sample, some text on other rows
            return False
        above = self.low is None or value >= self.low
        return above and (self.high is None or value < self.high)

    def text(self, column: Column, holds: Mask) -> str:
        """Return the condition in words: a range in which one value occurs is that value."""
        missing = column.is_missing()
        if self.values is None and column.kind == "numeric":
            there = column.values[holds & ~missing]
            if len(there) and not self.missing and there.min() == there.max():
                return f"{column_text(self.column)} = {number_text(float(there[0]))}"
        return in_words(
            self.column,
            low=self.low,
            high=self.high,
            values=self.values,
            missing=self.missing,
            negated=self.negated,
            some_missing=bool(missing.any()),
        )

    def record(self, text: str) -> Condition:
        """Return it as a record."""
        return Condition(
            self.column, self.low, self.high, self.values, self.missing, self.negated, text
        )
