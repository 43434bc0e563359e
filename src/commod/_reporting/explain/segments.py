"""Describe the people whose decision changes by segments: a few short rules on raw columns.

1. Rules are learned on a sample, by sequential covering: each rule describes changes that the
   earlier ones do not cover. Rules for gains compare people whose base decision is unfavourable,
   rules for losses compare the others.
2. The rules are counted on all rows. The columns that they use are read one by one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import repeat
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from commod._data.arrays import Mask
from commod._data.columns import Column, Kind, iter_columns
from commod._data.disclosure import MIN_CATEGORY_SIZE
from commod._data.tables import n_rows_of, take_rows
from commod._record.explanation import Condition, Direction, Segment, Segments, Value
from commod._reporting.explain.conditions import (
    MIN_PRECISION,
    BinnedColumns,
    CandidateCondition,
    Rule,
    RuleCondition,
    RuleSearch,
    best_conditions,
    bin_columns,
    in_range,
    move_bound,
)
from commod._reporting.explain.reasons import column_text, condition_text, number_text, rule_text
from commod._statistics.intervals import share_estimate
from commod.exceptions import InputError

# ---------------------------------------------------------------------------------------------
# Read raw columns one at a time; columns that cannot be read are left out


@dataclass(frozen=True)
class FrameColumns:
    """A raw table of any kind; columns in `skip` are not read, those in `added` are beside it.

    Without a table, the columns are those in `added`. Columns of dates, of nested or of infinite
    values cannot be read and are left out. Segments may use other columns than the update.
    """

    X: Any
    skip: Collection[str] = ()
    added: Sequence[Column] = ()
    _kinds: dict[str, Kind] = field(default_factory=dict, compare=False)

    def __len__(self) -> int:
        if self.X is None:
            return len(self.added[0]) if self.added else 0
        return n_rows_of(self.X)

    def read_rows(self, rows: NDArray[np.intp]) -> list[Column]:
        """Return all readable columns with the given rows only."""
        is_all = len(rows) == len(self)
        X = self.X if is_all or self.X is None else take_rows(self.X, rows)
        columns = list(self._readable(X, None))
        # A few rows of a column with numbers and text may hold numbers only.
        self._kinds.update({column.name: column.kind for column in columns})
        return columns + [column if is_all else column.take(rows) for column in self.added]

    def read_columns(self, names: Collection[str]) -> Iterator[Column]:
        """Yield the named columns with all rows, one after the other."""
        yield from self._readable(self.X, names)
        yield from (column for column in self.added if column.name in names)

    def _readable(self, X: Any, names: Collection[str] | None) -> Iterator[Column]:
        for name, table in _single_columns(X):
            if name in self.skip or (names is not None and name not in names):
                continue
            try:
                kind = self._kinds.get(name)
                (column,) = iter_columns(table, {name: kind, "x0": kind} if kind else None)
            except (InputError, TypeError):
                continue
            yield replace(column, name=name)


def _single_columns(X: Any) -> Iterator[tuple[str, Any]]:
    """Yield the name of each column and the column as a table of its own, without copies."""
    if X is None:
        return
    frame = nw.from_native(X, pass_through=True, eager_only=True)
    if isinstance(frame, nw.DataFrame):
        for series in frame.iter_columns():
            yield str(series.name), series.to_frame().to_native()
        return
    array = X if isinstance(X, np.ndarray) else np.asarray(X, dtype=object)
    if array.ndim != 2:
        next(iter_columns(X))  # raises an error that says what is wrong
    for j in range(array.shape[1]):
        yield f"x{j}", array[:, j : j + 1]


# ---------------------------------------------------------------------------------------------
# Search for the rule that describes changed rows best: high precision, high coverage, short

Index = NDArray[np.intp]
RawRule = tuple[Direction, tuple[Condition, ...]]  # conditions without their texts

MAX_SEGMENTS = 4  # in each direction
MAX_CONDITIONS = 3  # in a rule
SAMPLE_ROWS = 20_000  # eligible rows on which rules are learned
SEED = 0  # of the sample
MIN_NEW_COVERAGE = 0.05  # share of the changes that a rule must add to earlier rules
MIN_OWN_COVERAGE = 0.02  # share of the changes that no other rule may cover
EVERYONE = 0.9  # share of eligible people from which "everyone" describes the changes


def find_segments(
    X: Any,
    gain: Any,
    loss: Any,
    favorable_before: Any,
    *,
    level: float = 0.95,
    skip: Collection[str] = (),
    added: Sequence[Column] = (),
) -> tuple[Segments, Index]:
    """Return a few rules that describe who changes, and the rule of each changed row.

    Parameters
    ----------
    X : table of shape (n, n_features)
        Raw columns. Columns that cannot be read (dates, nested values) are in no rule.
    gain, loss, favorable_before : array-like of bool, shape (n,)
        Who gains the favourable outcome, who loses it, and who had it before.
    level : float, default=0.95
        Confidence level of the two-sided interval of each rule's precision.
    skip : collection of str, default=()
        Columns that are in no rule.
    added : sequence of Column, default=()
        Columns with n rows that rules may use beside those of X.

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
    return SegmentFinder(FrameColumns(X, skip, added), before, level).find(gain, loss)


@dataclass(frozen=True)
class SegmentFinder:
    """Find segments among the same rows for several updates."""

    source: FrameColumns
    favorable_before: Mask
    level: float = 0.95
    _binned: dict[bool, BinnedColumns] = field(default_factory=dict, repr=False, compare=False)

    def find(self, gain: Mask, loss: Mask) -> tuple[Segments, Index]:
        """Return the segments of these changes, and the segment of each changed row, (n,)."""
        rng = np.random.default_rng(SEED)
        rules: list[RawRule] = []
        rules += [("gain", conditions) for conditions in self._learn(False, gain, rng)]
        rules += [("loss", conditions) for conditions in self._learn(True, loss, rng)]
        before = self.favorable_before
        covered = [before.copy() if direction == "loss" else ~before for direction, _ in rules]
        texts = self._apply(rules, covered)
        segments: list[Segment] = []
        segment_of = np.full(len(before), -1, dtype=np.intp)
        for (direction, conditions), rows in zip(rules, covered, strict=True):
            if not texts.keys() >= set(conditions):  # a column cannot be read on all rows
                continue
            changed = loss if direction == "loss" else gain
            new = rows & changed & (segment_of < 0)
            size, n_changed, n_new = (int(m.sum()) for m in (rows, rows & changed, new))
            # A rule that held on the sample may add nothing or be imprecise on all rows.
            if not n_new or n_changed <= MIN_PRECISION * size:
                continue
            segment_of[new] = len(segments)
            written = tuple(replace(c, text=texts[c]) for c in conditions)
            segments.append(
                Segment(
                    direction=direction,
                    conditions=written,
                    text=rule_text(written),
                    size=size,
                    n_changed=n_changed,
                    n_new=n_new,
                    precision=share_estimate(n_changed, size, self.level),
                    coverage=n_changed / int(changed.sum()),
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

    # -- on the sample ----------------------------------------------------------------------------

    def _learn(self, favorable: bool, changed: Mask, rng: Any) -> list[tuple[Condition, ...]]:
        if not changed.any():
            return []
        eligible = self.favorable_before == favorable
        rows, weights = _draw_sample(eligible, changed, rng)
        binned = self._binned.get(favorable)  # the same rows for every update
        if binned is None or len(rows) < np.count_nonzero(eligible):
            people = np.where(changed[rows], *weights)
            self._binned[favorable] = binned = bin_columns(self.source.read_rows(rows), people)
        rules = _cover_changes(binned, changed[rows], weights)
        return [tuple(_raw_condition(binned, c) for c in rule.conditions) for rule in rules]

    # -- on all rows ------------------------------------------------------------------------------

    def _apply(self, rules: Sequence[RawRule], covered: list[Mask]) -> dict[Condition, str]:
        """Narrow `covered` to the rows of each rule, column by column; return the texts."""
        names = {c.column for _, conditions in rules for c in conditions}
        texts: dict[Condition, str] = {}
        for column in self.source.read_columns(names):
            for (_, conditions), rows in zip(rules, covered, strict=True):
                for condition in conditions:
                    if condition.column == column.name:
                        satisfied = _satisfies(condition, column)
                        texts.setdefault(condition, _text_on(condition, column, satisfied))
                        rows &= satisfied
        return texts


# ---------------------------------------------------------------------------------------------
# The sample


def _draw_sample(
    eligible: Mask, changed: Mask, rng: np.random.Generator
) -> tuple[Index, tuple[float, float]]:
    """Return all eligible rows; if there are many, half changed and half unchanged ones.

    With them comes how many people a changed and an unchanged row stand for.
    """
    rows = np.flatnonzero(eligible)
    if len(rows) <= SAMPLE_ROWS:
        return rows, (1.0, 1.0)
    changed_rows, unchanged_rows = rows[changed[rows]], rows[~changed[rows]]
    n_changed = max(SAMPLE_ROWS // 2, SAMPLE_ROWS - len(unchanged_rows))
    n_changed = min(len(changed_rows), n_changed)
    n_unchanged = min(len(unchanged_rows), SAMPLE_ROWS - n_changed)
    strata = (changed_rows, n_changed), (unchanged_rows, n_unchanged)
    drawn = [rng.choice(stratum, n, replace=False, shuffle=False) for stratum, n in strata]
    weights = len(changed_rows) / n_changed, len(unchanged_rows) / max(n_unchanged, 1)
    return np.sort(np.concatenate(drawn)), weights


# ---------------------------------------------------------------------------------------------
# Sequential covering


def _cover_changes(
    binned: BinnedColumns, changed: Mask, weights: tuple[float, float]
) -> list[Rule]:
    """Return rules, each for the changes that the earlier ones do not cover."""
    n_changed, people = int(changed.sum()), np.where(changed, *weights)
    if people[changed].sum() / people.sum() >= EVERYONE:
        return [Rule((), np.ones(len(changed), dtype=bool), 1.0)]
    remaining, min_changed = changed.copy(), MIN_NEW_COVERAGE * n_changed
    rules: list[Rule] = []
    while len(rules) < MAX_SEGMENTS and remaining.sum() >= min_changed:
        rule = _next_rule(RuleSearch(binned, remaining, ~changed, weights, min_changed))
        if rule is None:
            break
        rules.append(rule)
        remaining &= ~rule.rows
    return _without_redundant(rules, changed)


def _next_rule(search: RuleSearch) -> Rule | None:
    """Return the best reliable rule, refined if that is reliable, too; None if there is none."""
    for rule in best_rules_by_length(search):
        if _is_reliable(rule, search):
            refined = refine(search, rule)
            return refined if _is_reliable(refined, search) else rule
    return None


def _is_reliable(rule: Rule, search: RuleSearch) -> bool:
    is_large = int(rule.rows.sum()) >= MIN_CATEGORY_SIZE
    return rule.is_acceptable and is_large and search.is_significant(rule)


def _without_redundant(rules: list[Rule], changed: Mask) -> list[Rule]:
    """Return the rules without those whose changes other rules cover, too."""
    kept = list(rules)
    for rule in rules[:-1]:
        own = rule.rows & changed
        for other in kept:
            own = own if other is rule else own & ~other.rows
        if own.sum() < MIN_OWN_COVERAGE * changed.sum():
            kept.remove(rule)
    return kept


# ---------------------------------------------------------------------------------------------
# Conditions on raw columns


def _raw_condition(binned: BinnedColumns, condition: RuleCondition) -> Condition:
    """Return a condition on bins as a condition on raw values, without its text."""
    bins = binned.columns[condition.column]
    values = None
    if condition.bins is not None:
        listed = [bins.categories[i] for i in condition.bins]
        values = tuple(sorted(listed, key=lambda value: (isinstance(value, str), value)))
    low, high, missing = condition.low, condition.high, condition.missing
    return Condition(bins.column.name, low, high, values, missing, condition.negated, text="")


def _satisfies(condition: Condition, column: Column) -> Mask:
    """Return which rows of a raw column satisfy the condition, shape (n,)."""
    if column.kind == "numeric":
        if condition.values is not None:
            return column.is_missing() == condition.missing
        return in_range(column.values, condition.low, condition.high, condition.missing)
    table = [_is_satisfied_by(condition, value) for value in column.categories]
    return np.array([*table, condition.missing], dtype=bool)[column.values]


def _is_satisfied_by(condition: Condition, value: Value) -> bool:
    if condition.values is not None:
        return (value in condition.values) != condition.negated
    if isinstance(value, str):  # the column holds numbers on the sample, and text elsewhere
        return False
    is_above = condition.low is None or value >= condition.low
    return is_above and (condition.high is None or value < condition.high)


def _text_on(condition: Condition, column: Column, satisfied: Mask) -> str:
    """Return the condition in words; a range that holds a single value is written as that value."""
    missing = column.is_missing()
    if condition.values is None and column.kind == "numeric" and not condition.missing:
        values = column.values[satisfied & ~missing]
        if len(values) and values.min() == values.max():
            return f"{column_text(condition.column)} = {number_text(float(values[0]))}"
    is_named = np.count_nonzero(missing) >= MIN_CATEGORY_SIZE
    return condition_text(condition, some_missing=bool(is_named))


BEAM_WIDTH = 3
MAX_REFINEMENTS = 3
TOLERANCE = 1e-12  # of the quality


def best_rules_by_length(search: RuleSearch) -> list[Rule]:
    """Return the best acceptable rule of each length, the one with the highest quality first."""
    beam = [search.rule(())]
    best: list[Rule] = []
    for _ in range(MAX_CONDITIONS):
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
    extended: list[tuple[CandidateCondition, Rule]] = []
    for rule in beam:
        extended += zip(_extensions(search, rule), repeat(rule))
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
    candidates = list(best_conditions(search, counts, rule.cost))
    candidates.sort(key=lambda c: -c.quality)
    ordered = [c for c in candidates if c.condition.column not in used]
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
        others = search.rule(rule.with_replaced(i))
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
        covered = search.rule(rule.with_replaced(i)).rows
        rows = covered & search.changed, covered & search.unchanged
        moved = condition
        for is_low in (True, False):
            if (moved.low if is_low else moved.high) is not None:
                moved = move_bound(search, moved, rows, is_low=is_low)
        if moved is not condition:
            rounded = search.rule(rule.with_replaced(i, moved))
            rule = rounded if rounded.is_acceptable or not rule.is_acceptable else rule
    return rule
