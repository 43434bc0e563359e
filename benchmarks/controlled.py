"""Check the fewest changes of ControlledDebiaser on its fit rows, and the length of its scorecards.

`SPLITS=2 make figures FIGURES=training-rows` takes the first two splits only, for a quick look.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from protocol import TABLES, Split, first_splits, make_split
from report import show, show_at_most
from sklearn.linear_model import LogisticRegression

from commod import ControlledDebiaser, bounds, metrics
from commod.datasets import make_biased
from commod.exceptions import TargetWarning

P_RULE_TARGETS = np.linspace(0.5, 0.95, 10).round(2)
P_RULE_BARS = {"Law School": 1.15, "COMPAS": 1.25}
N_DM_TARGETS, LOWEST_DM, DM_BAR = 5, 0.1, 2.0
SLACK = 0.005  # a target on the fit rows counts as reached up to this shortfall
SIZE_BARS = {"Law School": (None, 6), "COMPAS": (8, 40)}  # raw columns, terms
SIZE_PRICE_BAR = 1.15


def fit_update(split: Split, **settings: Any) -> ControlledDebiaser:
    """Return an update for a target on the training rows; its `status_` repeats its warnings."""
    fixed = {"borderline": 0, "target_on": "fit_rows"}
    settings = {**fixed, **settings}
    update = ControlledDebiaser(split.model, **settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TargetWarning)
        return update.fit(split.train.X, split.train.y, sensitive_features=split.train.s)


def ratios(changes: Any, limits: Any) -> tuple[float, float]:
    """Return the mean of changes / limit where there is a limit, and the ratio of the means."""
    changes, limits = np.asarray(changes), np.asarray(limits)
    positive = limits > 0
    mean = float(np.mean(changes[positive] / limits[positive]))
    return mean, float(changes[positive].sum() / limits[positive].sum())


def training_rows() -> None:
    """Compare changes on the fit rows with the exact limit, P-rule and DM, all lines."""
    for name in TABLES:
        splits = [make_split(name, seed) for seed in first_splits(10)]
        p_rule_training_rows(name, splits)
        dm_training_rows(name, splits)
        if name == "COMPAS":
            few_people(name, splits)


def few_people(name: str, splits: list[Split]) -> None:
    """Print what naming categories of five people, as version 0.1 did, would save."""
    changes, limits = [], []
    for split in splits:
        before = split.model.predict(split.train.X)
        for target in P_RULE_TARGETS:
            update = fit_update(split, target=target, max_lines=None, min_category_size=5)
            limit = bounds.minimal_changes(before, sensitive_features=split.train.s, target=target)
            changes.append(update.change_rate_)
            limits.append(limit.rate)
    mean, _ = ratios(changes, limits)
    show(f"{name}: changes / limit, P-rule, min_category_size=5", f"{mean:.3f}", "reported")


def p_rule_training_rows(name: str, splits: list[Split]) -> None:
    """Print whether targets on the P-rule are reached, and how many changes they take."""
    shortfall, changes, limits = [], [], []
    for split in splits:
        before = split.model.predict(split.train.X)
        for target in P_RULE_TARGETS:
            update = fit_update(split, target=target, max_lines=None)
            limit = bounds.minimal_changes(before, sensitive_features=split.train.s, target=target)
            shortfall.append(target - update.fairness_)
            changes.append(update.change_rate_)
            limits.append(limit.rate)
    figure = f"{name}: largest shortfall of {len(shortfall)} P-rule targets"
    short = int(np.sum(np.array(shortfall) > 0))
    show_at_most(figure, max(shortfall), SLACK, f"({short} fall short at all)")
    mean, of_means = ratios(changes, limits)
    words = f"(ratio of means {of_means:.3f})"
    show_at_most(f"{name}: changes / limit, P-rule", mean, P_RULE_BARS[name], words)
    means = (np.reshape(rates, (len(splits), -1)).mean(axis=0) for rates in (changes, limits))
    for target, rate, limit in zip(P_RULE_TARGETS, *means, strict=True):
        show(f"{name}:   P-rule {target:.2f}, changed / limit", f"{rate:.4f} / {limit:.4f}")


def dm_training_rows(name: str, splits: list[Split]) -> None:
    """Print whether targets on the DM are reached, and the changes beside both limits."""
    runs = [run for split in splits for run in dm_runs(split)]
    reached = [run["excess"] <= SLACK for run in runs]
    unsaid = [run["excess"] > SLACK and not run["says_so"] for run in runs]
    show(
        f"{name}: DM targets missed by > {SLACK} and `status_` silent",
        f"{sum(unsaid)} of {len(runs)} ({sum(reached)} reached)",
        "0",
        not any(unsaid),
    )
    kept = [run for run, reaches in zip(runs, reached, strict=True) if reaches]
    changes = [run["changes"] for run in kept]
    for what, most in (("limit", DM_BAR), ("limit without labels", None)):
        mean, of_means = ratios(changes, [run[what] for run in kept])
        figure, words = f"{name}: changes / {what}, DM", f"(ratio of means {of_means:.3f})"
        if most is None:
            show(figure, f"{mean:.3f} {words}", "reported")
        else:
            show_at_most(figure, mean, most, words)


def dm_runs(split: Split) -> Iterator[dict[str, float]]:
    """Yield the figures of each target between the base model's DM and `LOWEST_DM`."""
    train, groups = split.train, {"sensitive_features": split.train.s}
    before = split.model.predict(train.X)
    base = metrics.disparate_mistreatment(train.y, before, **groups)
    for target in np.linspace(base, LOWEST_DM, N_DM_TARGETS + 1)[1:]:
        settings = {"constraints": "equalized_odds", "target": target}
        update = fit_update(split, max_lines=None, **settings)
        limit = bounds.minimal_changes(before, y_true=train.y, **groups, **settings)
        blind = bounds.minimal_expected_changes(train.y, before, **groups, **settings)
        yield {
            "excess": update.fairness_ - target,
            "says_so": not update.reached_ and "not reached" in update.status_,
            "changes": update.change_rate_,
            "limit": limit.rate,
            "limit without labels": blind.rate,
        }


def scorecard_size() -> None:
    """Count raw columns and terms at P-rule 0.8 with default settings, and the extra changes."""
    for name in TABLES:
        columns, terms, changes, fewest = [], [], [], []
        for seed in first_splits(10):
            split = make_split(name, seed)
            short, full = (
                fit_update(split, target=0.8),
                fit_update(split, target=0.8, max_lines=None),
            )
            columns.append(len(short.scorecard_.columns_used))
            terms.append(short.scorecard_.n_terms_used)
            changes.append(short.change_rate_)
            fewest.append(full.change_rate_)
        for what, counts, most in zip(
            ("raw columns", "terms"), (columns, terms), SIZE_BARS[name], strict=True
        ):
            show(
                f"{name}: {what} at P-rule 0.8, most (mean)",
                f"{max(counts)} ({np.mean(counts):.1f})",
                "reported" if most is None else f"<= {most}",
                None if most is None else max(counts) <= most,
            )
        mean, of_means = ratios(changes, fewest)
        figure = f"{name}: changes / changes with all lines"
        show_at_most(figure, mean, SIZE_PRICE_BAR, f"(ratio of means {of_means:.3f})")


def gains_only() -> None:
    """Count who loses the favourable outcome with direction="gains_only"; the bar is 0."""
    for favorable in (1, 0):
        losers, gainers = 0, 0
        for model, fit_rows, new_rows in gains_only_rows():
            update = ControlledDebiaser(
                model,
                direction="gains_only",
                borderline=0,
                target_on="fit_rows",
                pos_label=1,
                favorable_label=favorable,
            )
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", TargetWarning)
                update.fit(fit_rows[0], fit_rows[1], sensitive_features=fit_rows[2])
            for rows in (fit_rows, new_rows):
                before, after = model.predict(rows[0]), update.predict(rows[0])
                losers += int(((before == favorable) & (after != favorable)).sum())
                gainers += int(((before != favorable) & (after == favorable)).sum())
        show(
            f"gains_only, favorable_label={favorable}: people who lose, all rows",
            f"{losers} ({gainers} gain)",
            "0",
            losers == 0,
        )


def gains_only_rows() -> Iterator[tuple[Any, tuple[Any, Any, Any], tuple[Any, Any, Any]]]:
    """Yield base model, fit rows and new rows of both tables and of synthetic populations."""
    for name in TABLES:
        for seed in first_splits(5):
            split = make_split(name, seed)
            rows = ((part.X, part.y, part.s) for part in (split.train, split.test))
            yield split.model, *rows
    for seed, bias in enumerate((0.3, 1.0, 1.5, 2.5)):
        old, new = (make_biased(1500, bias=bias, random_state=2 * seed + k) for k in (0, 1))
        model = LogisticRegression().fit(old.data, old.target)
        drawn = ((part.data, part.target, part.sensitive_features) for part in (old, new))
        yield model, *drawn
