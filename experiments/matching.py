"""Find updates of several methods at similar fairness and accuracy, and fit them again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from experiments.methods import FEWER, make
from experiments.paper import DP
from experiments.protocol import Split, quietly

BAND = (0.75, 0.85)  # of the P-rule on the test rows
SETTINGS = {
    "COMMOD": ["lambda_fair", "lambda_ratio"],
    "FRAPPE": ["strength"],
    "AdversarialDebiasing": ["strength"],
    FEWER: ["target"],
}


def match(sweeps: pd.DataFrame, methods: Sequence[str]) -> dict[str, dict[str, float]] | None:
    """Return each method's settings at similar fairness and accuracy; None if a method has none.

    `sweeps` are the updates of one split.

    1. Keep the updates whose P-rule is in the band.
    2. Take the highest accuracy that every method reaches.
    3. Of each method, take the update whose accuracy is nearest to it.
    """
    inside = sweeps[sweeps["fairness"].between(*BAND) & (sweeps["change_rate"] > 0)]
    parts = {method: inside[inside["method"] == method] for method in methods}
    if any(part.empty for part in parts.values()):
        return None
    anchor = min(part["accuracy"].max() for part in parts.values())
    chosen = {}
    for method, part in parts.items():
        best = part.loc[(part["accuracy"] - anchor).abs().idxmin()]
        chosen[method] = {name: float(best[name]) for name in SETTINGS[method]}
    return chosen


def matched_splits(
    sweeps: pd.DataFrame, table: str, methods: Sequence[str], most: int
) -> list[tuple[int, dict[str, dict[str, float]]]]:
    """Return the first `most` splits on which `match` finds settings, with these settings."""
    of_table = sweeps[(sweeps["table"] == table) & (sweeps["notion"] == DP)]
    splits = [
        (int(split), chosen)
        for split, part in of_table.groupby("split")
        if (chosen := match(part, methods))
    ]
    return splits[:most]


def fit_again(method: str, split: Split, notion: str, settings: dict[str, float]) -> Any:
    """Return the update of a sweep, fitted alone."""
    update = make(method, split, notion, **settings)
    with quietly():
        return update.fit(split.train.X, split.train.y, sensitive_features=split.train.s)
