"""Sentences of a report about stated constraints: their names, their bounds, their strata."""

from __future__ import annotations

from commod._record import Audit, Fairness, FurtherConstraint
from commod._text import NOT_KNOWN, at_bound, count, distinct, n_of, verb


def strata_sentences(metric: Fairness) -> list[str]:
    """Return which strata are compared, left out, or not listed, and why."""
    found = metric.strata
    if found is None:
        return []
    how = "in every stratum" if found.over == "every" else "on average over the strata"
    sentences = [
        f"{_capitalised(metric.name)} compares the groups {how}: "
        f"{n_of(found.n_compared, 'stratum')} of {count(found.n_strata)} "
        f"{verb(found.n_compared, 'be')} compared, with {n_of(found.n_people, 'person')}."
    ]
    if found.n_people_left_out:
        sentences.append(
            f"{n_of(found.n_people_left_out, 'person')} "
            f"{verb(found.n_people_left_out, 'be')} left out: their group has fewer than "
            f"{found.min_rows} rows that count in their stratum, or no other group is compared "
            "there. Nothing is known about their fairness."
        )
    if found.n_hidden:
        sentences.append(
            f"{n_of(found.n_hidden, 'stratum')} {verb(found.n_hidden, 'be')} compared but not "
            "listed. With their figures, those of fewer than five people could be computed."
        )
    return sentences


def further_sentences(audit: Audit) -> list[str]:
    """Return each further constraint: its metric before and after, its bound, if it is kept."""
    sentences = []
    for metric in [f for f in audit.fairness if f.asked][1:]:
        before, after = (
            NOT_KNOWN if value is None else distinct(value, metric.bound, digits=3)
            for value in (metric.before.value, metric.after.value)
        )
        sentence = f"{_capitalised(metric.name)}: {before} → {after}"
        if metric.bound is not None:
            kept = "✓ kept" if metric.is_kept else "✗ not kept"
            bound = at_bound(f"{metric.bound:g}", metric.higher_is_fairer)
            sentence += f". Bound: {bound}, {kept} on these rows"
        sentences.append(f"{sentence}.")
    return sentences


def constraint_name(name: str) -> str:
    """Return the name of a constraint in words; the name of its column stays as it is.

    Examples
    --------
    >>> constraint_name("minimum_rate within 'exposure_band'")
    "minimum rate within 'exposure_band'"
    """
    alone, within, condition = name.partition(" within ")
    return f"{alone.replace('_', ' ')}{within}{condition}"


def further_text(audit: Audit, one: FurtherConstraint) -> str:
    """Return a further constraint of the request with its bound."""
    metric = next((f for f in audit.fairness if f.constraints == one.constraints), None)
    bound = bound_text(one.bound)
    if one.bound is not None and metric is not None:
        bound = at_bound(f"{one.bound:g}", metric.higher_is_fairer)
    return f"{constraint_name(one.constraints)}, {bound}"


def bound_text(bound: float | None) -> str:
    """Return a bound in words."""
    return "no bound" if bound is None else f"bound {bound:g}"


def _capitalised(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"
