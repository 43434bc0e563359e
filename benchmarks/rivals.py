"""Compare all methods on the same splits: fairness, accuracy and changes.

All methods run their default sweeps for demographic parity on splits 0..4. The figures are measured
on the test rows.
"""

from __future__ import annotations

import time
import warnings

import numpy as np
from protocol import N_CONCEPTS, TABLES, first_splits, make_split
from report import show

from commod import Comparison, compare
from commod.exceptions import CommodWarning
from commod.rivals import lineup

LEVELS = (0.6, 0.7, 0.8)
ACCURACY_LOSSES = (None, 0.05)


def rivals() -> None:
    """Measure all methods on both tables."""
    for name in TABLES:
        compared = [_compared(name, seed) for seed in first_splits(5)]
        _show_times(name, compared)
        _show_ranges(name, compared)
        for loss in ACCURACY_LOSSES:
            _show_needed(name, compared, loss)


def _compared(name: str, seed: int) -> tuple[Comparison, float]:
    """Return a split's comparison and the seconds it took."""
    split = make_split(name, seed)
    methods = lineup(split.model, random_state=0)
    methods["COMMOD"].set_params(n_concepts=N_CONCEPTS[name])
    begin = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CommodWarning)
        comparison = compare(
            methods,
            split.train.X,
            split.train.y,
            sensitive_features=split.train.s,
            X_eval=split.test.X,
            y_eval=split.test.y,
            sensitive_features_eval=split.test.s,
            progress=False,
        )
    if comparison.failures:
        raise SystemExit(f"{name}, split {seed}: {comparison.failures}")
    return comparison, time.perf_counter() - begin


def _show_times(name: str, compared: list[tuple[Comparison, float]]) -> None:
    slowest = max(seconds for _, seconds in compared)
    show(
        f"{name}: compare, all methods and default sweeps",
        f"{slowest:.0f} s (slowest split)",
        "< 300 s",
        slowest < 300,
    )
    first = compared[0][0].frame().groupby("method", sort=False)["fit_seconds"].first()
    parts = [f"{method} {seconds:.1f}" for method, seconds in first.items()]
    show(f"{name}: seconds to fit, split 0", ", ".join(parts))


def _show_ranges(name: str, compared: list[tuple[Comparison, float]]) -> None:
    """Print the P-rules each method reaches, means over splits, and how often it collapsed."""
    frames = [comparison.frame() for comparison, _ in compared]
    base = np.mean([comparison.base_fairness for comparison, _ in compared])
    for method in compared[0][0].frontiers:
        lines = [frame[frame["method"] == method] for frame in frames]
        best = np.mean([line["fairness"].max() for line in lines])
        accuracy = np.mean([line.loc[line["fairness"].idxmax(), "accuracy"] for line in lines])
        changes = np.mean([line.loc[line["fairness"].idxmax(), "change_rate"] for line in lines])
        collapsed = sum(int(line["collapsed"].sum()) for line in lines)
        show(
            f"{name}: {method}, highest P-rule (base {base:.3f})",
            f"{best:.3f}",
            f"at accuracy {accuracy:.3f}, {changes:.3f} changed, {collapsed} collapsed",
        )


def _show_needed(name: str, compared: list[tuple[Comparison, float]], loss: float | None) -> None:
    """Print the changes each method needs for a level, and which blind method needs the fewest."""
    tables = [
        comparison.changes_needed(LEVELS, max_accuracy_loss=loss) for comparison, _ in compared
    ]
    floor = "any accuracy" if loss is None else f"accuracy within {loss} of the base"
    needs_group = tables[0]["needs group"]
    means = sum(table[list(LEVELS)].fillna(np.inf) for table in tables) / len(tables)
    reached = sum(table[list(LEVELS)].notna() for table in tables)
    for method in means.index:
        values = [
            f"{level}: {means.loc[method, level]:.4f}"
            if reached.loc[method, level] == len(tables)
            else f"{level}: in {reached.loc[method, level]} of {len(tables)} splits"
            for level in LEVELS
        ]
        kind = "needs group" if needs_group[method] else "blind"
        show(f"{name}: {method} ({kind}), {floor}", ", ".join(values))
    blind = means[~needs_group.astype(bool)]
    for level in LEVELS:
        if np.isfinite(blind[level].min()):
            first, second = blind[level].sort_values().index[:2]
            show(
                f"{name}: fewest changes of blind methods at P-rule {level}, {floor}",
                f"{first} {blind.loc[first, level]:.4f}",
                f"next {second} {blind.loc[second, level]:.4f}",
            )
