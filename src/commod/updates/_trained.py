"""Train COMMOD, and helpers that updates trained by gradients share."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit
from sklearn.utils import check_random_state

from commod._data.arrays import Floats
from commod._data.encoding import Encoding, TermTable, learn_encoding
from commod._data.labels import check_weights
from commod._data.parameters import check_choice, check_flag, check_number
from commod._data.tables import check_same_rows
from commod._io.optional import require_jax
from commod._solvers.concepts import Concepts, by_column, tidy_concepts
from commod._solvers.problem import (
    INITS,
    AdversaryProblem,
    Layer,
    Penalties,
    RatioSchedule,
    TrainedLayers,
    TrainingRows,
    solver_position,
    standardise,
    training_margins,
)
from commod._text import did_you_mean, shown
from commod.exceptions import InputError, InputTypeError, InterruptionWarning
from commod.metrics._constraint import Constraint, missing_labels
from commod.metrics._measures import MEASURES
from commod.metrics._people import Strata
from commod.updates._fit_rows import FitRows, check_group_columns, check_label_not_read
from commod.updates._interface import progress_bar
from commod.updates.base import LARGEST_WEIGHT
from commod.updates.ratio import Network

MAX_UNITS = 10_000  # in a hidden layer
MANY_ROWS = 2_000_000  # models · rows from which models are stored by several threads
MAX_THREADS = 4  # each holds a few numbers for every row

TRAINING: dict[str, Any] = {  # details of COMMOD's training, with their defaults
    "batch_size": 512,
    "learning_rate": 0.01,
    "adversary_hidden": (32,),
    "adversary_steps": 10,
    "adversary_learning_rate": 0.003,
    "adaptive_fairness": True,
    "warmup_epochs": 10,
    "ramp_epochs": 20,
    "init": INITS[0],
    "hidden": (64,),
    "reads_score": False,
    "concepts_by_column": True,
    "progress": None,
}
LAYERS = ("hidden", "adversary_hidden")
COUNTS = ("batch_size", "adversary_steps", "warmup_epochs", "ramp_epochs")
RATES = ("learning_rate", "adversary_learning_rate")

Moments = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]


def draw_seeds(models: Sequence[Any]) -> NDArray[np.int64]:
    """Return the seed of each model, drawn from its own `random_state`, shape (m,)."""
    return np.array([check_random_state(model.random_state).randint(2**31 - 1) for model in models])


def check_layers(values: Any, name: str) -> None:
    """Raise InputError unless the sizes of hidden layers are positive whole numbers."""
    value = getattr(values, name)
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


def check_training(training: Any) -> dict[str, Any]:
    """Return the mapping `training` of COMMOD as a dictionary, checked; empty for None.

    Examples
    --------
    >>> check_training({"batch": 5})
    Traceback (most recent call last):
    commod.exceptions.InputError: training has no key 'batch'; it has batch_size, ... Did you mean
    'batch_size'?
    """
    if training is not None and not isinstance(training, Mapping):
        raise InputTypeError(
            f"training={shown(training)} must be a mapping, such as {{'batch_size': 256}}.",
            parameter="training",
        )
    given = dict(training or {})
    for name in given:
        if name not in TRAINING:
            raise InputError(
                f"training has no key {name!r}; it has {', '.join(TRAINING)}."
                f"{did_you_mean(name, TRAINING)}",
                parameter="training",
            )
    values = SimpleNamespace(**given)
    for name in given:
        if name in LAYERS:
            check_layers(values, name)
        elif name in COUNTS:
            check_number(values, name, low=0 if name.endswith("_epochs") else 1, whole=True)
        elif name in RATES:
            check_number(values, name, low=0.0, high=LARGEST_WEIGHT, include="right")
        elif name == "init":
            check_choice(given[name], name, INITS)
        else:
            check_flag(given[name], name, optional=name == "progress")
    return given


def safe_moments(terms: TermTable, weight: NDArray[np.float64]) -> Moments:
    """Return mean and scale of each term, and whether it varies, all of shape (d,).

    A term that does not vary cannot be learned; its scale is 1.
    """
    mean, scale = terms.moments(weight)
    return mean, np.where(scale > 0, scale, 1.0), scale > 0


def raw_network(
    encoding: Encoding, layers: Sequence[Layer], terms: TermTable, weight: NDArray[np.float64]
) -> Network:
    """Return a network on raw columns from layers trained on standardised terms of these rows."""
    (matrix, bias), *later = layers
    mean, scale, varies = safe_moments(terms, weight)
    raw = matrix[solver_position(terms)] * (varies / scale)[:, None]
    return Network(encoding, ((raw, bias - mean @ raw), *later))


def readable_concepts(
    trained: Concepts,
    encoding: Encoding,
    terms: TermTable,
    weight: NDArray[np.float64],
    moments: Moments | None = None,
    *,
    whole_columns: bool,
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


def ratio_rows(
    rows: FitRows, terms: TermTable, moments: Moments, distance_weight: Floats, label: Floats
) -> TrainingRows:
    """Return what the training of a ratio reads of each row; `label` (n,) lies in [0, 1]."""
    base = rows.base.for_positive
    unit = rows.weight.mean()  # float32 sums stay well scaled whatever the unit of the weights
    by_row = {
        "margin": training_margins(base.scores, base.threshold),
        "label": label,
        "group": rows.groups.codes,
        "weight": rows.weight / unit,
        "ratio_weight": distance_weight / unit,
    }
    terms_of_rows = standardise(terms, rows.weight, moments[:2])
    return terms_of_rows.add(by_row, offset=float(logit(base.threshold)))


def train_ratios(
    models: Sequence[Any],
    rows: TrainingRows,
    adversaries: Sequence[AdversaryProblem],
    n_groups: int,
    schedule: RatioSchedule,
) -> TrainedLayers:
    """Return the ratios of all models, trained in one computation, each with its own lambdas."""
    require_jax("COMMOD")
    from commod._solvers.training import adversarial  # JAX is loaded by the first fit, never before

    penalties = Penalties(
        *(
            np.array([getattr(model, f"lambda_{name}") for model in models], dtype=np.float32)
            for name in ("fair", "ratio", "sparsity", "diversity")
        )
    )
    first, seeds = models[0], draw_seeds(models)
    unseeded = [model.random_state is None for model in models]
    # models without a seed see the rows in one order, so that a GPU can train them together
    seeds[unseeded] = seeds[unseeded][:1]
    with progress_bar("COMMOD", first._training["progress"]) as report:
        return adversarial.train_ratio(
            rows, adversaries, n_groups, penalties, seeds, schedule, report
        )


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


# ---------------------------------------------------------------------------------------------
# Adversaries


def check_trainable(constraints: Sequence[Constraint]) -> None:
    """Refuse constraints that no adversary stands for.

    If an adversary fails, a score is independent of the group, among people who are chosen
    before anything is decided. So an adversary stands for rates that are equal among such people.
    It knows no minimum, and no rate among people whom the decisions choose, such as the precision.
    """
    for constraint in constraints:
        if reason := _obstacle(constraint):
            raise InputError(
                f"COMMOD cannot train against {constraint.name!r}: {reason}. Use "
                "ControlledDebiaser, which takes this constraint, or one of demographic parity, "
                "equalized odds, parity of true or false positive rates, and accuracy parity.",
                parameter="constraints",
            )


def _obstacle(constraint: Constraint) -> str:
    """Return why no adversary stands for a constraint; "" where one does."""
    if constraint.min_groups < 2:
        return "it bounds the rate of every group, and an adversary compares groups"
    for measure in constraint.measures:
        if not measure.is_linear:
            return (
                f"the decisions choose the people whom its {measure.name} counts, and an adversary "
                "needs people who are chosen before"
            )
        if measure.needs_labels and measure.label is None and measure != MEASURES["accuracy"]:
            return f"no adversary is known for its {measure.name}"
    return ""


def adversary_of(
    constraint: Constraint, strata: Strata, rows: FitRows, label: Floats, weight: Floats
) -> AdversaryProblem:
    """Return what the adversary of a constraint reads, and the weight of each row for it.

    `label` (n,) are the labels of the training and `weight` (n,) the weights of rows. A row that
    the constraint does not count has weight 0: one of a label, a group or a stratum that is not
    compared.
    """
    if constraint.needs_labels and rows.label is None:
        raise missing_labels(constraint, "y")
    group, _ = rows.large_groups
    is_compared = (group >= 0) & (strata.codes >= 0) & strata.is_compared[strata.codes, group]
    weight = weight * is_compared
    labels = {measure.label for measure in constraint.measures}
    if len(labels) == 1 and None not in labels:
        weight = weight * (label if labels.pop() else 1 - label)
    is_conditional = constraint.within is not None
    return AdversaryProblem(
        weight=weight.astype(np.float32),
        sees_label=len(labels) > 1,
        stratum=strata.codes.astype(np.int32) if is_conditional else None,
        n_strata=len(strata.labels) if is_conditional else 0,
        reads_rightness=constraint.measures == (MEASURES["accuracy"],),
    )


# ---------------------------------------------------------------------------------------------
# Several models on the same rows


def fit_together(
    models: Sequence[Any],
    X: Any,
    y: Any,
    sensitive_features: Any,
    sample_weight: Any,
    ratio_weight: Any,
) -> None:
    """Fit all models: read the rows once, train in one computation, store each result."""
    first = models[0]
    for model in models:
        model._record_params()
        model._check_parameters()
    rows_of_user = {"X": X, "y": y, "sensitive_features": sensitive_features}
    check_same_rows({**rows_of_user, "ratio_weight": ratio_weight})
    rows = first._read_fit_rows(X, y, sensitive_features, sample_weight)
    distance_weight = rows.weight * check_weights(ratio_weight, len(rows), "ratio_weight")
    if not distance_weight.any():
        raise InputError(
            "ratio_weight is zero wherever sample_weight is not, so no change would cost anything. "
            "Give some rows with sample_weight a ratio_weight."
        )
    columns = first._with_score_columns(rows.base.scores, rows.columns)
    first._check_locked(columns)
    check_group_columns(rows, first.locked_features)
    check_label_not_read(rows, getattr(y, "name", None), first.locked_features)
    encoding = learn_encoding(
        columns,
        rows.weight,
        min_category_size=first.min_category_size,
        locked=first.locked_features,
    )
    terms = encoding.encode(columns)
    moments = safe_moments(terms, rows.weight)  # computed once for all models
    base = rows.base.for_positive
    label = base.scores if rows.label is None else rows.label.astype(np.float64)
    weight = rows.weight / rows.weight.mean()
    adversaries = [
        adversary_of(constraint, rows.strata_of(constraint), rows, label, weight)
        for constraint in first._stated().constraints
    ]
    told = ratio_rows(rows, terms, moments, distance_weight, label)
    trained = train_ratios(models, told, adversaries, len(rows.groups.labels), first._schedule())
    for model in models:
        model._take_reading(first)
    call_all(
        [
            partial(model._store, rows, encoding, terms, moments, trained, i)
            for i, model in enumerate(models)
        ],
        len(rows),
    )
    if trained.interrupted:
        warnings.warn(first.status_, InterruptionWarning, stacklevel=3)
