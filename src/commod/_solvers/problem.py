"""The records that trained solvers take and return; NumPy only, so that importing needs no JAX."""

from __future__ import annotations

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
class TermArrays:
    """The d = p + c standardised terms of n rows: p numeric ones first, then c of categories.

    - `numeric` (n, p) holds z-scores.
    - `codes` (n, q) holds, for each of q columns of categories, the term that is present: 0 to
      c − 1, counted behind the numeric terms, or c where there is none.
    - `code_mean` and `code_scale` (c,) standardise the terms of categories.
    """

    numeric: NDArray[np.float32]
    codes: NDArray[np.int32]
    code_mean: NDArray[np.float32]
    code_scale: NDArray[np.float32]

    @property
    def n_terms(self) -> int:
        """Return d = p + c."""
        return self.numeric.shape[1] + len(self.code_mean)


def standardise(
    terms: TermTable,
    weight: NDArray[np.float64],
    moments: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None,
) -> TermArrays:
    """Return the terms in float32, standardised by weighted mean and standard deviation.

    `moments` are these two, each of shape (d,), where the caller knows them.
    """
    mean, scale = moments or terms.moments(weight)
    scale = np.where(scale > 0, scale, 1.0)
    is_numeric = np.zeros(terms.n_terms, dtype=bool)
    is_numeric[terms.numeric_terms] = True
    position = np.append(np.cumsum(~is_numeric) - 1, (~is_numeric).sum()).astype(np.int32)
    single = np.float32
    numeric = np.empty(terms.numeric.shape, dtype=single)
    for start in range(0, len(numeric), CHUNK_ROWS):
        chunk = slice(start, start + CHUNK_ROWS)
        numeric[chunk] = (terms.numeric[chunk] - mean[is_numeric]) / scale[is_numeric]
    return TermArrays(
        numeric=numeric,
        codes=position[terms.codes],
        code_mean=mean[~is_numeric].astype(single),
        code_scale=(1 / scale[~is_numeric]).astype(single),
    )


def solver_position(terms: TermTable) -> NDArray[np.intp]:
    """Return the position of each term in `TermArrays`, which has numeric terms first, (d,)."""
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


@dataclass(frozen=True)
class TrainingRecord:
    """How m models were trained.

    `history` maps the name of a loss term to its mean per epoch, shape (m, epochs done). Where
    `interrupted`, `epochs_done` is less than the schedule's `epochs`.
    """

    history: dict[str, NDArray[np.float64]]
    epochs_done: int
    interrupted: bool


@dataclass(frozen=True)
class TrainedConcepts(TrainingRecord):
    """Trained functions intercept + contributions @ (W @ x) of standardised terms, of m models.

    `weights` holds W, (m, k, d); `contributions` (m, k); `intercept` (m,).
    """

    weights: NDArray[np.float64]
    contributions: NDArray[np.float64]
    intercept: NDArray[np.float64]


@dataclass(frozen=True)
class TrainedLayers(TrainingRecord):
    """Trained layers on standardised terms, of m models.

    `layers` holds, for each layer, a matrix (m, inputs, outputs) and a bias (m, outputs).
    """

    layers: list[tuple[NDArray[np.float64], NDArray[np.float64]]]


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


@dataclass(frozen=True)
class RatioProblem(TermArrays):
    """Rows to train a ratio on; all arrays but the terms' moments have one entry per row.

    `margin` is z, clipped, and `offset` the logit of the threshold: r·z + offset is the edited
    logit. `label` lies in [0, 1]. There is one adversary per constraint.
    """

    margin: NDArray[np.float32]
    label: NDArray[np.float32]
    group: NDArray[np.int32]
    weight: NDArray[np.float32]
    ratio_weight: NDArray[np.float32]
    offset: float
    n_groups: int
    adversaries: tuple[AdversaryProblem, ...]


class RatioPenalties(NamedTuple):
    """Weights of the loss terms: arrays of shape (m,), or scalars of one model."""

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


# ---------------------------------------------------------------------------------------------
# FRAPPE


@dataclass(frozen=True)
class AdditiveProblem(TermArrays):
    """Rows to train an additive term T on; all arrays but the moments have one entry per row.

    `margin` is z, clipped: z + T is the edited logit of a score whose threshold is 0.5. `cell` is
    the constraint's cell of a row, rate row · n_groups + group. A row in no cell has
    `fairness_weight` 0.
    """

    margin: NDArray[np.float32]
    cell: NDArray[np.int32]
    weight: NDArray[np.float32]
    fairness_weight: NDArray[np.float32]
    n_rate_rows: int
    n_groups: int
    kernel_length: float


class AdditivePenalties(NamedTuple):
    """Weights of the loss terms beside the divergence: arrays of shape (m,), or scalars."""

    fair: Any
    sparsity: Any
    diversity: Any


# ---------------------------------------------------------------------------------------------
# Adversarial debiasing


@dataclass(frozen=True)
class DebiasingProblem(TermArrays):
    """Rows to train a predictor on; all arrays but the terms' moments have one entry per row.

    `decision` is the base model's, for the history. A logit above `offset` is a positive decision.
    A row in no cell of the constraint has `adversary_weight` 0.
    """

    label: NDArray[np.float32]
    group: NDArray[np.int32]
    decision: NDArray[np.bool_]
    weight: NDArray[np.float32]
    adversary_weight: NDArray[np.float32]
    offset: float
    n_groups: int
    adversary_sees_label: bool


@dataclass(frozen=True)
class DebiasingSchedule(Schedule):
    """How predictor and adversary are trained.

    `projects_whole`: the gradient is projected as one vector; otherwise matrix by matrix, bias by
    bias.
    """

    hidden: tuple[int, ...]
    adversary_hidden: tuple[int, ...]
    adversary_learning_rate: float
    projects_whole: bool


# ---------------------------------------------------------------------------------------------
# RNF


@dataclass(frozen=True)
class LabelProblem(TermArrays):
    """Rows to train a network of the labels on: `label` and `weight` have one entry per row."""

    label: NDArray[np.float32]
    weight: NDArray[np.float32]


@dataclass(frozen=True)
class HeadProblem:
    """Rows to train the head of a network on; all arrays have one entry per row.

    `units` (n, h) is what the encoder makes of a row. `margin` is that of the teacher, clipped. The
    partner of a row has the same `label` and another `group`. A row that takes no part in pairs has
    `pair_weight` 0. `decision` is the base model's, for the history.
    """

    units: NDArray[np.float32]
    margin: NDArray[np.float32]
    label: NDArray[np.float32]
    group: NDArray[np.int32]
    pair_weight: NDArray[np.float32]
    decision: NDArray[np.bool_]
    temperature: float
