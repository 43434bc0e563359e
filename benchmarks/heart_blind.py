"""Compare linear evidence with a flexible rule that does not read the group either.

Both learn from the same fit rows: `ControlledDebiaser(borderline=0, max_lines=None)`, and the rule
of the blind limit (`commod.bounds.blind_changes`), whose prices are chosen there, out of fold. On
test rows, people change in the order of each rule until the P-rule of our decisions is reached. So
both counts are at the same P-rule of the same people.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from heart_jobs import PARITY, Job, fairness, fit_and_test_rows, fitted
from heart_jobs import tables as chosen_tables
from parallel import chosen_settings, in_parallel, seeds
from report import show
from three_parts import MODELS, SCORE, TABLES, Part

from commod import ControlledDebiaser
from commod._data.columns import read_columns
from commod._evidence.cut import best_stop
from commod.bounds._blind import BlindPeople, chances_by_fold
from commod.metrics._constraint import get_constraint
from commod.metrics._people import People

N_SPLITS = 10
MAX_RATIO, MIN_NEAR = 1.1, 5


def heart_blind() -> None:
    """Print the changes of linear evidence over those of the flexible rule, by table."""
    names = chosen_tables()
    splits = [
        (table, model, seed) for table in names for model in MODELS for seed in seeds(N_SPLITS)
    ]
    runs = pd.DataFrame(in_parallel(_changes, splits))
    n_near = 0
    for table in names:
        rows = runs[runs["table"] == table]
        reached = rows.replace(np.inf, np.nan).dropna()
        ours, decided, flexible = reached[["ours", "decided", "flexible"]].mean()
        ratios = np.divide([ours, decided], flexible or np.nan)  # NaN: nobody has to change
        n_near += bool(ratios[0] <= MAX_RATIO)
        words = f"{ratios[0]:.3f} ({ours:.4f} / {flexible:.4f})"
        show(f"{table}: linear / flexible evidence", words, f"<= {MAX_RATIO}")
        missed = f"{len(rows) - len(reached)} of {len(rows)} splits out of its reach"
        show(f"{table}:   our decisions / flexible", f"{ratios[1]:.3f}", missed)
    label = f"tables with at most {MAX_RATIO} times the flexible rule"
    show(label, f"{n_near} of {len(names)}", f">= {MIN_NEAR}", n_near >= MIN_NEAR)


def _changes(table: str, model: str, seed: int) -> dict[str, Any]:
    """Return the shares of test rows that change at the P-rule of our decisions.

    `ours` and `flexible` are counted along the order of each rule; infinite where it never gets
    there. `decided` is the share that the update decides to change.
    """
    fit, test = fit_and_test_rows(table, model, seed)
    job = Job(table, model, PARITY, TABLES[table][2])
    settings = {**chosen_settings(), "borderline": 0, "max_lines": None}
    update, _ = fitted(job, fit, **settings)
    after = update.predict(test.X)
    p_rule = fairness(PARITY, test, after)
    ours, flexible = _first_counts(update, job.target, p_rule, fit, test)
    decided = float(np.mean(after != (test.score > 0.5)))
    where = {"table": table, "model": model, "seed": seed}
    return {**where, "ours": ours, "decided": decided, "flexible": flexible}


def _first_counts(
    update: ControlledDebiaser, target: float, p_rule: float, fit: Part, test: Part
) -> list[float]:
    """Return the first share of test rows at which our order, and the flexible one, are as fair."""
    n = len(fit.y)
    X = pd.concat([fit.X, test.X], ignore_index=True).drop(columns=SCORE)
    columns = read_columns(X)  # of both parts at once, so that categories have the same codes
    parts = [[column.take(rows) for column in columns] for rows in (slice(n), slice(n, None))]
    parity, groups = (get_constraint(PARITY),), np.unique(fit.s)
    learned, tested = (
        BlindPeople.of(
            part,
            People(parity, np.searchsorted(groups, rows.s), len(groups)),
            rows.score > 0.5,
        )
        for part, rows in zip(parts, (fit, test), strict=True)
    )
    rule = learned.with_target(target).best_rule(may_raise=True, may_lower=True)
    task = learned.task
    cells = np.concatenate([task.cell[:, 0], tested.task.cell[:, 0]])
    is_test = np.arange(len(cells)) >= n
    decisions = np.concatenate([fit.score, test.score]) > 0.5
    chances = chances_by_fold(columns, decisions, is_test, cells, task.n_cells)[n:]
    tested = replace(tested.with_target(p_rule), expected=chances / task.totals)
    stops = best_stop(tested.task, 1 - update.ratio(test.X)), best_stop(*tested.applied(*rule))
    return [stop.n_changed / len(test.y) if stop.is_reached else np.inf for stop in stops]
