"""Describe the updates of a frontier: who changes, as a few segments, and the points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from commod._data.columns import Column
from commod._data.encoding import TermTable
from commod._record import Card, Segments
from commod._reporting.explain import SegmentFinder, make_card
from commod._reporting.explain.source import InMemory
from commod._study.evaluation import EvaluationRows
from commod._study.frontier.curve import Point


@dataclass(frozen=True)
class PointDescriber:
    """Finds segments and points of updates on the evaluated rows, whose columns are read once.

    `terms` are the evaluated rows as terms of the scorecards; None for updates without one.
    `max_margin` is the largest distance from the threshold at which decisions may change.
    """

    finder: SegmentFinder
    rows: EvaluationRows
    terms: TermTable | None = None
    max_margin: float | None = None

    @classmethod
    def on_rows(
        cls,
        rows: EvaluationRows,
        columns: Sequence[Column],
        terms: TermTable | None,
        max_margin: float | None = None,
    ) -> PointDescriber:
        """Return the describer for these rows; `columns` are copied.

        The copy is needed because the caller may change the table before segments are searched.
        """
        copies = [
            replace(column, values=np.array(column.values[rows.in_totals])) for column in columns
        ]
        before = rows.before[rows.in_totals]
        finder = SegmentFinder(InMemory(copies), before == rows.gain_raises)
        if terms is not None and not isinstance(rows.in_totals, slice):
            terms = terms.take(np.flatnonzero(rows.in_totals))
        return cls(finder, rows, terms, max_margin)

    def __call__(self, point: Point) -> tuple[Segments | None, Card | None]:
        """Return the segments and the card of one update; None for a randomised update."""
        if point.after.dtype != np.bool_:
            return None, None
        counted = self.rows.in_totals
        changed = self.rows.before[counted] ^ point.after.astype(np.bool_)[counted]
        favorable = self.finder.favorable_before
        segments, _ = self.finder.find(changed & ~favorable, changed & favorable)
        if self.terms is None:
            return segments, None
        card = point.candidate.scorecard()
        return segments, make_card(card, self.terms, changed, favorable, self.max_margin)
