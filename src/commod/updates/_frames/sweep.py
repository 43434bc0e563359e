"""Find the updates of a frontier on a frame: few directions, many offsets.

1. One query counts people by group, true label, conditions and base decision, as in a fit.
2. One query draws the sample. A direction is searched for on it at each of a few targets.
3. For each direction, one query counts all people by bins of η. These counts give the offset of
   every target, and its figures on all people.
4. Where all people do not agree with the sample, steps 2 and 3 follow once more on a larger one.
5. Of all directions, each target takes the one with the fewest changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from commod._text import n_of
from commod.updates._expectation import Expectation
from commod.updates._fit_rows import FitRows
from commod.updates._frames.columns import NamedColumns
from commod.updates._frames.fit import (
    Attempt,
    WholeTable,
    count_frame,
    fit_of,
    fit_on_sample,
    frame_sample_sizes,
    store_fit,
)
from commod.updates._frames.lines import CountedProblem, Lines
from commod.updates._frames.offset import FrameFit
from commod.updates._frames.sample import FrameSample, pull_rows
from commod.updates._interface import FittedCandidate, read_numbers
from commod.updates._stated import set_target
from commod.updates._sweep_targets import default_targets

Counts = NDArray[np.int64]

MAX_DIRECTIONS = 5  # each takes a search and a scan of the frame
MAX_SAMPLES = 2  # each takes as many searches and scans as there are directions


@dataclass(frozen=True)
class FrameCandidate(FittedCandidate):
    """A fitted update of a frame, and what is expected of it on new people; None: not known."""

    expectation: Expectation | None = None


class FrameSweep(NamedTuple):
    """The updates of a frontier on a frame.

    - `candidates`, `n_changed`: each update, and how many people of each line it changes, (n,).
    - `rows`: the lines as fit rows, each of many people.
    - `reader`: an update that knows the labels and parameters of all candidates.
    - `text`: what was counted, and what rests on the sample.
    """

    candidates: list[FrameCandidate]
    n_changed: list[Counts]
    rows: FitRows
    reader: Any
    text: str


class SweptDirection(NamedTuple):
    """A direction with its counts on all people, and the update that was searched for with it."""

    update: Any
    target: float
    attempt: Attempt

    @property
    def n_searched(self) -> int:
        """Return the number of rows that it was searched for on."""
        return len(self.attempt.kept.problem.rows)


def sweep_frame(
    update: Any, frame: Any, named: NamedColumns, targets: Sequence[float] | None
) -> FrameSweep | WholeTable:
    """Return an update for each target, least strict first; None: 28 targets up to near parity.

    A table that is too small for a sample comes whole, and nothing is searched for.
    """
    targets = read_numbers("targets", targets)
    for target in targets or ():
        set_target(clone(update), target)._check_parameters()
    counted, lines = count_frame(update, frame, named)
    constraint = update._constraint
    if targets is None:
        base = counted.base_fairness
        targets = default_targets(base, constraint.near_ideal, update._target)
    ordered = sorted(set(targets), reverse=not constraint.higher_is_fairer)
    directions = _search_directions(update, counted, lines, ordered)
    if directions is None:
        return WholeTable.of(lines)
    swept = [_candidate_for(directions, target, counted, lines) for target in ordered]
    candidates, n_changed = zip(*swept, strict=True)
    text = " ".join(_texts(directions, len(ordered), counted, lines))
    return FrameSweep(list(candidates), list(n_changed), counted.rows, update, text)


def _texts(
    directions: Sequence[SweptDirection], n_targets: int, counted: CountedProblem, lines: Lines
) -> Iterator[str]:
    """Yield what was counted, and what rests on the sample."""
    yield f"{lines.table.engine} counted all figures on all {counted.rows.n_people:,} rows."
    at = f"{len({one.target for one in directions})} of {n_of(n_targets, 'target')}"
    sizes = list(dict.fromkeys(one.n_searched for one in directions))
    samples = ", then on one of ".join(f"{size:,} rows" for size in sizes)
    yield f"Directions were searched for on a sample of {samples}, for {at}."
    if lines.table.named.scored:
        yield lines.table.named.scored
    if not all(one.attempt.is_verified for one in directions if one.n_searched == sizes[-1]):
        yield "All rows do not agree with this sample; a larger one may need fewer changes."


def _search_directions(
    update: Any, counted: CountedProblem, lines: Lines, targets: Sequence[float]
) -> list[SweptDirection] | None:
    """Return directions for some of the targets; None where a sample is not worth it.

    Where all people do not agree with the sample, it grows once, but not to the whole table. The
    directions of both samples are kept: a larger one may find a worse direction.
    """
    place = np.linspace(0, len(targets) - 1, MAX_DIRECTIONS + 1)[1:].round().astype(int)
    searched = targets if len(targets) <= MAX_DIRECTIONS else [targets[i] for i in place]
    middle = searched[len(searched) // 2]
    directions: list[SweptDirection] = []
    sizes = frame_sample_sizes(counted, middle, use_all=update.sample == "all")
    for size, growth in islice(sizes, MAX_SAMPLES):
        if size == counted.rows.n_people:
            break
        sample = FrameSample.of(counted, lines, size, growth)
        pulled = pull_rows(lines, sample)
        for target in searched:
            one = set_target(clone(update), target)
            one._take_reading(update)
            one._check_parameters()
            attempt = fit_on_sample(one, counted, sample, pulled, is_first=not directions)
            directions.append(SweptDirection(one, target, attempt))
        if all(one.attempt.is_verified for one in directions[-len(searched) :]):
            break
    return directions or None


def _candidate_for(
    directions: Sequence[SweptDirection], target: float, counted: CountedProblem, lines: Lines
) -> tuple[FrameCandidate, Counts]:
    """Return the update with the fewest changes for a target, and whom it changes."""
    moved = [_moved(direction, target) for direction in directions]
    fits = [fit_of(attempt, counted, lines, refine=False) for attempt in moved]
    ranks = [_rank(fitted, target) for fitted in fits]
    best = ranks.index(min(ranks))
    direction, fitted = directions[best], fits[best]
    update = set_target(clone(direction.update), target)
    update._take_reading(direction.update)
    update.direction_ = fitted.kept.problem.direction
    store_fit(update, fitted, lines)
    n_terms = int((fitted.kept.outcome.weights != 0).sum())
    settings = {"target": target, "searched_target": direction.target, "n_terms": n_terms}
    if fitted.expectation is not None:
        settings["internal_target"] = fitted.expectation.internal_target
    everybody = fitted.everybody
    assert everybody.changed is not None
    changed = everybody.rows.each * everybody.changed
    line = np.arange(len(lines)) if fitted.cut is None else fitted.cut.counts.line
    n_changed = np.rint(np.bincount(line, changed, minlength=len(lines))).astype(np.int64)
    return FrameCandidate(settings, update, fitted.expectation), n_changed


def _moved(direction: SweptDirection, target: float) -> Attempt:
    """Return a direction with the best offset between bins for a target."""
    attempt = direction.attempt
    if attempt.cut is None:
        return attempt
    cut, expectation = attempt.cut.with_target(target), attempt.expectation
    if expectation is not None:
        update = set_target(clone(direction.update), target)
        is_known = not np.isnan(expectation.figures.fairness)
        unknown = Expectation.unknown(target)
        expectation = cut.expect(update, target, refine=False) if is_known else unknown
    return Attempt(attempt.kept, target, cut, expectation)


def _rank(fitted: FrameFit, target: float) -> tuple[float, float]:
    """Return by how much an update misses a target, and its changes: expected ones if known."""
    constraint, everybody = fitted.everybody.constraint, fitted.everybody
    expectation = fitted.expectation
    if expectation is not None and not np.isnan(expectation.figures.fairness):
        figures = expectation.figures
        missing = float(constraint.shortfall(figures.fairness, target))
        return (0.0 if expectation.is_reached else missing), figures.change_rate
    assert everybody.changed is not None
    fairness = everybody.rows.fairness(constraint, everybody.decisions)
    missing = max(float(constraint.shortfall(fairness, target)), fitted.outcome.violation)
    return max(missing, 0.0), everybody.rows.count(everybody.changed) / everybody.rows.n_people
