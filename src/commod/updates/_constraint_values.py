"""Store the metric of every stated constraint, and say how far those that stand are kept."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from commod._text import capitalised, n_of, shown, verb
from commod.updates._compared import Standing
from commod.updates._fit_rows import FitRows
from commod.updates._interface import Decisions


def store_values(update: Any, rows: FitRows, decisions: Decisions) -> None:
    """Store the metric of each stated constraint by its name, before and after.

    The fairness of an update is that of the first constraint.
    """
    constraints = update.stated().constraints
    before = rows.base.decisions
    update.base_values_ = {one.name: rows.fairness(one, before) for one in constraints}
    update.values_ = {one.name: rows.fairness(one, decisions) for one in constraints}
    first = constraints[0].name
    update.base_fairness_, update.fairness_ = update.base_values_[first], update.values_[first]


def standing_texts(update: Any, rows: str) -> Iterator[str]:
    """Yield for each constraint that stands whether it is kept on `rows` and on new people."""
    for one in update.standing():
        before, after = (v[one.constraint.name] for v in (update.base_values_, update.values_))
        is_kept = "holds" if one.is_met(after) else "does not hold"
        text = f"{_goal(update, one)} {is_kept} on the {rows}: {before:.3f} → {after:.3f}"
        expected = update.expected_values_[one.constraint.name]
        if expected == expected:
            is_expected = "is" if one.is_met(expected) else "is not"
            text += f"; it {is_expected} expected on new people: {expected:.3f}"
        yield f"{text}."


def _goal(update: Any, one: Standing) -> str:
    metric = update.compared_text().metric_of(one.constraint)
    return f"{capitalised(metric)} {one.constraint.sign} {one.bound:g}"


def other_texts(update: Any) -> Iterator[str]:
    """Yield the metrics of all constraints but the first, which have no bound."""
    for constraint in update.stated().constraints[1:]:
        before, after = (v[constraint.name] for v in (update.base_values_, update.values_))
        metric = update.compared_text().metric_of(constraint)
        yield f"Beside it, {metric} {before:.3f} → {after:.3f}."


def strata_texts(update: Any, rows: FitRows) -> Iterator[str]:
    """Yield how many strata each condition compares, and how many are left out."""
    for constraint in update.stated().constraints:
        if constraint.within is None:
            continue
        strata, within = rows.strata_of(constraint), constraint.within
        text = f"Within {shown(within.column)}, {n_of(len(strata.labels), 'stratum')}"
        yield f"{text} {verb(len(strata.labels), 'be')} compared."
        if strata.n_left_out:
            n_rows = rows.count(strata.codes < 0)
            yield (
                f"{n_of(strata.n_left_out, 'stratum')} ({n_of(n_rows, 'row')}) "
                f"{verb(strata.n_left_out, 'be')} left out: too few groups have "
                f"min_rows={within.min_rows} rows there. Nothing is promised about these people."
            )
