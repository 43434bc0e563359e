"""The tables of the benchmarks: drawn at random, or the training rows of split 0.

The functions that `shared_file` calls take a path and write one file.
"""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from experiments.protocol import N_CONCEPTS, make_split
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

N_NUMBERS, N_CATEGORIES, N_LEVELS = 10, 10, 8


class BenchmarkRows(NamedTuple):
    """Columns, labels, groups, and the probability of label 1 that the labels were drawn with."""

    X: pd.DataFrame
    y: np.ndarray
    group: np.ndarray
    score: np.ndarray

    def first(self, n: int) -> BenchmarkRows:
        """Return the first n rows."""
        return BenchmarkRows(*(part[:n] for part in self))

    @property
    def scored(self) -> pd.DataFrame:
        """Return the columns with the score as one of them."""
        return self.X.assign(score=self.score)


def make_rows(n: int, kind: str) -> BenchmarkRows:
    """Return 10 numbers and 10 columns of 8 categories, as "text" or as pandas "category"."""
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
        columns[f"category_{j}"] = _categories(codes, N_LEVELS, kind)
        logit += 0.1 * (codes - N_LEVELS / 2) * (j % 2 == 0)
    return _drawn(pd.DataFrame(columns), logit, group, random)


def make_wide_rows(n: int, n_levels: int) -> BenchmarkRows:
    """Return 10 numbers and one column of many categories, most of them rare."""
    random = np.random.default_rng(0)
    group = (random.random(n) < 0.35).astype(int)
    numbers = random.standard_normal((n, N_NUMBERS)) - 0.4 * group[:, None]
    codes = (n_levels * random.random(n) ** (2 + group)).astype(np.int32)
    X = pd.DataFrame(numbers, columns=[f"number_{j}" for j in range(N_NUMBERS)])
    X["category"] = _categories(codes, n_levels, "category")
    logit = 0.4 * numbers[:, ::2].sum(axis=1) + 2 * codes / n_levels - 0.5
    return _drawn(X, logit, group, random)


def _categories(codes: np.ndarray, n_levels: int, kind: str) -> pd.Series:
    levels = [f"level {k}" for k in range(n_levels)]
    column = pd.Series(pd.Categorical.from_codes(codes, levels))
    return column if kind == "category" else column.astype(str)


def _drawn(X: pd.DataFrame, logit: np.ndarray, group: np.ndarray, random: Any) -> BenchmarkRows:
    score = 1 / (1 + np.exp(-logit))
    y = (random.random(len(X)) < score).astype(int)
    return BenchmarkRows(X, y, np.where(group == 1, "b", "a"), score)


def encoder() -> Any:
    """Return an encoder that makes a sparse matrix of the columns."""
    return make_column_transformer(
        (StandardScaler(), make_column_selector(dtype_include="number")),
        (
            OneHotEncoder(handle_unknown="ignore"),
            make_column_selector(dtype_exclude="number"),
        ),
        sparse_threshold=1.0,
    )


def base_model(rows: BenchmarkRows) -> Any:
    """Return a pipeline of the encoder and a logistic regression, fitted on the rows."""
    return make_pipeline(encoder(), LogisticRegression(max_iter=1000)).fit(rows.X, rows.y)


# -- files ------------------------------------------------------------------------------------


def rows(path: Path, n: int, kind: str) -> None:
    """Write `make_rows`."""
    save(make_rows(n, kind), path)


def wide_rows(path: Path, n: int, n_levels: int) -> None:
    """Write `make_wide_rows`."""
    save(make_wide_rows(n, n_levels), path)


def raw_split(path: Path, table: str, n: int | None = None) -> None:
    """Write training rows of split 0, or the first n, for our programs, with the fitted model."""
    split = make_split(table, 0)
    first = {name: part[:n] for name, part in split.train.items()}
    save({"model": split.model, "n_concepts": N_CONCEPTS[table], **first}, path)


def encoded_split(path: Path, table: str, n: int | None = None) -> None:
    """Write the same rows for peers, encoded by the base model's encoder."""
    split = make_split(table, 0)
    encoded = split.model[0].transform(split.train.X[:n])
    encoded = encoded.toarray() if hasattr(encoded, "toarray") else np.asarray(encoded)
    groups, codes = np.unique(np.asarray(split.train.s)[:n], return_inverse=True)
    if len(groups) != 2:
        raise ValueError(f"AIF360 takes two groups; {table} has {len(groups)}.")
    with path.open("wb") as file:
        labels = np.asarray(split.train.y)[:n]
        np.savez(file, X=encoded.astype(np.float64), y=labels, s=codes)


def save(content: Any, path: Path) -> None:
    """Write anything that can be pickled."""
    with path.open("wb") as file:
        pickle.dump(content, file, protocol=5)


def load(path: Path) -> Any:
    """Return what `save` wrote in this run."""
    with path.open("rb") as file:
        return pickle.load(file)
