"""What a solver is given and what it gives back; NumPy only, so that it can be built anywhere."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Penalties", "Problem", "Schedule", "Solution"]


@dataclass(frozen=True)
class Problem:
    """Rows to train on, terms standardised; every array has one entry per row.

    `numeric` (n, p) are z-scores; `codes` (n, q) name the one term of each column of categories
    that is present, numbered from 0 to c − 1 behind the numeric terms, c meaning none;
    `code_mean` and `code_scale` (c,) standardise those. `margin` is z, clipped, and `offset` the
    logit of the threshold: r·z + offset is the logit of g. `label` lies in [0, 1]; a row whose
    group is left out of the constraint has `adversary_weight` 0.
    """

    numeric: NDArray[np.float32]
    codes: NDArray[np.int32]
    code_mean: NDArray[np.float32]
    code_scale: NDArray[np.float32]
    margin: NDArray[np.float32]
    label: NDArray[np.float32]
    group: NDArray[np.int32]
    weight: NDArray[np.float32]
    adversary_weight: NDArray[np.float32]
    ratio_weight: NDArray[np.float32]
    offset: float
    n_groups: int
    adversary_sees_label: bool

    @property
    def n_terms(self) -> int:
        """Return d = p + c."""
        return self.numeric.shape[1] + len(self.code_mean)


@dataclass(frozen=True)
class Penalties:
    """Weights of the loss terms, one entry per model: arrays of shape (m,)."""

    fair: NDArray[np.float32]
    ratio: NDArray[np.float32]
    sparsity: NDArray[np.float32]
    diversity: NDArray[np.float32]


@dataclass(frozen=True)
class Schedule:
    """How long and how fast to train; shared by all models of a batch."""

    n_concepts: int
    epochs: int
    batch_size: int
    warmup_epochs: int
    ramp_epochs: int
    learning_rate: float
    adversary_hidden: tuple[int, ...]
    adversary_steps: int
    adversary_learning_rate: float
    adaptive_fairness: bool


@dataclass(frozen=True)
class Solution:
    """Trained ratios of m models in standardised terms: r = intercept + contributions @ (W @ x).

    `weights` (m, k, d), `contributions` (m, k), `intercept` (m,); `history` maps the name of a
    loss term to (m, epochs done); `epochs_done` is less than asked for where `interrupted`.
    """

    weights: NDArray[np.float64]
    contributions: NDArray[np.float64]
    intercept: NDArray[np.float64]
    history: dict[str, NDArray[np.float64]]
    epochs_done: int
    interrupted: bool
