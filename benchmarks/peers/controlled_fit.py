"""Fit ControlledDebiaser, or a frontier, on a raw frame with default settings.

The variant "fit_rows" asks for a target on the fit rows, as other libraries do.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.peers.job import Job, Task

N_DEFAULT = 100  # models of a frontier with default targets


def import_program() -> Callable[[Task], Job]:
    """Import what a script with a frame and a fitted pipeline imports."""
    import pandas  # noqa: F401
    import sklearn.compose
    import sklearn.linear_model
    import sklearn.pipeline
    import sklearn.preprocessing  # noqa: F401

    from commod import ControlledDebiaser, frontier

    def prepare(task: Task) -> Job:
        rows = pickle.loads(Path(task.rows).read_bytes())  # written by this harness
        on_fit_rows = {"target_on": "fit_rows", "borderline": 0}
        settings = on_fit_rows if task.variant == "fit_rows" else {}
        update = ControlledDebiaser(rows["model"], **settings)
        given = {"X": rows["X"], "y": rows["y"], "sensitive_features": rows["s"]}
        targets = None
        if task.n_models != N_DEFAULT:
            targets = [0.8 + 0.2 * i / task.n_models for i in range(task.n_models)]

        def fit() -> Any:
            return update.fit(**given)

        def fit_frontier() -> Any:
            return frontier(update, **given, targets=targets)

        def check(fitted: Any) -> dict[str, float]:
            model, n_models = fitted, 1
            if task.variant == "frontier":
                model, n_models = fitted.select(target=0.8), len(fitted)
            right = (model.predict(rows["X"]) == rows["y"]).mean()
            return {"steps": n_models, "accuracy": float(right)}

        return Job(fit_frontier if task.variant == "frontier" else fit, check)

    return prepare
