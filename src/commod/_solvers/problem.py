"""What a solver is given and what it gives back; NumPy only, so that it can be built anywhere."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from commod._data.encoding import Encoding, TermTable
from commod._solvers.concepts import Concepts
from commod.scorecard import Scorecard, margins

__all__ = [
    "AdditivePenalties",
    "AdditiveProblem",
    "DebiasingProblem",
    "DebiasingSchedule",
    "Layers",
    "Pacing",
    "Penalties",
    "Problem",
    "Schedule",
    "Solution",
    "TermArrays",
    "Training",
    "raw_scorecard",
    "solver_position",
    "standardise",
    "training_margins",
]

ROWS_AT_ONCE = 8192  # in double precision: all of them at once would be the largest thing in memory
TRAINING_MARGIN = 10.0  # beyond it a score is 0 or 1 for the losses; clipping keeps the sign


# ---------------------------------------------------------------------------------------------
# Terms and margins


@dataclass(frozen=True)
class TermArrays:
    """The terms of n rows, standardised, numeric ones first; d = p + c of them.

    `numeric` (n, p) are z-scores; `codes` (n, q) name the one term of each column of categories
    that is present, numbered from 0 to c − 1 behind the numeric terms, c meaning none;
    `code_mean` and `code_scale` (c,) standardise those.
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
    """Return the terms in float32, by their weighted mean and standard deviation.

    `moments` are these two, each of shape (d,), where they are known.
    """
    mean, scale = moments or terms.moments(weight)
    scale = np.where(scale > 0, scale, 1.0)
    is_numeric = np.zeros(terms.n_terms, dtype=bool)
    is_numeric[terms.numeric_terms] = True
    position = np.append(np.cumsum(~is_numeric) - 1, (~is_numeric).sum()).astype(np.int32)
    single = np.float32
    numeric = np.empty(terms.numeric.shape, dtype=single)
    for start in range(0, len(numeric), ROWS_AT_ONCE):
        some = slice(start, start + ROWS_AT_ONCE)
        numeric[some] = (terms.numeric[some] - mean[is_numeric]) / scale[is_numeric]
    return TermArrays(
        numeric=numeric,
        codes=position[terms.codes],
        code_mean=mean[~is_numeric].astype(single),
        code_scale=(1 / scale[~is_numeric]).astype(single),
    )


def solver_position(terms: TermTable) -> NDArray[np.intp]:
    """Return where the solver, which puts numeric terms first, has each of our terms, (d,)."""
    rest = np.setdiff1d(np.arange(terms.n_terms), terms.numeric_terms)
    return np.argsort(np.concatenate([terms.numeric_terms, rest]))


def raw_scorecard(
    encoding: Encoding,
    concepts: Concepts,
    mean: NDArray[np.float64],
    scale: NDArray[np.float64],
) -> Scorecard:
    """Return what was learned on standardised terms as points on raw ones."""
    points = concepts.weights / scale
    starts = -(points @ mean) + 0.0
    return Scorecard(
        encoding=encoding,
        intercept=float(concepts.intercept + concepts.contributions @ starts),
        contributions=concepts.contributions,
        concept_points=points,
        concept_intercepts=starts,
    )


def training_margins(scores: NDArray[np.float64], threshold: float) -> NDArray[np.float64]:
    """Return z = logit(score) − logit(threshold), clipped at ±10, shape (n,)."""
    return np.clip(margins(scores, threshold), -TRAINING_MARGIN, TRAINING_MARGIN)


# ---------------------------------------------------------------------------------------------
# What all trainings share


@dataclass(frozen=True)
class Pacing:
    """How long and how fast to train; shared by all models of a batch."""

    epochs: int
    batch_size: int
    warmup_epochs: int
    learning_rate: float


@dataclass(frozen=True)
class Training:
    """How m models were trained.

    `history` maps the name of a loss term to (m, epochs done); `epochs_done` is less than asked
    for where `interrupted`.
    """

    history: dict[str, NDArray[np.float64]]
    epochs_done: int
    interrupted: bool


# ---------------------------------------------------------------------------------------------
# COMMOD


@dataclass(frozen=True)
class Problem(TermArrays):
    """Rows to train on; every array but the terms' moments has one entry per row.

    `margin` is z, clipped, and `offset` the logit of the threshold: r·z + offset is the logit of
    g. `label` lies in [0, 1]; a row whose group is left out of the constraint has
    `adversary_weight` 0.
    """

    margin: NDArray[np.float32]
    label: NDArray[np.float32]
    group: NDArray[np.int32]
    weight: NDArray[np.float32]
    adversary_weight: NDArray[np.float32]
    ratio_weight: NDArray[np.float32]
    offset: float
    n_groups: int
    adversary_sees_label: bool


@dataclass(frozen=True)
class Penalties:
    """Weights of the loss terms, one entry per model: arrays of shape (m,)."""

    fair: NDArray[np.float32]
    ratio: NDArray[np.float32]
    sparsity: NDArray[np.float32]
    diversity: NDArray[np.float32]


@dataclass(frozen=True)
class Schedule(Pacing):
    """How COMMOD is trained: a ratio of `n_concepts`, or one with layers of `hidden`."""

    n_concepts: int
    hidden: tuple[int, ...]
    ramp_epochs: int
    adversary_hidden: tuple[int, ...]
    adversary_steps: int
    adversary_learning_rate: float
    adaptive_fairness: bool


@dataclass(frozen=True)
class Solution(Training):
    """Trained ratios of m models in standardised terms: r = intercept + contributions @ (W @ x).

    `weights` (m, k, d), `contributions` (m, k), `intercept` (m,).
    """

    weights: NDArray[np.float64]
    contributions: NDArray[np.float64]
    intercept: NDArray[np.float64]


# ---------------------------------------------------------------------------------------------
# FRAPPE


@dataclass(frozen=True)
class AdditiveProblem(TermArrays):
    """Rows to train an additive term on; every array but the terms' moments has one per row.

    `margin` is z, clipped, and `offset` the logit of the threshold: z + T + offset is the logit of
    q. `cell` numbers the pairs (line, group) of the constraint, line by line; a row outside of it
    has `fairness_weight` 0.
    """

    margin: NDArray[np.float32]
    cell: NDArray[np.int32]
    weight: NDArray[np.float32]
    fairness_weight: NDArray[np.float32]
    offset: float
    n_lines: int
    n_groups: int
    kernel_length: float


@dataclass(frozen=True)
class AdditivePenalties:
    """Weights of the loss terms beside the divergence, one entry per model: shape (m,)."""

    fair: NDArray[np.float32]
    sparsity: NDArray[np.float32]
    diversity: NDArray[np.float32]


@dataclass(frozen=True)
class Layers(Training):
    """Trained layers of m models in standardised terms: matrix (m, rows, columns), bias."""

    layers: list[tuple[NDArray[np.float64], NDArray[np.float64]]]


# ---------------------------------------------------------------------------------------------
# Adversarial debiasing


@dataclass(frozen=True)
class DebiasingProblem(TermArrays):
    """Rows to train a predictor on; every array but the terms' moments has one per row.

    `decision` is the base model's, for the record; a logit above `offset` decides positively. A
    row outside of the constraint has `adversary_weight` 0.
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
class DebiasingSchedule(Pacing):
    """How predictor and adversary are trained; `projects_whole` or tensor by tensor."""

    hidden: tuple[int, ...]
    adversary_hidden: tuple[int, ...]
    adversary_learning_rate: float
    projects_whole: bool
