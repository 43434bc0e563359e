"""OxonFair with inferred groups: a model of the group, then thresholds; no base model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.peers.job import Job, Task


def import_program() -> Callable[[Task], Job]:
    """Import OxonFair and scikit-learn."""
    import numpy as np
    from oxonfair import DataDict, FairPredictor
    from oxonfair import group_metrics as gm
    from sklearn.linear_model import LogisticRegression

    def prepare(task: Task) -> Job:
        rows = np.load(task.rows)
        X, y, s = rows["X"], rows["y"], rows["s"]
        base = LogisticRegression(max_iter=1000).fit(X, y)

        def fit() -> Any:
            inferred = LogisticRegression(max_iter=1000).fit(X, s)
            update = FairPredictor(base, DataDict(y, X, s), inferred_groups=inferred)
            return update.fit(gm.accuracy, gm.disparate_impact, 0.8)

        def check(update: Any) -> dict[str, float]:
            right = (np.ravel(update.predict(X)) == y).mean()
            return {"steps": 1, "accuracy": float(right)}

        return Job(fit, check)

    return prepare
