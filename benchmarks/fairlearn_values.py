"""Compare values of `commod.constraints` with Fairlearn's metrics on random tables.

Fairlearn calls a rate 0 where nobody is counted; ours is NaN there. So a table counts for a
constraint where ours has a value. Rows have weights, and within strata the worst stratum counts.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from fairlearn import metrics as fairlearn
from fairlearn_rates import RATES
from numpy.typing import NDArray
from report import show

from commod.metrics import fairness_value
from commod.metrics._constraint import FORMS, get_constraint

N_TABLES = 500
TOLERANCE = 1e-9
NAMED = {
    "demographic_parity": fairlearn.demographic_parity_ratio,
    "demographic_parity difference": fairlearn.demographic_parity_difference,
    "equalized_odds largest": fairlearn.equalized_odds_difference,
    "true_positive_rate_parity": fairlearn.equal_opportunity_difference,
    "true_positive_rate_parity ratio": fairlearn.equal_opportunity_ratio,
}
Table = dict[str, NDArray[Any]]


def random_table(random: np.random.Generator) -> Table:
    """Return rows of 2 to 4 groups and 1 to 3 strata; all have both labels."""
    n, n_groups, n_strata = random.integers((80, 2, 1), (400, 5, 4))
    y, decisions = (random.random((2, n)) < random.uniform(0.1, 0.9, (2, 1))).astype(int)
    groups, strata = random.integers(n_groups, size=n), random.integers(n_strata, size=n)
    for i, (label, group, stratum) in enumerate(np.ndindex(2, n_groups, n_strata)):
        y[i], groups[i], strata[i] = label, group, stratum
    weight = random.integers(1, 5, n).astype(float)
    return {"y": y, "decisions": decisions, "groups": groups, "strata": strata, "weight": weight}


def values_of_fairlearn(table: Table) -> dict[tuple[str, str, bool], float]:
    """Return the worst value of each rate, by comparison, within strata and without."""
    values: dict[tuple[str, str, bool], float] = {}
    for conditional in (False, True):
        frame = fairlearn.MetricFrame(
            metrics=RATES,
            y_true=table["y"],
            y_pred=table["decisions"],
            sensitive_features=table["groups"],
            control_features={"unit": table["strata"]} if conditional else None,
            sample_params={name: {"sample_weight": table["weight"]} for name in RATES},
        )
        parts = {
            "ratio": (frame.ratio(), np.min),
            "difference": (frame.difference(), np.max),
            "floor": (frame.group_min(), np.min),
            "ceiling": (frame.group_max(), np.max),
        }
        for comparison, (found, worst) in parts.items():
            for name in RATES:
                values[name, comparison, conditional] = float(worst(found[name]))
    return values


def fairlearn_values() -> None:
    """Compare the values of every constraint that both libraries define."""
    random = np.random.default_rng(0)
    apart: dict[tuple[str, bool], list[float]] = {}
    for _ in range(N_TABLES):
        table = random_table(random)
        people = {"sensitive_features": table["groups"], "sample_weight": table["weight"]}
        theirs = values_of_fairlearn(table)
        for form in FORMS.values():
            for conditional in (False, True):
                if form.name in NAMED and not conditional:
                    metric = NAMED[form.name]
                    expected = metric(table["y"], table["decisions"], **people)
                elif len(form.measures) == 1 and form.measures[0].name in RATES:
                    expected = theirs[form.measures[0].name, form.comparison, conditional]
                else:
                    continue
                constraint = get_constraint(form.name)
                control = {"control_features": table["strata"]} if conditional else {}
                value = fairness_value(
                    constraint, table["y"], table["decisions"], **people, **control
                )
                if not np.isnan(value):
                    apart.setdefault((form.name, conditional), []).append(abs(value - expected))
    for (name, conditional), gaps in apart.items():
        label = f"{name}{' within strata' if conditional else ''}"
        where = f"{max(gaps):.1e} ({len(gaps)} tables)"
        show(f"{label}: largest difference", where, f"<= {TOLERANCE:g}", max(gaps) <= TOLERANCE)
