"""Learn how likely each row belongs to each cell, from models that never saw the row.

Which group and label a person has is partly chance. A direction that is fitted to true cells also
fits this chance, and new people do not repeat it. A search on probabilities of the cells does not.

All rows are in folds. The probabilities of a row come from a model that was fitted without the fold
of the row. A search that leaves out one more fold uses models without both of them.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import logit
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from commod._data.columns import Column
from commod._data.encoding import CategoryTerms, Encoding, TermTable, learn_encoding
from commod._solvers.search.threads import single_blas_thread
from commod.exceptions import InputError
from commod.updates._probable_cells import ProbableCells
from commod.updates._problem import FitProblem

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Codes = NDArray[np.intp]
FoldNumbers = NDArray[np.integer]  # short: there are five folds

N_FOLDS = 5
RIDGE = 0.01  # per standard deviation of a term, on the mean loss
N_STEPS, TOLERANCE = 30, 1e-3  # of a regression: probabilities need few digits
MAX_DENSE_ENTRIES = 4_000_000  # of a matrix: products with larger ones are quicker if sparse
MAX_LEARNING_ROWS = 50_000  # of a regression: more rows change its probabilities very little
MAX_ENCODING_ROWS = 200_000  # that bins and categories of the regressions are learned from
BLOCK_ROWS = 200_000  # whose matrix is in memory at the same time
SMALLEST_PROBABILITY = 1e-6  # of a cell: less hardly moves a model
N_BASE_NUMBERS = 2  # of the numbers: logit of the base score, base decision
MAX_SCORE = 1 - 1e-6  # a score of 1 has no finite logit


def draw_folds(problem: FitProblem) -> FoldNumbers:
    """Return the fold of each row, (n,); folds have equal shares of each cell and decision.

    They depend on cells and decisions alone. Models of soft cells have drawn them already.
    """
    soft = problem.soft_cells
    if isinstance(soft, SoftCells) and soft.without is None:
        return soft.models.fold[soft.rows]
    strata = 2 * (problem.cells.index + 1) + problem.rows.base.decisions
    strata = strata.astype(np.min_scalar_type(int(strata.max(initial=0))))  # short: quick to sort
    random_draws = np.random.RandomState(0).random_sample(len(strata))
    fold = np.empty(len(strata), dtype=np.int8)
    fold[np.lexsort([random_draws, strata])] = np.arange(len(strata)) % N_FOLDS
    return fold


class CellRegression(NamedTuple):
    """A logistic regression of the cell, and the cells that its rows are in."""

    model: LogisticRegression
    cells: Codes


@dataclass(frozen=True)
class CellModels:
    """Logistic regressions of the cell of each row on its terms, fitted when they are needed.

    - `terms`: the terms of the rows; `numbers`: further columns.
    - `scale` (n_terms,): the standard deviation of the terms.
    - `cell` (n,): the cell within the stratum of the row, −1 for a row in no cell; `n_cells` is
      the number of cells of a stratum. Columns say in which stratum a row is.
    - `weight` (n,), `fold` (n,): the weight and the fold of each row.
    - `is_known` (n,): rows whose group is known. Models are fitted on these, and apply to all rows.
    - `membership` (n, n_cells): probabilities of the cells where users state those of the groups.
    """

    terms: BinnedTerms
    numbers: BaseNumbers
    scale: Floats
    cell: NDArray[np.integer]
    n_cells: int
    weight: Floats
    fold: FoldNumbers
    is_known: Mask
    membership: Floats | None = None
    _fitted: dict[frozenset[int], CellRegression] = field(default_factory=dict)

    @classmethod
    def of(cls, problem: FitProblem, terms: BinnedTerms, scale: Floats) -> CellModels:
        """Return the models of a problem, for its terms and their standard deviation."""
        rows, cells = problem.rows, problem.cells
        n_cells = problem.compared.n_cells_of_stratum
        return cls(
            terms=terms,
            numbers=BaseNumbers.of(problem),
            scale=np.where(scale > 0, scale, 1.0),
            # Short numbers: all rows of a large table are held while an update is searched.
            cell=np.where(cells.index < 0, -1, cells.index % n_cells).astype(
                np.min_scalar_type(-n_cells - 1)
            ),
            n_cells=n_cells,
            weight=rows.weight,
            fold=draw_folds(problem),
            is_known=rows.groups.codes >= 0,
            membership=cells.membership(n_cells) if isinstance(cells, ProbableCells) else None,
        )

    def label_probabilities(self, label: Mask, rows: Codes) -> Floats | None:
        """Return the probability of a positive label for `rows` (m,), from models without its fold.

        These models do not know the base score. None where a model would see one label only.
        """
        matrix = self._matrix(rows, n_left_out=N_BASE_NUMBERS)
        label, weight, fold = label[rows], self.weight[rows], self.fold[rows]
        result = np.empty(len(rows))
        for number in range(N_FOLDS):
            known, held_out = fold != number, fold == number
            if label[known].all() or not label[known].any():
                return None
            model = self._regression(matrix[known], label[known], weight[known])
            result[held_out] = model.predict_proba(matrix[held_out])[:, -1]
        return result

    def probabilities(self, rows: Codes, without: int | None) -> Floats:
        """Return the probabilities of the cells of their stratum, (m, n_cells), for `rows` (m,).

        They depend neither on the fold of the row nor on the fold `without`.
        """
        result = np.zeros((len(rows), self.n_cells + 1))
        for block in _blocks(len(rows)):
            matrix, fold = self._matrix(rows[block]), self.fold[rows[block]]
            for number in np.unique(fold):
                model, cells = self._without(frozenset({number, without} - {None}))
                is_in = fold == number
                result[block][np.ix_(is_in, cells)] = model.predict_proba(matrix[is_in])
        return result[:, :-1]

    def _without(self, left_out: frozenset[int]) -> CellRegression:
        """Return the regression on the rows that are in none of the folds `left_out`."""
        if left_out not in self._fitted:
            rows = learning_rows(~np.isin(self.fold, list(left_out)) & self.is_known)
            self._fitted[left_out] = self._fit(rows)
        return self._fitted[left_out]

    def _fit(self, rows: Codes) -> CellRegression:
        cells = self.cell[rows].astype(np.intp)
        cells[cells < 0] = self.n_cells
        weight = self.weight[rows]
        if self.membership is not None:  # a row counts in each of its cells, by its probability
            rows, cells, weight = self._spread(rows)
        start = next(iter(self._fitted.values()), None)  # any start will do: the loss is convex
        if start is not None and not np.array_equal(start.cells, np.unique(cells)):
            start = None
        first = None if start is None else start.model
        model = self._regression(self._matrix(rows), cells, weight, first)
        return CellRegression(model, model.classes_)

    def _spread(self, rows: Codes) -> tuple[Codes, Codes, Floats]:
        """Return `rows` (m,) once per possible cell, with that cell and the weight it has there."""
        assert self.membership is not None
        inside = self.membership[rows]
        shares = np.column_stack([inside, np.maximum(1 - inside.sum(axis=1), 0.0)])
        shares[shares < SMALLEST_PROBABILITY] = 0.0
        position, cells = np.nonzero(shares)
        return rows[position], cells, self.weight[rows[position]] * shares[position, cells]

    @staticmethod
    def _regression(
        matrix: Any, classes: Any, weight: Floats, start: LogisticRegression | None = None
    ) -> LogisticRegression:
        """Return a logistic regression of the classes; it begins from `start`."""
        strength = 1 / (RIDGE * len(weight))
        model = LogisticRegression(C=strength, max_iter=N_STEPS, tol=TOLERANCE, warm_start=True)
        if start is not None:
            model.coef_, model.intercept_ = start.coef_.copy(), start.intercept_.copy()
        with warnings.catch_warnings(), single_blas_thread:
            warnings.simplefilter("ignore", ConvergenceWarning)
            return model.fit(matrix, classes, weight / weight.mean())

    def _matrix(self, rows: Codes, n_left_out: int = 0) -> Floats | sparse.csr_matrix:
        """Return the terms of `rows` as a matrix whose columns have spread 1.

        The first `n_left_out` of the numbers are not part of it.
        """
        numbers = self.numbers.take(rows)[:, n_left_out:]
        codes, n_terms = self.terms.codes(rows), len(self.scale)
        is_present = codes < n_terms
        position = np.broadcast_to(np.arange(len(rows))[:, None], codes.shape)[is_present]
        present = codes[is_present].astype(np.intp)
        shape = (len(rows), n_terms)
        terms = sparse.csr_matrix((1 / self.scale[present], (position, present)), shape=shape)
        if terms.shape[0] * terms.shape[1] <= MAX_DENSE_ENTRIES:
            return np.hstack([numbers, terms.toarray()])
        return sparse.hstack([sparse.csr_matrix(numbers), terms], format="csr")


def learning_rows(is_known: Mask) -> Codes:
    """Return the known rows, or a random part of them where they are too many."""
    return random_part(np.flatnonzero(is_known), MAX_LEARNING_ROWS)


def random_part(rows: Codes, most: int) -> Codes:
    """Return the rows, or a random part of them where there are more than `most`."""
    return rows if len(rows) <= most else np.random.RandomState(0).permutation(rows)[:most]


@dataclass(frozen=True)
class BinnedTerms:
    """The terms of n rows, with numbers in bins; without a `table`, rows are encoded when taken."""

    encoding: Encoding
    columns: Sequence[Column]
    table: TermTable | None

    def codes(self, rows: Codes) -> NDArray[np.int16] | NDArray[np.int32]:
        """Return the codes of `rows` (m,), (m, q), as in a `TermTable`."""
        if self.table is not None:
            return self.table.codes[rows]
        return self.encoding.encode([column.take(rows) for column in self.columns]).codes


@dataclass(frozen=True)
class BaseNumbers:
    """Logit of the base score, base decision and numeric terms; standardised where rows are taken.

    - `scores`, `decisions` (n,) and `numeric` (n, k − 2): the columns of all rows.
    - `mean`, `spread` (k,): the weighted mean and standard deviation of the columns.
    """

    scores: Floats
    decisions: Mask
    numeric: Floats
    mean: Floats
    spread: Floats

    @classmethod
    def of(cls, problem: FitProblem) -> BaseNumbers:
        """Return the numbers of a problem; many rows have mean and spread of a random part."""
        base, weight = problem.rows.base, problem.rows.weight
        columns = base.for_positive.scores, base.decisions, problem.terms.numeric
        part: Codes | slice = slice(None)
        if len(weight) > MAX_ENCODING_ROWS:
            part = random_part(np.arange(len(weight)), MAX_LEARNING_ROWS)
        numbers, share = _numbers(*columns, part), weight[part] / weight[part].sum()
        mean = share @ numbers
        spread = np.sqrt(share @ (numbers - mean) ** 2)
        return cls(*columns, mean, np.where(spread > 0, spread, 1.0))

    def take(self, rows: Codes) -> Floats:
        """Return the standardised numbers of `rows` (m,), (m, k)."""
        numbers = _numbers(self.scores, self.decisions, self.numeric, rows)
        return np.asarray((numbers - self.mean) / self.spread)


def _numbers(scores: Floats, decisions: Mask, numeric: Floats, rows: Codes | slice) -> Floats:
    clipped = np.clip(scores[rows], 1 - MAX_SCORE, MAX_SCORE)
    return np.column_stack([logit(clipped), decisions[rows], numeric[rows]])


def _blocks(n: int) -> list[slice]:
    return [slice(first, first + BLOCK_ROWS) for first in range(0, n, BLOCK_ROWS)]


@dataclass(frozen=True)
class SoftCells:
    """Probabilities of the cells for the rows of a problem, which are `rows` of the models.

    They do not depend on the fold `without`; None where the problem has the rows of all folds.
    """

    models: CellModels
    rows: Codes
    without: int | None = None

    def of(self, index: Codes) -> Floats:
        """Return the probabilities for the rows `index` (m,) of the problem, (m, n_cells)."""
        return self.models.probabilities(self.rows[index], self.without)


def with_soft_cells(problem: FitProblem, models: CellModels) -> FitProblem:
    """Return the problem whose searches use probabilities instead of true cells."""
    return problem.with_cells(SoftCells(models, np.arange(len(problem.rows))))


def cell_models(problem: FitProblem, min_category_size: int, locked: Collection[str]) -> CellModels:
    """Return the models of the cells of a problem, on its columns without the locked ones."""
    rows = problem.rows
    part = random_part(np.arange(len(rows)), MAX_ENCODING_ROWS)
    is_whole = len(part) == len(rows)
    columns = rows.columns if is_whole else [column.take(part) for column in rows.columns]
    try:
        encoding = learn_encoding(
            columns,
            rows.weight[part],
            min_category_size=min_category_size,
            locked=locked,
            numeric="bins",
        )
    except InputError:  # no column has two bins: the numbers themselves are left
        encoding = Encoding(())
    if not is_whole:
        encoding = _with_types_of(encoding, rows.columns)
    table = encoding.encode(columns)
    _, scale = table.moments(rows.weight[part])
    terms = BinnedTerms(encoding, rows.columns, table if is_whole else None)
    return CellModels.of(problem, terms, scale)


def _with_types_of(encoding: Encoding, columns: Sequence[Column]) -> Encoding:
    """Return an encoding that was learned from a part, with the types of the values of all rows."""
    types = {column.name: tuple(sorted(column.types)) for column in columns}
    return Encoding(
        tuple(
            replace(terms, types=types[terms.name]) if isinstance(terms, CategoryTerms) else terms
            for terms in encoding.columns
        )
    )
