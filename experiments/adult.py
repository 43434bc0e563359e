"""The Adult census table as the stored results read it."""

from __future__ import annotations

import numpy as np
from sklearn.utils import Bunch

from commod import datasets
from commod.exceptions import DatasetError

NUMBERS = ["age", "education-num", "capital-gain", "capital-loss", "hours-per-week"]
# The stored results were computed on rows in this order, so their splits can be repeated.
ORDER_SEED = 888


def load_adult() -> Bunch:
    """Return `datasets.fetch_adult()` with its rows shuffled once and its numbers first."""
    table = datasets.fetch_adult()
    rows = np.random.RandomState(ORDER_SEED).choice(len(table.data), len(table.data), replace=False)
    names = NUMBERS + [name for name in table.feature_names if name not in NUMBERS]
    return Bunch(
        data=table.data[names].iloc[rows].reset_index(drop=True),
        target=table.target.to_numpy()[rows],
        sensitive_features=table.sensitive_features.iloc[rows].reset_index(drop=True),
    )


def fetch() -> str | None:
    """Fetch the table where it is not stored; return None, or the reason why that failed."""
    try:
        datasets.fetch_adult()
    except DatasetError as error:
        return str(error)
    return None
