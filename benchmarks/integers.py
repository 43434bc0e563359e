"""Compare whole-number points with free points that have as many lines, on test rows.

Both are fitted for a P-rule of 0.8 on new people, with the fewest changes (`borderline=0`). The
settings of the search were chosen on splits 100..104. `TABLES=COMPAS` takes one table.
"""

from __future__ import annotations

import os
import warnings
from typing import Any

import numpy as np
from experiments.protocol import ADULT
from protocol import TABLES, Split, first_splits, make_split
from report import show, show_at_most

from commod import ControlledDebiaser
from commod.exceptions import TargetWarning

TARGET = 0.8
MAX_LINES = {"Law School": 12, "COMPAS": 20, "Adult": 12}
MOST = 1.2  # times the changes of free points, on the test rows
FORMS = ("per unit", "integers")


def fitted(split: Split, points: str) -> ControlledDebiaser:
    """Return the update of one split with free or whole-number points."""
    settings: dict[str, Any] = {"borderline": 0}
    update = ControlledDebiaser(
        split.model, target=TARGET, points=points, max_lines=MAX_LINES[split.name], **settings
    )
    train = split.train
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TargetWarning)
        return update.fit(train.X, train.y, sensitive_features=train.s)


def integers() -> None:
    """Compare the mean changes on the test rows of 10 splits."""
    names = os.environ.get("TABLES", ",".join([*TABLES, ADULT])).split(",")
    for name in names:
        runs: dict[str, list[dict[str, float]]] = {points: [] for points in FORMS}
        for seed in first_splits(10):
            split = make_split(name, seed)
            for points in FORMS:
                update = fitted(split, points)
                runs[points].append(split.evaluate(update.predict(split.test.X)))
        changes, p_rules = (
            {points: float(np.mean([run[key] for run in some])) for points, some in runs.items()}
            for key in ("changes", "p_rule")
        )
        show_at_most(
            f"{name}: changes, whole / free, {MAX_LINES[name]} lines",
            changes["integers"] / changes["per unit"],
            MOST,
            f"({changes['integers']:.4f} / {changes['free']:.4f})",
        )
        show(f"{name}: P-rule, whole and free", f"{p_rules['integers']:.3f}, {p_rules['free']:.3f}")
