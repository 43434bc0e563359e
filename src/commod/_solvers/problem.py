"""The records that trained solvers take and return; NumPy only, so that importing needs no JAX."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from commod._data.encoding import Encoding, TermTable
from commod._solvers.concepts import Concepts
from commod.scorecard import Scorecard, margins

CHUNK_ROWS = 8192  # at a time in double precision; all rows would be the largest array in memory
INITS = ("balanced", "zero")  # how concepts start; see `networks.initial_bottleneck`
MAX_MARGIN = 10.0  # beyond it a score is 0 or 1 for the losses; clipping keeps the sign


# ---------------------------------------------------------------------------------------------
# Terms and margins


@dataclass(frozen=True)
class TrainingRows:
    """The n rows that models are trained on: arrays in float32, int32 or bool, by name.

    `by_row` has one entry per row; `shared` is the same for all rows. Among them are the d = p + c
    standardised terms: p numeric ones first, then c of categories.

    - `numeric` (n, p), by row, holds z-scores.
    - `codes` (n, q), by row, holds, for each of q columns of categories, the term that is present:
      0 to c − 1, counted behind the numeric terms, or c if there is none.
    - `code_mean` and `code_scale` (c,), shared, standardise the terms of categories.
    """

    by_row: dict[str, Any]
    shared: dict[str, Any]

    @classmethod
    def of(cls, by_row: Mapping[str, Any], **shared: Any) -> TrainingRows:
        """Return rows with numbers in the precision of the device."""
        parts = by_row, shared
        return cls(*({name: _single(values) for name, values in part.items()} for part in parts))

    def __len__(self) -> int:
        return len(next(iter(self.by_row.values())))

    @property
    def n_terms(self) -> int:
        """Return d = p + c."""
        return int(self.by_row["numeric"].shape[1] + len(self.shared["code_mean"]))

    def add(self, by_row: Mapping[str, Any], **shared: Any) -> TrainingRows:
        """Return the same rows with further fields."""
        added = TrainingRows.of(by_row, **shared)
        return TrainingRows({**self.by_row, **added.by_row}, {**self.shared, **added.shared})


def _single(values: Any) -> Any:
    """Return numbers as float32 or int32, and anything else as it is."""
    if not isinstance(values, np.ndarray | float):
        return values
    array = np.asarray(values)
    kinds = {"f": np.float32, "i": np.int32}
    return array.astype(kinds.get(array.dtype.kind, array.dtype), copy=False)


def standardise(
    terms: TermTable,
    weight: NDArray[np.float64],
    moments: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None,
) -> TrainingRows:
    """Return the terms, standardised by weighted mean and standard deviation.

    `moments` are these two, each of shape (d,), where the caller knows them.
    """
    mean, scale = moments or terms.moments(weight)
    scale = np.where(scale > 0, scale, 1.0)
    is_numeric = np.zeros(terms.n_terms, dtype=bool)
    is_numeric[terms.numeric_terms] = True
    position = np.append(np.cumsum(~is_numeric) - 1, (~is_numeric).sum()).astype(np.int32)
    numeric = np.empty(terms.numeric.shape, dtype=np.float32)
    for start in range(0, len(numeric), CHUNK_ROWS):
        chunk = slice(start, start + CHUNK_ROWS)
        numeric[chunk] = (terms.numeric[chunk] - mean[is_numeric]) / scale[is_numeric]
    return TrainingRows.of(
        {"numeric": numeric, "codes": position[terms.codes]},
        code_mean=mean[~is_numeric],
        code_scale=1 / scale[~is_numeric],
    )


def solver_position(terms: TermTable) -> NDArray[np.intp]:
    """Return the position of each term in `TrainingRows`, which have numeric terms first, (d,)."""
    others = np.setdiff1d(np.arange(terms.n_terms), terms.numeric_terms)
    return np.argsort(np.concatenate([terms.numeric_terms, others]))


def raw_scorecard(
    encoding: Encoding,
    concepts: Concepts,
    mean: NDArray[np.float64],
    scale: NDArray[np.float64],
) -> Scorecard:
    """Return a scorecard on raw terms from concepts on standardised ones."""
    points = concepts.weights / scale
    intercepts = -(points @ mean) + 0.0
    return Scorecard(
        encoding=encoding,
        intercept=float(concepts.intercept + concepts.contributions @ intercepts),
        contributions=concepts.contributions,
        concept_points=points,
        concept_intercepts=intercepts,
    )


def training_margins(scores: NDArray[np.float64], threshold: float) -> NDArray[np.float64]:
    """Return z = logit(score) − logit(threshold), clipped at ±10, shape (n,)."""
    return np.clip(margins(scores, threshold), -MAX_MARGIN, MAX_MARGIN)


# ---------------------------------------------------------------------------------------------
# Shared by all trained methods


@dataclass(frozen=True)
class Schedule:
    """How long and how fast to train; all models that are trained together share it."""

    epochs: int
    batch_size: int
    warmup_epochs: int
    learning_rate: float


Layer = tuple[NDArray[np.float64], NDArray[np.float64]]


@dataclass(frozen=True)
class TrainedLayers:
    """How m models were trained, and the layers on standardised terms that they became.

    - `history` maps the name of a figure to its mean per epoch, shape (m, epochs done).
    - `epochs_done` is less than the schedule's `epochs` if training was `interrupted`.
    - `layers` holds, for each layer, a matrix (m, inputs, outputs) and a bias (m, outputs).
    """

    history: dict[str, NDArray[np.float64]]
    epochs_done: int
    interrupted: bool
    layers: list[Layer]

    def of_model(self, i: int) -> list[Layer]:
        """Return the layers of the i-th model."""
        return [(matrix[i], bias[i]) for matrix, bias in self.layers]

    def concepts(self, i: int) -> Concepts:
        """Return two layers of the i-th model, without units between them, as concepts."""
        (weights, _), (contributions, intercept) = self.of_model(i)
        return Concepts(weights.T, contributions[:, 0], float(intercept[0]))


# ---------------------------------------------------------------------------------------------
# COMMOD


@dataclass(frozen=True)
class AdversaryProblem:
    """What the adversary of one constraint reads; arrays have one entry per row.

    - `weight` is 0 for rows that the constraint does not count.
    - `sees_label`: the adversary also reads the true label.
    - `stratum` is the number of each row's stratum, 0 to `n_strata` − 1. The adversary also reads
      it, in one-hot form. −1 is no stratum; the whole array is None without a condition.
    - `reads_rightness`: the adversary reads r·z · (2·label − 1), which is positive where the
      decision is right, in place of r·z.
    """

    weight: NDArray[np.float32]
    sees_label: bool = False
    stratum: NDArray[np.int32] | None = None
    n_strata: int = 0
    reads_rightness: bool = False


class Penalties(NamedTuple):
    """Weights of the loss terms: arrays of shape (m,), or scalars of one model.

    An additive term has no `ratio`.
    """

    fair: Any
    ratio: Any
    sparsity: Any
    diversity: Any


@dataclass(frozen=True)
class RatioSchedule(Schedule):
    """How COMMOD is trained: a ratio of `n_concepts`, or of `hidden` layers where that is 0.

    `init` says how concepts start: see `networks.initial_bottleneck`.
    """

    n_concepts: int
    hidden: tuple[int, ...]
    ramp_epochs: int
    adversary_hidden: tuple[int, ...]
    adversary_steps: int
    adversary_learning_rate: float
    adaptive_fairness: bool
    init: str = INITS[0]
