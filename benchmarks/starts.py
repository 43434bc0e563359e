"""How COMMOD's training starts: the tables of docs/decisions/0002 about `init` and its scale.

The scale is chosen on splits from 100 on. All other figures of the project are measured on splits
from 0 on.
"""

from __future__ import annotations

import itertools
from unittest import mock

import numpy as np
from experiments.concept_metrics import concept_redundancy
from protocol import N_CONCEPTS, TABLES, first_splits, make_split
from report import show
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder

from commod import COMMOD
from commod._solvers.problem import INITS
from commod._solvers.training import networks
from commod.datasets import load_compas
from commod.updates.commod import fit_grid

FIRST_SPLIT = 100  # no other figure is measured on splits from here on
N_SPLITS = 3
SCALES = (0.01, 0.3, 1.0, 2.0)
LEVELS = (0.7, 0.8)
POINTS = [
    {"lambda_fair": fair, "lambda_ratio": ratio}
    for fair, ratio in itertools.product((0.5, 0.7, 1.0, 1.4, 2.0, 3.0, 4.5, 7.0), (0.05, 0.2))
]


def starts() -> None:
    """Print both tables."""
    _seeds()
    for name in TABLES:
        for scale in SCALES:
            runs = [scale_run(name, FIRST_SPLIT + i, scale) for i in first_splits(N_SPLITS)]
            show_scale(name, scale, runs)


def _seeds() -> None:
    """Print P-rule and changes of four seeds on the fit rows, from either start."""
    people = load_compas()
    X = people.data.drop(columns="c_charge_desc")
    parts = train_test_split(
        X, people.target, people.sensitive_features, test_size=0.3, random_state=0
    )
    X_model, X_fit, y_model, y_fit, _, groups = parts
    numbers = (MinMaxScaler(), make_column_selector(dtype_include="number"))
    categories = (OneHotEncoder(), make_column_selector(dtype_exclude="number"))
    encode = make_column_transformer(numbers, categories)
    model = make_pipeline(encode, LogisticRegression(max_iter=1000)).fit(X_model, y_model)
    seeds = [{"random_state": seed} for seed in range(4)]
    for adaptive, init in itertools.product((False, True), reversed(INITS)):
        update = COMMOD(
            model,
            lambda_fair=5,
            lambda_ratio=0.05,
            training={"init": init, "adaptive_fairness": adaptive, "progress": False},
        )
        models = fit_grid(update, seeds, X_fit, y_fit, sensitive_features=groups)
        show(
            f"COMPAS without charges, {len(X_fit)} fit rows, init={init!r}, "
            f"adaptive_fairness={adaptive}: seeds 0..3",
            ", ".join(f"{m.fairness_:.2f} / {m.change_rate_:.1%}" for m in models),
            f"base P-rule {models[0].base_fairness_:.2f}",
        )


def scale_run(name: str, seed: int, scale: float) -> dict[str, float]:
    """Return changes at levels of P-rule (test rows) and redundancy, for one scale of the start.

    The update at a level is chosen on the fit rows: the one with the fewest changes that reaches
    the level there. Redundancy and the mean |cosine| are those of concepts as trained, without a
    penalty for diversity.
    """
    split = make_split(name, seed)
    fit = {"X": split.train.X, "y": split.train.y, "sensitive_features": split.train.s}
    update = COMMOD(
        split.model,
        n_concepts=N_CONCEPTS[name],
        random_state=0,
        training={"concepts_by_column": False, "progress": False},
    )
    with mock.patch.object(networks, "INITIAL_SCALE", scale):
        models = fit_grid(update, POINTS, **fit)
        free = fit_grid(update, [{"lambda_diversity": 0.0}], **fit)[0]
    figures: dict[str, float] = {}
    for level in LEVELS:
        reaching = [m for m in models if m.fairness_ >= level]
        best = min(reaching, key=lambda m: m.change_rate_, default=None)
        test = {} if best is None else split.evaluate(best.predict(split.test.X))
        for figure in ("changes", "p_rule", "accuracy"):
            figures[f"{figure} at {level}"] = test.get(figure, np.nan)
    weights = free.concept_weights_
    pairs = np.triu_indices(len(weights), 1)
    figures["redundancy"] = concept_redundancy(weights)
    figures["cosine"] = float(np.abs(weights @ weights.T)[pairs].mean())
    figures["redundancy by default"] = float(
        np.mean([concept_redundancy(m.concept_weights_) for m in models])
    )
    return figures


def show_scale(name: str, scale: float, runs: list[dict[str, float]]) -> None:
    """Print the means over splits for one scale."""
    mean = {figure: np.nanmean([run[figure] for run in runs]) for figure in runs[0]}
    at_levels = "; ".join(
        f"{level}: {mean[f'changes at {level}']:.1%}, {mean[f'p_rule at {level}']:.2f}, "
        f"{mean[f'accuracy at {level}']:.3f}"
        for level in LEVELS
    )
    show(
        f"{name}, {len(runs)} splits from {FIRST_SPLIT}, scale {scale:g}: redundancy",
        f"{mean['redundancy']:.2f} (cosine {mean['cosine']:.2f})",
        f"{mean['redundancy by default']:.2f} by default; changes, P-rule, accuracy at {at_levels}",
    )
