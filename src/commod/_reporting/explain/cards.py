"""The scorecard as a record: all its points, beside the concepts and what each does to people."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from commod._data.encoding import NumericTerms, TermTable
from commod._record import Card, CardLine, Concept
from commod._reporting.explain.segments import share
from commod.scorecard import Scorecard

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

MOST_NAMES = 2  # columns that a concept is called by


def make_card(scorecard: Scorecard, terms: TermTable, changed: Mask, level: float = 0.95) -> Card:
    """Return the scorecard as a record, measured on the people whose terms are given.

    `changed` (n,) says whose decision changes; `level` is that of the two-sided intervals.
    """
    maker = CardMaker(scorecard)
    maker.add(terms, changed)
    return maker.card(level)


class CardMaker:
    """Counts what a scorecard does to people, some rows after the other."""

    def __init__(self, scorecard: Scorecard) -> None:
        self.scorecard = scorecard
        self.used = [j for j, weight in enumerate(scorecard.contributions.tolist()) if weight]
        self._n = 0
        self._mean = np.zeros(scorecard.encoding.n_terms)
        self._square = np.zeros(scorecard.encoding.n_terms)  # sum of squared distances
        # people by concept, whether it is active, and whether they change
        self._counts = np.zeros((len(self.used), 2, 2), dtype=np.intp)

    def add(self, terms: TermTable, changed: Mask) -> None:
        """Count more people."""
        n = len(terms)
        mean, scale = terms.moments(np.ones(n))
        gap = mean - self._mean
        self._square += n * scale**2 + gap**2 * (self._n * n / (self._n + n))
        self._mean += gap * (n / (self._n + n))
        self._n += n
        for i, j in enumerate(self.used):
            active = push_of(self.scorecard, j, terms) > 0
            table = np.bincount(2 * active + changed, minlength=4)
            self._counts[i] += table.reshape(2, 2)

    def card(self, level: float) -> Card:
        """Return what was counted as a record."""
        total, scorecard = self.scorecard.points, self.scorecard
        homes = scorecard.concept_points[self.used] != 0
        concept_of = [
            self.used[int(np.argmax(home))] if home.sum() == 1 else None for home in homes.T
        ]
        return Card(
            intercept=float(scorecard.intercept),
            lines=self._lines(total, concept_of),
            concepts=tuple(self._concept(i, level) for i in range(len(self.used))),
        )

    def _concept(self, i: int, level: float) -> Concept:
        j = self.used[i]
        weight = float(self.scorecard.contributions[j])
        points = -weight * self.scorecard.concept_points[j]
        lines = self._lines(points, [j] * len(points))
        (inactive, active) = self._counts[i].tolist()
        return Concept(
            number=j,
            name=_name(lines),
            contribution=weight,
            n_active=sum(active),
            n_inactive=sum(inactive),
            change_if_active=share(active[1], sum(active), level),
            change_if_inactive=share(inactive[1], sum(inactive), level),
            lines=lines,
        )

    def _lines(self, points: Floats, concepts: Sequence[int | None]) -> tuple[CardLine, ...]:
        """Return the lines with points, those that tell people apart most first."""
        encoding = self.scorecard.encoding
        names, columns = encoding.term_names, encoding.term_columns
        units = {c.name for c in encoding.columns if isinstance(c, NumericTerms)}
        scale = np.sqrt(self._square / max(self._n, 1))
        spread = np.abs(points) * scale
        order = sorted(np.flatnonzero(points).tolist(), key=lambda t: (-spread[t], t))
        return tuple(
            CardLine(
                term=names[t],
                column=columns[t],
                unit="per unit" if columns[t] in units and names[t] == columns[t] else "",
                points=float(points[t]),
                spread=float(spread[t]) if self._n else None,
                concept=concepts[t],
            )
            for t in order
        )


def push_of(scorecard: Scorecard, concept: int, terms: TermTable) -> Floats:
    """Return what a concept adds to −r on each row, shape (n,).

    Concepts are centred on the fit rows, so the mean push there is 0 and a concept is active where
    it is above that.
    """
    start = float(scorecard.concept_intercepts[concept])
    return -scorecard.contributions[concept] * terms.total(scorecard.concept_points[concept], start)


def _name(lines: Sequence[CardLine]) -> str:
    """Return the columns that tell people apart most, in words."""
    sizes: dict[str, float] = {}
    for line in lines:
        sizes[line.column] = sizes.get(line.column, 0.0) + (line.spread or 0.0) ** 2
    return ", ".join(sorted(sizes, key=lambda name: -sizes[name])[:MOST_NAMES])
