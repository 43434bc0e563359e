"""AIF360's AdversarialDebiasing: its defaults, with its own classifier and adversary."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from benchmarks.peers.job import Job, Task


def import_program() -> Callable[[Task], Job]:
    """Import AIF360 and TensorFlow in the graph mode that it needs."""
    import numpy as np
    import pandas as pd
    import tensorflow.compat.v1 as tf
    from aif360.algorithms.inprocessing import AdversarialDebiasing
    from aif360.datasets import BinaryLabelDataset

    tf.disable_eager_execution()

    def prepare(task: Task) -> Job:
        rows = np.load(task.rows)
        frame = pd.DataFrame(rows["X"]).rename(columns=str).assign(s=rows["s"], y=rows["y"])
        dataset = BinaryLabelDataset(
            df=frame, label_names=["y"], protected_attribute_names=["s"], favorable_label=1,
            unfavorable_label=0,
        )  # fmt: skip
        numbers = itertools.count()

        def fit() -> Any:
            tf.reset_default_graph()
            model = AdversarialDebiasing(
                unprivileged_groups=[{"s": 0}],
                privileged_groups=[{"s": 1}],
                scope_name=f"fit_{next(numbers)}",
                sess=tf.Session(),
                seed=0,
                num_epochs=task.epochs,
                batch_size=task.batch_size,
            )
            return model.fit(dataset)

        def check(model: Any) -> dict[str, float]:
            right = (model.predict(dataset).labels == dataset.labels).mean()
            steps = task.epochs * (len(frame) // task.batch_size)  # it drops the last short batch
            return {"steps": steps, "accuracy": float(right)}

        return Job(fit, check)

    return prepare
