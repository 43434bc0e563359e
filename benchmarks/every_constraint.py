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
from typing import Any, NamedTuple

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
    where["n_parts"] = len(stated.parts)
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
        "says_why": _says_why(update.status_),
        "status": update.status_,
        "changes": update.change_rate_,
        "same_value_limit": update.limit_,
        "seconds": seconds,
        **_limits(stated, split),
    }


def _settings(table: str, stated: FairnessConstraint | AllOf) -> dict[str, Any]:
    return {
        **chosen_settings(),
        **labels_of(table),
        "constraints": stated,
        "target_on": "fit_rows",
        "max_lines": None,
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
    """Return the fewest changes that meet the bounds, and the fewest expected ones, as shares.

    The latter are those of a random rule that sees group and decision; of several constraints, the
    largest of those that are known.
    """
    train = split.train
    column, _ = CONDITIONS[split.name]
    is_conditional = any(part.constraint.within for part in stated.parts)
    people = {"sensitive_features": train.s, **labels_of(split.name)}
    before = split.model.predict(train.X)
    start = time.perf_counter()
    limit = bounds.minimal_changes(
        before,
        y_true=train.y,
        constraints=stated,
        control_features=train.X[[column]] if is_conditional else None,
        time_limit=TIME_LIMIT,
        **people,
    )
    seconds = time.perf_counter() - start
    expected = []
    for part in stated.parts:
        with contextlib.suppress(InputError):  # known for gaps of error rates only
            shares = bounds.minimal_expected_changes(train.y, before, constraints=part, **people)
            expected.append(shares.rate)
    return {
        "limit": np.nan if limit.lower_bound is None else limit.lower_bound / len(before),
        "is_exact": limit.is_exact,
        "limit_seconds": seconds,
        "expected": max(expected, default=np.nan),
    }


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
    _show_runs(_runs("alone"))


def pairs() -> None:
    """Print changes / limit of two and three constraints at once."""
    _show_runs(_runs("together"))


def _bar_of(n_parts: int, needs_labels: bool) -> Bar:
    if n_parts == 1:
        return Bar("with labels", WITH_LABELS) if needs_labels else Bar("no labels", WITHOUT_LABELS)
    several = "two at once" if n_parts == 2 else "three at once"
    if needs_labels:
        return Bar(f"{several}, with labels", None)
    return Bar(f"{several}, no labels", SEVERAL, is_goal=n_parts > 2)


class Bar(NamedTuple):
    """The most changes / limit of a kind of constraints; None where they are only reported."""

    kind: str
    most: float | None
    is_goal: bool = False

    @property
    def text(self) -> str:
        """Return the bar as it is printed."""
        if self.most is None:
            return "reported"
        return f"<= {self.most:g}" + (" (goal)" if self.is_goal else "")

    def holds(self, ratio: float) -> bool | None:
        """Return the verdict; None where there is none, as for a ratio of no fit (NaN)."""
        is_judged = self.most is not None and not self.is_goal and not np.isnan(ratio)
        return bool(ratio <= self.most) if is_judged else None


def _says_why(status: str) -> bool:
    """Return whether a status says that a bound is missed, and how many changes it needs."""
    is_said = "not reached" in status or "does not hold" in status
    needed = ("the target needs at least", "all targets together need at least", "can reach it")
    return is_said and any(text in status for text in needed)


def _show_runs(runs: pd.DataFrame) -> None:
    """Print a line for each table and constraint, then the bars."""
    is_fitted = runs[list(PROBLEMS)].isna().all(axis=1)
    types = {"needs_labels": bool, "is_met": bool, "says_why": bool, "is_exact": bool}
    done = runs[is_fitted].astype(types)
    for index, rows in runs.groupby(["table", "number"], sort=False):
        label = f"{index[0]}: {rows['text'].iloc[0]}"
        for problem in PROBLEMS:
            for text in rows[problem].dropna().unique():
                show(label, f"{problem}: {text[:150]}")
        fits = done[(done["table"] == index[0]) & (done["number"] == index[1])]
        if not fits.empty:
            _show_case(label, fits)
    for problem, bar in zip(PROBLEMS, ("0", "reported"), strict=True):
        n_runs = int(runs[problem].notna().sum())
        holds = n_runs == 0 if bar == "0" else None
        show(f"fits: {problem}", f"{n_runs} of {len(runs)}", bar, holds)
    n_met, n_silent = int(done["is_met"].sum()), int((~done["is_met"] & ~done["says_why"]).sum())
    words = f"{n_silent} of {len(done)} ({n_met} meet it)"
    show("fits that miss a bound and state no limit", words, "0", n_silent == 0)
    _show_bars(done)
    seconds = done["seconds"]
    show("seconds of a fit: median, most", f"{seconds.median():.1f}, {seconds.max():.1f}")


def _show_bars(done: pd.DataFrame) -> None:
    """Print, for each kind of constraints, on how many tables its bar holds."""
    counted = done[done["is_met"] & (done["limit"] > 0)]
    counted = counted.assign(ratio=counted["changes"] / counted["limit"])
    for (n_parts, needs_labels), rows in counted.groupby(["n_parts", "needs_labels"]):
        bar = _bar_of(int(n_parts), bool(needs_labels))
        ratios = rows.groupby(["table", "number"])["ratio"].mean()
        n_held = int((ratios <= (bar.most or np.inf)).sum())
        show(
            f"{bar.kind}: changes / limit",
            f"{n_held} of {len(ratios)} (mean {ratios.mean():.3f}, most {ratios.max():.3f})",
            bar.text,
            bar.holds(ratios.max()),
        )


def _show_case(label: str, fits: pd.DataFrame) -> None:
    """Print the mean of changes / limit over the splits that meet the bound."""
    met = fits[fits["is_met"]]
    counted = met[met["limit"] > 0]
    changes, limits, expected = (counted[name] for name in ("changes", "limit", "expected"))
    ratio = float((changes / limits).mean())
    words = f"{ratio:.3f} ({changes.mean():.4f} / {limits.mean():.4f}"
    words += ")" if counted["is_exact"].all() else ", a lower bound)"
    if expected.notna().any():
        words += f", expected {expected.mean():.4f}"
    bar = _bar_of(int(fits["n_parts"].iloc[0]), bool(fits["needs_labels"].iloc[0]))
    note = f"met {len(met)} of {len(fits)}, {fits['seconds'].max():.0f} s"
    is_silent = bool((~fits["is_met"] & ~fits["says_why"]).any())
    show(
        f"{label}, {_numbers(fits)}",
        words,
        f"{bar.text}, {note}",
        False if is_silent else bar.holds(ratio),
    )


def _numbers(rows: pd.DataFrame) -> str:
    """Return base value → bound of the first split, one for each constraint."""
    first = rows.iloc[0]
    stated = parse_constraint(first["stated"]).parts
    return ", ".join(
        f"{base:.3f} → {part.bound:.3f}" for base, part in zip(first["base"], stated, strict=True)
    )
