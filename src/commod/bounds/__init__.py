"""Compute exact limits: fewest and cheapest changes, best fairness and accuracy, Bayes rule.

An update can only be judged against what is possible at best. Fairness depends on how many people
of each group (and true label) have a positive decision. So the limits are computed on counts, in
whole numbers and exact fractions, and hold for any method that changes these rows.

They correct the paper's theory where it is wrong in print; the notes of each function say where.
"""

from commod.bounds._accuracy import MostAccurate, most_accurate
from commod.bounds._bayes import bayes_optimal_scores
from commod.bounds._blind import BlindChanges, blind_changes
from commod.bounds._cheapest import MinimalCost, minimal_cost
from commod.bounds._counts import exact_fairness, fewest_changes
from commod.bounds._expected import (
    ExpectedChanges,
    fewest_expected_changes,
    minimal_expected_changes,
)
from commod.bounds._limits import (
    BestFairness,
    MinimalChanges,
    best_fairness,
    minimal_changes,
    switching_point,
)

__all__ = [
    "BestFairness",
    "BlindChanges",
    "ExpectedChanges",
    "MinimalChanges",
    "MinimalCost",
    "MostAccurate",
    "bayes_optimal_scores",
    "best_fairness",
    "blind_changes",
    "exact_fairness",
    "fewest_changes",
    "fewest_expected_changes",
    "minimal_changes",
    "minimal_cost",
    "minimal_expected_changes",
    "most_accurate",
    "switching_point",
]
