"""Decide rows with OxonFair under pairs of constraints, with inferred groups.

The model of the group is fitted on the rows of the base model, as OxonFair's documentation does.
Thresholds are chosen on the fit rows. Called with the rows, the requests and the answer's path.
"""

from __future__ import annotations

import json
import sys
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
from oxonfair import DataDict, FairPredictor
from oxonfair import conditional_group_metrics as cgm
from oxonfair import group_metrics as gm
from sklearn.linear_model import LogisticRegression


def metric_of(name: str) -> Any:
    """Return a metric by name; "conditional." before it means the conditional form."""
    kind, _, conditional = name.partition("conditional.")
    return attrgetter(conditional)(cgm) if conditional else attrgetter(kind)(gm)


def main() -> None:
    """Read rows and requests, choose thresholds for each request, write the decisions."""
    source, requests, target = map(Path, sys.argv[1:])
    rows = np.load(source)
    group_model = LogisticRegression(max_iter=1000).fit(rows["X_own"], rows["s_own"])

    def scores(data: Any) -> Any:
        return np.column_stack([1 - data[:, 0], data[:, 0]])

    def groups(data: Any) -> Any:
        return group_model.predict_proba(data[:, 1:])

    data = {part: np.column_stack([rows[f"score_{part}"], rows[f"X_{part}"]]) for part in PARTS}
    decisions = {}
    for name, request in json.loads(requests.read_text()).items():
        # With base decisions as labels, the most accurate thresholds are those with fewest changes.
        base = (rows["score_fit"] > 0.5).astype(int)
        labels = base if request["keep_base"] else rows["y_fit"]
        known = DataDict(labels, data["fit"], rows["s_fit"], rows["strata_fit"])
        is_hard = request["route"] == "hard"
        update = FairPredictor(scores, known, inferred_groups=groups, use_fast=is_hard)
        (first, bound), *others = [(metric_of(m), b) for m, b in request["bounds"]]
        try:
            update.fit(gm.accuracy, first, bound, additional_constraints=others)
        except IndexError:  # no thresholds satisfy the additional constraint
            continue
        for part in PARTS:
            decisions[f"{name}/{part}"] = np.ravel(update.predict(data[part])) == 1
    np.savez(target, **decisions)


PARTS = ("fit", "test")

if __name__ == "__main__":
    main()
