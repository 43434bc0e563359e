"""Write what an audit says in plain sentences: its answer, and what it does not know."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from commod._data.disclosure import FEWEST_DESCRIBED
from commod._record.audit import Fairness
from commod._record.costs import CountedUpdate
from commod._record.explanation import Outscoring
from commod._reporting.audit.figures import MeasuredAudit, outcomes_of
from commod._reporting.audit.people import DecisionCounts
from commod._text import (
    MAX_LISTED_GROUPS,
    at_bound,
    distinct,
    list_names,
    n_of,
    number,
    shorten,
    verb,
)
from commod._words.shared import (
    alike_text,
    blind_limit_text,
    most_change_text,
    no_interval_text,
    outscoring_text,
    rates_text,
    small_group_text,
    true_shares_text,
)
from commod.metrics._changes import is_degenerate
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


def _interval_of(e: MeasuredAudit, metric: Fairness) -> str:
    """Return the interval of a metric after the update, in brackets; empty without one."""
    low, high = metric.after.low, metric.after.high
    if low is None or high is None:
        return ""
    ends = f"between {metric_text(metric, low)} and {metric_text(metric, high)}"
    return f" ({ends}, {interval(e, compared=True)})"


def interval(e: MeasuredAudit, *, compared: bool = False) -> str:
    """Return the level and the rows, for a sentence with an interval.

    A comparison between groups (`compared`) omits small groups.
    """
    n = e.fairness[0].n if compared else e.n
    omitted = ""
    if n < e.n:
        why = "too small" if e.counted.unknown is None else "unknown or too small"
        omitted = f" without {e.n - n:,} in groups {why}"
    return f"{e.level * 100:g}% interval, {n:,} {e.rows}{omitted}"


def why_undefined(e: MeasuredAudit) -> str:
    """Return why the requested metric has no value."""
    metric = e.fairness[0].name
    if reason := e.counted.strata[0][1]:
        return reason
    if len(e.counted.compared_names) < 2:
        return f"the {metric} compares groups, and fewer than two groups are large enough."
    return (
        f"the {metric} is not defined on these rows. Either nobody gets the decision that is "
        "counted, or a group has nobody with a true label that is compared."
    )


# ---------------------------------------------------------------------------------------------
# The answer and the notice


def answer_of(e: MeasuredAudit) -> tuple[str, ...]:
    """Return what a reader should know first, most important first."""
    sentences = (
        degenerate_text(e),
        _who_changes(e),
        _how_decided(e),
        _positive_rates(e),
        _fairness(e),
        *further_sentences(e),
        *strata_sentences(e),
        _left_out(e),
        _unknown(e),
        *outscoring_sentences(e),
        _distance_to_limit(e),
        _accuracy(e),
        _losses(e),
        alternative_text(e),
    )
    return tuple(sentence for sentence in sentences if sentence)


def degenerate_text(e: MeasuredAudit) -> str:
    """Return that most decisions change, or become alike; empty where they do not."""
    changed, before, after = e.counted.decision_shares
    if most := most_change_text(changed):
        return most
    return alike_text(max(after, 1 - after)) if is_degenerate(changed, before, after) else ""


def _unknown(e: MeasuredAudit) -> str:
    """Return how fair the decisions could be, whatever the unknown groups are."""
    unknown = e.unknown_groups
    if unknown is None:
        return ""
    text = (
        f"For {n_of(unknown.n_unknown, 'person')}, the group is not known. Fairness counts only "
        f"the {n_of(unknown.n_known, 'person')} with a known group."
    )
    if e.counted.n_unknown_hidden:
        return (
            f"{text} Those without one are fewer than {FEWEST_DESCRIBED}: they are in no figure "
            "and no total."
        )
    if unknown.low_after is None or unknown.high_after is None:
        return text
    metric = e.fairness[0]
    low, high = (metric_text(metric, end) for end in (unknown.low_after, unknown.high_after))
    ends = "Both ends can occur." if unknown.is_exact else "The true range may be narrower."
    return (
        f"{text} Whatever the unknown groups are, the {metric.name} lies between {low} and "
        f"{high}. {ends}"
    )


def _who_changes(e: MeasuredAudit) -> str:
    changes = e.changes
    if not changes.n_changes:
        return f"No decision changes on the {e.n:,} {e.rows}."
    share = changes.n_changes / changes.n
    outcome = f"“{shorten(e.request.favorable_name)}”"
    return (
        f"{changes.n_changes:,} of {n_of(changes.n, 'person')} ({share:.1%}) "
        f"{verb(changes.n_changes, 'get')} another decision: "
        f"{changes.n_gains:,} {verb(changes.n_gains, 'gain')} the favourable outcome {outcome} "
        f"and {changes.n_losses:,} {verb(changes.n_losses, 'lose')} it."
    )


def _positive_rates(e: MeasuredAudit) -> str:
    """Return the rate of the counted label before and after, of all people and by group."""
    if not e.changes.n_changes:
        return ""
    known = [("", e.changes.selected_before, e.changes.selected_after)]
    known += [(g.name, g.selected_before, g.selected_after) for g in e.groups if g.compared]
    rates = [
        (name, None if old is None else old.value, None if new is None else new.value)
        for name, old, new in known
    ]
    return rates_text(outcomes_of(e.request)[0], rates)


def _how_decided(e: MeasuredAudit) -> str:
    sentences = []
    if e.provenance.reads_group:
        sentences.append(
            "This update reads each person's group, or a column that determines it, to decide."
        )
    if e.provenance.is_randomised:
        sentences.append("This update is randomised: chance partly decides who changes.")
    return " ".join(sentences)


def notice_of(e: MeasuredAudit) -> str | None:
    """Return how many people lose and what gains alone would take; None unless losses prevail."""
    changes, limit = e.changes, e.limit
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
        gains = _gains(limit.n_gains_only, e)
        text += f" On these rows, gains alone need at least {gains} for the same fairness."
    if limit.n_target_gains_only:
        gains = _gains(limit.n_target_gains_only, e)
        text += f" On these rows, gains alone need at least {gains} for the target."
    return text


def _gains(n: int, e: MeasuredAudit) -> str:
    return f"{n_of(n, 'change')} ({n / e.n:.1%} of all people)"


def _fairness(e: MeasuredAudit) -> str:
    metric, constraint = e.fairness[0], e.counted.constraint
    before, after = metric.before.value, metric.after.value
    if before is None or after is None:
        return f"Fairness is not known: {why_undefined(e)}"
    earlier = "" if _has_rates(e) else " before"
    text = (
        f"{_rates(e, 'was')}The {metric.name} was {metric_text(metric, before)}{earlier}. "
        f"{_rates(e, 'is')}The {metric.name} is {metric_text(metric, after)}"
        f"{_interval_of(e, metric)}.{_other_ratio(metric)}"
    )
    if not constraint.is_met(after, before):
        text += " This is less fair than before."
    if metric.bound is not None:
        goal = target_text(metric, after)
        if not metric.is_kept:
            text += f" The target, {goal}, is not reached on these rows."
        elif degenerate_text(e):
            text += f" The changed decisions have {goal} on these rows, but this is not a success."
        else:
            text += f" The target, {goal}, is reached on these rows."
    return text


def further_sentences(e: MeasuredAudit) -> tuple[str, ...]:
    """Return for each further constraint its metric before and after, and whether it is kept."""
    return tuple(_further(e, i) for i in range(1, len(e.asked)))


def _further(e: MeasuredAudit, i: int) -> str:
    metric = e.asked[i]
    before, after = metric.before.value, metric.after.value
    if after is None:
        reason = e.counted.strata[i][1]
        return f"The {metric.name} is not defined on these rows{f': {reason}' if reason else '.'}"
    text = f"The {metric.name} is {metric_text(metric, after)}{_interval_of(e, metric)}"
    if before is not None:
        text += f"; it was {metric_text(metric, before)} before"
    if metric.bound is None:
        return f"{text}."
    kept = "is kept" if metric.is_kept else "is not kept"
    return f"{text}. Its bound, {target_text(metric, after)}, {kept} on these rows."


def strata_sentences(e: MeasuredAudit) -> tuple[str, ...]:
    """Return for each condition how many strata are compared, and how many are left out."""
    sentences = []
    for metric in e.asked:
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


def _left_out(e: MeasuredAudit) -> str:
    """Return who is not compared, and the metric over all groups whose rates may be shown."""
    small = e.small_groups
    if not small:
        return ""
    groups = list_names(
        [small_group_text(g.name, g.n, "person", g.rate_before, g.rate_after) for g in small],
        MAX_LISTED_GROUPS,
    )
    text = (
        f"{n_of(len(small), 'group')} of fewer than {e.counted.min_group_size} people "
        f"{verb(len(small), 'be')} not compared: {groups}."
    )
    if n_hidden := int(e.counted.n_hidden.sum()):
        text += (
            f" {n_of(n_hidden, 'person')} in groups of fewer than {FEWEST_DESCRIBED} "
            f"{verb(n_hidden, 'be')} in no figure and no total."
        )
    counts, constraint = _described(e), e.counted.constraint
    if not constraint.is_simple:
        return text
    if len(counts.sizes) == len(e.counted.compared.sizes) or not counts.is_comparable(constraint):
        return text
    value = constraint.value_from_counts(*counts.table(constraint, after=True))
    if value is None:
        return text
    n, n_all = len(counts.sizes), len(e.counted.counts.sizes)
    over = f"all {n} groups" if n == n_all else f"the {n} groups whose rates can be shown"
    shown = metric_text(e.fairness[0], float(value))
    return f"{text} Over {over}, the {e.fairness[0].name} is {shown}."


def _described(e: MeasuredAudit) -> DecisionCounts:
    """Return the counts of groups, compared or not, whose rates may be shown and are defined.

    Defined are the rates that the constraint compares.
    """
    counts = e.counted.counts
    is_shown = [group.selected_after.value is not None for group in e.groups]
    sizes, _ = counts.table(e.counted.constraint, after=True)
    return counts.of_groups(np.array(is_shown) & (sizes > 0).all(axis=0))


def _has_rates(e: MeasuredAudit) -> bool:
    """Return whether the first constraint compares rates of all people."""
    constraint = e.counted.constraint
    return constraint.compares_rates and constraint.within is None


def _rates(e: MeasuredAudit, is_or_was: str) -> str:
    """Return a sentence with the lowest and highest rate of each rate row, before or after.

    `is_or_was` says which. It is empty where other numbers are compared.
    """
    if not _has_rates(e):
        return ""
    sizes, positives = e.counted.compared.table(e.counted.constraint, after=is_or_was == "is")
    rates = [
        f"{_rate_name(e, row)} {is_or_was} {_extremes(e, positives[i] / sizes[i])}"
        for i, row in enumerate(e.counted.constraint.rate_rows)
    ]
    return f"{'Before' if is_or_was == 'was' else 'After'}, {'; '.join(rates)}. "


def _rate_name(e: MeasuredAudit, row: Measure) -> str:
    """Return a rate by its name and, where true labels count, in words."""
    outcome, other = outcomes_of(e.request)
    name = f"the {row.name} of {outcome}"
    if row.label is None or not other:
        return name
    among = outcome if row.label else other
    return f"{name} (decided {outcome} among those whose true label is {among})"


def _extremes(e: MeasuredAudit, rates: NDArray[np.float64]) -> str:
    lowest, highest = int(rates.argmin()), int(rates.argmax())
    if lowest == highest:
        return f"{rates[0]:.1%} in every group"
    low, high = (
        f"{rates[i]:.1%} in group {shorten(e.counted.compared_names[i])}" for i in (lowest, highest)
    )
    return f"{low} and {high}"


def outscoring_sentences(e: MeasuredAudit) -> Iterable[str]:
    """Yield a sentence for gains and one for losses, whichever are known."""
    for figures in e.outscoring:
        text = outscoring_text(figures.change, figures.same_group, e.level)
        if text:
            yield f"{text} {_true_shares(figures)}".rstrip()


def _true_shares(figures: Outscoring) -> str:
    changed, others = figures.true_share_changed, figures.true_share_others
    if changed is None or others is None:
        return ""
    return true_shares_text(figures.change, changed.value, others.value)


def _distance_to_limit(e: MeasuredAudit) -> str:
    limit = e.limit
    if limit.n_fewest is None or not limit.n_changes:
        return ""
    if not limit.n_fewest:
        return "The base model was as fair as this, or fairer, without any change."
    allowed = {"any": "", "gains_only": " with gains only", "losses_only": " with losses only"}
    goal = "for the same fairness"
    if limit.n_constraints > 1:
        goal = f"to keep the {limit.n_constraints} constraints as well as this update"
    proven = "" if limit.is_exact else " The fewest may be more: this is a proven lower bound."
    n_small = e.changes.n_changes - limit.n_changes
    why = "too small to be compared" if e.counted.unknown is None else "unknown or too small"
    omitted = f", not counting {n_small:,} in groups {why}" if n_small else ""
    blind = f" {blind_limit_text(limit.blind, e.level)}" if limit.blind else ""
    return (
        f"On these rows, every method{allowed[limit.direction]} needs at least "
        f"{n_of(limit.n_fewest, 'change')} {goal}, even if it knows every person's group.{proven} "
        f"This update makes {limit.times or 0:.2f} times as many{omitted}.{blind}"
    )


def _accuracy(e: MeasuredAudit) -> str:
    quality = e.quality
    if quality is None:
        return "True labels are not known here, so errors are not counted."
    before, after = quality.accuracy_before.value or 0.0, quality.accuracy_after.value or 0.0
    return (
        f"The accuracy goes from {before:.1%} to {after:.1%}: "
        f"{n_of(quality.n_errors_fixed, 'error')} fixed, "
        f"{n_of(quality.n_errors_introduced, 'error')} introduced."
    )


def _losses(e: MeasuredAudit) -> str:
    """Return what errors cost before and after; empty if nobody said what a decision is worth."""
    losses = e.losses
    if losses is None:
        return ""
    before, after, worth, cost = (
        f"{one:,.10g}" for one in (losses.before, losses.after, losses.worth, losses.cost)
    )
    return (
        f"If a right acceptance is worth {worth} and a wrong one costs {cost}, errors cost "
        f"{before} before the update and {after} after it: {number(losses.before / e.n, 2)} and "
        f"{number(losses.after / e.n, 2)} for each person. Acceptances that are missed go from "
        f"{losses.n_missed_before:,} to {losses.n_missed_after:,}, and wrong ones from "
        f"{losses.n_wrong_before:,} to {losses.n_wrong_after:,}."
    )


def loses_accuracy(e: MeasuredAudit) -> bool:
    """Return whether more errors are introduced than fixed, beyond the chance of the changes.

    Without a loss, each changed decision is as likely to become right as wrong: a sign test.
    """
    quality = e.quality
    if quality is None or quality.n_errors_introduced <= quality.n_errors_fixed:
        return False
    return quality.p_value < 1 - e.level


def alternative_text(e: MeasuredAudit) -> str:
    """Return the alternative that the fit counted, with figures.

    The text is empty without one, and where the update loses no accuracy beyond chance.
    """
    own, *others = e.request.alternatives or (None,)
    if own is None or not others or not loses_accuracy(e):
        return ""
    best = max(others, key=lambda one: one.n_errors_fixed - one.n_errors_introduced)
    return (
        f"On {own.n:,} fit rows, counted for rows that the points had not seen, {best.parameter} "
        f"does better: {_counted(best)}, with an expected {e.fairness[0].name} of "
        f"{metric_text(e.fairness[0], best.fairness)}. This update has {_counted(own)}. Fit it "
        f"with {best.parameter}, or say why not."
    )


def _counted(one: CountedUpdate) -> str:
    return (
        f"{n_of(one.n_changes, 'change')} ({one.n_gains:,} gain, {one.n_losses:,} lose), "
        f"{n_of(one.n_errors_fixed, 'error')} fixed and {one.n_errors_introduced:,} introduced"
    )


# ---------------------------------------------------------------------------------------------
# Write what an audit does not know: general limits, missing inputs, and too few people


def not_known_of(e: MeasuredAudit) -> tuple[str, ...]:
    """Return what the figures do not say, one text per fact."""
    return (
        f"All figures are measured on the {e.rows}. If the base model or the update was "
        "fitted on these rows, the figures are too good; on new people they may differ.",
        "Intervals hold if new people arrive in the same way as these people did, independently "
        "of each other. They do not cover wrong labels, wrong groups, or people who never "
        "appear in the data.",
        *_not_measured(e),
        *_unknown_groups(e),
        *_not_given(e),
        *_too_few(e),
        "A target is a choice of the people who set it. No figure here says that a rule or a law "
        "is complied with. People must judge whether a change is right for the person.",
    )


def _not_measured(e: MeasuredAudit) -> list[str]:
    texts = []
    n = e.n_undecided
    if n:
        texts.append(
            f"{n_of(n, 'row')} without a decision before and after the update {verb(n, 'be')} left "
            "out of every figure."
        )
    if not e.has_rows:
        texts.append(
            "The figures come from counts and sums made inside the dataframe engine. Figures that "
            "need single rows were not computed: areas under the curve of all people, calibration "
            "and the rank correlation of scores, whether people who gain have higher base "
            "scores than people who stay rejected, rules that say who changes, subgroups within "
            "columns, and the change ledger."
        )
    roc = e.roc
    if roc is not None and roc.n_bins is not None:
        texts.append(
            f"For the ROC curves of groups, scores were counted in {roc.n_bins:,} bins. The "
            "intervals of the areas include the largest error that the bins can make."
        )
    return texts


def _unknown_groups(e: MeasuredAudit) -> list[str]:
    if n := e.counted.n_unknown_hidden:
        return [
            f"For {n_of(n, 'person')}, the group is not known. As there are fewer than "
            f"{FEWEST_DESCRIBED}, they are in no figure and no total. The ledger has their changes."
        ]
    if e.counted.unknown is None:
        return []
    text = (
        f"For {n_of(e.counted.unknown.n, 'person')}, the group is not known. Changes and accuracy "
        "count them. Rates, comparisons and the limit do not, and hold for everybody only if "
        "people of unknown groups fare as those of known groups do."
    )
    named = zip(e.counted.stated, e.asked, strict=True)
    without = [
        metric.name for i, (one, metric) in enumerate(named) if i or not one.constraint.is_simple
    ]
    return [text, no_interval_text(without)] if without else [text]


def _not_given(e: MeasuredAudit) -> list[str]:
    texts = {
        "True labels were not given: accuracy, error rates and calibration are not known.": (
            e.quality is None
        ),
        "Scores before and after were not both given: agreement, ranking and calibration of the "
        "scores are not known.": e.agreement is None,
        "Scores before were not given: whether people who gain have higher base scores than "
        "people who stay rejected is not known.": e.counted.people.scores_before is None
        and e.has_rows,
        "Raw columns were not given: which people change, and subgroups within columns, are not "
        "known.": e.segments is None and e.has_rows,
        "The ratio r is not known: how well the update predicts the group is measured on the "
        "changes alone.": not all(proxy.by_ratio for proxy in e.proxies),
        "Refits on resampled rows were not made: whether other rows would lead to the same "
        "changes is not known.": e.stability is None,
    }
    return [*(text for text, is_missing in texts.items() if is_missing), *_no_curves(e)]


def _no_curves(e: MeasuredAudit) -> list[str]:
    """Return why areas under and between ROC curves of groups are not known, if so."""
    roc = e.roc
    if roc is None:
        people = e.counted.people
        scores = people.scores_before, people.scores_after
        if e.quality is None or all(one is None for one in scores):
            return []  # `_not_given` says so
        return ["Too few people are compared for ROC curves of groups: they are not known."]
    unknown = [g for g in roc.groups if g.why_unknown]
    names = list_names([g.name for g in unknown], 10, width=40)
    whys = list_names(sorted({g.why_unknown for g in unknown}))
    texts = [f"ROC curves are not known for {names}: {whys}."] if unknown else []
    if roc.n_left_out:
        texts.append(
            f"ROC curves were compared for the {len(roc.groups)} largest groups only; "
            f"{n_of(roc.n_left_out, 'compared group')} {verb(roc.n_left_out, 'be')} left out."
        )
    return texts


def _too_few(e: MeasuredAudit) -> list[str]:
    texts = []
    if e.fairness[0].after.value is None:
        texts.append(f"Fairness is not known: {why_undefined(e)}")
    unread = e.unread_columns
    if unread:
        names = list_names(unread, 10, width=40)
        texts.append(
            f"Columns that are neither numbers nor categories ({names}) are in no rule and "
            "no subgroup, and their values are not in the digest of the data."
        )
    small = e.small_groups
    if small:
        n_people = n_of(sum(group.n for group in small), "person")
        texts.append(
            f"{n_of(len(small), 'group')} with {n_people} in total {verb(len(small), 'be')} too "
            f"small (under {small[0].needed} people each) and left out of every comparison."
        )
    n = int(e.counted.n_hidden.sum())
    if n:
        texts.append(
            f"{n_of(n, 'person')} in groups of fewer than {FEWEST_DESCRIBED} people "
            f"{verb(n, 'be')} in no figure and no total. With the totals, the decisions of "
            "single people could be computed. The ledger has their changes."
        )
    n = e.subgroups.n_too_small
    if n:
        texts.append(
            f"{n_of(n, 'subgroup')} {verb(n, 'have')} too few people or too few peers (under "
            f"{e.subgroups.min_size}) to be compared."
        )
    return texts
