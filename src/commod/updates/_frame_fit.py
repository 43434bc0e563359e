"""Fit a `ControlledDebiaser` on a frame: the same fit as in memory.

Up to MAX_POINT_ROWS rows, all rows come onto this machine. Of a larger table:

1. One query counts people by group, true label, conditions and base decision. This gives the
   groups, the base rates and the exact limit.
2. One query brings the rows with the smallest hash of the key here. Points come from them.
3. One query counts the other people who may change by their evidence: this gives the cut.

So a fit counts the rows and reads the table three times, and again for each bin that is counted
more finely because the cut falls into it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from commod._data.arrays import Codes, Floats, Mask
from commod._data.base_model import (
    BaseScores,
    ModelScores,
    names_of_model,
    warn_about_own_decisions,
)
from commod._data.encoding import Encoding
from commod._data.frames import engine_errors, no_column, open_frame
from commod._data.scored_frames import ScoredFrame, with_scores
from commod._evidence.search import FoundUpdate
from commod._evidence.task import EvidenceTask
from commod._text import n_of
from commod.exceptions import BaseModelError, InputError
from commod.patch.content import ratio_of
from commod.patch.frames import Applied, total_of
from commod.scorecard import Scorecard
from commod.updates._candidates import CountedCandidate, sweep_targets
from commod.updates._fit_rows import (
    FitRows,
    check_group_columns,
    hash_bound,
    may_come_whole,
)
from commod.updates._found_update import AllPeople, CountedPeople, card_of_points
from commod.updates._frame_rows import (
    MAX_WEIGHT_DEVIATION,
    FrameTable,
    Lines,
    Named,
    check_same_people,
    count_lines,
    feature_columns,
    name_columns,
    prepare_frame,
    read_point_rows,
    rows_of_lines,
)
from commod.updates._problem import FitProblem
from commod.updates._targeted import (
    TargetedUpdate,
    check_labels_given,
    check_no_weighted_promise,
    problem_of,
)


@contextmanager
def opened_table(
    update: TargetedUpdate, frame: Any, sensitive_features: Any, features: Any, **single: Any
) -> Iterator[FrameTable]:
    """Yield a frame with its prepared columns for a fit; the parameters are checked and recorded.

    While the block runs, a column of scores is the base model of the update. Afterwards it is the
    model again, and X of `predict` has the columns of the model first. A `ScoredFrame` has the
    scores of the model already: so one scoring serves a fit and what follows it.
    """
    named: dict[str, Any] = name_columns(update, sensitive_features, features, **single)
    update._check_parameters()  # before rows are scored, which may take long
    check_no_weighted_promise(update, single.get("sample_weight"))
    check_labels_given(update, "y_true" in named)
    model, read = update.estimator, []
    with ExitStack() as stack:
        stack.enter_context(engine_errors(frame))
        if "estimator" not in named:
            known = frame if isinstance(frame, ScoredFrame) else None
            schema = dict(open_frame(frame if known is None else known.frame).collect_schema())
            if known is not None:
                del schema[known.column]
            columns, own = columns_of(model, named, schema, update.locked_features)
            read = list(dict.fromkeys([*columns, *own]))
            keep = [*own, *(name for names in named.values() for name in names)]
            scored = known or stack.enter_context(with_scores(frame, model, columns, keep=keep))
            _compare_decisions(update, scored)
            update.estimator = ModelScores(
                scored.column,
                classes_=getattr(model, "classes_", None),
                reads_others=not set(columns) <= set(own),
            )
            frame, named = scored.frame, {**named, "estimator": (scored.column,), "features": own}
        update._record_params()
        yield prepare_frame(frame, named, float(update.threshold), update.max_margin)
    if read:
        update.estimator = update._params_of_fit["estimator"] = model
        update.feature_names_in_ = np.array(read, dtype=object)
        update.n_features_in_, update._columns_seen = len(read), read


def may_pull(table: FrameTable) -> bool:
    """Return whether all rows of a table come onto this machine."""
    n_rows = table.lazy.select(nw.len().alias("n")).collect(backend="pyarrow").item()
    return may_come_whole(int(n_rows))


def read_parts(update: TargetedUpdate, table: FrameTable) -> tuple[FitProblem, PeopleOfFrame]:
    """Return the problem of the rows that points come from, and all people of a large frame.

    Two queries count people and bring rows here.
    """
    if update.unknown_groups != "error":
        raise InputError(
            "unknown_groups='ignore' needs a table of at most a million rows. Give missing groups "
            "a name of their own, drop these rows, or call fit on rows in memory.",
            parameter="unknown_groups",
        )
    lines = count_lines(table)
    rows = rows_of_lines(update, lines)
    everybody = update._asked().problem(rows, Encoding(()))  # whose columns are not known
    bound = hash_bound(rows.n_people)
    point_rows = read_point_rows(update, rows, lines, bound)
    update._check_locked(point_rows.columns)
    check_group_columns(point_rows, update.locked_features)
    part = problem_of(update, point_rows)
    return part, PeopleOfFrame(everybody, lines, part.rows, bound)


def sweep_parts(
    update: TargetedUpdate, table: FrameTable, targets: Sequence[float] | None
) -> tuple[list[tuple[CountedCandidate, NDArray[np.int64]]], FitRows]:
    """Return the updates of a frontier on a large frame, and the lines as fit rows.

    Each update comes with how many people of each line it changes, (n,).
    """
    problem, people = read_parts(update, table)
    _, swept = sweep_targets(problem, people, targets)
    candidates = []
    for target, near, fitted in swept:
        assert isinstance(fitted.counted, CountsOfFrame)
        candidate = CountedCandidate(target, near, fitted, update, None)
        candidates.append((candidate, fitted.counted.changed_by_line(fitted.changed)))
    return candidates, people.problem.rows


# ---------------------------------------------------------------------------------------------
# The base model of a frame


def take_base_model(update: TargetedUpdate, other: TargetedUpdate) -> None:
    """Give a fitted update the base model of another one, and the columns of its X."""
    update.estimator = update._params_of_fit["estimator"] = other.estimator
    for name in ("feature_names_in_", "n_features_in_", "_columns_seen"):
        if hasattr(other, name):
            setattr(update, name, getattr(other, name))


def columns_of(
    model: Any, named: Named, schema: Mapping[Any, Any], locked: Collection[str]
) -> tuple[list[str], list[str]]:
    """Return the columns that the model reads, and those that the update may use.

    A model that does not know the names of its columns reads what the update may use. Locked
    columns of the model count as features, as they do in `fit`.
    """
    features = list(feature_columns(named, schema))
    columns = names_of_model(model)
    if not set(columns) & set(schema):  # some models make up names for arrays
        columns = []
    for name in columns:
        if name not in schema:
            raise no_column("estimator", name, schema)
    if not columns:
        n_read = getattr(model, "n_features_in_", len(features))
        if n_read != len(features):
            raise BaseModelError(
                f"The base model {type(model).__name__} was fitted on {n_of(n_read, 'column')} "
                f"without names, and the frame has {len(features)} for it. Name them in the "
                "model's order: features=[...].",
                parameter="features",
            )
        return features, features
    if "features" not in named:
        features = [name for name in columns if name in features]
    locked_columns = [name for name in columns if name in locked and name not in features]
    return columns, [*features, *locked_columns]


def _compare_decisions(update: TargetedUpdate, scored: ScoredFrame) -> None:
    """Warn if the model's own decisions differ from score > threshold in the first rows."""
    model, scores = update.estimator, scored.first_scores
    classes = getattr(model, "classes_", None)
    if classes is None or not len(scores):
        return
    base = BaseScores(np.column_stack([1 - scores, scores]), float(update.threshold))
    warn_about_own_decisions(model, scored.first_rows, base, classes[1])


# ---------------------------------------------------------------------------------------------
# Count the people of a frame by their evidence, in its engine: what a cut is found from


N_FINE, N_COARSE = 4096, 128  # bins near the cut, and on each side of these
MAX_SINGLE = 100_000  # people whose single values of the evidence are fetched
MAX_COUNTS = 4_000_000  # lines of a table of counts
NOT_ACTING = 0.0  # the bin of people whose decision may not change, or whose change would hurt


# People by line and bin of evidence. `low` and `high` are the lowest and the highest evidence of
# the bin, over all its lines. Both are 0 for people who do not change.
AMOUNTS = ("people", "weight", "squares")
COUNTS = np.dtype([("line", np.intp), *((name, float) for name in (*AMOUNTS, "low", "high"))])
Counts = NDArray[Any]  # of this type, shape (n,)


def counts_of(*columns: NDArray[Any]) -> Counts:
    """Return counts; `columns` are those of COUNTS."""
    counts = np.empty(len(columns[0]), dtype=COUNTS)
    for name, column in zip(COUNTS.names or (), columns, strict=True):
        counts[name] = column
    return counts


def evidence_of(counts: Counts) -> Floats:
    """Return one number for the evidence of each count, (n,): it is exact for single values."""
    return np.asarray(counts["low"] + (counts["high"] - counts["low"]) / 2)


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
        card = card_of_points(part.encoding, found.points, concept, part.moments[0])
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

    def count(
        self, task: EvidenceTask, found: FoundUpdate, n_others: float, *, is_swept: bool
    ) -> Counts:
        """Return `n_others` people by line and bin.

        Bins follow the evidence of the rows that points come from, which `task` has. Single values
        are counted near the cut of these rows, and fine bins from half to twice as many changes. If
        `is_swept`, cuts may be anywhere, so fine bins are everywhere.
        """
        value = nw.col(self.evidence)
        if n_others <= MAX_SINGLE:
            return self._fetch(self.lazy, value)
        score = found.score(task)
        ordered = -np.sort(-score[score > 0])

        def value_at(rank: float) -> float:
            return float(ordered[int(np.clip(rank, 0, len(ordered) - 1))])

        first, last = np.inf, -np.inf
        low, high, top = 0.0, 1.0, 1.0
        if len(ordered) and is_swept:
            low, high = value_at(len(ordered)), value_at(0.001 * len(ordered))
        elif len(ordered):
            n, n_changed = len(task), float((score > found.cut).sum())
            width = MAX_SINGLE / 2 / n_others * n
            first, last = value_at(n_changed + width), value_at(n_changed - width)
            low, high = value_at(2 * n_changed + 0.01 * n), value_at(0.5 * n_changed)
        if len(ordered):
            top = max(value_at(0), high)
        fine = ((value - low) / ((high - low) / N_FINE or 1.0)).floor()
        below = (value / (low / N_COARSE or 1.0)).floor()
        above = ((value.clip(high, top) - high) / ((top - high) / N_COARSE or 1.0)).floor()
        # Bins have negative numbers: positive ones are single values of the evidence.
        key = nw.when(value > high).then(-3.0 - N_FINE - N_COARSE - above).otherwise(-2.0 - fine)
        key = nw.when(value < low).then(-4.0 - N_FINE - 2 * N_COARSE - below).otherwise(key)
        is_single = (value >= first) & (value <= last)
        key = nw.when(is_single | (value == NOT_ACTING)).then(value).otherwise(key)
        return self._fetch(self.lazy, key)

    def count_between(self, low: float, high: float, n_people: float) -> Counts:
        """Return the people with low ≤ evidence ≤ high, by single values if they are few."""
        value = nw.col(self.evidence)
        inside = self.lazy.filter((value >= low) & (value <= high))
        if n_people <= MAX_SINGLE:
            return self._fetch(inside, value)
        return self._fetch(inside, ((value - low) / ((high - low) / N_FINE or 1.0)).floor())

    def _fetch(self, lazy: nw.LazyFrame[Any], bins: nw.Expr) -> Counts:
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
        return counts_of(line, n, w, w2, lowest[bin_of], highest[bin_of])[order]


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
    counts: Counts
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
        problem = self.everybody.of_rows(rows, self.everybody.terms)
        return problem, rows.base.decisions ^ (kept >= n_lines)

    def changed_by_line(self, changed: Mask) -> NDArray[np.int64]:
        """Return how many people of each line change; `changed` (n,) are rows of the problem."""
        n_changed = np.bincount(self.line, self.problem.rows.each * changed, len(self.query.lines))
        return np.rint(n_changed).astype(np.int64)


@dataclass(frozen=True)
class PeopleOfFrame(AllPeople):
    """All people of a frame; `problem` has its lines as rows.

    `point_rows` are those that points come from, whose draws are below `bound`.
    """

    lines: Lines
    point_rows: FitRows
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
        here = self._here()
        nothing = np.full(len(self.lines), NOT_ACTING)
        every = np.arange(len(self.lines))
        # The score is a key of a line, so all people of a line may change, or none.
        others = [
            getattr(self.lines, name) - np.bincount(here["line"], here[name], len(self.lines))
            for name in AMOUNTS
        ]
        fixed = counts_of(every, *others, nothing, nothing)
        fixed = fixed[~everybody.may_change & (fixed["people"] > 0)]
        acting = query.count(task, found, n_others, is_swept=is_swept)
        counts = np.concatenate([here, fixed, acting])
        line = counts["line"]
        check_same_people((every, self.lines.people), (line, counts["people"]))
        weights = (every, self.lines.weight), (line, counts["weight"])
        check_same_people(*weights, tolerance=MAX_WEIGHT_DEVIATION)
        return self._counted(query, counts[len(here) :], everybody)

    def _here(self) -> Counts:
        """Return the rows that points come from, each as a count of one person."""
        assert self.point_rows.position is not None
        weight, zero = self.point_rows.weight, np.zeros(len(self.point_rows))
        one = zero + 1.0
        return counts_of(self.point_rows.position, one, weight, weight**2, zero, zero)

    def _counted(
        self, query: EvidenceQuery, counts: Counts, everybody: FitProblem
    ) -> CountsOfFrame:
        both = np.concatenate([self._here(), counts])
        amounts: dict[str, Any] = {name: both[name].copy() for name in AMOUNTS}
        rows = replace(self.problem.rows.take(both["line"]), **amounts)
        side = np.where(everybody.rows.base.decisions, -1.0, 1.0)[counts["line"]]
        return CountsOfFrame(
            problem=everybody.of_rows(rows, everybody.terms),
            v=side * evidence_of(counts),
            distance=np.full(len(counts), query.unit_distance),
            query=query,
            counts=counts,
            line=both["line"],
            everybody=everybody,
        )

    def refined(self, counted: CountedPeople, cut: float) -> CountsOfFrame | None:
        """Return all people with the bins beside a cut counted again; None if not needed."""
        assert isinstance(counted, CountsOfFrame)
        counts = counted.counts
        score = evidence_of(counts)
        acting, changed = score > 0, score > cut
        below = score[acting & ~changed].max(initial=-np.inf)
        above = score[changed].min(initial=np.inf)
        beside = acting & ((score == below) | (score == above))
        beside &= counts["high"] > counts["low"]  # one value needs no finer bins
        if not np.isfinite(cut) or not beside.any():
            return None
        low, high = float(counts["low"][beside].min()), float(counts["high"][beside].max())
        inside = acting & (counts["low"] >= low) & (counts["high"] <= high)
        again = counts[inside]
        finer = counted.query.count_between(low, high, float(again["people"].sum()))
        check_same_people((again["line"], again["people"]), (finer["line"], finer["people"]))
        counts = np.concatenate([counts[~inside], finer])
        return self._counted(counted.query, counts, counted.everybody)
