"""Measure how well the points of small categories predict the group of the people who have them.

A scorecard that names many small categories may predict the group of the people in them: the points
of each category were fitted to few people. The measure is the area under the curve with which these
points, and nothing else, predict the group. It is highest on the fit rows, whose people shaped the
points.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from commod._data.columns import Column
from commod._data.disclosure import SMALL_CATEGORY
from commod._data.encoding import CategoryTerms
from commod._record import CardLine, Estimate, State
from commod._reporting.audit.areas import group_areas
from commod._reporting.audit.evidence import Evidence
from commod._reporting.audit.sentences import MAX_LISTED, interval
from commod._text import list_names, n_of

MAX_AREA = 0.6  # area under the curve with which the points of small categories may predict a group


@dataclass
class SmallCellPoints:
    """Adds up, one raw column at a time, the points that people get from small categories.

    `points` (n,) are those of small categories, and `is_inside` (n,) says who has such points.
    """

    lines: Sequence[CardLine]
    n_rows: int
    points: NDArray[np.float64] = field(init=False)
    is_inside: NDArray[np.bool_] = field(init=False)

    def __post_init__(self) -> None:
        self.points = np.zeros(self.n_rows)
        self.is_inside = np.zeros(self.n_rows, dtype=bool)

    def add(self, column: Column) -> None:
        """Add the points of the small categories of a column, and of "missing" if it is small."""
        by_term = {line.term: line.points for line in self.lines if line.column == column.name}
        if not by_term:
            return
        is_category = column.kind == "category"
        categories = (*column.categories, None) if is_category else (None,)
        names = CategoryTerms(column.name, categories).term_names
        codes = column.values if is_category else np.where(column.is_missing(), -1, 0)
        points = np.array([by_term.get(name, 0.0) for name in names])
        n_people = np.bincount(codes + 1, minlength=len(points))
        n_people = np.append(n_people[1:], n_people[0]) if is_category else n_people[:1]
        points = np.where(n_people < SMALL_CATEGORY, points, 0.0)
        # a missing value has the code −1: the last entry; a known number has none
        own = points[codes] if is_category else np.where(codes < 0, points[0], 0.0)
        self.points += own
        self.is_inside |= own != 0

    def group_areas(
        self, codes: NDArray[np.intp], is_compared: NDArray[np.bool_], level: float
    ) -> list[Estimate] | None:
        """Return how well the points predict each compared group; None without small categories."""
        if not self.is_inside.any():
            return None
        inside = self.is_inside & (codes >= 0)
        return group_areas(-self.points[inside], codes[inside], is_compared, level)


def small_cells_answer(e: Evidence) -> tuple[State, str] | None:
    """Return whether the points of small categories predict a group; None where there are none."""
    if e.small_cell_areas is None:
        return None
    people = f"{n_of(e.n_in_small_cells, 'person')} of the {e.rows}"
    scale = (
        f"The figures are areas under the curve ({interval(e)}): 0.5 means chance, 1 means exact. "
        f"This check allows {MAX_AREA:g}. They are highest on the rows that the update was fitted "
        "on."
    )
    predictions = []
    for group, area in zip(e.compared_names, e.small_cell_areas, strict=True):
        if area.value is not None and area.low is not None and area.high is not None:
            # an area below 0.5 predicts who is not in the group, equally well
            ends = sorted((abs(area.low - 0.5), abs(area.high - 0.5)))
            low = 0.5 + (0.0 if area.low < 0.5 < area.high else ends[0])
            value, high = 0.5 + abs(area.value - 0.5), 0.5 + ends[1]
            predictions.append(
                (value, low, high, f"{group} ({value:.2f}, {low:.2f} to {high:.2f})")
            )
    predictor = f"The points of categories that fewer than {SMALL_CATEGORY} people share"
    if not predictions:
        text = f"{people} have such a category, too few of a group to compare."
        return "not enough evidence", f"{predictor} may predict the group. {text}"
    failed = [text for _, low, _, text in predictions if low > MAX_AREA]
    if failed:
        return (
            "failed",
            f"{predictor} predict, among {people}, {list_names(failed, MAX_LISTED)}. {scale}",
        )
    unsure = [text for _, _, high, text in predictions if high > MAX_AREA]
    if unsure:
        groups = list_names(unsure, MAX_LISTED)
        return "not enough evidence", f"{predictor} may predict, among {people}, {groups}. {scale}"
    best = max(predictions)[-1]
    return "passed", f"{predictor} predict, among {people}, no group better than {best}. {scale}"
