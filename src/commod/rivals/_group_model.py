"""P(S | x) and P(S, Y | x), learned on the fit rows, and what the rules that plug them in share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import has_fit_parameter

from commod._data.base_model import BaseScores
from commod._data.binning import bin_edges
from commod._data.columns import Column
from commod._data.encoding import BinTerms, ColumnTerms, Encoding, NumericTerms, learn_encoding
from commod._solvers.search.design import Design
from commod.bounds import bayes_optimal_scores
from commod.exceptions import InputError
from commod.rivals._solvers.plug_in import Programme, bent, decide, fair_margins
from commod.rivals.base import AwareRival, LearningRows, Rows
from commod.updates.base import check_locked, check_number

__all__ = ["PlugIn", "TermsModel", "UsersModel", "learn_group_model"]

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Codes = NDArray[np.intp]

# The inverse variance that a coefficient is expected to have: per standard deviation of a
# number, per category, per bin. Rare categories and bins stay near the straight line. Compared on
# Law School, COMPAS and three populations of make_biased by the log loss on new rows: five bins
# bring 5 % on Law School and cost at most 1 % where the truth is a straight line; the base score
# as one more number made new rows worse on COMPAS.
RIDGE_NUMBER, RIDGE_CATEGORY, RIDGE_BIN = 1.0, 10.0, 30.0
N_BINS = 5
MANY_TERMS = 2000  # a matrix of their products would be too large
STOP: Any = {"maxiter": 500, "maxfun": 1000, "ftol": 1e-12, "gtol": 1e-8}


# ---------------------------------------------------------------------------------------------
# The models


@dataclass(frozen=True)
class TermsModel:
    """A multinomial logistic regression as points on raw columns; holds no row.

    The logit of class `classes[k]` is `starts[k]` plus the `points[k]` (K, d) of the row's terms.
    """

    encoding: Encoding
    points: Floats
    starts: Floats
    classes: Codes

    def probabilities(self, rows: Rows) -> Floats:
        """Return the probability of each class, shape (K, n)."""
        terms = self.encoding.encode(rows.columns)
        tables = zip(self.points, self.starts.tolist(), strict=True)
        logits = np.stack([terms.total(points, start) for points, start in tables])
        odds = np.exp(logits - logits.max(axis=0))
        return np.asarray(odds / odds.sum(axis=0))


@dataclass(frozen=True)
class UsersModel:
    """A classifier that the user chose, fitted on X as it came; column k is class `classes[k]`."""

    model: Any
    classes: Codes

    def probabilities(self, rows: Rows) -> Floats:
        """Return the probability of each class, shape (K, n)."""
        proba = np.asarray(self.model.predict_proba(rows.X), dtype=np.float64)
        wanted = (len(rows), len(self.classes))
        if proba.shape != wanted or not ((proba >= 0) & (proba <= 1)).all():
            raise InputError(
                f"predict_proba of group_model={self.model!r} gave shape {proba.shape}, values "
                f"from {proba.min():.4g} to {proba.max():.4g}; expected probabilities of shape "
                f"{wanted}. Pass a classifier that gives one for each class."
            )
        return proba.T


GroupModel = TermsModel | UsersModel


def learn_group_model(
    rows: LearningRows,
    codes: Codes,
    *,
    group_model: Any = None,
    min_category_size: int = 20,
    locked: Collection[str] = (),
) -> GroupModel:
    """Return a model of the class `codes` (n,) of each row; rows with −1 are not learned from."""
    used = (codes >= 0) & (rows.weight > 0)
    codes, weight = codes[used], rows.weight[used]
    if group_model is not None:
        X = rows.X if used.all() else _safe_indexing(rows.X, np.flatnonzero(used))
        return _fit_given(group_model, X, codes, weight)
    columns = rows.columns if used.all() else [c.take(used) for c in rows.columns]
    return _fit_terms(columns, codes, weight, min_category_size, locked)


def _fit_given(group_model: Any, X: Any, codes: Codes, weight: Floats) -> UsersModel:
    weigh = has_fit_parameter(group_model, "sample_weight") and bool((weight != 1).any())
    model = clone(group_model).fit(X, codes, **({"sample_weight": weight} if weigh else {}))
    classes = np.asarray(model.classes_)
    if not np.isin(classes, codes).all():
        raise InputError(
            f"group_model={group_model!r} knows the classes {classes.tolist()[:6]}, not the "
            f"groups it was to learn, numbered {np.unique(codes).tolist()[:6]}. Pass a classifier "
            "that is not fitted; it is cloned and fitted here."
        )
    return UsersModel(model, classes.astype(np.intp))


def _fit_terms(
    columns: Sequence[Column],
    codes: Codes,
    weight: Floats,
    min_category_size: int,
    locked: Collection[str],
) -> TermsModel:
    encoding = learn_encoding(columns, weight, min_category_size=min_category_size, locked=locked)
    encoding = _with_bins(encoding, columns, weight, min_category_size)
    table = encoding.encode(columns)
    mean, scale = table.moments(weight)
    is_number = np.isin(np.arange(encoding.n_terms), table.numeric_terms)
    # categories count as 0 or 1: standardised, rare ones would be held back no more than others
    mean, scale = np.where(is_number, mean, 0.0), np.where(is_number, scale, 1.0)
    design = Design.of(table, mean, scale)
    classes, position = np.unique(codes, return_inverse=True)
    weights, intercepts = _softmax_regression(
        design, position, weight, _ridge(encoding)[design.terms]
    )
    points = np.zeros((len(classes), encoding.n_terms))
    points[:, design.terms] = weights.T / scale[design.terms]
    return TermsModel(encoding, points, intercepts - points @ mean, classes.astype(np.intp))


def _with_bins(
    encoding: Encoding, columns: Sequence[Column], weight: Floats, min_size: int
) -> Encoding:
    """Return the encoding with bins of each number beside the number itself."""
    given = {c.name: c for c in columns}
    bins: list[ColumnTerms] = []
    for spec in encoding.columns:
        if isinstance(spec, NumericTerms):
            column = given[spec.name]
            seen = ~column.is_missing()
            edges = bin_edges(column.values[seen], weight[seen], n_bins=N_BINS, min_size=min_size)
            if edges:
                bins.append(BinTerms(spec.name, edges, has_missing_term=False))
    return Encoding((*encoding.columns, *bins))


def _ridge(encoding: Encoding) -> Floats:
    """Return how much the coefficient of each term is held back, shape (d,)."""
    ridge: list[float] = []
    for spec in encoding.columns:
        if isinstance(spec, NumericTerms):
            ridge += [RIDGE_NUMBER, RIDGE_CATEGORY][: spec.n_terms]
        else:
            ridge += [RIDGE_BIN if isinstance(spec, BinTerms) else RIDGE_CATEGORY] * spec.n_terms
    return np.array(ridge)


def _softmax_regression(
    design: Design, codes: Codes, weight: Floats, ridge: Floats
) -> tuple[Floats, Floats]:
    """Return weights (d, K) and intercepts (K,) of a multinomial logistic regression."""
    share = weight / weight.sum()
    shares = np.bincount(codes, share)
    # whole weights mean repetition; weights that are scaled down do not make few rows of many
    penalty = np.append(ridge / max(float(weight.sum()), float(len(weight))), 0.0)
    root = _curvature(design, share, penalty, float((shares * (1 - shares)).mean()))
    start = np.zeros((design.width + 1, len(shares)))
    start[-1] = np.log(shares)
    rows = np.arange(len(codes))

    def loss(v: Floats) -> tuple[float, Floats]:
        table = root.solve(v.reshape(start.shape))
        logits = _times(design, table[:-1]) + table[-1]
        logits -= logits.max(axis=1, keepdims=True)
        right = logits[rows, codes]
        odds = np.exp(logits, out=logits)
        total = odds.sum(axis=1)
        held = penalty[:, None] * table
        value = share @ (np.log(total) - right) + (held * table).sum() / 2
        slope = np.divide(odds, total[:, None], out=odds)
        slope[rows, codes] -= 1
        slope *= share[:, None]
        by_table = np.vstack([_gradient(design, slope), slope.sum(axis=0)]) + held
        return float(value), root.solve(by_table, trans="T").ravel()

    found = minimize(loss, root.times(start).ravel(), jac=True, method="L-BFGS-B", options=STOP)
    table = root.solve(np.asarray(found.x).reshape(start.shape))
    return table[:-1], table[-1]


@dataclass(frozen=True)
class _Root:
    """A root U of a positive matrix UᵀU: triangular (d, d), or the diagonal (d, 1) alone."""

    root: Floats
    is_diagonal: bool

    def times(self, v: Floats) -> Floats:
        return self.root * v if self.is_diagonal else np.asarray(self.root @ v)

    def solve(self, v: Floats, trans: Any = "N") -> Floats:
        if self.is_diagonal:
            return v / self.root
        return np.asarray(solve_triangular(self.root, v, trans=trans))


def _times(design: Design, weights: Floats) -> Floats:
    """Return the weighted sums of the columns for several sets of weights (d, K), shape (n, K)."""
    return np.column_stack([design.times(w) for w in weights.T])


def _gradient(design: Design, g: Floats) -> Floats:
    """Return the sums of the rows for several sets of weights (n, K), shape (d, K)."""
    return np.column_stack([design.gradient(column) for column in g.T])


def _curvature(design: Design, share: Floats, penalty: Floats, spread: float) -> _Root:
    """Return a root of about the second derivative of the loss, which all classes share.

    A number and its bins say nearly the same, which makes plain steps slow: in the coordinates of
    this root the regression takes a tenth of them.
    """
    if design.width > MANY_TERMS:
        squares = np.append(
            share @ design.numeric**2, design.gradient(share)[design.numeric.shape[1] :]
        )
        return _Root(np.sqrt(spread * np.append(squares, 1.0) + penalty)[:, None], True)
    curvature = spread * _products(design, share) + np.diag(penalty)
    return _Root(np.asarray(cholesky(curvature)), False)


def _products(design: Design, share: Floats) -> Floats:
    """Return the mean product of each two columns and, last, of each with 1; (d + 1, d + 1)."""
    is_dense = np.append(np.arange(design.width) < design.numeric.shape[1], True)
    dense = share[:, None] * np.column_stack([design.numeric, np.ones(len(design))])
    products = np.empty((len(is_dense), len(is_dense)))
    products[:, is_dense] = np.vstack([_gradient(design, dense), dense.sum(axis=0)])
    products[is_dense] = products[:, is_dense].T
    present = design.present()
    both = present.T @ (sparse.diags_array(share) @ present)
    products[np.ix_(~is_dense, ~is_dense)] = both.toarray()
    return products


# ---------------------------------------------------------------------------------------------
# The rules


class PlugIn(AwareRival):
    """A rule that plugs probabilities into the best decision: positive where gain − Σ ψ_j γ_j > 0.

    The gain is what a positive decision is worth to the base model, score − threshold. γ_j is
    P(S = j | x) / P(S = j), or P(S = j, Y = y | x) / P(S = j, Y = y) for constraints on errors. A
    subclass finds the multipliers ψ in `_choose`.
    """

    aware: bool
    group_model: Any
    min_category_size: int
    lambda_ratio: float = 0.0
    group_model_: GroupModel | None
    multipliers_: Floats
    shares_: Floats
    largest_strength = 1.0

    @property
    def needs_sensitive_features(self) -> bool:  # type: ignore[override]
        """Return whether `predict` takes the sensitive attribute: as `aware` says."""
        return bool(self.aware)

    @abstractmethod
    def _choose(
        self, models: Sequence[Self], rows: LearningRows, used: Mask, programme: Programme
    ) -> None:
        """Set the multipliers of each model; the programme is about the rows in `used`."""

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number(self, "lambda_ratio", low=0.0)
        check_number(self, "min_category_size", low=1, whole=True)
        if isinstance(self.locked_features, str):
            check_locked(self.locked_features, [])
        given = self.group_model
        able = all(hasattr(given, name) for name in ("fit", "predict_proba", "get_params"))
        if given is not None and (isinstance(given, type) or not able):
            raise InputError(
                f"group_model={given!r} is no classifier that can be fitted and gives "
                "probabilities. Pass one that is not fitted, such as RandomForestClassifier(), or "
                "None for the built-in logistic regression."
            )

    # -- learning -------------------------------------------------------------------------------

    def _learn(self, rows: LearningRows) -> None:
        self._learn_all([self], rows)

    def _learn_all(self, models: Sequence[Self], rows: LearningRows) -> None:
        """Learn the groups once; the strengths differ in their multipliers alone."""
        check_locked(self.locked_features, rows.columns)
        group_model = None if self.aware else self._learn_groups(rows)
        used = rows.in_constraint & (rows.weight > 0)
        share = rows.weight[used] / rows.weight[used].sum()
        proba = self._cell_probabilities(rows, rows.n_groups, group_model)[:, :, used]
        shares = proba @ share
        for model in models:
            model.group_model_ = group_model
            model.shares_ = shares
            model.multipliers_ = np.zeros_like(shares)
        gain = self._gain(rows.base)[used]
        programme = Programme(gain, _over(proba, shares), share)
        self._choose(models, rows, used, programme)

    def _learn_groups(self, rows: LearningRows) -> GroupModel:
        codes = rows.group
        if self._constraint.needs_labels:
            assert rows.label is not None
            codes = np.where(codes >= 0, codes + rows.n_groups * rows.label, -1)
        return learn_group_model(
            rows,
            codes,
            group_model=self.group_model,
            min_category_size=int(self.min_category_size),
            locked=self.locked_features,
        )

    def _is_defined(self, rows: LearningRows) -> bool:
        """Return whether each cell has rows and a predicted share: else there is no rate."""
        there = rows.cells(self._constraint).totals(rows.weight) > 0
        return bool(there.all() and (self.shares_ > 0).all())

    def _sentence(self) -> str:
        text = super()._sentence()
        if not (self.shares_ > 0).all():
            text += " Nothing changes: no row has any probability of being in one of the groups."
        return text

    # -- deciding -------------------------------------------------------------------------------

    def _decide(self, rows: Rows) -> Mask:
        if not self.multipliers_.any():
            return rows.base.decisions
        proba = self._cell_probabilities(rows, self.shares_.shape[1], self.group_model_)
        effects = _over(proba, self.shares_)
        margins = fair_margins(self._gain(rows.base), effects, self.multipliers_)
        return decide(margins, rows.base.decisions)

    def _gain(self, base: BaseScores) -> Floats:
        """Return what a positive decision is worth before fairness counts, shape (n,)."""
        gain = bayes_optimal_scores(
            base.scores, base.decisions, cost=base.threshold, lambda_ratio=float(self.lambda_ratio)
        )
        return bent(gain) if self.aware and len(self._constraint.rate_rows) > 1 else gain

    def _cell_probabilities(
        self, rows: Rows, n_groups: int, group_model: GroupModel | None
    ) -> Floats:
        """Return P(S = j | x), or P(S = j, Y = y | x) for each y, shape (lines, n_groups, n)."""
        labels = [int(row.label) for row in self._constraint.rate_rows if row.label is not None]
        if group_model is not None:
            found = group_model.probabilities(rows)
            every = np.zeros((n_groups * (2 if labels else 1), len(rows)))
            every[group_model.classes] = found
            table = every.reshape(-1, n_groups, len(rows))
            return table[labels] if labels else table
        assert rows.group is not None
        known = (rows.group == np.arange(n_groups)[:, None]).astype(np.float64)
        if not labels:
            return known[None]
        score = rows.base.scores
        return np.stack([known * (score if label else 1 - score) for label in labels])


def _over(proba: Floats, shares: Floats) -> Floats:
    """Return probabilities (lines, groups, n) over their shares; 0 where a cell has none."""
    shares = shares[:, :, None]
    return np.divide(proba, shares, out=np.zeros_like(proba), where=shares > 0)
