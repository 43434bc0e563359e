"""The paper's protocol: 70/30 splits, a logistic regression on features scaled to [0, 1].

The sensitive column is never a feature. All figures are measured on the 30 % test rows.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder
from sklearn.utils import Bunch

from commod import datasets, metrics
from commod.exceptions import CommodWarning, InterruptionWarning
from experiments.adult import load_adult
from experiments.paper import COMPAS, DP, LAW_SCHOOL

ADULT = "Adult"
LOADERS: dict[str, Callable[[], Bunch]] = {
    LAW_SCHOOL: datasets.fetch_law_school,
    COMPAS: datasets.load_compas,
    ADULT: load_adult,
}
N_CONCEPTS = {LAW_SCHOOL: 2, COMPAS: 5, ADULT: 5}
FAVORABLE = {LAW_SCHOOL: 1, COMPAS: 0, ADULT: 1}  # the label that is good for the person


@dataclass(frozen=True)
class Split:
    """One 70/30 split with its fitted base model."""

    name: str
    model: Any
    train: Bunch
    test: Bunch

    @property
    def fit_rows(self) -> dict[str, Any]:
        """Return the training rows as the keywords of `fit`."""
        return {"X": self.train.X, "y": self.train.y, "sensitive_features": self.train.s}

    @property
    def test_rows(self) -> dict[str, Any]:
        """Return the test rows as the keywords of `frontier`."""
        test = self.test
        return {"X_eval": test.X, "y_eval": test.y, "sensitive_features_eval": test.s}

    def evaluate(self, decisions: Any) -> dict[str, float]:
        """Return P-rule, DM, accuracy and share of changes of decisions on the test rows."""
        y, groups = self.test.y, {"sensitive_features": self.test.s}
        return {
            "p_rule": metrics.p_rule(y, decisions, **groups),
            "dm": metrics.disparate_mistreatment(y, decisions, **groups),
            "accuracy": float(np.mean(decisions == y)),
            "changes": metrics.change_rate(self.before, decisions),
        }

    @property
    def before(self) -> Any:
        """Return the base model's decisions on the test rows."""
        return self.model.predict(self.test.X)

    def base(self) -> dict[str, float]:
        """Return the figures of the base model on the test rows."""
        return self.evaluate(self.before)


@cache
def load(name: str) -> Bunch:
    """Return a table; read once per process."""
    return LOADERS[name]()


def make_split(name: str, seed: int) -> Split:
    """Return split `seed` of a table, with the base model fitted on its training rows."""
    table = load(name)
    X, X_test, y, y_test, s, s_test = train_test_split(
        table.data, table.target, table.sensitive_features, test_size=0.3, random_state=seed
    )
    encode = make_column_transformer(
        (MinMaxScaler(), make_column_selector(dtype_include="number")),
        (
            OneHotEncoder(handle_unknown="ignore"),
            make_column_selector(dtype_exclude="number"),
        ),
    )
    model = make_pipeline(encode, LogisticRegression(max_iter=1000)).fit(X, y)
    return Split(name, model, Bunch(X=X, y=y, s=s), Bunch(X=X_test, y=y_test, s=s_test))


def quartile(value: float, edges: tuple[float, ...], notion: str = DP) -> int:
    """Return the segment of a value, 1 to 4; for the DM, edges fall, as lower is fairer.

    Examples
    --------
    >>> quartile(0.75, (0.5, 0.75, 0.9)), quartile(0.2, (0.3, 0.2, 0.1), "equalized_odds")
    (3, 3)
    """
    if notion == DP:
        return int(np.searchsorted(edges, value, side="right")) + 1
    return 1 + int(np.sum(value <= np.asarray(edges)))


@contextmanager
def quietly() -> Iterator[None]:
    """Silence the library's warnings about targets and small categories."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CommodWarning)
        warnings.simplefilter("error", InterruptionWarning)  # an interrupted training is no result
        yield
