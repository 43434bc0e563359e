"""Random tables that break careless code: ties, constants, huge numbers, empty cells, gaps.

`hostile_table` makes one table. `trouble_of` says what a method does on it that it must not do.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.tree import DecisionTreeClassifier

from commod import ScoreColumn, frontier
from commod.exceptions import CommodWarning, InputError
from commod.rivals import Rival
from commod.rivals._lineup import every_method

Floats = NDArray[np.float64]
GROUP = "group"
SCORE = "score"
TREE_METHOD, GROUP_METHOD = "LeafRelabelling", "IndividualGroupDebiasing"
REFUSED = "refused"
N_STRENGTHS = 3  # of the sweep, beside no change
SHAPES = ((120, 3), (160, 3), (200, 5))  # for networks: one compilation each


def rival_names() -> tuple[list[str], list[str]]:
    """Return the names of the rivals that train with JAX, and of all others."""
    rivals = {name: u for name, u in every_method(None).items() if isinstance(u, Rival)}
    trained = [name for name, update in rivals.items() if hasattr(update, "batch_size")]
    return trained, [name for name in rivals if name not in trained]


@dataclass(frozen=True)
class HostileTable:
    """Rows of shape (n, d) with a score, labels, groups, weights and a threshold."""

    X: pd.DataFrame
    y: NDArray[np.intp]
    groups: NDArray[np.str_]
    weight: Floats
    threshold: float

    @property
    def numbers(self) -> pd.DataFrame:
        """Return the numeric columns without gaps and the rounded score, for a decision tree."""
        columns = self.X.drop(columns=SCORE).select_dtypes("number").fillna(0.0)
        return columns.clip(-1e30, 1e30).assign(rounded=self.X[SCORE].round(1))


class GroupReader(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A base model that adds a number to the score for each value of the column "group"."""

    classes_ = np.array([0, 1])

    def __init__(self, shift: float = 0.2) -> None:
        self.shift = shift

    def fit(self, X: Any, y: Any) -> GroupReader:
        """Return the model as it is."""
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def predict_proba(self, X: pd.DataFrame) -> Floats:
        """Return the shifted scores, shape (n, 2)."""
        is_shifted = X[GROUP].to_numpy() == "a"
        score = np.clip(X[SCORE].to_numpy() + self.shift * is_shifted, 0.0, 1.0)
        return np.column_stack([1 - score, score])

    def predict(self, X: pd.DataFrame) -> NDArray[np.intp]:
        """Return the decisions at 0.5, shape (n,)."""
        return (self.predict_proba(X)[:, 1] > 0.5).astype(np.intp)


def hostile_table(
    seed: int, n_rows: int | None = None, n_columns: int | None = None
) -> HostileTable:
    """Return a table; `n_rows` and `n_columns` fix its shape, and all columns are then numbers."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(100, 320)) if n_rows is None else n_rows
    groups = _groups(rng, n)
    kinds = list(NUMBERS) if n_columns is not None else [*NUMBERS, *CATEGORIES]
    d = int(rng.integers(1, 6)) if n_columns is None else n_columns
    names = rng.choice(kinds, size=d)
    columns = {f"x{i}": _column(rng, str(kind), groups) for i, kind in enumerate(names)}
    threshold = float(rng.choice([0.5, 0.5, 0.1, 0.9, 1e-6]))
    score = _scores(rng, n, groups, threshold)
    X = pd.DataFrame(columns).assign(score=score)
    return HostileTable(X, _labels(rng, score, groups), groups, _weights(rng, n), threshold)


def _groups(rng: np.random.Generator, n: int) -> NDArray[np.str_]:
    shares = ([0.5, 0.5], [0.9, 0.1], [0.4, 0.3, 0.3], [0.6, 0.38, 0.01, 0.01])[rng.integers(4)]
    return rng.choice(list("abcd")[: len(shares)], size=n, p=shares)


NUMBERS = ("normal", "constant", "huge", "tiny", "steps", "gaps", "proxy", "outlier")
CATEGORIES = ("words", "rare words", "flags")


def _column(rng: np.random.Generator, kind: str, groups: NDArray[np.str_]) -> Any:
    n = len(groups)
    normal = rng.normal(size=n)
    words = np.array(["north", "süd", "", "east 'x'"])
    columns: dict[str, Any] = {
        "normal": normal,
        "constant": np.full(n, 7.0),
        "huge": normal * 1e12 + 1e15,
        "tiny": normal * 1e-12,
        "steps": np.round(normal),
        "gaps": np.where(rng.random(n) < 0.6, np.nan, normal),
        "proxy": (groups == "a") * 1.0,
        "outlier": np.where(np.arange(n) == 0, 1e9, normal),
        "words": words[rng.integers(4, size=n)],
        "rare words": np.array([f"word {i // 2}" for i in range(n)]),
        "flags": rng.random(n) < 0.5,
    }
    return columns[kind]


def _scores(rng: np.random.Generator, n: int, groups: NDArray[np.str_], threshold: float) -> Floats:
    uniform = rng.random(n)
    edges = np.array([0.0, threshold, np.nextafter(threshold, 1.0), 1.0])
    scores = [
        uniform,
        np.clip(uniform + 0.3 * (groups == "a"), 0.0, 1.0),
        np.round(uniform, 1),
        edges[rng.integers(4, size=n)],
        np.where(groups == "a", 1.0, uniform),
        10.0 ** rng.uniform(-300, 0, size=n),
        np.where(np.arange(n) < n // 2, threshold, np.nextafter(threshold, 1.0)),
    ]
    return scores[rng.integers(len(scores))]


def _labels(rng: np.random.Generator, score: Floats, groups: NDArray[np.str_]) -> NDArray[np.intp]:
    label = (rng.random(len(score)) < score).astype(np.intp)
    kind = rng.integers(5)
    if kind == 0:
        label[groups == "a"] = 1
    elif kind == 1:
        label[groups == "b"] = 0
    elif kind == 2:
        label = (rng.random(len(score)) < 0.02).astype(np.intp)
    label[:2] = 0, 1  # both labels occur
    return label


def _weights(rng: np.random.Generator, n: int) -> Floats:
    kinds = (np.ones(n), rng.integers(0, 3, size=n) * 1.0, 10.0 ** rng.uniform(-6, 6, size=n))
    return kinds[rng.integers(len(kinds))]


def trouble_of(name: str, table: HostileTable, **settings: Any) -> str | None:
    """Return what a method does on a table that it must not do; None if all is well.

    The method may refuse the table with an `InputError`; the result is then `REFUSED`. It must not
    warn of numbers, fail in another way, give a score that is no number, or fall below the exact
    limit.
    """
    X, model = _base_model(name, table)
    threshold = 0.5 if name == TREE_METHOD else table.threshold
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", CommodWarning)
            shared = {"min_group_size": 3, "threshold": threshold, "random_state": 0}
            update: Any = every_method(model, **shared, group_column=GROUP)[name]
            known = update.known_constraints
            update.set_params(constraints=known[len(X) % len(known)], **settings)
            _try(update, X, table)
    except InputError:
        return REFUSED
    except Exception as error:  # what a careless method raises is not known
        return f"{type(error).__name__}: {error}"
    return None


def _base_model(name: str, table: HostileTable) -> tuple[pd.DataFrame, Any]:
    if name == TREE_METHOD:
        X = table.numbers
        return X, DecisionTreeClassifier(max_leaf_nodes=12, random_state=0).fit(X, table.y)
    if name == GROUP_METHOD:
        return table.X.assign(group=table.groups), GroupReader()
    return table.X, ScoreColumn(SCORE)


def _try(update: Any, X: pd.DataFrame, table: HostileTable) -> None:
    """Fit, sweep and decide; weights where the method knows them."""
    assert isinstance(update, Rival)
    half = len(X) // 2
    groups = {"sensitive_features": table.groups}
    sweep = update.default_strengths
    strengths = [0.0, *np.quantile(sweep[1:], np.linspace(0.3, 1.0, N_STRENGTHS)).tolist()]
    new = {"X_eval": X[half:], "y_eval": table.y[half:]}
    frontier(
        update,
        X[:half],
        table.y[:half],
        sensitive_features=table.groups[:half],
        **new,
        sensitive_features_eval=table.groups[half:],
        grid={"strength": strengths},
        describe=False,
    )
    weight = table.weight if update.sample_weights else None
    fitted = update.fit(X, table.y, **groups, sample_weight=weight)
    proba = fitted.predict_proba(X, **(groups if fitted.needs_sensitive_features else {}))
    assert np.isfinite(proba).all(), "a score is not finite"
