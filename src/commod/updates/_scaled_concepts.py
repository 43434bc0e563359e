"""Scale the ratio that a search found, and split it into concepts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from commod._solvers.concepts import Concepts
from commod.scorecard import Scorecard
from commod.updates._problem import FitProblem
from commod.updates._search import SearchOutcome, half_offset
from commod.updates.base import by_column


def concepts_of(problem: FitProblem, outcome: SearchOutcome, n_concepts: int) -> Concepts:
    """Return r of an update, scaled by `_factor_to_one` and split into concepts by raw column.

    With whole-number points, r is a number of points, and every concept has the weight 1.
    """
    if outcome.is_whole:
        return _whole_concepts(problem, outcome, n_concepts)
    acting = problem.may_change
    factor = _factor_to_one(outcome.eta(problem.terms)[acting], problem.rows.each[acting])
    weights = np.zeros((n_concepts, problem.terms.n_terms))
    weights[0] = -factor * outcome.weights
    whole = Concepts(weights, np.eye(n_concepts)[0], -factor * outcome.offset)
    return by_column(whole, problem.encoding, problem.terms, problem.scale, problem.rows.weight)


def _whole_concepts(problem: FitProblem, outcome: SearchOutcome, n_concepts: int) -> Concepts:
    weights = np.zeros((n_concepts, problem.terms.n_terms))
    weights[0] = -outcome.weights
    whole = Concepts(weights, np.eye(n_concepts)[0], -outcome.offset)
    split = by_column(whole, problem.encoding, problem.terms, problem.scale, problem.rows.weight)
    weights = np.where(split.weights != 0, -outcome.weights, 0.0)
    is_used = np.asarray(weights.any(axis=1), dtype=np.float64)
    return Concepts(weights, is_used, -outcome.offset)


def whole_scorecard(problem: FitProblem, outcome: SearchOutcome, concepts: Concepts) -> Scorecard:
    """Return the scorecard of whole-number concepts, with points and intercept free of rounding."""
    points = -np.rint(outcome.points)
    return Scorecard(
        encoding=problem.encoding,
        intercept=-half_offset(outcome.offset - outcome.mean_total),
        contributions=concepts.contributions,
        concept_points=np.where(concepts.weights != 0, points, 0.0),
        concept_intercepts=np.zeros(len(concepts.contributions)),
    )


def _factor_to_one(eta: NDArray[np.float64], people: NDArray[np.float64]) -> float:
    """Return c > 0 that minimises mean((−c·η − 1)²) over people; c·r decides as r does.

    Where the mean of η is not negative, no c > 0 brings r near 1. Then r gets root mean square 1.
    """
    mean, square = (float(np.average(v, weights=people)) for v in (eta, eta**2))
    return -mean / square if mean < 0 else 1.0 / max(float(np.sqrt(square)), 1e-12)
