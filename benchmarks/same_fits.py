"""Compare seeded fits with stored fits: a refactoring must not change a decision or a point.

`python benchmarks/same_fits.py` fits every case and compares it with `same_fits.json`: decisions
must be identical, points and scores equal to 1e-12. `--write` stores the results of this commit.
Training in JAX rounds differently on another processor, so store and compare on one machine.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils import get_tags

from commod import COMMOD, ControlledDebiaser, frontier
from commod.datasets import load_compas, make_biased
from commod.rivals import (
    FRAPPE,
    LPP,
    AdversarialDebiasing,
    BayesPlugIn,
    MinimalFlip,
    RejectOption,
    RelaxedThresholdOptimizer,
)

STORED = Path(__file__).with_name("same_fits.json")
TOLERANCE = 1e-12


class FitRows(NamedTuple):
    """A fitted base model and the rows that an update is fitted on."""

    model: Any
    X: pd.DataFrame
    y: Any
    groups: Any
    weight: Any = None


def base_model(X: pd.DataFrame, y: Any) -> Any:
    """Return a logistic regression on scaled numbers and one-hot categories."""
    columns = make_column_transformer(
        (StandardScaler(), make_column_selector(dtype_include="number")),
        (
            OneHotEncoder(handle_unknown="ignore"),
            make_column_selector(dtype_exclude="number"),
        ),
    )
    return make_pipeline(columns, LogisticRegression(max_iter=1000)).fit(X, y)


def compas(n: int = 1500) -> FitRows:
    """Return rows of COMPAS that are new to the model."""
    bunch = load_compas()
    order = np.random.RandomState(0).permutation(len(bunch.data))
    X, y, groups = bunch.data, np.asarray(bunch.target), np.asarray(bunch.sensitive_features)
    train, new = order[:2000], order[2000 : 2000 + n]
    return FitRows(base_model(X.iloc[train], y[train]), X.iloc[new], y[new], groups[new])


def biased(n: int, *, shares: tuple[float, ...] = (0.7, 0.3), weighted: bool = False) -> FitRows:
    """Return rows of a synthetic population with two or more groups."""
    rows = make_biased(n + 500, group_shares=shares, bias=1.5, n_categories=6, random_state=3)
    X, y, groups = rows.data, rows.target, rows.sensitive_features
    weight = np.random.RandomState(5).uniform(0.5, 2.0, n) if weighted else None
    return FitRows(base_model(X[:500], y[:500]), X[500:], y[500:], groups[500:], weight)


def controlled(rows: Callable[[], FitRows], **params: Any) -> Callable[[], dict[str, Any]]:
    """Return a case that fits ControlledDebiaser."""
    return lambda: fit(ControlledDebiaser, rows(), **params)


def fit(method: Any, rows: FitRows, **params: Any) -> dict[str, Any]:
    """Fit a method with a seed; return its decisions and, if it has a scorecard, its points."""
    if "random_state" in method(rows.model).get_params():
        params["random_state"] = 0
    update = method(rows.model, **params)
    weight = {} if rows.weight is None else {"sample_weight": rows.weight}
    update.fit(rows.X, rows.y, sensitive_features=rows.groups, **weight)
    by_group = {}
    if get_tags(update).needs_sensitive_features:
        by_group = {"sensitive_features": rows.groups}
    decisions = update.predict(rows.X, **by_group)
    scores = update.predict_proba(rows.X, **by_group)[:, 1]
    return result(update, decisions, scores)


def result(update: Any, decisions: Any, scores: Any) -> dict[str, Any]:
    """Return the digest of the decisions and the numbers of a fit."""
    digest = hashlib.sha256(np.packbits(np.asarray(decisions) == 1).tobytes()).hexdigest()
    numbers = {"scores": [float(scores.mean()), float(scores.std())]}
    if hasattr(update, "concept_weights_"):
        total = update.concept_contributions_ @ update.concept_weights_
        numbers["points"] = [float(update.intercept_), *map(float, total)]
    return {"decisions": digest, "numbers": numbers}


def frontier_fits() -> dict[str, Any]:
    """Return the figures of a whole trade-off."""
    rows = biased(900)
    curve = frontier(
        ControlledDebiaser(rows.model),
        rows.X,
        rows.y,
        sensitive_features=rows.groups,
        targets=[0.5, 0.6, 0.7, 0.8, 0.9],
    )
    frame = curve.frame()[["fairness", "accuracy", "change_rate", "n_changes"]]
    digest = hashlib.sha256(frame["n_changes"].to_numpy(np.int64).tobytes()).hexdigest()
    return {"decisions": digest, "numbers": {"curve": frame.to_numpy(float).ravel().tolist()}}


CASES: dict[str, Callable[[], dict[str, Any]]] = {
    "ControlledDebiaser, demographic parity": controlled(compas, target=0.8),
    "ControlledDebiaser, equalized odds": controlled(
        compas, constraints="equalized_odds", target=0.1
    ),
    "ControlledDebiaser, true positive rates": controlled(
        compas, constraints="true_positive_rate_parity", target=0.05
    ),
    "ControlledDebiaser, false positive rates": controlled(
        compas, constraints="false_positive_rate_parity", target=0.05
    ),
    "ControlledDebiaser, three groups": controlled(
        lambda: biased(900, shares=(0.5, 0.3, 0.2)), target=0.85
    ),
    "ControlledDebiaser, three groups, equalized odds, weights": controlled(
        lambda: biased(900, shares=(0.5, 0.3, 0.2), weighted=True),
        constraints="equalized_odds",
        target=0.2,
    ),
    "ControlledDebiaser, weights, gains only": controlled(
        lambda: biased(900, weighted=True), target=0.8, direction="gains_only"
    ),
    "ControlledDebiaser, many rows": controlled(lambda: biased(60_000), target=0.8),
    "ControlledDebiaser, whole numbers": controlled(
        lambda: biased(900), target=0.8, points="integers"
    ),
    "ControlledDebiaser, a budget": controlled(
        lambda: biased(900), target=None, max_changes=0.03, monotone={"x0": 1}
    ),
    "ControlledDebiaser, out of reach": controlled(
        lambda: biased(900), target=0.95, max_changes=0.05, max_accuracy_loss=0.01
    ),
    "ControlledDebiaser, confidence": controlled(lambda: biased(4000), target=0.7, confidence=0.9),
    "Frontier": frontier_fits,
    "COMMOD": lambda: fit(COMMOD, biased(900), epochs=20),
    "COMMOD, equalized odds": lambda: fit(
        COMMOD, compas(900), constraints="equalized_odds", epochs=10
    ),
    "FRAPPE": lambda: fit(FRAPPE, biased(900), epochs=10),
    "AdversarialDebiasing": lambda: fit(
        AdversarialDebiasing, biased(900), constraints="equalized_odds", epochs=5
    ),
    "LPP": lambda: fit(LPP, biased(900)),
    "LPP, equalized odds": lambda: fit(LPP, biased(900), constraints="equalized_odds"),
    "BayesPlugIn": lambda: fit(BayesPlugIn, biased(900)),
    "BayesPlugIn, equalized odds": lambda: fit(
        BayesPlugIn, biased(900), constraints="equalized_odds"
    ),
    "MinimalFlip": lambda: fit(MinimalFlip, biased(900)),
    "RejectOption": lambda: fit(
        RejectOption, biased(900), constraints="false_positive_rate_parity", strength=0.1
    ),
    "RelaxedThresholdOptimizer": lambda: fit(
        RelaxedThresholdOptimizer, biased(900), constraints="equalized_odds", strength=0.5
    ),
}


def differences(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """Return the differences between two results of one case as sentences."""
    wrong = [] if before["decisions"] == after["decisions"] else ["other decisions"]
    for name, values in before["numbers"].items():
        old, new = np.array(values, dtype=float), np.array(after["numbers"][name], dtype=float)
        if old.shape != new.shape:
            wrong.append(f"{len(new)} {name} instead of {len(old)}")
        elif not np.allclose(old, new, rtol=0, atol=TOLERANCE, equal_nan=True):
            wrong.append(f"{name} differ by up to {np.nanmax(np.abs(old - new)):.1e}")
    return wrong


def main() -> int:
    """Fit every case, then store the results or compare them with the stored ones."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="store the results of this commit")
    parser.add_argument("cases", nargs="*", help="parts of the names of cases; default: all cases")
    options = parser.parse_args()
    stored = json.loads(STORED.read_text()) if STORED.exists() else {}
    n_different = 0
    for name, case in CASES.items():
        if options.cases and not any(part in name for part in options.cases):
            continue
        started = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            after = case()
        if options.write:
            stored[name] = after
            verdict = "stored"
        else:
            wrong = differences(stored[name], after)
            n_different += bool(wrong)
            verdict = "; ".join(wrong) or "the same"
        print(f"{name}: {verdict} ({time.perf_counter() - started:.1f} s)", flush=True)
    if options.write:
        STORED.write_text(json.dumps(stored, indent=1) + "\n")
    return 1 if n_different else 0


if __name__ == "__main__":
    sys.exit(main())
