"""P(S | x), or P(S, Y | x): the rivals that read these probabilities, and the models of them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import minimize
from scipy.special import softmax
from sklearn.base import clone
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import has_fit_parameter

from commod._data.arrays import Codes, Floats, Mask
from commod._data.binning import bin_edges
from commod._data.columns import Column
from commod._data.disclosure import MIN_CATEGORY_SIZE
from commod._data.encoding import BinTerms, Encoding, NumericTerms, TermTable, learn_encoding
from commod.exceptions import InputError
from commod.rivals._rows import DecisionRows, RivalFitRows
from commod.rivals.base import AwareRival, TermsRival


@dataclass(frozen=True)
class CountedCells:
    """The rows that count in the constraint, and the cells that they belong to.

    Attributes
    ----------
    counted : ndarray of shape (n_rows,)
        Which of the fit rows count.
    share : ndarray of shape (n,)
        Weights of the counted rows; they sum to 1.
    effects : ndarray of shape (n_rate_rows, n_groups, n)
        γ: the probability of each cell over the cell's share.
    """

    counted: Mask
    share: Floats
    effects: Floats


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
        return bool(self.fitted_param("aware"))

    def _check_parameters(self) -> None:
        super()._check_parameters()
        model = self.group_model
        is_classifier = all(hasattr(model, name) for name in ("fit", "predict_proba", "get_params"))
        if model is not None and (isinstance(model, type) or not is_classifier):
            raise InputError(
                f"group_model={model!r} is no classifier that can be fitted and gives "
                "probabilities. Pass one that is not fitted, such as RandomForestClassifier(), or "
                "None for the built-in logistic regression.",
                parameter="group_model",
            )

    # -- learning -------------------------------------------------------------------------------

    def _learn_cells(self, models: Sequence[Self], rows: RivalFitRows) -> CountedCells:
        """Fit the group model once and store it in each model, with multipliers of 0."""
        group_model = None if self.aware else self._fit_group_model(rows)
        counted = rows.is_counted
        share = rows.weight[counted] / rows.weight[counted].sum()
        proba = self._cell_probabilities(rows, rows.n_groups, group_model)[:, :, counted]
        shares = proba @ share
        for model in models:
            model.group_model_ = group_model
            model.shares_ = shares
            model.multipliers_ = np.zeros_like(shares)
        return CountedCells(counted, share, _divide_by_shares(proba, shares))

    def _fit_group_model(self, rows: RivalFitRows) -> GroupModel:
        codes = rows.group
        if self._constraint.needs_labels:
            assert rows.label is not None
            codes = np.where(codes >= 0, codes + rows.n_groups * rows.label, -1)
        return fit_group_model(
            rows,
            codes,
            group_model=self.group_model,
            min_category_size=int(self.min_category_size),
            locked=self.locked_features,
        )

    def _is_defined(self, rows: RivalFitRows) -> bool:
        """Return whether every rate is defined: each cell has rows and a predicted share."""
        has_rows = rows.cells(self._constraint).totals(rows.weight) > 0
        return bool(has_rows.all() and (self.shares_ > 0).all())

    def _sentence(self) -> str:
        text = super()._sentence()
        if not (self.shares_ > 0).all():
            text += " Nothing changes: for one of the groups, every row has probability 0."
        return text

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


def _divide_by_shares(proba: Floats, shares: Floats) -> Floats:
    """Return proba (n_rate_rows, n_groups, n) over the cells' shares; 0 where a share is 0."""
    shares = shares[:, :, None]
    return np.divide(proba, shares, out=np.zeros_like(proba), where=shares > 0)


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
    mean, scale = moments_of_numbers(table, weight)
    design = Design.of(table, mean, scale)
    classes, position = np.unique(codes, return_inverse=True)
    ridge = _ridge(encoding)[design.terms]
    weights, intercepts = softmax_regression(design, position, weight, ridge)
    points = np.zeros((len(classes), encoding.n_terms))
    points[:, design.terms] = weights.T / scale[design.terms]
    return LogisticGroupModel(encoding, points, intercepts - points @ mean, classes.astype(np.intp))


def moments_of_numbers(terms: TermTable, weight: Floats) -> tuple[Floats, Floats]:
    """Return what standardises numbers: mean and standard deviation of each term, both (d,).

    Categories stay 0 or 1, with mean 0 and scale 1: standardising them would penalise rare
    categories less.
    """
    mean, scale = terms.moments(weight)
    is_number = np.isin(np.arange(terms.n_terms), terms.numeric_terms)
    return np.where(is_number, mean, 0.0), np.where(is_number, scale, 1.0)


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
    design: Design, codes: Codes, weight: Floats, ridge: Floats
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
class Root:
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


def _curvature_root(design: Design, share: Floats, penalty: Floats, spread: float) -> Root:
    """Return a root of the loss's approximate second derivative, which all classes share.

    A number and its bins are nearly collinear, which slows plain steps down. In the coordinates of
    this root the regression takes a tenth of the steps.
    """
    if design.width > MANY_COLUMNS:
        squares = np.append(
            share @ design.numeric**2, design.gradient(share)[design.numeric.shape[1] :]
        )
        return Root(np.sqrt(spread * np.append(squares, 1.0) + penalty)[:, None], True)
    curvature = spread * mean_products(design, share) + np.diag(penalty)
    return Root(np.asarray(cholesky(curvature)), False)


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


BLOCK_SIZE = 1 << 14  # rows per block
MAX_COMBINED_ENTRIES = 4096  # the table of combined columns has to stay in the cache
MAX_COMBINED_TERMS = 256  # computing that table is a product with all of these terms
ROWS_PER_ENTRY = 8  # with fewer rows per entry, computing the table costs more than it saves
# Eight-byte codes are the fastest to look up; above this number of rows they take too much memory.
MAX_ROWS_WITH_WIDE_CODES = 1 << 17


class Lookup(NamedTuple):
    """One or several columns of categories: `entry` (n,) is the row's entry in a table.

    - `slots` (c,): the positions of the columns' terms among the categories of the design.
    - `levels` (n_columns, n_entries): the position of the term that each column has in an entry,
      −1 for none.
    - `matrix` (n_entries, c): its product with the weights of the terms is the table. None for a
      single column: its entries are its terms, in order, and a last one for rows with none.
    """

    entry: NDArray[np.integer]
    slots: NDArray[np.intp]
    levels: NDArray[np.intp]
    matrix: Floats | None = None

    @classmethod
    def of(cls, entry: NDArray[np.integer], slots: NDArray[np.intp]) -> Lookup:
        """Return the lookup of a single column."""
        return cls(entry, slots, np.append(slots, -1)[None])

    def table(self, weights: Floats) -> Floats:
        """Return what each entry adds, from the weights of all categories of the design."""
        if self.matrix is None:
            table = np.zeros(len(self.slots) + 1)  # faster than np.append
            table[:-1] = weights[self.slots]
            return table
        return np.asarray(self.matrix @ weights[self.slots])

    @property
    def n_entries(self) -> int:
        """Return the length of the table."""
        return self.levels.shape[1]

    @property
    def n_levels(self) -> int:
        """Return how many entries of a single column the rows use: all, or all but the last."""
        return int(self.entry.max(initial=0)) + 1

    def totals_by_slot(self, totals: Floats) -> Floats:
        """Return totals of the terms, (c,), from totals of the entries."""
        return totals[:-1] if self.matrix is None else self.matrix.T @ totals


@dataclass(frozen=True)
class Design:
    """Standardised terms of n rows: dense numbers (n, p), and categories behind lookups.

    - `inverse` (c,): one over the standard deviation of each category.
    - `terms` (d,): the term of each column of the design, numbers first.

    Categories are scaled, not centred: the offset absorbs the difference.
    """

    numeric: Floats
    lookups: tuple[Lookup, ...]
    inverse: Floats
    terms: NDArray[np.intp]

    @classmethod
    def of(cls, table: TermTable, mean: Floats, scale: Floats) -> Design:
        """Return the design of a table; terms without spread are left out."""
        keep = scale[table.numeric_terms] > 0
        numeric_terms = table.numeric_terms[keep]
        numeric = np.empty((len(table), len(numeric_terms)))
        for rows in row_blocks(len(table)):
            centred = table.numeric[rows][:, keep] - mean[numeric_terms]
            numeric[rows] = centred / scale[numeric_terms]
        categories = np.setdiff1d(np.flatnonzero(scale > 0), table.numeric_terms)
        terms = np.concatenate([numeric_terms, categories])
        lookups = _lookups(table, categories)
        return cls(numeric, lookups, 1 / scale[categories], terms)

    def __len__(self) -> int:
        return len(self.numeric)

    @property
    def width(self) -> int:
        """Return d, the number of columns."""
        return len(self.terms)

    def times(self, w: Floats) -> Floats:
        """Return the sum of the columns weighted by `w` (d,) for each row, shape (n,)."""
        p = self.numeric.shape[1]
        weights = w[p:] * self.inverse
        tables = [lookup.table(weights) for lookup in self.lookups]
        sums = np.empty(len(self))
        for rows in row_blocks(len(self)):
            block = self.numeric[rows] @ w[:p]
            for lookup, table in zip(self.lookups, tables, strict=True):
                block += table.take(lookup.entry[rows])
            sums[rows] = block
        return sums

    def gradient(self, g: Floats) -> Floats:
        """Return the sum of the rows weighted by `g` (n,), shape (d,)."""
        numeric = np.zeros(self.numeric.shape[1])
        totals = [np.zeros(lookup.n_entries) for lookup in self.lookups]
        for rows in row_blocks(len(self)):
            numeric += g[rows] @ self.numeric[rows]
            for lookup, entries in zip(self.lookups, totals, strict=True):
                entries += np.bincount(lookup.entry[rows], g[rows], minlength=len(entries))
        categories = np.zeros(len(self.inverse))
        for lookup, entries in zip(self.lookups, totals, strict=True):
            categories[lookup.slots] = lookup.totals_by_slot(entries)
        return np.concatenate([numeric, categories * self.inverse])

    def present(self) -> sparse.csr_array:
        """Return the categories as a sparse matrix, (n, c)."""
        total = sparse.csr_array((len(self), len(self.inverse)))
        for lookup in self.lookups:
            shape = lookup.n_entries, len(lookup.slots)
            matrix = np.eye(*shape) if lookup.matrix is None else lookup.matrix
            entries = np.zeros((lookup.n_entries, len(self.inverse)))
            entries[:, lookup.slots] = matrix * self.inverse[lookup.slots]
            total = total + sparse.csr_array(entries)[lookup.entry]
        return sparse.csr_array(total)


def row_blocks(n: int) -> Iterator[slice]:
    """Yield slices that together cover n rows."""
    for start in range(0, n, BLOCK_SIZE):
        yield slice(start, min(start + BLOCK_SIZE, n))


# ---------------------------------------------------------------------------------------------
# Lookups


def _lookups(table: TermTable, categories: NDArray[np.intp]) -> tuple[Lookup, ...]:
    """Return lookups for the columns of codes; `categories` are their terms, sorted."""
    starts = np.concatenate([table.numeric_terms, table.code_terms, [table.n_terms]])
    is_wide = len(table) <= MAX_ROWS_WITH_WIDE_CODES
    dtype = np.intp if is_wide else np.min_scalar_type(table.n_terms)
    single = []
    for codes, first in zip(table.codes.T, table.code_terms, strict=True):
        last = starts[starts > first].min()
        slots = np.flatnonzero((categories >= first) & (categories < last))
        if len(slots):
            entries = np.full(table.n_terms + 1, len(slots), dtype=dtype)
            entries[categories[slots]] = np.arange(len(slots))
            single.append(Lookup.of(entries[codes], slots))
    max_entries = min(MAX_COMBINED_ENTRIES, len(table) // ROWS_PER_ENTRY)
    return tuple(_combined(lookups) for lookups in _partition(single, max_entries))


def _partition(single: Sequence[Lookup], max_entries: int) -> list[list[Lookup]]:
    """Return single columns in groups with at most `max_entries` combinations, small ones first."""
    groups: list[list[Lookup]] = []
    n_entries, n_terms = max_entries + 1, 0
    for lookup in sorted(single, key=lambda lookup: len(lookup.slots)):
        n_entries, n_terms = n_entries * lookup.n_levels, n_terms + len(lookup.slots)
        if n_entries > max_entries or n_terms > MAX_COMBINED_TERMS:
            groups.append([])
            n_entries, n_terms = lookup.n_levels, len(lookup.slots)
        groups[-1].append(lookup)
    return groups


def _combined(lookups: Sequence[Lookup]) -> Lookup:
    """Return one lookup for several single columns."""
    if len(lookups) == 1:
        return lookups[0]
    sizes = [lookup.n_levels for lookup in lookups]
    n_entries = int(np.prod(sizes))
    is_wide = lookups[0].entry.dtype == np.intp
    dtype = np.dtype(np.intp if is_wide else np.min_scalar_type(n_entries))
    entry = np.zeros(len(lookups[0].entry), dtype)
    for lookup, size in zip(lookups, sizes, strict=True):
        entry *= dtype.type(size)
        entry += lookup.entry.astype(dtype, copy=False)
    chosen = np.unravel_index(np.arange(n_entries), sizes)
    levels = np.array([lookup.levels[0][at] for lookup, at in zip(lookups, chosen, strict=True)])
    slots = np.concatenate([lookup.slots for lookup in lookups])
    return Lookup(entry, slots, levels, (levels[:, :, None] == slots).any(axis=0) * 1.0)
