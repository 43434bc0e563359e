"""The audit in plain words: what was asked and reached, and what is not known."""

from __future__ import annotations

from typing import Any

from commod._record import Estimate, Request
from commod._reporting.audit.evidence import Evidence
from commod._text import shorten
from commod.metrics._constraint import get_constraint

__all__ = [
    "answer_of",
    "as_asked",
    "counted",
    "goal_of",
    "not_known_of",
    "notice_of",
    "people_word",
    "told_apart",
]


def people_word(n: int) -> str:
    """Return a number of people in words."""
    return "1 person" if n == 1 else f"{n:,} people"


def goal_of(request: Request) -> str:
    """Return the target in words; empty where there is none."""
    if request.target is None:
        return ""
    bound = "at least" if get_constraint(request.constraints).higher_is_fairer else "at most"
    return f"{bound} {as_asked(request, request.target)}"


def as_asked(request: Request, value: float | None) -> str:
    """Return a value of the metric that was asked for, told apart from its target.

    The P-rule is a share in percent, a gap a number; as many digits as it takes.
    """
    if value is None:
        return "not defined"
    is_share = get_constraint(request.constraints).is_ratio
    return told_apart(value, request.target, ".{}%" if is_share else ".{}f", 1 if is_share else 3)


def told_apart(value: float, bar: float | None, kind: str, digits: int) -> str:
    """Return a number with digits enough to be told from a bar that it does not equal.

    Examples
    --------
    >>> told_apart(0.7998, 0.8, ".{}%", 1), told_apart(0.75, 0.8, ".{}%", 1)
    ('79.98%', '75.0%')
    """
    for more in range(digits, 9):
        text = format(value, kind.format(more))
        if bar is None or value == bar or text != format(bar, kind.format(more)):
            return text
    return repr(value)


def counted(n: int, one: str) -> str:
    """Return a number of things; an s where it is not one.

    Examples
    --------
    >>> counted(1, "gain"), counted(1200, "gain")
    ('1 gain', '1,200 gains')
    """
    return f"{n:,} {one}" if n == 1 else f"{n:,} {one}s"


def answer_of(found: Evidence) -> tuple[str, ...]:
    """Return the first things a reader should know, most important first."""
    said = (
        _who_changes(found),
        _how_decided(found),
        _fairness(found),
        _distance(found),
        _accuracy(found),
    )
    return tuple(sentence for sentence in said if sentence)


def _who_changes(found: Evidence) -> str:
    changes = found.changes
    if not changes.n_changes:
        return f"No decision changes on the {found.n:,} {found.rows}."
    share = changes.n_changes / changes.n
    good = f"“{shorten(found.request.favorable_name)}”"
    gets = "gets" if changes.n_changes == 1 else "get"
    loses = "loses" if changes.n_losses == 1 else "lose"
    gains = "gains" if changes.n_gains == 1 else "gain"
    return (
        f"{changes.n_changes:,} of {people_word(changes.n)} ({share:.1%}) {gets} another decision: "
        f"{changes.n_gains:,} {gains} the favourable outcome {good} and {changes.n_losses:,} "
        f"{loses} it."
    )


def _how_decided(found: Evidence) -> str:
    said = []
    if found.reads_group:
        said.append("This update needs each person's group to decide.")
    if found.draws_lots:
        said.append("It decides by lot: who changes is partly chance.")
    return " ".join(said)


def notice_of(found: Evidence) -> str | None:
    """Return what to say where most changes are losses: how many, and what gains would take."""
    changes, limit = found.changes, found.limit
    if changes.n_losses <= changes.n_gains:
        return None
    said = (
        f"{people_word(changes.n_losses)} {'loses' if changes.n_losses == 1 else 'lose'} the "
        f"favourable outcome, {changes.n_gains:,} {'gains' if changes.n_gains == 1 else 'gain'} it."
    )
    if limit.n_gains_only == 0:
        said += " The base model was as fair as this without any change."
    elif limit.n_gains_only is None:
        said += " Gains alone cannot reach the same fairness on these rows."
    else:
        share = limit.n_gains_only / found.n
        said += (
            f" If nobody were to lose, the same fairness would take at least "
            f"{counted(limit.n_gains_only, 'gain')} ({share:.1%} of all)."
        )
    if limit.n_target_gains_only:
        share = limit.n_target_gains_only / found.n
        said += (
            " The target itself would take at least "
            f"{counted(limit.n_target_gains_only, 'gain')} ({share:.1%} of all)."
        )
    return said


def _fairness(found: Evidence) -> str:
    request, fairness = found.request, found.fairness
    before, after = fairness.before.value, fairness.after.value
    if before is None or after is None:
        return f"How fair this is cannot be said: {undefined(found)}"
    text = (
        f"Before, {_in_words(found, False)}. Now it is {_in_words(found, True)}"
        f"{_between(found, fairness.after)}."
    )
    if after < before if fairness.higher_is_fairer else after > before:
        text += " This is less fair than before."
    if request.target is None:
        return text
    reached = after >= request.target if fairness.higher_is_fairer else after <= request.target
    verdict = "this is reached" if reached else "this is not reached"
    return f"{text} Asked for was {goal_of(request)}; {verdict} on these rows."


def undefined(found: Evidence) -> str:
    """Return why the metric that was asked for has no value."""
    metric = found.fairness.metric
    if len(found.names) < 2:
        return f"the {metric} compares groups, and fewer than two are large enough here."
    return (
        f"the {metric} is not defined on these rows, where nobody gets the decision that is "
        "counted or a group has nobody with a label that is compared."
    )


def _in_words(found: Evidence, after: bool) -> str:
    """Return who gets the decision least and most often, and what that comes to."""
    request, fairness = found.request, found.fairness
    value = as_asked(request, (fairness.after if after else fairness.before).value)
    sizes, positives = found.compared.table(request.constraints, after)
    parts = [
        f"{_extremes(found, n, k)}{'' if whom is None else f' {whom}'}"
        for n, k, whom in zip(sizes, positives, _lines(request), strict=True)
    ]
    decision = "" if after else f"“{shorten(request.pos_name)}” was decided for "
    if get_constraint(request.constraints).is_ratio:
        return f"{decision}{parts[0]}: {value} as often"
    gap = "gaps of together" if len(parts) > 1 else "a gap of"
    return f"{decision}{', and for '.join(parts)}: {gap} {value}"


def _lines(request: Request) -> list[str | None]:
    """Return of whom each rate of the constraint is."""
    whom = {
        None: None,
        True: "among people it is right for",
        False: "among people it is wrong for",
    }
    return [whom[row.label] for row in get_constraint(request.constraints).rate_rows]


def _extremes(found: Evidence, sizes: Any, positives: Any) -> str:
    rates = (positives / sizes).tolist()
    low, high = rates.index(min(rates)), rates.index(max(rates))
    if low == high:
        return f"{rates[0]:.1%} of every group"
    names = [shorten(found.names[i]) for i in (low, high)]
    return f"{rates[low]:.1%} of the group {names[0]} and {rates[high]:.1%} of {names[1]}"


def _between(found: Evidence, value: Estimate) -> str:
    if value.low is None or value.high is None:
        return ""
    low, high = as_asked(found.request, value.low), as_asked(found.request, value.high)
    return f" (between {low} and {high}, {found.compared_on})"


def _distance(found: Evidence) -> str:
    limit = found.limit
    if limit.n_fewest is None or not limit.n_changes:
        return ""
    if not limit.n_fewest:
        return "The base model was as fair as this, or fairer, without any change."
    allowed = {"any": "", "gains_only": " by gains alone", "losses_only": " by losses alone"}
    small = found.changes.n_changes - limit.n_changes
    rest = f", not counting {small:,} in groups too small to be compared" if small else ""
    return (
        f"No method could reach the same{allowed[limit.direction]} with fewer than "
        f"{counted(limit.n_fewest, 'change')}, even knowing everybody's group; this update makes "
        f"{limit.times or 0:.2f} times as many{rest}."
    )


def _accuracy(found: Evidence) -> str:
    quality = found.quality
    if quality is None:
        return "True outcomes are not known here, so nothing is said about errors."
    before, after = quality.accuracy_before.value or 0.0, quality.accuracy_after.value or 0.0
    return (
        f"Right decisions go from {before:.1%} to {after:.1%}: "
        f"{counted(quality.n_errors_fixed, 'error')} mended, "
        f"{counted(quality.n_errors_introduced, 'new error')} made."
    )


# ---------------------------------------------------------------------------------------------
# What is not known


def not_known_of(found: Evidence) -> tuple[str, ...]:
    """Return what the figures do not say."""
    return (
        f"Everything is measured on the {found.rows}. If the base model or the update was fitted "
        "on them, the figures are too good; on new people they may differ.",
        "Intervals hold if new people come as these did, each independent of the others. They do "
        "not cover wrong labels, wrong groups or people who never came.",
        *_left_out(found),
        *_not_given(found),
        *_too_few(found),
        "A target is a choice of those who set it. No figure here says that a rule or a law is "
        "complied with, and whether a change is right for the person is for people to judge.",
    )


def _left_out(found: Evidence) -> list[str]:
    said = []
    if found.n_undecided:
        rows, have = ("row", "has") if found.n_undecided == 1 else ("rows", "have")
        said.append(
            f"{found.n_undecided:,} {rows} without a decision before and after {have} been left "
            "out: nothing is said about these people."
        )
    if not found.has_rows:
        said.append(
            "The figures come from counts and sums made inside the dataframe engine. What needs "
            "rows was not computed: areas under the curve, calibration and the rank correlation of "
            "scores, rules that say who changes, subgroups within columns, and the change ledger."
        )
    return said


def _not_given(found: Evidence) -> list[str]:
    given = {
        "y_true": found.quality is not None,
        "scores": found.agreement is not None,
        "X": found.segments is not None or not found.has_rows,
        "ratio": all(proxy.by_ratio for proxy in found.proxies),
        "stability": found.stability is not None,
    }
    missing = {
        "y_true": "True labels were not given: accuracy, error rates and calibration are not "
        "known.",
        "scores": "Scores before and after were not both given: agreement, ranking and "
        "calibration of the scores are not known.",
        "X": "Raw columns were not given: which people change, and subgroups within columns, are "
        "not known.",
        "ratio": "The update is not known as a scorecard, so how well it tells the groups apart "
        "is measured on the changes alone.",
        "stability": "Refits on resampled rows were not made: whether other rows would lead to the "
        "same changes is not known.",
    }
    return [text for name, text in missing.items() if not given[name]]


def _too_few(found: Evidence) -> list[str]:
    said = []
    if found.fairness.after.value is None:
        said.append(f"Fairness is not known: {undefined(found)}")
    if found.unread:
        listed = ", ".join(shorten(name, 40) for name in found.unread[:10])
        more = f" and {len(found.unread) - 10} more" if len(found.unread) > 10 else ""
        said.append(
            f"Columns that are neither numbers nor categories ({listed}{more}) are in no rule and "
            "no subgroup, and their values are not in the digest of the data."
        )
    if found.small:
        n = sum(group.n for group in found.small)
        said.append(
            f"{len(found.small):,} group(s) with {people_word(n)} together are too small (under "
            f"{found.small[0].needed}) to say anything about; they are in no comparison."
        )
    if found.subgroups.n_too_small:
        said.append(
            f"{found.subgroups.n_too_small:,} subgroups have too few people (under "
            f"{found.subgroups.min_size}), or too few to compare with, to say how they fare."
        )
    return said
