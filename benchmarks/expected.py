"""Check that a stated target holds, on average, on new people, and what that costs.

`new_rows_targets` states targets and measures the P-rule on rows that no fit saw.
`new_rows_price` compares the changes of both values of `target_on` at equal test P-rule.
`parallel.py` says which seeds and how many processes are used.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np
import pandas as pd
from experiments.protocol import ADULT, quietly
from new_rows import limit_on_test_rows
from parallel import chosen_settings, in_parallel, kept, seeds
from protocol import Split, make_split, make_thirds
from report import show
from sklearn.utils import Bunch
from three_parts import MODELS, base_model

from benchmarks.peers.old_commod import has_old_version, old_records
from commod import ControlledDebiaser, metrics
from commod.datasets import make_biased

N_FRESH = 20  # samples of new people on which an update of a made population is measured

MADE: dict[str, tuple[int, dict[str, Any]]] = {
    "made, 40 categories": (
        800,
        {"n_features": 6, "n_categories": 40, "bias": 1.0, "group_shares": (0.6, 0.4)},
    ),
    "made, 5 % group": (3000, {"group_shares": (0.95, 0.05), "bias": 1.0}),
}


def fit_update(split: Split, **settings: Any) -> ControlledDebiaser:
    """Return an update fitted on the fit rows of a split, with the default settings."""
    settings = {**chosen_settings(), **settings}
    with quietly():
        return ControlledDebiaser(split.model, **settings).fit(**split.fit_rows)


# ---------------------------------------------------------------------------------------------
# Targets


@lru_cache(maxsize=2)
def make_population(name: str, seed: int) -> Split:
    """Return rows of a made population: the test rows are `N_FRESH` samples of new people."""
    n, population = MADE[name]
    sizes = (n, n, N_FRESH * n)
    own, *others = (
        make_biased(size, random_state=3 * seed + part, **population)
        for part, size in enumerate(sizes)
    )
    model = base_model(MODELS[0]).fit(own.data, own.target)
    parts = (Bunch(X=rows.data, y=rows.target, s=rows.sensitive_features) for rows in others)
    return Split(name, model, *parts)


@dataclass(frozen=True)
class Case:
    """Splits, targets, and the bars: how far the mean test P-rule may lie below and above."""

    make: Callable[[int], Split]
    n_splits: int
    targets: tuple[float, ...]
    below: float
    above: float = float("inf")
    goal_below: float | None = None
    n_samples: int = 1  # of equal size, in the test rows


CASES = {
    "COMPAS, thirds": Case(
        partial(make_thirds, "COMPAS"), 100, (0.7, 0.75, 0.8, 0.85), 0.015, 0.015
    ),
    "COMPAS, 70/30": Case(partial(make_split, "COMPAS"), 50, (0.8,), 0.03, goal_below=0.02),
    "Law School, thirds": Case(
        partial(make_thirds, "Law School"), 100, (0.5, 0.6, 0.7, 0.8, 0.9), 0.015, 0.03
    ),
    "Law School, 70/30": Case(
        partial(make_split, "Law School"), 100, (0.5, 0.6, 0.7, 0.8, 0.9), 0.015, 0.03
    ),
    "Adult, thirds": Case(partial(make_thirds, ADULT), 10, (0.6, 0.7, 0.8, 0.9), 0.02, 0.02),
    **{
        name: Case(
            partial(make_population, name), 200, (0.7, 0.8, 0.9), 0.02, 0.02, n_samples=N_FRESH
        )
        for name in MADE
    },
}


def new_rows_targets() -> None:
    """Compare the mean P-rule on new rows with the stated target."""
    tasks = [
        (name, seed, target)
        for name, case in CASES.items()
        for seed in seeds(case.n_splits)
        for target in case.targets
    ]
    runs = pd.DataFrame(in_parallel(_stated, tasks))
    for name, case in CASES.items():
        of_case = runs[runs["name"] == name]
        base = of_case["base"].mean()
        show(f"{name}: base model, mean test P-rule", f"{base:.3f}", "reported")
        for target in case.targets:
            _show_target(name, case, target, of_case[of_case["target"] == target])


def _stated(name: str, seed: int, target: float) -> dict[str, Any]:
    """Return what an update with a stated target expects, and its figures on the test rows."""
    case = CASES[name]
    split = case.make(seed)
    update = fit_update(split, target=target)
    decisions = update.predict(split.test.X)
    return {
        "name": name,
        "seed": seed,
        "target": target,
        "test": _mean_p_rule(split, decisions, case.n_samples),
        "base": _mean_p_rule(split, split.before, case.n_samples),
        "changes": metrics.change_rate(split.before, decisions),
        "fit": update.fairness_,
        "reached": update.reached_,
        **expectations(update),
    }


def _mean_p_rule(split: Split, decisions: Any, n_samples: int) -> float:
    """Return the mean P-rule of the samples of equal size that the test rows consist of."""
    parts = zip(
        np.array_split(np.asarray(decisions), n_samples),
        np.array_split(np.asarray(split.test.s), n_samples),
        strict=True,
    )
    values = [metrics.p_rule(None, some, sensitive_features=groups) for some, groups in parts]
    return float(np.nanmean(values))


def expectations(update: Any) -> dict[str, float]:
    """Return what an update expects on new rows."""
    return {
        "expected": update.expected_.fairness,
        "expected_changes": update.expected_.change_rate,
        "expected_accuracy": update.expected_.accuracy,
    }


def mean_and_error(values: pd.Series) -> tuple[float, float]:
    """Return the mean of known values and its standard error."""
    known = values.dropna()
    return float(known.mean()), float(known.std(ddof=1) / np.sqrt(max(len(known), 1)))


def _show_target(name: str, case: Case, target: float, runs: pd.DataFrame) -> None:
    mean, error = mean_and_error(runs["test"])
    label = f"{name}: target {target:g}, mean test P-rule"
    least, most = round(target - case.below, 3), round(target + case.above, 3)
    bar = f">= {least:g}" if np.isinf(most) else f"{least:g} to {most:g}"
    if case.goal_below is not None:
        bar += f" (goal {target - case.goal_below:g})"
    show(label, f"{mean:.4f} ± {error:.4f}", bar, bool(least <= mean <= most))
    show(
        f"{name}:   expected, fit rows",
        f"{runs['expected'].mean():.4f}, {runs['fit'].mean():.4f}",
        f"reached: {int(runs['reached'].sum())} of {len(runs)}",
    )
    show(
        f"{name}:   changed on test rows (expected)",
        f"{runs['changes'].mean():.4f}, {runs['expected_changes'].mean():.4f}",
        f"test P-rule >= target: {(runs['test'] >= target).mean():.0%}",
    )


# ---------------------------------------------------------------------------------------------
# Price

LEVELS = (0.7, 0.75, 0.8)
SWEEP = (0.65, 0.7, 0.75, 0.8, 0.825, 0.85, 0.875, 0.9, 0.925, 0.95, 0.975, 0.99)
PROTOCOLS: dict[str, Callable[[str, int], Split]] = {"thirds": make_thirds, "70/30": make_split}
NEW, OLD, FIRST = "new_rows", "fit_rows", "version 0.1"
N_BOOTSTRAP = 200
MAX_PRICE, MAX_OVER_LIMIT = 1.0, 1.6  # of changes on fit-row targets (bar); of the limit (goal)


def new_rows_price() -> None:
    """Compare the changes of both kinds of target at equal P-rule on the test rows of COMPAS."""
    kinds = (NEW, OLD, FIRST) if has_old_version() else (NEW, OLD)
    tasks = [
        (protocol, seed, kind) for protocol in PROTOCOLS for seed in seeds(30) for kind in kinds
    ]
    runs = pd.DataFrame([row for rows in in_parallel(_sweep, tasks) for row in rows])
    for protocol in PROTOCOLS:
        of_protocol = runs[runs["protocol"] == protocol]
        for level in LEVELS:
            _show_price(protocol, level, of_protocol)


def _sweep(protocol: str, seed: int, kind: str) -> list[dict[str, Any]]:
    """Return test P-rule and changes of one update per target, and the limit at each level."""
    split = PROTOCOLS[protocol]("COMPAS", seed)
    where = {"protocol": protocol, "seed": seed, "kind": kind}
    limits = {f"limit {level:g}": limit_on_test_rows(split, level) for level in LEVELS}
    if kind == FIRST:
        name = f"price-old-{protocol.replace('/', '-')}-{seed}"
        runs = kept(name, lambda: old_records(split, list(SWEEP)))
        pairs = [(run["fairness"], run["change_rate"]) for run in runs]
    else:
        pairs = []
        for target in SWEEP:
            update = fit_update(split, target=target, target_on=kind, borderline=0)
            run = split.evaluate(update.predict(split.test.X))
            pairs.append((run["p_rule"], run["changes"]))
    return [
        {**where, "target": target, "p_rule": p_rule, "changes": changes, **limits}
        for target, (p_rule, changes) in zip(SWEEP, pairs, strict=True)
    ]


def _changes_at(level: float, runs: pd.DataFrame) -> float:
    """Return the mean changes where the mean P-rule is `level`, by interpolation over targets."""
    curve = runs.groupby("target")[["p_rule", "changes"]].mean().sort_values("p_rule")
    p_rules = curve["p_rule"].to_numpy()
    return float(np.interp(level, p_rules, curve["changes"], left=np.nan, right=np.nan))


def _show_price(protocol: str, level: float, runs: pd.DataFrame) -> None:
    of_kind = dict(iter(runs.groupby("kind")))
    changes = {kind: _changes_at(level, rows) for kind, rows in of_kind.items()}
    limit = runs[f"limit {level:g}"].mean()
    label = f"COMPAS, {protocol}: changes at test P-rule {level:g},"
    for kind in (OLD, FIRST):
        if kind in of_kind:
            ratio = changes[NEW] / changes[kind]
            error = _ratio_error(level, of_kind[NEW], of_kind[kind])
            show(
                f"{label} / {kind}",
                f"{ratio:.3f} ± {error:.3f} ({changes[NEW]:.4f} / {changes[kind]:.4f})",
                f"<= {MAX_PRICE:g}" if kind == FIRST else "reported",
                bool(ratio <= MAX_PRICE) if kind == FIRST else None,
            )
    goal = f"<= {MAX_OVER_LIMIT:g} (a goal)" if level == LEVELS[-1] else "reported"
    show(f"{label} / limit", f"{changes[NEW] / limit:.3f} ({limit:.4f})", goal)


def _ratio_error(level: float, new: pd.DataFrame, old: pd.DataFrame) -> float:
    """Return the standard error of the ratio of changes: splits are drawn with replacement."""
    random = np.random.default_rng(0)
    splits = new["seed"].unique()
    of_split = [dict(iter(runs.groupby("seed"))) for runs in (new, old)]
    ratios = []
    for _ in range(N_BOOTSTRAP):
        drawn = random.choice(splits, len(splits))
        top, bottom = (
            _changes_at(level, pd.concat([rows[split] for split in drawn])) for rows in of_split
        )
        ratios.append(top / bottom)
    return float(np.nanstd(ratios))
