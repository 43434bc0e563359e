"""Values of constraints on decisions, computed by neither library that is compared.

`KINDS` says how a constraint is measured, and how OxonFair and `commod.constraints` state it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commod import constraints as language

Array = NDArray[Any]
Pair = tuple[str, str]
LEAST_GAP = 0.03  # a bound on a gap below this would be a bound on chance
FLOOR_STEP = 0.05  # how far a floor rises at the margin 1
COLUMN = "stratum"  # people are compared within its values


@dataclass(frozen=True)
class Rows:
    """Decisions with what their fairness is measured by; all arrays have shape (n,)."""

    decisions: Array
    y: Array
    s: Array
    strata: Array

    def rates(self, hits: Array, among: Array) -> list[float]:
        """Return the share of hits among some rows, for each group."""
        return [float(hits[among & (self.s == group)].mean()) for group in np.unique(self.s)]

    def selection(self) -> list[float]:
        """Return the rate of positive decisions of each group."""
        return self.rates(self.decisions, np.ones(len(self.y), dtype=bool))

    def selection_within(self) -> list[float]:
        """Return the selection rates of each group in all strata, averaged by their sizes."""
        strata, sizes = np.unique(self.strata, return_counts=True)
        rates = [self.rates(self.decisions, self.strata == stratum) for stratum in strata]
        return [float(value) for value in np.average(rates, axis=0, weights=sizes)]

    def true_positive(self) -> list[float]:
        """Return the true positive rate of each group."""
        return self.rates(self.decisions, self.y)

    def false_positive(self) -> list[float]:
        """Return the false positive rate of each group."""
        return self.rates(self.decisions, ~self.y)

    def accuracy(self) -> list[float]:
        """Return the accuracy of each group."""
        return self.rates(self.decisions == self.y, np.ones(len(self.y), dtype=bool))


def gap(rates: list[float]) -> float:
    """Return the largest difference between groups."""
    return max(rates) - min(rates)


@dataclass(frozen=True)
class Kind:
    """One constraint: how it is measured, and how both libraries state it.

    `overall` is given for floors only: the rate of all rows.
    """

    value: Callable[[Rows], float]
    oxonfair: str
    ours: Callable[[float], Any]
    needs_labels: bool = True
    overall: Callable[[Rows], float] | None = None

    def bound(self, base: Rows) -> float:
        """Return the bound that follows from the base model."""
        value = self.value(base)
        if self.overall is None:
            return max(value / 2, LEAST_GAP)
        return (value + self.overall(base)) / 2

    def shortfall(self, value: Any, bound: Any) -> Any:
        """Return how much stricter the bound is than the value."""
        return value - bound if self.overall is None else bound - value

    def tightened(self, value: float, margin: float) -> float:
        """Return a stricter value: a gap shrinks by the share `margin`, a floor rises with it."""
        if self.overall is None:
            return max(value, LEAST_GAP) * (1 - margin)
        return min(value + margin * FLOOR_STEP, 0.998)


KINDS = {
    "selection gap": Kind(
        lambda rows: gap(rows.selection()),
        "pos_pred_rate.max_diff",
        lambda value: language.DemographicParity(difference=value),
        needs_labels=False,
    ),
    "selection gap within strata": Kind(
        lambda rows: gap(rows.selection_within()),
        "conditional.pos_pred_rate.max_diff",
        lambda value: language.DemographicParity(difference=value).within(COLUMN, over="average"),
        needs_labels=False,
    ),
    "TPR gap": Kind(
        lambda rows: gap(rows.true_positive()),
        "true_pos_rate.max_diff",
        lambda value: language.TruePositiveRateParity(difference=value),
    ),
    "FPR gap": Kind(
        lambda rows: gap(rows.false_positive()),
        "false_pos_rate.max_diff",
        lambda value: language.FalsePositiveRateParity(difference=value),
    ),
    "larger gap of TPR and FPR": Kind(
        lambda rows: max(gap(rows.true_positive()), gap(rows.false_positive())),
        "equalized_odds_max",
        lambda value: language.EqualizedOdds(largest=value),
    ),
    "accuracy gap": Kind(
        lambda rows: gap(rows.accuracy()),
        "accuracy.max_diff",
        lambda value: language.AccuracyParity(value),
    ),
    "lowest selection rate": Kind(
        lambda rows: min(rows.selection()),
        "pos_pred_rate.min",
        lambda value: language.MinimumRate(value),
        needs_labels=False,
        overall=lambda rows: float(rows.decisions.mean()),
    ),
    "lowest TPR": Kind(
        lambda rows: min(rows.true_positive()),
        "true_pos_rate.min",
        lambda value: language.MinimumTruePositiveRate(value),
        overall=lambda rows: float(rows.decisions[rows.y].mean()),
    ),
}
PAIRS: tuple[Pair, ...] = (
    ("selection gap", "TPR gap"),
    ("selection gap", "lowest selection rate"),
    ("TPR gap", "FPR gap"),
    ("selection gap within strata", "accuracy gap"),
    ("larger gap of TPR and FPR", "lowest TPR"),
)
