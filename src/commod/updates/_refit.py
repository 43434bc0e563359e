"""Fit some terms of a scorecard again while all others keep their points."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from commod._solvers.search.pinned import fit_beside
from commod._solvers.search.threads import single_blas_thread
from commod.updates._problem import FitProblem
from commod.updates._sample import SearchSample, search_samples
from commod.updates._steps import tell
from commod.updates._whole_points import whole_outcome

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


def refitted_points(
    problem: FitProblem, points: Floats, is_pinned: Mask, target: float
) -> list[Floats]:
    """Return points (d,) with the fewest changes for a target, with pinned terms as they are.

    The first result fits the terms that have points already. The second one, where it differs,
    fits all terms that are not pinned; it is for a target that the first one misses.
    """
    sample = _sample(problem, target)
    with_points = ~is_pinned & (points != 0)
    return [
        _refit(sample, points, is_free)
        for is_free in (with_points, ~is_pinned)
        if is_free.any() and (is_free is with_points or not np.array_equal(is_free, with_points))
    ]


def refitted_whole_points(
    problem: FitProblem, points: Floats, is_pinned: Mask, target: float, max_lines: int
) -> Floats:
    """Return whole-number points (d,) with the fewest changes, with pinned terms as they are."""
    start = np.rint(-points).astype(np.int64)
    sample = _sample(problem, target)
    outcome = whole_outcome(sample, [], target, max_lines, [start], is_pinned)
    return np.where(is_pinned, points, -outcome.points) + 0.0


def _sample(problem: FitProblem, target: float) -> SearchSample:
    """Return the rows that terms are fitted on: the first sample, or all rows if asked for."""
    samples = search_samples(problem, target)
    first = next(samples)
    return [first, *samples][-1] if problem.use_all else first


def _refit(sample: SearchSample, points: Floats, is_free: Mask) -> Floats:
    """Return points (d,) where the free terms are fitted on the search sample."""
    problem, task = sample.problem, sample.score_task
    free_columns = is_free[task.design.terms]
    if not free_columns.any():
        return points
    part = replace(task.select(free_columns), reads=None, learning=None)
    terms = part.design.terms
    fixed = -points
    fixed[terms] = 0.0
    acting = problem.terms.take(sample.index[sample.acting])
    scale = problem.scale[terms]
    tell(f"fitting terms beside the edited ones on {len(sample.index):,} rows")
    with single_blas_thread:
        found = fit_beside(part, acting.total(fixed, 0.0), -points[terms] * scale)
    refitted = points.copy()
    refitted[terms] = -found.w / scale
    return refitted
