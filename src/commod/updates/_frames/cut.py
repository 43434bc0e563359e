"""Count the people of a frame by their evidence, in its engine: what a cut is found from.

1. One query groups people by line and bin of evidence. Near the cut of the rows that points come
   from, people are counted by single values of the evidence, and elsewhere by bins.
2. Where the cut falls into a bin, the bins beside it are counted again, by single values at last.
   So the cut is exact on all people. People of equal evidence change together.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from commod._data.arrays import Codes, Floats, Mask
from commod._evidence.cut import evidence
from commod._evidence.search import FoundUpdate, costs_at
from commod._evidence.task import EvidenceTask
from commod.exceptions import InputError
from commod.patch.content import ratio_of
from commod.patch.frames import Applied, total_of
from commod.scorecard import Scorecard
from commod.updates._found_update import AllPeople, CountedPeople, scorecard_of
from commod.updates._frames.lines import Lines
from commod.updates._frames.refusals import MAX_WEIGHT_DEVIATION, check_same_people
from commod.updates._problem import FitProblem

N_FINE, N_COARSE = 4096, 128  # bins near the cut, and on each side of these
MAX_SINGLE = 100_000  # people whose single values of the evidence are fetched
MAX_COUNTS = 4_000_000  # lines of a table of counts
NOT_ACTING = 0.0  # the bin of people whose decision may not change, or whose change would hurt


@dataclass(frozen=True)
class EvidenceCounts:
    """People by line and bin of evidence; arrays of shape (n,).

    `low` and `high` are the lowest and the highest evidence of the bin, over all its lines. Both
    are 0 for people who do not change.
    """

    line: Codes
    people: Floats
    weight: Floats
    squares: Floats
    low: Floats
    high: Floats

    @property
    def score(self) -> Floats:
        """Return one number for the evidence of each count, (n,): it is exact for single values."""
        return self.low + (self.high - self.low) / 2

    def take(self, rows: NDArray[Any]) -> EvidenceCounts:
        """Return some of the counts."""
        return EvidenceCounts(**{name: values[rows] for name, values in vars(self).items()})

    def join(self, other: EvidenceCounts) -> EvidenceCounts:
        """Return both counts as one."""
        joined = {n: np.concatenate([v, vars(other)[n]]) for n, v in vars(self).items()}
        return EvidenceCounts(**joined)


class Bins(NamedTuple):
    """Ranges of positive evidence: `single` values, `fine` bins, and wide ones up to `top`."""

    single: tuple[float, float]
    fine: tuple[float, float]
    top: float


@dataclass(frozen=True)
class EvidenceQuery:
    """The frame with the evidence of each row that points do not come from, as lazy columns."""

    lines: Lines
    lazy: nw.LazyFrame[Any]
    number: str
    evidence: str
    unit_distance: float  # of a score at which a change costs 1

    @classmethod
    def of(cls, lines: Lines, part: FitProblem, found: FoundUpdate, bound: int) -> EvidenceQuery:
        """Return side · v / cost of the rows that may change and whose draw is not below the bound.

        It is NOT_ACTING where a change would hurt.
        """
        table, names = lines.table, lines.table.names
        number, evidence, key, draw = (
            names.take(f"_commod_{name}") for name in ("line", "evidence", "number", "draw")
        )
        above, is_open = (nw.col(table.keys[name]) for name in ("above", "open"))
        may_raise, may_lower = _score_moves(part)
        kept = [is_open] if may_raise and may_lower else [is_open, ~above if may_raise else above]
        lazy = table.with_draws(key, draw, *kept).filter(nw.col(draw) >= bound)
        lazy = lines.with_number(lazy, number)
        concept = np.zeros(len(found.points.values), dtype=np.intp)
        card = scorecard_of(part.encoding, found.points, concept, part.moments[0])
        lazy, total = _with_total(lazy, table.lazy.collect_schema(), card)
        side_above = -1.0 if part.rows.base.is_for_positive else 1.0
        side = nw.when(above).then(nw.lit(side_above)).otherwise(nw.lit(-side_above))
        distance = (nw.col(table.score) - part.rows.base.threshold).abs()
        cost = distance * (found.nearness / found.mean_distance) + (1.0 - found.nearness)
        value = side * total / cost.clip(1e-9, None)
        lazy = lazy.with_columns(value.alias(evidence))
        positive = nw.when(nw.col(evidence) > 0).then(nw.col(evidence))
        lazy = lazy.select(
            nw.col(number),
            positive.otherwise(nw.lit(NOT_ACTING)).alias(evidence),
            *([] if table.weight is None else [nw.col(table.weight)]),
        )
        return cls(lines, lazy, number, evidence, _unit_distance(found))

    def count(self, bins: Bins) -> EvidenceCounts:
        """Return people by line and bin."""
        value, (low, high) = nw.col(self.evidence), bins.fine
        fine = ((value - low) / ((high - low) / N_FINE or 1.0)).floor()
        below = (value / (low / N_COARSE or 1.0)).floor()
        top = max(bins.top, high)
        above = ((value.clip(high, top) - high) / ((top - high) / N_COARSE or 1.0)).floor()
        # Bins have negative numbers: positive ones are single values of the evidence.
        key = nw.when(value > high).then(-3.0 - N_FINE - N_COARSE - above).otherwise(-2.0 - fine)
        key = nw.when(value < low).then(-4.0 - N_FINE - 2 * N_COARSE - below).otherwise(key)
        is_single = (value >= bins.single[0]) & (value <= bins.single[1])
        key = nw.when(is_single | (value == NOT_ACTING)).then(value).otherwise(key)
        return self._fetch(self.lazy, key)

    def count_between(self, low: float, high: float, n_people: float) -> EvidenceCounts:
        """Return the people with low ≤ evidence ≤ high, by single values if they are few."""
        value = nw.col(self.evidence)
        inside = self.lazy.filter((value >= low) & (value <= high))
        if n_people <= MAX_SINGLE:
            return self._fetch(inside, value)
        return self._fetch(inside, ((value - low) / ((high - low) / N_FINE or 1.0)).floor())

    def _fetch(self, lazy: nw.LazyFrame[Any], bins: nw.Expr) -> EvidenceCounts:
        bin_name, weight = "_commod_bin", self.lines.table.weight
        lazy = lazy.with_columns(bins.alias(bin_name))
        sums = {
            "n": nw.len(),
            "low": nw.col(self.evidence).min(),
            "high": nw.col(self.evidence).max(),
        }
        if weight is not None:  # otherwise everybody has the weight 1
            lazy = lazy.with_columns((nw.col(weight) * nw.col(weight)).alias("_commod_w2"))
            sums |= {"w": nw.col(weight).sum(), "w2": nw.col("_commod_w2").sum()}
        query = lazy.group_by(self.number, bin_name).agg(
            *(amount.alias(f"_commod_{name}_sum") for name, amount in sums.items())
        )
        table = query.head(MAX_COUNTS + 1).collect(backend="pyarrow")
        if len(table) > MAX_COUNTS:
            raise InputError(
                f"The counts by group, condition and bin have more than {MAX_COUNTS:,} lines. "
                "Merge groups or values of conditions."
            )
        counted = {
            name: table[f"_commod_{name}_sum"].to_numpy().astype(np.float64) for name in sums
        }
        n, low, high = (counted[name] for name in ("n", "low", "high"))
        w, w2 = counted.get("w", n), counted.get("w2", n)
        line = self.lines.of_numbers(table[self.number].to_numpy().astype(np.int64))
        bin_value = table[bin_name].to_numpy().astype(np.float64)
        _, bin_of = np.unique(bin_value, return_inverse=True)
        lowest = np.full(bin_of.max(initial=0) + 1, np.inf)
        highest = -lowest
        np.minimum.at(lowest, bin_of, low)
        np.maximum.at(highest, bin_of, high)
        order = np.lexsort([line, lowest[bin_of]])  # engines return groups in any order
        counts = EvidenceCounts(line, n, w, w2, lowest[bin_of], highest[bin_of])
        return counts.take(order)


def _score_moves(part: FitProblem) -> tuple[bool, bool]:
    """Return whether scores may move above the threshold, and below it."""
    moves = part.may_raise, part.may_lower
    return moves if part.rows.base.is_for_positive else moves[::-1]


def _unit_distance(found: FoundUpdate) -> float:
    """Return the distance from the threshold at which a change costs exactly 1, if there is one."""
    fixed, slope = 1.0 - found.nearness, found.nearness / found.mean_distance
    near = [found.mean_distance]
    for end in (0.0, np.inf):
        distance = found.mean_distance
        for _ in range(4):
            distance = float(np.nextafter(distance, end))
            near.append(distance)
    return next((one for one in near if fixed + slope * one == 1.0), found.mean_distance)


def _with_total(
    lazy: nw.LazyFrame[Any], schema: nw.Schema, card: Scorecard
) -> tuple[nw.LazyFrame[Any], nw.Expr]:
    """Return the frame with the sum of the points of each row, and the column of the sum."""
    applied = Applied(lazy, schema, lazy.collect_schema().names())
    total = total_of(applied, ratio_of(card, may_raise=True, may_lower=True))
    return applied.table.lazy(), total


# ---------------------------------------------------------------------------------------------
# All people


@dataclass(frozen=True)
class CountsOfFrame(CountedPeople):
    """All people of a frame: rows that points come from, then counts of all others.

    `line` (n,) is the line of each row of the problem, and `everybody` the problem of the lines.
    """

    query: EvidenceQuery
    counts: EvidenceCounts
    line: Codes
    everybody: FitProblem

    def measured(self, changed: Mask) -> tuple[FitProblem, Mask]:
        """Return the lines, each in two rows: people who keep their decision, and who change."""
        rows, n_lines = self.problem.rows, len(self.everybody.rows)
        place = self.line + n_lines * changed
        totals = [
            np.bincount(place, amount, 2 * n_lines)
            for amount in (rows.each, rows.weight, rows.square_weight)
        ]
        kept = np.flatnonzero(totals[0] > 0)
        people, weight, squares = (amount[kept].astype(np.float64) for amount in totals)
        rows = self.everybody.rows.take(kept % n_lines)
        rows = replace(rows, people=people, weight=weight, squares=squares)
        problem = replace(self.everybody, rows=rows)
        return problem, rows.base.decisions ^ (kept >= n_lines)

    def changed_by_line(self, changed: Mask) -> NDArray[np.int64]:
        """Return how many people of each line change; `changed` (n,) are rows of the problem."""
        n_changed = np.bincount(self.line, self.problem.rows.each * changed, len(self.query.lines))
        return np.rint(n_changed).astype(np.int64)


@dataclass(frozen=True)
class PeopleOfFrame(AllPeople):
    """All people of a frame; `problem` has its lines as rows.

    `line` and `weight` (m,) are those of the rows that points come from, whose draws are below
    `bound`.
    """

    lines: Lines
    line: Codes
    weight: Floats
    bound: int

    def count(
        self, part: FitProblem, task: EvidenceTask, found: FoundUpdate, *, is_swept: bool = False
    ) -> CountsOfFrame:
        """Return all people: one query counts those that points do not come from.

        It reads only rows whose decision may change. The lines know how many others there are.
        """
        query = EvidenceQuery.of(self.lines, part, found, self.bound)
        everybody = self.problem.with_direction(part.may_raise, part.may_lower)
        n_others = self.problem.rows.n_people - len(part.rows)
        counts = query.count(first_bins(task, found, n_others, is_swept=is_swept))
        counts = self._fixed(everybody).join(counts)
        line = np.concatenate([self.line, counts.line])
        every = np.arange(len(self.lines)), self.lines.people
        check_same_people(every, (line, np.append(np.ones(len(self.line)), counts.people)))
        weights = (every[0], self.lines.weight), (line, np.append(self.weight, counts.weight))
        check_same_people(*weights, tolerance=MAX_WEIGHT_DEVIATION)
        return self._counted(query, counts, everybody)

    def _fixed(self, everybody: FitProblem) -> EvidenceCounts:
        """Return the people of lines that may not change, without the rows that points come from.

        The score is a key of a line, so all people of a line may change, or none.
        """
        lines, n_lines = self.lines, len(self.lines)
        amounts = (
            (lines.people, np.ones(len(self.line))),
            (lines.weight, self.weight),
            (lines.squares, self.weight**2),
        )
        people, weight, squares = (
            every - np.bincount(self.line, known, n_lines) for every, known in amounts
        )
        nothing = np.full(n_lines, NOT_ACTING)
        counts = EvidenceCounts(np.arange(n_lines), people, weight, squares, nothing, nothing)
        return counts.take(~everybody.may_change & (people > 0))

    def _counted(
        self, query: EvidenceQuery, counts: EvidenceCounts, everybody: FitProblem
    ) -> CountsOfFrame:
        line = np.concatenate([self.line, counts.line])
        rows = replace(
            self.problem.rows.take(line),
            people=np.append(np.ones(len(self.line)), counts.people),
            weight=np.append(self.weight, counts.weight),
            squares=np.append(self.weight**2, counts.squares),
        )
        side = np.where(everybody.rows.base.decisions, -1.0, 1.0)[counts.line]
        return CountsOfFrame(
            problem=replace(everybody, rows=rows),
            v=side * counts.score,
            distance=np.full(len(counts.line), query.unit_distance),
            query=query,
            counts=counts,
            line=line,
            everybody=everybody,
        )

    def refined(self, counted: CountedPeople, cut: float) -> CountsOfFrame | None:
        """Return all people with the bins beside a cut counted again; None if not needed."""
        assert isinstance(counted, CountsOfFrame)
        counts = counted.counts
        acting = counts.score > 0
        changed = counts.score > cut
        below = counts.score[acting & ~changed].max(initial=-np.inf)
        above = counts.score[changed].min(initial=np.inf)
        beside = acting & ((counts.score == below) | (counts.score == above))
        beside &= counts.high > counts.low  # one value needs no finer bins
        if not np.isfinite(cut) or not beside.any():
            return None
        low, high = float(counts.low[beside].min()), float(counts.high[beside].max())
        inside = acting & (counts.low >= low) & (counts.high <= high)
        again = counts.take(inside)
        finer = counted.query.count_between(low, high, float(again.people.sum()))
        check_same_people((again.line, again.people), (finer.line, finer.people))
        counts = counts.take(~inside).join(finer)
        return self._counted(counted.query, counts, counted.everybody)


def first_bins(task: EvidenceTask, found: FoundUpdate, n_others: float, *, is_swept: bool) -> Bins:
    """Return bins for `n_others` people, from the evidence of the rows that points come from.

    Single values are counted near the cut of these rows, and fine bins from half to twice as many
    changes. If `is_swept`, cuts may be anywhere, so fine bins are everywhere.
    """
    everything = (0.0, np.inf)
    if n_others <= MAX_SINGLE:
        return Bins(everything, (0.0, 1.0), 1.0)
    score = evidence(
        task, found.card.counted(task), costs_at(task, found.nearness, found.mean_distance)
    )
    ordered = -np.sort(-score[score > 0])
    if not len(ordered):
        return Bins((np.inf, -np.inf), (0.0, 1.0), 1.0)

    def value_at(rank: float) -> float:
        return float(ordered[int(np.clip(rank, 0, len(ordered) - 1))])

    n_changed, top = float((score > found.cut).sum()), value_at(0)
    if is_swept:
        return Bins(
            (np.inf, -np.inf), (value_at(len(ordered)), value_at(0.001 * len(ordered))), top
        )
    width = MAX_SINGLE / 2 / n_others * len(task)
    single = value_at(n_changed + width), value_at(n_changed - width)
    fine = value_at(2 * n_changed + 0.01 * len(task)), value_at(0.5 * n_changed)
    return Bins(single, fine, top)
