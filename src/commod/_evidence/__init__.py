"""Find the points and the cut of an update: one regression, a small dual, one count.

1. `task.py`: people, their terms, cells and folds, and what their rates have to keep.
2. `sums.py`: sums of squares of the terms by fold.
3. `points.py`: ridge regressions from these sums, short cards, rounding.
4. `prices.py`: what each inequality is worth in changes.
5. `cut.py`: people in the order of their evidence, counted until the target is expected.
6. `search.py`: the steps in their order.
"""
