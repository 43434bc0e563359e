"""How large every benchmark is: the full run, and the quick one that only shows that all runs.

Standard library only: it is read in the environment of every peer.
"""

from __future__ import annotations

import os
from typing import NamedTuple

QUICK_VARIABLE = "COMMOD_BENCH_QUICK"


class Settings(NamedTuple):
    """Sizes, and how often things are repeated."""

    tables: tuple[str, ...]
    epochs: int
    batch_size: int
    turns: int  # fresh processes of each program that is compared
    fits: int  # most fits of a program after its first one in a process
    repeats: int  # rounds in a process, where one takes seconds
    n_models: int  # of a frontier or a grid
    rows: tuple[int, ...]
    text_rows: tuple[int, ...]
    category_rows: int
    categories: tuple[int, ...]
    base_rows: int  # what a base model is fitted on
    n_trees: int
    base_models: tuple[str, ...]
    predict_rows: tuple[int, ...]
    audit_kinds: tuple[str, ...]
    audit_rows: int
    report_rows: int
    fit_rows: int  # what updates that predict, are applied or audited are fitted on
    apply_rows: int
    debias_rows: int


FULL = Settings(
    tables=("Law School", "COMPAS"),
    epochs=100,
    batch_size=128,
    turns=3,
    fits=5,
    repeats=3,
    n_models=100,
    rows=(10_000, 100_000, 1_000_000, 10_000_000),
    text_rows=(1_000_000,),
    category_rows=100_000,
    categories=(10, 100, 1000, 5000),
    base_rows=20_000,
    n_trees=200,
    base_models=("LightGBM, frame", "LightGBM, array", "LogisticRegression, frame"),
    predict_rows=(1000, 100_000, 1_000_000),
    audit_kinds=("category", "text"),
    audit_rows=1_000_000,
    report_rows=100_000,
    fit_rows=50_000,
    apply_rows=20_000_000,
    debias_rows=1_000_000,
)
QUICK = Settings(
    tables=("COMPAS",),  # the one that comes with the library
    epochs=2,
    batch_size=128,
    turns=1,
    fits=1,
    repeats=1,
    n_models=4,
    rows=(10_000,),
    text_rows=(),
    category_rows=5000,
    categories=(50,),
    base_rows=2000,
    n_trees=20,
    base_models=("LightGBM, frame", "LightGBM, array"),
    predict_rows=(1000,),
    audit_kinds=("text",),
    audit_rows=5000,
    report_rows=5000,
    fit_rows=5000,
    apply_rows=20_000,
    debias_rows=3000,
)


def current() -> Settings:
    """Return the settings that the environment asks for."""
    return QUICK if os.environ.get(QUICK_VARIABLE) else FULL


def turns_of(n: int, settings: Settings) -> int:
    """Return how many fresh processes rows of this number are worth."""
    return min(2 if n <= 1_000_000 else 1, settings.turns)


def repeats_of(n: int, settings: Settings) -> int:
    """Return how many rounds a process has on rows of this number."""
    most = 3 if n <= 100_000 else 2 if n <= 1_000_000 else 1
    return min(most, settings.repeats)
