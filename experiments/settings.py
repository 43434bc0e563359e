"""The size of a run: the full one, or a quick one with few splits and points."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from experiments.methods import AS_IN_PAPER
from experiments.paper import COMPAS, DP, EO, LAW_SCHOOL
from experiments.protocol import ADULT

Sweep = Mapping[str, Any]  # arguments of `frontier`: grid or targets; empty for the default


@dataclass(frozen=True)
class Settings:
    """Splits, seeds and points of a run.

    `splits` maps (table, notion) to a number of splits, 0 to n − 1. `sweeps` maps a method to the
    arguments of its frontier; a method without an entry has the library's default sweep. Methods
    that only the table of all methods has, and that have no entry, have `other_sweep`. `effort` is
    the share of a full run's seconds that a cell takes.
    """

    name: str
    effort: float
    splits: Mapping[tuple[str, str], int]
    sweeps: Mapping[str, Sweep]
    other_sweep: Sweep
    few_splits: int
    sensitivity_seeds: int
    sensitivity_grid: Mapping[str, tuple[float, ...]]
    architecture_grid: Mapping[str, tuple[float, ...]]

    def sweep_of(self, method: str) -> dict[str, Any]:
        """Return the arguments of the method's frontier."""
        return dict(self.sweeps.get(method, {}))

    def sweep_of_other(self, method: str) -> dict[str, Any]:
        """Return the arguments of the frontier of a method that is in no other table."""
        return dict(self.sweeps.get(method, self.other_sweep))


# Appendix C.2: λ_fair ≤ 10 and λ_ratio ≤ 0.5. Section 6.4 begins at 0.5 and at 0.01.
PAPERS_GRID = {
    "lambda_fair": (0.5, 1.0, 1.5, 2.0, 3.0, 4.5, 7.0, 10.0),
    "lambda_ratio": (0.01, 0.1, 0.5),
}

FULL = Settings(
    name="full",
    effort=1.0,
    splits={
        (LAW_SCHOOL, DP): 10,
        (LAW_SCHOOL, EO): 10,
        (COMPAS, DP): 10,
        (COMPAS, EO): 5,
        (ADULT, DP): 3,
        (ADULT, EO): 3,
    },
    sweeps={AS_IN_PAPER: {"grid": PAPERS_GRID}},
    other_sweep={},
    few_splits=5,
    sensitivity_seeds=20,
    sensitivity_grid={
        "lambda_fair": (0.5, 0.8, 1.2, 1.5),
        "lambda_ratio": (0.01, 0.04, 0.1),
    },
    architecture_grid={
        "lambda_fair": (0.0, 0.25, 0.5, 0.7, 1.0, 1.4, 2.0, 3.0, 4.5, 7.0, 10.0),
        "lambda_ratio": (0.05, 0.2),
    },
)

FEW = {"grid": {"strength": (0.3, 0.6, 0.9)}}
QUICK = Settings(
    name="quick",
    effort=0.3,
    splits={
        (LAW_SCHOOL, DP): 2,
        (LAW_SCHOOL, EO): 1,
        (COMPAS, DP): 1,
        (COMPAS, EO): 1,
        (ADULT, DP): 1,
        (ADULT, EO): 1,
    },
    sweeps={
        "COMMOD": {"grid": {"lambda_fair": (0.5, 1.0, 2.0, 4.5), "lambda_ratio": (0.05, 0.2)}},
        AS_IN_PAPER: {"grid": {"lambda_fair": (1.5, 3.0, 10.0), "lambda_ratio": (0.1,)}},
        "AdversarialDebiasing": {"grid": {"strength": (0.1, 0.5, 1.0, 2.0)}},
        "FRAPPE": {"grid": {"strength": (0.5, 2.0, 8.0)}},
        "LPP": FEW,
        "LPP (aware)": FEW,
        "RejectOption": FEW,
        "ThresholdOptimizer": {"grid": {"strength": (0.0, 1.0)}},  # Fairlearn relaxes no odds
    },
    other_sweep=FEW,
    few_splits=1,
    sensitivity_seeds=4,
    sensitivity_grid={"lambda_fair": (0.5, 1.5), "lambda_ratio": (0.01, 0.1)},
    architecture_grid={"lambda_fair": (0.5, 2.0, 4.5), "lambda_ratio": (0.05,)},
)
