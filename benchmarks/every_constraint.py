"""Fit every constraint of `commod.constraints`, and several at once, on fit rows of four tables.

A bound is never chosen by hand: it lies part of the way from the base model's value to the ideal.
For a floor or a ceiling, it lies part of the way from the worst group's value to the best group's.
`parallel.py` says which seeds and how many processes are used. `TABLES=COMPAS,Adult` takes these
tables only, and `ONLY="selection rate"` the constraints with these words in their text.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
from experiments.paper import COMPAS, LAW_SCHOOL
from experiments.protocol import ADULT, FAVORABLE, Split, quietly
from experiments.protocol import make_split as make_paper_split
from parallel import RESULTS, chosen_settings, in_parallel, seeds
from report import show
from sklearn.utils import Bunch
from three_parts import MODELS, base_model

from commod import ControlledDebiaser, bounds
from commod.constraints import (
    AccuracyParity,
    AllOf,
    DemographicParity,
    EqualizedOdds,
    ErrorRatio,
    FairnessConstraint,
    FalsePositiveRateParity,
    Maximum,
    Minimum,
    MinimumRate,
    MinimumTruePositiveRate,
    Parity,
    PredictiveParity,
    TruePositiveRateParity,
    parse_constraint,
)
from commod.datasets import make_biased
from commod.exceptions import InputError

MADE = "make_biased"  # with 3 groups
# the column of each table whose values are the strata, and the rows per group that a stratum needs
CONDITIONS = {
    LAW_SCHOOL: ("cluster", 20),  # a small table: few have passed of those who are not white
    COMPAS: ("c_charge_degree", 50),
    ADULT: ("workclass", 50),
    MADE: ("category", 50),
}
N_SPLITS = 3
WITHOUT_LABELS, WITH_LABELS, SEVERAL = 1.5, 2.0, 2.0  # bars on changes / limit
TIME_LIMIT = 30.0  # seconds for a limit

ALONE: tuple[FairnessConstraint, ...] = (
    DemographicParity(ratio=...),
    DemographicParity(difference=...),
    MinimumRate(),
    Maximum("selection rate"),
    EqualizedOdds(),
    EqualizedOdds(largest=...),
    TruePositiveRateParity(),
    TruePositiveRateParity(ratio=...),
    FalsePositiveRateParity(),
    FalsePositiveRateParity(ratio=...),
    MinimumTruePositiveRate(),
    Maximum("false positive rate"),
    Maximum("false negative rate"),
    AccuracyParity(),
    AccuracyParity(ratio=...),
    Minimum("accuracy"),
    PredictiveParity(),
    PredictiveParity(ratio=...),
    Minimum("precision"),
    Parity("negative predictive value"),
    Parity("F1 score"),
    ErrorRatio(ratio=...),
    ErrorRatio(difference=...),
    Parity("labels per selection"),
)
# the same, among people with the same value in the condition of the table
CONDITIONAL: tuple[FairnessConstraint, ...] = (
    DemographicParity(ratio=...),
    DemographicParity(difference=...),
    MinimumRate(),
    EqualizedOdds(),
    TruePositiveRateParity(),
    FalsePositiveRateParity(),
    AccuracyParity(),
)


# ---------------------------------------------------------------------------------------------
# Tables and bounds


@lru_cache(maxsize=2)
def make_split(table: str, seed: int) -> Split:
    """Return a split of a table; the made population has fit rows and test rows of its own."""
    if table != MADE:
        return make_paper_split(table, seed)
    drawn = (
        make_biased(
            3000, group_shares=(0.5, 0.3, 0.2), n_categories=4, random_state=10 * seed + part
        )
        for part in range(3)
    )
    own, *parts = (Bunch(X=d.data, y=d.target, s=d.sensitive_features) for d in drawn)
    return Split(table, base_model(MODELS[0]).fit(own.X, own.y), *parts)


def chosen_tables(tables: tuple[str, ...]) -> tuple[str, ...]:
    """Return the tables of a figure, or those that the environment names, split at commas."""
    named = os.environ.get("TABLES")
    return tables if named is None else tuple(named.split(","))


def labels_of(table: str) -> dict[str, Any]:
    """Return the label whose rates are counted, as in the paper, and the favourable one."""
    return {"pos_label": 1, "favorable_label": FAVORABLE.get(table, 1)}


def with_bound(constraint: FairnessConstraint, split: Split, way: float) -> FairnessConstraint:
    """Return the constraint with a bound this part of the way from the base model to the ideal."""
    base = value_of(constraint, split)
    ideal = constraint.constraint.ideal
    if isinstance(constraint, Minimum):
        other = Minimum if isinstance(constraint, Maximum) else Maximum
        best = other(constraint.constraint.measures[0].name)
        condition = constraint.constraint.within
        if condition is not None:
            best = best.within(condition.column, min_rows=condition.min_rows, over=condition.over)
        ideal = value_of(best, split)
    if np.isnan(base):
        raise ValueError("the base model has no value")
    return constraint.with_bound(round(float(base + way * (ideal - base)), 4))


def value_of(constraint: Any, split: Split, decisions: Any = None) -> Any:
    """Return the value of a constraint on the fit rows; without decisions, of the base model."""
    train = split.train
    parts = constraint.parts
    column = next((part.constraint.within.column for part in parts if part.constraint.within), None)
    return constraint.value(
        train.y,
        split.model.predict(train.X) if decisions is None else decisions,
        sensitive_features=train.s,
        control_features=None if column is None else train.X[[column]],
    )


# ---------------------------------------------------------------------------------------------
# One fit


def fitted(table: str, seed: int, kind: str, number: int) -> dict[str, Any]:
    """Return the record of a fit, and append it to a file, where a long run can be watched."""
    record = _fitted(table, seed, kind, number)
    RESULTS.mkdir(exist_ok=True)
    with (RESULTS / f"constraints-{kind}.jsonl").open("a") as file:
        file.write(json.dumps(record, default=float) + "\n")
    return record


def _fitted(table: str, seed: int, kind: str, number: int) -> dict[str, Any]:
    """Fit a constraint, or several, on the fit rows and return what it takes beside the limit."""
    split = make_split(table, seed)
    where = {"table": table, "seed": seed, "kind": kind, "number": number}
    asked = CASES[kind](table)[number]
    try:
        stated = _stated(asked, split)
    except ValueError as error:
        return {**where, "text": asked.text, "undefined": str(error)}
    where |= {"text": asked.text, "stated": stated.text, "needs_labels": stated.needs_labels}
    base = value_of(stated, split)
    start = time.perf_counter()
    try:
        with quietly():
            update = ControlledDebiaser(split.model, **_settings(table, stated)).fit(
                **split.fit_rows
            )
    except Exception as error:  # a crash is a result of its own, beside those of the other cases
        return {**where, "crashed": f"{type(error).__name__}: {error}"}
    seconds = time.perf_counter() - start
    decisions = update.predict(split.train.X)
    value = value_of(stated, split, decisions)
    return {
        **where,
        "base": np.atleast_1d(base).tolist(),
        "value": np.atleast_1d(value).tolist(),
        "is_met": _is_met(stated, value),
        "reached": bool(update.reached_),
        "says_why": "not reached" in update.status_ and "%" in update.status_,
        "status": update.status_,
        "changes": update.change_rate_,
        "same_value_limit": update.limit_,
        "seconds": seconds,
        **_limits(stated, split),
    }


def _settings(table: str, stated: FairnessConstraint | AllOf) -> dict[str, Any]:
    return {
        "random_state": 0,
        "progress": False,
        **chosen_settings(),
        **labels_of(table),
        "constraints": stated,
        "target_on": "fit_rows",
        "sparsity": 0,
        "borderline": 0,
    }


def _stated(asked: FairnessConstraint | AllOf, split: Split) -> FairnessConstraint | AllOf:
    """Return the constraint with its bounds: half way, and 40 % of the way for three at once."""
    way = 0.4 if len(asked.parts) > 2 else 0.5
    stated = [with_bound(part, split, way) for part in asked.parts]
    return stated[0] if len(stated) == 1 else AllOf(stated)


def _is_met(stated: FairnessConstraint | AllOf, values: Any) -> bool:
    pairs = zip(stated.parts, np.atleast_1d(values), strict=True)
    return all(bool(part.constraint.is_met(value, part.bound)) for part, value in pairs)


def _limits(stated: FairnessConstraint | AllOf, split: Split) -> dict[str, Any]:
    """Return the fewest changes that meet the bounds; of a combination, those without labels."""
    train = split.train
    column, _ = CONDITIONS[split.name]
    is_conditional = any(part.constraint.within for part in stated.parts)
    people = {"sensitive_features": train.s, "constraints": stated, **labels_of(split.name)}
    before = split.model.predict(train.X)
    start = time.perf_counter()
    limit = bounds.minimal_changes(
        before,
        y_true=train.y,
        control_features=train.X[[column]] if is_conditional else None,
        time_limit=TIME_LIMIT,
        **people,
    )
    least = limit.lower_bound
    found = {
        "limit": np.nan if least is None else least / len(before),
        "is_exact": limit.is_exact,
        "limit_seconds": time.perf_counter() - start,
        "expected": np.nan,
    }
    with contextlib.suppress(InputError):  # it knows gaps of error rates only
        found["expected"] = bounds.minimal_expected_changes(train.y, before, **people).rate
    return found


# ---------------------------------------------------------------------------------------------
# Cases


def _alone(table: str) -> tuple[FairnessConstraint, ...]:
    conditional = [
        _within(constraint, table, over)
        for over in ("every", "average")
        for constraint in CONDITIONAL
    ]
    return (*ALONE, *conditional)


def _within(constraint: FairnessConstraint, table: str, over: str = "every") -> FairnessConstraint:
    column, min_rows = CONDITIONS[table]
    return constraint.within(column, min_rows=min_rows, over=over)


def _together(table: str) -> tuple[AllOf, ...]:
    parity, same = (
        DemographicParity(ratio=...),
        _within(DemographicParity(ratio=...), table),
    )
    lowest, highest = MinimumRate(), Maximum("selection rate")
    odds, accuracy = EqualizedOdds(), AccuracyParity()
    return (
        parity & lowest,
        parity & highest,
        DemographicParity(difference=...) & lowest,
        parity & same,
        same & lowest,
        parity & lowest & Maximum("selection rate"),
        parity & same & lowest,
        parity & odds,
        odds & MinimumTruePositiveRate(),
        parity & accuracy,
        parity & PredictiveParity(),
        TruePositiveRateParity() & FalsePositiveRateParity(),
        parity & TruePositiveRateParity(),
        odds & lowest,
        parity & _within(odds, table),
        parity & odds & accuracy,
        parity & TruePositiveRateParity() & PredictiveParity(),
        odds & MinimumTruePositiveRate() & lowest,
    )


CASES: dict[str, Callable[[str], Sequence[Any]]] = {"alone": _alone, "together": _together}


def _runs(kind: str) -> pd.DataFrame:
    """Return the fits of all cases, the slowest table first."""
    words = os.environ.get("ONLY", "")
    tasks = [
        (table, seed, kind, number)
        for table in chosen_tables((ADULT, COMPAS, LAW_SCHOOL, MADE))
        for seed in seeds(N_SPLITS)
        for number, asked in enumerate(CASES[kind](table))
        if words in asked.text
    ]
    runs = pd.DataFrame(in_parallel(fitted, tasks))
    return runs.reindex(columns=list(dict.fromkeys([*PROBLEMS, *runs.columns])))


# ---------------------------------------------------------------------------------------------
# What is printed

PROBLEMS = ("crashed", "undefined")


def constraints() -> None:
    """Print changes / limit of every constraint on the fit rows of every table."""
    _show_runs(_runs("alone"), {False: WITHOUT_LABELS, True: WITH_LABELS})


def pairs() -> None:
    """Print changes / limit of two and three constraints at once."""
    _show_runs(_runs("together"), {False: SEVERAL, True: None})


def _show_runs(runs: pd.DataFrame, bars: dict[bool, float | None]) -> None:
    """Print a line for each table and constraint, then the bars."""
    for (table, _), rows in runs.groupby(["table", "number"], sort=False):
        _show_case(f"{table}: {rows['text'].iloc[0]}", rows, bars)
    is_fitted = runs[list(PROBLEMS)].isna().all(axis=1)
    done = runs[is_fitted].astype({"needs_labels": bool, "is_met": bool, "says_why": bool})
    for problem in PROBLEMS:
        n_runs, is_bar = int(runs[problem].notna().sum()), problem == "crashed"
        bar = "0" if is_bar else "reported: nothing to compare"
        show(f"fits: {problem}", f"{n_runs} of {len(runs)}", bar, n_runs == 0 if is_bar else None)
    silent = done[~done["is_met"] & ~done["says_why"]]
    show(
        "fits that miss their bound and say no limit",
        f"{len(silent)} of {len(done)} ({int(done['is_met'].sum())} meet it)",
        "0",
        silent.empty,
    )
    for needs_labels, most in bars.items():
        some = done[(done["needs_labels"] == needs_labels) & done["is_met"] & (done["limit"] > 0)]
        by_case = (some["changes"] / some["limit"]).groupby([some["table"], some["number"]]).mean()
        label = "with labels" if needs_labels else "without labels"
        n_held = int((by_case <= most).sum()) if most else len(by_case)
        show(
            f"{label}: tables and constraints within the bar",
            f"{n_held} of {len(by_case)} (mean {by_case.mean():.3f}, most {by_case.max():.3f})",
            f"all <= {most:g}" if most else "reported",
            n_held == len(by_case) if most else None,
        )
    show(
        "seconds of a fit: median, most",
        f"{done['seconds'].median():.1f}, {done['seconds'].max():.1f}",
    )


def _show_case(label: str, rows: pd.DataFrame, bars: dict[bool, float | None]) -> None:
    """Print the mean of changes / limit over the splits that meet the bound."""
    for problem in PROBLEMS:
        for text in rows[problem].dropna().unique():
            show(label, f"{problem}: {text[:150]}")
    rows = rows[rows[list(PROBLEMS)].isna().all(axis=1)]
    if rows.empty:
        return
    met = rows[rows["is_met"].astype(bool)]
    counted = met[met["limit"] > 0]
    ratio = float((counted["changes"] / counted["limit"]).mean())
    is_exact = bool(counted["is_exact"].astype(bool).all())
    words = f"{ratio:.3f} ({counted['changes'].mean():.4f} / {counted['limit'].mean():.4f}"
    words += ")" if is_exact else ", a lower bound)"
    if counted["expected"].notna().any():
        words += f", expected {counted['expected'].mean():.4f}"
    most = bars[bool(rows["needs_labels"].iloc[0])]
    says_why = bool((rows["is_met"].astype(bool) | rows["says_why"].astype(bool)).all())
    note = f"met {len(met)} of {len(rows)}, {rows['seconds'].max():.0f} s"
    bar = f"<= {most:g}" if most else "reported"
    holds = says_why and (most is None or not ratio > most)
    show(f"{label}, {_numbers(rows)}", words, f"{bar:<9} {note}", holds)


def _numbers(rows: pd.DataFrame) -> str:
    """Return base value → bound of the first split, one for each constraint."""
    first = rows.iloc[0]
    stated = parse_constraint(first["stated"]).parts
    return ", ".join(
        f"{base:.3f} → {part.bound:.3f}" for base, part in zip(first["base"], stated, strict=True)
    )
