"""Fit and measure updates of another version of this library, e.g. version 0.1.

`old_records` runs this file in a process that imports commod from the folder in the environment
variable OLD, e.g. `OLD=/path/of/a/checkout/src`. The rows go there in a file.
"""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

OLD_VARIABLE = "OLD"


def has_old_version() -> bool:
    """Return whether the environment names another version."""
    return bool(os.environ.get(OLD_VARIABLE))


def old_records(split: Any, targets: list[float] | None = None, **settings: Any) -> list[Any]:
    """Return test figures of the other version: one fit per target, or its default frontier.

    Each record has `fairness`, `accuracy`, `change_rate` and `seconds`, the time of the fit or of
    the whole frontier.
    """
    task = {
        "model": split.model,
        "fit": split.fit_rows,
        "test": split.test_rows,
        "targets": targets,
        "settings": {"random_state": 0, "progress": False, **settings},
    }
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "task.pickle"
        path.write_bytes(pickle.dumps(task))
        environment = {**os.environ, "PYTHONPATH": os.environ[OLD_VARIABLE]}
        process = subprocess.run(
            [sys.executable, __file__, str(path)],
            env=environment,
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        )
    records: list[Any] = json.loads(process.stdout)
    return records


def main(path: str) -> None:
    """Print the records of a task as JSON."""
    from commod import ControlledDebiaser, frontier

    task = pickle.loads(Path(path).read_bytes())  # written by `old_records`
    update = ControlledDebiaser(task["model"], **task["settings"])
    warnings.simplefilter("ignore")
    update.fit(**task["fit"])  # imports are no part of the time
    runs = [None] if task["targets"] is None else [[target] for target in task["targets"]]
    records = []
    for targets in runs:
        start = time.perf_counter()
        if targets is None:
            frontier(update, **task["fit"])
        else:
            update.set_params(target=targets[0]).fit(**task["fit"])
        seconds = time.perf_counter() - start
        if targets is None:
            frame = frontier(update, **task["fit"], **task["test"]).frame()
            frame = frame[["fairness", "accuracy", "change_rate"]].assign(seconds=seconds)
            records += frame.to_dict("records")
        else:
            records.append({**_figures(update, task), "seconds": seconds})
    print(json.dumps(records, default=float))


def _figures(update: Any, task: dict[str, Any]) -> dict[str, float]:
    from commod import metrics

    X, y, s = (task["test"][name] for name in ("X_eval", "y_eval", "sensitive_features_eval"))
    before, after = task["model"].predict(X), update.predict(X)
    notion = task["settings"].get("constraints", "demographic_parity")
    return {
        "fairness": metrics.fairness_value(notion, y, after, sensitive_features=s),
        "accuracy": float((after == y).mean()),
        "change_rate": float((after != before).mean()),
    }


if __name__ == "__main__":
    main(sys.argv[1])
