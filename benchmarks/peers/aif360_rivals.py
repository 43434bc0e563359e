"""AIF360's reject option and adversarial debiasing on given rows: decisions on the test rows.

The arguments are the path of the rows, the path of the answer, and a JSON text. The JSON text holds
the margins, the bound of the search, and the weights and seeds of the adversarial runs. AIF360
leaves the sensitive column among the features; this script removes it.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np
import pandas as pd
import tensorflow.compat.v1 as tf
from aif360.algorithms.inprocessing import AdversarialDebiasing
from aif360.algorithms.postprocessing import RejectOptionClassification
from aif360.datasets import BinaryLabelDataset

tf.disable_eager_execution()


def dataset(X: Any, s: Any, y: Any, scores: Any = None) -> BinaryLabelDataset:
    """Return rows in AIF360's form; `s` is 1 for the privileged group."""
    frame = pd.DataFrame(X).rename(columns=str).assign(s=s, y=y)
    data = BinaryLabelDataset(
        df=frame, label_names=["y"], protected_attribute_names=["s"], favorable_label=1,
        unfavorable_label=0,
    )  # fmt: skip
    data.features = data.features[:, :-1]
    if scores is not None:
        data.scores = np.asarray(scores)[:, None]
    return data


def reject_option(rows: Any, job: dict[str, Any]) -> dict[str, Any]:
    """Return decisions at given margins, and the search's threshold, margin and decisions."""
    groups = {"unprivileged_groups": [{"s": 0}], "privileged_groups": [{"s": 1}]}
    test = dataset(rows["X_test"], rows["s_test"], np.zeros(len(rows["s_test"])), rows["f_test"])
    answer = {}
    for margin in job["margins"]:
        rule = RejectOptionClassification(**groups)
        rule.classification_threshold, rule.ROC_margin = 0.5, margin
        answer[f"margin {margin}"] = rule.predict(test).labels[:, 0]
    bound = job["bound"]
    rule = RejectOptionClassification(
        **groups, metric_name="Statistical parity difference", metric_ub=bound, metric_lb=-bound
    )
    train = dataset(rows["X"], rows["s"], rows["y"])
    rule.fit(train, dataset(rows["X"], rows["s"], rows["y"], rows["f"]))
    answer["search"] = rule.predict(test).labels[:, 0]
    answer["searched"] = np.array([rule.classification_threshold, rule.ROC_margin])
    return answer


def adversarial(rows: Any, weight: float, seed: int, job: dict[str, Any]) -> Any:
    """Return the decisions of one adversarial run."""
    tf.reset_default_graph()
    with tf.Session() as session:
        model = AdversarialDebiasing(
            unprivileged_groups=[{"s": 0}],
            privileged_groups=[{"s": 1}],
            scope_name="run",
            sess=session,
            seed=seed,
            adversary_loss_weight=weight,
            num_epochs=job["epochs"],
            batch_size=job["batch_size"],
        )
        model.fit(dataset(rows["X"], rows["s"], rows["y"]))
        test = dataset(rows["X_test"], rows["s_test"], np.zeros(len(rows["s_test"])))
        return model.predict(test).labels[:, 0]


def main(rows_path: str, answer_path: str, job_text: str) -> None:
    """Write the decisions of every run that the JSON text names."""
    rows, job = np.load(rows_path), json.loads(job_text)
    answer = reject_option(rows, job)
    for weight in job["weights"]:
        runs = [adversarial(rows, weight, seed, job) for seed in range(job["seeds"])]
        answer[f"weight {weight}"] = np.stack(runs)
    np.savez(answer_path, **answer)


if __name__ == "__main__":
    main(*sys.argv[1:])
