"""The paper's protocol: 70/30 splits and a logistic regression on features scaled to [0, 1]."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder
from sklearn.utils import Bunch

from commod import datasets, metrics

N_CONCEPTS = {"Law School": 2, "COMPAS": 5}
LOADERS = {"Law School": datasets.fetch_law_school, "COMPAS": datasets.load_compas}

# Appendix C.3 of the paper: inner edges of its fairness and accuracy quartiles, demographic parity.
PAPER_BASE = {
    "Law School": {"p_rule": 0.2764, "dm": 0.4935, "accuracy": 0.7970},
    "COMPAS": {"p_rule": 0.6310, "dm": 0.2828, "accuracy": 0.6580},
}
FAIRNESS_EDGES = {"Law School": (0.5587, 0.7212, 0.8719), "COMPAS": (0.7345, 0.7695, 0.8058)}
ACCURACY_EDGES = {"Law School": (0.6709, 0.7294, 0.7550), "COMPAS": (0.6242, 0.6391, 0.6537)}
# Table 1 of the paper, rows "COMMOD": (fairness quartile, accuracy quartile) -> share of changes.
PAPER_TABLE_1 = {
    "Law School": {
        (1, 3): 0.07, (1, 4): 0.01, (2, 2): 0.10, (2, 3): 0.08, (3, 2): 0.13, (4, 1): 0.24,
        (4, 2): 0.18,
    },
    "COMPAS": {
        (1, 3): 0.05, (1, 4): 0.01, (2, 2): 0.09, (2, 3): 0.09, (3, 2): 0.05, (4, 1): 0.20,
        (4, 2): 0.06,
    },
}  # fmt: skip

# The same for the other methods, under the names of `commod.rivals.lineup`; None where the paper
# has no model in the cell.
CELLS = ((1, 3), (1, 4), (2, 2), (2, 3), (3, 2), (4, 1), (4, 2))
PAPER_RIVALS = {
    "Law School": {
        "RejectOption": (0.18, 0.08, 0.26, None, None, 0.33, None),
        "LPP (aware)": (None, 0.08, None, 0.12, None, None, None),
        "LPP": (0.11, 0.07, 0.15, None, 0.19, 0.23, 0.21),
        "AdversarialDebiasing": (0.17, 0.12, 0.23, 0.18, 0.28, 0.34, 0.28),
        "FRAPPE": (None, 0.03, 0.16, None, 0.18, 0.24, 0.21),
    },
    "COMPAS": {
        "RejectOption": (0.02, 0.03, None, 0.05, 0.06, None, 0.09),
        "LPP (aware)": (0.02, 0.01, None, 0.03, 0.03, None, 0.06),
        "LPP": (0.08, 0.04, 0.14, 0.12, None, None, None),
        "AdversarialDebiasing": (0.09, 0.07, 0.16, 0.12, 0.14, 0.20, 0.16),
        "FRAPPE": (None, 0.18, 0.24, None, 0.21, 0.28, None),
    },
}


@dataclass(frozen=True)
class Split:
    """One 70/30 split with its fitted base model."""

    model: Any
    train: Bunch
    test: Bunch

    def evaluate(self, decisions: Any) -> dict[str, float]:
        """Return P-rule, DM, accuracy and share of changes of decisions on the test rows."""
        y, groups = self.test.y, {"sensitive_features": self.test.s}
        before = self.model.predict(self.test.X)
        return {
            "p_rule": metrics.p_rule(y, decisions, **groups),
            "dm": metrics.disparate_mistreatment(y, decisions, **groups),
            "accuracy": float(np.mean(decisions == y)),
            "changes": metrics.change_rate(before, decisions),
        }

    def base(self) -> dict[str, float]:
        """Return the figures of the base model on the test rows."""
        return self.evaluate(self.model.predict(self.test.X))


def make_split(name: str, seed: int) -> Split:
    """Return split `seed` of a table, with the base model fitted on its training rows."""
    table = LOADERS[name]()
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
    return Split(model, Bunch(X=X, y=y, s=s), Bunch(X=X_test, y=y_test, s=s_test))


def cell_of(name: str, p_rule: float, accuracy: float, shift: float) -> tuple[int, int]:
    """Return the paper's quartiles of fairness and accuracy, accuracy edges moved by `shift`."""
    edges = np.array(ACCURACY_EDGES[name]) + shift
    return (
        int(np.searchsorted(FAIRNESS_EDGES[name], p_rule, side="right")) + 1,
        int(np.searchsorted(edges, accuracy, side="right")) + 1,
    )


def first_splits(n: int) -> range:
    """Return the splits of a figure: 0..n-1, fewer where the environment says SPLITS=2."""
    return range(min(n, int(os.environ.get("SPLITS", n))))
