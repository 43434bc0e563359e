"""Answer questions with stable codes: passed, failed, or not enough evidence.

The limits that commod sets itself are the constants below; all other limits are in the request.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import NamedTuple

from scipy.stats import binomtest

from commod._data.proxies import NEAR_COPY_AREA
from commod._record import Check, Severity, State
from commod._reporting.audit.evidence import Evidence
from commod._reporting.audit.group_prediction import predicts_no_group
from commod._reporting.audit.outscoring import gainers_answer, losers_answer
from commod._reporting.audit.sentences import MAX_LISTED, interval
from commod._reporting.audit.small_cells import small_cells_answer
from commod._reporting.audit.target_checks import (
    large_strata,
    not_less_fair,
    target_on_interval,
    target_on_rows,
)
from commod._text import (
    MAX_CHANGED,
    count,
    distinct,
    distinct_pair,
    list_names,
    n_of,
    shorten,
    verb,
)

Answer = tuple[State, str] | None  # None where the question does not apply

MAX_TIMES_FEWEST = 1.5  # changes over the fewest possible
MIN_DESCRIBED = 0.8  # share of the changes that the segments describe
MAX_AREA_LOSS = 0.01
MAX_CALIBRATION_LOSS = 0.02
MIN_REFITS = 0.8  # share of the requested refits that must succeed
MIN_OVERLAP = 0.7  # share of the changed people that two refits have in common


def _passed_if(condition: bool) -> State:
    return "passed" if condition else "failed"


# ---------------------------------------------------------------------------------------------
# The request


def _within_cap(value: float, cap: float, sentence: str) -> Answer:
    """Return the answer for a share and its cap; `sentence` has a gap for the share."""
    shown, allowed = distinct_pair(value, cap, digits=2, in_percent=True)
    return _passed_if(value <= cap), f"{sentence.format(shown)} The request allows {allowed}."


def _few_changes(e: Evidence) -> Answer:
    if e.request.max_changes is None:
        return None
    share = e.changes.n_changes / e.n
    return _within_cap(share, e.request.max_changes, "The update changes {} of the decisions.")


def _allowed_direction(e: Evidence) -> Answer:
    if e.request.direction == "any":
        return None
    only_gains = e.request.direction == "gains_only"
    allowed, n = ("gains", e.changes.n_losses) if only_gains else ("losses", e.changes.n_gains)
    text = (
        f"The request allows only {allowed}. {n_of(n, 'person')} {verb(n, 'change')} in the other "
        "direction."
    )
    return _passed_if(not n), text


def _accuracy_cap(e: Evidence) -> Answer:
    if e.request.max_accuracy_loss is None:
        return None
    if e.quality is None:
        return "not enough evidence", "True labels were not given."
    loss = (e.quality.n_errors_introduced - e.quality.n_errors_fixed) / e.n
    sentence = "The accuracy loss is {} of all decisions."
    return _within_cap(loss, e.request.max_accuracy_loss, sentence)


def _volume_cap(e: Evidence) -> Answer:
    if e.request.max_volume_change is None:
        return None
    change = abs(e.changes.n_gains - e.changes.n_losses) / e.n
    name = shorten(e.request.pos_name).replace("{", "{{").replace("}", "}}")
    sentence = f"The number of “{name}” decisions changes by {{}} of all decisions."
    return _within_cap(change, e.request.max_volume_change, sentence)


# ---------------------------------------------------------------------------------------------
# The cost


def _accuracy(e: Evidence) -> Answer:
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
    return ("failed" if e.quality.p_value < 1 - e.level else "not enough evidence"), text


def _p_values(p: float, largest: float) -> tuple[str, str]:
    """Return a p-value and the largest one that counts, with digits to differ unless equal."""
    pairs = [(f"{p:.{n}g}", f"{largest:.{n}g}") for n in (3, 6, 12, 17)]
    return next((pair for pair in pairs if pair[0] != pair[1]), pairs[0])


def _accuracy_of_groups(e: Evidence) -> Answer:
    names = e.compared_names
    if e.quality is None or not names:
        return None
    alpha = (1 - e.level) / len(names)
    worse, failed = [], []
    errors = (counts.tolist() for counts in e.compared.fixed_and_introduced())
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


def _mostly_gains(e: Evidence) -> Answer:
    n_gains, n_losses = e.changes.n_gains, e.changes.n_losses
    if not e.changes.n_changes:
        return None
    text = f"The update makes {n_of(n_gains, 'gain')} and {n_of(n_losses, 'loss')}."
    if n_losses > n_gains and e.limit.n_gains_only:
        fewest = n_of(e.limit.n_gains_only, "change")
        text += f" Gains alone would take at least {fewest} for the same fairness."
    return _passed_if(n_gains >= n_losses), text


def _mostly_the_base_model(e: Evidence) -> Answer:
    n = e.changes.n_changes
    if not n:
        return None
    share = distinct(n / e.n, MAX_CHANGED, digits=1, in_percent=True)
    text = (
        f"The update changes {n:,} of {n_of(e.n, 'decision')} ({share}). This check allows "
        f"{MAX_CHANGED:.0%}: beyond that, it is another model."
    )
    return _passed_if(n / e.n <= MAX_CHANGED), text


def _near_limit(e: Evidence) -> Answer:
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


def _described(e: Evidence) -> Answer:
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


def _no_near_copy(e: Evidence) -> Answer:
    if e.strongest_column is None:
        return None
    name, area = e.strongest_column
    text = (
        f"Of the columns that the update reads, {shorten(name)} alone predicts the group best: its "
        f"area under the curve is {distinct(area, NEAR_COPY_AREA, digits=2)}. 0.5 means chance, 1 "
        f"means exact. This check allows less than {NEAR_COPY_AREA:g}."
    )
    return _passed_if(area < NEAR_COPY_AREA), text


def _large_groups(e: Evidence) -> Answer:
    n = len(e.compared_names)
    if e.small_groups:
        names = list_names([f"{group.name} ({group.n:,})" for group in e.small_groups], MAX_LISTED)
        text = f"Groups too small to be compared (under {e.min_group_size} people): {names}."
        return "not enough evidence", text
    if n > 1:
        return "passed", f"All {n} groups have enough people to be compared."
    return "not enough evidence", "There is only one group."


def _subgroups(e: Evidence) -> Answer:
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
    worst = [f"{s.name} ({_against(s.rate.value or 0.0, s.others)})" for s in subgroups.listed]
    names = list_names(worst, MAX_LISTED, n=subgroups.n_worse)
    return "failed", f"Subgroups that fare clearly worse than their peers: {names} ({scope})."


def _against(rate: float, others: float) -> str:
    return " against ".join(distinct_pair(rate, others, digits=0, in_percent=True))


# ---------------------------------------------------------------------------------------------
# Scores and stability


def _ranking(e: Evidence) -> Answer:
    before, after, loss = e.scores.auc_before, e.scores.auc_after, e.scores.auc_loss
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


def _calibration(e: Evidence) -> Answer:
    calibration = e.scores.calibration
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


def _scores_agree(e: Evidence) -> Answer:
    n = e.scores.n_contradictions
    if n is None:
        return None
    text = f"{n:,} of {n_of(e.n, 'decision')} {verb(n, 'differ')} from score > "
    return _passed_if(not n), f"{text}{e.request.threshold:g}."


def _stable(e: Evidence) -> Answer:
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


# ---------------------------------------------------------------------------------------------
# The table. docs/audit.md says why each check has its severity.


class Question(NamedTuple):
    """One check: its stable code, its title, what its failure means, and who answers it."""

    code: str
    title: str
    severity: Severity
    answer: Callable[[Evidence], Answer]


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
        "Those who gain score no lower than those who stay rejected",
        REASON,
        gainers_answer,
    ),
    Question(
        "CM308", "Those who lose score no higher than those who do not", REASON, losers_answer
    ),
    Question("CM309", "Every stratum is large enough", REASON, large_strata),
    Question("CM401", "Scores rank people as well as before", INFORMS, _ranking),
    Question("CM402", "Scores are as well calibrated as before", INFORMS, _calibration),
    Question("CM403", "Scores and decisions agree", BLOCKS, _scores_agree),
    Question("CM501", "Refits change the same people", REASON, _stable),
)


def checks_of(evidence: Evidence, questions: Iterable[Question] = CHECKS) -> tuple[Check, ...]:
    """Return the answers to all questions that apply."""
    answers = ((question, question.answer(evidence)) for question in questions)
    return tuple(Check(q.code, q.title, *answer, q.severity) for q, answer in answers if answer)
