"""P(S | x), or P(S, Y | x): the rivals that read these probabilities, and the models of them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy import sparse
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import minimize
from scipy.special import softmax
from sklearn.base import clone
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import has_fit_parameter

from commod._data.arrays import Codes, Floats, Mask
from commod._data.columns import Column
from commod._data.disclosure import MIN_CATEGORY_SIZE
from commod._data.encoding import (
    BinTerms,
    Encoding,
    NumericTerms,
    TermTable,
    bin_edges,
    learn_encoding,
)
from commod.exceptions import InputError
from commod.rivals._rows import DecisionRows, RivalFitRows
from commod.rivals.base import AwareRival, TermsRival


@dataclass(eq=False, repr=False, kw_only=True)
class GroupProbabilityRival(TermsRival, AwareRival):
    """A rule on the effects γ_j: P(S = j | x) / P(S = j), or the same with the true label.

    - For constraints that compare errors, γ_j is P(S = j, Y = y | x) / P(S = j, Y = y).
    - If `aware` is True, the group is known. Otherwise a group model predicts it.
    """

    aware: bool = False
    group_model: Any = None

    largest_strength = 1.0

    @property
    def needs_sensitive_features(self) -> bool:  # type: ignore[override]
        """Return whether `predict` takes the sensitive features: the value of `aware`."""
        return bool(self._fitted_param("aware"))

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.group_model is not None and not is_classifier(self.group_model):
            raise InputError(
                f"group_model={self.group_model!r} is no classifier that can be fitted and gives "
                "probabilities. Pass one that is not fitted, such as RandomForestClassifier(), or "
                "None for the built-in logistic regression.",
                parameter="group_model",
            )

    # -- learning -------------------------------------------------------------------------------

    def _learn_cells(
        self, models: Sequence[Self], rows: RivalFitRows
    ) -> tuple[Mask, Floats, Floats]:
        """Fit the group model once and store it in each model, with multipliers of 0.

        Return which rows count (n_rows,), the weights of the n counted rows, which sum to 1, and
        the effects γ (n_rate_rows, n_groups, n) of these rows.
        """
        group_model = None
        if not self.aware:
            codes = rows.group
            if self._constraint.needs_labels:
                assert rows.label is not None
                codes = np.where(codes >= 0, codes + rows.n_groups * rows.label, -1)
            group_model = fit_group_model(
                rows,
                codes,
                group_model=self.group_model,
                min_category_size=int(self.min_category_size),
                locked=self.locked_features,
            )
        counted = rows.is_counted
        share = rows.weight[counted] / rows.weight[counted].sum()
        proba = self._cell_probabilities(rows, rows.n_groups, group_model)[:, :, counted]
        shares = proba @ share
        for model in models:
            model.group_model_ = group_model
            model.shares_ = shares
            model.multipliers_ = np.zeros_like(shares)
        return counted, share, _divide_by_shares(proba, shares)

    def _is_defined(self, rows: RivalFitRows) -> bool:
        """Return whether every rate is defined: each cell has rows and a predicted share."""
        has_rows = rows.cells(self._constraint).totals(rows.weight) > 0
        return bool(has_rows.all() and (self.shares_ > 0).all())

    def _remarks(self) -> Iterator[str]:
        yield from super()._remarks()
        if not (self.shares_ > 0).all():
            yield "Nothing changes: for one of the groups, every row has probability 0."

    # -- deciding -------------------------------------------------------------------------------

    def _effects(self, rows: DecisionRows) -> Floats:
        """Return γ of new rows, shape (n_rate_rows, n_groups, n)."""
        proba = self._cell_probabilities(rows, self.shares_.shape[1], self.group_model_)
        return _divide_by_shares(proba, self.shares_)

    def _cell_probabilities(
        self, rows: DecisionRows, n_groups: int, group_model: GroupModel | None
    ) -> Floats:
        """Return the probability that a row is in each cell, shape (n_rate_rows, n_groups, n).

        It is P(S = j | x), or P(S = j, Y = y | x) with the label y of the rate row. Without a group
        model the group is known, and the shifted base score is P(Y = 1 | x).
        """
        n_labels = 2 if self._constraint.needs_labels else 1
        if group_model is not None:
            classes = np.zeros((n_labels * n_groups, len(rows)))
            classes[group_model.classes] = group_model.probabilities(rows)
            table = classes.reshape(n_labels, n_groups, len(rows))
        else:
            assert rows.group is not None
            known = (rows.group == np.arange(n_groups)[:, None]).astype(np.float64)
            score = rows.scores_at_half
            table = np.stack([known * (1 - score), known * score] if n_labels > 1 else [known])
        return self._constraint.by_rate_row(table)


def is_classifier(model: Any) -> bool:
    """Return whether a user's object can be cloned and fitted, and gives probabilities."""
    needed = ("fit", "predict_proba", "get_params")
    return not isinstance(model, type) and all(hasattr(model, name) for name in needed)


def _divide_by_shares(proba: Floats, shares: Floats) -> Floats:
    """Return proba (n_rate_rows, n_groups, n) over the cells' shares; 0 where a share is 0."""
    shares = shares[:, :, None]
    return np.divide(proba, shares, out=np.zeros_like(proba), where=shares > 0)


# ---------------------------------------------------------------------------------------------
# Multinomial logistic regression on terms, with a ridge penalty for each column


# Ridge penalties, the inverse of a coefficient's expected variance: per standard deviation of a
# number, per category, per bin. They keep rare categories and bins near the straight line. Chosen
# by the log loss on new rows of Law School, COMPAS and three populations of make_biased. Five bins
# gain 5 % on Law School and cost at most 1 % where the truth is a straight line. The base score as
# an additional number made new rows worse on COMPAS.
RIDGE_NUMBER, RIDGE_CATEGORY, RIDGE_BIN = 1.0, 10.0, 30.0
N_BINS = 5


@dataclass(frozen=True)
class LogisticGroupModel:
    """A multinomial logistic regression as points on raw columns; it stores no row.

    The logit of class `classes[k]` is `intercepts[k]` plus the points `points[k]` of the row's
    terms. `points` has shape (K, d).
    """

    encoding: Encoding
    points: Floats
    intercepts: Floats
    classes: Codes

    def probabilities(self, rows: DecisionRows) -> Floats:
        """Return the probability of each class, shape (K, n)."""
        terms = self.encoding.encode(rows.columns)
        by_class = zip(self.points, self.intercepts.tolist(), strict=True)
        logits = np.stack([terms.total(points, intercept) for points, intercept in by_class])
        return np.asarray(softmax(logits, axis=0))


@dataclass(frozen=True)
class CustomGroupModel:
    """A classifier of the user, fitted on X as passed; column k predicts class `classes[k]`."""

    model: Any
    classes: Codes
    name: str = "group_model"  # of the parameter

    def probabilities(self, rows: DecisionRows) -> Floats:
        """Return the probability of each class, shape (K, n)."""
        proba = np.asarray(self.model.predict_proba(rows.X), dtype=np.float64)
        shape = (len(rows), len(self.classes))
        if proba.shape != shape or not ((proba >= 0) & (proba <= 1)).all():
            raise InputError(
                f"predict_proba of {self.name}={self.model!r} gave shape {proba.shape}, values "
                f"from {proba.min():.4g} to {proba.max():.4g}; expected probabilities of shape "
                f"{shape}. Pass a classifier that gives one probability for each class."
            )
        return proba.T


GroupModel = LogisticGroupModel | CustomGroupModel


def fit_group_model(
    rows: RivalFitRows,
    codes: Codes,
    *,
    group_model: Any = None,
    min_category_size: int = MIN_CATEGORY_SIZE,
    locked: Collection[str] = (),
    name: str = "group_model",
) -> GroupModel:
    """Return a model of the class `codes` (n,) of each row.

    Rows with code −1 or weight 0 are left out. `group_model` is an unfitted classifier of the user,
    passed as the parameter `name`; None means a logistic regression, which does not read the
    `locked` columns.
    """
    used = (codes >= 0) & (rows.weight > 0)
    codes, weight = codes[used], rows.weight[used]
    if group_model is not None:
        X = rows.X if used.all() else _safe_indexing(rows.X, np.flatnonzero(used))
        return _fit_custom(group_model, X, codes, weight, name)
    columns = rows.columns if used.all() else [column.take(used) for column in rows.columns]
    return _fit_logistic(columns, codes, weight, min_category_size, locked)


def _fit_custom(
    group_model: Any, X: Any, codes: Codes, weight: Floats, name: str
) -> CustomGroupModel:
    weighted = has_fit_parameter(group_model, "sample_weight") and bool((weight != 1).any())
    model = clone(group_model).fit(X, codes, **({"sample_weight": weight} if weighted else {}))
    classes = np.asarray(model.classes_)
    if not np.isin(classes, codes).all():
        raise InputError(
            f"{name}={group_model!r} knows the classes {classes.tolist()[:6]}, but was to "
            f"learn the classes {np.unique(codes).tolist()[:6]}. Pass a classifier that "
            "is not fitted; commod clones and fits it.",
            parameter=name,
        )
    return CustomGroupModel(model, classes.astype(np.intp), name)


def _fit_logistic(
    columns: Sequence[Column],
    codes: Codes,
    weight: Floats,
    min_category_size: int,
    locked: Collection[str],
) -> LogisticGroupModel:
    encoding = learn_encoding(columns, weight, min_category_size=min_category_size, locked=locked)
    encoding = _add_bins(encoding, columns, weight, min_category_size)
    table = encoding.encode(columns)
    mean, scale = moments_of_numbers(table, weight)
    classes, position = np.unique(codes, return_inverse=True)
    matrix = term_matrix(table, mean, scale)
    weights, intercepts = softmax_regression(matrix, position, weight, _ridge(encoding))
    points = weights.T / scale
    return LogisticGroupModel(encoding, points, intercepts - points @ mean, classes.astype(np.intp))


def _add_bins(
    encoding: Encoding, columns: Sequence[Column], weight: Floats, min_size: int
) -> Encoding:
    """Return the encoding with bins of each number in addition to the number itself."""
    by_name = {column.name: column for column in columns}
    bins = []
    for spec in encoding.columns:
        if isinstance(spec, NumericTerms):
            column = by_name[spec.name]
            seen = ~column.is_missing()
            edges = bin_edges(column.values[seen], weight[seen], n_bins=N_BINS, min_size=min_size)
            if edges:
                bins.append(BinTerms(spec.name, edges, has_missing_term=False))
    return Encoding((*encoding.columns, *bins))


def _ridge(encoding: Encoding) -> Floats:
    """Return the ridge penalty of each term, shape (d,)."""
    ridge: list[float] = []
    for spec in encoding.columns:
        if isinstance(spec, NumericTerms):  # the number, then its term for missing values
            ridge += [RIDGE_NUMBER, RIDGE_CATEGORY][: spec.n_terms]
        else:
            ridge += [RIDGE_BIN if isinstance(spec, BinTerms) else RIDGE_CATEGORY] * spec.n_terms
    return np.array(ridge)


STOP: Any = {"maxiter": 500, "maxfun": 1000, "ftol": 1e-12, "gtol": 1e-8}


def softmax_regression(
    matrix: sparse.csr_array, codes: Codes, weight: Floats, ridge: Floats
) -> tuple[Floats, Floats]:
    """Return weights (d, K) and intercepts (K,) of K classes.

    Parameters
    ----------
    matrix : sparse array of shape (n, d)
    codes : ndarray of shape (n,)
        The class of each row, from 0 to K − 1.
    weight : ndarray of shape (n,)
    ridge : ndarray of shape (d,)
        The penalty of each column's squared weight. Intercepts have none.
    """
    share = weight / weight.sum()
    class_shares = np.bincount(codes, share)
    # a weight of 2 means two rows; weights below 1 on average do not make the rows fewer
    penalty = np.append(ridge / max(float(weight.sum()), float(len(weight))), 0.0)
    spread = float((class_shares * (1 - class_shares)).mean())
    root = curvature_root(matrix, share, penalty, spread)
    start = np.zeros((matrix.shape[1] + 1, len(class_shares)))
    start[-1] = np.log(class_shares)
    rows = np.arange(len(codes))

    def loss(v: Floats) -> tuple[float, Floats]:
        table = solve_root(root, v.reshape(start.shape))
        logits = matrix @ table[:-1] + table[-1]
        logits -= logits.max(axis=1, keepdims=True)
        true_logits = logits[rows, codes]
        odds = np.exp(logits, out=logits)
        total = odds.sum(axis=1)
        shrinkage = penalty[:, None] * table
        value = share @ (np.log(total) - true_logits) + (shrinkage * table).sum() / 2
        slope = np.divide(odds, total[:, None], out=odds)
        slope[rows, codes] -= 1
        slope *= share[:, None]
        gradient = np.vstack([matrix.T @ slope, slope.sum(axis=0)]) + shrinkage
        return float(value), solve_root(root, gradient, trans="T").ravel()

    optimum = minimize(
        loss, times_root(root, start).ravel(), jac=True, method="L-BFGS-B", options=STOP
    )
    table = solve_root(root, np.asarray(optimum.x).reshape(start.shape))
    return table[:-1], table[-1]


# ---------------------------------------------------------------------------------------------
# Regressions on standardised terms

MANY_COLUMNS = 2000  # above, the matrix of their products would be too large


def moments_of_numbers(terms: TermTable, weight: Floats) -> tuple[Floats, Floats]:
    """Return what standardises numbers: mean and standard deviation of each term, both (d,).

    Categories stay 0 or 1, with mean 0 and scale 1: standardising them would penalise rare
    categories less. A term that does not vary has an infinite scale, so that it counts as 0.
    """
    mean, scale = terms.moments(weight)
    is_number = np.isin(np.arange(terms.n_terms), terms.numeric_terms)
    varying = np.where(is_number, scale, 1.0)
    return np.where(is_number, mean, 0.0), np.where(scale > 0, varying, np.inf)


def term_matrix(terms: TermTable, mean: Floats, scale: Floats) -> sparse.csr_array:
    """Return the terms as a sparse matrix (n, d): numbers standardised, categories 1/scale."""
    n = len(terms)
    numbers = (terms.numeric - mean[terms.numeric_terms]) / scale[terms.numeric_terms]
    present = np.append(1 / scale, 0.0)[terms.codes]
    column = np.column_stack([np.tile(terms.numeric_terms, (n, 1)), terms.codes])
    row = np.repeat(np.arange(n), column.shape[1])
    values = np.column_stack([numbers, present])
    shape = n, terms.n_terms + 1  # the last column collects rows without a category
    matrix = sparse.csr_array((values.ravel(), (row, column.ravel())), shape)
    return sparse.csr_array(matrix[:, :-1])


def mean_products(matrix: Any, share: Floats) -> Floats:
    """Return the mean product of every two columns, a column of ones last; (d + 1, d + 1).

    `matrix` (n, d) is dense or sparse.
    """
    d = matrix.shape[1]
    products = np.empty((d + 1, d + 1))
    if sparse.issparse(matrix):
        products[:d, :d] = (matrix.T @ matrix.multiply(share[:, None])).toarray()
    else:
        products[:d, :d] = matrix.T @ (matrix * share[:, None])
    products[d, :d] = products[:d, d] = matrix.T @ share
    products[d, d] = share.sum()
    return products


# A root U of a positive definite matrix UᵀU is triangular (d, d), or its diagonal (d,).


def times_root(root: Floats, v: Floats) -> Floats:
    """Return Uv for v of shape (d,) or (d, K)."""
    return np.asarray(root @ v if root.ndim > 1 else (root * v.T).T)


def solve_root(root: Floats, v: Floats, trans: Any = "N") -> Floats:
    """Return U⁻¹v, or the same for Uᵀ, for v of shape (d,) or (d, K)."""
    return np.asarray(solve_triangular(root, v, trans=trans) if root.ndim > 1 else (v.T / root).T)


def curvature_root(
    matrix: Any, share: Floats, penalty: Floats, spread: float, least: float = 0.0
) -> Floats:
    """Return a root of a log loss's approximate second derivative, which all classes share.

    It is `spread` times the mean products of the columns, and `penalty` (d + 1,) on its diagonal.
    The diagonal grows by the share `least`, if columns may be collinear. For many columns, only the
    diagonal is returned.

    A number and its bins are nearly collinear, which slows plain steps down. In the coordinates of
    this root the regression takes a tenth of the steps.
    """
    squares = matrix.multiply(matrix) if sparse.issparse(matrix) else matrix**2
    diagonal = spread * np.append(squares.T @ share, share.sum()) + penalty
    diagonal += least * np.maximum(diagonal, least * diagonal.max())
    if len(diagonal) > MANY_COLUMNS:
        return np.asarray(np.sqrt(diagonal))
    curvature = spread * mean_products(matrix, share)
    np.fill_diagonal(curvature, diagonal)
    return np.asarray(cholesky(curvature))
