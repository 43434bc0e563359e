"""The tables and splits of the figures; the protocol is that of the experiments."""

from __future__ import annotations

import os
from functools import lru_cache

import numpy as np
from experiments.paper import COMPAS, LAW_SCHOOL
from experiments.protocol import N_CONCEPTS, Split, load, make_split
from sklearn.model_selection import train_test_split
from sklearn.utils import Bunch
from three_parts import MODELS, base_model

__all__ = ["N_CONCEPTS", "TABLES", "Split", "first_splits", "make_split", "make_thirds"]

TABLES = (LAW_SCHOOL, COMPAS)


def first_splits(n: int) -> range:
    """Return the splits of a figure: 0..n-1, or fewer if the environment has e.g. SPLITS=2."""
    return range(min(n, int(os.environ.get("SPLITS", n))))


@lru_cache(maxsize=2)
def make_thirds(name: str, seed: int) -> Split:
    """Return a split in thirds: rows of the base model, rows of the update, and test rows.

    So the base model is new to the rows of the update, which are `train`. `test` has as many rows.
    """
    table = load(name)
    own, others = train_test_split(np.arange(len(table.data)), train_size=1 / 3, random_state=seed)
    fit, test = train_test_split(others, train_size=0.5, random_state=seed)
    X, y, s = table.data, np.asarray(table.target), np.asarray(table.sensitive_features)
    model = base_model(MODELS[0]).fit(X.iloc[own], y[own])
    parts = (Bunch(X=X.iloc[rows], y=y[rows], s=s[rows]) for rows in (fit, test))
    return Split(name, model, *parts)
