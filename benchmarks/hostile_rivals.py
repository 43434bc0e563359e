"""Fit every rival on random hostile tables: it may refuse a table, but must not go wrong."""

from __future__ import annotations

import os
from collections import Counter

from hostile_tables import REFUSED, SHAPES, hostile_table, rival_names, trouble_of
from parallel import in_parallel, seeds
from report import show

N_TABLES, N_TRAINED = 300, 30  # the second for methods that train networks with JAX
QUICK = {"epochs": 3, "batch_size": 64, "progress": False}
CHUNK = 10


def hostile_rivals() -> None:
    """Print the number of tables on which each method went wrong; `ONLY=LPP` takes one method."""
    only = os.environ.get("ONLY", "").split(",")
    trained, others = (
        [name for name in names if only == [""] or name in only] for names in rival_names()
    )
    tasks = [(name, first, False) for name in others for first in seeds(N_TABLES)[::CHUNK]]
    tasks += [(name, first, True) for name in trained for first in seeds(N_TRAINED)[::CHUNK]]
    results = in_parallel(_results, tasks)
    for name in (*others, *trained):
        found = Counter(
            outcome
            for (task, _, _), outcomes in zip(tasks, results, strict=True)
            for outcome in outcomes
            if task == name
        )
        n_well, n_refused = found.pop(None, 0), found.pop(REFUSED, 0)
        n_wrong = found.total()
        text = f"{n_wrong} wrong, {n_well} well, {n_refused} refused"
        show(f"{name}: hostile tables", text, "0 wrong", n_wrong == 0)
        for outcome, n in found.most_common(3):
            print(f"    {n} x {outcome}")


def _results(name: str, first: int, is_trained: bool) -> list[str | None]:
    outcomes = []
    for seed in range(first, first + CHUNK):
        shape = SHAPES[seed // CHUNK % len(SHAPES)] if is_trained else (None, None)
        outcomes.append(
            trouble_of(name, hostile_table(seed, *shape), **QUICK if is_trained else {})
        )
    return outcomes
