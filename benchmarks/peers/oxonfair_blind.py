"""Decide test rows with OxonFair: thresholds by group, the group inferred or given."""

from __future__ import annotations

import sys

import numpy as np
from oxonfair import DataDict, FairPredictor
from oxonfair import group_metrics as gm
from sklearn.linear_model import LogisticRegression


def main() -> None:
    """Read rows, ask for the best accuracy at a P-rule of 0.8, write the decisions."""
    variant, source, target = sys.argv[1:]
    rows = np.load(source)
    X, y, s = rows["X"], rows["y"], rows["s"]
    model = LogisticRegression(max_iter=1000).fit(X, y)
    inferred = LogisticRegression(max_iter=1000).fit(X, s) if variant == "inferred" else False
    update = FairPredictor(model, DataDict(y, X, s), inferred_groups=inferred)
    update.fit(gm.accuracy, gm.disparate_impact, 0.8)
    new = rows["X_test"]
    if variant == "given":
        new = DataDict(
            np.zeros(len(new)), new, rows["s_test"]
        )  # OxonFair requires labels but does not use them here
    np.save(target, np.asarray(update.predict(new), dtype=float).ravel())


if __name__ == "__main__":
    main()
