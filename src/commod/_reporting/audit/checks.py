"""Answer questions with stable codes: passed, failed, or not enough evidence.

The limits that commod sets itself are the constants below; all other limits are in the request.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal, NamedTuple

from scipy.stats import binomtest

from commod._record import Check, Estimate
from commod._reporting.audit.evidence import Evidence
from commod._reporting.audit.sentences import interval, list_first, metric_text, target_text
from commod._reporting.audit.small_cells import small_cells_answer
from commod._text import distinct, n_of, shorten, verb

Outcome = Literal["passed", "failed", "not enough evidence"]
Answer = tuple[Outcome, str] | None  # None where the question does not apply

MAX_TIMES_FEWEST = 1.5  # changes over the fewest possible
MIN_DESCRIBED = 0.8  # share of the changes that the segments describe
MAX_GROUP_AREA = 0.7  # area under the curve with which −r may predict a group
MAX_AREA_LOSS = 0.01
MAX_CALIBRATION_LOSS = 0.02
MIN_REFITS = 0.8  # share of the requested refits that must succeed
MIN_OVERLAP = 0.7  # share of the changed people that two refits have in common


def checks_of(evidence: Evidence) -> tuple[Check, ...]:
    """Return the answers to all questions that apply."""
    answers = ((code, title, answer(evidence)) for code, (title, answer) in CHECKS.items())
    return tuple(Check(code, title, *answer) for code, title, answer in answers if answer)


def _passed_if(condition: bool) -> Outcome:
    return "passed" if condition else "failed"


# ---------------------------------------------------------------------------------------------
# The request


def _target_on_rows(e: Evidence) -> Answer:
    if e.request.target is None:
        return None
    value, metric = e.fairness.after.value, e.fairness.metric
    if value is None:
        return "not enough evidence", f"The {metric} is not defined on these rows."
    text = (
        f"The {metric} is {metric_text(e, value)} on the {e.compared.n:,} {e.rows}. The target is "
        f"{target_text(e, e.request.target)}."
    )
    return _passed_if(e.constraint.is_met(value, e.request.target)), text


def _target_on_interval(e: Evidence) -> Answer:
    target = e.request.target
    if target is None:
        return None
    low, high = e.fairness.after.low, e.fairness.after.high
    if low is None or high is None:
        return "not enough evidence", "There is no interval on these rows."
    reached = [e.constraint.is_met(end, target) for end in (low, high)]
    text = (
        f"The {e.fairness.metric} is between {metric_text(e, low)} and {metric_text(e, high)} "
        f"({interval(e, compared=True)})."
    )
    goal = f"reaches the target, {target_text(e, target)}."
    if all(reached):
        return "passed", f"{text} The whole interval {goal}"
    if not any(reached):
        return "failed", f"{text} No part of the interval {goal}"
    return "not enough evidence", f"{text} Only a part of the interval {goal}"


def _not_less_fair(e: Evidence) -> Answer:
    before, after, metric = e.fairness.before.value, e.fairness.after.value, e.fairness.metric
    if before is None or after is None:
        return "not enough evidence", f"The {metric} is not defined both before and after."
    old, new = metric_text(e, before, after), metric_text(e, after, before)
    text = f"The {metric} was {old} before the update and is {new} after it."
    return _passed_if(e.constraint.is_met(after, before)), text


def _within_cap(value: float, cap: float, sentence: str) -> Answer:
    """Return the answer for a share and its cap; `sentence` has a gap for the share."""
    shown, allowed = (
        distinct(*pair, digits=2, in_percent=True) for pair in ((value, cap), (cap, value))
    )
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
    text = (
        f"The update fixes {n_of(fixed, 'error')} and introduces {n_of(introduced, 'error')} "
        f"(McNemar's exact test: p = {e.quality.p_value:.3g}, {e.n:,} {e.rows})."
    )
    if introduced <= fixed:
        return "passed", text
    return ("failed" if e.quality.p_value < 1 - e.level else "not enough evidence"), text


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
        return "failed", f"The accuracy falls, beyond chance, in {list_first(failed)}."
    if worse:
        return (
            "not enough evidence",
            f"The accuracy falls, perhaps by chance, in {list_first(worse)}.",
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


def _near_limit(e: Evidence) -> Answer:
    limit = e.limit
    if not limit.n_changes:
        return None
    if limit.n_fewest is None:
        return "not enough evidence", "The fewest possible changes are not defined on these rows."
    text = (
        f"The update makes {n_of(limit.n_changes, 'change')} in the compared groups. The lowest "
        f"possible number is {limit.n_fewest:,}; this check allows {MAX_TIMES_FEWEST:g} times that."
    )
    return _passed_if(limit.n_changes <= MAX_TIMES_FEWEST * limit.n_fewest), text


# ---------------------------------------------------------------------------------------------
# The people who change


def _described(e: Evidence) -> Answer:
    if e.segments is None or not e.changes.n_changes:
        return None
    n_rules, n_changes = len(e.segments.segments), e.changes.n_changes
    n = e.segments.n_described_gains + e.segments.n_described_losses
    share = n / n_changes
    text = (
        f"{n_of(n_rules, 'rule')} {verb(n_rules, 'describe')} {n:,} of "
        f"{n_of(n_changes, 'change')} ({share:.0%}). This check requires {MIN_DESCRIBED:.0%}."
    )
    return _passed_if(share >= MIN_DESCRIBED), text


class _GroupPrediction(NamedTuple):
    """How well the update predicts a group: an area of at least 0.5 and its interval."""

    group: str
    area: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.group} ({self.area:.2f}, {self.low:.2f} to {self.high:.2f})"


def _group_prediction(group: str, area: Estimate) -> _GroupPrediction | None:
    """Return the prediction; an area below 0.5 predicts who is not in the group, equally well."""
    if area.value is None or area.low is None or area.high is None:
        return None
    if area.value >= 0.5:
        return _GroupPrediction(group, area.value, area.low, area.high)
    return _GroupPrediction(group, 1 - area.value, 1 - area.high, 1 - area.low)


def _predicts_no_group(e: Evidence) -> Answer:
    if e.reads_group:
        text = "The update reads the group, or a column that determines it, to decide."
        return "failed", text
    candidates = (_group_prediction(proxy.group, proxy.update) for proxy in e.proxies)
    predictions = [prediction for prediction in candidates if prediction is not None]
    if not predictions:
        return "not enough evidence", "No two groups are large enough to be compared."
    by_ratio = e.proxies[0].by_ratio
    predictor = "−r" if by_ratio else "The change"
    scale = (
        f"The figures are areas under the curve ({interval(e)}): 0.5 means chance, 1 means exact. "
        f"This check allows {MAX_GROUP_AREA:g}."
    )
    failed = [str(p) for p in predictions if p.low > MAX_GROUP_AREA]
    if failed:
        return (
            "failed",
            f"{predictor} predicts who belongs to {list_first(failed)}. {scale}",
        )
    unsure = [str(p) for p in predictions if p.high > MAX_GROUP_AREA]
    if unsure:
        text = f"{predictor} may predict who belongs to {list_first(unsure)}. {scale}"
        return "not enough evidence", text
    best = shorten(max(predictions, key=lambda p: p.area))
    if not by_ratio:
        # few changes predict nobody's group, even where all of them are in one group
        text = f"r is not known. The change alone predicts no group better than {best}. {scale}"
        return "not enough evidence", text
    return "passed", f"−r predicts no group better than {best}. {scale}"


def _large_groups(e: Evidence) -> Answer:
    n = len(e.compared_names)
    if e.small_groups:
        names = list_first([f"{group.name} ({group.n:,})" for group in e.small_groups])
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
    worst = [f"{s.name} ({s.rate.value:.0%} against {s.others:.0%})" for s in subgroups.listed]
    names = list_first(worst, n=subgroups.n_worse)
    return "failed", f"Subgroups that fare clearly worse than their peers: {names} ({scope})."


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
    text += (
        f": a loss of {loss.value:.3f} (between {loss.low:.3f} and {loss.high:.3f}, {interval(e)})."
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
    text = (
        f"The mean distance between scores and observed rates was {before:.3f} before the update "
        f"and is {after:.3f} after it. This check allows {MAX_CALIBRATION_LOSS:g} more. An edited "
        "score ranks people; it is not a probability."
    )
    excess = after - before - MAX_CALIBRATION_LOSS
    if excess <= 0:
        return "passed", text
    # twice the largest standard deviation of a mean of n outcomes
    sampling_error = 1 / math.sqrt(e.n)
    return ("failed" if excess > sampling_error else "not enough evidence"), text


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
    text = (
        f"On average, two of {refits.n_refits} refits have {refits.agreement:.0%} of the people "
        f"they change in common ({refits.n_rows:,} rows). This check requires {MIN_OVERLAP:.0%}."
    )
    return _passed_if(refits.agreement >= MIN_OVERLAP), text


CHECKS: dict[str, tuple[str, Callable[[Evidence], Answer]]] = {
    "CM101": ("The target is reached on these rows", _target_on_rows),
    "CM102": ("The target is reached for people like these", _target_on_interval),
    "CM103": ("Not less fair than before", _not_less_fair),
    "CM104": ("No more changes than allowed", _few_changes),
    "CM105": ("Changes only in the allowed direction", _allowed_direction),
    "CM106": ("No more accuracy lost than allowed", _accuracy_cap),
    "CM107": ("The overall rate changes no more than allowed", _volume_cap),
    "CM201": ("Not less accurate than before", _accuracy),
    "CM202": ("No group is decided less accurately", _accuracy_of_groups),
    "CM203": ("As many gains as losses, or more", _mostly_gains),
    "CM204": ("Close to the fewest changes possible", _near_limit),
    "CM301": ("A few rules describe who changes", _described),
    "CM302": ("The update does not predict the group", _predicts_no_group),
    "CM303": ("Every group is large enough", _large_groups),
    "CM304": ("No subgroup remains badly served", _subgroups),
    "CM305": ("Points of small categories do not predict the group", small_cells_answer),
    "CM401": ("Scores rank people as well as before", _ranking),
    "CM402": ("Scores are as well calibrated as before", _calibration),
    "CM403": ("Scores and decisions agree", _scores_agree),
    "CM501": ("Refits change the same people", _stable),
}
