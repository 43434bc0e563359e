"""Compare exact limits with brute force over all decisions, and measure their time on many rows."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
from brute_force import CASES, brute_force, exact_limit, random_case, random_people
from report import show

N_TABLES = 300
MANY_ROWS, N_STRATA = 50_000, 10
FLOOR, CEILING = 0.9, 0.05  # bounds on many rows


def limits_by_brute_force() -> None:
    """Count the random tables on which a limit is exact and agrees with brute force."""
    for number, name in enumerate(CASES):
        n_agreed = n_reachable = 0
        for seed in range(N_TABLES):
            case = random_case(name, np.random.default_rng([number, seed]))
            fewest, limit = brute_force(case), exact_limit(case)
            n_reachable += fewest is not None
            if limit is None or fewest is None:
                n_agreed += limit is None and fewest is None
            else:
                n_agreed += limit.n_changes == limit.lower_bound == fewest
        show(
            f"{name} ({n_reachable} reachable)",
            f"{n_agreed} of {N_TABLES} agree",
            f"= {N_TABLES}",
            n_agreed == N_TABLES,
        )


def limits_on_many_rows() -> None:
    """Measure limits on 50,000 rows of 2 groups, 2 labels and 10 strata."""
    for name in CASES:
        case = random_people(name, np.random.default_rng(0), MANY_ROWS, N_STRATA, n_groups=2)
        bounds = tuple(FLOOR if c.higher_is_fairer else CEILING for c in case.constraints)
        case = replace(case, bounds=bounds, may_raise=True, may_lower=True)
        start = time.perf_counter()
        limit = exact_limit(case)
        seconds = time.perf_counter() - start
        if limit is None:
            found = "none exists"
        elif limit.is_exact:
            found = f"{limit.n_changes} changes, exact"
        else:
            found = f"{limit.lower_bound} to {limit.n_changes} changes"
        show(name, f"{found}, {seconds:.2f} s")
