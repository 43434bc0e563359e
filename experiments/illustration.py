"""The illustrative explanation: COMMOD with two concepts on COMPAS, near the paper's P-rule."""

from __future__ import annotations

from typing import Any

import pandas as pd

from commod import explain, frontier
from experiments.methods import make
from experiments.paper import COMPAS, DP, ILLUSTRATION, ILLUSTRATION_BASE
from experiments.protocol import make_split, quietly
from experiments.run import Cell, Done
from experiments.settings import Settings

GRID = {"lambda_fair": [1.4, 2.0, 3.0, 4.5, 7.0, 10.0], "lambda_ratio": [0.05, 0.1]}
SHORT = {"lambda_fair": [2.0, 4.5], "lambda_ratio": [0.1]}


def cells(settings: Settings) -> list[Cell]:
    """Return one cell per split; the first one's explanation is shown."""
    grid = SHORT if settings.name == "quick" else GRID
    return [
        Cell("illustration", {"split": split, "grid": grid}, 32)
        for split in range(settings.few_splits)
    ]


def compute(split: int, grid: dict[str, Any]) -> list[dict[str, Any]]:
    """Return figures, concepts and points of the update nearest to the paper's P-rule."""
    rows = make_split(COMPAS, split)
    update = make("COMMOD", rows, DP, n_concepts=2)
    with quietly():
        curve = frontier(update, **rows.fit_rows, **rows.test_rows, grid=grid, describe=False)
        frame = curve.frame()
        nearest = frame.loc[(frame["fairness"] - ILLUSTRATION["p_rule"]).abs().idxmin()]
        knobs = {name: float(nearest[name]) for name in grid}
        update.set_params(**knobs).fit(rows.train.X, rows.train.y, sensitive_features=rows.train.s)
        explanation = explain(update, rows.test.X)
    reached = rows.evaluate(update.predict(rows.test.X))
    base = {f"base_{name}": value for name, value in rows.base().items()}
    records: list[dict[str, Any]] = [{"kind": "reached", **knobs, **reached, **base}]
    for concept in explanation.card.concepts:
        records.append(
            {
                "kind": "concept",
                "concept": concept.number,
                "contribution": concept.contribution,
                "n_active": concept.n_active,
                "change_if_active": concept.change_if_active.value,
                "change_if_inactive": concept.change_if_inactive.value,
            }
        )
        records += [
            {"kind": "point", **vars(line), "concept": concept.number} for line in concept.lines
        ]
    return records


def tables(done: Done, settings: Settings, sweeps: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return the figures reached with the paper's, and the concepts of the first split."""
    records = done.frame(cells(settings)).drop(columns="grid")
    reached = records[records["kind"] == "reached"].dropna(axis=1, how="all")
    paper = {"p_rule": "p_rule", "accuracy": "accuracy", "changes": "change_rate"}
    summary = [
        {
            "figure": name,
            "mean": reached[name].mean(),
            "sd": reached[name].std(),
            "first_split": reached[name].iloc[0],
            "base": reached[f"base_{name}"].mean(),
            "n_splits": len(reached),
            "paper": ILLUSTRATION[theirs],
            "paper_base": ILLUSTRATION_BASE.get(theirs, 0.0),
        }
        for name, theirs in paper.items()
    ]
    first = records[records["split"] == 0]
    parts = {
        kind: first[first["kind"] == kind].dropna(axis=1, how="all").drop(columns="kind")
        for kind in ("concept", "point")
    }
    return {
        "illustration_runs": reached.drop(columns="kind"),
        "illustration": pd.DataFrame(summary),
        "illustration_concepts": parts["concept"],
        "illustration_points": parts["point"],
    }
