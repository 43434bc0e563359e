"""Updates of several methods at similar fairness and accuracy, and fitting one of them again."""

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
    """Return each method's settings at similar fairness and accuracy, None where one has none.

    `sweeps` are the updates of one split. In the band, the highest accuracy that every method has
    is taken, and of each method the update nearest to it.
    """
    inside = sweeps[sweeps["fairness"].between(*BAND) & (sweeps["change_rate"] > 0)]
    parts = {method: inside[inside["method"] == method] for method in methods}
    if any(part.empty for part in parts.values()):
        return None
    anchor = min(part["accuracy"].max() for part in parts.values())
    found = {}
    for method, part in parts.items():
        best = part.loc[(part["accuracy"] - anchor).abs().idxmin()]
        found[method] = {name: float(best[name]) for name in SETTINGS[method]}
    return found


def matched_splits(
    sweeps: pd.DataFrame, table: str, methods: Sequence[str], most: int
) -> list[tuple[int, dict[str, dict[str, float]]]]:
    """Return the first splits of a table on which every method has such an update, with them."""
    of_table = sweeps[(sweeps["table"] == table) & (sweeps["notion"] == DP)]
    found = [
        (int(split), chosen)
        for split, part in of_table.groupby("split")
        if (chosen := match(part, methods))
    ]
    return found[:most]


def fit_again(method: str, split: Split, notion: str, settings: dict[str, float]) -> Any:
    """Return the update of a sweep, fitted alone."""
    update = make(method, split, notion, **settings)
    with quietly():
        return update.fit(split.train.X, split.train.y, sensitive_features=split.train.s)
