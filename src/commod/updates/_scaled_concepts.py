"""Scale the ratio that a search found, and split it into concepts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from commod._solvers.concepts import Concepts
from commod.updates._problem import FitProblem
from commod.updates._search import SearchOutcome
from commod.updates.base import by_column


def concepts_of(problem: FitProblem, outcome: SearchOutcome, n_concepts: int) -> Concepts:
    """Return r of an update, scaled by `_factor_to_one` and split into concepts by raw column."""
    factor = _factor_to_one(outcome.eta(problem.terms)[problem.may_change])
    weights = np.zeros((n_concepts, problem.terms.n_terms))
    weights[0] = -factor * outcome.weights
    whole = Concepts(weights, np.eye(n_concepts)[0], -factor * outcome.offset)
    return by_column(whole, problem.encoding, problem.terms, problem.scale, problem.rows.weight)


def _factor_to_one(eta: NDArray[np.float64]) -> float:
    """Return c > 0 that minimises mean((−c·η − 1)²); r and c·r make the same decisions.

    Where the mean of η is not negative, no c > 0 brings r near 1. Then r gets root mean square 1.
    """
    mean, square = float(eta.mean()), float(np.mean(eta**2))
    return -mean / square if mean < 0 else 1.0 / max(float(np.sqrt(square)), 1e-12)
