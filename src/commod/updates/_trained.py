"""Helpers that updates trained by gradients share: seeds, layers, ratio problems, concepts."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit
from sklearn.utils import check_random_state

from commod._data.encoding import Encoding, TermTable
from commod._io.optional import require_jax
from commod._solvers.concepts import Concepts, by_column, tidy_concepts
from commod._solvers.problem import (
    RatioPenalties,
    RatioProblem,
    RatioSchedule,
    TrainedConcepts,
    TrainedLayers,
    solver_position,
    standardise,
    training_margins,
)
from commod._text import shown
from commod.exceptions import InputError
from commod.metrics._constraint import Constraint
from commod.updates._adversaries import adversary_of
from commod.updates._fit_rows import FitRows
from commod.updates._progress import progress_bar

MAX_UNITS = 10_000  # in a hidden layer
MANY_ROWS = 2_000_000  # models · rows from which models are stored by several threads
MAX_THREADS = 4  # each holds a few numbers for every row

Moments = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]


def draw_seeds(models: Sequence[Any]) -> NDArray[np.int64]:
    """Return the seed of each model, drawn from its own `random_state`, shape (m,)."""
    return np.array([check_random_state(model.random_state).randint(2**31 - 1) for model in models])


def check_layers(update: Any, name: str) -> None:
    """Raise InputError unless the sizes of hidden layers are positive whole numbers."""
    value = getattr(update, name)
    is_list = isinstance(value, Sequence) and not isinstance(value, str | bytes)
    sizes = value if is_list else [None]
    if not all((type(n) is int or isinstance(n, np.integer)) and n > 0 for n in sizes):
        raise InputError(
            f"{name}={shown(value)} must be a tuple or list of the sizes of the hidden layers, "
            "such as (32,) or (64, 32, 16).",
            parameter=name,
        )
    if max(sizes, default=0) > MAX_UNITS:  # a larger layer could end the process without an error
        raise InputError(
            f"{name}={shown(value)} asks for a layer of over {MAX_UNITS:,} units, which is the "
            "most.",
            parameter=name,
        )


def safe_moments(terms: TermTable, weight: NDArray[np.float64]) -> Moments:
    """Return mean and scale of each term, and whether it varies, all of shape (d,).

    A term that does not vary cannot be learned; its scale is 1.
    """
    mean, scale = terms.moments(weight)
    return mean, np.where(scale > 0, scale, 1.0), scale > 0


def readable_concepts(
    trained: Concepts,
    encoding: Encoding,
    terms: TermTable,
    weight: NDArray[np.float64],
    *,
    whole_columns: bool,
    moments: Moments | None = None,
) -> Concepts:
    """Return trained concepts in the order of the encoding's terms, with exact zeros.

    `whole_columns` puts each raw column into one concept; the ratio is the same either way.
    `moments` are the `safe_moments` of the terms, where the caller knows them.
    """
    _, scale, varies = moments or safe_moments(terms, weight)
    concepts = tidy_concepts(
        trained.weights[:, solver_position(terms)] * varies,
        trained.contributions,
        trained.intercept,
    )
    return by_column(concepts, encoding, terms, scale, weight) if whole_columns else concepts


def ratio_problem(
    rows: FitRows,
    terms: TermTable,
    moments: Moments,
    distance_weight: NDArray[np.float64],
    constraints: Sequence[Constraint],
) -> RatioProblem:
    """Return the numbers that the training of a ratio needs, in float32."""
    base = rows.base.for_positive
    label = base.scores if rows.label is None else rows.label.astype(np.float64)
    margin = training_margins(base.scores, base.threshold)
    unit = rows.weight.mean()  # float32 sums stay well scaled whatever the unit of the weights
    single = np.float32
    return RatioProblem(
        **vars(standardise(terms, rows.weight, moments[:2])),
        margin=margin.astype(single),
        label=label.astype(single),
        group=rows.groups.codes.astype(np.int32),
        weight=(rows.weight / unit).astype(single),
        ratio_weight=(distance_weight / unit).astype(single),
        offset=float(logit(base.threshold)),
        n_groups=len(rows.groups.labels),
        adversaries=tuple(
            adversary_of(constraint, rows.strata_of(constraint), rows, label, rows.weight / unit)
            for constraint in constraints
        ),
    )


def train_ratios(
    models: Sequence[Any], problem: RatioProblem, schedule: RatioSchedule
) -> TrainedConcepts | TrainedLayers:
    """Return the ratios of all models, trained in one computation, each with its own lambdas."""
    require_jax("COMMOD")
    from commod._solvers.training import adversarial  # JAX is loaded by the first fit, never before

    penalties = RatioPenalties(
        *(
            np.array([getattr(model, f"lambda_{name}") for model in models], dtype=np.float32)
            for name in ("fair", "ratio", "sparsity", "diversity")
        )
    )
    first, seeds = models[0], draw_seeds(models)
    unseeded = [model.random_state is None for model in models]
    # models without a seed see the rows in one order, so that a GPU can train them together
    seeds[unseeded] = seeds[unseeded][:1]
    with progress_bar("COMMOD", first.progress) as report:
        return adversarial.train_ratio(problem, penalties, seeds, schedule, report)


def call_all(stores: list[Callable[[], None]], n_rows: int) -> None:
    """Call each function; by several threads where NumPy, which lets them run, does the work."""
    if len(stores) * n_rows < MANY_ROWS:
        for store in stores:
            store()
        return
    pool = ThreadPoolExecutor(min(MAX_THREADS, os.cpu_count() or 1))
    try:
        for future in [pool.submit(store) for store in stores]:
            future.result()
    finally:
        pool.shutdown(cancel_futures=True)
