"""Let `fit_frame` take a model as base model: its scores become a column for the fit."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import Any

import numpy as np

from commod._data.base_model import (
    BaseScores,
    ModelScores,
    names_of_model,
    warn_about_own_decisions,
)
from commod._data.frames import no_column, open_frame
from commod._data.scored_frames import ScoredFrame, with_scores
from commod._text import n_of
from commod.exceptions import BaseModelError
from commod.updates._controlled_parameters import check_labels_given, check_no_weighted_promise
from commod.updates._frames.columns import NamedColumns, check_names
from commod.updates._targeted import TargetedUpdate


@contextmanager
def score_column(
    update: TargetedUpdate, frame: Any, named: NamedColumns
) -> Iterator[tuple[Any, NamedColumns]]:
    """Yield a frame with a column of scores, and the names of its columns, for a fit.

    While the fit runs, a `ModelScores` is the base model of the update. Afterwards it is the model
    again, and X of `predict` has the columns of the model first. A `ScoredFrame` has the scores of
    the model already: so one scoring serves a fit and what follows it.
    """
    if named.score is not None:
        yield frame, named
        return
    update._check_parameters()  # before rows are scored, which may take long
    check_no_weighted_promise(update, named.sample_weight)
    check_labels_given(update, named.y_true is not None)
    model = update.estimator
    known = frame if isinstance(frame, ScoredFrame) else None
    schema = dict(open_frame(frame if known is None else known.frame).collect_schema())
    if known is not None:
        del schema[known.column]
    columns, features = columns_of(model, named, schema, update.locked_features)
    single = (named.y_true, named.sample_weight, named.key)
    others = [*named.sensitive, *named.conditions, *(name for name in single if name is not None)]
    keep = [*features, *others]
    scoring = nullcontext(known) if known else with_scores(frame, model, columns, keep=keep)
    with scoring as scored:
        _compare_decisions(update, scored)
        is_read = set(columns) <= set(features)
        classes = getattr(model, "classes_", None)
        update.estimator = ModelScores(scored.column, classes_=classes, reads_others=not is_read)
        yield scored.frame, replace(named, score=scored.column, features=tuple(features))
    _give_back(update, model, list(dict.fromkeys([*columns, *features])))


def columns_of(
    model: Any, named: NamedColumns, schema: Mapping[Any, Any], locked: Collection[str]
) -> tuple[list[str], list[str]]:
    """Return the columns that the model reads, and those that the update may use.

    A model that does not know the names of its columns reads what the update may use. Locked
    columns of the model count as features, as they do in `fit`.
    """
    features = list(check_names(named, schema))
    columns = names_of_model(model)
    if not set(columns) & set(schema):  # some models make up names for arrays
        columns = []
    for name in columns:
        if name not in schema:
            raise no_column("estimator", name, schema)
    if not columns:
        n_read = getattr(model, "n_features_in_", len(features))
        if n_read != len(features):
            raise BaseModelError(
                f"The base model {type(model).__name__} was fitted on {n_of(n_read, 'column')} "
                f"without names, and the frame has {len(features)} for it. Name them in the "
                "model's order: features=[...].",
                parameter="features",
            )
        return features, features
    if named.features is None:
        features = [name for name in columns if name in features]
    locked_columns = [name for name in columns if name in locked and name not in features]
    return columns, [*features, *locked_columns]


def _compare_decisions(update: TargetedUpdate, scored: ScoredFrame) -> None:
    """Warn if the model's own decisions differ from score > threshold in the first rows."""
    model, scores = update.estimator, scored.first_scores
    classes = getattr(model, "classes_", None)
    if classes is None or not len(scores):
        return
    base = BaseScores(np.column_stack([1 - scores, scores]), float(update.threshold))
    warn_about_own_decisions(model, scored.first_rows, base, classes[1])


def take_base_model(update: TargetedUpdate, other: TargetedUpdate) -> None:
    """Give a fitted update the base model of another one, and the columns of its X."""
    update.estimator = update._params_of_fit["estimator"] = other.estimator
    for name in ("feature_names_in_", "n_features_in_", "_columns_seen"):
        if hasattr(other, name):
            setattr(update, name, getattr(other, name))


def _give_back(update: TargetedUpdate, model: Any, columns: list[str]) -> None:
    """Store the model as the base model of a fitted update, and the columns of its X."""
    update.estimator = update._params_of_fit["estimator"] = model
    update.feature_names_in_ = np.array(columns, dtype=object)
    update.n_features_in_ = len(columns)
    update._columns_seen = columns
