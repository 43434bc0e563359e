"""Compare changes on test rows with blind BayesPlugIn, for every constraint on errors it knows.

As in `new-rows-odds`, a method's changes are the fewest of any update that keeps at most a share of
the base model's value on the test rows. Results of BayesPlugIn are kept in `benchmarks/results`;
delete the files `plug-in-*` to compute them again. `TABLES=Adult` takes other tables.
"""

from __future__ import annotations

from typing import Any

import pandas as pd
from every_constraint import MADE, chosen_tables, labels_of, make_split
from expected_odds import LEVELS, N_SPLITS, OURS, sweep
from experiments.paper import COMPAS, LAW_SCHOOL
from parallel import chosen_settings, in_parallel, kept, seeds
from report import show

from commod import ControlledDebiaser, metrics
from commod.rivals import BayesPlugIn

RIVAL = "BayesPlugIn"
NOTIONS = ("equalized_odds", "true_positive_rate_parity", "false_positive_rate_parity")


def constraints_test() -> None:
    """Print the mean changes of both methods at each level, on the splits that both reach."""
    tables = chosen_tables((COMPAS, LAW_SCHOOL, MADE))
    tasks = [
        (table, seed, notion, method)
        for table in tables
        for seed in seeds(N_SPLITS)
        for notion in NOTIONS
        for method in (RIVAL, OURS)
    ]
    runs = pd.DataFrame([row for rows in in_parallel(_needed, tasks) for row in rows])
    changes = runs.pivot_table(
        index=["table", "notion", "level", "seed"], columns="method", values="changes", dropna=False
    )
    n_held = n_levels = 0
    for (table, notion, level), rows in changes.groupby(["table", "notion", "level"], sort=False):
        both = rows[[OURS, RIVAL]].dropna()
        n_ours, n_rival = (int(rows[name].notna().sum()) for name in (OURS, RIVAL))
        ours, rival = both.mean()
        is_held = n_rival == 0 or bool(ours <= rival)
        n_held, n_levels = n_held + is_held, n_levels + 1
        show(
            f"{table}: {level:g} of the base {notion.replace('_', ' ')}",
            f"{ours:.4f} / {rival:.4f} ({len(both)} splits)",
            f"reached {n_ours}, {n_rival}",
            is_held,
        )
    words = f"{n_held} of {n_levels}"
    show(f"levels with at most the changes of {RIVAL}", words, "all", n_held == n_levels)


def _needed(table: str, seed: int, notion: str, method: str) -> list[dict[str, Any]]:
    """Return the fewest test changes of a method at each level; NaN where it reaches none."""
    split = make_split(table, seed)
    test = split.test
    base = metrics.fairness_value(notion, test.y, split.before, sensitive_features=test.s)
    shared = {"constraints": notion, **labels_of(table)}
    if method == RIVAL:
        rival = BayesPlugIn(split.model, **shared)
        updates = kept(f"plug-in-{table}-{seed}-{notion}", lambda: sweep(split, rival))
    else:
        settings = {**chosen_settings(), "borderline": 0}
        updates = sweep(split, ControlledDebiaser(split.model, **settings, **shared))
    curve = pd.DataFrame(updates)
    where = {"table": table, "seed": seed, "notion": notion, "method": method}
    return [{**where, "level": level, "changes": _fewest(curve, level * base)} for level in LEVELS]


def _fewest(updates: pd.DataFrame, most: float) -> float:
    return float(updates.loc[updates["fairness"] <= most, "change_rate"].min())
