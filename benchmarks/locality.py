"""Locality: how well a small tree tells who changed, COMMOD beside its rivals, as in the paper.

Demographic parity, the first five splits on which every method has an update to compare. Of each
sweep the update is taken that lies, on the test rows, in the same band of the P-rule and nearest
the same accuracy: the highest that every method has in the band. The F1 score is that of a tree on
the raw columns, grown and scored on the test rows (as the paper's), and grown on the training rows
and scored on the test rows.
"""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import numpy as np
from protocol import LOADERS, N_CONCEPTS, Split, first_splits, make_split
from report import show
from sklearn.metrics import f1_score
from sklearn.tree import DecisionTreeClassifier

from commod import frontier
from commod._inputs import read_columns
from commod.exceptions import CommodWarning
from commod.metrics import change_locality
from commod.metrics._changes import _tree_table
from commod.rivals import lineup

METHODS = ("COMMOD", "ControlledDebiaser", "FRAPPE", "AdversarialDebiasing")
BAND = (0.75, 0.85)
DEPTHS = (1, 2, 3, 4, 5, 6, 8)


def locality() -> None:
    """Print the F1 scores by depth, and what the updates they belong to reach."""
    for name in LOADERS:
        found = (run for seed in itertools.count() if (run := _of_split(name, seed)))
        runs = list(itertools.islice(found, len(first_splits(5))))
        for method in METHODS:
            reached = np.mean([run[method]["reached"] for run in runs], axis=0)
            show(
                f"{name}: {method}, mean of {len(runs)} splits",
                "P-rule {:.3f}, accuracy {:.3f}, changes {:.3f}".format(*reached),
            )
        for kind in ("same rows", "new rows"):
            for depth, scores in _by_depth(runs, kind).items():
                parts = [f"{m} {np.mean(v):.2f} ± {np.std(v):.2f}" for m, v in scores.items()]
                best_rival = max(np.mean(scores[m]) for m in METHODS[2:])
                ours = np.mean(scores["COMMOD"])
                show(f"{name}: F1 at depth {depth}, {kind}", ", ".join(parts))
                show("  COMMOD above FRAPPE and AdvDebias", f"{ours - best_rival:+.2f}")


def _by_depth(runs: list[dict[str, Any]], kind: str) -> dict[int, dict[str, list[float]]]:
    return {
        depth: {method: [run[method][kind][i] for run in runs] for method in METHODS}
        for i, depth in enumerate(DEPTHS)
    }


def _of_split(name: str, seed: int) -> dict[str, Any] | None:
    """Return what each method's update reaches and its F1 scores; None where one has none."""
    split = make_split(name, seed)
    methods = lineup(split.model, random_state=seed)
    methods["COMMOD"].set_params(n_concepts=N_CONCEPTS[name])
    curves = {method: _curve(methods[method], split) for method in METHODS}
    frames = {method: curve.frame() for method, curve in curves.items()}
    inside = {m: f[f["fairness"].between(*BAND)] for m, f in frames.items()}
    empty = [method for method, frame in inside.items() if not len(frame)]
    if empty:
        show(f"{name}, split {seed}: left out", f"no P-rule in {BAND}: {', '.join(empty)}")
        return None
    anchor = min(frame["accuracy"].max() for frame in inside.values())
    run = {}
    for method, frame in inside.items():
        best = (frame["accuracy"] - anchor).abs().idxmin()
        update = curves[method]._points[best].fitted()
        reached = frame.loc[best, ["fairness", "accuracy", "change_rate"]].to_numpy(float)
        run[method] = {"reached": reached, **_scores(update, split)}
    return run


def _curve(update: Any, split: Split) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CommodWarning)
        return frontier(
            update.set_params(progress=False) if "progress" in update.get_params() else update,
            split.train.X,
            split.train.y,
            sensitive_features=split.train.s,
            X_eval=split.test.X,
            y_eval=split.test.y,
            sensitive_features_eval=split.test.s,
        )


def _scores(update: Any, split: Split) -> dict[str, list[float]]:
    X, X_test = split.train.X, split.test.X
    changed = [split.model.predict(rows) != update.predict(rows) for rows in (X, X_test)]
    # one table for both: a category has the same column in each
    both = _tree_table(read_columns(_stacked(X, X_test)))
    tables = both[: len(X)], both[len(X) :]
    before, after = np.zeros(len(X_test), int), changed[1].astype(int)
    same = [change_locality(X_test, before, after, max_depth=depth) for depth in DEPTHS]
    new = []
    for depth in DEPTHS:
        tree = DecisionTreeClassifier(max_depth=depth, random_state=0).fit(tables[0], changed[0])
        new.append(float(f1_score(changed[1], tree.predict(tables[1]), zero_division=0)))
    return {"same rows": same, "new rows": new}


def _stacked(first: Any, second: Any) -> Any:
    import pandas as pd

    return pd.concat([first, second], ignore_index=True)
