"""The jobs of the figures `heart` and `heart-new-rows`: tables, base models, constraints, targets.

A job is a table, a kind of base model, a constraint and a target. `measured` fits one update for a
job on one split and measures it on test rows. It runs with this version and with version 0.2.
"""

from __future__ import annotations

import os
import time
import warnings
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from three_parts import MODELS, SCORE, Part, three_parts

from commod import ControlledDebiaser, ScoreColumn, metrics

PARITY, ODDS = "demographic_parity", "equalized_odds"
TPR, FPR = "true_positive_rate_parity", "false_positive_rate_parity"

# The targets were chosen beside the base models' fairness on the seeds 1000 to 1003.
TARGETS: dict[str, dict[str, tuple[float, ...]]] = {
    "COMPAS": {
        PARITY: (0.85, 0.9, 0.95),
        ODDS: (0.18, 0.11),
        TPR: (0.065, 0.04),
        FPR: (0.12, 0.075),
    },
    "Law School": {
        PARITY: (0.5, 0.65, 0.8),
        ODDS: (0.32, 0.22),
        TPR: (0.2, 0.12),
        FPR: (0.13, 0.08),
    },
    "made, linear": {
        PARITY: (0.5, 0.65, 0.8),
        ODDS: (0.35, 0.2),
        TPR: (0.18, 0.11),
        FPR: (0.17, 0.1),
    },
    "made, categories": {
        PARITY: (0.7, 0.8, 0.9),
        ODDS: (0.14, 0.085),
        TPR: (0.08, 0.05),
        FPR: (0.06, 0.04),
    },
    "Adult": {
        PARITY: (0.5, 0.65, 0.8),
        ODDS: (0.11, 0.07),
        TPR: (0.065, 0.045),
        FPR: (0.05, 0.03),
    },
    "German credit": {PARITY: (0.92, 0.94, 0.96)},
}
NOT_POOLED = ("German credit",)  # reported, but no part of sums over tables
MIN_CELL = 100  # people; a bar for a single table holds where every compared cell has as many
N_SPLITS = 20


class Job(NamedTuple):
    """One request on one table."""

    table: str
    model: str
    constraint: str
    target: float


def tables() -> list[str]:
    """Return the tables, or those in the environment, e.g. `TABLES="COMPAS;Adult"`."""
    chosen = os.environ.get("TABLES")
    return chosen.split(";") if chosen else list(TARGETS)


def jobs() -> list[Job]:
    """Return the jobs of the chosen tables."""
    return [
        Job(table, model, constraint, target)
        for table in tables()
        for model in MODELS
        for constraint, targets in TARGETS[table].items()
        for target in targets
    ]


@lru_cache(maxsize=2)
def fit_and_test_rows(table: str, model: str, seed: int, *, equal: bool = False) -> list[Part]:
    """Return the fit rows and the test rows of a split; `equal`: as many fit rows as test rows."""
    fit, test = three_parts(table, model, seed)
    if equal:
        fit = fit.only(slice(len(test.y)))
    return [fit, test]


def fairness(constraint: str, part: Part, decisions: Any) -> float:
    """Return the P-rule, or the gap, of decisions (True: favourable)."""
    groups = {"sensitive_features": part.s, "pos_label": True}
    return float(metrics.fairness_value(constraint, part.y, np.asarray(decisions), **groups))


def fairer_by(constraint: str, value: Any, other: Any) -> Any:
    """Return how much fairer `value` is than `other`: positive is fairer."""
    return value - other if constraint == PARITY else other - value


def fitted(job: Job, fit: Part, **settings: Any) -> tuple[ControlledDebiaser, float]:
    """Return an update for a job, and the processor's seconds of its fit."""
    update = ControlledDebiaser(
        ScoreColumn(SCORE),
        constraints=job.constraint,
        target=job.target,
        **settings,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = time.process_time()
        update.fit(fit.X, fit.y, sensitive_features=fit.s)
        return update, time.process_time() - start


def measured(job: Job, seed: int, **settings: Any) -> dict[str, float]:
    """Return fairness, changes and accuracy on the test rows, and the seconds of the fit."""
    fit, test = fit_and_test_rows(job.table, job.model, seed)
    update, seconds = fitted(job, fit, **settings)
    return {**figures(job, test, update.predict(test.X)), "seconds": seconds}


def figures(job: Job, test: Part, decisions: Any) -> dict[str, float]:
    """Return fairness, share of changes and accuracy of decisions on test rows."""
    after = np.asarray(decisions, dtype=bool)
    return {
        "fairness": fairness(job.constraint, test, after),
        "changes": float(np.mean(after != (test.score > 0.5))),
        "accuracy": float(np.mean(after == test.y)),
    }


@lru_cache(maxsize=256)
def smallest_cell(table: str, constraint: str) -> int:
    """Return the people in the smallest cell that a constraint compares, in the fit rows."""
    fit, _ = fit_and_test_rows(table, MODELS[0], 0)
    counted = {PARITY: (True, False), ODDS: (True, False), TPR: (True,), FPR: (False,)}
    labels = np.zeros(len(fit.y), bool) if constraint == PARITY else fit.y
    sizes = [
        int(np.sum((fit.s == group) & (labels == label)))
        for group in np.unique(fit.s)
        for label in ((False,) if constraint == PARITY else counted[constraint])
    ]
    return min(sizes)
