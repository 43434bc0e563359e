"""Answer whether the stated constraints are kept: on these rows, for people like these, and where.

A request may state several constraints. A check of the target passes if all of them pass it.
"""

from __future__ import annotations

from commod._record import Fairness, State
from commod._reporting.audit.evidence import Evidence
from commod._reporting.audit.sentences import interval, metric_text, target_text
from commod._text import MAX_CHANGED, n_of, verb

Answer = tuple[State, str] | None  # None where the question does not apply


def _joined(answers: list[tuple[State, str]]) -> Answer:
    """Return one answer for several constraints: the worst state, and all sentences."""
    states: tuple[State, ...] = ("failed", "not enough evidence", "passed")
    given = [state for state, _ in answers]
    worst = next((state for state in states if state in given), None)
    return None if worst is None else (worst, " ".join(text for _, text in answers))


def _stated(e: Evidence) -> list[tuple[int, Fairness, float]]:
    """Return number, metric and bound of each constraint that has a bound."""
    metrics = enumerate(e.stated_metrics)
    return [(i, metric, metric.bound) for i, metric in metrics if metric.bound is not None]


def target_on_rows(e: Evidence) -> Answer:
    """Answer whether all bounds are kept on these rows."""
    answer = _joined([_on_rows(e, *one) for one in _stated(e)])
    if answer is None or e.changes.n_changes / e.n <= MAX_CHANGED or e.fairness.after.value is None:
        return answer
    state, text = answer
    return state, f"{text} This is no success: more than half of all decisions change (CM205)."


def _on_rows(e: Evidence, i: int, metric: Fairness, bound: float) -> tuple[State, str]:
    value = metric.after.value
    if value is None:
        return "not enough evidence", f"The {metric.name} is not defined on these rows."
    text = (
        f"The {metric.name} is {metric_text(e, value, i=i)} on the {e.compared.n:,} {e.rows}. The "
        f"target is {target_text(e, bound, value, i)}."
    )
    return ("passed" if metric.is_kept else "failed"), text


def target_on_interval(e: Evidence) -> Answer:
    """Answer whether all bounds are kept on the whole intervals."""
    return _joined([_on_interval(e, *one) for one in _stated(e)])


def _on_interval(e: Evidence, i: int, metric: Fairness, bound: float) -> tuple[State, str]:
    low, high = metric.after.low, metric.after.high
    if low is None or high is None:
        where = f" of the {metric.name}" if len(e.stated_metrics) > 1 else ""
        return "not enough evidence", f"There is no interval{where} on these rows."
    constraint = e.stated.stated[i].constraint
    reached = [constraint.is_met(end, bound) for end in (low, high)]
    about = "approximate " if metric.is_approximate else ""
    text = (
        f"The {metric.name} is between {metric_text(e, low, i=i)} and {metric_text(e, high, i=i)} "
        f"({about}{interval(e, compared=True)})."
    )
    nearest = min(low, high, key=lambda end: abs(end - bound))
    goal = f"reaches the target, {target_text(e, bound, nearest, i)}."
    if all(reached):
        return "passed", f"{text} The whole interval {goal}"
    if not any(reached):
        return "failed", f"{text} No part of the interval {goal}"
    return "not enough evidence", f"{text} Only a part of the interval {goal}"


def not_less_fair(e: Evidence) -> Answer:
    """Answer whether the update is less fair; further constraints may be if their bound is kept."""
    metrics = enumerate(e.stated_metrics)
    return _joined([_not_less_fair(e, i, metric) for i, metric in metrics])


def _not_less_fair(e: Evidence, i: int, metric: Fairness) -> tuple[State, str]:
    before, after, name = metric.before.value, metric.after.value, metric.name
    if before is None or after is None:
        return "not enough evidence", f"The {name} is not defined both before and after."
    old, new = metric_text(e, before, after, i), metric_text(e, after, before, i)
    text = f"The {name} was {old} before the update and is {new} after it."
    if e.stated.stated[i].constraint.is_met(after, before):
        return "passed", text
    if i > 0 and metric.is_kept:
        return "passed", f"{text} It keeps its bound."
    return "failed", text


def large_strata(e: Evidence) -> Answer:
    """Answer whether the conditions compare all people of the compared groups."""
    answers: list[tuple[State, str]] = []
    for metric in e.stated_metrics:
        table = metric.strata
        if table is None:
            continue
        n = table.n_people_left_out
        if not n:
            compared = n_of(table.n_compared, "stratum")
            text = f"The {metric.name} compares everybody, in {compared}."
            answers.append(("passed", text))
            continue
        left_out = n_of(table.n_left_out, "stratum")
        text = (
            f"The {metric.name} leaves out {n_of(n, 'person')}: {left_out} of {table.n_strata:,} "
            f"{verb(table.n_left_out, 'be')} not compared, and no group with fewer than "
            f"{table.min_rows} rows in a stratum is."
        )
        answers.append(("not enough evidence", text))
    return _joined(answers)
