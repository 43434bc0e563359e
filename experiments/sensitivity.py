"""Sensitivity: how far base model and lambdas explain fairness, accuracy and changes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from sklearn.linear_model import LinearRegression

from experiments.methods import make, measured
from experiments.paper import COMPAS, DP, LAW_SCHOOL, R_SQUARED
from experiments.protocol import make_split, quietly
from experiments.run import Cell, Done
from experiments.settings import Settings

INPUTS = ["base_fairness", "base_accuracy", "lambda_ratio", "lambda_fair"]
WEIGHTS = {
    "adaptive": True,
    "constant": False,
}  # this library's, and the paper's
SECONDS = {LAW_SCHOOL: 14, COMPAS: 32}
BOTH = "both tables"


def cells(settings: Settings) -> list[Cell]:
    """Return one cell per table, kind of weight and seed: a split, its base model, a grid."""
    grid = {name: list(values) for name, values in settings.sensitivity_grid.items()}
    return [
        Cell("sensitivity", {"table": table, "weight": weight, "seed": seed, "grid": grid}, seconds)
        for table, seconds in SECONDS.items()
        for weight in WEIGHTS
        for seed in range(settings.sensitivity_seeds)
    ]


def compute(table: str, weight: str, seed: int, grid: dict[str, Any]) -> list[dict[str, Any]]:
    """Return COMMOD's figures at each point of the grid; the seed also seeds the training."""
    rows = make_split(table, seed)
    training = {"adaptive_fairness": WEIGHTS[weight]}
    update = make("COMMOD", rows, DP, training=training, random_state=seed)
    with quietly():
        return measured(update, rows, grid)


def tables(done: Done, settings: Settings, sweeps: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return the runs, and the regressions with coefficients and coefficients of determination."""
    runs = done.frame(cells(settings)).drop(columns="grid")
    parts = [
        (str(table), str(weight), part)
        for (table, weight), part in runs.groupby(["table", "weight"])
    ]
    parts += [(BOTH, str(weight), part) for weight, part in runs.groupby("weight")]
    records = [
        regression(part, outcome) | {"table": table, "weight": weight, "paper": paper}
        for table, weight, part in parts
        for outcome, paper in R_SQUARED.items()
    ]
    regressions, keys = pd.DataFrame(records), ["table", "weight"]
    return {
        "sensitivity_runs": runs,
        "sensitivity": regressions[[*keys, *regressions.columns.drop(keys)]],
    }


def regression(runs: pd.DataFrame, outcome: str) -> dict[str, Any]:
    """Return the coefficients of the paper's regression and several versions of its R².

    - `r2`: the usual one.
    - `r2_uncentred`: divides by the sum of squares about 0 instead of about the mean, as
      regressions without an intercept report it.
    - `r2_means`: the usual one, for the means over seeds at each point of the grid, explained by
      the lambdas.
    - `r2_seeds`: with an effect of each seed instead of the base model's two figures.
    - `seed_share`: the share of the residual sum of squares that lies between seeds, that is,
      between splits.
    - `unchanged`: the share of runs that change nobody.
    """
    known = runs.dropna(subset=[outcome])
    X, y = known[INPUTS].to_numpy(), known[outcome].to_numpy()
    model = LinearRegression().fit(X, y)
    residual = known[outcome] - model.predict(X)
    squares = float((residual**2).sum())
    between = residual.groupby([known["table"], known["seed"]]).transform("mean")
    means = known.groupby(["lambda_fair", "lambda_ratio"])[outcome].mean().reset_index()
    lambdas = means[["lambda_ratio", "lambda_fair"]].to_numpy()
    by_lambda = LinearRegression().fit(lambdas, means[outcome])
    return {
        "outcome": outcome,
        "n_runs": len(known),
        "r2": 1 - squares / float(((y - y.mean()) ** 2).sum()),
        "r2_uncentred": 1 - squares / float((y**2).sum()),
        "r2_means": by_lambda.score(lambdas, means[outcome]),
        "r2_seeds": _with_seed_effects(known, outcome),
        "intercept": float(model.intercept_),
        **dict(zip((f"b_{name}" for name in INPUTS), model.coef_.tolist(), strict=True)),
        "unchanged": float((known["change_rate"] == 0).mean()),
        "seed_share": float((between**2).sum() / squares) if squares > 0 else np.nan,
        "residual_sd": float(np.sqrt(squares / max(len(y) - len(INPUTS) - 1, 1))),
    }


def _with_seed_effects(runs: pd.DataFrame, outcome: str) -> float:
    """Return R² of the lambdas and one effect per split, which stands for its base model."""
    split = runs["table"].astype(str) + runs["seed"].astype(str)
    X = pd.get_dummies(split).assign(fair=runs["lambda_fair"], ratio=runs["lambda_ratio"])
    return float(LinearRegression().fit(X, runs[outcome]).score(X, runs[outcome]))
