"""Turn a scorecard into a record: points, concepts, and what each concept does to people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

import numpy as np

from commod._data.arrays import Floats, Mask
from commod._data.encoding import TermTable
from commod._record import Card, CardLine, CardRule, Concept
from commod._statistics.intervals import share_estimate
from commod.scorecard import EvidenceRule, Scorecard

MAX_NAMES = 2  # columns in the name of a concept


def make_card(
    scorecard: Scorecard,
    terms: TermTable,
    changed: Mask,
    favorable: Mask,
    max_margin: float | None = None,
) -> Card:
    """Return the scorecard as a record, measured on the people whose terms are given.

    `changed` (n,) says whose decision changes, `favorable` (n,) whose base decision is the
    favourable one. Intervals are two-sided, of level 0.95. `max_margin` is as in `CardMaker`.
    """
    maker = CardMaker(scorecard, max_margin)
    maker.add(terms, changed, favorable)
    return maker.card(0.95)


def ratio_per_point(rule: EvidenceRule | None, favorable: Mask) -> Floats:
    """Return what one point of a scorecard adds to the r of each person, shape (n,).

    It is 1 where the sum of the points is r. Where the sum is evidence, it is −1 / cut for people
    with the unfavourable base decision, and 1 / cut for people with the favourable one.

    Examples
    --------
    >>> import numpy as np
    >>> ratio_per_point(EvidenceRule(cut=0.5), np.array([False, True]))
    array([-2.,  2.])
    """
    if rule is None:
        return np.ones(len(favorable))
    return np.where(favorable, 1.0, -1.0) / rule.cut


class CardMaker:
    """Measure what a scorecard does to people, chunk by chunk of rows.

    `max_margin` is the largest distance from the threshold at which a decision may change; None:
    any.
    """

    def __init__(self, scorecard: Scorecard, max_margin: float | None = None) -> None:
        self.scorecard, self.max_margin = scorecard, max_margin
        self.used = np.flatnonzero(scorecard.contributions).tolist()
        self._n = 0
        self._mean = np.zeros(scorecard.encoding.n_terms)
        self._square = np.zeros(scorecard.encoding.n_terms)  # sum of squared distances
        # People by concept, whether it is active, and whether they change.
        self._counts = np.zeros((len(self.used), 2, 2), dtype=np.intp)

    def add(self, terms: TermTable, changed: Mask, favorable: Mask) -> None:
        """Add the people of one chunk, by the pairwise update of mean and variance."""
        n = len(terms)
        mean, scale = terms.moments(np.ones(n))
        difference = mean - self._mean
        self._square += n * scale**2 + difference**2 * (self._n * n / (self._n + n))
        self._mean += difference * (n / (self._n + n))
        self._n += n
        for i, j in enumerate(self.used):
            active = push_of(self.scorecard, j, terms, favorable) > 0
            self._counts[i] += np.bincount(2 * active + changed, minlength=4).reshape(2, 2)

    def card(self, level: float) -> Card:
        """Return the scorecard as a record, measured on all people that were added."""
        is_used = self.scorecard.concept_points[self.used] != 0
        concepts = [
            self.used[int(np.argmax(column))] if column.sum() == 1 else None for column in is_used.T
        ]
        rule = self.scorecard.rule
        return Card(
            intercept=float(self.scorecard.intercept),
            lines=self._terms(self.scorecard.points, concepts),
            concepts=tuple(self._concept(i, level) for i in range(len(self.used))),
            rule=None if rule is None else self._rule(rule),
        )

    def _rule(self, rule: EvidenceRule) -> CardRule:
        sentences = rule.sentences(max_margin=self.max_margin)
        return CardRule(**asdict(rule), sentences=tuple(sentences))

    def _concept(self, i: int, level: float) -> Concept:
        j = self.used[i]
        weight = float(self.scorecard.contributions[j])
        sign = -1.0 if self.scorecard.rule is None else 1.0
        points = sign * weight * self.scorecard.concept_points[j]
        terms = self._terms(points, [j] * len(points))
        n_inactive, n_active = self._counts[i].sum(axis=1).tolist()
        inactive_changed, active_changed = self._counts[i, :, 1].tolist()
        return Concept(
            number=j,
            name=_name(terms),
            contribution=weight,
            n_active=n_active,
            n_inactive=n_inactive,
            change_if_active=share_estimate(active_changed, n_active, level),
            change_if_inactive=share_estimate(inactive_changed, n_inactive, level),
            lines=terms,
        )

    def _terms(self, points: Floats, concepts: Sequence[int | None]) -> tuple[CardLine, ...]:
        """Return the terms that have points, the largest spread over people first."""
        encoding = self.scorecard.encoding
        names, columns = encoding.term_names, encoding.term_columns
        per_unit = encoding.counted_names
        pairs = zip(names, columns, strict=True)
        counted = [per_unit.get(term, "") if term == column else "" for term, column in pairs]
        spread = np.abs(points) * np.sqrt(self._square / max(self._n, 1))
        order = sorted(np.flatnonzero(points).tolist(), key=lambda t: (-spread[t], t))
        return tuple(
            CardLine(
                term=names[t],
                column=columns[t],
                unit="per unit" if counted[t] else "",
                points=float(points[t]),
                spread=float(spread[t]) if self._n else None,
                concept=concepts[t],
                counted=counted[t],
            )
            for t in order
        )


def push_of(scorecard: Scorecard, concept: int, terms: TermTable, favorable: Mask) -> Floats:
    """Return what a concept adds to −r on each row, shape (n,).

    Concepts are centred on the fit rows: the mean push there is 0. A concept is active where its
    push is above 0.
    """
    start = float(scorecard.concept_intercepts[concept])
    value = terms.total(scorecard.concept_points[concept], start)
    return -ratio_per_point(scorecard.rule, favorable) * scorecard.contributions[concept] * value


def _name(terms: Sequence[CardLine]) -> str:
    """Return the names of the columns with the largest spread over people."""
    sizes: dict[str, float] = {}
    for term in terms:
        sizes[term.column] = sizes.get(term.column, 0.0) + (term.spread or 0.0) ** 2
    return ", ".join(sorted(sizes, key=lambda name: -sizes[name])[:MAX_NAMES])
