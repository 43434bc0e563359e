"""Six tables in three parts: rows of the base model, rows of the update, and test rows.

A split is fixed by table, kind of base model and seed: 30 % of the rows train the base model, 40 %
fit the update, 30 % test both. The score is that of the favourable label.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, OrdinalEncoder
from sklearn.utils import Bunch

from commod import datasets

MODELS = ("logistic regression", "gradient boosting")
SCORE = "score"  # name of the column that holds the base score


def _linear() -> Bunch:
    return datasets.make_biased(6000, n_features=5, bias=1.0, random_state=11)


def _with_categories() -> Bunch:
    return datasets.make_biased(
        9000,
        n_features=8,
        n_informative=5,
        bias=0.8,
        group_shares=(0.6, 0.4),
        correlation=0.3,
        n_categories=8,
        random_state=12,
    )


# table: how to load it, the favourable label, the target of the favourable rate (above the base)
TABLES: dict[str, tuple[Callable[[], Bunch], int, float]] = {
    "Law School": (datasets.fetch_law_school, 1, 0.8),
    "COMPAS": (datasets.load_compas, 0, 0.9),
    "Adult": (datasets.fetch_adult, 1, 0.8),
    "German credit": (datasets.fetch_german_credit, 1, 0.95),
    "made, linear": (_linear, 1, 0.8),
    "made, categories": (_with_categories, 1, 0.8),
}


@dataclass(frozen=True)
class Part:
    """Rows with their scores: `X` holds the score, `y` and decisions are True for favourable."""

    X: pd.DataFrame
    y: NDArray[np.bool_]
    s: NDArray[Any]

    @property
    def score(self) -> NDArray[np.float64]:
        """Return the base score of the favourable label, shape (n,)."""
        return self.X[SCORE].to_numpy()

    def only(self, rows: Any) -> Part:
        """Return some of the rows; `rows` is a mask or a slice."""
        return Part(self.X[rows].reset_index(drop=True), self.y[rows], self.s[rows])


@cache
def _load(name: str) -> tuple[pd.DataFrame, NDArray[np.bool_], NDArray[Any]]:
    load, favorable, _ = TABLES[name]
    table = load()
    X = pd.DataFrame(table.data).reset_index(drop=True)
    return X, np.asarray(table.target) == favorable, np.asarray(table.sensitive_features)


def three_parts(name: str, model: str, seed: int) -> tuple[Part, Part]:
    """Return the fit rows and the test rows of a split, scored by a model of other rows."""
    return all_parts(name, model, seed)[1:]


def all_parts(name: str, model: str, seed: int) -> tuple[Part, Part, Part]:
    """Return the rows of the base model, the fit rows and the test rows of a split."""
    X, y, s = _load(name)
    own, others = train_test_split(np.arange(len(X)), train_size=0.3, random_state=seed, stratify=y)
    fit, test = train_test_split(others, train_size=4 / 7, random_state=seed, stratify=y[others])
    base = base_model(model).fit(X.loc[own], y[own])

    def scored(rows: NDArray[np.intp]) -> Part:
        frame = X.loc[rows].reset_index(drop=True)
        frame[SCORE] = base.predict_proba(X.loc[rows])[:, 1]
        return Part(frame, y[rows], s[rows])

    return scored(own), scored(fit), scored(test)


def base_model(model: str) -> Any:
    """Return an unfitted base model with its encoder; `model` is one of `MODELS`."""
    numbers = make_column_selector(dtype_include="number")
    others = make_column_selector(dtype_exclude="number")
    if model == MODELS[0]:
        encode = make_column_transformer(
            (MinMaxScaler(), numbers), (OneHotEncoder(handle_unknown="ignore"), others)
        )
        return make_pipeline(encode, LogisticRegression(max_iter=1000))
    codes = OrdinalEncoder(
        handle_unknown="use_encoded_value", unknown_value=-1, encoded_missing_value=-1
    )
    encode = make_column_transformer(("passthrough", numbers), (codes, others))
    return make_pipeline(encode, HistGradientBoostingClassifier(max_iter=60, random_state=0))
