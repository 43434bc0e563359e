"""Count whom a table of counts for editing whole-number scorecards would describe.

A report could let a reader edit points exactly if it had the number of people by combination of
the scorecard's terms, group, true label and base decision. This counts, on the test rows of one
split, how many people would be in a cell of fewer than five, and how many combinations all people
of which have the same group. `TABLES=COMPAS` takes one table. Decision 0020 uses the figures.
"""

from __future__ import annotations

import os

import numpy as np
from experiments.protocol import ADULT
from integers import fitted
from protocol import TABLES, Split, make_split
from report import show

from commod import ControlledDebiaser
from commod._data.disclosure import FEWEST_DESCRIBED

SEED = 0


def combination_codes(update: ControlledDebiaser, split: Split) -> np.ndarray:
    """Return the combination of used terms that each test row has, as codes (n,)."""
    test = split.test
    problem = update._edit_rows(test.X, test.y, test.s).problem
    is_used = update.scorecard_.points != 0
    # the sum of random numbers is another one for every combination
    weights = np.random.default_rng(0).normal(size=len(is_used)) * is_used
    return np.unique(problem.terms.total(weights, 0.0).round(9), return_inverse=True)[1]


def combinations() -> None:
    """Print, for each table, how many people the cells of the table would single out."""
    for name in os.environ.get("TABLES", ",".join([*TABLES, ADULT])).split(","):
        split = make_split(name, SEED)
        update = fitted(split, "integers")
        codes = combination_codes(update, split)
        test = split.test
        groups = np.unique(test.s, return_inverse=True)[1]
        base = split.model.predict(test.X)
        cells = np.column_stack([codes, groups, np.asarray(test.y), base])
        _, sizes = np.unique(cells, axis=0, return_counts=True)
        pairs = np.unique(np.column_stack([codes, groups]), axis=0)
        n_of_one_group = int((np.bincount(pairs[:, 0]) == 1).sum())
        few = sizes < FEWEST_DESCRIBED
        show(f"{name}: terms, combinations", f"{update.scorecard_.n_terms_used}, {codes.max() + 1}")
        show(f"{name}: cells, of which with fewer than five", f"{len(sizes)}, {int(few.sum())}")
        show(f"{name}: people in these cells", f"{int(sizes[few].sum())} of {len(codes)}")
        show(f"{name}: people alone in their cell", f"{int((sizes == 1).sum())}")
        show(f"{name}: combinations with one group only", f"{n_of_one_group}")


if __name__ == "__main__":
    combinations()
