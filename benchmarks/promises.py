"""Check that the promises of `confidence=0.95` are true, and given where they could be.

The populations are those of `make_biased` without categories. The base model's logit and r are both
linear in Gaussian columns. So the rates of every model in the whole population are bivariate normal
probabilities, not estimates. `make figures FIGURES=promises DRAWS=1000 JOBS=2` takes more draws, in
two processes.
"""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from report import show, show_at_most
from scipy.stats import multivariate_normal, norm
from sklearn.linear_model import LogisticRegression

from commod import ControlledDebiaser
from commod.datasets import make_biased
from commod.exceptions import TargetWarning

TARGET, CONFIDENCE = 0.8, 0.95
FALSE_BAR, GIVEN_BAR, CHANGES_BAR = 0.065, 0.90, 1.25
N_ROWS = 4000
POPULATIONS: tuple[dict[str, Any], ...] = (
    {"group_shares": (0.6, 0.4)},
    {"group_shares": (0.5, 0.5), "bias": 1.5},
    {"group_shares": (0.7, 0.3), "bias": 0.7, "intercept": 0.5},
    {"group_shares": (0.6, 0.4), "n_features": 6, "correlation": 0.3},
)
# A model this many standard errors of the log P-rule above the target passes its test at 0.95
# nine times in ten: 1.645 + 1.282.
MARGIN = 2.93
LEAST_GROUP_SHARE, LEAST_RATE = 0.25, 0.2  # the normal approximation behind MARGIN needs them


class Recording(ControlledDebiaser):
    """A ControlledDebiaser that stores what every model it tests decides by, its own last."""

    def _store_update(self, search: Any, update: Any) -> None:
        super()._store_update(search, update)
        stored = (self.scorecard_, self.direction_)
        self.scorecards_ = [*getattr(self, "scorecards_", []), stored]


@dataclass(frozen=True)
class Model:
    """One model in the whole population: its groups' rates and the share of changes."""

    rates: tuple[float, ...]
    changes: float

    @property
    def p_rule(self) -> float:
        """Return the P-rule; it is 0 if a group gets no positive decision."""
        return min(self.rates) / max(max(self.rates), 1e-12)

    def is_safe(self, sizes: np.ndarray) -> bool:
        """Return whether held-out groups of these sizes should show that the target is met."""
        rates = np.array(self.rates)
        if rates.min() < LEAST_RATE or sizes.min() < LEAST_GROUP_SHARE * sizes.sum():
            return False
        error = math.sqrt(((1 - rates) / (rates * sizes)).sum())
        return self.p_rule >= TARGET * math.exp(MARGIN * error)


@cache
def base_model(number: int) -> Any:
    """Return the base model of a population, fitted on rows that no draw sees."""
    rows = make_biased(N_ROWS, random_state=10**6 + number, **POPULATIONS[number])
    return LogisticRegression().fit(rows.data, rows.target)


def in_population(card: Any, direction: str, base: Any, population: Any) -> Model:
    """Return the exact rates and changes of a scorecard on a base model."""
    points = dict(zip(card.encoding.term_columns, card.points, strict=True))
    r = np.array([points.get(name, 0.0) for name in population.feature_names])
    both = np.vstack([base.coef_[0], r])  # of the base logit, and of r
    start = np.array([base.intercept_[0], card.intercept])
    spread = both @ population.covariance @ both.T
    centres = population.group_means @ both.T + start
    if not spread[1, 1] > 0:  # r is constant
        spread = spread + np.diag([0.0, 1e-18])
    pairs = [_rate_and_changes(centre, spread, direction) for centre in centres]
    changes = float(np.dot(population.group_shares, [change for _, change in pairs]))
    return Model(tuple(rate for rate, _ in pairs), changes)


def _rate_and_changes(
    centre: np.ndarray, spread: np.ndarray, direction: str
) -> tuple[float, float]:
    """Return the selection rate of a group and its share of changes."""
    negative, changed = norm.cdf(-centre / np.sqrt(np.diag(spread)))
    both = multivariate_normal.cdf([0.0, 0.0], centre, spread, allow_singular=True)
    raised = 0.0 if direction == "losses_only" else both
    lowered = 0.0 if direction == "gains_only" else changed - both
    return float(1 - negative + raised - lowered), float(raised + lowered)


@dataclass(frozen=True)
class Draw:
    """The result of one draw."""

    promised: bool
    answer: Model
    cheapest_safe: Model | None


def draw(seed: int) -> Draw:
    """Fit with `confidence` on one draw, and evaluate the update in the population."""
    number = seed % len(POPULATIONS)
    rows = make_biased(N_ROWS, random_state=seed, **POPULATIONS[number])
    base = base_model(number)
    settings = {"target": TARGET, "confidence": CONFIDENCE, "borderline": 0}  # r is linear in x
    update = Recording(base, random_state=seed, progress=False, **settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TargetWarning)
        update.fit(rows.data, rows.target, sensitive_features=rows.sensitive_features)
    *tested, answer = (in_population(*stored, base, rows) for stored in update.scorecards_)
    sizes = rows.sensitive_features.value_counts().reindex(rows.group_names).to_numpy() // 2
    safe = [model for model in tested if model.is_safe(sizes)]
    cheapest = min(safe, key=lambda model: model.changes, default=None)
    return Draw(bool(update.promised_), answer, cheapest)


def draws() -> Iterator[Draw]:
    """Yield the draws: DRAWS of them (default 200), in JOBS processes (default 1)."""
    seeds = range(int(os.environ.get("DRAWS", 200)))
    jobs = int(os.environ.get("JOBS", 1))
    if jobs == 1:
        yield from map(draw, seeds)
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(draw, seeds, chunksize=4)


def promises() -> None:
    """Count false promises, and promises given where a tested model is safe enough."""
    runs = list(draws())
    false = sum(run.promised and run.answer.p_rule < TARGET for run in runs)
    given = sum(run.promised for run in runs)
    words = f"({false} of {len(runs)} draws, {given} promised)"
    show_at_most("promises: false ones, share of draws", false / len(runs), FALSE_BAR, words)
    values = [run.answer.p_rule for run in runs if run.promised]
    show("promises: population P-rule, least, mean", f"{min(values):.3f}, {np.mean(values):.3f}")
    safe = [run for run in runs if run.cheapest_safe is not None]
    if not safe:
        show("promises: draws with a model safe enough", "0", "some", False)
        return
    kept = [run for run in safe if run.promised]
    show(
        "promises: given where some model is safe enough",
        f"{len(kept) / len(safe):.3f} ({len(kept)} of {len(safe)} draws)",
        f">= {GIVEN_BAR}",
        len(kept) / len(safe) >= GIVEN_BAR,
    )
    ratio = [run.answer.changes / run.cheapest_safe.changes for run in kept if run.cheapest_safe]
    words = f"(90 % of draws: {np.quantile(ratio, 0.9):.3f})"
    figure = "promises: changes / those of the cheapest safe model"
    show_at_most(figure, float(np.mean(ratio)), CHANGES_BAR, words)
