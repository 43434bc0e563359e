"""Print how many files, functions and levels of the package each main call enters.

    .venv/bin/python scripts/trace_calls.py [call ...]

The table has 800 rows; that of `fit_frame` has 60,000, in DuckDB. Every call runs once before it
is traced, so imports do not count. Only functions of `src/commod` count. The depth is the largest
number of them on the stack. Calls in other threads count, calls in other processes do not.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple
from unittest import mock

import pandas as pd
from sklearn.linear_model import LogisticRegression

import commod
from commod import COMMOD, ControlledDebiaser, Patch, ScoreColumn, audit, frontier, report
from commod.datasets import make_biased

SOURCE = str(Path(commod.__file__).parent) + os.sep
INLINED = ("<listcomp>", "<dictcomp>", "<setcomp>")  # no functions from Python 3.12 on
N, N_FRAME = 800, 60_000
TARGET = 0.8


class Entered(NamedTuple):
    """What a call enters."""

    files: int
    functions: int
    depth: int


def entered(call: Callable[[], Any]) -> Entered:
    """Return the number of files and functions that a call enters, and its depth."""
    codes: set[CodeType] = set()
    deepest = 0
    depth = threading.local()

    def profile(frame: FrameType, event: str, _: Any) -> None:
        nonlocal deepest
        code = frame.f_code
        is_function = code.co_filename.startswith(SOURCE) and code.co_name not in INLINED
        if event in ("call", "return") and is_function:
            depth.now = getattr(depth, "now", 0) + (1 if event == "call" else -1)
            deepest = max(deepest, depth.now)
            codes.add(code)

    threading.setprofile(profile)
    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return Entered(len({code.co_filename for code in codes}), len(codes), deepest)


# ---------------------------------------------------------------------------------------------
# The calls


@cache
def people(n: int = N) -> dict[str, Any]:
    """Return rows with the keywords of `fit`."""
    rows = make_biased(n, n_categories=6, bias=1.5, random_state=0)
    return {"X": rows.data, "y": rows.target, "sensitive_features": rows.sensitive_features}


@cache
def base_model() -> Any:
    """Return a base model that reads the numbers."""
    from sklearn.compose import make_column_selector, make_column_transformer
    from sklearn.pipeline import make_pipeline

    numbers = make_column_transformer(("passthrough", make_column_selector(dtype_include="number")))
    return make_pipeline(numbers, LogisticRegression()).fit(people()["X"], people()["y"])


@cache
def fitted() -> ControlledDebiaser:
    """Return a fitted update."""
    return make_update().fit(**people())


def make_update(estimator: Any = None) -> ControlledDebiaser:
    """Return an update for a P-rule."""
    return ControlledDebiaser(estimator or base_model(), target=TARGET)


@cache
def patch() -> Patch:
    """Return the patch of the fitted update."""
    return fitted().to_patch()


@cache
def scored(n: int = N) -> pd.DataFrame:
    """Return rows with score, label, group and key as columns."""
    rows = people(n)
    return rows["X"].assign(
        score=base_model().predict_proba(rows["X"])[:, 1],
        label=rows["y"],
        group=rows["sensitive_features"],
        id=range(n),
    )


@cache
def audited() -> Any:
    """Return an audit of the fitted update."""
    X, y, groups = people().values()
    models = base_model(), fitted()
    scores = [model.predict_proba(X)[:, 1] for model in models]
    return audit(
        *(model.predict(X) for model in models),
        sensitive_features=groups,
        y_true=y,
        scores_before=scores[0],
        scores_after=scores[1],
        X=X,
    )


def fit_frame() -> None:
    """Fit in DuckDB."""
    import duckdb

    with duckdb.connect() as connection:
        columns = {"sensitive_features": "group", "y_true": "label", "key": "id"}
        make_update(ScoreColumn("score")).fit_frame(connection.from_df(scored(N_FRAME)), **columns)


def edit() -> None:
    """Give a column no points, and determine the offset again."""
    fitted().edit({next(iter(people()["X"])): "drop"}, **people())


def debias() -> None:
    """Run the command line on a file; it writes a patch and a report."""
    from commod.cli import main as commod_command

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "people.csv"
        scored().drop(columns="id").to_csv(path, index=False)
        columns = ["--label", "label", "--sensitive", "group", "--score-column", "score"]
        files = ["--out", f"{folder}/patch.json", "--report", f"{folder}/report.html"]
        told = ["commod", "debias", str(path), *columns, *files, "--at-least", str(TARGET)]
        with (
            mock.patch.object(sys, "argv", told),
            contextlib.redirect_stdout(io.StringIO()),
            contextlib.suppress(SystemExit),
        ):
            commod_command()


def write_report() -> None:
    """Write a report as a page."""
    with tempfile.TemporaryDirectory() as folder:
        report(audited(), Path(folder) / "report.html")


CALLS: dict[str, Callable[[], Any]] = {
    "ControlledDebiaser.fit": lambda: make_update().fit(**people()),
    "fit_frame": fit_frame,
    "frontier, 3 targets": lambda: frontier(make_update(), **people(), targets=[0.7, 0.8, 0.9]),
    "edit": edit,
    "COMMOD.fit": lambda: COMMOD(base_model(), epochs=2).fit(**people()),
    "audit": audited.__wrapped__,
    "commod debias": debias,
    "report": write_report,
    "predict": lambda: fitted().predict(people()["X"]),
    "Patch.apply": lambda: patch().apply(scored(), score="score"),
    "to_sql": lambda: patch().to_sql("duckdb", "people"),
    "to_onnx": lambda: patch().to_onnx(),
}


def main(names: list[str]) -> None:
    """Print the named calls; without names, print all."""
    unknown = [name for name in names if name not in CALLS]
    if unknown:
        sys.exit(f"unknown calls: {', '.join(unknown)}; choose from {', '.join(CALLS)}")
    print(f"{'call':<24} {'files':>6} {'functions':>10} {'depth':>6}")
    for name in names or CALLS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            CALLS[name]()  # imports and caches do not count
            found = entered(CALLS[name])
        print(f"{name:<24} {found.files:>6} {found.functions:>10,} {found.depth:>6}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
