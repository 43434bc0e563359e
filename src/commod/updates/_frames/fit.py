"""Fit a `ControlledDebiaser` on a frame: search on a sample, count everything else in the engine.

1. Count people by group, true label, conditions and base decision. This gives the groups, the
   base rates and the exact limit.
2. Draw a stratified sample by a hash of the key, and search for a direction on it.
3. Count all people by bins of η, and determine the exact offset (`cut.py`).
4. Compare all people with the sample. Where they differ by more than sampling error, draw four
   times as many rows. A larger sample that finds nothing better for all people is the last one.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from commod._data.codes import plain
from commod._solvers.threads import single_blas_thread
from commod.exceptions import InputError, TargetWarning
from commod.updates._base_optimism import stated_optimism
from commod.updates._budget import fit_budget, parity_value
from commod.updates._controlled_parameters import (
    check_cost_is_used,
    check_labels_given,
    check_no_weighted_promise,
    refuse_whole_points,
)
from commod.updates._controlled_problem import fit_problem, problems_for_new_rows
from commod.updates._expectation import Expectation, is_near_parity
from commod.updates._fewest import with_fewest
from commod.updates._fit_rows import check_both_decisions, warn_about_group_columns
from commod.updates._fitted_update import FittedUpdate
from commod.updates._frames.columns import NamedColumns, prepare_frame
from commod.updates._frames.cut import EtaQuery
from commod.updates._frames.draws import read_seeds
from commod.updates._frames.lines import (
    CountedProblem,
    Lines,
    count_lines,
    counted_problem,
    fit_half,
    rows_of_lines,
)
from commod.updates._frames.offset import FrameCut, FrameFit
from commod.updates._frames.promise import store_promise
from commod.updates._frames.rescans import check_same_people
from commod.updates._frames.sample import FrameSample, PulledRows, pull_rows, read_sample
from commod.updates._frames.texts import frame_texts
from commod.updates._gates import KeptUpdate, fit_fewest, fit_target, spend
from commod.updates._new_rows import (
    ExpectedUpdate,
    best_update,
    expect_as_it_is,
    has_enough_rows,
)
from commod.updates._problem import FitProblem
from commod.updates._sample import agrees_with_sample, evenness_of, sample_sizes
from commod.updates._search import changed_rows, price_of_target
from commod.updates._standing_bounds import fit_with_standing

MAX_PULLED_ROWS = 1_000_000  # a larger sample does not come onto this machine
MAX_FIRST_SAMPLE = 10_000_000  # people: a scan of more takes longer than a search on more rows


def fit_frame(update: Any, frame: Any, named: NamedColumns) -> None:
    """Store in a `ControlledDebiaser` the update that it asks for, fitted on a frame."""
    counted, lines = count_frame(update, frame, named)
    best: Attempt | None = None
    of_fit = fit_half(counted, lines)
    sizes = frame_sample_sizes(of_fit, update._target, use_all=update.sample == "all")
    for size, growth in sizes:
        if size == of_fit.rows.n_people:
            fit_in_memory(update, lines)
            return
        sample = FrameSample.of(counted, lines, size, growth)
        pulled = pull_rows(lines, sample)
        tried = copy(update)  # what an attempt stores is only kept if it is the best one
        attempt = fit_on_sample(tried, counted, sample, pulled, is_first=best is None)
        if best is not None and not (update._is_budget or attempt.is_better_than(best)):
            best = best._replace(n_larger=len(pulled.line))
            break
        best, reader = attempt, tried
        if best.is_verified:
            break
    assert best is not None
    vars(update).update(vars(reader))
    fitted = fit_of(best, counted, lines)
    (store_fit if update.confidence is None else store_promise)(update, fitted, lines)


def count_frame(update: Any, frame: Any, named: NamedColumns) -> tuple[CountedProblem, Lines]:
    """Return the people of a frame as counts; the parameters are checked and recorded."""
    update._record_params()
    update._check_parameters()
    refuse_unable(update, named)
    check_labels_given(update, named.y_true is not None)
    update.direction_, update.reads_score_ = str(update.direction), False
    random_state = check_random_state(0 if update.random_state is None else update.random_state)
    margin = update.max_margin
    is_promise = update.confidence is not None
    seeds = read_seeds(random_state)
    table = prepare_frame(frame, named, update.threshold, margin, seeds, in_halves=is_promise)
    lines = count_lines(table)
    rows = rows_of_lines(update, lines)
    is_open = np.array(lines.values["open"], dtype=bool)
    cost = np.zeros(len(lines)) if update.borderline else None
    counted = counted_problem(update, rows, is_open, np.zeros(len(lines)), random_state, cost)
    counted.check_cells()
    both = plain(update._other_label(update.pos_label_)), plain(update.pos_label_)
    check_both_decisions(rows, update._constraint, both)
    return counted, lines


def refuse_unable(update: Any, named: NamedColumns) -> None:
    """Refuse parameters that need single rows, or that do not go with a named column."""
    refuse_whole_points(update, "fit_frame")
    check_no_weighted_promise(update, named.sample_weight)
    check_cost_is_used(update, named.change_cost)
    if update.unknown_groups != "error":
        raise InputError(
            "fit_frame needs the group of every row, but unknown_groups='ignore'. Give missing "
            "groups a name of their own, drop these rows, or call fit on rows in memory.",
            parameter="unknown_groups",
        )


def frame_sample_sizes(
    counted: CountedProblem, target: float, *, use_all: bool = False
) -> Iterator[tuple[int, float]]:
    """Yield numbers of rows to pull, smallest first; all people where these are few enough.

    Each comes with how many times the first number it is. With `use_all`, there is no other size
    than all people.
    """
    rows, cell = counted.rows, counted.cells.index
    n_people = rows.n_people
    if use_all and n_people > MAX_PULLED_ROWS:
        raise InputError(
            f"sample='all' searches on all {n_people:,} rows, but at most {MAX_PULLED_ROWS:,} come "
            "onto this machine. Leave it at 'auto': the offset and all figures are those of all "
            "rows then, too.",
            parameter="sample",
        )
    if use_all:
        yield n_people, 1.0
        return
    sums = [np.bincount(cell + 1, v)[1:] for v in (rows.each, rows.weight, rows.square_weight)]
    evenness = evenness_of(*sums) if counted.is_weighted else 1.0
    shares = [counted.limit(target), counted.caps.changes]
    share = min((s for s in shares if s not in (None, np.inf)), default=None)
    sizes = sample_sizes(n_people, share, use_all=False, evenness=evenness)
    tried = sizes[1:] if n_people > MAX_FIRST_SAMPLE else sizes
    for size in [one for one in tried if one <= MAX_PULLED_ROWS] or [MAX_PULLED_ROWS]:
        yield size, max(size / sizes[0], 1.0)


# ---------------------------------------------------------------------------------------------
# Small tables


class WholeTable(NamedTuple):
    """All rows of a table on this machine, as `fit` takes them."""

    X: Any
    y: Any
    sensitive_features: Any
    sample_weight: Any
    change_cost: Any

    @classmethod
    def of(cls, lines: Lines) -> WholeTable:
        """Return the rows; columns of groups and labels come from the lines."""
        pulled, named = pull_rows(lines, None), lines.table.named
        check_same_people((np.arange(len(lines)), lines.people), (pulled.line, None))

        def values_of(role: str) -> Any:
            values = lines.values[role]
            return np.array([values[line] for line in pulled.line], dtype=object)

        groups = {name: values_of(f"group {i}") for i, name in enumerate(named.sensitive)}
        return cls(
            pulled.X,
            None if named.y_true is None else np.array(values_of("y_true").tolist()),
            groups if len(groups) > 1 else next(iter(groups.values())),
            None if named.sample_weight is None else pulled.weight,
            pulled.cost,
        )


def fit_in_memory(update: Any, lines: Lines) -> None:
    """Fit on all rows of a table that is not worth a sample."""
    X, y, *others = WholeTable.of(lines)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TargetWarning)  # `fit_frame` warns, too
        update.fit(X, y, **dict(zip(WholeTable._fields[2:], others, strict=True)))


# ---------------------------------------------------------------------------------------------
# One sample


class Attempt(NamedTuple):
    """An update of a sample, and its offset on all people; no cut where nothing changes.

    `n_larger` are the rows of a larger sample that found nothing better; None without one.
    """

    kept: KeptUpdate
    target: float
    cut: FrameCut | None
    expectation: Expectation | None
    n_larger: int | None = None

    @property
    def is_verified(self) -> bool:
        """Return whether all people agree with the sample."""
        return self.cut is None or agrees_with_sample(self.cut.compare(self.target))

    def is_better_than(self, other: Attempt) -> bool:
        """Return whether it comes closer to the target on all people, or needs fewer changes."""
        if self.cut is None or other.cut is None:
            return True
        return self.cut.violation_and_changes() < other.cut.violation_and_changes()


def fit_on_sample(
    update: Any, counted: CountedProblem, sample: FrameSample, pulled: PulledRows, *, is_first: bool
) -> Attempt:
    """Return the update of a sample, with its counts on all people.

    One BLAS thread computes it, so that it does not depend on the number of cores.
    """
    with single_blas_thread:
        return _fit_on_sample(update, counted, sample, pulled, is_first=is_first)


def _fit_on_sample(
    update: Any, counted: CountedProblem, sample: FrameSample, pulled: PulledRows, *, is_first: bool
) -> Attempt:
    rows, lines = read_sample(update, counted, sample, pulled), sample.lines
    if is_first:
        update._check_locked(rows.columns)
        warn_about_group_columns(rows, update.locked_features)
    update.direction_ = str(update.direction)
    on_sample = fit_problem(update, rows)
    is_enough = has_enough_rows(fit_half(counted, lines))
    is_promise = update.confidence is not None
    is_new = (update.target_on == "new_rows" or is_promise) and is_enough
    problems = problems_for_new_rows(update, on_sample) if is_new else [on_sample]
    attempts: list[Attempt] = []

    def fit(some: Sequence[FitProblem]) -> ExpectedUpdate:
        standing = some[0].standing
        kept, target = search_direction(update, on_sample.with_standing(standing), some, is_new)
        everybody = counted.with_standing(standing)
        expects = is_new and not is_promise
        attempts.append(attempt_of(update, kept, target, everybody, lines, pulled, expects=expects))
        expectation = attempts[-1].expectation or Expectation.unknown(target)
        return ExpectedUpdate(attempts[-1].kept, expectation)

    if is_new and not is_promise:
        best = fit_with_standing(problems, fit).kept.outcome
    else:
        best = fit(problems).kept.outcome
    attempt = next(one for one in attempts if one.kept.outcome is best)
    if attempt.expectation is None and update.target_on == "new_rows" and not is_promise:
        attempt = attempt._replace(expectation=Expectation.unknown(attempt.target))
    return attempt


def search_direction(
    update: Any, on_sample: FitProblem, problems: Sequence[FitProblem], is_new: bool
) -> tuple[KeptUpdate, float]:
    """Return the update of a sample and its target; `problems` are those for new rows."""
    target = update._target
    if update._is_budget:
        kept = fit_budget(problems[0])
        return kept, parity_value(kept.problem)
    if not is_new or is_near_parity(on_sample.constraint, target):
        return fit_target(on_sample, target), target
    several = len(problems) > 1
    fewest = best_update(problems, target) if several else fit_fewest(problems[0], target)
    return spend(fewest, target), target


def attempt_of(
    update: Any,
    kept: KeptUpdate,
    target: float,
    counted: CountedProblem,
    lines: Lines,
    pulled: PulledRows,
    *,
    expects: bool,
) -> Attempt:
    """Return an update with its counts by bins, and what is expected of it on new people."""
    problem = kept.problem
    update.direction_ = problem.direction
    update._store_update(problem, kept.outcome)
    if not changed_rows(problem, kept.outcome).any():
        expectation = expect_as_it_is(kept, target).expectation if expects else None
        return Attempt(kept, target, None, expectation)
    query = EtaQuery.of(update, lines, (problem.may_raise, problem.may_lower))
    cut = FrameCut.of(query, kept, counted, pulled, factor_of(update, kept), target)
    return Attempt(kept, target, cut, cut.expect(update, target) if expects else None)


def fit_of(
    attempt: Attempt, counted: CountedProblem, lines: Lines, *, refine: bool = True
) -> FrameFit:
    """Return the update of an attempt with its offset: the exact one, or the best between bins."""
    kept, target, cut, expectation, n_larger = attempt
    n_rows, standing = len(kept.problem.rows), counted.standing
    kept = kept._replace(problem=kept.problem.with_standing(standing))
    if cut is None:
        moves = kept.problem.may_raise, kept.problem.may_lower
        everybody = counted.with_direction(*moves, changed=np.zeros(len(lines), dtype=bool))
        outcome = replace(kept.outcome, points=np.zeros(0), offset=-1.0, mean_total=0.0)
        return FrameFit(kept, everybody, outcome, expectation, n_rows, None)
    is_verified = attempt.is_verified
    is_known = expectation is not None and not np.isnan(expectation.figures.fairness)
    if expectation is not None and is_known and kept.outcome.stopped_by is None:
        target = expectation.internal_target
    # a promise is tested on bins, which hold both halves
    refine = refine and not lines.held_out.any()
    cut = cut.exact(target) if refine else cut.with_target(target)
    fitted = cut.fitted(expectation, n_rows, is_verified=is_verified)
    everybody = fitted.everybody.with_standing(standing)
    kept = fitted.kept._replace(problem=kept.problem)
    return replace(fitted, kept=kept, everybody=everybody, n_larger=n_larger)


def factor_of(update: Any, kept: KeptUpdate) -> float:
    """Return η of the stored scorecard over η of the search."""
    points = kept.outcome.points
    return float(-(update.scorecard_.points @ points) / (points @ points))


# ---------------------------------------------------------------------------------------------
# Storing


def store_fit(update: Any, fitted: FrameFit, lines: Lines) -> None:
    """Store the update and its figures on all people of the frame."""
    update.promised_ = None
    problem, everybody, table = fitted.kept.problem, fitted.everybody, lines.table
    update._frame_texts = tuple(frame_texts(table, fitted, everybody.rows.n_people))
    update._store_update(problem, fitted.kept.outcome)
    update.multiplier_ = price_of_target(everybody, fitted.outcome)
    optimism = stated_optimism(update)
    outcome = with_fewest(fitted.kept.found, problem, fitted.kept.outcome)
    whole = FittedUpdate(problem, outcome, fitted.expectation, optimism)
    update._store_figures(everybody, whole)
