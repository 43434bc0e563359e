"""Predictions of an update beside those of its base model: 200 trees, or a logistic regression.

`predict` calls the base model for its scores, so the part of the ratio above 1 is ours.
`Patch.apply` reads the scores from a column. The base model predicts before every round, so that a
ratio compares two calls that follow each other. Without this, a bar of 20 % would be lost in the
noise of a shared machine.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from benchmarks.peers.job import timed
from benchmarks.speed.cases import case
from benchmarks.speed.fitted import Fitted, features
from benchmarks.speed.memory import measure
from benchmarks.speed.names import predictions_of
from benchmarks.speed.settings import current, repeats_of
from benchmarks.speed.shared_file import shared_file
from benchmarks.speed.tables import load

SETTINGS = current()


def model_alone(fitted: Fitted, X: Any) -> Callable[[], Any]:
    """Return an action: the predictions of the base model alone."""
    return partial(fitted.model.predict_proba, X)


def predict(fitted: Fitted, X: Any) -> Callable[[], Any]:
    """Return an action: the update's decisions."""
    return partial(fitted.update.predict, X)


def apply(fitted: Fitted, X: Any) -> Callable[[], Any]:
    """Return an action: the patch, applied to a frame that has the scores."""
    scored = X.assign(score=fitted.model.predict_proba(X)[:, 1])
    return partial(fitted.update.to_patch().apply, scored)


ACTIONS = {"predict_proba": model_alone, "predict": predict, "apply": apply}


def turns_for(kind: str) -> int:
    """Return the number of processes: more if the kind has a bar."""
    return SETTINGS.turns if kind.startswith("LightGBM") else 1


def rounds_of(n: int) -> int:
    """Return the number of rounds: more if rounds are short."""
    return repeats_of(n, SETTINGS) * max(1, min(15, 300_000 // n))


def cases() -> list[Any]:
    """Return every action on every kind; a patch is applied to frames only."""
    return [
        case(n, kind, name, group=predictions_of(n, kind), name=name, turns=turns_for(kind))
        for kind in SETTINGS.base_models
        for n in SETTINGS.predict_rows
        for name in ACTIONS
        if name != "apply" or kind.endswith("frame")
    ]


@pytest.mark.parametrize(("n", "kind", "name"), cases())
def test_predictions(benchmark: Any, n: int, kind: str, name: str) -> None:
    """Time the predictions of `n` rows."""
    fitted = load(shared_file("fitted.fitted", kind))
    rows = load(shared_file("tables.rows", n, "category"))
    X, of_base = features(kind, rows), []
    action, base = ACTIONS[name](fitted, X), model_alone(fitted, X)
    action()
    measure(benchmark, action, rounds_of(n), lambda: of_base.append(timed(base)[1]))
    pairs = zip(benchmark.stats.stats.data, of_base, strict=True)
    benchmark.extra_info["over_base"] = statistics.median(ours / theirs for ours, theirs in pairs)
