"""How often the demo keeps its target on people whom nobody has seen, over other seeds.

    PYTHONPATH=. python benchmarks/demo_seeds.py [first] [number]

Every seed cuts COMPAS into other thirds: base model, update, measurement. A target is one in
expectation, so about half of the measured values may lie below it. The update states an interval
for samples of as many people (`expected_.interval`): about 95 of 100 measured values should lie in
it. The interval of the measured value is narrower. It counts the chance of the measured people and
not that of the fit rows, so it contains the target less often.
"""

from __future__ import annotations

import sys
import warnings

import numpy as np

from commod.cli import demo
from commod.cli._options import Options


def measured(seed: int) -> tuple[float, float, float, float, float]:
    """Return the P-rule after the update of one seed, its interval, and the expected interval."""
    learned, fit_rows, new_rows = demo.split(seed)
    update = demo.new_update(Options(seed=seed), demo.base_model(learned))
    audit, _ = demo.audited(update.fit(**fit_rows.named()), new_rows)
    after = audit.fairness[0].after
    return after.value, after.low, after.high, *update.expected_.interval


def main(first: int = 100, number: int = 20) -> None:
    """Print one line per seed, and how often the target is kept and within the interval."""
    warnings.simplefilter("ignore")
    results = []
    for seed in range(first, first + number):
        results.append(measured(seed))
        print(f"seed {seed}: {results[-1][0]:.3f} ({results[-1][1]:.3f} to {results[-1][2]:.3f})")
    value, low, high, lowest, highest = np.array(results).T
    inside = (low <= demo.TARGET) & (high >= demo.TARGET)
    as_expected = (lowest <= value) & (value <= highest)
    print(
        f"P-rule of low risk on {number} seeds: mean {value.mean():.3f}, {value.min():.3f} to "
        f"{value.max():.3f}; {(value >= demo.TARGET).sum()} at least {demo.TARGET}; the interval "
        f"contains {demo.TARGET} in {inside.sum()}; {as_expected.sum()} are in the interval that "
        "was expected before anybody was measured"
    )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
