"""Trained layers that read raw columns; evaluating them needs NumPy only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from commod._data.columns import Column
from commod._data.encoding import Encoding, TermTable
from commod._solvers.problem import Layer, solver_position
from commod.updates._trained import safe_moments

CHUNK_ROWS = 8192  # at a time; the hidden units of all rows would be the largest array in memory


@dataclass(frozen=True, eq=False)
class Network:
    """Layers of ReLU units with one output; the first layer reads terms in raw units.

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
        """Return the output for each row, shape (n,)."""
        return self.evaluate(self.encoding.encode(columns))

    def evaluate(self, terms: TermTable) -> NDArray[np.float64]:
        """Return the output for rows that are encoded as terms, shape (n,)."""
        output = np.empty(len(terms))
        for start in range(0, len(terms), CHUNK_ROWS):
            chunk = np.arange(start, min(start + CHUNK_ROWS, len(terms)))
            output[chunk] = self._apply(terms.take(chunk))
        return output

    def hidden_units(self, columns: Sequence[Column]) -> NDArray[np.float64]:
        """Return the units of the first hidden layer for each row, shape (n, units)."""
        return np.maximum(self._first_layer(self.encoding.encode(columns)), 0.0)

    def _first_layer(self, terms: TermTable) -> NDArray[np.float64]:
        matrix, bias = self.layers[0]
        x = bias + terms.numeric @ matrix[terms.numeric_terms]
        table = np.vstack([matrix, np.zeros(matrix.shape[1])])  # code d is no term
        for codes in terms.codes.T:
            x += table[codes]
        return np.asarray(x)

    def _apply(self, terms: TermTable) -> NDArray[np.float64]:
        x = self._first_layer(terms)
        for matrix, bias in self.layers[1:]:
            x = np.maximum(x, 0.0) @ matrix + bias
        return x[:, 0]


def raw_network(
    encoding: Encoding, layers: Sequence[Layer], terms: TermTable, weight: NDArray[np.float64]
) -> Network:
    """Return a network on raw columns from layers trained on standardised terms of these rows."""
    (matrix, bias), *later = layers
    mean, scale, varies = safe_moments(terms, weight)
    raw = matrix[solver_position(terms)] * (varies / scale)[:, None]
    return Network(encoding, ((raw, bias - mean @ raw), *later))
