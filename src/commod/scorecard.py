"""The update as points: r(x) and its concepts as tables on the raw columns, and the decision rule.

Everything here is NumPy. A :class:`Scorecard` holds no row and no sensitive value: it is the
explanation, the artefact and the definition of the update at once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from commod._data.columns import Column
from commod._data.encoding import (
    BinTerms,
    CategoryTerms,
    ColumnTerms,
    Encoding,
    NumericTerms,
    TermTable,
)

__all__ = ["MARGIN_COLUMN", "Scorecard", "decide", "edited_scores", "margins", "on_their_side"]

MARGIN_COLUMN = "base margin"  # what r reads beside the raw columns, where it may
SCORE_CLIP = 1e-15  # keeps the logit of a score of 0 or 1 finite
MAX_EXPONENT = 30.0  # sigmoid(30) is 1 - 1e-13; some SQL engines refuse exp of large numbers


@dataclass(frozen=True, eq=False)
class Scorecard:
    """A table of points on raw columns whose sum is r(x), split over k concepts.

    r(x) = intercept + Σ_t points_t · term_t(x), and points = contributions @ concept_points: each
    concept is a table of points of its own. Columns are added in the order of `encoding`.

    Parameters
    ----------
    encoding : Encoding
        Which raw column each of the d terms reads.
    intercept : float
        r before any points are added.
    contributions : ndarray of shape (k,)
        Weight of each concept in r; 0 for a concept that is not used.
    concept_points : ndarray of shape (k, d)
        Points of each concept in raw units, exactly zero where a term is not used.
    concept_intercepts : ndarray of shape (k,)
        Value of each concept before any points are added.

    Examples
    --------
    >>> from commod import COMMOD
    >>> from commod.datasets import make_biased
    >>> from sklearn.linear_model import LogisticRegression
    >>> data = make_biased(400, random_state=0)
    >>> model = LogisticRegression().fit(data.data, data.target)
    >>> update = COMMOD(model, epochs=0, random_state=0)
    >>> update.fit(data.data, data.target, sensitive_features=data.sensitive_features).scorecard_
    r = 1, no points: no decision changes.
    """

    encoding: Encoding
    intercept: float
    contributions: NDArray[np.float64]
    concept_points: NDArray[np.float64]
    concept_intercepts: NDArray[np.float64]
    points: NDArray[np.float64] = field(init=False)

    def __post_init__(self) -> None:
        points = np.zeros(self.concept_points.shape[1])
        for weight, table in zip(self.contributions, self.concept_points, strict=True):
            points += weight * table  # in this order: a matrix product rounds as BLAS likes
        object.__setattr__(self, "points", points)

    def ratio(self, columns: Sequence[Column]) -> NDArray[np.float64]:
        """Return r(x) of each row, shape (n,)."""
        return self.evaluate(self.encoding.encode(columns))

    def evaluate(self, terms: TermTable) -> NDArray[np.float64]:
        """Return the same for rows that are terms already."""
        return terms.total(self.points, self.intercept)

    def concepts(self, columns: Sequence[Column]) -> NDArray[np.float64]:
        """Return the value of each concept on each row, shape (n, k)."""
        terms = self.encoding.encode(columns)
        tables = zip(self.concept_points, self.concept_intercepts, strict=True)
        return np.column_stack([terms.total(points, float(start)) for points, start in tables])

    @property
    def n_terms_used(self) -> int:
        """Return the number of lines with points."""
        return int(np.count_nonzero(self.points))

    @property
    def columns_used(self) -> list[str]:
        """Return the raw columns that have points, in order."""
        names = np.array(self.encoding.term_columns, dtype=object)
        return list(dict.fromkeys(names[self.points != 0]))

    def in_use(self, *, concepts: bool = False) -> Scorecard:
        """Return the same r on the columns that have points alone: the others need not be read.

        With `concepts`, a column is kept where any concept has points, one without weight in r
        too: the concepts are the same as well.
        """
        points = self.concept_points.any(axis=0) if concepts else self.points
        lasts = np.cumsum([column.n_terms for column in self.encoding.columns])
        used = [part.any() for part in np.split(points, lasts[:-1])] if len(lasts) else []
        pairs = list(zip(self.encoding.columns, used, strict=True))
        terms = np.repeat(np.array(used, dtype=bool), [column.n_terms for column, _ in pairs])
        return replace(
            self,
            encoding=Encoding(tuple(column for column, kept in pairs if kept)),
            concept_points=self.concept_points[:, terms],
        )

    def rows(self, concept: int | None = None) -> list[tuple[str, float]]:
        """Return (term name, points) for each line with points, in the order of the columns.

        The total scorecard by default; the points of one concept where `concept` is given.
        """
        points = self.points if concept is None else self.concept_points[concept]
        lines = list(zip(self.encoding.term_names, points.tolist(), strict=True))
        return [line for line in lines if line[1]]

    def to_dict(self) -> dict[str, Any]:
        """Return the scorecard as plain Python, ready for JSON."""
        return {
            "columns": [asdict(c) for c in self.encoding.columns],
            "intercept": self.intercept,
            "contributions": self.contributions.tolist(),
            "concept_points": self.concept_points.tolist(),
            "concept_intercepts": self.concept_intercepts.tolist(),
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Scorecard:
        """Return the scorecard that `to_dict` wrote."""
        return cls(
            encoding=Encoding(tuple(_column_terms(c) for c in data["columns"])),
            intercept=float(data["intercept"]),
            contributions=np.array(data["contributions"], dtype=np.float64),
            concept_points=np.array(data["concept_points"], dtype=np.float64),
            concept_intercepts=np.array(data["concept_intercepts"], dtype=np.float64),
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Scorecard) and self.to_dict() == other.to_dict()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        if not self.n_terms_used:
            changes = "no decision changes" if self.intercept >= 0 else "every decision changes"
            return f"r = {self.intercept:.4g}, no points: {changes}."
        return "\n".join([self._table(None), *map(self._table, self._concepts_used())])

    def _concepts_used(self) -> list[int]:
        return [j for j in range(len(self.contributions)) if self.contributions[j]]

    def _table(self, concept: int | None) -> str:
        if concept is None:
            title = f"r(x) = {self.intercept:+.4g} and points (a decision changes where r < 0)"
        else:
            start = self.concept_intercepts[concept]
            weight = self.contributions[concept]
            title = f"concept {concept}, weight {weight:+.4g} in r: {start:+.4g} and points"
        rows = self.rows(concept)
        width = max((len(name) for name, _ in rows), default=0)
        units = {c.name for c in self.encoding.columns if isinstance(c, NumericTerms)}
        lines = [
            f"  {name:<{width}}  {_points_text(points):>10}{' per unit' if name in units else ''}"
            for name, points in rows
        ]
        return "\n".join([title, *lines])


def _points_text(points: float) -> str:
    """Return points in a table; small ones, per unit of a large number, never look like 0."""
    return f"{points:+.4f}" if abs(points) >= 0.001 else f"{points:+.3g}"


def _column_terms(data: dict[str, Any]) -> ColumnTerms:
    if "edges" in data:
        edges = tuple(float(edge) for edge in data["edges"])
        return BinTerms(data["name"], edges, bool(data["has_missing_term"]))
    if data["kind"] == "numeric":
        return NumericTerms(data["name"], float(data["fill"]), bool(data["has_missing_term"]))
    return CategoryTerms(data["name"], tuple(data["categories"]))


def margins(scores: NDArray[np.float64], threshold: float) -> NDArray[np.float64]:
    """Return z = logit(score) − logit(threshold), zero at the decision boundary, shape (n,)."""
    clipped = np.clip(scores, SCORE_CLIP, 1 - SCORE_CLIP)
    return np.asarray(logit(clipped) - logit(threshold), dtype=np.float64)


def decide(
    scores: NDArray[np.float64], ratio: NDArray[np.float64], threshold: float
) -> NDArray[np.bool_]:
    """Return the new decisions by the one rule that every engine uses, shape (n,).

    The base decision (score > threshold) stays where r ≥ 0 or the score equals the threshold, and
    is turned into its opposite elsewhere.

    Examples
    --------
    >>> import numpy as np
    >>> decide(np.array([0.2, 0.5, 0.9]), np.array([-0.1, -1.0, 0.0]), threshold=0.5)
    array([ True, False,  True])
    """
    changed = (ratio < 0) & (scores != threshold)
    return np.asarray((scores > threshold) ^ changed)


def edited_scores(
    scores: NDArray[np.float64], ratio: NDArray[np.float64], threshold: float
) -> NDArray[np.float64]:
    """Return g = sigmoid(r·z + logit(threshold)) in [0, 1], on its decision's side, shape (n,).

    Where r is exactly 1 the score is the base score itself, bit for bit; elsewhere rounding could
    put a score on the wrong side of the threshold, so it is nudged to the side of its decision.

    Examples
    --------
    >>> import numpy as np
    >>> edited_scores(np.array([0.2, 0.9]), np.array([-1.0, 1.0]), threshold=0.5)
    array([0.8, 0.9])
    """
    exponent = np.clip(ratio * margins(scores, threshold), -MAX_EXPONENT, MAX_EXPONENT)
    edited = np.where(ratio == 1, scores, expit(exponent + logit(threshold)))
    return on_their_side(edited, decide(scores, ratio, threshold), threshold)


def on_their_side(
    scores: NDArray[np.float64], decisions: NDArray[np.bool_], threshold: float
) -> NDArray[np.float64]:
    """Return scores nudged to their decisions' side of the threshold, shape (n,).

    Examples
    --------
    >>> import numpy as np
    >>> on_their_side(np.array([0.7, 0.6]), np.array([True, False]), threshold=0.5)
    array([0.7, 0.5])
    """
    lowest_positive = math.nextafter(threshold, 1.0)
    raised = np.where(decisions & (scores <= threshold), lowest_positive, scores)
    return np.where(~decisions & (raised > threshold), threshold, raised)
