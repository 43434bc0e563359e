"""The facts of a fitted update, and their words: the lines of `status_`, and what goes beyond them.

`status_lines` is the short wording: first one line for each thing that a reader must not miss, then
the target, the figures, who changes, and the limit. `further_sentences` is what else is known; a
notebook shows it. A saved update has `UpdateFacts.without_names`, because no file may hold the name
or the rate of a group. The words then state counts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from commod._record.audit import LeftOutGroup
from commod._record.edits import EditRecord
from commod._record.explanation import Estimate
from commod._text import (
    MAX_LISTED_GROUPS,
    capitalised,
    count,
    distinct,
    list_names,
    n_of,
    number,
    plain,
    shorten,
    shown,
    verb,
)
from commod._words.shared import (
    MAX_ALIKE,
    MAX_CHANGED,
    alike_text,
    most_change_text,
    no_interval_text,
    outscoring_text,
    rates_text,
    small_group_text,
)

NAN = float("nan")
LEVEL = 0.95  # of intervals for a new sample of as many people
DRAWS_LEVEL = 0.95  # of the interval where probabilities are calibrated
LONGEST_NAME = 40  # characters of a group
NOTICED_NEARNESS = 0.05
EVEN = 0.5  # share of pairs in which neither side scores higher


@dataclass(frozen=True)
class Goal:
    """A constraint in words and figures: before, after, and what is expected on new people.

    `expected` is what the update is expected to have there, and `base_expected` the base model.

    - `metric`: with the label that it counts; `meaning` spells out a rate among true labels.
    - `bound`: None if only the metric is measured; `is_kept`: by the value after.
    - `other_metric`, `other`: the metric of the other label, before and after; empty without.
    - `within`: the column of its condition; empty without. `n_strata` are compared.
    """

    metric: str
    sign: str
    before: float
    after: float
    bound: float | None = None
    is_kept: bool = False
    expected: float = NAN
    other_metric: str = ""
    other: tuple[float, float] = (NAN, NAN)
    meaning: str = ""
    within: str = ""
    n_strata: int = 0
    n_strata_left_out: int = 0
    n_rows_left_out: int = 0
    min_rows: int = 0
    base_expected: float = NAN

    @property
    def text(self) -> str:
        """Return the goal, such as "P-rule of label 1 ≥ 0.8"."""
        return f"{self.metric} {self.sign} {self.bound:g}"


@dataclass(frozen=True)
class AskedTarget:
    """What was asked of an update, and what may be expected of it.

    - `is_expectation`: whether the target is one on new people; `is_known`: whether there are
      enough people to expect anything; `interval` is that of the first goal.
    - `is_missed`: whether a bound is missed on the rows; `is_reached`: as the attribute `reached_`.
    - `is_degenerate`: whether most decisions change, or become alike; `is_blocked`: whether only
      such updates were found to reach the target. `alike`: the share of people with the more
      frequent decision, before and after.
    - `needed`: the smallest share of changes that reaches a missed target, infinite if none does,
      NaN if it is not known; None if nobody asks.
    - `budget`, `caps`: shares that the user allows, the caps by the names of their parameters.
    """

    is_expectation: bool = False
    is_known: bool = False
    is_expected: bool = False
    interval: tuple[float, float] = (NAN, NAN)
    change_rate: float = NAN
    accuracy: float = NAN
    is_missed: bool = False
    is_reached: bool = False
    is_degenerate: bool = False
    is_blocked: bool = False
    alike: tuple[float, float] = (NAN, NAN)
    needed: float | None = None
    budget: float | None = None
    caps: Mapping[str, float] = field(default_factory=dict)
    smallest: tuple[str, int] = ("", 0)
    fewest_shown: int = 0
    direction: str = "any"
    direction_kept: str = "any"
    nearness: float = 0.0
    edits: tuple[EditRecord, ...] = ()


@dataclass(frozen=True)
class PromiseOutcome:
    """How a promise was tested: why it failed (empty if it holds), and the figures of the test.

    `observed` and `promised` are the fairness of the first tested update on the held-out rows, and
    its bound for new people. `n_rows_needed` would be enough.
    """

    confidence: float
    failure: str = ""
    change_rate: float = 0.0
    observed: float = NAN
    promised: float = NAN
    n_rows_needed: float = NAN


@dataclass(frozen=True)
class NeededChanges:
    """The fewest changes that the same fairness needs; NaN if that is not known.

    `known_changed` and `known_share` are shares of the people whose group is known. `gains_only` is
    the share that gains alone would need, None if nobody asks. `for_target`: the fairness is that
    of the target, which an update reaches that is no success.
    """

    n_fewest: float = NAN
    share: float = NAN
    is_exact: bool = True
    is_weighted: bool = False
    by_probability: bool = False
    known_changed: float = NAN
    known_share: float = NAN
    gains_only: float | None = None
    for_target: bool = False


@dataclass(frozen=True)
class UnknownPeople:
    """People whose group is not known, and between which values the metric lies therefore."""

    n: int
    n_known: int
    n_people: int
    n_rows: int
    is_hidden: bool
    by_probability: bool
    calibrated: tuple[float, float]
    worst: tuple[float, float]
    is_exact: bool
    without_interval: tuple[str, ...] = ()


@dataclass(frozen=True)
class GroupsLeftOut:
    """Groups that are not in the constraint.

    `n_hidden` rows are in no total. `over_all` is the metric over more groups: which, and its
    value; `rows` names the rows that it was measured on, where these are others.
    """

    groups: tuple[LeftOutGroup, ...]
    min_group_size: int
    n_hidden: int = 0
    fewest_shown: int = 0
    over_all: tuple[str, float] = ("", NAN)
    rows: str = ""


@dataclass(frozen=True)
class UpdateFacts:
    """What is known about a fitted update on the rows that it was measured on.

    - `rows`: "fit rows" or "held-out rows".
    - `covered`: the groups that the constraint compares, with their numbers of held-out rows where
      a promise names them; empty if all groups are compared. `not_covered` are the others.
    - `outcome`: the label that is counted. `rates` are the shares of people who are decided so,
      before and after: of all people first, with an empty name, then of the compared groups.
    - `outscoring`: the share of pairs for "gain" and for "loss".
    - `notes`: what a method says in its own words.

    Examples
    --------
    >>> goal = Goal("P-rule of label 1", "≥", 0.62, 0.81)
    >>> facts = UpdateFacts((goal,), "fit rows", 600, 0.05, 30, 0, (0.84, 0.83))
    >>> print(status_text(facts))
    On the 600 fit rows: P-rule of label 1 0.620 → 0.810, accuracy 0.840 → 0.830; new rows may ...
    30 decisions change (5.0%): 30 gain, 0 lose.
    """

    goals: tuple[Goal, ...]
    rows: str
    n_rows: int
    change_rate: float
    n_gains: float
    n_losses: float
    accuracy: tuple[float, float]
    outcome: str = ""
    rates: tuple[tuple[str, float, float], ...] = ()
    outscoring: Mapping[str, Estimate] = field(default_factory=dict)
    covered: tuple[tuple[str, int | None], ...] = ()
    not_covered: tuple[str, ...] = ()
    n_groups: int = 0
    left_out: GroupsLeftOut | None = None
    n_small_terms: int = 0
    smallest_category: int = 0
    notes: tuple[str, ...] = ()
    target: AskedTarget | None = None
    promise: PromiseOutcome | None = None
    limit: NeededChanges | None = None
    unknown: UnknownPeople | None = None
    has_names: bool = True

    def without_names(self) -> UpdateFacts:
        """Return what a file may hold: no name, and no rate, of a group."""
        target, left_out = self.target, self.left_out
        if target is not None:
            target = replace(target, smallest=("", target.smallest[1]))
        if left_out is not None:
            groups = tuple(LeftOutGroup("", group.n, None, None) for group in left_out.groups)
            left_out = replace(left_out, groups=groups, over_all=("", NAN))
        return replace(
            self,
            rates=self.rates[:1],
            covered=tuple(("", n) for _, n in self.covered),
            not_covered=("",) * len(self.not_covered),
            target=target,
            left_out=left_out,
            has_names=False,
        )


def status_text(facts: UpdateFacts) -> str:
    """Return the lines of `status_`."""
    return "\n".join(status_lines(facts))


def status_lines(facts: UpdateFacts) -> list[str]:
    """Return what a reader must not miss, a line each; then target, figures, changes and limit."""
    lines = [*_notices(facts), _target_line(facts), _figures_line(facts), _changes_line(facts)]
    if not facts.n_gains + facts.n_losses:
        lines.insert(0, lines.pop())  # a reader must not look for changes that do not exist
    return [capitalised(line) for line in (*lines, _limit_line(facts)) if line]


# ---------------------------------------------------------------------------------------------
# What a reader must not miss


def _notices(facts: UpdateFacts) -> Iterator[str]:
    yield _degenerate_text(facts)
    yield _broken_promise_text(facts)
    yield _missed_text(facts)
    yield from _standing_texts(facts)
    yield from facts.notes
    yield _base_alike_text(facts)
    yield _undefined_text(facts)
    yield _left_out_text(facts)
    yield from dict.fromkeys(_strata_left_out_texts(facts))
    yield _unknown_text(facts)
    yield _losses_text(facts)
    yield from outscoring_sentences(facts.outscoring, is_adverse=True)
    yield _edit_text(facts)
    yield _small_terms_text(facts)


def _degenerate_text(facts: UpdateFacts) -> str:
    """Return that an update is not a correction: it changes most decisions, or makes them alike."""
    if too_many := most_change_text(facts.change_rate):
        return too_many
    if facts.target is None or not facts.target.is_degenerate:
        return ""
    return alike_text(facts.target.alike[1])


def _base_alike_text(facts: UpdateFacts) -> str:
    """Return that the base model itself hardly tells people apart; empty if it does."""
    alike = NAN if facts.target is None else facts.target.alike[0]
    if not alike >= MAX_ALIKE:
        return ""
    share = distinct(alike, 1.0, digits=1, in_percent=True)
    return (
        f"The base model itself gives the same decision to {share} of all people, so the figures "
        "of fairness rest on few of them."
    )


def _broken_promise_text(facts: UpdateFacts) -> str:
    """Return which check of a promise failed, with numbers; empty if the promise holds."""
    test = facts.promise
    if test is None or not test.failure:
        return ""
    return (
        f"Nothing is promised for new people: {_failure_text(facts, test)} This update is that of "
        "a fit without confidence, on all rows."
    )


def _failure_text(facts: UpdateFacts, test: PromiseOutcome) -> str:
    tested = "the tested update, the fairest on the fit half,"
    if test.failure == "degenerate":
        if test.change_rate > MAX_CHANGED:
            share = distinct(test.change_rate, MAX_CHANGED, digits=1, in_percent=True)
            return f"{tested} changes more than half of the held-out decisions ({share})."
        return f"{tested} gives nearly all held-out people the same decision."
    if not math.isfinite(test.observed):
        return f"on the held-out rows, {tested} has no positive decisions to compare."
    if test.failure == "unfair" or not math.isfinite(test.n_rows_needed):
        return f"{tested} is not fairer than the target on the held-out rows ({test.observed:.3f})."
    # rounded up to two significant digits
    step = 10 ** max(0, math.floor(math.log10(max(test.n_rows_needed, 1))) - 1)
    n_needed = math.ceil(test.n_rows_needed / step) * step
    return (
        f"the held-out rows are too few. On them, the {facts.goals[0].metric} of the tested update "
        f"is {test.observed:.3f}. With confidence {test.confidence:g}, they support only "
        f"{test.promised:.3f}. About {n_needed:,} rows in all, both halves, would be needed."
    )


def _missed_text(facts: UpdateFacts) -> str:
    """Return that a target is not expected, or not reached, and why."""
    target = facts.target
    if target is None or (facts.promise is not None and not facts.promise.failure):
        return ""
    texts = []
    is_unknown = target.is_expectation and not target.is_known
    if is_unknown:
        texts.append(
            f"There is no expectation for new people: {_smallest_cell(facts)}, which is too few."
        )
    if target.budget is not None:
        return " ".join(texts)
    closest = _closest(facts, target)
    is_unexpected = target.is_expectation and target.is_known and not target.is_expected
    if target.is_blocked and not target.is_reached:
        it = "it" if len(facts.goals) == 1 else "all of them"
        texts.append(
            f"{_asked(facts)} is not reachable, because every update that was found to reach {it} "
            "changes more than half of all decisions or makes nearly all of them alike; "
            f"{closest}."
        )
    elif is_unexpected and not target.is_missed:
        texts.append(
            f"{_asked(facts)} is not expected on new people: the fit found no update that is "
            f"expected to reach it; {closest}. {capitalised(_smallest_cell(facts))}."
        )
    elif is_unexpected:
        texts.append(
            f"{_asked(facts)} was not reached on the fit rows and is not expected on new people; "
            f"{closest}."
        )
    elif target.is_missed and not target.is_reached:
        texts.append(f"{_asked(facts)} was not reached on the fit rows; {closest}.")
    if target.needed is not None:
        texts.append(_needed_text(facts, target, target.needed))
    return " ".join(texts)


def _closest(facts: UpdateFacts, target: AskedTarget) -> str:
    """Return which update there is where no update reaches the target."""
    if target.edits and target.edits[-1].offset == "keep":
        return "the edit leaves the cut as it was"
    if facts.n_gains + facts.n_losses:
        return "this update comes closest"
    known = "is expected to be" if target.is_expectation else "was found that is"
    return f"no update {known} better than the base model, so no decision changes"


def _asked(facts: UpdateFacts) -> str:
    return "The target" if len(facts.goals) == 1 else f"At least one of {len(facts.goals)} targets"


def _needed_text(facts: UpdateFacts, target: AskedTarget, needed: float) -> str:
    """Return how many changes a missed target needs, and what is in the way."""
    if math.isinf(needed):
        return f"On these rows, no update with direction={target.direction!r} can reach it."
    known = _what_is_known(by_group=facts.limit is None or not facts.limit.by_probability)
    asked = "the target needs" if len(facts.goals) == 1 else "all targets together need"
    text = (
        f"On these rows, {asked} at least {needed:.1%} changed decisions, even if a method knows "
        f"{known}."
    )
    if math.isnan(needed):
        text = f"How many changes {asked} is not known."
    if target.edits and target.edits[-1].offset == "keep":
        return text
    it = "it" if len(facts.goals) == 1 else "them"
    reason = f"No update of these columns was found that reaches {it}."
    if target.is_blocked:
        return text
    if target.edits:
        reason = f"No cut of the edited points reaches {it}."
    elif target.caps:
        caps = ", ".join(f"max_{name}={cap:.1%}" for name, cap in target.caps.items())
        reason = f"No update was found that reaches {it} and keeps the caps: {caps}."
    return f"{text} {reason}"


def _standing_texts(facts: UpdateFacts) -> Iterator[str]:
    """Yield each constraint beside the first whose bound is missed, or expected to be."""
    for goal in facts.goals[1:]:
        if goal.bound is None:
            continue
        if not goal.is_kept:
            value = distinct(goal.after, goal.bound, digits=3)
            yield f"{goal.text} does not hold on the {facts.rows}: {value}."
        elif (goal.expected < goal.bound) if goal.sign == "≥" else (goal.expected > goal.bound):
            value = distinct(goal.expected, goal.bound, digits=3)
            yield (
                f"{goal.text} holds on the {facts.rows} but is not expected on new people: {value}."
            )


def _losses_text(facts: UpdateFacts) -> str:
    if facts.n_losses <= facts.n_gains:
        return ""
    losing = f"{n_of(facts.n_losses, 'person')} {verb(facts.n_losses, 'lose')}"
    text = f"Most of the changes are losses: {losing} the favourable outcome."
    gains_only = None if facts.limit is None else facts.limit.gains_only
    if gains_only is None:
        return text
    if math.isinf(gains_only):
        return f"{text} On these rows, gains alone cannot reach the same fairness."
    return (
        f"{text} On these rows, gains alone need at least {gains_only:.1%} changed decisions for "
        "the same fairness."
    )


def _left_out_text(facts: UpdateFacts) -> str:
    """Return the groups that are not in the constraint; in a file, how many there are."""
    left_out = facts.left_out
    if left_out is None:
        return ""
    n = len(left_out.groups)
    subject = f"{n_of(n, 'group')} with fewer than min_group_size={left_out.min_group_size} rows"
    hidden = ""
    if left_out.n_hidden:
        hidden = (
            f" Groups of fewer than {left_out.fewest_shown} rows are in no total; they have "
            f"{n_of(left_out.n_hidden, 'row')}."
        )
    if not facts.has_names:
        # "left" may be a group, and `Patch.verify` looks for the names of groups in a patch
        total = n_of(sum(group.n for group in left_out.groups), "row")
        return f"{subject} ({total} in all) {verb(n, 'be')} not part of the constraint.{hidden}"
    listed = list_names(
        [
            small_group_text(g.name, g.n, "row", g.rate_before, g.rate_after)
            for g in left_out.groups
        ],
        MAX_LISTED_GROUPS,
    )
    text = f"{subject} {verb(n, 'be')} left out of the constraint: {listed}."
    over, value = left_out.over_all
    if over and not math.isnan(value):
        metric, rows = facts.goals[0].metric, left_out.rows
        text += f" Over {over}, the {metric} is {value:.3f} {rows}".rstrip() + "."
    return text + hidden


def _strata_left_out_texts(facts: UpdateFacts) -> Iterator[str]:
    for goal in facts.goals:
        if goal.n_strata_left_out:
            yield (
                f"Within {shown(goal.within)}, {n_of(goal.n_strata_left_out, 'stratum')} "
                f"({n_of(goal.n_rows_left_out, 'row')}) {verb(goal.n_strata_left_out, 'be')} not "
                f"compared, because too few groups have min_rows={goal.min_rows} rows in it. The "
                "target does not cover these people."
            )


def _unknown_text(facts: UpdateFacts) -> str:
    """Return on how many known people the figures rest, and what the unknown could be."""
    unknown, metric = facts.unknown, facts.goals[0].metric
    if unknown is None:
        return ""
    if unknown.is_hidden:
        text = (
            f"For {n_of(unknown.n, 'row')}, the group is not known. These people are so few that "
            "they are in no figure and no total."
        )
    elif not unknown.by_probability:
        text = (
            f"For {n_of(unknown.n, 'row')}, the group is not known. The {metric} counts only the "
            f"{unknown.n_known:,} rows with a known group. Changes, volume and accuracy count all "
            f"{unknown.n_people:,} rows."
        )
    else:
        text = (
            f"The groups are given as probabilities, and {unknown.n_known:,} of the "
            f"{unknown.n_rows:,} rows have a group with probability 1. The {metric} is computed "
            "from expected rates."
        )
    low, high = unknown.calibrated
    if math.isfinite(low):
        text += (
            f" If the probabilities are calibrated, the {metric} of these rows lies between "
            f"{low:.3f} and {high:.3f} in {DRAWS_LEVEL:.0%} of random draws of the groups."
        )
    low, high = unknown.worst
    if math.isfinite(low):
        ends = "Both ends can occur." if unknown.is_exact else "The true range may be narrower."
        text += (
            f" Whatever the unknown groups are, the {metric} lies between {low:.3f} and "
            f"{high:.3f}. {ends}"
        )
    return text


def _undefined_text(facts: UpdateFacts) -> str:
    if not math.isnan(facts.goals[0].before):
        return ""
    return (
        f"The {facts.goals[0].metric} of the base model is undefined on these rows: either nobody "
        "is above the threshold, or a group has no row with the true label that the metric needs."
    )


def _edit_text(facts: UpdateFacts) -> str:
    if facts.target is None or not facts.target.edits:
        return ""
    edits = facts.target.edits
    last = edits[-1]
    times = {1: "once", 2: "twice"}.get(len(edits), f"{len(edits)} times")
    who = "" if len(edits) == 1 else "the last time "
    by = "" if last.by is None else f", {who}by {plain(last.by)}"
    text = f"The scorecard was edited by hand {times}{by}."
    if last.offset == "keep":
        text += " The last edit did not change the cut."
    return text


def _small_terms_text(facts: UpdateFacts) -> str:
    n, smallest = facts.n_small_terms, facts.smallest_category
    if not n:
        return ""
    return (
        f"{n_of(n, 'term')} of the scorecard {verb(n, 'describe')} fewer than {smallest} people "
        f"each, because min_category_size is below {smallest}. Such a term may reveal facts about "
        "one person."
    )


# ---------------------------------------------------------------------------------------------
# The four lines


def _target_line(facts: UpdateFacts) -> str:
    """Return what was asked, and what is expected on new people."""
    target, promise = facts.target, facts.promise
    if target is None:
        return ""
    asked = f"Target: {_goals_text(facts)}"
    covered = _covered(facts)
    if promise is not None and not promise.failure:
        with_confidence = f"with confidence {promise.confidence:g} {covered}".rstrip()
        return (
            f"{facts.goals[0].text} is promised for new people {with_confidence}. You have to "
            "check that the rows are new to the base model, and that new people come from the same "
            "population."
        )
    covered = f" {covered}" if covered else ""
    if target.budget is not None:
        asked = (
            f"Budget: at most {target.budget:.1%} of the decisions may change. This is the best "
            f"{facts.goals[0].metric} that was found"
        )
    if target.is_expectation:
        expected = f" Expected on new people: {_expected_text(facts)}" if target.is_known else ""
        return f"{asked}{covered}.{expected}{_strata_text(facts)}"
    asked += " on the fit rows"
    is_said = target.budget is not None or target.is_degenerate
    outcome = "" if is_said else ". It is missed" if target.is_missed else ". It is reached"
    return f"{asked}{covered}{outcome}.{_strata_text(facts)}"


def _goals_text(facts: UpdateFacts) -> str:
    return " and ".join(goal.text for goal in facts.goals if goal.bound is not None)


def _expected_text(facts: UpdateFacts) -> str:
    """Return what is expected of all constraints, with the interval of the first, and before."""
    assert facts.target is not None
    # a value that misses its bound must not read as if it were equal to it
    is_missed = not facts.target.is_expected
    texts = [
        distinct(goal.expected, goal.bound if is_missed else None, digits=3) for goal in facts.goals
    ]
    low, high = facts.target.interval
    texts[0] += f" ({LEVEL:.0%} interval for as many people: {low:.3f} to {high:.3f})"
    if len(texts) > 1:
        pairs = zip(facts.goals, texts, strict=True)
        texts = [f"{goal.metric} {text}" for goal, text in pairs]
    text = f"{' and '.join(texts)}."
    base = [number(goal.base_expected, 3) for goal in facts.goals]
    if math.isnan(facts.goals[0].base_expected):
        return text
    return f"{text} The base model is expected to have {' and '.join(base)} there."


def _strata_text(facts: UpdateFacts) -> str:
    texts = (
        f" Within {shown(goal.within)}, {n_of(goal.n_strata, 'stratum')} "
        f"{verb(goal.n_strata, 'be')} compared."
        for goal in facts.goals
        if goal.within
    )
    return "".join(dict.fromkeys(texts))


def _figures_line(facts: UpdateFacts) -> str:
    """Return the metrics and the accuracy on the rows, before and after."""
    # a value that misses its bound must not read as if it were equal to it
    missed = [None if goal.is_kept else goal.bound for goal in facts.goals]
    figures = [
        _before_and_after(goal.metric, goal.before, goal.after, bound)
        for goal, bound in zip(facts.goals, missed, strict=True)
    ]
    first = facts.goals[0]
    if first.other_metric:
        figures[0] += f" ({_before_and_after(first.other_metric, *first.other)})"
    if not math.isnan(facts.accuracy[1]):
        figures.append(_before_and_after("accuracy", *facts.accuracy))
    is_known = facts.rows != "fit rows" or (facts.target is not None and facts.target.is_known)
    ending = "." if is_known else "; new rows may differ."
    strata = _strata_text(facts) if facts.target is None else ""
    return f"On the {facts.n_rows:,} {facts.rows}: {', '.join(figures)}{ending}{strata}"


def _before_and_after(name: str, before: float, after: float, bound: float | None = None) -> str:
    new = number(after, 3) if math.isnan(after) else distinct(after, bound, digits=3)
    return f"{name} {number(before, 3)} → {new}"


def _changes_line(facts: UpdateFacts) -> str:
    """Return who changes."""
    n = facts.n_gains + facts.n_losses
    if not n:
        return "No decision changes."
    return (
        f"{n_of(n, 'decision')} {verb(n, 'change')} ({facts.change_rate:.1%}): "
        f"{count(facts.n_gains)} {verb(facts.n_gains, 'gain')}, "
        f"{count(facts.n_losses)} {verb(facts.n_losses, 'lose')}. "
        f"{rates_text(facts.outcome, facts.rates)}".rstrip()
    )


def _limit_line(facts: UpdateFacts) -> str:
    """Return the fewest changes that the same fairness needs."""
    limit = facts.limit
    if limit is None:
        return ""
    if limit.is_weighted:
        return "The fewest possible changes are not given: they count people, not sample weights."
    if math.isnan(limit.share) or not facts.change_rate:
        return ""
    known = _what_is_known(by_group=not limit.by_probability)
    direction = "any" if facts.target is None else facts.target.direction
    only = {"gains_only": " with gains only", "losses_only": " with losses only"}
    return (
        f"On these rows, every method{only.get(direction, '')} needs at least "
        f"{n_of(limit.n_fewest, 'change')} ({limit.share:.1%}) for "
        f"{'the target' if limit.for_target else 'the same fairness'}, even if it knows {known}."
    )


def _what_is_known(*, by_group: bool) -> str:
    return "every person's group" if by_group else "the probabilities of the groups"


# ---------------------------------------------------------------------------------------------
# Groups


def _covered(facts: UpdateFacts) -> str:
    """Return the groups that the constraint compares, such as "for the groups a, b".

    The phrase is empty if no group is left out, unless it states numbers of held-out rows. It then
    names the groups that are not covered, too.
    """
    if not facts.covered:
        return ""
    n = len(facts.covered)
    if not facts.has_names:
        all_groups = f"the {facts.n_groups} groups"
        return f"for {n} groups" if n == facts.n_groups else f"for {n} of {all_groups}"
    names = []
    for name, size in facts.covered:
        held_out = "" if size is None else f" ({n_of(size, 'held-out row')})"
        names.append(f"{shorten(name, LONGEST_NAME)}{held_out}")
    text = f"for the groups {list_names(names, MAX_LISTED_GROUPS)}"
    if facts.not_covered:
        others = [shorten(name, LONGEST_NAME) for name in facts.not_covered]
        text += f", but not for {list_names(others, MAX_LISTED_GROUPS)}"
    return text


def _smallest_cell(facts: UpdateFacts) -> str:
    """Return the size of the smallest cell in words, with its name where names are known.

    A cell is a group in a stratum of one constraint, with the true label where that counts.
    """
    assert facts.target is not None
    (name, size), fewest = facts.target.smallest, facts.target.fewest_shown
    few = f"fewer than {fewest} rows" if size < fewest else n_of(size, "row")
    part = "the smallest part that is compared"
    return f"{part}, {name}, has {few}" if name else f"{part} has {few}"


# ---------------------------------------------------------------------------------------------
# What goes beyond the status


def further_sentences(facts: UpdateFacts) -> list[str]:
    """Return what else is known: expected changes, how changed people score, and remarks."""
    target = facts.target
    sentences = [
        *_expected_sentences(target),
        *outscoring_sentences(facts.outscoring, is_adverse=False),
    ]
    if target is not None and facts.promise is None and facts.change_rate:
        if target.direction_kept != target.direction:
            chosen = "gains" if target.direction_kept == "gains_only" else "losses"
            sentences.append(f"The search compared the directions and chose {chosen} only.")
        if target.nearness > NOTICED_NEARNESS:
            sentences.append(
                "If two people have the same base decision and the same sum of points, and one "
                "decision changes, it is that of the person nearer to the threshold."
            )
    for last in () if target is None else target.edits[-1:]:
        if last.pinned:
            names = [plain(name) for name in last.pinned]
            sentences.append(f"The edit pinned {n_of(len(names), 'term')}: {list_names(names)}.")
        if last.refit:
            sentences.append("All terms that were neither edited nor pinned were fitted again.")
    if facts.limit is not None and facts.change_rate:
        sentences += _limit_sentences(facts.limit)
    if facts.unknown is not None and facts.unknown.without_interval:
        sentences.append(no_interval_text(facts.unknown.without_interval))
    return [*sentences, *filter(None, [facts.goals[0].meaning.strip()])]


def _expected_sentences(target: AskedTarget | None) -> Iterator[str]:
    if target is not None and target.is_known:
        yield f"On new people, {target.change_rate:.1%} of the decisions are expected to change."
        if not math.isnan(target.accuracy):
            yield f"The accuracy of all decisions is expected to be {target.accuracy:.3f}."


def outscoring_sentences(figures: Mapping[str, Estimate], *, is_adverse: bool) -> list[str]:
    """Return how people who gain, and people who lose, score beside others who do not change.

    It is adverse if people with worse scores clearly gain, or people with better scores lose. There
    is no sentence for what does not occur.
    """
    texts = (
        outscoring_text(change, one)
        for change, one in figures.items()
        if is_adverse == (one.high is not None and one.high < EVEN)
    )
    return list(filter(None, texts))


def _limit_sentences(limit: NeededChanges) -> Iterator[str]:
    if not limit.is_exact and not math.isnan(limit.share):
        yield "The fewest changes are a proven lower bound: the exact number was not found in time."
    if math.isfinite(limit.known_share):
        yield (
            "Only people with a known group count for this fairness. Among them "
            f"{limit.known_changed:.1%} change, and at least {limit.known_share:.1%} have to."
        )
