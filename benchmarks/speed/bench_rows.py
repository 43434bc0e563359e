"""Many rows: fits, audits and predictions on 10 numbers and 10 columns of 8 categories.

Updates read their scores from a column, so that only the update is measured. On up to 1,000,000
rows they also call a fitted pipeline for its predictions. They are compared with one copy of the
frame, with scikit-learn's LogisticRegression on the same columns, scaled and one-hot encoded
beforehand as a sparse matrix, and with the fit of that pipeline, which encodes them. Memory is the
peak of the first round, beyond what was held before.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from benchmarks.speed.cases import case
from benchmarks.speed.memory import measure
from benchmarks.speed.names import PIPELINE, rows_of
from benchmarks.speed.settings import current, repeats_of, turns_of
from benchmarks.speed.shared_file import shared_file
from benchmarks.speed.tables import BenchmarkRows, base_model, encoder, load
from sklearn.linear_model import LogisticRegression

from commod import ControlledDebiaser, ScoreColumn, audit
from commod.exceptions import CommodWarning

SETTINGS = current()
FEW = 2000  # rows of a first call, which loads modules
MOST_ROWS_OF_A_MODEL = 1_000_000
SCORED = ScoreColumn("score")

Action = Callable[[], Any]


def fit_update(estimator: Any, X: Any, rows: BenchmarkRows, **params: Any) -> Any:
    """Return one fitted update."""
    update = ControlledDebiaser(estimator, **{"target": 0.8, **params})
    return update.fit(X, rows.y, sensitive_features=rows.group)


def fit_with_scores(rows: BenchmarkRows, **params: Any) -> Action:
    """Return a fit on scores in a column."""
    few = rows.first(FEW)
    fit_update(SCORED, few.scored, few, **params)
    return partial(fit_update, SCORED, rows.scored, rows, **params)


def fit_with_model(rows: BenchmarkRows) -> Action:
    """Return a fit that calls a pipeline for its predictions."""
    model, few = base_model(rows.first(SETTINGS.base_rows)), rows.first(FEW)
    fit_update(model, few.X, few)
    return partial(fit_update, model, rows.X, rows)


def model_alone(rows: BenchmarkRows) -> Action:
    """Return the pipeline's own predictions."""
    model = base_model(rows.first(SETTINGS.base_rows))
    model.predict_proba(rows.X[:FEW])
    return partial(model.predict_proba, rows.X)


def fit_on_first_rows(rows: BenchmarkRows) -> Any:
    """Return an update for rows that are predicted or audited."""
    fit_rows = rows.first(SETTINGS.fit_rows)
    return fit_update(SCORED, fit_rows.scored, fit_rows)


def predict(rows: BenchmarkRows) -> Action:
    """Return `update.predict` on rows that have scores."""
    return partial(fit_on_first_rows(rows).predict, rows.scored)


def apply(rows: BenchmarkRows) -> Action:
    """Return `Patch.apply`."""
    return partial(fit_on_first_rows(rows).to_patch().apply, rows.scored)


def audit_changes(rows: BenchmarkRows) -> Action:
    """Return an audit that gets the columns and so searches for segments and subgroups."""
    after = fit_on_first_rows(rows).predict(rows.scored)

    def audit_first(n: int) -> Any:
        first = rows.first(n)
        before = (first.score > 0.5).astype(int)
        inputs = {"y_true": first.y, "scores_before": first.score, "X": first.X}
        return audit(before, after[:n], sensitive_features=first.group, **inputs)

    audit_first(FEW)
    return partial(audit_first, len(rows.X))


def copy(rows: BenchmarkRows) -> Action:
    """Return one copy of the frame."""
    return partial(rows.X.copy, deep=True)


def logistic_regression(rows: BenchmarkRows) -> Action:
    """Return scikit-learn's fit on the encoded columns; encoding is not timed."""
    encoded = encoder().fit_transform(rows.X)
    return partial(LogisticRegression(max_iter=1000).fit, encoded, rows.y)


ACTIONS: dict[str, Callable[[BenchmarkRows], Action]] = {
    "fit": fit_with_scores,
    "fit, target on fit rows": partial(fit_with_scores, target_on="fit_rows", borderline=0),
    "fit, odds": partial(fit_with_scores, constraints="equalized_odds", target=0.05),
    "fit, model's predictions included": fit_with_model,
    "the model's predictions": model_alone,
    "predict": predict,
    "apply": apply,
    "audit": audit_changes,
    "copy": copy,
    "LogisticRegression": logistic_regression,
    PIPELINE: lambda rows: partial(base_model, rows),
}
OF_MODELS = ("fit, model's predictions included", "the model's predictions", PIPELINE)
ON_TEXT = ("fit", "fit, target on fit rows", *OF_MODELS, "copy", "LogisticRegression")


def cases() -> list[Any]:
    """Return every action on rows of every size, and several actions on text."""
    small = [name for name in ACTIONS if name not in (*OF_MODELS, "fit, odds")]
    chosen = [
        (n, "category", name)
        for n in SETTINGS.rows
        for name in (ACTIONS if n <= MOST_ROWS_OF_A_MODEL else small)
    ]
    chosen += [(n, "text", name) for n in SETTINGS.text_rows for name in ON_TEXT]
    return [
        case(n, kind, name, group=rows_of(n, kind), name=name, turns=turns_of(n, SETTINGS))
        for n, kind, name in chosen
    ]


@pytest.mark.parametrize(("n", "kind", "name"), cases())
def test_rows(benchmark: Any, n: int, kind: str, name: str) -> None:
    """Time one action on `n` rows; record its memory, fairness and changes."""
    warnings.simplefilter("ignore", CommodWarning)
    rows = load(shared_file("tables.rows", n, kind))
    result = measure(benchmark, ACTIONS[name](rows), repeats_of(n, SETTINGS))
    info = benchmark.extra_info
    info["data_mb"] = int(rows.X.memory_usage(deep=True).sum()) / 1e6
    info["peak_over_data"] = info["peak_mb"] / info["data_mb"]
    info["rows"] = n
    if isinstance(result, ControlledDebiaser):
        info["fairness"] = result.fairness_
        info["changes"] = result.change_rate_
        info["over_limit"] = result.change_rate_ / result.limit_
