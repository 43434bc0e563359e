"""Fairlearn's AdversarialFairnessClassifier on its PyTorch backend, otherwise its defaults."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.peers.job import Job, Task

# (predictor, adversary): "linear" is the documented default, which the class does not set itself
# and which is its fastest setting; "guide" has the networks of its user guide
NETWORKS: dict[str, tuple[list[int | str], list[int | str]]] = {
    "linear": ([], []),
    "guide": ([50, "leaky_relu"], [3, "leaky_relu"]),
}


def import_program() -> Callable[[Task], Job]:
    """Import Fairlearn and PyTorch."""
    import numpy as np
    import torch  # noqa: F401
    from fairlearn.adversarial import AdversarialFairnessClassifier

    def prepare(task: Task) -> Job:
        rows = np.load(task.rows)
        X, y, s = rows["X"], rows["y"], rows["s"]
        predictor, adversary = NETWORKS[task.variant]

        def fit() -> Any:
            model = AdversarialFairnessClassifier(
                backend="torch",
                predictor_model=predictor,
                adversary_model=adversary,
                epochs=task.epochs,
                batch_size=task.batch_size,
                random_state=0,
            )
            return model.fit(X, y, sensitive_features=s)

        def check(model: Any) -> dict[str, float]:
            right = (np.ravel(model.predict(X)) == y).mean()
            return {"steps": model.n_iter_, "accuracy": float(right)}

        return Job(fit, check)

    return prepare
