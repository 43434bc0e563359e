"""Compare updates whose fit rows have unknown groups with updates whose groups are known.

`unknown_groups`: the groups of half of the fit rows are hidden at random. The test P-rule of the
update is compared with that of the update that knows all groups.
`group_probabilities`: the fit gets the exact probabilities of the groups given the columns, in
place of the groups. The fairness of its decisions is that of 200,000 people whose groups are known.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from expected import expectations, fit_update, mean_and_error
from experiments.protocol import ADULT, Split, quietly
from parallel import chosen_settings, in_parallel, seeds
from protocol import make_thirds
from report import show
from sklearn.utils import Bunch
from three_parts import MODELS, base_model

from commod import ControlledDebiaser, metrics
from commod.datasets import make_biased

TARGET = 0.8
SHARE_UNKNOWN = 0.5
N_SPLITS = 10
MAX_DIFFERENCE = 0.03
N_BASE_ROWS, N_ROWS, N_PEOPLE = 2000, 4000, 200_000
POPULATIONS: dict[str, dict[str, Any]] = {
    "2 groups": {"group_shares": (0.7, 0.3), "bias": 1.0},
    "3 groups": {"group_shares": (0.5, 0.3, 0.2), "bias": 1.0, "n_categories": 8},
}
TARGETS = {"demographic_parity": 0.8, "equalized_odds": 0.15}


def unknown_groups() -> None:
    """Print the mean test P-rule with all groups, and with half of the groups unknown."""
    names = ("COMPAS", ADULT)
    tasks = [(name, seed) for name in names for seed in seeds(N_SPLITS)]
    runs = pd.DataFrame(in_parallel(_hidden_groups, tasks))
    for name in names:
        of_name = runs[runs["name"] == name]
        both = [mean_and_error(of_name[column]) for column in ("known", "unknown")]
        words = ", ".join(f"{mean:.4f} ± {error:.4f}" for mean, error in both)
        show(f"{name}: test P-rule, groups known, half unknown", words, f"target {TARGET:g}")
        difference, error = mean_and_error(of_name["unknown"] - of_name["known"])
        show(
            f"{name}: difference",
            f"{difference:+.4f} ± {error:.4f}",
            f"within ±{MAX_DIFFERENCE:g}",
            bool(abs(difference) <= MAX_DIFFERENCE),
        )
        changes = ", ".join(
            f"{of_name[column].mean():.4f}" for column in ("changes", "unknown_changes")
        )
        show(f"{name}:   changed on test rows", changes, "reported")


def _hidden_groups(name: str, seed: int) -> dict[str, Any]:
    """Return the test P-rule of an update that knows all groups, and of one that knows half."""
    split = make_thirds(name, seed)
    groups = np.asarray(split.train.s, dtype=object).copy()
    groups[np.random.default_rng(seed).random(len(groups)) < SHARE_UNKNOWN] = None
    hidden = Split(name, split.model, Bunch(**{**split.train, "s": groups}), split.test)
    known = fit_update(split, target=TARGET).predict(split.test.X)
    unknown = fit_update(hidden, target=TARGET, unknown_groups="ignore").predict(split.test.X)
    return {
        "name": name,
        "known": metrics.p_rule(None, known, sensitive_features=split.test.s),
        "unknown": metrics.p_rule(None, unknown, sensitive_features=split.test.s),
        "changes": metrics.change_rate(split.before, known),
        "unknown_changes": metrics.change_rate(split.before, unknown),
    }


def group_probabilities() -> None:
    """Print the fairness in the population of updates that got probabilities of the groups."""
    tasks = [
        (name, constraint, seed)
        for name in POPULATIONS
        for constraint in TARGETS
        for seed in seeds(N_SPLITS)
    ]
    runs = pd.DataFrame(in_parallel(_probable_groups, tasks))
    for (name, constraint), rows in runs.groupby(["name", "constraint"]):
        target = TARGETS[str(constraint)]
        mean, error = mean_and_error(rows["population"])
        show(
            f"{name}, {constraint}: target {target:g}, mean in the population",
            f"{mean:.4f} ± {error:.4f}",
            f"within ±{MAX_DIFFERENCE:g}",
            bool(abs(mean - target) <= MAX_DIFFERENCE),
        )
        columns = ("base", "expected", "fit", "known", "changes")
        words = ", ".join(f"{rows[column].mean():.4f}" for column in columns)
        show(f"{name}, {constraint}:   base, expected, fit rows, groups known, changes", words, "")
        inside = rows["inside"].mean()
        show(f"{name}, {constraint}:   fit rows inside the interval", f"{inside:.0%}", "95 %")


def _probable_groups(name: str, constraint: str, seed: int) -> dict[str, Any]:
    """Return the fairness of an update that got probabilities, for people whose group is known."""
    own, rows, people = (
        make_biased(n, random_state=3 * seed + part, **POPULATIONS[name])
        for part, n in enumerate((N_BASE_ROWS, N_ROWS, N_PEOPLE))
    )
    model = base_model(MODELS[0]).fit(own.data, own.target)
    settings = {"constraints": constraint, "target": TARGETS[constraint]}
    settings |= chosen_settings()
    probabilities = pd.DataFrame(rows.proba_sensitive, columns=rows.group_names)
    with quietly():
        update = ControlledDebiaser(model, **settings).fit(
            rows.data, rows.target, sensitive_probabilities=probabilities
        )
    fit = Bunch(X=rows.data, y=rows.target, s=rows.sensitive_features)
    with_groups = fit_update(Split(name, model, fit, fit), **settings)

    def fairness(some: Bunch, decisions: Any) -> float:
        groups = {"sensitive_features": some.sensitive_features}
        return metrics.fairness_value(constraint, some.target, decisions, **groups)

    low, high = update.unknown_groups_.calibrated
    return {
        "name": name,
        "constraint": constraint,
        "base": fairness(people, model.predict(people.data)),
        "population": fairness(people, update.predict(people.data)),
        "known": fairness(people, with_groups.predict(people.data)),
        "inside": low <= fairness(rows, update.predict(rows.data)) <= high,
        "fit": update.fairness_,
        "changes": update.change_rate_,
        **expectations(update),
    }
