"""Check that the promises of `confidence=0.95` are true, and given where they could be.

The populations are those of `make_biased`. Where the columns are Gaussian and the constraint is
demographic parity, the rates of every model in the whole population are bivariate normal
probabilities, not estimates. Otherwise they are rates of 200,000 fresh rows.

A draw is a held-out half. Four draws share a fit half, because a promise is tested on held-out rows
alone: its error holds for every fit half.

`make figures FIGURES=promises DRAWS=1000 JOBS=16` takes 1,000 draws of each population in 16
processes. `ONLY="equalized odds"` takes the populations with this text in their names.
"""

from __future__ import annotations

import copy
import math
import os
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

import numpy as np
from report import show, show_at_most
from scipy.stats import multivariate_normal, norm
from sklearn.linear_model import LogisticRegression

from commod import ControlledDebiaser
from commod._statistics.intervals import exact_share_interval
from commod.datasets import make_biased
from commod.exceptions import TargetWarning
from commod.metrics._changes import is_degenerate
from commod.metrics._constraint import get_constraint
from commod.metrics._people import People
from commod.updates._promise import choose_update

CONFIDENCE = 0.95
FALSE_BAR, FALSE_BOUND_BAR, GIVEN_BAR, CHANGES_BAR = 0.05, 0.065, 0.90, 1.25
ODDS_GIVEN_BAR, ODDS_RANGE = 0.30, (0.08, 0.12)
N_BASE_ROWS, N_TRUTH_ROWS = 4000, 200_000
N_HELD_OUT = 4  # held-out halves that each fit half is tested on: a promise is an event of these
FEWEST_DRAWS = 500  # with fewer, the bound of a share of 0 is near its bar
# A model this many standard errors of the log P-rule above the target passes its test at 0.95
# nine times in ten: 1.645 + 1.282.
MARGIN = 2.93
LEAST_GROUP_SHARE, LEAST_RATE = 0.25, 0.2  # the normal approximation behind MARGIN needs them


@dataclass(frozen=True)
class Population:
    """A population, the number of rows of a draw, and what is promised about it."""

    name: str
    rows: dict[str, Any]
    n_rows: int = 2000
    target: float = 0.8
    constraints: str = "demographic_parity"
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def is_exact(self) -> bool:
        """Return whether the rates of a model are known exactly."""
        return self.constraints == "demographic_parity" and "n_categories" not in self.rows


ODDS, FEW_POSITIVES = "equalized_odds", "true_positive_rate_parity"
COMMON: tuple[Population, ...] = (
    Population("60/40", {"group_shares": (0.6, 0.4)}, 4000),
    Population("50/50, more bias", {"group_shares": (0.5, 0.5), "bias": 1.5}, 4000),
    Population(
        "70/30, less bias", {"group_shares": (0.7, 0.3), "bias": 0.7, "intercept": 0.5}, 4000
    ),
    Population(
        "six columns", {"group_shares": (0.6, 0.4), "n_features": 6, "correlation": 0.3}, 4000
    ),
)
POPULATIONS: tuple[Population, ...] = (
    *COMMON,
    Population("a 3 % group", {"group_shares": (0.97, 0.03), "intercept": 1.0}, 2400, 0.6),
    Population("three groups", {"group_shares": (0.5, 0.3, 0.2), "bias": 0.8}, 3000, 0.7),
    Population("60 categories", {"group_shares": (0.6, 0.4), "n_categories": 60}, 2000, 0.7),
    Population("low base rate", {"group_shares": (0.6, 0.4), "intercept": -3.0}, 4000, 0.5),
    Population("high base rate", {"group_shares": (0.6, 0.4), "intercept": 3.0}, 2000, 0.95),
    Population("equalized odds", {"group_shares": (0.5, 0.5)}, 3000, 0.2, ODDS),
    Population(
        "few positives",
        {"group_shares": (0.6, 0.4), "intercept": -3.0, "bias": 0.7},
        3000,
        0.2,
        FEW_POSITIVES,
    ),
)


class Recording(ControlledDebiaser):
    """A ControlledDebiaser that stores every model it tests, and its own last."""

    def _store_update(self, problem: Any, outcome: Any) -> None:
        super()._store_update(problem, outcome)
        models = vars(self).pop("models_", [])
        self.models_ = [*models, copy.copy(self)]


@dataclass(frozen=True)
class Model:
    """One model in the whole population: its fairness, groups' rates and share of changes."""

    fairness: float
    changes: float
    rates: tuple[float, ...] = ()

    def is_safe(self, sizes: np.ndarray, target: float) -> bool:
        """Return whether held-out groups of these sizes should show that the target is met."""
        rates = np.array(self.rates)
        if rates.min() < LEAST_RATE or sizes.min() < LEAST_GROUP_SHARE * sizes.sum():
            return False
        error = math.sqrt(((1 - rates) / (rates * sizes)).sum())
        return self.fairness >= target * math.exp(MARGIN * error)


# ---------------------------------------------------------------------------------------------
# The truth


@cache
def base_model(number: int) -> Any:
    """Return the base model of a population, fitted on rows that no draw sees."""
    rows = make_biased(N_BASE_ROWS, random_state=10**6 + number, **POPULATIONS[number].rows)
    return LogisticRegression().fit(numbers(rows.data), rows.target)


def numbers(data: Any) -> Any:
    """Return the numeric columns: the base model does not read the category."""
    return data[[name for name in data.columns if name != "category"]]


class NumericBase:
    """A base model that reads the numeric columns only."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.classes_ = model.classes_

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probabilities of the model."""
        return np.asarray(self.model.predict_proba(numbers(X)))

    def predict(self, X: Any) -> np.ndarray:
        """Return the labels of the model."""
        return np.asarray(self.model.predict(numbers(X)))


@cache
def fresh_rows(number: int) -> Any:
    """Return the rows that stand for the population."""
    return make_biased(N_TRUTH_ROWS, random_state=2 * 10**6 + number, **POPULATIONS[number].rows)


def in_fresh_rows(model: Any, number: int) -> Model:
    """Return fairness and changes of a model on the fresh rows."""
    rows, base = fresh_rows(number), NumericBase(base_model(number))
    after, before = model.predict(rows.data), base.predict(rows.data)
    groups = rows.sensitive_features.str[1:].astype(int).to_numpy()
    label = rows.target.to_numpy() == 1
    constraint = get_constraint(POPULATIONS[number].constraints)
    people = People((constraint,), groups, len(rows.group_names), label)
    fairness = people.fairness(after == 1)
    return Model(float(fairness), float(np.mean(after != before)))


def in_population(model: Any, number: int, population: Any) -> Model:
    """Return the exact rates and changes of a model."""
    base, card = base_model(number), model.scorecard_
    points = dict(zip(card.encoding.term_columns, card.points, strict=True))
    r = np.array([points.get(name, 0.0) for name in population.feature_names])
    both = np.vstack([base.coef_[0], r])  # of the base logit, and of r
    start = np.array([base.intercept_[0], card.intercept])
    spread = both @ population.covariance @ both.T
    centres = population.group_means @ both.T + start
    if not spread[1, 1] > 0:  # r is constant
        spread = spread + np.diag([0.0, 1e-18])
    pairs = [_rate_and_changes(centre, spread, model.search_.direction) for centre in centres]
    changes = float(np.dot(population.group_shares, [change for _, change in pairs]))
    rates = tuple(rate for rate, _ in pairs)
    return Model(min(rates) / max(*rates, 1e-12), changes, rates)


def _rate_and_changes(
    centre: np.ndarray, spread: np.ndarray, direction: str
) -> tuple[float, float]:
    """Return the selection rate of a group and its share of changes."""
    negative, changed = norm.cdf(-centre / np.sqrt(np.diag(spread)))
    both = multivariate_normal.cdf([0.0, 0.0], centre, spread, allow_singular=True)
    raised = 0.0 if direction == "losses_only" else both
    lowered = 0.0 if direction == "gains_only" else changed - both
    return float(1 - negative + raised - lowered), float(raised + lowered)


# ---------------------------------------------------------------------------------------------
# Draws


@dataclass(frozen=True)
class Draw:
    """The result of one draw: the model that is kept, the first tested, the cheapest safe one."""

    promised: bool
    answer: Model
    first: Model | None = None
    cheapest_safe: Model | None = None


def fitted(seed: int, number: int, rows: Any) -> Recording:
    """Return an update with `confidence`, fitted on the rows of one draw."""
    population = POPULATIONS[number]
    update = Recording(
        NumericBase(base_model(number)),
        constraints=population.constraints,
        target=population.target,
        confidence=CONFIDENCE,
        borderline=0,  # r is linear in x
        **population.settings,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TargetWarning)
        return update.fit(rows.data, rows.target, sensitive_features=rows.sensitive_features)


def draw(seed: int, number: int) -> list[Draw]:
    """Return the draws with one fit half: its own held-out half, then fresh ones."""
    population = POPULATIONS[number]
    rows = make_biased(population.n_rows, random_state=seed, **population.rows)
    update = fitted(seed, number, rows)
    *tested, kept = update.models_
    truth = partial(in_population, number=number, population=rows)
    if not population.is_exact:
        truth = partial(in_fresh_rows, number=number)
    truths: dict[int, Model] = {}

    def known(i: int) -> Model:
        return truths[i] if i in truths else truths.setdefault(i, truth(tested[i]))

    cheapest = None
    if population.is_exact:
        sizes = rows.sensitive_features.value_counts().reindex(rows.group_names).to_numpy() // 2
        models = [known(i) for i in range(len(tested))]
        safe = [model for model in models if model.is_safe(sizes, population.target)]
        cheapest = min(safe, key=lambda model: model.changes, default=None)
    is_needed = population.is_exact or update.promised_
    answer = truth(kept) if is_needed else Model(math.nan, math.nan)
    first = known(0) if population.is_exact or population.constraints == ODDS else None
    draws_of_fit = [Draw(bool(update.promised_), answer, first, cheapest)]
    for k in range(1, N_HELD_OUT):
        kept_again, failure = tested_again(tested, seed + k * 10**7, number)
        promised = not failure and kept_again is not None
        answer = known(kept_again) if promised else Model(math.nan, math.nan)
        draws_of_fit.append(Draw(promised, answer, first, cheapest))
    return draws_of_fit


def tested_again(tested: list[Any], seed: int, number: int) -> tuple[int | None, str]:
    """Return which of the tested updates a fresh held-out half keeps, and why a promise fails."""
    population, base = POPULATIONS[number], NumericBase(base_model(number))
    rows = make_biased(population.n_rows // 2, random_state=seed, **population.rows)
    constraint = get_constraint(population.constraints)
    groups = rows.sensitive_features.str[1:].astype(int).to_numpy()
    label = rows.target.to_numpy() == 1
    people = People((constraint,), groups, len(rows.group_names), label)
    before = base.predict(rows.data) == 1
    after = [model.predict(rows.data) == 1 for model in tested]
    return choose_update(
        constraint,
        [people.counts(decisions) for decisions in after],
        people.counts(before),
        population.target,
        CONFIDENCE,
        [bool(is_degenerate((before != d).mean(), before.mean(), d.mean())) for d in after],
    )


def draws(number: int) -> Iterator[Draw]:
    """Yield DRAWS draws of a population (default 24), in JOBS processes (default: all cores)."""
    seeds = range(-(-int(os.environ.get("DRAWS", 24)) // N_HELD_OUT))
    jobs = int(os.environ.get("JOBS", os.cpu_count() or 1))
    with ProcessPoolExecutor(jobs) as pool:
        run = map if jobs == 1 else partial(pool.map, chunksize=1)
        for several in run(partial(draw, number=number), seeds):
            yield from several


# ---------------------------------------------------------------------------------------------
# Figures


def promises() -> None:
    """Count false promises in each population, and promises that could be given."""
    common: list[Draw] = []
    for number, population in enumerate(POPULATIONS):
        if os.environ.get("ONLY", "") not in population.name:
            continue
        begin = time.perf_counter()
        runs = list(draws(number))
        show_false(population, runs, time.perf_counter() - begin)
        if population.constraints == ODDS:
            show_odds(population, runs)
        if population in COMMON:
            common.extend(runs)
    if common:
        show_given(common)


def show_false(population: Population, runs: list[Draw], seconds: float) -> None:
    """Print the share of false promises of a population, and its upper bound."""
    constraint = get_constraint(population.constraints)
    given = [run for run in runs if run.promised]
    false = sum(not constraint.is_met(run.answer.fairness, population.target) for run in given)
    words = f"({false} of {len(runs)} draws, {len(given)} promised, {seconds:.0f} s)"
    name = f"promises, {population.name}: false"
    show_at_most(f"{name}, share of draws", false / len(runs), FALSE_BAR, words)
    bound = float(exact_share_interval(false, len(runs), 0.05)[1])
    holds = bound <= FALSE_BOUND_BAR if len(runs) >= FEWEST_DRAWS else None
    show(f"{name}, upper 95 % bound", f"{bound:.3f}", f"<= {FALSE_BOUND_BAR:g}", holds)


def show_odds(population: Population, runs: list[Draw]) -> None:
    """Print how often equalized odds are promised, and how fair the tested updates are."""
    first = [run.first.fairness for run in runs if run.first is not None]
    name = f"promises, {population.name}"
    show(f"{name}: DM of the first tested update, median", f"{np.median(first):.3f}")
    share = float(np.mean([run.promised for run in runs]))
    show(
        f"{name}: given, share of draws",
        f"{share:.3f}",
        f">= {ODDS_GIVEN_BAR}",
        share >= ODDS_GIVEN_BAR,
    )
    low, high = ODDS_RANGE
    near = [run.promised for run in runs if run.first and low <= run.first.fairness <= high]
    if near:
        show(
            f"{name}: given where that DM is {low:g} to {high:g}",
            f"{np.mean(near):.3f} ({len(near)} draws)",
            f">= {ODDS_GIVEN_BAR}",
            bool(np.mean(near) >= ODDS_GIVEN_BAR),
        )
    changes = [run.answer.changes for run in runs if run.promised]
    if changes:
        show(f"{name}: changes of promised updates, median", f"{np.median(changes):.3f}")


def show_given(runs: list[Draw]) -> None:
    """Print how often a promise is given where a tested model is safe, and what it costs."""
    values = [run.answer.fairness for run in runs if run.promised]
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
