"""Group models: P(S | x), or P(S, Y | x), learned on the fit rows."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import minimize
from scipy.special import softmax
from sklearn.base import clone
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import has_fit_parameter

from commod._data.arrays import Codes, Floats
from commod._data.binning import bin_edges
from commod._data.columns import Column
from commod._data.disclosure import MIN_CATEGORY_SIZE
from commod._data.encoding import BinTerms, Encoding, NumericTerms, learn_encoding
from commod._solvers.design import Design
from commod.exceptions import InputError
from commod.rivals._rows import DecisionRows, RivalFitRows

# ---------------------------------------------------------------------------------------------
# Multinomial logistic regression on a `Design`, with a ridge penalty for each column


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
    mean, scale = table.moments(weight)
    is_number = np.isin(np.arange(encoding.n_terms), table.numeric_terms)
    # categories stay 0 or 1: standardising them would penalise rare categories less
    mean, scale = np.where(is_number, mean, 0.0), np.where(is_number, scale, 1.0)
    design = Design.of(table, mean, scale)
    classes, position = np.unique(codes, return_inverse=True)
    ridge = _ridge(encoding)[design.terms]
    weights, intercepts = softmax_regression(design, position, weight, ridge)
    points = np.zeros((len(classes), encoding.n_terms))
    points[:, design.terms] = weights.T / scale[design.terms]
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


MANY_COLUMNS = 2000  # above, the matrix of their products would be too large
STOP: Any = {"maxiter": 500, "maxfun": 1000, "ftol": 1e-12, "gtol": 1e-8}


def softmax_regression(
    design: Design, codes: NDArray[np.intp], weight: Floats, ridge: Floats
) -> tuple[Floats, Floats]:
    """Return weights (d, K) and intercepts (K,) of K classes.

    Parameters
    ----------
    design : Design of n rows and d columns
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
    root = _curvature_root(design, share, penalty, spread)
    start = np.zeros((design.width + 1, len(class_shares)))
    start[-1] = np.log(class_shares)
    rows = np.arange(len(codes))

    def loss(v: Floats) -> tuple[float, Floats]:
        table = root.solve(v.reshape(start.shape))
        logits = _times(design, table[:-1]) + table[-1]
        logits -= logits.max(axis=1, keepdims=True)
        true_logits = logits[rows, codes]
        odds = np.exp(logits, out=logits)
        total = odds.sum(axis=1)
        shrinkage = penalty[:, None] * table
        value = share @ (np.log(total) - true_logits) + (shrinkage * table).sum() / 2
        slope = np.divide(odds, total[:, None], out=odds)
        slope[rows, codes] -= 1
        slope *= share[:, None]
        gradient = np.vstack([_gradient(design, slope), slope.sum(axis=0)]) + shrinkage
        return float(value), root.solve(gradient, trans="T").ravel()

    optimum = minimize(loss, root.times(start).ravel(), jac=True, method="L-BFGS-B", options=STOP)
    table = root.solve(np.asarray(optimum.x).reshape(start.shape))
    return table[:-1], table[-1]


@dataclass(frozen=True)
class _Root:
    """A root U of a positive definite matrix UᵀU: triangular (d, d), or its diagonal (d, 1)."""

    root: Floats
    is_diagonal: bool

    def times(self, v: Floats) -> Floats:
        return self.root * v if self.is_diagonal else np.asarray(self.root @ v)

    def solve(self, v: Floats, trans: Any = "N") -> Floats:
        if self.is_diagonal:
            return v / self.root
        return np.asarray(solve_triangular(self.root, v, trans=trans))


def _times(design: Design, weights: Floats) -> Floats:
    """Return the weighted sums of the columns for weights (d, K), shape (n, K)."""
    return np.column_stack([design.times(w) for w in weights.T])


def _gradient(design: Design, slopes: Floats) -> Floats:
    """Return the weighted sums of the rows for slopes (n, K), shape (d, K)."""
    return np.column_stack([design.gradient(slope) for slope in slopes.T])


def _curvature_root(design: Design, share: Floats, penalty: Floats, spread: float) -> _Root:
    """Return a root of the loss's approximate second derivative, which all classes share.

    A number and its bins are nearly collinear, which slows plain steps down. In the coordinates of
    this root the regression takes a tenth of the steps.
    """
    if design.width > MANY_COLUMNS:
        squares = np.append(
            share @ design.numeric**2, design.gradient(share)[design.numeric.shape[1] :]
        )
        return _Root(np.sqrt(spread * np.append(squares, 1.0) + penalty)[:, None], True)
    curvature = spread * mean_products(design, share) + np.diag(penalty)
    return _Root(np.asarray(cholesky(curvature)), False)


def mean_products(design: Design, share: Floats) -> Floats:
    """Return the mean product of every two columns, a column of ones last; (d + 1, d + 1)."""
    is_dense = np.append(np.arange(design.width) < design.numeric.shape[1], True)
    dense = share[:, None] * np.column_stack([design.numeric, np.ones(len(design))])
    products = np.empty((len(is_dense), len(is_dense)))
    products[:, is_dense] = np.vstack([_gradient(design, dense), dense.sum(axis=0)])
    products[is_dense] = products[:, is_dense].T
    present = design.present()
    sparse_products = present.T @ (sparse.diags_array(share) @ present)
    products[np.ix_(~is_dense, ~is_dense)] = sparse_products.toarray()
    return products
