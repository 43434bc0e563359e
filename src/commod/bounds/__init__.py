"""Compute exact limits: the fewest and the cheapest changes, and the best fairness.

An update can only be judged against what is possible at best. Fairness depends on how many people
of each group (and true label) have a positive decision. So the limits are computed on counts, in
whole numbers and exact fractions, and hold for any method that changes these rows.

They correct the paper's theory where it is wrong in print; the notes of each function say where.
"""

from commod.bounds._blind import BlindChanges, blind_changes
from commod.bounds._cheapest import MinimalCost, minimal_cost
from commod.bounds._limits import (
    BestFairness,
    ExpectedChanges,
    MinimalChanges,
    best_fairness,
    minimal_changes,
    minimal_expected_changes,
)

__all__ = [
    "BestFairness",
    "BlindChanges",
    "ExpectedChanges",
    "MinimalChanges",
    "MinimalCost",
    "best_fairness",
    "blind_changes",
    "minimal_changes",
    "minimal_cost",
    "minimal_expected_changes",
]
