"""The inequalities of a constraint on the rates of plain cells, as searches get them."""

import numpy as np
from commod._solvers.search.rates import fairness_inequalities

from commod.metrics._comparison import CellRows, comparisons
from commod.metrics._constraint import get_constraint


def inequalities_of(constraints, target, effects, caps):
    """Return the target and the caps as inequalities on the sums of `effects`."""
    constraint = get_constraint(constraints)
    sizes = np.ones((len(constraint.rate_rows), effects.n_cells // len(constraint.rate_rows)))
    rows = CellRows(np.zeros(len(sizes), np.intp), np.array(constraint.label_codes))
    compared = comparisons(constraint, rows, sizes, np.ones((1, sizes.shape[1]), dtype=bool))
    return fairness_inequalities([(one, target) for one in compared], effects, caps)
