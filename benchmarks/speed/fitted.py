"""Write fitted base models and their updates for the benchmarks of predictions."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.speed.settings import current
from benchmarks.speed.tables import N_NUMBERS, BenchmarkRows, base_model, make_rows, save
from lightgbm import LGBMClassifier

from commod import ControlledDebiaser

SETTINGS = current()


class Fitted(NamedTuple):
    """A base model and its update."""

    model: Any
    update: Any


def features(kind: str, rows: BenchmarkRows) -> Any:
    """Return the columns of a kind: all of them as a frame, or the numbers as an array."""
    return rows.X.iloc[:, :N_NUMBERS].to_numpy() if kind.endswith("array") else rows.X


def fitted(path: Path, kind: str) -> None:
    """Write a base model fitted on `base_rows` rows, and its update."""
    rows = make_rows(SETTINGS.base_rows, "category")
    X = features(kind, rows)
    if kind.startswith("LightGBM"):
        model = LGBMClassifier(n_estimators=SETTINGS.n_trees, verbose=-1, random_state=0)
        model.fit(X, rows.y)
    else:
        model = base_model(rows)
    update = ControlledDebiaser(model, target=0.8)
    save(Fitted(model, update.fit(X, rows.y, sensitive_features=rows.group)), path)
