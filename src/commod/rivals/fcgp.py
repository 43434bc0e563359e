"""FCGP, fair classification with Gaussian processes (Nguyen et al. 2021)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.optimize import minimize_scalar
from sklearn.metrics.pairwise import euclidean_distances, rbf_kernel
from sklearn.utils import check_random_state

from commod._data.arrays import Floats
from commod._data.encoding import Encoding, TermTable
from commod.metrics._constraint import PARITY
from commod.rivals._rows import HALF, DecisionRows, RivalFitRows, from_half
from commod.rivals.base import ScoredRival, TermsRival, choice, number
from commod.updates._trained import safe_moments
from commod.updates.base import LARGEST_WEIGHT

# ---------------------------------------------------------------------------------------------
# Smooth a score by Gaussian-process regression, for many noise levels at once (FCGP)

Indices = NDArray[np.intp]

SMALLEST_NOISE = 1e-5  # of the authors: with this noise, the posterior mean repeats the score
MAX_KERNEL_ROWS = 200  # rows that choose the kernel: each trial costs an eigendecomposition
CHUNK_ROWS = 4096  # at a time; the kernel matrix of all rows would be the largest array in memory
FARTHEST = 1e6  # standardised values are cut here, so that squared distances stay accurate


@dataclass(eq=False, repr=False, kw_only=True)
class FCGP(ScoredRival, TermsRival):
    """Smooth the base score over similar people, by the noise with the best balance.

    A Gaussian process regresses the base score f on X. Its posterior mean m_v(x) follows f closely
    for the smallest noise v₀ = 0.00001, and becomes smoother as the noise v grows. The new score is
    f(x) + m_v(x) − m_v₀(x), and the decision is positive above the threshold. The noise is the one
    on a grid with the largest strength · (1 − gap) + (1 − strength) · (1 − difference). The gap is
    the largest difference between the groups' positive rates. The difference depends on `variant`.

    Parameters
    ----------
    estimator : fitted classifier or ScoreColumn
        The base model. It is never refitted.
    strength : float, default=0.5
        Weight of fairness in the balance, in [0, 1]; 0 changes nothing. It is 1 minus the authors'
        `balance`, whose default is 0.5.
    variant : str, default="labels"
        How to measure the difference from the base model. "labels" (FCGP-L) takes the share of
        changed decisions, or 1 for a noise that changes none, so that some decision changes.
        "scores" (FCGP-S) takes the mean change of the score.
    prior_mean : float, default=0.5
        The value in [0, 1] that a strongly smoothed score approaches. The authors use 0, which
        rejects more and more people as the noise grows.
    largest_noise : float, default=0.5
        The end of the grid of noises, which begins at 0.00001.
    n_noises : int, default=50
        Number of noises on the grid.
    max_rows : int, default=2000
        Fit rows that the process is fitted on; larger tables are sampled. The noise is chosen on
        all fit rows. Time grows with the cube of this number.
    constraints : str, default="demographic_parity"
        The positive rates of all rows. FCGP knows no other constraint.
    locked_features : sequence of str, default=()
        Columns that the process must not read; the base model still gets them.
    min_category_size : int, default=20
        Fit rows that a category needs to become a term; rarer categories count as unseen.
    min_group_size : int, default=30
        Fit rows that a group needs to be part of the constraint; smaller groups are reported.
    threshold : float, default=0.5
        The base decision is score > threshold.
        The rule compares with 0.5. So the score and its threshold are shifted on the logit scale
        until the threshold is 0.5: the rule decides alike if both are shifted together.
    pos_label : label, default=None
        The label whose rates count. If None, `favorable_label`, or else `classes_[1]`.
    favorable_label : label, default=None
        The label that is good for the person; `pos_label` if None. It only names gains and losses.
    random_state : int, RandomState or None, default=None
        Seed of the row sample.

    Attributes
    ----------
    noise_ : float
        The chosen noise v; 0.00001 where nothing changes.
    kernel_variance_, kernel_length_ : float
        The kernel variance · exp(−|a − b|² / (2 · length²)), on standardised terms. They maximise
        the marginal likelihood on at most 200 rows.
    n_points_ : int
        Rows that the process was fitted on.

    Notes
    -----
    - The authors decide by m_v alone. On the rows of the process this is the same, up to the error
      of m_v₀. On other rows, m_v alone would change decisions even without any smoothing.
    - A weight of 2 counts as two rows. Weights with a mean below 1 are scaled to a mean of 1.
    - A noise at which nobody gets the positive decision counts as unfair, not as fair.
    - The fitted update stores the terms of up to `max_rows` people, since a Gaussian process needs
      them to predict.
    - The authors' code for FCGP-S subtracts a row from a column. Its difference is therefore a mean
      over all pairs of people. This class takes the mean over people.

    References
    ----------
    Nguyen, Gupta, Rana, Shilton, Venkatesh: "Fairness improvement for black-box classifiers with
    Gaussian process", Information Sciences 576, 2021.

    Examples
    --------
    >>> from commod.datasets import make_biased
    >>> from commod.rivals import FCGP
    >>> from sklearn.linear_model import LogisticRegression
    >>> data = make_biased(300, random_state=0)
    >>> model = LogisticRegression().fit(data.data, data.target)
    >>> update = FCGP(model, strength=0.9, random_state=0)
    >>> update = update.fit(data.data, sensitive_features=data.sensitive_features)
    >>> update.noise_ > 1e-5, update.n_points_
    (True, 300)
    >>> update.predict(data.data).shape
    (300,)
    """

    strength: float = 0.5
    variant: str = choice("labels", "scores")
    prior_mean: float = number(0.5, low=0.0, high=1.0, is_share=True)
    largest_noise: float = number(0.5, low=SMALLEST_NOISE, high=LARGEST_WEIGHT)
    n_noises: int = number(50, low=2, whole=True)
    max_rows: int = number(2000, low=2, whole=True)
    random_state: Any = None

    known_constraints: ClassVar[tuple[str, ...]] = (PARITY,)
    largest_strength = 1.0

    # -- learning -------------------------------------------------------------------------------

    def _learn_all(self, models: Sequence[Self], rows: RivalFitRows) -> None:
        """Fit the process once; the models differ only in the noise that they choose."""
        noises = np.linspace(SMALLEST_NOISE, float(self.largest_noise), int(self.n_noises))
        smoother, terms = self._fit_process(rows, noises)
        changes = smoother.changes(terms)
        gaps, differences = self._measure(rows, changes)
        chosen = np.array(
            [
                balanced_choice(gaps, differences, model.strength) if model.strength > 0 else 0
                for model in models
            ]
        )
        used, positions = np.unique(chosen, return_inverse=True)
        shared = replace(smoother, coefficients=smoother.coefficients[:, used])
        rows.remember(shared, lambda: changes[:, used])
        for model, position in zip(models, positions.tolist(), strict=True):
            model._smoother, model._position = shared, position
            model.noise_ = float(noises[used[position]])
            model.kernel_variance_, model.kernel_length_ = shared.kernel
            model.n_points_ = len(shared.points)

    def _fit_process(self, rows: RivalFitRows, noises: Floats) -> tuple[_Smoother, TermTable]:
        """Return the changes of the score for all noises, and the fit rows as terms."""
        encoding, terms = self._learn_terms(rows.columns, rows.weight)
        mean, scale, _ = safe_moments(terms, rows.weight)
        sample = _sample(rows.weight, int(self.max_rows), self.random_state)
        points = _standardised(terms.take(sample), mean, scale)
        weight = rows.weight[sample] * max(1.0, 1.0 / rows.weight[rows.weight > 0].mean())
        residual = rows.scores_at_half[sample] - float(self.prior_mean)
        few = slice(MAX_KERNEL_ROWS)
        kernel = fit_kernel(points[few], residual[few], weight[few])
        matrix = kernel_matrix(points, points, *kernel)
        coefficients = noise_coefficients(matrix, residual, weight, noises)
        return _Smoother(encoding, mean, scale, points, kernel, coefficients), terms

    def _measure(self, rows: RivalFitRows, changes: Floats) -> tuple[Floats, Floats]:
        """Return the gap and the difference for each noise, both of shape (n_noises,)."""
        share = rows.weight / rows.weight.sum()
        base_rates = rows.rates(self._constraint, rows.base.decisions)
        gaps, differences = np.zeros(changes.shape[1]), np.zeros(changes.shape[1])
        for j, change in enumerate(changes.T):
            moved = rows.scores_at_half + change > HALF
            positive = np.where(change == 0, rows.base.decisions, moved)
            rates = rows.rates(self._constraint, positive)
            rates = rates[np.isfinite(rates)]
            gaps[j] = np.ptp(rates) if len(rates) else 0.0
            if not rates.any() and np.nansum(base_rates) > 0:
                gaps[j] = 1.0
            if self.variant == "labels":
                changed = positive != rows.base.decisions
                differences[j] = share @ changed if changed.any() else 1.0
            else:
                differences[j] = share @ np.abs(change)
        return gaps, differences

    # -- deciding -------------------------------------------------------------------------------

    def _change(self, rows: DecisionRows) -> Floats:
        """Return m_v − m_v₀ on each row, shape (n,)."""
        smoother = self._smoother
        changes = rows.remember(
            smoother, lambda: smoother.changes(smoother.encoding.encode(rows.columns))
        )
        return np.asarray(changes[:, self._position])

    def _new_scores(self, rows: DecisionRows) -> Floats:
        change = self._change(rows)
        edited = np.clip(rows.scores_at_half + change, 0.0, 1.0)
        return np.where(change == 0, rows.base.scores, from_half(edited, rows.base.threshold))

    def _remarks(self) -> Iterator[str]:
        yield from super()._remarks()
        if self._fitted_param("strength") > 0 and not self.n_gains_ + self.n_losses_:
            yield "Nothing changes: no better noise changes a decision on the fit rows."


@dataclass(frozen=True, eq=False)
class _Smoother:
    """A fitted process on m points: the change of the score for k noises.

    `mean` and `scale` (d,) standardise the terms, `points` has shape (m, d), and `coefficients`
    (m, k). `kernel` has variance and length.
    """

    encoding: Encoding
    mean: Floats
    scale: Floats
    points: Floats
    kernel: tuple[float, float]
    coefficients: Floats

    def changes(self, terms: TermTable) -> Floats:
        """Return m_v − m_v₀ for each row and noise, shape (n, k)."""
        output = np.zeros((len(terms), self.coefficients.shape[1]))
        if not self.coefficients.any():
            return output
        for start in range(0, len(terms), CHUNK_ROWS):
            chunk = np.arange(start, min(start + CHUNK_ROWS, len(terms)))
            inputs = _standardised(terms.take(chunk), self.mean, self.scale)
            output[chunk] = kernel_matrix(inputs, self.points, *self.kernel) @ self.coefficients
        return output


def _standardised(terms: TermTable, mean: Floats, scale: Floats) -> Floats:
    """Return the terms as a dense matrix of z-scores, shape (n, d)."""
    dense = np.zeros((len(terms), terms.n_terms + 1))  # the last column collects rows without term
    dense[:, terms.numeric_terms] = terms.numeric
    for codes in terms.codes.T:
        dense[np.arange(len(terms)), codes] = 1.0
    return np.clip((dense[:, :-1] - mean) / scale, -FARTHEST, FARTHEST)


def _sample(weight: Floats, max_rows: int, random_state: Any) -> Indices:
    """Return at most `max_rows` rows that have weight, in random order."""
    rows = np.flatnonzero(weight > 0)
    return np.asarray(check_random_state(random_state).permutation(rows)[:max_rows])


# Kernels that are tried: lengths, in units of the median distance of two points, and variances.
LENGTHS = np.geomspace(0.03, 300.0, 13)
VARIANCES = np.geomspace(1e-5, 1e5, 41)


def kernel_matrix(a: Floats, b: Floats, variance: float, length: float) -> Floats:
    """Return the Gaussian kernel between the rows of `a` (n, d) and of `b` (m, d), shape (n, m).

    Examples
    --------
    >>> kernel_matrix(np.zeros((1, 1)), np.array([[0.0], [2.0]]), 2.0, 1.0).round(3)
    array([[2.   , 0.271]])
    """
    return np.asarray(variance * rbf_kernel(a, b, gamma=0.5 / length**2))


def fit_kernel(points: Floats, residual: Floats, weight: Floats) -> tuple[float, float]:
    """Return variance and length of the kernel that is most likely at the smallest noise.

    `points` has shape (n, d). `residual` (n,) is the score minus the prior mean. For each length,
    one eigendecomposition gives the likelihood of every variance. So the search has one dimension:
    a grid of lengths, then a refinement around the best one.
    """
    distances = np.sqrt(euclidean_distances(points, squared=True))
    typical = float(np.median(distances[distances > 0])) if distances.any() else 1.0

    def fitted(log_length: float) -> tuple[float, float, float]:
        length = typical * math.exp(log_length)
        matrix = kernel_matrix(points, points, 1.0, length)
        _, values, projected = directions(matrix, residual, weight)
        return *_best_variance(values, projected), length

    grid = np.log(LENGTHS)
    best = int(np.argmin([fitted(log_length)[0] for log_length in grid]))
    bounds = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
    refined = minimize_scalar(
        lambda log_length: fitted(log_length)[0], bounds=bounds, options={"xatol": 1e-4}
    )
    _, variance, length = min(fitted(grid[best]), fitted(refined.x), key=lambda result: result[0])
    return variance, length


def _best_variance(values: Floats, projected: Floats) -> tuple[float, float]:
    """Return the smallest negative log-likelihood, up to a constant, and the kernel's variance."""

    def loss(log_variance: Any) -> Any:
        total = np.exp(log_variance) * values + SMALLEST_NOISE
        return 0.5 * (projected**2 / total + np.log(total)).sum(axis=-1)

    grid = np.log(VARIANCES)
    best = int(np.argmin(loss(grid[:, None])))
    bounds = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
    refined = minimize_scalar(loss, bounds=bounds, options={"xatol": 1e-6})
    return float(refined.fun), math.exp(refined.x)


def directions(matrix: Floats, residual: Floats, weight: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the regression on n points for every noise, as an eigendecomposition.

    `matrix` (n, n) is the kernel of the points. The columns of the first array (n, n) are the
    directions. The eigenvalues (n,) and the residual along each direction (n,) come with them. The
    coefficients of m_v are √weight · (directions @ (residuals / (eigenvalues + v))).
    """
    root = np.sqrt(weight)
    values, vectors = eigh(root[:, None] * matrix * root)
    # Rounding makes the smallest eigenvalues negative; a kernel has none.
    return vectors, np.maximum(values, 0.0), vectors.T @ (root * residual)


def noise_coefficients(matrix: Floats, residual: Floats, weight: Floats, noises: Floats) -> Floats:
    """Return the coefficients of m_v − m_v₀ for each of k noises, (n, k); exactly 0 for v₀."""
    vectors, values, projected = directions(matrix, residual, weight)
    values, base = values[:, None], SMALLEST_NOISE
    factors = (base - noises) / (values + noises) / (values + base)
    inner = vectors @ (factors * projected[:, None])
    return np.asarray(np.sqrt(weight)[:, None] * inner)


def balanced_choice(gaps: Floats, differences: Floats, strength: float) -> int:
    """Return which candidate has the best balance of fairness and similarity, the first of equals.

    The balance is strength · (1 − gap) + (1 − strength) · (1 − difference); both have shape (k,).

    Examples
    --------
    >>> balanced_choice(np.array([0.4, 0.1]), np.array([0.0, 0.2]), strength=0.5)
    1
    """
    return int(np.argmax(strength * (1 - gaps) + (1 - strength) * (1 - differences)))
