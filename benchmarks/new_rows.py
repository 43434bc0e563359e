"""Compare the frontier of ControlledDebiaser on new rows with the exact limit on these rows.

The frontier's 100 models are fixed before the test rows are seen, but the model that counts is
chosen on the test rows. So an update that is chosen on training rows alone is shown beside it.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from controlled import fit_update
from protocol import Split, first_splits, make_split
from report import show, show_at_most
from sklearn.linear_model import LogisticRegression

from commod import ControlledDebiaser, bounds, frontier, metrics
from commod.exceptions import TargetWarning

# P-rule on the test rows -> most changes / limit
LEVELS = {
    "Law School": {0.5: 1.2, 0.6: 1.2, 0.7: 1.2, 0.8: 1.2, 0.9: 1.25},
    "COMPAS": {0.7: 2.0, 0.75: 2.0, 0.8: 2.0},
}
GOALS = {"Law School": 1.1, "COMPAS": 1.6}
ACCURACY_LOSSES = (0.01, 0.03, 0.05)
GROUP_MODEL_C = {"Law School": 1.0, "COMPAS": 0.01}  # of the blind reference


@dataclass(frozen=True)
class Reached:
    """Share of changes, P-rule and accuracy on the test rows; NaN where a level is not reached."""

    changes: float
    p_rule: float
    accuracy: float


NOT_REACHED = Reached(float("nan"), float("nan"), float("nan"))


def frontier_of(split: Split, **settings: Any) -> pd.DataFrame:
    """Return the figures of the default frontier's 100 models on the test rows."""
    train, test = split.train, split.test
    settings = {"borderline": 0, **settings}
    update = ControlledDebiaser(split.model, **settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TargetWarning)
        curve = frontier(
            update,
            train.X,
            train.y,
            sensitive_features=train.s,
            X_eval=test.X,
            y_eval=test.y,
            sensitive_features_eval=test.s,
        )
    return curve.frame()


def fewest(frame: pd.DataFrame, level: float, accuracy: float = 0.0) -> Reached:
    """Return the model with the fewest changes at a P-rule and an accuracy on the test rows."""
    reaching = frame[(frame["fairness"] >= level) & (frame["accuracy"] >= accuracy)]
    if reaching.empty:
        return NOT_REACHED
    best = reaching.loc[reaching["change_rate"].idxmin()]
    return Reached(best["change_rate"], best["fairness"], best["accuracy"])


def chosen_on_training_rows(split: Split, level: float, target_on: str) -> Reached:
    """Return the figures on the test rows of an update that is fitted for this target."""
    update = fit_update(split, target=level, target_on=target_on)
    run = split.evaluate(update.predict(split.test.X))
    return Reached(run["changes"], run["p_rule"], run["accuracy"])


def blind_reference(split: Split, level: float, C: float) -> Reached:
    """Turn negatives positive in the order of P(disadvantaged | x) until the level is reached.

    A logistic regression of the group on the base model's own columns gives the order. The cut is
    the best on the test rows, as for the frontier.
    """
    encode, test = split.model[0], split.test
    group_model = LogisticRegression(C=C, max_iter=2000)
    group_model.fit(encode.transform(split.train.X), split.train.s)
    decided = split.model.predict(split.train.X)
    rates = [decided[split.train.s == group].mean() for group in group_model.classes_]
    odds = group_model.predict_proba(encode.transform(test.X))[:, int(np.argmin(rates))]
    decisions = split.model.predict(test.X).copy()
    negatives = np.flatnonzero(decisions == 0)
    for row in negatives[np.argsort(-odds[negatives], kind="stable")]:
        if metrics.p_rule(test.y, decisions, sensitive_features=test.s) >= level:
            break
        decisions[row] = 1
    run = split.evaluate(decisions)
    if not run["p_rule"] >= level:
        return NOT_REACHED
    return Reached(run["changes"], run["p_rule"], run["accuracy"])


def limit_on_test_rows(split: Split, level: float) -> float:
    """Return the fewest changes, as a share, that bring the test rows to a P-rule."""
    before = split.model.predict(split.test.X)
    return bounds.minimal_changes(before, sensitive_features=split.test.s, target=level).rate


def ratio_of_means(runs: list[Reached], limits: list[float]) -> tuple[float, int]:
    """Return mean changes over the mean limit, and how many runs reach the level."""
    reaching = [i for i, run in enumerate(runs) if not np.isnan(run.changes)]
    if not reaching:
        return float("nan"), 0
    ratio = sum(runs[i].changes for i in reaching) / sum(limits[i] for i in reaching)
    return ratio, len(reaching)


def means_of(runs: list[Reached]) -> str:
    """Return mean changes, P-rule and accuracy as text."""
    values = np.array([(run.changes, run.p_rule, run.accuracy) for run in runs])
    changes, p_rule, accuracy = np.nanmean(values, axis=0)
    return f"{changes:.3f} changed, P-rule {p_rule:.3f}, accuracy {accuracy:.3f}"


def test_rows() -> None:
    """Compare the fewest changes of 100 models that reach a level on test rows with the limit."""
    for name, levels in LEVELS.items():
        splits = [make_split(name, seed) for seed in first_splits(20)]
        frames = [frontier_of(split) for split in splits]
        accuracy = float(np.mean([split.base()["accuracy"] for split in splits]))
        show(f"{name}: models in the frontier", f"{len(frames[0])}", "100", len(frames[0]) == 100)
        for level, bar in levels.items():
            show_level(name, splits, frames, level, bar)
        show(f"{name}: accuracy of the base model", f"{accuracy:.3f}")
        for level in levels:
            show_three_way(name, splits, frames, level)


def show_level(
    name: str, splits: list[Split], frames: list[pd.DataFrame], level: float, bar: float
) -> None:
    """Print one level: the frontier, the model chosen without the test rows, the reference."""
    limits = [limit_on_test_rows(split, level) for split in splits]
    label = f"{name}: P-rule {level:g},"
    runs = [fewest(frame, level) for frame in frames]
    ratio, n = ratio_of_means(runs, limits)
    words = f"({n} of {len(splits)} reach it; goal {GOALS[name]})"
    show_at_most(f"{label} frontier, changes / limit {np.mean(limits):.4f}", ratio, bar, words)
    if n:
        show(f"{label}   these", means_of(runs))
    for target_on in ("fit_rows", "new_rows"):
        honest = [chosen_on_training_rows(split, level, target_on) for split in splits]
        ratio, _ = ratio_of_means(honest, limits)
        n = sum(run.p_rule >= level for run in honest)
        words = f"{ratio:.3f} ({n} of {len(splits)} reach it)"
        show(f"{label} chosen on training rows, target_on={target_on}", words)
        show(f"{label}   these", means_of(honest))
    blind = [blind_reference(split, level, GROUP_MODEL_C[name]) for split in splits]
    ratio, n = ratio_of_means(blind, limits)
    show(f"{label} blind reference", f"{ratio:.3f} ({n} of {len(splits)} reach it)")


def show_three_way(
    name: str, splits: list[Split], frames: list[pd.DataFrame], level: float
) -> None:
    """Print the fewest changes at a P-rule, for each limit on the loss of accuracy."""
    words = []
    for loss in ACCURACY_LOSSES:
        pairs = zip(splits, frames, strict=True)
        runs = [fewest(frame, level, s.base()["accuracy"] - loss) for s, frame in pairs]
        changes = [run.changes for run in runs if not np.isnan(run.changes)]
        mean = f"{np.mean(changes):.3f}" if changes else "-"
        words.append(f"{mean} ({len(changes)})")
    losses = ", ".join(f"{loss:g}" for loss in ACCURACY_LOSSES)
    label = f"{name}: changes at P-rule >= {level:g}, accuracy lost <= {losses}"
    show(label, "  ".join(words), "(splits that reach it)")
