"""Compare the expected fairness with the fairness on new people, where the population is known.

A fit sees a sample of a population of `make_biased`. Its decisions on 200,000 other people give the
shares of the cells (group, true label, decision). Fresh samples, as large as the fit's, are drawn
from these shares. So the mean fairness of new samples is known up to about 0.002.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
from expected import expectations, fit_update, mean_and_error
from experiments.protocol import Split
from numpy.typing import NDArray
from parallel import in_parallel, seeds
from report import show
from sklearn.utils import Bunch
from three_parts import MODELS, base_model

from commod import metrics
from commod.datasets import make_biased

CONSTRAINTS = (
    "demographic_parity",
    "equalized_odds",
    "true_positive_rate_parity",
    "false_positive_rate_parity",
)
SHARES = {
    2: ((0.5, 0.5), (0.7, 0.3), (0.85, 0.15)),
    3: ((0.4, 0.3, 0.3), (0.5, 0.3, 0.2), (0.6, 0.25, 0.15)),
    4: ((0.25, 0.25, 0.25, 0.25), (0.4, 0.3, 0.2, 0.1), (0.3, 0.3, 0.2, 0.2)),
}
SIZES = (500, 1000, 2000, 5000, 20_000)
N_SEEDS = 7  # 7 populations for each of 4 constraints, 3 numbers of groups and 5 sizes: 420 fits
MIN_FITS = 200
N_PEOPLE = 200_000  # whose decisions give the population's shares
N_BASE_ROWS = 2000
N_FRESH = 1000
LARGE_CELL = 100  # people; the bars are for fits whose smallest cell has as many
MAX_MEAN_ERROR, MAX_CONSTRAINT_ERROR = 0.01, 0.02

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Population:
    """A population of `make_biased`, drawn at random, and how strict the target is."""

    settings: dict[str, Any]
    strictness: float  # share of the base model's unfairness that the target removes


def population_of(seed: int, n_groups: int) -> Population:
    """Return population `seed`: its shares, bias, base rate, columns and strictness."""
    random = np.random.default_rng([seed, n_groups])
    shares = SHARES[n_groups][random.integers(3)]
    settings = {
        "group_shares": shares,
        "bias": float(random.uniform(0.6, 1.4)),
        "intercept": float(random.uniform(-1.0, 1.0)),
        "signal": float(random.uniform(1.0, 2.5)),
        "n_features": int(random.integers(4, 9)),
        "correlation": float(random.choice([0.0, 0.3])),
        "n_categories": int(random.choice([0, 0, 8, 30])),
    }
    return Population(settings, float(random.choice([0.4, 0.6, 0.8])))


@lru_cache(maxsize=1)
def people_of(seed: int, n_groups: int) -> tuple[Any, Bunch]:
    """Return a base model of other rows, and the people who stand for the population."""
    settings = population_of(seed, n_groups).settings
    own = make_biased(N_BASE_ROWS, random_state=10**6 + seed, **settings)
    model = base_model(MODELS[0]).fit(own.data, own.target)
    return model, make_biased(N_PEOPLE, random_state=2 * 10**6 + seed, **settings)


def known_populations() -> None:
    """Print the mean error of expectations over at least 200 fits."""
    tasks = list(itertools.product(seeds(N_SEEDS), SHARES, CONSTRAINTS, SIZES))
    runs = pd.DataFrame(in_parallel(_fitted, tasks))
    runs["error"] = runs["expected"] - runs["fresh"]
    is_large = runs["smallest_cell"] >= LARGE_CELL
    large = runs[is_large]
    counts = f"{len(runs)}, {len(large)}"
    show("fits, of these with cells >= 100", counts, f">= {MIN_FITS}", len(runs) >= MIN_FITS)
    _show_error("cells >= 100, all constraints", large, MAX_MEAN_ERROR)
    for name in CONSTRAINTS:
        rows = large[large["constraint"] == name]
        _show_error(f"cells >= 100, {name}", rows, MAX_CONSTRAINT_ERROR)
    for column in ("n_rows", "n_groups"):
        for value, rows in large.groupby(column):
            _show_error(f"cells >= 100, {column} {value:,}", rows, None)
    for name in CONSTRAINTS:
        rows = runs[~is_large & (runs["constraint"] == name)]
        _show_error(f"smaller cells, {name}", rows, None)


def _show_error(label: str, runs: pd.DataFrame, most: float | None) -> None:
    """Print the mean of expected − fresh, its spread, and where the fit rows stand."""
    mean, error = mean_and_error(runs["error"])
    show(
        f"{label}: expected − new",
        f"{mean:+.4f} ± {error:.4f} (sd {runs['error'].std():.3f}, {len(runs)} fits)",
        "reported" if most is None else f"within ±{most:g}",
        None if most is None else bool(abs(mean) <= most),
    )
    optimism = (runs["fit"] - runs["fresh"]).mean()
    missed = (runs["fresh"] - runs["target"]).mean()
    n_unknown = int(runs["error"].isna().sum())
    words = f"{optimism:+.4f}, {missed:+.4f}"
    show(f"{label}:   fit − new, new − asked", words, f"{n_unknown} without expectation")


def _fitted(seed: int, n_groups: int, constraint: str, n_rows: int) -> dict[str, Any]:
    """Return what a fit expects, and the mean fairness of fresh samples of its size."""
    population = population_of(seed, n_groups)
    model, people = people_of(seed, n_groups)
    sample_seed = 10 * seed + SIZES.index(n_rows)
    rows = make_biased(n_rows, random_state=sample_seed, **population.settings)
    fit = Bunch(X=rows.data, y=rows.target, s=rows.sensitive_features)
    split = Split("population", model, fit, fit)
    target = _target(constraint, population, model, people)
    update = fit_update(split, constraints=constraint, target=target)
    left_out = {str(group.name) for group in update.groups_left_out_}
    shares = _shares(people, update.predict(people.data), left_out)
    return {
        "seed": seed,
        "n_groups": n_groups,
        "constraint": constraint,
        "n_rows": n_rows,
        "target": target,
        "smallest_cell": _smallest_cell(constraint, fit, left_out),
        "fit": update.fairness_,
        "fresh": _fresh(constraint, shares, n_rows, sample_seed),
        **expectations(update),
    }


def _target(constraint: str, population: Population, model: Any, people: Bunch) -> float:
    """Return the target: part of the way from the base model's fairness to parity."""
    base = metrics.fairness_value(
        constraint,
        people.target,
        model.predict(people.data),
        sensitive_features=people.sensitive_features,
    )
    parity = 1.0 if constraint == CONSTRAINTS[0] else 0.0
    return round(float(base + population.strictness * (parity - base)), 3)


def _shares(people: Bunch, decisions: Any, left_out: set[str]) -> Floats:
    """Return the share of each cell, shape (n_groups, 2, 2): group, true label, decision."""
    groups = np.asarray(people.sensitive_features)
    names = [name for name in people.group_names if name not in left_out]
    labels, decided = np.asarray(people.target) == 1, np.asarray(decisions) == 1
    cells = [
        [[np.mean((groups == g) & (labels == y) & (decided == d)) for d in (0, 1)] for y in (0, 1)]
        for g in names
    ]
    return np.array(cells)


def _smallest_cell(constraint: str, fit: Bunch, left_out: set[str]) -> int:
    """Return the fit rows of the smallest cell whose rate the constraint compares."""
    groups, labels = np.asarray(fit.s), np.asarray(fit.y)
    needed = {CONSTRAINTS[2]: (1,), CONSTRAINTS[3]: (0,)}.get(constraint, (0, 1))
    sizes = []
    for name in set(groups) - left_out:
        counts = [int(np.sum((groups == name) & (labels == y))) for y in needed]
        sizes.append(sum(counts) if constraint == CONSTRAINTS[0] else min(counts))
    return min(sizes)


def _fresh(constraint: str, shares: Floats, n_rows: int, seed: int) -> float:
    """Return the mean fairness of fresh samples of n rows that are drawn from these shares."""
    random = np.random.default_rng(seed)
    rest = max(0.0, 1.0 - shares.sum())  # the groups that were left out
    drawn = random.multinomial(n_rows, [*shares.ravel(), rest], size=N_FRESH)[:, :-1]
    counts = drawn.reshape(N_FRESH, *shares.shape).astype(float)
    with np.errstate(invalid="ignore", divide="ignore"):
        if constraint == CONSTRAINTS[0]:
            rates = counts[..., 1].sum(axis=2) / counts.sum(axis=(2, 3))
            return float(np.nanmean(rates.min(axis=1) / rates.max(axis=1)))
        rates = counts[..., 1] / counts.sum(axis=3)  # sample, group, true label
    gaps = rates.max(axis=1) - rates.min(axis=1)
    value = {CONSTRAINTS[1]: gaps.sum(axis=1), CONSTRAINTS[2]: gaps[:, 1]}
    return float(np.nanmean(value.get(constraint, gaps[:, 0])))
