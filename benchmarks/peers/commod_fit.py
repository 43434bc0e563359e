"""Time COMMOD on a raw frame: one adversary step for each step of the ratio, no warm-up."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

from timing import Job, Task, report


def import_commod() -> Callable[[Task], Job]:
    """Import what a script with a frame and a fitted pipeline imports."""
    import pandas  # noqa: F401
    import sklearn.compose
    import sklearn.linear_model
    import sklearn.pipeline
    import sklearn.preprocessing  # noqa: F401

    from commod import COMMOD

    def prepare(task: Task) -> Job:
        rows = pickle.loads(Path(task.rows).read_bytes())  # written by this harness

        def fit() -> Any:
            update = COMMOD(
                rows["model"],
                n_concepts=rows["n_concepts"],
                epochs=task.epochs,
                batch_size=task.batch_size,
                adversary_steps=1,
                warmup_epochs=0,
                random_state=0,
            )
            return update.fit(rows["X"], rows["y"], sensitive_features=rows["s"])

        def check(update: Any) -> dict[str, float]:
            batches = -(-len(rows["y"]) // task.batch_size)
            right = (update.predict(rows["X"]) == rows["y"]).mean()
            return {"steps": update.n_iter_ * batches, "accuracy": float(right)}

        return Job(fit, check)

    return prepare


if __name__ == "__main__":
    report(import_commod)
