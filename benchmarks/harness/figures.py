"""Figures and their bars: a value, or a ratio of two values of one turn, and its verdict."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import Any, NamedTuple

from benchmarks.harness.results import Value, quantities

HOLDS, MISSED, UNKNOWN = "holds", "MISSED", "not measured"
GOAL_MISSED = "MISSED (a goal)"
HOLDS_BUT = "holds, goal missed"


class Figure(NamedTuple):
    """A figure that is compared with a bar: `scale` x `top` / (`bottom` + `allowance`).

    Without `bottom` it is `scale` x `top`.

    `sense` is "<=" or ">=". A figure without bar and goal is only reported. A missed goal is
    reported and does not fail a run.
    """

    part: str
    name: str
    top: Value
    bottom: Value | None = None
    scale: float = 1.0
    allowance: float = 0.0
    bar: float | None = None
    goal: float | None = None
    sense: str = "<="

    @property
    def is_judged(self) -> bool:
        """Return whether the figure has a bar or a goal."""
        return self.bar is not None or self.goal is not None

    @property
    def bar_text(self) -> str:
        """Return the bar as it is printed."""
        if self.bar is None:
            return "" if self.goal is None else f"{self.sense} {self.goal:g} (goal)"
        return f"{self.sense} {self.bar:g}" + (f" (goal {self.goal:g})" if self.goal else "")

    def holds(self, value: float, bar: float | None) -> bool:
        """Return whether a value is on the right side of a bar; without a bar, it is."""
        return bar is None or (value <= bar if self.sense == "<=" else value >= bar)


class MeasuredFigure(NamedTuple):
    """A figure with its values, one per turn, and the verdict on their median."""

    figure: Figure
    values: list[float]
    verdict: str

    def fails(self, *, whole_run: bool) -> bool:
        """Return whether this figure fails a run; a whole run has to measure every bar."""
        unmeasured = self.verdict == UNKNOWN and self.figure.bar is not None
        return self.verdict == MISSED or (whole_run and unmeasured)


def evaluate(figure: Figure, parts: dict[str, Any]) -> MeasuredFigure:
    """Return a figure with its values from the stored parts."""
    values = values_of(figure, parts.get(figure.part))
    return MeasuredFigure(figure, values, verdict_on(figure, values))


def values_of(figure: Figure, part: dict[str, Any] | None) -> list[float]:
    """Return the values of a figure; both values of a ratio are of one turn, at equal load."""
    top = quantities(part, figure.top)
    if figure.bottom is None:
        return [figure.scale * value for value in top.values()]
    bottom = quantities(part, figure.bottom)
    return [
        figure.scale * top[turn] / (bottom[turn] + figure.allowance)
        for turn in top
        if bottom.get(turn)
    ]


def verdict_on(figure: Figure, values: Sequence[float]) -> str:
    """Return the verdict on the median of the values."""
    if not values:
        return UNKNOWN
    if not figure.is_judged:
        return ""
    median = statistics.median(values)
    if not figure.holds(median, figure.bar):
        return MISSED
    if not figure.holds(median, figure.goal):
        return GOAL_MISSED if figure.bar is None else HOLDS_BUT
    return HOLDS


def number(value: float) -> str:
    """Return a number with three digits, without an exponent.

    Examples
    --------
    >>> number(0.001234), number(12.345), number(123456.7)
    ('0.00123', '12.3', '123,457')
    """
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    rounded = float(f"{value:.2e}")  # 0.9999 is 1.00, not 1.000
    digits = 2 - math.floor(math.log10(abs(rounded)))
    return f"{value:,.{max(digits, 0)}f}"


def spread(values: Sequence[float]) -> str:
    """Return the median with the lowest and the highest; without values, return a dash."""
    if not values:
        return "–"
    median = number(statistics.median(values))
    if len(values) == 1:
        return median
    return f"{median} ({number(min(values))} to {number(max(values))})"
