"""Time and memory of one ControlledDebiaser fit on many rows, beside scikit-learn's own fit.

10 numbers and 10 columns of 8 categories. Every size runs in a process of its own, in which fits
take turns: the update with the base model (a pipeline, whose predictions it asks for), the update
with the scores in a column, and scikit-learn's LogisticRegression on the same columns, scaled and
one-hot encoded beforehand as a sparse matrix. Memory has a process for each fit: what it holds at
most beyond what it held before, as Linux counts it (VmHWM), over what pandas says the frame holds.
`MOST_ROWS=100000 make figures FIGURES=many-rows` leaves the largest out.
"""

from __future__ import annotations

import ctypes
import gc
import itertools
import json
import os
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from report import show, show_at_most
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from commod import ControlledDebiaser, ScoreColumn
from commod.exceptions import CommodWarning

SIZES = (10_000, 100_000, 1_000_000)
N_NUMBERS, N_CATEGORIES, N_LEVELS = 10, 10, 8
REPEATS = 3
TIME_BAR, MEMORY_BAR = 3, 3
UPDATES = ("update", "update, scores given")
BASE_ROWS = 20_000  # what the base model is fitted on


def make_rows(n: int, kind: str) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """Return columns, labels and groups; categories as "text" or as pandas "category"."""
    random = np.random.default_rng(0)
    group = (random.random(n) < 0.35).astype(int)
    columns: dict[str, Any] = {}
    logit = np.zeros(n)
    for j in range(N_NUMBERS):
        values = random.standard_normal(n) - 0.4 * group * (j % 3 == 0)
        columns[f"number_{j}"] = values
        logit += 0.4 * values * (j % 2 == 0)
    for j in range(N_CATEGORIES):
        shift = 1.5 * group * (j % 4 == 0)
        codes = (N_LEVELS * random.random(n) ** (1 + shift)).astype(np.int8)
        levels = [f"level {k}" for k in range(N_LEVELS)]
        column = pd.Series(pd.Categorical.from_codes(codes, levels))
        columns[f"category_{j}"] = column if kind == "category" else column.astype(str)
        logit += 0.1 * (codes - N_LEVELS / 2) * (j % 2 == 0)
    y = (random.random(n) < 1 / (1 + np.exp(-logit))).astype(int)
    return pd.DataFrame(columns), y, np.where(group == 1, "b", "a")


def encoder() -> Any:
    """Return what makes a sparse matrix of the columns."""
    return make_column_transformer(
        (StandardScaler(), make_column_selector(dtype_include="number")),
        (OneHotEncoder(), make_column_selector(dtype_exclude="number")),
        sparse_threshold=1.0,
    )


def timed(action: Callable[[], Any]) -> float:
    """Return the seconds an action takes."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def memory(field: str) -> int:
    """Return VmRSS or VmHWM of this process, in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"This system does not tell {field}.")


def peak_of(action: Callable[[], Any]) -> int:
    """Return how many bytes an action needs at most beyond what is held before it."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)  # what is free already must not hide what is needed
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts again from here
    before = memory("VmRSS")
    action()
    return memory("VmHWM") - before


class Fits:
    """Everything that is fitted on rows of one size and kind, by name."""

    def __init__(self, n: int, kind: str) -> None:
        self.X, self.y, self.s = make_rows(n, kind)
        few = slice(0, min(n, BASE_ROWS))
        model = make_pipeline(encoder(), LogisticRegression(max_iter=1000))
        self.base = model.fit(self.X[few], self.y[few])

    def actions(self) -> dict[str, Callable[[], Any]]:
        """Return what is timed."""
        with_scores = self.X.assign(score=self.base.predict_proba(self.X)[:, 1])
        encoded = encoder().fit_transform(self.X)
        return {
            "update": lambda: self.update(self.base, self.X),
            "update, scores given": lambda: self.update(ScoreColumn("score"), with_scores),
            "base model's predictions": lambda: self.base.predict_proba(self.X),
            "LogisticRegression": lambda: LogisticRegression(max_iter=1000).fit(encoded, self.y),
            "encoding for it": lambda: encoder().fit_transform(self.X),
        }

    def update(self, estimator: Any, X: pd.DataFrame) -> Any:
        """Return one fitted update."""
        debiaser = ControlledDebiaser(estimator, target=0.8, random_state=0, progress=False)
        return debiaser.fit(X, self.y[: len(X)], sensitive_features=self.s[: len(X)])


def measure_times(n: int, kind: str) -> dict[str, Any]:
    """Return medians of seconds, and what the update does."""
    fits = Fits(n, kind)
    actions = fits.actions()
    seconds = [{name: timed(act) for name, act in actions.items()} for _ in range(REPEATS)]
    fitted = fits.update(fits.base, fits.X)
    return {
        "seconds": {name: statistics.median(run[name] for run in seconds) for name in actions},
        "p_rule": [fitted.base_fairness_, fitted.fairness_],
        "changes": [fitted.change_rate_, fitted.limit_],
    }


def measure_memory(n: int, kind: str, name: str) -> dict[str, Any]:
    """Return what one fit, or the base model's predictions, need beyond the data, in bytes."""
    fits = Fits(n, kind)
    fits.update(fits.base, fits.X[:2000])  # loads what a first fit loads
    if name == "update, scores given":
        fits.X["score"] = fits.base.predict_proba(fits.X)[:, 1]
    actions = {
        "update": lambda: fits.update(fits.base, fits.X),
        "update, scores given": lambda: fits.update(ScoreColumn("score"), fits.X),
        "base model's predictions": lambda: fits.base.predict_proba(fits.X),
    }
    return {"bytes": peak_of(actions[name]), "data": int(fits.X.memory_usage(deep=True).sum())}


def many_rows() -> None:
    """Compare time with LogisticRegression's, memory with the data's, and see time grow."""
    sizes = [n for n in SIZES if n <= int(os.environ.get("MOST_ROWS", SIZES[-1]))]
    runs = {n: in_new_process("times", n, "text") for n in sizes}
    for n, run in runs.items():
        for name, seconds in run["seconds"].items():
            show(f"{n:,} rows: {name}", f"{seconds:.2f} s")
        before, after = run["p_rule"]
        show(f"{n:,} rows: P-rule", f"{before:.3f} to {after:.3f}", changes_in_words(run))
    for earlier, later in itertools.pairwise(sizes):
        growth = runs[later]["seconds"]["update"] / runs[earlier]["seconds"]["update"]
        show_at_most(f"update: time from {earlier:,} to {later:,} rows", growth, later / earlier)
    last = runs[sizes[-1]]["seconds"]
    for name in UPDATES:
        ratio = last[name] / last["LogisticRegression"]
        show_at_most(f"{sizes[-1]:,} rows: {name} / LogisticRegression", ratio, TIME_BAR)
    for kind in ("text", "category"):
        show_memory(sizes[-1], kind)


def changes_in_words(run: dict[str, Any]) -> str:
    """Return the changes of a run beside their limit, in words."""
    changes, limit = run["changes"]
    return f"{changes:.1%} changed, limit {limit:.1%}"


def show_memory(n: int, kind: str) -> None:
    """Print what fits need beyond the data, over the data."""
    for name in (*UPDATES, "base model's predictions"):
        run = in_new_process("memory", n, kind, name)
        figure = f"{n:,} rows of {kind}: {name}, memory / data"
        share, size = run["bytes"] / run["data"], f"(of {run['data'] / 2**20:.0f} MiB)"
        if name in UPDATES:
            show_at_most(figure, share, MEMORY_BAR, size)
        else:
            show(figure, f"{share:.3f} {size}")


def in_new_process(what: str, n: int, *words: str) -> dict[str, Any]:
    """Measure times or memory in a process of its own."""
    command = [sys.executable, __file__, what, str(n), *words]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
    return json.loads(done.stdout)


if __name__ == "__main__":
    warnings.simplefilter("ignore", CommodWarning)
    measure = {"times": measure_times, "memory": measure_memory}[sys.argv[1]]
    print(json.dumps(measure(int(sys.argv[2]), *sys.argv[3:])))
