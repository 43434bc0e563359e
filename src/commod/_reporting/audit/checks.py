"""Answer questions with stable codes: passed, failed, or not enough evidence.

The limits that commod sets itself are the constants below; all other limits are in the request.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest

from commod._data.columns import Column
from commod._data.disclosure import SMALL_CATEGORY
from commod._data.encoding import CategoryTerms
from commod._data.proxies import NEAR_COPY_AREA
from commod._record.audit import Fairness, Proxy
from commod._record.checks import Check, Severity, State
from commod._record.explanation import CardLine, Direction, Estimate, Outscoring, is_evidence
from commod._reporting.audit.figures import MeasuredAudit
from commod._reporting.audit.scores import group_areas
from commod._reporting.audit.sentences import (
    MAX_LISTED,
    alternative_text,
    constraint_of,
    degenerate_text,
    interval,
    loses_accuracy,
    metric_text,
    target_text,
)
from commod._text import (
    LIMIT,
    count,
    distinct,
    distinct_pair,
    list_names,
    n_of,
    percent,
    shorten,
    verb,
)
from commod._words.shared import (
    LEAST_LEFT,
    MAX_ALIKE,
    MAX_CHANGED,
    NEARLY_ALIKE,
    outscoring_text,
)
from commod.metrics._changes import is_degenerate

CHANCE = 0.5  # share of pairs in which the one who changes is the one nearer to the threshold
MAX_AREA = 0.6  # area under the curve with which the points of small categories may predict a group


@dataclass
class SmallCellPoints:
    """Adds up, one raw column at a time, the points that people get from small categories.

    `points` (n,) are those of small categories, and `is_inside` (n,) says who has such points.
    """

    lines: Sequence[CardLine]
    n_rows: int
    points: NDArray[np.float64] = field(init=False)
    is_inside: NDArray[np.bool_] = field(init=False)

    def __post_init__(self) -> None:
        self.points = np.zeros(self.n_rows)
        self.is_inside = np.zeros(self.n_rows, dtype=bool)

    def add(self, column: Column) -> None:
        """Add the points of the small categories of a column, and of "missing" if it is small."""
        by_term = {line.term: line.points for line in self.lines if line.column == column.name}
        if not by_term:
            return
        is_category = column.kind == "category"
        categories = (*column.categories, None) if is_category else (None,)
        names = CategoryTerms(column.name, categories).term_names
        codes = column.values if is_category else np.where(column.is_missing(), -1, 0)
        points = np.array([by_term.get(name, 0.0) for name in names])
        n_people = np.bincount(codes + 1, minlength=len(points))
        n_people = np.append(n_people[1:], n_people[0]) if is_category else n_people[:1]
        points = np.where(n_people < SMALL_CATEGORY, points, 0.0)
        # a missing value has the code −1: the last entry; a known number has none
        own = points[codes] if is_category else np.where(codes < 0, points[0], 0.0)
        self.points += own
        self.is_inside |= own != 0

    def group_areas(
        self, codes: NDArray[np.intp], is_compared: NDArray[np.bool_], level: float
    ) -> list[Estimate] | None:
        """Return how well the points predict each compared group; None without small categories."""
        if not self.is_inside.any():
            return None
        inside = self.is_inside & (codes >= 0)
        return group_areas(-self.points[inside], codes[inside], is_compared, level)


def small_cells_answer(e: MeasuredAudit) -> tuple[State, str] | None:
    """Return whether the points of small categories predict a group; None where there are none."""
    if e.small_cell_areas is None:
        return None
    people = f"{n_of(e.n_in_small_cells, 'person')} of the {e.rows}"
    scale = (
        f"The figures are areas under the curve ({interval(e)}): 0.5 means chance, 1 means exact. "
        f"This check allows {MAX_AREA:g}. They are highest on the rows that the update was fitted "
        "on."
    )
    predictor = f"The points of categories that fewer than {SMALL_CATEGORY} people share"
    candidates = []
    for group, area in zip(e.counted.compared_names, e.small_cell_areas, strict=True):
        if area.value is None or area.low is None or area.high is None:
            continue
        # an area below 0.5 predicts who is not in the group, equally well
        ends = sorted((abs(area.low - 0.5), abs(area.high - 0.5)))
        low = 0.5 + (0.0 if area.low < 0.5 < area.high else ends[0])
        value, high = 0.5 + abs(area.value - 0.5), 0.5 + ends[1]
        text = f"{group} ({value:.2f}, {low:.2f} to {high:.2f})"
        candidates.append((value, low, high, text))
    if not candidates:
        text = f"{people} have such a category, too few of a group to compare."
        return "not enough evidence", f"{predictor} may predict the group. {text}"
    says: dict[State, str] = {
        "failed": f"{predictor} predict, among {people},",
        "not enough evidence": f"{predictor} may predict, among {people},",
        "passed": f"{predictor} predict, among {people}, no group better than",
    }
    clear = [text for _, low, _, text in candidates if low > MAX_AREA]
    possible = [text for _, _, high, text in candidates if high > MAX_AREA]
    best = max(candidates, key=lambda one: round(one[0], 9))[-1]  # last bits differ by processor
    return _predicted(clear, possible, best, says, scale)


def _predicted(
    clear: Sequence[str],
    possible: Sequence[str],
    best: str,
    says: Mapping[State, str],
    scale: str,
    width: int = LIMIT,
) -> tuple[State, str]:
    """Return which groups are clearly or possibly predicted; `best` is predicted best.

    `says` has the beginning of the sentence by state.
    """
    found: tuple[tuple[State, Sequence[str]], ...]
    found = ("failed", clear), ("not enough evidence", possible)
    for state, groups in found:
        if groups:
            return state, f"{says[state]} {list_names(groups, MAX_LISTED, width=width)}. {scale}"
    return "passed", f"{says['passed']} {best}. {scale}"


Answer = tuple[State, str] | None  # None where the question does not apply

MAX_TIMES_FEWEST = 1.5  # changes over the fewest possible
MIN_DESCRIBED = 0.8  # share of the changes that the segments describe
MAX_AREA_LOSS = 0.01
MAX_CALIBRATION_LOSS = 0.02
MIN_REFITS = 0.8  # share of the requested refits that must succeed
MIN_OVERLAP = 0.7  # share of the changed people that two refits have in common
MAX_LISTED_OUTSCORED = 3  # groups
NAME_LIMIT, ITEM_LIMIT = 60, 160  # characters of a name, and of a name with its figures
MAX_GROUP_AREA = 0.7  # area under the curve with which any update may predict a group


def _passed_if(condition: bool) -> State:
    return "passed" if condition else "failed"


# ---------------------------------------------------------------------------------------------
# The stated constraints: a check of the target passes if all of them pass it


def _joined(answers: list[tuple[State, str]]) -> Answer:
    """Return one answer for several constraints: the worst state, and all sentences."""
    states: tuple[State, ...] = ("failed", "not enough evidence", "passed")
    given = [state for state, _ in answers]
    worst = next((state for state in states if state in given), None)
    return None if worst is None else (worst, " ".join(text for _, text in answers))


def _bounded(e: MeasuredAudit) -> list[Fairness]:
    """Return the stated metrics that have a bound."""
    return [metric for metric in e.asked if metric.bound is not None]


def target_on_rows(e: MeasuredAudit) -> Answer:
    """Answer whether all bounds are kept on these rows."""
    answer = _joined([_on_rows(e, metric) for metric in _bounded(e)])
    if answer is None or not degenerate_text(e) or e.fairness[0].after.value is None:
        return answer
    state, text = answer
    why = "more than half of all decisions change (CM205)"
    if e.changes.n_changes / e.n <= MAX_CHANGED:
        why = "nearly all decisions become alike (CM206)"
    return state, f"{text} This is not a success: {why}."


def _on_rows(e: MeasuredAudit, metric: Fairness) -> tuple[State, str]:
    value = metric.after.value
    if value is None:
        return "not enough evidence", f"The {metric.name} is not defined on these rows."
    text = (
        f"The {metric.name} is {metric_text(metric, value)} on the {metric.n:,} {e.rows}. The "
        f"target is {target_text(metric, value)}."
    )
    return ("passed" if metric.is_kept else "failed"), text


def target_on_interval(e: MeasuredAudit) -> Answer:
    """Answer whether all bounds are kept on the whole intervals."""
    return _joined([_on_interval(e, metric) for metric in _bounded(e)])


def _on_interval(e: MeasuredAudit, metric: Fairness) -> tuple[State, str]:
    low, high, bound = metric.after.low, metric.after.high, metric.bound or 0.0
    if low is None or high is None:
        where = f" of the {metric.name}" if len(e.asked) > 1 else ""
        return "not enough evidence", f"There is no interval{where} on these rows."
    reached = [constraint_of(metric).is_met(end, bound) for end in (low, high)]
    about = "approximate " if metric.is_approximate else ""
    text = (
        f"The {metric.name} is between {metric_text(metric, low)} and {metric_text(metric, high)} "
        f"({about}{interval(e, compared=True)})."
    )
    nearest = min(low, high, key=lambda end: abs(end - bound))
    goal = f"reaches the target, {target_text(metric, nearest)}."
    if all(reached):
        return "passed", f"{text} The whole interval {goal}"
    if not any(reached):
        return "failed", f"{text} No part of the interval {goal}"
    return "not enough evidence", f"{text} Only a part of the interval {goal}"


def not_less_fair(e: MeasuredAudit) -> Answer:
    """Answer whether the update is less fair; further constraints may be if their bound is kept."""
    return _joined([_not_less_fair(metric, i > 0) for i, metric in enumerate(e.asked)])


def _not_less_fair(metric: Fairness, is_further: bool) -> tuple[State, str]:
    before, after, name = metric.before.value, metric.after.value, metric.name
    if before is None or after is None:
        return "not enough evidence", f"The {name} is not defined both before and after."
    old, new = metric_text(metric, before, after), metric_text(metric, after, before)
    text = f"The {name} was {old} before the update and is {new} after it."
    if constraint_of(metric).is_met(after, before):
        return "passed", text
    if is_further and metric.is_kept:
        return "passed", f"{text} It keeps its bound."
    return "failed", text


def large_strata(e: MeasuredAudit) -> Answer:
    """Answer whether the conditions compare all people of the compared groups."""
    answers: list[tuple[State, str]] = []
    for metric in e.asked:
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


# ---------------------------------------------------------------------------------------------
# The request


def _within_cap(value: float, cap: float, sentence: str) -> Answer:
    """Return the answer for a share and its cap; `sentence` has a gap for the share."""
    shown, allowed = distinct_pair(value, cap, digits=2, in_percent=True)
    return _passed_if(value <= cap), f"{sentence.format(shown)} The request allows {allowed}."


def _few_changes(e: MeasuredAudit) -> Answer:
    if e.request.max_changes is None:
        return None
    share = e.changes.n_changes / e.n
    return _within_cap(share, e.request.max_changes, "The update changes {} of the decisions.")


def _allowed_direction(e: MeasuredAudit) -> Answer:
    if e.request.direction == "any":
        return None
    only_gains = e.request.direction == "gains_only"
    allowed, n = ("gains", e.changes.n_losses) if only_gains else ("losses", e.changes.n_gains)
    text = (
        f"The request allows only {allowed}. {n_of(n, 'person')} {verb(n, 'change')} in the other "
        "direction."
    )
    return _passed_if(not n), text


def _accuracy_cap(e: MeasuredAudit) -> Answer:
    if e.request.max_accuracy_loss is None:
        return None
    if e.quality is None:
        return "not enough evidence", "True labels were not given."
    loss = (e.quality.n_errors_introduced - e.quality.n_errors_fixed) / e.n
    sentence = "The accuracy loss is {} of all decisions."
    return _within_cap(loss, e.request.max_accuracy_loss, sentence)


def _volume_cap(e: MeasuredAudit) -> Answer:
    if e.request.max_volume_change is None:
        return None
    change = abs(e.changes.n_gains - e.changes.n_losses) / e.n
    name = shorten(e.request.pos_name).replace("{", "{{").replace("}", "}}")
    sentence = f"The number of “{name}” decisions changes by {{}} of all decisions."
    return _within_cap(change, e.request.max_volume_change, sentence)


# ---------------------------------------------------------------------------------------------
# The cost


def _accuracy(e: MeasuredAudit) -> Answer:
    if e.quality is None:
        return None
    fixed, introduced = e.quality.n_errors_fixed, e.quality.n_errors_introduced
    p, largest = _p_values(e.quality.p_value, 1 - e.level)
    text = (
        f"The update fixes {n_of(fixed, 'error')} and introduces {n_of(introduced, 'error')} "
        f"(McNemar's exact test: p = {p}, {e.n:,} {e.rows}). A loss beyond chance has a p below "
        f"{largest}."
    )
    if introduced <= fixed:
        return "passed", text
    return ("failed" if loses_accuracy(e) else "not enough evidence"), text


def _no_better_alternative(e: MeasuredAudit) -> Answer:
    if e.quality is None or not e.changes.n_changes:
        return None
    fixed, introduced = e.quality.n_errors_fixed, e.quality.n_errors_introduced
    p, largest = _p_values(e.quality.p_value, 1 - e.level)
    text = (
        f"The update introduces {n_of(introduced, 'error')} and fixes {fixed:,} (sign test of the "
        f"{fixed + introduced:,} changed people: p = {p}; beyond chance is below {largest})."
    )
    known = e.request.alternatives
    if not loses_accuracy(e):
        return "passed", text if known else f"{text} Alternatives were not evaluated."
    if not known:
        return "not enough evidence", (
            f"{text} Alternatives were not evaluated: only the fit of a ControlledDebiaser with "
            "true labels counts them, and they come with its request or its explanation."
        )
    if better := alternative_text(e):
        return "failed", f"{text} {better}"
    return "passed", f"{text} The fit counted no alternative that does better."


def _p_values(p: float, largest: float) -> tuple[str, str]:
    """Return a p-value and the largest one that counts, with digits to differ unless equal."""
    pairs = [(f"{p:.{n}g}", f"{largest:.{n}g}") for n in (3, 6, 12, 17)]
    return next((pair for pair in pairs if pair[0] != pair[1]), pairs[0])


def _accuracy_of_groups(e: MeasuredAudit) -> Answer:
    names = e.counted.compared_names
    if e.quality is None or not names:
        return None
    alpha = (1 - e.level) / len(names)
    worse, failed = [], []
    errors = (counts.tolist() for counts in e.counted.compared.fixed_and_introduced())
    for name, fixed, introduced in zip(names, *errors, strict=True):
        if introduced > fixed:
            worse.append(f"{name} ({n_of(fixed, 'error')} fixed, {introduced:,} introduced)")
            if binomtest(fixed, introduced + fixed).pvalue < alpha:
                failed.append(worse[-1])
    if failed:
        return "failed", f"The accuracy falls, beyond chance, in {list_names(failed, MAX_LISTED)}."
    if worse:
        return (
            "not enough evidence",
            f"The accuracy falls, perhaps by chance, in {list_names(worse, MAX_LISTED)}.",
        )
    return "passed", f"The accuracy falls in none of the {len(names)} compared groups."


def _mostly_gains(e: MeasuredAudit) -> Answer:
    n_gains, n_losses = e.changes.n_gains, e.changes.n_losses
    if not e.changes.n_changes:
        return None
    text = f"The update makes {n_of(n_gains, 'gain')} and {n_of(n_losses, 'loss')}."
    if n_losses > n_gains and e.limit.n_gains_only:
        fewest = n_of(e.limit.n_gains_only, "change")
        text += f" On these rows, gains alone need at least {fewest} for the same fairness."
    return _passed_if(n_gains >= n_losses), text


def _mostly_the_base_model(e: MeasuredAudit) -> Answer:
    n = e.changes.n_changes
    if not n:
        return None
    share = distinct(n / e.n, MAX_CHANGED, digits=1, in_percent=True)
    text = (
        f"The update changes {n:,} of {n_of(e.n, 'decision')} ({share}). This check allows "
        f"{MAX_CHANGED:.0%}: beyond that, it is another model."
    )
    return _passed_if(n / e.n <= MAX_CHANGED), text


def _tells_people_apart(e: MeasuredAudit) -> Answer:
    changed, *shares = e.counted.decision_shares
    if not changed:
        return None
    old, new = (distinct(max(one, 1 - one), 1.0, digits=1, in_percent=True) for one in shares)
    text = (
        f"{new} of all decisions are alike after the update, and {old} were before it. This check "
        f"allows less than {MAX_ALIKE:.0%}, and less than {NEARLY_ALIKE:.0%} where no more than "
        f"{LEAST_LEFT:.0%} of the rarer decisions are left: beyond that, decisions no longer tell "
        "people apart."
    )
    if max(shares[0], 1 - shares[0]) >= MAX_ALIKE:
        text = f"{new} of all decisions are alike, but {old} were so before the update."
    return _passed_if(not is_degenerate(0.0, *shares)), text


def _near_limit(e: MeasuredAudit) -> Answer:
    limit = e.limit
    if not limit.n_changes:
        return None
    if limit.n_fewest is None:
        return "not enough evidence", "The fewest possible changes are not defined on these rows."
    most = MAX_TIMES_FEWEST * limit.n_fewest
    lowest = "lowest possible number" if limit.is_exact else "proven lower bound"
    text = (
        f"The update makes {n_of(limit.n_changes, 'change')} in the compared groups. The {lowest} "
        f"is {limit.n_fewest:,}; this check allows {MAX_TIMES_FEWEST:g} times that, {count(most)}."
    )
    if limit.n_changes > most and not limit.is_exact:
        return "not enough evidence", f"{text} The fewest possible changes may be more."
    return _passed_if(limit.n_changes <= most), text


# ---------------------------------------------------------------------------------------------
# The people who change


def _described(e: MeasuredAudit) -> Answer:
    if e.segments is None or not e.changes.n_changes:
        return None
    n_rules, n_changes = len(e.segments.segments), e.changes.n_changes
    n = e.segments.n_described_gains + e.segments.n_described_losses
    share, least = distinct_pair(n / n_changes, MIN_DESCRIBED, digits=0, in_percent=True)
    text = (
        f"{n_of(n_rules, 'rule')} {verb(n_rules, 'describe')} {n:,} of "
        f"{n_of(n_changes, 'change')} ({share}). This check requires {least}."
    )
    return _passed_if(n / n_changes >= MIN_DESCRIBED), text


def _no_near_copy(e: MeasuredAudit) -> Answer:
    if e.strongest_column is None:
        return None
    name, area = e.strongest_column
    text = (
        f"Of the columns that the update reads, {shorten(name)} alone predicts the group best: its "
        f"area under the curve is {distinct(area, NEAR_COPY_AREA, digits=2)}. 0.5 means chance, 1 "
        f"means exact. This check allows less than {NEAR_COPY_AREA:g}."
    )
    return _passed_if(area < NEAR_COPY_AREA), text


def _large_groups(e: MeasuredAudit) -> Answer:
    n = len(e.counted.compared_names)
    if e.small_groups:
        names = list_names([f"{group.name} ({group.n:,})" for group in e.small_groups], MAX_LISTED)
        text = (
            f"Groups too small to be compared (under {e.counted.min_group_size} people): {names}."
        )
        return "not enough evidence", text
    if n > 1:
        return "passed", f"All {n} groups have enough people to be compared."
    return "not enough evidence", "There is only one group."


def _subgroups(e: MeasuredAudit) -> Answer:
    subgroups = e.subgroups
    if not subgroups.n_tested:
        size = f"{subgroups.min_size} people and {subgroups.min_size} peers"
        return "not enough evidence", f"No subgroup has {size}."
    scope = (
        f"{n_of(subgroups.n_tested, 'subgroup')} compared, joint level {e.level * 100:g}%, "
        f"{e.n:,} {e.rows}"
    )
    if not subgroups.n_worse:
        return "passed", f"No subgroup fares clearly worse than its peers ({scope})."
    worst = []
    for one in subgroups.listed:
        shares = distinct_pair(one.rate.value or 0.0, one.others, digits=0, in_percent=True)
        worst.append(f"{one.name} ({' against '.join(shares)})")
    names = list_names(worst, MAX_LISTED, n=subgroups.n_worse)
    return "failed", f"Subgroups that fare clearly worse than their peers: {names} ({scope})."


# ---------------------------------------------------------------------------------------------
# Scores and stability


def _ranking(e: MeasuredAudit) -> Answer:
    if e.quality is None:
        return None
    before, after, loss = e.quality.auc_before, e.quality.auc_after, e.quality.auc_loss
    if before is None or after is None or loss is None or loss.value is None:
        return None
    text = (
        f"The area under the curve was {before.value:.3f} before the update and is "
        f"{after.value:.3f} after it"
    )
    if loss.low is None or loss.high is None:
        return "not enough evidence", f"{text}. Too few people for an interval of the difference."
    value, low, high = (
        distinct(end, MAX_AREA_LOSS, digits=3) for end in (loss.value, loss.low, loss.high)
    )
    text += (
        f": a loss of {value} (between {low} and {high}, {interval(e)})."
        f" This check allows {MAX_AREA_LOSS:g}."
    )
    if loss.high <= MAX_AREA_LOSS:
        return "passed", text
    return ("failed" if loss.low > MAX_AREA_LOSS else "not enough evidence"), text


def _calibration(e: MeasuredAudit) -> Answer:
    calibration = e.calibration
    if calibration is None:
        return None
    before, after = calibration.error_before, calibration.error_after
    # twice the largest standard deviation of a mean of n outcomes
    sampling_error = 1 / math.sqrt(e.n)
    most = MAX_CALIBRATION_LOSS + sampling_error
    growth, allowed = distinct_pair(after - before, most, digits=3)
    text = (
        f"The mean distance between scores and observed rates was {before:.3f} before the update "
        f"and is {after:.3f} after it: it grows by {growth}. This check allows "
        f"{MAX_CALIBRATION_LOSS:g}, and a sampling error of {sampling_error:.3f}: together "
        f"{allowed}. An edited score ranks people; it is not a probability."
    )
    if calibration.error_calibrated is not None:
        text += f" Its calibrated probability has a distance of {calibration.error_calibrated:.3f}."
    if after - before <= MAX_CALIBRATION_LOSS:
        return "passed", text
    return ("failed" if after - before > most else "not enough evidence"), text


def _scores_agree(e: MeasuredAudit) -> Answer:
    n = e.n_contradictions
    if n is None:
        return None
    text = f"{n:,} of {n_of(e.n, 'decision')} {verb(n, 'differ')} from score > "
    return _passed_if(not n), f"{text}{e.request.threshold:g}."


def _stable(e: MeasuredAudit) -> Answer:
    refits = e.stability
    if refits is None:
        return None
    if refits.agreement is None:
        return "not enough evidence", "No refit changes a decision."
    if refits.n_refits < MIN_REFITS * refits.n_asked:
        made = f"Only {refits.n_refits} of {refits.n_asked} refits were made"
        return "not enough evidence", f"{made}: {refits.failure or 'interrupted'}."
    share, least = distinct_pair(refits.agreement, MIN_OVERLAP, digits=0, in_percent=True)
    text = (
        f"On average, two of {refits.n_refits} refits have {share} of the people "
        f"they change in common ({refits.n_rows:,} rows). This check requires {least}."
    )
    return _passed_if(refits.agreement >= MIN_OVERLAP), text


def _nearer(change: Direction, e: MeasuredAudit) -> Answer:
    """Return whether those who change are nearer to the threshold than those who do not."""
    figures = next((f for f in e.outscoring if f.change == change), None)
    if figures is None:
        return None
    people = f"{n_of(figures.n_changed, change)}, {count(figures.n_others)} others"
    text = outscoring_text(change, figures.same_group, e.level)
    value, high = figures.same_group.value, figures.same_group.high
    if value is None:
        return "not enough evidence", f"No group has people on both sides to compare ({people})."
    text = f"{text} This check requires {CHANCE:.0%}, which is chance ({people}).{_worst(figures)}"
    if value >= CHANCE:
        return "passed", text
    return ("failed" if high is not None and high < CHANCE else "not enough evidence"), text


def _worst(figures: Outscoring) -> str:
    """Return the groups whose interval lies below chance, lowest first."""
    known = [
        (g.probability.value, g.name)
        for g in figures.groups
        if g.probability.high is not None and g.probability.high < CHANCE
    ]
    if not known:
        return ""
    listed = [f"{shorten(name)} ({percent(value)})" for value, name in sorted(known)]
    return f" Lowest by group: {list_names(listed, MAX_LISTED_OUTSCORED)}."


# ---------------------------------------------------------------------------------------------
# Whether the update predicts a group


class GroupPrediction(NamedTuple):
    """How well the update predicts a group: an area of at least 0.5 and its interval.

    `base` is the area of the base score. `more` is how much larger the update's area is, with the
    interval of paired areas. Both are None where scores were not given.
    """

    group: str
    area: float
    low: float
    high: float
    base: float | None
    more: Estimate | None

    @property
    def is_clear(self) -> bool:
        """Return whether the area is clearly above 0.7, and above that of the base score."""
        low = None if self.more is None else self.more.low
        return self.low > MAX_GROUP_AREA and (low is None or low > 0)

    @property
    def is_possible(self) -> bool:
        """Return whether the intervals leave room for an area above both bars."""
        high = None if self.more is None else self.more.high
        return self.high > MAX_GROUP_AREA and (high is None or high > 0)

    def __str__(self) -> str:
        group = shorten(self.group, NAME_LIMIT)
        low, high = (distinct(end, MAX_GROUP_AREA, digits=2) for end in (self.low, self.high))
        if self.base is None:
            return f"{group} ({distinct(self.area, MAX_GROUP_AREA, digits=2)}, {low} to {high})"
        area, base = distinct_pair(self.area, self.base, digits=2)
        text = f"{group} ({area}, {low} to {high}; the base score: {base}"
        if self.more is None or self.more.low is None or self.more.high is None:
            return f"{text})"
        ends = (distinct(end, 0.0, digits=2) for end in (self.more.low, self.more.high))
        return f"{text}, difference {' to '.join(ends).replace('-', '−')})"


def prediction_of(proxy: Proxy) -> GroupPrediction | None:
    """Return the prediction; an area below 0.5 predicts who is not in the group, equally well."""
    area, base = proxy.update, proxy.base_score
    if area.value is None or area.low is None or area.high is None:
        return None
    ends = (area.value, area.low, area.high)
    if area.value < 0.5:
        ends = (1 - area.value, 1 - area.high, 1 - area.low)
    known = None if base is None or base.value is None else max(base.value, 1 - base.value)
    return GroupPrediction(proxy.group, *ends, known, proxy.difference)


def predicts_no_group(e: MeasuredAudit) -> tuple[State, str]:
    """Return whether −r, the evidence or the change predicts a group better than is allowed."""
    if e.provenance.reads_group:
        return "failed", "The update reads the group, or a column that determines it, to decide."
    predictions = [one for one in map(prediction_of, e.proxies) if one is not None]
    if not predictions:
        return "not enough evidence", "No two groups are large enough to be compared."
    by_ratio = e.proxies[0].by_ratio
    predictor = "The evidence" if is_evidence(e.card) else "−r" if by_ratio else "The change"
    scale = _scale(e, any(p.base is not None for p in predictions))
    says: dict[State, str] = {
        "failed": f"{predictor} predicts who belongs to",
        "not enough evidence": f"{predictor} may predict who belongs to",
        "passed": f"{predictor} predicts no group better than",
    }
    clear = [str(one) for one in predictions if one.is_clear]
    possible = [str(one) for one in predictions if one.is_possible]
    best = max(predictions, key=lambda one: round(one.area, 9))  # last bits differ by processor
    state, text = _predicted(clear, possible, str(best), says, scale, ITEM_LIMIT)
    if state == "passed" and not by_ratio:
        # few changes predict nobody's group, even where all of them are in one group
        text = text.replace(f"{predictor} predicts", "r is not known. The change alone predicts", 1)
        return "not enough evidence", text
    return state, text


def _scale(e: MeasuredAudit, has_base: bool) -> str:
    text = (
        f"The figures are areas under the curve ({interval(e)}): 0.5 means chance, 1 means exact."
    )
    allowed = f"This check allows {MAX_GROUP_AREA:g}"
    if has_base:
        allowed += ", or the area of the base score where that is larger"
    return f"{text} {allowed}."


# ---------------------------------------------------------------------------------------------
# The table. docs/audit.md says why each check has its severity.


class Question(NamedTuple):
    """One check: its stable code, its title, what its failure means, and who answers it."""

    code: str
    title: str
    severity: Severity
    answer: Callable[[MeasuredAudit], Answer]


BLOCKS: Severity = "blocks signing"
REASON: Severity = "needs a reason"
INFORMS: Severity = "for information"

CHECKS = (
    Question("CM101", "The target is reached on these rows", BLOCKS, target_on_rows),
    Question("CM102", "The target is reached for people like these", BLOCKS, target_on_interval),
    Question("CM103", "Not less fair than before", BLOCKS, not_less_fair),
    Question("CM104", "No more changes than allowed", BLOCKS, _few_changes),
    Question("CM105", "Changes only in the allowed direction", BLOCKS, _allowed_direction),
    Question("CM106", "No more accuracy lost than allowed", BLOCKS, _accuracy_cap),
    Question("CM107", "The overall rate changes no more than allowed", BLOCKS, _volume_cap),
    Question("CM201", "Not less accurate than before", REASON, _accuracy),
    Question("CM202", "No group is decided less accurately", REASON, _accuracy_of_groups),
    Question("CM203", "As many gains as losses, or more", REASON, _mostly_gains),
    Question("CM204", "Close to the fewest changes possible", INFORMS, _near_limit),
    Question("CM205", "No more than half of all decisions change", BLOCKS, _mostly_the_base_model),
    Question("CM206", "Decisions do not become alike", BLOCKS, _tells_people_apart),
    Question(
        "CM207", "No counted alternative has fewer wrong decisions", BLOCKS, _no_better_alternative
    ),
    Question("CM301", "A few rules describe who changes", INFORMS, _described),
    Question("CM302", "The update does not predict the group", REASON, predicts_no_group),
    Question("CM303", "Every group is large enough", REASON, _large_groups),
    Question("CM304", "No subgroup remains badly served", REASON, _subgroups),
    Question("CM305", "No column of the update nearly determines the group", REASON, _no_near_copy),
    Question(
        "CM306", "Points of small categories do not predict the group", REASON, small_cells_answer
    ),
    Question(
        "CM307",
        "People who gain have no lower base scores than people who stay rejected",
        REASON,
        partial(_nearer, "gain"),
    ),
    Question(
        "CM308",
        "People who lose have no higher base scores than people who do not",
        REASON,
        partial(_nearer, "loss"),
    ),
    Question("CM309", "Every stratum is large enough", REASON, large_strata),
    Question("CM401", "Scores rank people as well as before", INFORMS, _ranking),
    Question("CM402", "Scores are as well calibrated as before", INFORMS, _calibration),
    Question("CM403", "Scores and decisions agree", BLOCKS, _scores_agree),
    Question("CM501", "Refits change the same people", REASON, _stable),
)


def checks_of(evidence: MeasuredAudit, questions: Iterable[Question] = CHECKS) -> tuple[Check, ...]:
    """Return the answers to all questions that apply.

    A target that is missed needs a reason, and does not block signing, where chance may explain it.
    So do errors where nobody counted alternatives.
    """
    answers = ((question, question.answer(evidence)) for question in questions)
    checks = [Check(q.code, q.title, *answer, q.severity) for q, answer in answers if answer]
    states = {check.code: check.state for check in checks}
    needs_reason = {
        "CM101": states.get("CM101") == "failed" and states.get("CM102") == "not enough evidence",
        "CM207": states.get("CM207") == "not enough evidence",
    }
    return tuple(replace(c, severity=REASON) if needs_reason.get(c.code) else c for c in checks)
