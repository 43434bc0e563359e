"""Many categories: one column of 10 to 5,000 categories beside 10 numbers."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from benchmarks.speed.cases import case
from benchmarks.speed.memory import measure
from benchmarks.speed.names import categories_of
from benchmarks.speed.settings import current, turns_of
from benchmarks.speed.shared_file import shared_file
from benchmarks.speed.tables import BenchmarkRows, load

from commod import COMMOD, ControlledDebiaser, ScoreColumn
from commod.exceptions import CommodWarning

SETTINGS = current()
SCORED = ScoreColumn("score")
EPOCHS = 5  # few: the length of training is not the subject here


def controlled(rows: BenchmarkRows) -> Callable[[], Any]:
    """Return a fit of ControlledDebiaser."""
    update = ControlledDebiaser(SCORED, target=0.8, random_state=0, progress=False)
    few = rows.first(1000)
    update.fit(few.scored, few.y, sensitive_features=few.group)
    return partial(update.fit, rows.scored, rows.y, sensitive_features=rows.group)


def trained(rows: BenchmarkRows) -> Callable[[], Any]:
    """Return a fit of COMMOD; a first fit has compiled already."""
    update = COMMOD(SCORED, epochs=EPOCHS, warmup_epochs=0, random_state=0, progress=False)
    fit = partial(update.fit, rows.scored, rows.y, sensitive_features=rows.group)
    fit()
    return fit


def predict(rows: BenchmarkRows) -> Callable[[], Any]:
    """Return the predictions of COMMOD, which has points for every category."""
    return partial(trained(rows)().predict, rows.scored)


ACTIONS = {
    "ControlledDebiaser": controlled,
    f"COMMOD, {EPOCHS} epochs": trained,
    "predict": predict,
}


def often(n_levels: int, times: int) -> int:
    """Return `times`, or 1 if a fit with so many categories may take minutes."""
    return times if n_levels < 1000 else 1


@pytest.mark.parametrize(
    ("n_levels", "name"),
    [
        case(
            n_levels,
            name,
            group=categories_of(SETTINGS.category_rows, n_levels),
            name=name,
            turns=often(n_levels, turns_of(SETTINGS.category_rows, SETTINGS)),
        )
        for n_levels in SETTINGS.categories
        for name in ACTIONS
    ],
)
def test_categories(benchmark: Any, n_levels: int, name: str) -> None:
    """Time one action on rows with a column of `n_levels` categories."""
    warnings.simplefilter("ignore", CommodWarning)
    rows = load(shared_file("tables.wide_rows", SETTINGS.category_rows, n_levels))
    measure(benchmark, ACTIONS[name](rows), often(n_levels, SETTINGS.repeats))
