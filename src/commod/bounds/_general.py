"""Temporary."""

from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp


class GeneralLimit(NamedTuple):
    positives: Any
    n_changes: int
    lower_bound: int
    is_exact: bool


def fewest_changes_of(
    compared, sizes, positives, *, may_raise=True, may_lower=True, n_raisable=None, n_lowerable=None
):
    p = positives.ravel().astype(float)
    s = sizes.ravel().astype(float)
    A = len(p)
    up = (s - p if n_raisable is None else n_raisable.ravel().astype(float)) * may_raise
    dn = (p if n_lowerable is None else n_lowerable.ravel().astype(float)) * may_lower
    x = p.copy()
    for _ in range(6):
        rows = []
        ub = []
        T = sum(len(c.tables) == 2 for c, _ in compared)
        k = 0
        for c, b in compared:
            f = c.linear_form(b, x)
            th = np.zeros((len(f.bound), T))
            if len(c.tables) == 2:
                th[:, k] = f.split
                k += 1
            rows.append(np.hstack([f.matrix, -f.matrix, -th]))
            ub.append(f.bound - f.matrix @ p)
        M = np.vstack(rows)
        U = np.concatenate(ub)
        r = milp(
            np.r_[np.ones(2 * A), np.zeros(T)],
            constraints=LinearConstraint(M, -np.inf, U + 1e-9),
            integrality=np.r_[np.ones(2 * A), np.zeros(T)],
            bounds=Bounds(
                np.r_[np.zeros(2 * A), -np.full(T, 10.0)], np.r_[up, dn, np.full(T, 10.0)]
            ),
            options={"time_limit": 2.0},
        )
        if r.x is None:
            return None
        x = np.round(p + r.x[:A] - r.x[A : 2 * A])
        if all(c.is_linear for c, _ in compared):
            break
    n = int(np.abs(x - p).sum())
    return GeneralLimit(x.reshape(sizes.shape).astype(np.int64), n, n, True)
