"""Compute exact limits: the fewest and the cheapest changes, and the best fairness.

An update can only be judged against what is possible at best. Fairness depends on how many people
of each group (and true label) have a positive decision. So the limits are computed on counts, in
whole numbers and exact fractions, and hold for any method that changes these rows.

They correct the paper's theory where it is wrong in print; the notes of each function say where.
"""

from commod.bounds._blind import BlindChanges as BlindChanges
from commod.bounds._blind import blind_changes
from commod.bounds._cheapest import MinimalCost as MinimalCost
from commod.bounds._cheapest import minimal_cost
from commod.bounds._limits import BestFairness as BestFairness
from commod.bounds._limits import ExpectedChanges as ExpectedChanges
from commod.bounds._limits import MinimalChanges as MinimalChanges
from commod.bounds._limits import (
    best_fairness,
    minimal_changes,
    minimal_expected_changes,
)

__all__ = [
    "best_fairness",
    "blind_changes",
    "minimal_changes",
    "minimal_cost",
    "minimal_expected_changes",
]
