"""FRAPPE (Țifrea et al. 2024): add a learned term to the base model's logit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.special import expit, logit

from commod._data.arrays import Floats
from commod._data.columns import Column
from commod._solvers.concepts import Concepts
from commod._solvers.problem import (
    Penalties,
    TrainedLayers,
    raw_scorecard,
    solver_position,
    training_margins,
)
from commod.exceptions import InputError
from commod.rivals._rows import DecisionRows
from commod.rivals._trained import TrainedRival, TrainingTable
from commod.rivals.base import ScoredRival, choice, number
from commod.scorecard import Scorecard
from commod.updates._trained import draw_seeds, readable_concepts, safe_moments
from commod.updates.base import LARGEST_WEIGHT
from commod.updates.ratio import Network


@dataclass(eq=False, repr=False, kw_only=True)
class FRAPPE(ScoredRival, TrainedRival):
    """Add a learned term T(x) to the base model's logit.

    The new score is sigmoid(z + T(x) + logit(threshold)); z is the base model's margin, clipped at
    ±10. T minimises mean KL(f ‖ q) + strength · MMD², with f = sigmoid(z) and q = sigmoid(z + T):
    the scores before and after, shifted so that the threshold is 0.5. The first part keeps q near
    f. MMD² is the distance between the groups' distributions of scores, with a Gaussian
    kernel. Only `fit` sees the sensitive features, and T reads only columns of X.

    Parameters
    ----------
    estimator : fitted classifier or ScoreColumn
        The base model. It is never refitted.
    strength : float, default=1.0
        Weight of MMD². 0 leaves T = 0, and nothing changes. The paper puts a weight λ on the
        divergence instead: strength = 1/λ.
    architecture : str, default="linear"
        The form of T: "linear" in the columns, an "mlp" with hidden layers, or "concepts", the
        sparse bottleneck of COMMOD: T(x) = b + Σ_j v_j (W_j · x).
    hidden : tuple of int, default=(64,)
        Sizes of the hidden layers (ReLU) of the "mlp".
    n_concepts : int, default=2
        Number of concepts, for "concepts".
    lambda_sparsity : float, default=0.003
        Weight of the L1 path norm ``Σ_j |v_j| ‖W_j‖₁``, for "concepts".
    lambda_diversity : float, default=0.1
        Weight of the mean squared cosine between concepts, for "concepts".
    concepts_by_column : bool, default=True
        Put each raw column into one concept, as COMMOD does.
    kernel_length : float, default=0.1
        Length scale of the kernel exp(−(a − b)²/length²) on scores.
    constraints : str, default="demographic_parity"
        Which scores are compared between groups: those of all rows ("demographic_parity"), or of
        the rows with one true label ("true_positive_rate_parity", "false_positive_rate_parity").
        "equalized_odds" sums MMD² over both true labels.
    epochs : int, default=200
        Passes over the rows.
    batch_size : int, default=512
        Rows per step. The batches of one epoch differ in size by at most one row.
    learning_rate : float, default=0.02
        Adam's step size; it falls to 0 along a cosine.
    locked_features : collection of str, default=()
        Columns that T must not read; the base model still gets them.
    min_category_size : int, default=20
        Fit rows that a category needs to become a term; rarer categories count as unseen.
    min_group_size : int, default=30
        Fit rows that a group needs to be part of the constraint; smaller groups are reported.
    threshold : float, default=0.5
        The base decision is score > threshold.
        Both losses read scores that were shifted on the logit scale until their threshold was 0.5.
        So T is the same if the score and its threshold are shifted together.
    pos_label : label, default=None
        The label whose rates count. If None, `favorable_label`, or else `classes_[1]`.
    favorable_label : label, default=None
        The label that is good for the person; `pos_label` if None. It only names gains and losses.
    progress : bool, default=None
        Show a progress bar; None shows it on a terminal only.
    random_state : int, RandomState or None, default=None
        Seed of the training. The same seed on the same machine gives the same bits.

    Attributes
    ----------
    scorecard_ : Scorecard or None
        T as points on the raw columns ("linear" and "concepts"). The scorecard's `ratio` is T
        here: 0 changes nothing, and the sign of T alone changes no decision.
    concept_weights_ : ndarray of shape (k, d)
        W, per standard deviation of a term. For "concepts": rows of norm 1 with exact zeros. For
        "linear": one row of weights.
    concept_contributions_ : ndarray of shape (k,)
        v, sorted by size.
    intercept_ : float
        Mean of T over the fit rows.
    term_names_ : list of str
        Names of the d terms.
    network_ : Network or None
        The layers ("mlp").
    history_ : dict of str to list of float
        Mean of each loss term and of the share of changed decisions, per epoch; empty for
        strength 0.
    n_iter_ : int
        Epochs done; fewer than `epochs` after an interrupt.

    Notes
    -----
    With more than two groups, MMD² compares each group with all others and takes the mean. A batch
    estimates the MMD² of the whole table (biased: pairs of a row with itself count). Such pairs get
    the weight that they have in the whole table. With the larger weight that they have in a batch,
    training would make all scores alike where a group is small.

    The authors' code differs: T reads every column, the sensitive one too; the compared scores are
    those of negatives or of both labels; it runs Adagrad (0.01) on batches of 32 for 100 epochs.
    Demographic parity, larger batches and Adam are additions of this class. No loss uses y:
    demographic parity needs no labels.

    References
    ----------
    Țifrea, Lahoti, Packer, Halpern, Beirami, Prost: "FRAPPÉ: A Group Fairness Framework for
    Post-Processing Everything", ICML 2024.

    Examples
    --------
    >>> from commod.datasets import make_biased
    >>> from commod.rivals import FRAPPE
    >>> from sklearn.linear_model import LogisticRegression
    >>> data = make_biased(800, random_state=0)
    >>> model = LogisticRegression().fit(data.data, data.target)
    >>> update = FRAPPE(model, strength=2, epochs=50, random_state=0)
    >>> update = update.fit(data.data, data.target, sensitive_features=data.sensitive_features)
    >>> bool(update.fairness_ > update.base_fairness_)
    True
    >>> update.scorecard_.columns_used
    ['x0', 'x1', 'x2', 'x3']
    """

    architecture: str = choice("linear", "mlp", "concepts")
    hidden: Sequence[int] = (64,)
    n_concepts: int = number(2, low=1, whole=True)
    lambda_sparsity: float = number(0.003, low=0.0, high=LARGEST_WEIGHT)
    lambda_diversity: float = number(0.1, low=0.0, high=LARGEST_WEIGHT)
    concepts_by_column: bool = True
    kernel_length: float = number(0.1, low=0.0, high=LARGEST_WEIGHT, include="right")
    epochs: int = number(200, low=0, whole=True)
    batch_size: int = number(512, low=1, whole=True)
    learning_rate: float = number(0.02, low=0.0, high=LARGEST_WEIGHT, include="right")

    # from hardly a change to near parity
    default_strengths = (0.0, *(2.0 ** (i / 2) for i in range(-10, 12)))

    # -- learning -------------------------------------------------------------------------------

    def _keep_base(self, table: TrainingTable) -> None:
        d = table.encoding.n_terms
        self.scorecard_: Scorecard | None = None
        self.network_: Network | None = None
        if self.architecture == "mlp":
            self.network_ = Network(table.encoding, ((np.zeros((d, 1)), np.zeros(1)),))
            return
        k = int(self.n_concepts) if self.architecture == "concepts" else 1
        self._store_concepts(Concepts(np.zeros((k, d)), np.zeros(k), 0.0), table)

    def _train(
        self, models: Sequence[Self], table: TrainingTable, solver: Any, report: Any
    ) -> TrainedLayers:
        rows, weight = table.rows, table.unit_weights
        cells = rows.cells(self._constraint)
        inside = cells.index >= 0
        by_row = {
            "margin": training_margins(rows.base.scores, rows.base.threshold),
            "cell": np.where(inside, cells.index, 0),
            "weight": weight,
            "fairness_weight": weight * inside,
        }
        names = ("strength", "lambda_sparsity", "lambda_diversity")
        fair, sparsity, diversity = (
            np.array([getattr(m, name) for m in models], dtype=np.float32) for name in names
        )
        trained: TrainedLayers = solver.train_additive_term(
            table.training_rows(by_row),
            cells.shape,
            float(self.kernel_length),
            Penalties(fair, None, sparsity, diversity),
            draw_seeds(models),
            self._schedule(),
            report,
            n_concepts=int(self.n_concepts) if self.architecture == "concepts" else 0,
            hidden=tuple(map(int, self.hidden)) if self.architecture == "mlp" else (),
        )
        return trained

    def _store(self, trained: TrainedLayers, i: int, table: TrainingTable) -> None:
        if self.network_ is not None:
            self.network_ = table.network(trained, i)
        elif self.architecture == "linear":
            [(matrix, bias)] = trained.of_model(i)  # a single concept, in the order of the terms
            _, _, seen = safe_moments(table.terms, table.rows.weight)
            weights = matrix[solver_position(table.terms), 0] * seen
            self._store_concepts(Concepts(weights[None], np.ones(1), float(bias[0])), table)
        else:
            args = (trained.concepts(i), table.encoding, table.terms, table.rows.weight)
            whole = bool(self.concepts_by_column)
            self._store_concepts(readable_concepts(*args, whole_columns=whole), table)

    def _store_concepts(self, concepts: Concepts, table: TrainingTable) -> None:
        mean, scale, _ = safe_moments(table.terms, table.rows.weight)
        self.concept_weights_ = concepts.weights
        self.concept_contributions_ = concepts.contributions
        self.intercept_ = concepts.intercept
        self.term_names_ = table.encoding.term_names
        self.scorecard_ = raw_scorecard(table.encoding, concepts, mean, scale)

    # -- deciding -------------------------------------------------------------------------------

    def _term(self, columns: Sequence[Column]) -> Floats:
        """Return T(x), shape (n,)."""
        if self.network_ is not None:
            return self.network_.output(columns)
        assert self.scorecard_ is not None
        return self.scorecard_.ratio(columns)

    def _new_scores(self, rows: DecisionRows) -> Floats:
        term, threshold = self._term(rows.columns), rows.base.threshold
        edited = training_margins(rows.base.scores, threshold) + term + logit(threshold)
        return np.where(term == 0, rows.base.scores, expit(edited))

    def term(self, X: Any) -> Floats:
        """Return T(x), shape (n,): the term that is added to the base model's margin."""
        return self._term(self._read_rows(X).columns)

    def concepts(self, X: Any) -> Floats:
        """Return the value of each concept on each row, shape (n, k), centred on the fit rows.

        ``term(X) = intercept_ + concepts(X) @ concept_contributions_``, up to rounding. Not for
        "mlp".
        """
        rows = self._read_rows(X)
        if self.scorecard_ is None:
            raise InputError(
                'architecture="mlp" has no concepts. Fit with "concepts", or with "linear", which '
                "has one.",
                parameter="architecture",
            )
        return self.scorecard_.concepts(rows.columns)
