"""Find the points and the cut of an update: one regression, a small dual, one count.

1. `task.py`: people, their terms, cells and folds, and what their rates have to keep.
2. `points.py`: sums of squares of the terms by fold, ridge regressions from them, short cards.
3. `cut.py`: people in the order of their evidence, counted until the target is expected.
4. `search.py`: the steps in their order, and what each inequality is worth in changes.
"""
