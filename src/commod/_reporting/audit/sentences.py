"""Write the answer of an audit in plain sentences: who changes, how fair it is, at what cost."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from commod._data.disclosure import FEWEST_DESCRIBED
from commod._record import Fairness, Outscoring
from commod._reporting.audit.evidence import Evidence
from commod._text import MAX_LISTED_GROUPS, at_bound, distinct, list_names, n_of, shorten, verb
from commod._words.shared import (
    blind_limit_text,
    most_change_text,
    outscoring_text,
    small_group_text,
    true_shares_text,
)
from commod.metrics._constraint import Constraint, get_constraint
from commod.metrics._measures import Measure

MAX_LISTED = 5  # findings in a sentence

# ---------------------------------------------------------------------------------------------
# Phrases that sentences and checks share


def constraint_of(metric: Fairness) -> Constraint:
    """Return the constraint that a metric belongs to."""
    return get_constraint(metric.constraints)


def target_text(metric: Fairness, value: float) -> str:
    """Return the bound in words, such as "at least 80.0%", with digits to differ from `value`."""
    bound = 0.0 if metric.bound is None else metric.bound
    return at_bound(metric_text(metric, bound, value), constraint_of(metric).higher_is_fairer)


def metric_text(metric: Fairness, value: float, reference: float | None = None) -> str:
    """Return a value of a metric, with enough digits to differ from the reference.

    The reference is the bound if None. A P-rule is written in percent, a gap as a number.
    """
    reference = metric.bound if reference is None else reference
    in_percent = constraint_of(metric).is_ratio
    return distinct(value, reference, digits=1 if in_percent else 3, in_percent=in_percent)


def _interval_of(evidence: Evidence, metric: Fairness) -> str:
    """Return the interval of a metric after the update, in brackets; empty without one."""
    low, high = metric.after.low, metric.after.high
    if low is None or high is None:
        return ""
    ends = f"between {metric_text(metric, low)} and {metric_text(metric, high)}"
    return f" ({ends}, {interval(evidence, compared=True)})"


def interval(evidence: Evidence, *, compared: bool = False) -> str:
    """Return the level and the rows, for a sentence with an interval.

    A comparison between groups (`compared`) omits small groups.
    """
    n = evidence.compared.n if compared else evidence.n
    omitted = ""
    if n < evidence.n:
        why = "too small" if evidence.unknown is None else "unknown or too small"
        omitted = f" without {evidence.n - n:,} in groups {why}"
    return f"{evidence.level * 100:g}% interval, {n:,} {evidence.rows}{omitted}"


def why_undefined(evidence: Evidence) -> str:
    """Return why the requested metric has no value."""
    metric = evidence.fairness.name
    if reason := evidence.stated.why_undefined(0):
        return reason
    if len(evidence.compared_names) < 2:
        return f"the {metric} compares groups, and fewer than two groups are large enough."
    return (
        f"the {metric} is not defined on these rows. Either nobody gets the decision that is "
        "counted, or a group has nobody with a true label that is compared."
    )


# ---------------------------------------------------------------------------------------------
# The answer and the notice


def answer_of(evidence: Evidence) -> tuple[str, ...]:
    """Return what a reader should know first, most important first."""
    sentences = (
        most_change_text(evidence.changes.n_changes / evidence.n),
        _who_changes(evidence),
        _how_decided(evidence),
        _fairness(evidence),
        *further_sentences(evidence),
        *strata_sentences(evidence),
        _left_out(evidence),
        _unknown(evidence),
        *outscoring_sentences(evidence),
        _distance_to_limit(evidence),
        _accuracy(evidence),
    )
    return tuple(sentence for sentence in sentences if sentence)


def _unknown(evidence: Evidence) -> str:
    """Return how fair the decisions could be, whatever the unknown groups are."""
    unknown = evidence.unknown_groups
    if unknown is None:
        return ""
    text = (
        f"For {n_of(unknown.n_unknown, 'person')}, the group is not known. Fairness counts only "
        f"the {n_of(unknown.n_known, 'person')} with a known group."
    )
    if evidence.shown.n_unknown_hidden:
        return (
            f"{text} Those without one are fewer than {FEWEST_DESCRIBED}: they are in no figure "
            "and no total."
        )
    if unknown.low_after is None or unknown.high_after is None:
        return text
    metric = evidence.fairness
    low, high = (metric_text(metric, end) for end in (unknown.low_after, unknown.high_after))
    ends = "Both ends can occur." if unknown.is_exact else "The true range may be narrower."
    return (
        f"{text} Whatever the unknown groups are, the {metric.name} lies between {low} and "
        f"{high}. {ends}"
    )


def _who_changes(evidence: Evidence) -> str:
    changes = evidence.changes
    if not changes.n_changes:
        return f"No decision changes on the {evidence.n:,} {evidence.rows}."
    share = changes.n_changes / changes.n
    outcome = f"“{shorten(evidence.request.favorable_name)}”"
    return (
        f"{changes.n_changes:,} of {n_of(changes.n, 'person')} ({share:.1%}) "
        f"{verb(changes.n_changes, 'get')} another decision: "
        f"{changes.n_gains:,} {verb(changes.n_gains, 'gain')} the favourable outcome {outcome} "
        f"and {changes.n_losses:,} {verb(changes.n_losses, 'lose')} it."
    )


def _how_decided(evidence: Evidence) -> str:
    sentences = []
    if evidence.reads_group:
        sentences.append(
            "This update reads each person's group, or a column that determines it, to decide."
        )
    if evidence.is_randomised:
        sentences.append("This update is randomised: chance partly decides who changes.")
    return " ".join(sentences)


def notice_of(evidence: Evidence) -> str | None:
    """Return how many people lose and what gains alone would take; None unless losses prevail."""
    changes, limit = evidence.changes, evidence.limit
    if changes.n_losses <= changes.n_gains:
        return None
    text = (
        f"{n_of(changes.n_losses, 'person')} {verb(changes.n_losses, 'lose')} the favourable "
        f"outcome, {changes.n_gains:,} {verb(changes.n_gains, 'gain')} it."
    )
    if limit.n_gains_only == 0:
        text += " The base model was as fair as this without any change."
    elif limit.n_gains_only is None:
        text += " On these rows, gains alone cannot reach the same fairness."
    else:
        gains = _gains(limit.n_gains_only, evidence)
        text += f" On these rows, gains alone need at least {gains} for the same fairness."
    if limit.n_target_gains_only:
        gains = _gains(limit.n_target_gains_only, evidence)
        text += f" On these rows, gains alone need at least {gains} for the target."
    return text


def _gains(n: int, evidence: Evidence) -> str:
    return f"{n_of(n, 'change')} ({n / evidence.n:.1%} of all people)"


def _fairness(evidence: Evidence) -> str:
    metric, constraint = evidence.fairness, evidence.constraint
    before, after = metric.before.value, metric.after.value
    if before is None or after is None:
        return f"Fairness is not known: {why_undefined(evidence)}"
    earlier = "" if _has_rates(evidence) else " before"
    text = (
        f"{_rates(evidence, 'was')}The {metric.name} was {metric_text(metric, before)}{earlier}. "
        f"{_rates(evidence, 'is')}The {metric.name} is {metric_text(metric, after)}"
        f"{_interval_of(evidence, metric)}.{_other_ratio(metric)}"
    )
    if not constraint.is_met(after, before):
        text += " This is less fair than before."
    if metric.bound is not None:
        goal = target_text(metric, after)
        if not metric.is_kept:
            text += f" The target, {goal}, is not reached on these rows."
        elif most_change_text(evidence.changes.n_changes / evidence.n):
            text += f" The changed decisions have {goal} on these rows, but this is not a success."
        else:
            text += f" The target, {goal}, is reached on these rows."
    return text


def further_sentences(evidence: Evidence) -> tuple[str, ...]:
    """Return for each further constraint its metric before and after, and whether it is kept."""
    return tuple(_further(evidence, i) for i in range(1, len(evidence.stated_metrics)))


def _further(evidence: Evidence, i: int) -> str:
    metric = evidence.stated_metrics[i]
    before, after = metric.before.value, metric.after.value
    if after is None:
        reason = evidence.stated.why_undefined(i)
        return f"The {metric.name} is not defined on these rows{f': {reason}' if reason else '.'}"
    text = f"The {metric.name} is {metric_text(metric, after)}{_interval_of(evidence, metric)}"
    if before is not None:
        text += f"; it was {metric_text(metric, before)} before"
    if metric.bound is None:
        return f"{text}."
    kept = "is kept" if metric.is_kept else "is not kept"
    return f"{text}. Its bound, {target_text(metric, after)}, {kept} on these rows."


def strata_sentences(evidence: Evidence) -> tuple[str, ...]:
    """Return for each condition how many strata are compared, and how many are left out."""
    sentences = []
    for metric in evidence.stated_metrics:
        table = metric.strata
        if table is None or not table.n_compared:
            continue
        text = (
            f"The {metric.name} compares {n_of(table.n_compared, 'stratum')} of "
            f"{table.n_strata:,}, with {n_of(table.n_people, 'person')}."
        )
        if table.n_people_left_out:
            text += (
                f" {n_of(table.n_people_left_out, 'person')} {verb(table.n_people_left_out, 'be')} "
                f"not compared: fewer than {table.min_rows} rows of their group count in their "
                "stratum, or it has no other group to compare with."
            )
        sentences.append(text)
    return tuple(sentences)


def _other_ratio(metric: Fairness) -> str:
    """Return the P-rule of the other label before and after; empty for other metrics."""
    before, after = metric.other_before, metric.other_after
    if before is None or after is None or before.value is None or after.value is None:
        return ""
    old, new = metric_text(metric, before.value), metric_text(metric, after.value)
    return f" The {metric.other_name} was {old} and is {new}."


def _left_out(evidence: Evidence) -> str:
    """Return who is not compared, and the metric over all groups whose rates may be shown."""
    small = evidence.small_groups
    if not small:
        return ""
    groups = list_names(
        [small_group_text(g.name, g.n, "person", g.rate_before, g.rate_after) for g in small],
        MAX_LISTED_GROUPS,
    )
    text = (
        f"{n_of(len(small), 'group')} of fewer than {evidence.min_group_size} people "
        f"{verb(len(small), 'be')} not compared: {groups}."
    )
    if n_hidden := evidence.n_hidden:
        text += (
            f" {n_of(n_hidden, 'person')} in groups of fewer than {FEWEST_DESCRIBED} "
            f"{verb(n_hidden, 'be')} in no figure and no total."
        )
    counts, constraint = evidence.described, evidence.constraint
    if not constraint.is_simple:
        return text
    if len(counts.sizes) == len(evidence.compared.sizes) or not counts.is_comparable(constraint):
        return text
    value = constraint.value_from_counts(*counts.table(constraint, after=True))
    if value is None:
        return text
    n, n_all = len(counts.sizes), len(evidence.counts.sizes)
    over = f"all {n} groups" if n == n_all else f"the {n} groups whose rates can be shown"
    shown = metric_text(evidence.fairness, float(value))
    return f"{text} Over {over}, the {evidence.fairness.name} is {shown}."


def _has_rates(evidence: Evidence) -> bool:
    """Return whether the first constraint compares rates of all people."""
    constraint = evidence.constraint
    return constraint.compares_rates and constraint.within is None


def _rates(evidence: Evidence, is_or_was: str) -> str:
    """Return a sentence with the lowest and highest rate of each rate row, before or after.

    `is_or_was` says which. It is empty where other numbers are compared.
    """
    if not _has_rates(evidence):
        return ""
    sizes, positives = evidence.compared.table(evidence.constraint, after=is_or_was == "is")
    rates = [
        f"{_rate_name(evidence, row)} {is_or_was} {_extremes(evidence, positives[i] / sizes[i])}"
        for i, row in enumerate(evidence.constraint.rate_rows)
    ]
    return f"{'Before' if is_or_was == 'was' else 'After'}, {'; '.join(rates)}. "


def _rate_name(evidence: Evidence, row: Measure) -> str:
    """Return a rate by its name and, where true labels count, in words."""
    name = f"the {row.name} of {evidence.outcome}"
    if row.label is None or not evidence.other_outcome:
        return name
    among = evidence.outcome if row.label else evidence.other_outcome
    return f"{name} (decided {evidence.outcome} among those whose true label is {among})"


def _extremes(evidence: Evidence, rates: NDArray[np.float64]) -> str:
    lowest, highest = int(rates.argmin()), int(rates.argmax())
    if lowest == highest:
        return f"{rates[0]:.1%} in every group"
    low, high = (
        f"{rates[i]:.1%} in group {shorten(evidence.compared_names[i])}" for i in (lowest, highest)
    )
    return f"{low} and {high}"


def outscoring_sentences(evidence: Evidence) -> Iterable[str]:
    """Yield a sentence for gains and one for losses, whichever are known."""
    for figures in evidence.outscoring:
        text = outscoring_text(figures.change, figures.same_group, evidence.level)
        if text:
            yield f"{text} {_true_shares(figures)}".rstrip()


def _true_shares(figures: Outscoring) -> str:
    changed, others = figures.true_share_changed, figures.true_share_others
    if changed is None or others is None:
        return ""
    return true_shares_text(figures.change, changed.value, others.value)


def _distance_to_limit(evidence: Evidence) -> str:
    limit = evidence.limit
    if limit.n_fewest is None or not limit.n_changes:
        return ""
    if not limit.n_fewest:
        return "The base model was as fair as this, or fairer, without any change."
    allowed = {"any": "", "gains_only": " with gains only", "losses_only": " with losses only"}
    goal = "for the same fairness"
    if limit.n_constraints > 1:
        goal = f"to keep the {limit.n_constraints} constraints as well as this update"
    proven = "" if limit.is_exact else " The fewest may be more: this is a proven lower bound."
    n_small = evidence.changes.n_changes - limit.n_changes
    why = "too small to be compared" if evidence.unknown is None else "unknown or too small"
    omitted = f", not counting {n_small:,} in groups {why}" if n_small else ""
    blind = f" {blind_limit_text(limit.blind, evidence.level)}" if limit.blind else ""
    return (
        f"On these rows, every method{allowed[limit.direction]} needs at least "
        f"{n_of(limit.n_fewest, 'change')} {goal}, even if it knows every person's group.{proven} "
        f"This update makes {limit.times or 0:.2f} times as many{omitted}.{blind}"
    )


def _accuracy(evidence: Evidence) -> str:
    quality = evidence.quality
    if quality is None:
        return "True labels are not known here, so errors are not counted."
    before, after = quality.accuracy_before.value or 0.0, quality.accuracy_after.value or 0.0
    return (
        f"The accuracy goes from {before:.1%} to {after:.1%}: "
        f"{n_of(quality.n_errors_fixed, 'error')} fixed, "
        f"{n_of(quality.n_errors_introduced, 'error')} introduced."
    )
