"""Trained layers that read raw columns; running them takes NumPy alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from commod._data.columns import Column
from commod._data.encoding import Encoding, TermTable
from commod._solvers.problem import solver_position
from commod.updates._trained import safe_moments

__all__ = ["Network", "raw_network"]

ROWS_AT_ONCE = 8192  # hidden units of many rows would be the largest thing in memory

Layer = tuple[NDArray[np.float64], NDArray[np.float64]]


@dataclass(frozen=True, eq=False)
class Network:
    """Layers of ReLU units that end in one; the first reads terms in raw units.

    `layers` holds a matrix (inputs, units) and a bias (units,) for each layer.

    Examples
    --------
    >>> from commod._data.encoding import NumericTerms
    >>> age = NumericTerms("age", fill=40.0, has_missing_term=False)
    >>> double = Network(Encoding((age,)), ((np.array([[2.0]]), np.array([-1.0])),))
    >>> double.output([Column("age", "numeric", np.array([30.0, np.nan]))])
    array([59., 79.])
    """

    encoding: Encoding
    layers: tuple[Layer, ...]

    def output(self, columns: Sequence[Column]) -> NDArray[np.float64]:
        """Return the last unit's value for each row, shape (n,)."""
        return self.evaluate(self.encoding.encode(columns))

    def evaluate(self, terms: TermTable) -> NDArray[np.float64]:
        """Return the same for rows that are terms already."""
        total = np.empty(len(terms))
        for start in range(0, len(terms), ROWS_AT_ONCE):
            some = np.arange(start, min(start + ROWS_AT_ONCE, len(terms)))
            total[some] = self._run(terms.take(some))
        return total

    def _run(self, terms: TermTable) -> NDArray[np.float64]:
        (matrix, bias), *rest = self.layers
        x = bias + terms.numeric @ matrix[terms.numeric_terms]
        present = np.vstack([matrix, np.zeros(matrix.shape[1])])  # the code of no term is d
        for codes in terms.codes.T:
            x += present[codes]
        for matrix, bias in rest:
            x = np.maximum(x, 0.0) @ matrix + bias
        return x[:, 0]


def raw_network(
    encoding: Encoding, layers: Sequence[Layer], terms: TermTable, weight: NDArray[np.float64]
) -> Network:
    """Return a solver's layers, trained on standardised terms of these rows, for raw columns."""
    (matrix, bias), *rest = layers
    mean, scale, seen = safe_moments(terms, weight)
    raw = matrix[solver_position(terms)] * (seen / scale)[:, None]
    return Network(encoding, ((raw, bias - mean @ raw), *rest))
