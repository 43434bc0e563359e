"""Measure how often intervals of AUC by group and of ABROCA contain the true areas.

Scores are normal: a person with the positive label scores `shift` higher on average. So the true
ROC curves are known. `PYTHONPATH=. python benchmarks/group_curves.py` prints one line for each pair
of shifts and of sizes; the docs quote them. 400 samples per line take about two minutes.
"""

from __future__ import annotations

import sys
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from commod.metrics import RocComparison, compare_roc_curves

N_SAMPLES = 400
POSITIVE = 0.4  # share of people with the positive label
SHIFTS = ((1.0, 1.0), (1.0, 1.2), (1.0, 1.6), (1.0, 0.0), (2.5, 3.2))
SIZES = ((40, 40), (400, 60), (2000, 500))


class Coverage(NamedTuple):
    """True and mean measured ABROCA, mean of `chance`, and how often intervals hold."""

    area: float
    measured: float
    chance: float
    abroca_holds: float
    auc_holds: float


def true_curve(shift: float) -> NDArray[np.float64]:
    """Return the true positive rates at 20,000 false positive rates."""
    false_positive_rate = (np.arange(20_000) + 0.5) / 20_000
    return np.asarray(norm.sf(norm.isf(false_positive_rate) - shift))


def one_sample(seed: int, shifts: tuple[float, float], sizes: tuple[int, int]) -> RocComparison:
    """Return the comparison of one sample of both groups."""
    random = np.random.default_rng(seed)
    labels = [np.arange(n) < POSITIVE * n for n in sizes]
    scores = [random.normal(size=len(y)) + s * y for y, s in zip(labels, shifts, strict=True)]
    return compare_roc_curves(
        np.concatenate(labels),
        np.concatenate(scores),
        sensitive_features=np.repeat(["a", "b"], sizes),
        pos_label=True,
    )


def coverage(shifts: tuple[float, float], sizes: tuple[int, int], n_samples: int) -> Coverage:
    """Return how often the intervals hold in `n_samples` samples."""
    curves = [true_curve(shift) for shift in shifts]
    area = float(np.abs(curves[0] - curves[1]).mean())
    samples = [one_sample(seed, shifts, sizes) for seed in range(n_samples)]
    gaps = [sample.largest for sample in samples]
    areas = [
        (sample.by_group[name], float(curve.mean()))
        for sample in samples
        for name, curve in zip("ab", curves, strict=True)
    ]
    return Coverage(
        area,
        float(np.mean([gap.value for gap in gaps])),
        float(np.mean([gap.chance for gap in gaps])),
        float(np.mean([gap.low <= area <= gap.high for gap in gaps])),
        float(np.mean([own.low <= true <= own.high for own, true in areas])),
    )


def main(n_samples: int) -> None:
    """Print the coverage of every case as a table."""
    print("| shifts | people | true ABROCA | measured | by chance | ABROCA holds | AUC holds |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for shifts in SHIFTS:
        for sizes in SIZES:
            case = coverage(shifts, sizes, n_samples)
            first, second = (" and ".join(f"{v:,g}" for v in pair) for pair in (shifts, sizes))
            figures = " | ".join(f"{value:.3f}" for value in case[:3])
            print(f"| {first} | {second} | {figures} | {case[3]:.1%} | {case[4]:.1%} |", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else N_SAMPLES)
