"""Determine the offset of a direction on all people of a frame, from counts by bins of η.

1. One query groups people by line and bin of η. Bins are narrow near the offset that the sample
   suggests. The people outside the sample are the counted ones without those of the sample.
2. The best offset between bins is determined as in memory (`best_offset`).
3. The two bins beside it are counted again by finer bins, and at last by single values of η. So
   the offset is exact on all people. Rows of equal η change together.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from types import SimpleNamespace
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from commod._data.frames import fetch, numbers
from commod.exceptions import InputError
from commod.patch import expressions as rule
from commod.patch.content import ratio_of
from commod.updates._frames.lines import CountedProblem, CountedTerms, Lines
from commod.updates._frames.rescans import (
    MAX_ROUNDING,
    MAX_WEIGHT_DEVIATION,
    check_same_people,
)
from commod.updates._frames.sample import PulledRows
from commod.updates._held_out import take_fit_rows
from commod.updates._soft_cells import N_FOLDS

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]
Mask = NDArray[np.bool_]

N_FINE, N_COARSE = 1024, 128  # bins near the offset, and on each side of these
MAX_SINGLE = 100_000  # people whose single values of η are fetched
MAX_COUNTS = 2_000_000  # lines of a table of counts
SAMPLE_PART, UNKNOWN_PART = -1, -2  # of the people of the sample, and of those in no part yet
NOT_ACTING = -1  # the bin of rows whose decision may not change


@dataclass(frozen=True)
class EtaCounts:
    """People by line, part and bin of η; arrays of shape (n,).

    `part` is −1 for rows of the sample, and one of five parts of the others; −2 where a count does
    not tell. `low` and `high` are the lowest and the highest η of the bin, over all its lines.
    """

    line: Codes
    part: Codes
    people: Floats
    weight: Floats
    squares: Floats
    cost: Floats
    low: Floats
    high: Floats

    def take(self, rows: NDArray[Any]) -> EtaCounts:
        """Return some of the counts."""
        return EtaCounts(**{name: values[rows] for name, values in vars(self).items()})

    def join(self, other: EtaCounts) -> EtaCounts:
        """Return both counts as one."""
        return EtaCounts(**{n: np.concatenate([v, vars(other)[n]]) for n, v in vars(self).items()})


@dataclass(frozen=True)
class EtaQuery:
    """The frame with η of each row, without an offset, as lazy columns."""

    lines: Lines
    lazy: nw.LazyFrame[Any]
    number: str
    eta: str
    acts: str
    cost: str

    @classmethod
    def of(cls, update: Any, lines: Lines, moves: tuple[bool, bool]) -> EtaQuery:
        """Return η of the stored scorecard; `moves`: may raise, may lower decisions."""
        table, names = lines.table, lines.table.names
        number, eta, acts, cost = (
            names.take(f"_commod_{name}") for name in ("line", "eta", "acts", "costs")
        )
        lazy = lines.with_number(number)
        if table.weight is not None:
            lazy = lazy.filter(nw.col(table.weight) > 0)
        scores = tuple(c.name for c in update.score_columns(np.zeros(0)))
        ratio = ratio_of(update.scorecard_, may_raise=True, may_lower=True, score_columns=scores)
        content: Any = SimpleNamespace(
            ratio=replace(ratio, intercept=0.0),
            base=SimpleNamespace(threshold=float(update.threshold)),
        )
        schema = table.lazy.collect_schema()
        work = rule.WorkColumns(lazy.collect_schema().names())
        lazy = lazy.with_columns(nw.col(table.score).alias(work.score))
        with_margin = rule.with_margin(lazy, content, work)
        rated = rule.with_ratio(with_margin, schema, content, work).lazy()
        is_for_positive = bool(update._score_label() == update.pos_label_)
        may_raise, may_lower = moves if is_for_positive else moves[::-1]
        above, is_open = (nw.col(table.keys[name]) for name in ("above", "open"))
        allowed = [side for side, may in ((~above, may_raise), (above, may_lower)) if may]
        allowed_side = allowed[0] | allowed[1] if len(allowed) == 2 else allowed[0]
        distance = nw.col(work.distance)
        lazy = rated.select(
            nw.col(number),
            (0.0 - nw.col(work.ratio)).alias(eta),
            (is_open & allowed_side).alias(acts),
            (distance if table.cost is None else nw.col(table.cost)).alias(cost),
            *([] if table.weight is None else [nw.col(table.weight)]),
        )
        return cls(lines, lazy, number, eta, acts, cost)

    def count(self, edges: tuple[float, float, float, float]) -> EtaCounts:
        """Return people by bin: narrow bins between the inner `edges`, wide ones elsewhere."""
        low, inner_low, inner_high, high = edges
        eta, wide = nw.col(self.eta), (high - low) / N_COARSE or 1.0
        narrow = (inner_high - inner_low) / N_FINE or 1.0
        coarse = ((eta.clip(low, high) - low) / wide).floor()
        fine = ((eta.clip(inner_low, inner_high) - inner_low) / narrow).floor()
        shift = 2.0 * N_COARSE
        inside = nw.when(eta < inner_low).then(coarse).otherwise(fine + shift)
        inside = nw.when(eta > inner_high).then(coarse + 2.0 * (shift + N_FINE)).otherwise(inside)
        bins = nw.when(nw.col(self.acts)).then(inside).otherwise(nw.lit(float(NOT_ACTING)))
        return self._fetch(self.lazy, bins)

    def count_between(self, low: float, high: float, n_people: float) -> EtaCounts:
        """Return the acting people with low ≤ η ≤ high, by narrow bins or by single values."""
        eta = nw.col(self.eta)
        inside = self.lazy.filter(nw.col(self.acts) & (eta >= low) & (eta <= high))
        if n_people <= MAX_SINGLE:
            return self._fetch(inside, eta)
        narrow = (high - low) / N_FINE or 1.0
        return self._fetch(inside, ((eta - low) / narrow).floor())

    def _fetch(self, lazy: nw.LazyFrame[Any], bins: nw.Expr) -> EtaCounts:
        """Return the counts of a query, which needs no draws: people are in no part yet."""
        names = {n: f"_commod_{n}" for n in ("bin", "n", "w", "w2", "cost", "low", "high")}
        weight = self.lines.table.weight
        amount = nw.lit(1.0, nw.Float64) if weight is None else nw.col(weight)
        keys = [self.number, names["bin"]]
        lazy = lazy.with_columns(
            bins.alias(names["bin"]), amount.alias(names["w"]), (amount * amount).alias(names["w2"])
        )
        query = lazy.group_by(*keys).agg(
            nw.len().alias(names["n"]),
            nw.col(names["w"]).sum(),
            nw.col(names["w2"]).sum(),
            nw.col(self.cost).sum().alias(names["cost"]),
            nw.col(self.eta).min().alias(names["low"]),
            nw.col(self.eta).max().alias(names["high"]),
        )
        table = fetch(query, MAX_COUNTS)
        if table is None:
            raise InputError(
                f"The counts by group, condition and bin have more than {MAX_COUNTS:,} lines. "
                "Merge groups or values of conditions."
            )
        _, bin_of = np.unique(numbers(table, names["bin"]), return_inverse=True)
        low, high = (
            np.full(bin_of.max(initial=0) + 1, np.inf),
            np.full(bin_of.max(initial=0) + 1, -np.inf),
        )
        np.minimum.at(low, bin_of, numbers(table, names["low"]))
        np.maximum.at(high, bin_of, numbers(table, names["high"]))
        n, w, w2, cost = (numbers(table, names[name]) for name in ("n", "w", "w2", "cost"))
        line = self.lines.of_numbers(numbers(table, self.number).astype(np.int64))
        part = np.full(len(n), UNKNOWN_PART, dtype=np.intp)
        return EtaCounts(line, part, n, w, w2, cost, low[bin_of], high[bin_of])


def check_rescan(lines: Lines, counts: EtaCounts) -> None:
    """Refuse counts of all people that are not those of the lines."""
    every = np.arange(len(lines))
    check_same_people((every, lines.people), (counts.line, counts.people))
    weights = (every, lines.weight), (counts.line, counts.weight)
    check_same_people(*weights, tolerance=MAX_WEIGHT_DEVIATION)


def in_parts(counts: EtaCounts, acts: Mask, pulled: PulledRows, eta: Floats) -> EtaCounts:
    """Return the counts by part: the sample, and five parts of the people outside of it.

    `acts` (n,) tells which counts may change. `eta` (m,) is that of the rows of the sample. Who is
    in which part is drawn: people of one count are alike.
    """
    sampled = _counted_sample(counts, acts, pulled, eta)
    outside = {name: getattr(counts, name) - values for name, values in sampled.items()}
    n_outside = np.rint(outside["people"]).astype(np.int64)
    parts = np.random.default_rng(0).multinomial(n_outside, np.full(N_FOLDS, 1 / N_FOLDS))
    share = parts / np.maximum(n_outside, 1)[:, None]
    amounts = [sampled]
    amounts += [{n: v * share[:, k] for n, v in outside.items()} for k in range(N_FOLDS)]
    every = [
        EtaCounts(**{**vars(counts), "part": np.full(len(n_outside), part), **amount})
        for part, amount in enumerate(amounts, SAMPLE_PART)
    ]
    whole = reduce(EtaCounts.join, every)
    return whole.take(whole.people > 0)


def _counted_sample(
    counts: EtaCounts, acts: Mask, pulled: PulledRows, eta: Floats
) -> dict[str, Floats]:
    """Return what the rows of the sample contribute to each count, by name of the array.

    η of engines may differ in the last digit, so a row belongs to the nearest bin.
    """
    low, high = np.unique(counts.low[acts]), np.unique(counts.high[acts])
    between = 0.5 * (high[:-1] + low[1:])
    stays = len(low)  # the bin of all counts that may not change
    bin_of_count = np.where(acts, np.searchsorted(low, counts.low), stays)
    row_acts = np.isin(pulled.line, counts.line[acts])
    bin_of_row = np.where(row_acts, np.searchsorted(between, eta), stays)
    place = counts.line * (stays + 1) + bin_of_count
    order = np.argsort(place)
    wanted = pulled.line * (stays + 1) + bin_of_row
    nearest = np.minimum(np.searchsorted(place[order], wanted), len(place) - 1)
    index = order[nearest]
    known, n = place[index] == wanted, len(place)
    values = {"people": np.ones(len(index)), "weight": pulled.weight, "squares": pulled.weight**2}
    sampled = {
        name: np.minimum(np.bincount(index[known], v[known], n), getattr(counts, name))
        for name, v in values.items()
    }
    return {**sampled, "cost": counts.cost * sampled["people"] / counts.people}


def problem_of_counts(
    problem: CountedProblem, counts: EtaCounts, moves: tuple[bool, bool]
) -> CountedProblem:
    """Return the problem of all people where rows are the counts; η is the middle of the bin."""
    rows = replace(
        take_fit_rows(problem.rows, counts.line),
        people=counts.people,
        weight=counts.weight,
        squares=counts.squares,
    )
    return replace(
        problem,
        rows=rows,
        terms=CountedTerms(0.5 * (counts.low + counts.high)),  # type: ignore[arg-type]
        is_open=problem.is_open[counts.line],
        change_cost=None if problem.change_cost is None else counts.cost / counts.people,
        may_raise=moves[0],
        may_lower=moves[1],
    )


def gap_at(problem: CountedProblem, counts: EtaCounts, offset: float) -> tuple[float, float]:
    """Return the highest η that stays and the lowest that changes, with an offset of the bins."""
    acts = problem.may_change
    changed = (problem.terms.total(np.zeros(0), 0.0) + offset > 0) & acts
    below = counts.high[acts & ~changed].max(initial=-np.inf)
    return float(below), float(counts.low[changed].min(initial=np.inf))


def refine(
    query: EtaQuery, problem: CountedProblem, counts: EtaCounts, offset: float
) -> EtaCounts | None:
    """Return the counts with the two bins beside an offset counted again; None if not needed."""
    acts = problem.may_change
    below, above = gap_at(problem, counts, offset)
    beside = acts & ((counts.high == below) | (counts.low == above))
    beside &= counts.high > counts.low  # one value of η needs no finer bins
    if not beside.any():
        return None
    low, high = float(counts.low[beside].min()), float(counts.high[beside].max())
    inside = acts & (counts.low >= low) & (counts.high <= high)
    finer = query.count_between(low, high, float(counts.people[inside].sum()))
    again = counts.take(inside)
    people = (again.line, again.people), (finer.line, finer.people)
    check_same_people(*people, tolerance=MAX_ROUNDING)
    return counts.take(~inside).join(finer)
