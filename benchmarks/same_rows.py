"""The rows of the cases of `same_fits.py`, with base models whose scores have six digits."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from commod import ScoreColumn
from commod.datasets import load_compas, make_biased


class FitRows(NamedTuple):
    """A fitted base model and the rows that an update is fitted on."""

    model: Any
    X: Any
    y: Any
    groups: Any
    weight: Any = None


class RoundedScores(LogisticRegression):
    """A logistic regression whose scores have six digits, which are the same on all processors."""

    def predict_proba(self, X: Any) -> Any:
        """Return the rounded probabilities of both labels, (n, 2)."""
        return super().predict_proba(X).round(6)


def base_model(X: pd.DataFrame, y: Any) -> Any:
    """Return a logistic regression on scaled numbers and one-hot categories."""
    columns = make_column_transformer(
        (StandardScaler(), make_column_selector(dtype_include="number")),
        (
            OneHotEncoder(handle_unknown="ignore"),
            make_column_selector(dtype_exclude="number"),
        ),
    )
    return make_pipeline(columns, RoundedScores(max_iter=1000)).fit(X, y)


@cache
def compas(n: int = 1500) -> FitRows:
    """Return rows of COMPAS that are new to the model."""
    bunch = load_compas()
    order = np.random.RandomState(0).permutation(len(bunch.data))
    X, y, groups = bunch.data, np.asarray(bunch.target), np.asarray(bunch.sensitive_features)
    train, new = order[:2000], order[2000 : 2000 + n]
    return FitRows(base_model(X.iloc[train], y[train]), X.iloc[new], y[new], groups[new])


@cache
def biased(n: int = 900, *, shares: tuple[float, ...] = (0.7, 0.3)) -> FitRows:
    """Return rows of a made population with two or more groups."""
    rows = make_biased(n + 500, group_shares=shares, bias=1.5, n_categories=6, random_state=3)
    y, groups = np.asarray(rows.target), np.asarray(rows.sensitive_features)
    model, X = base_model(rows.data[:500], y[:500]), rows.data[500:].reset_index(drop=True)
    return FitRows(model, X, y[500:], groups[500:])


def weighted(n: int = 900, **how: Any) -> FitRows:
    """Return the same rows with sample weights."""
    rows = biased(n, **how)
    return rows._replace(weight=np.random.RandomState(5).uniform(0.5, 2.0, n))


def three(n: int = 900) -> FitRows:
    """Return rows of three groups."""
    return biased(n, shares=(0.5, 0.3, 0.2))


def with_gaps() -> FitRows:
    """Return rows with missing values, a boolean and a column of text."""
    rows = biased()
    random = np.random.RandomState(1)
    X = rows.X.copy()
    number, n = X.columns[0], len(X)
    scores = rows.model.predict_proba(rows.X)[:, 1]
    X[number] = X[number].where(random.random_sample(n) > 0.1)
    X = X.assign(
        score=scores,
        town=random.choice(["Rome", "Paris", "Oslo"], n),
        member=random.random_sample(n) < 0.4,
    )
    return FitRows(ScoreColumn("score"), X, rows.y, rows.groups)


def intersections() -> FitRows:
    """Return rows with two sensitive columns."""
    rows = biased()
    other = np.where(np.random.RandomState(2).random_sample(len(rows.y)) < 0.5, "u", "v")
    return rows._replace(groups=pd.DataFrame({"one": rows.groups, "two": other}))


def unknown_groups() -> FitRows:
    """Return rows of which a third has no group."""
    rows = biased()
    groups = rows.groups.astype(object)
    groups[np.random.RandomState(4).random_sample(len(groups)) < 0.3] = None
    return rows._replace(groups=groups)


def loans(n: int = 4000) -> pd.DataFrame:
    """Return a table with a key, a score, a label and a group, as an engine holds it."""
    rows = biased(n)
    told = {"id": np.arange(n), "y": rows.y, "region": rows.groups}
    return rows.X.assign(**told, score=rows.model.predict_proba(rows.X)[:, 1])


def fitted(update: Any, rows: FitRows) -> Any:
    """Return an update that was fitted on rows."""
    weight = {} if rows.weight is None else {"sample_weight": rows.weight}
    return update.fit(rows.X, rows.y, sensitive_features=rows.groups, **weight)
