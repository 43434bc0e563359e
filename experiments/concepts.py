"""Sparsity and redundancy of concepts against the share of changes: COMMOD and FRAPPE.

Both have two concepts and the same linear architecture on Law School. FRAPPE has no loss on its
concepts, so its penalties are 0. Concepts are measured as trained. The library shows another
factorisation of the same ratio, a partition by column; it has no redundancy by construction.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from experiments.concept_metrics import concept_redundancy, concept_sparsity
from experiments.methods import AS_IN_PAPER, label_of, make
from experiments.paper import DP, LAW_SCHOOL
from experiments.protocol import make_split, quietly
from experiments.run import Cell, Done
from experiments.settings import Settings

TRAINED = {"n_concepts": 2, "training": {"concepts_by_column": False}}
FRAPPES = {"n_concepts": 2, "concepts_by_column": False, "architecture": "concepts"}
PARTITION = "COMMOD, as shown"
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "COMMOD": ("COMMOD", TRAINED),
    AS_IN_PAPER: (AS_IN_PAPER, TRAINED),
    PARTITION: ("COMMOD", {"n_concepts": 2}),
    "FRAPPE": ("FRAPPE", {**FRAPPES, "lambda_sparsity": 0.0, "lambda_diversity": 0.0}),
    "FRAPPE, with COMMOD's concept losses": ("FRAPPE", FRAPPES),
}
POINTS = {
    "COMMOD": [
        {"lambda_fair": fair, "lambda_ratio": ratio}
        for fair in (0.5, 0.7, 1.0, 1.4, 2.0, 3.0, 4.5, 7.0)
        for ratio in (0.05, 0.2)
    ],
    AS_IN_PAPER: [
        {"lambda_fair": fair, "lambda_ratio": 0.1} for fair in (1.0, 1.5, 2.0, 3.0, 4.5, 7.0)
    ],
    "FRAPPE": [{"strength": 2.0**i} for i in range(-3, 6)],
}
LABELS = {
    "COMMOD": f"{label_of('COMMOD')}, as trained",
    AS_IN_PAPER: f"{label_of(AS_IN_PAPER)}, as trained",
    PARTITION: f"{label_of('COMMOD')}, partition by column",
}
BINS = (0.0, 0.05, 0.1, 0.15, 0.2, 0.3)  # of the share of changes


def cells(settings: Settings) -> list[Cell]:
    """Return one cell per kind and split."""
    n = 2 if settings.name == "quick" else None  # points of the sweep
    return [
        Cell("concepts", {"kind": kind, "split": split, "n_points": n}, 15)
        for kind in KINDS
        for split in range(settings.few_splits)
    ]


def compute(kind: str, split: int, n_points: int | None) -> list[dict[str, Any]]:
    """Return sparsity and redundancy of every update of a sweep."""
    rows = make_split(LAW_SCHOOL, split)
    method, settings = KINDS[kind]
    records = []
    for point in POINTS[method][-n_points if n_points else None :]:
        update = make(method, rows, DP, **settings, **point)
        with quietly():
            update.fit(rows.train.X, rows.train.y, sensitive_features=rows.train.s)
        records.append(
            {
                **point,
                **rows.evaluate(update.predict(rows.test.X)),
                "sparsity": concept_sparsity(update.concept_weights_),
                "redundancy": concept_redundancy(update.concept_weights_),
                "total_sparsity": concept_sparsity(
                    (update.concept_contributions_ @ update.concept_weights_)[None]
                ),
            }
        )
    return records


def tables(done: Done, settings: Settings, sweeps: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return the runs, and means per bin of the share of changes."""
    runs = done.frame(cells(settings)).drop(columns="n_points")
    changed = runs[runs["changes"] > 0]
    bins = pd.cut(changed["changes"], [*BINS, np.inf], labels=[*BINS])
    grouped = changed.groupby(["kind", bins.astype(float)], sort=False)
    summary = grouped.agg(
        sparsity=("sparsity", "mean"),
        sparsity_sd=("sparsity", "std"),
        redundancy=("redundancy", "mean"),
        redundancy_sd=("redundancy", "std"),
        total_sparsity=("total_sparsity", "mean"),
        n_updates=("changes", "size"),
        mean_changes=("changes", "mean"),
    )
    summary = summary.reset_index().rename(columns={"changes": "changes_from"})
    return {"concept_runs": runs, "concepts": summary.sort_values(["kind", "changes_from"])}
