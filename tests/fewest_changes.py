"""The fewest changes of counts, for tests that compare them with every table of counts."""

import numpy as np

from commod.bounds._limits import CountProblem, solve_fewest_changes
from commod.metrics._constraint import get_constraint
from commod.metrics._people import read_target


def fewest_changes(constraint, sizes, positives, target, **moves):
    """Positives of each cell, (n_rate_rows, n_groups); None where no changes reach the target."""
    problem = CountProblem(
        get_constraint(constraint), np.asarray(sizes), np.asarray(positives), **moves
    )
    return solve_fewest_changes(problem, read_target(problem.constraint, target))
