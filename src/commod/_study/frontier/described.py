"""What a frontier carries of its updates: who changes, in a few rules, and the points."""

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
from commod.scorecard import MARGIN_COLUMN

__all__ = ["Described"]


@dataclass(frozen=True)
class Described:
    """Finds segments and points of updates on the evaluated rows, whose columns are read once.

    `terms` are the same rows as the scorecards of these updates read them, None without one.
    """

    finder: SegmentFinder
    rows: EvaluationRows
    terms: TermTable | None = None

    @classmethod
    def on(
        cls, rows: EvaluationRows, columns: Sequence[Column], terms: TermTable | None = None
    ) -> Described:
        """Return what describes updates on these rows."""
        # copies, as segments may be sought after the caller's table has changed
        kept = [c for c in columns if c.name != MARGIN_COLUMN]
        raw = InMemory([replace(c, values=c.values.copy()) for c in kept])
        return cls(SegmentFinder(raw, rows.before == rows.gain_raises), rows, terms)

    def __call__(self, point: Point) -> tuple[Segments | None, Card | None]:
        """Return the segments and the card of one update."""
        if point.after.dtype != np.bool_:
            return None, None
        changed = self.rows.before ^ point.after.astype(np.bool_)
        favorable = self.finder.favorable_before
        segments, _ = self.finder.find(changed & ~favorable, changed & favorable)
        if self.terms is None:
            return segments, None
        return segments, make_card(point.fitted.scorecard(), self.terms, changed)
