"""Applicants as in Berkeley in 1973: women are admitted less often, but not within departments.

Applications and admissions are those of the six largest departments (Bickel, Hammel and O'Connell,
Science, 1975). Scores and courses are made up; courses depend on sex, as a blind update needs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

# department: men who applied and were admitted, women who applied and were admitted
ADMISSIONS = {
    "A": (825, 512, 108, 89),
    "B": (560, 353, 25, 17),
    "C": (325, 120, 593, 202),
    "D": (417, 138, 375, 131),
    "E": (191, 53, 393, 94),
    "F": (373, 22, 341, 24),
}


def make_applicants(seed: int = 0) -> tuple[pd.DataFrame, Any]:
    """Return a table with the score of each applicant, 4,526 rows, and the sex of each."""
    random = np.random.default_rng(seed)
    parts = []
    for department, counts in ADMISSIONS.items():
        for sex, n, n_admitted in (("men", *counts[:2]), ("women", *counts[2:])):
            part = {
                "department": department,
                "mathematics": random.poisson(4 if sex == "men" else 2, n),
                "languages": random.poisson(1 if sex == "men" else 3, n),
                "score": random.uniform(0, 0.5, n) + 0.5 * (np.arange(n) < n_admitted),
                "sex": sex,
            }
            parts.append(pd.DataFrame(part))
    applicants = pd.concat(parts, ignore_index=True)
    return applicants.drop(columns="sex"), applicants["sex"]
