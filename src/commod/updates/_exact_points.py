"""Store a scorecard whose points are given: they are kept bit for bit, and so is the intercept."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from commod._data.encoding import Encoding
from commod._solvers.concepts import Concepts
from commod._solvers.search.path import SearchStep
from commod.scorecard import Scorecard
from commod.updates._problem import FitProblem
from commod.updates._search import SearchOutcome, changed_rows

Floats = NDArray[np.float64]


class GivenPoints(NamedTuple):
    """Points (d,) in r and the intercept of r, both in raw units."""

    points: Floats
    intercept: float


def outcome_of_points(
    problem: FitProblem, given: GivenPoints, step: str, *, is_whole: bool = False
) -> SearchOutcome:
    """Return given points as the outcome of a search, whose η is −r.

    With `is_whole`, later offsets lie halfway between two whole numbers.
    """
    outcome = SearchOutcome(
        weights=-given.points * problem.scale,
        points=-given.points,
        offset=-given.intercept,
        mean_total=0.0,  # the offset is the intercept itself, so that no digit of it is lost
        steps=(),
        shrinkage=0.0,
        violation=0.0,
        n_search_rows=problem.rows.n_people,
        is_whole=is_whole,
    )
    share = problem.rows.count(changed_rows(problem, outcome)) / problem.rows.n_people
    n_terms = int(np.count_nonzero(given.points))
    return replace(outcome, steps=(SearchStep(step, share, n_terms),))


def concept_of_terms(card: Scorecard) -> NDArray[np.intp]:
    """Return the concept of each term, (d,): that of its raw column; 0 for a column without one."""
    columns = np.array(card.encoding.term_columns, dtype=object)
    concept = np.zeros(len(columns), dtype=np.intp)
    for name in card.columns_used:
        of_column = columns == name
        concept[of_column] = np.abs(card.concept_points[:, of_column]).sum(axis=1).argmax()
    return concept


def exact_concepts(
    given: GivenPoints, concept: NDArray[np.intp], n_concepts: int, problem: FitProblem
) -> tuple[Concepts, Scorecard]:
    """Return given points as concepts, and as a scorecard with exactly these points.

    The contribution of a concept is a power of 2: products with it are exact. So a concept has a
    norm between 1 and 2, and its largest weight is positive.
    """
    split = np.zeros((n_concepts, len(given.points)))
    split[concept, np.arange(len(concept))] = given.points
    weights = split * problem.scale
    norm = np.linalg.norm(weights, axis=1)
    order = np.argsort(-norm, kind="stable")
    split, weights, norm = split[order], weights[order], norm[order]
    strongest = np.take_along_axis(weights, np.abs(weights).argmax(axis=1, keepdims=True), axis=1)
    size = 2.0 ** np.floor(np.log2(np.where(norm > 0, norm, 1.0)))
    factor = np.where(strongest[:, 0] < 0, -size, size)
    points = split / factor[:, None] + 0.0
    intercepts = -(points @ problem.moments[0]) + 0.0
    contributions = np.where(norm > 0, factor, 0.0)
    at_mean = float(given.intercept - contributions @ intercepts)
    card = Scorecard(problem.encoding, given.intercept, contributions, points, intercepts)
    return Concepts(points * problem.scale, contributions, at_mean), card


def store_given(
    update: Any, problem: FitProblem, given: GivenPoints, concept: NDArray[np.intp]
) -> None:
    """Store given points as the scorecard of an update."""
    concepts, card = exact_concepts(given, concept, update.n_concepts, problem)
    update.concept_weights_ = concepts.weights
    update.concept_contributions_ = concepts.contributions
    update.intercept_ = concepts.intercept
    update.term_names_ = problem.encoding.term_names
    update.scorecard_ = card


def without_terms(encoding: Encoding, is_locked: NDArray[np.bool_]) -> Encoding:
    """Return the terms of all columns that have no locked term."""
    locked = {name for name, gone in zip(encoding.term_columns, is_locked, strict=True) if gone}
    return Encoding(tuple(column for column in encoding.columns if column.name not in locked))
