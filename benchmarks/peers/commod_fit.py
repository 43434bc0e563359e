"""Fit COMMOD, or a grid, on a raw frame: one adversary step per step of the ratio, no warm-up."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.peers.job import Job, Task


def import_program() -> Callable[[Task], Job]:
    """Import what a script with a frame and a fitted pipeline imports."""
    import pandas  # noqa: F401
    import sklearn.compose
    import sklearn.linear_model
    import sklearn.pipeline
    import sklearn.preprocessing  # noqa: F401

    from commod import COMMOD
    from commod.updates.commod import fit_grid

    def prepare(task: Task) -> Job:
        rows = pickle.loads(Path(task.rows).read_bytes())  # written by this harness
        given = {"X": rows["X"], "y": rows["y"], "sensitive_features": rows["s"]}
        settings = grid_of(task.n_models)

        def update() -> Any:
            return COMMOD(
                rows["model"],
                n_concepts=rows["n_concepts"],
                epochs=task.epochs,
                training={
                    "batch_size": task.batch_size,
                    "adversary_steps": 1,
                    "warmup_epochs": 0,
                    "progress": False,
                },
                random_state=0,
            )

        def fit() -> list[Any]:
            if task.variant == "grid":
                return fit_grid(update(), settings, **given)
            return [update().fit(**given)]

        def check(fitted: list[Any]) -> dict[str, float]:
            batches = -(-len(rows["y"]) // task.batch_size)
            right = (fitted[0].predict(rows["X"]) == rows["y"]).mean()
            steps = sum(model.n_iter_ * batches for model in fitted)
            return {"steps": steps, "accuracy": float(right)}

        return Job(fit, check)

    return prepare


def grid_of(n: int) -> list[dict[str, float]]:
    """Return n settings: strengths of the adversary at up to four weights of the ratio."""
    ratios = (0.05, 0.1, 0.2, 0.5)[: max(1, min(4, n // 4))]
    n_fair = -(-n // len(ratios))
    return [
        {"lambda_fair": 10 * i / max(n_fair - 1, 1), "lambda_ratio": ratio}
        for ratio in ratios
        for i in range(n_fair)
    ][:n]
