"""Store the metric of every stated constraint, and say how far those that stand are kept."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from commod._text import capitalised, n_of, shown, verb
from commod.updates._compared import Standing
from commod.updates._fit_rows import FitRows
from commod.updates._interface import Decisions


def store_values(update: Any, rows: FitRows, decisions: Decisions) -> None:
    """Store the metric of each stated constraint by its name, before and after."""
    constraints = update._requirements.constraints
    before = rows.base.decisions
    update.base_values_ = {one.name: rows.fairness(one, before) for one in constraints}
    update.values_ = {one.name: rows.fairness(one, decisions) for one in constraints}


def store_expected_values(update: Any, fairness: float, standing: tuple[float, ...]) -> None:
    """Store what is expected of each stated constraint on new people; NaN where not known."""
    names = [one.name for one in update._requirements.constraints]
    others = standing or (float("nan"),) * (len(names) - 1)
    update.expected_values_ = dict(zip(names, (fairness, *others), strict=True))


def standing_texts(update: Any, rows: str) -> Iterator[str]:
    """Yield for each constraint that stands whether it is kept on `rows` and on new people."""
    for one in update._standing:
        before, after = (values[one.constraint.name] for values in _both_values(update))
        is_kept = "holds" if one.is_met(after) else "does not hold"
        text = f"{_goal(update, one)} {is_kept} on the {rows}: {before:.3f} → {after:.3f}"
        expected = update.expected_values_[one.constraint.name]
        if expected == expected:
            is_expected = "is" if one.is_met(expected) else "is not"
            text += f"; it {is_expected} expected on new people: {expected:.3f}"
        yield f"{text}."


def _both_values(update: Any) -> tuple[dict[str, float], dict[str, float]]:
    return update.base_values_, update.values_


def _goal(update: Any, one: Standing) -> str:
    metric = replace(update.compared_text(), constraint=one.constraint).metric
    return f"{capitalised(metric)} {one.constraint.sign} {one.bound:g}"


def strata_texts(update: Any, rows: FitRows) -> Iterator[str]:
    """Yield how many strata each condition compares, and how many are left out."""
    for constraint in update._requirements.constraints:
        if constraint.within is None:
            continue
        strata, within = rows.strata_of(constraint), constraint.within
        text = f"Within {shown(within.column)}, {n_of(len(strata.labels), 'stratum')}"
        yield f"{text} {verb(len(strata.labels), 'be')} compared."
        if strata.n_left_out:
            n_rows = int((strata.codes < 0).sum())
            yield (
                f"{n_of(strata.n_left_out, 'stratum')} ({n_of(n_rows, 'row')}) "
                f"{verb(strata.n_left_out, 'be')} left out: too few groups have "
                f"min_rows={within.min_rows} rows there. Nothing is promised about these people."
            )
