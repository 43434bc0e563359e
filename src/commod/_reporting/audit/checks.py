"""Questions with stable codes: passed, failed, or not enough evidence; thresholds in one place."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Literal

from scipy.stats import binomtest

from commod._record import Check, Estimate
from commod._reporting.audit.evidence import Evidence
from commod._reporting.audit.words import as_asked, counted, goal_of, people_word, told_apart
from commod._text import shorten

__all__ = ["checks_of"]

State = Literal["passed", "failed", "not enough evidence"]
Answer = tuple[State, str] | None  # None where the question does not arise

TIMES_THE_LIMIT = 1.5
DESCRIBED = 0.8  # share of the changes that the segments describe
TELLING = 0.7  # area under the curve, from which on −r is said to tell a group
AREA_LOSS = 0.01
CALIBRATION_LOSS = 0.02
ENOUGH_REFITS = 0.8  # of those that were asked for
SAME_PEOPLE = 0.7  # overlap of the people that two refits change


def checks_of(evidence: Evidence) -> tuple[Check, ...]:
    """Return the answers to all questions that arise."""
    return tuple(_answers(evidence))


def _answers(evidence: Evidence) -> Iterator[Check]:
    for code, (title, question) in QUESTIONS.items():
        answer = question(evidence)
        if answer is not None:
            yield Check(code, title, *answer)


def _verdict(passed: bool) -> State:
    return "passed" if passed else "failed"


# ---------------------------------------------------------------------------------------------
# What was asked


def _target_here(e: Evidence) -> Answer:
    if e.request.target is None:
        return None
    value, metric = e.fairness.after.value, e.fairness.metric
    if value is None:
        return "not enough evidence", f"The {metric} is not defined on these rows."
    shown = as_asked(e.request, value)
    text = f"{metric} {shown} on the {e.compared.n:,} {e.rows}; asked for was {goal_of(e.request)}."
    return _verdict(_reaches(e, value)), text


def _reaches(e: Evidence, value: float) -> bool:
    target = e.request.target
    assert target is not None
    return value >= target if e.fairness.higher_is_fairer else value <= target


def _target_beyond(e: Evidence) -> Answer:
    if e.request.target is None:
        return None
    low, high = e.fairness.after.low, e.fairness.after.high
    if low is None or high is None:
        return "not enough evidence", "There is no interval on these rows."
    fair, unfair = (high, low) if e.fairness.higher_is_fairer else (low, high)
    ends = [as_asked(e.request, end) for end in (low, high)]
    text = f"{e.fairness.metric} between {ends[0]} and {ends[1]} ({e.compared_on})"
    if _reaches(e, unfair):
        return "passed", f"{text}: all of it is {goal_of(e.request)}."
    if not _reaches(e, fair):
        return "failed", f"{text}: none of it is {goal_of(e.request)}."
    return "not enough evidence", f"{text}: a part of it is not {goal_of(e.request)}."


def _not_less_fair(e: Evidence) -> Answer:
    before, after = e.fairness.before.value, e.fairness.after.value
    if before is None or after is None:
        return "not enough evidence", f"The {e.fairness.metric} is not defined before and after."
    passed = after >= before if e.fairness.higher_is_fairer else after <= before
    shown = told_apart(before, after, ".{}f", 3), told_apart(after, before, ".{}f", 3)
    return _verdict(passed), f"{e.fairness.metric} {shown[0]} before, {shown[1]} after."


def _few_changes(e: Evidence) -> Answer:
    if e.request.max_changes is None:
        return None
    rate = e.changes.n_changes / e.n
    most = e.request.max_changes
    return _verdict(rate <= most), f"{_beside(rate, most, 'of the decisions change')}"


def _direction(e: Evidence) -> Answer:
    if e.request.direction == "any":
        return None
    only, n = ("gains", e.changes.n_losses), ("losses", e.changes.n_gains)
    word, wrong = only if e.request.direction == "gains_only" else n
    return _verdict(not wrong), f"Only {word} were allowed; {people_word(wrong)} change otherwise."


def _accuracy_limit(e: Evidence) -> Answer:
    if e.request.max_accuracy_loss is None:
        return None
    if e.quality is None:
        return "not enough evidence", "True labels were not given."
    loss = (e.quality.n_errors_introduced - e.quality.n_errors_fixed) / e.n
    most = e.request.max_accuracy_loss
    return _verdict(loss <= most), _beside(loss, most, "less accuracy")


def _volume(e: Evidence) -> Answer:
    if e.request.max_volume_change is None:
        return None
    raised, lowered = (int(moves.sum()) for moves in e.counts.moves())
    moved = abs(raised - lowered) / e.n
    most = e.request.max_volume_change
    text = _beside(moved, most, f"is how far the share of “{shorten(e.request.pos_name)}” moves")
    return _verdict(moved <= most), text


def _beside(value: float, most: float, words: str) -> str:
    shown = told_apart(value, most, ".{}%", 2), told_apart(most, value, ".{}%", 2)
    return f"{shown[0]} {words}; allowed were {shown[1]}."


# ---------------------------------------------------------------------------------------------
# What it costs


def _accuracy(e: Evidence) -> Answer:
    if e.quality is None:
        return None
    text = (
        f"{counted(e.quality.n_errors_fixed, 'error')} mended, "
        f"{counted(e.quality.n_errors_introduced, 'new error')} made (McNemar's exact test: "
        f"p = {e.quality.p_value:.3g}, {e.n:,} {e.rows})."
    )
    if e.quality.n_errors_introduced <= e.quality.n_errors_fixed:
        return "passed", text
    return ("failed" if e.quality.p_value < 1 - e.level else "not enough evidence"), text


def _accuracy_of_groups(e: Evidence) -> Answer:
    if e.quality is None or not e.names:
        return None
    alpha = (1 - e.level) / len(e.names)
    worse, failed = [], []
    for i, name in enumerate(e.names):
        cells = e.compared.cells[i]
        n_errors_introduced = int(cells[0, 0, 1] + cells[1, 1, 0])
        n_errors_fixed = int(cells[0, 1, 0] + cells[1, 0, 1])
        if n_errors_introduced > n_errors_fixed:
            worse.append(f"{name} ({n_errors_fixed:,} mended, {n_errors_introduced:,} new errors)")
            if binomtest(n_errors_fixed, n_errors_introduced + n_errors_fixed).pvalue < alpha:
                failed.append(worse[-1])
    if failed:
        return "failed", f"Less accurate than before, beyond chance: {_list(failed)}."
    if worse:
        return "not enough evidence", f"Less accurate, perhaps by chance: {_list(worse)}."
    return "passed", f"None of the {len(e.names)} groups compared is decided less accurately."


def _mostly_gains(e: Evidence) -> Answer:
    if not e.changes.n_changes:
        return None
    losses = f"{e.changes.n_losses:,} {'loss' if e.changes.n_losses == 1 else 'losses'}"
    text = f"{counted(e.changes.n_gains, 'gain')}, {losses}."
    if e.changes.n_losses > e.changes.n_gains and e.limit.n_gains_only:
        text += f" Gains alone would take at least {counted(e.limit.n_gains_only, 'change')}."
    return _verdict(e.changes.n_gains >= e.changes.n_losses), text


def _near_limit(e: Evidence) -> Answer:
    if not e.limit.n_changes:
        return None
    if e.limit.n_fewest is None:
        return "not enough evidence", "The fewest possible changes are not defined on these rows."
    text = (
        f"{counted(e.limit.n_changes, 'change')} in the groups compared, where "
        f"{e.limit.n_fewest:,} would be the fewest possible; the bar is {TIMES_THE_LIMIT:g} times "
        "as many."
    )
    return _verdict(e.limit.n_changes <= TIMES_THE_LIMIT * e.limit.n_fewest), text


# ---------------------------------------------------------------------------------------------
# Who changes


def _described(e: Evidence) -> Answer:
    if e.segments is None or not e.changes.n_changes:
        return None
    n = e.segments.n_described_gains + e.segments.n_described_losses
    share = n / e.changes.n_changes
    text = (
        f"{counted(len(e.segments.segments), 'rule')} for {n:,} of {e.changes.n_changes:,} changes "
        f"({share:.0%}); the bar is {DESCRIBED:.0%}."
    )
    return _verdict(share >= DESCRIBED), text


def _proxy(e: Evidence) -> Answer:
    if e.reads_group:
        return "failed", "The update reads the group, or a column that tells it, when it decides."
    tells = [(p.group, *told) for p in e.proxies if (told := _strength(p.update)) is not None]
    if not tells:
        return "not enough evidence", "There are no two groups large enough to be told apart."
    bar = f"the bar is {TELLING:g}, where 0.5 is not at all and 1 exactly"
    what = "−r" if e.proxies[0].by_ratio else "The change"
    failed = [told for told in tells if told[2] > TELLING]
    if failed:
        return "failed", f"{what} tells who belongs to {_told(failed)}; {bar} ({e.measured})."
    unsure = [told for told in tells if told[3] > TELLING]
    if unsure:
        text = f"{what} may tell who belongs to {_told(unsure)}; {bar} ({e.measured})."
        return "not enough evidence", text
    most = max(tells, key=lambda told: told[1])
    if not e.proxies[0].by_ratio:
        # few changes tell nobody's group, however one-sided they are
        return "not enough evidence", f"r is not known; the change alone tells {_told([most])}."
    return "passed", f"{what} tells no group better than {_told([most])}; {bar} ({e.measured})."


def _told(tells: list[tuple[str, float, float, float]]) -> str:
    return _list(
        [f"{name} ({value:.2f}, {low:.2f} to {high:.2f})" for name, value, low, high in tells]
    )


def _strength(area: Estimate) -> tuple[float, float, float] | None:
    """Return how well a group is told, whichever side it is on, and the ends of its interval."""
    value, low, high = area.value, area.low, area.high
    if value is None or low is None or high is None:
        return None
    if value >= 0.5:
        return value, low, high
    return 1 - value, 1 - high, 1 - low


def _large_groups(e: Evidence) -> Answer:
    if not e.small and len(e.names) > 1:
        return "passed", f"All {len(e.names)} groups have enough people to be compared."
    if not e.small:
        return "not enough evidence", "There is one group only."
    listed = _list([f"{group.name} ({group.n:,})" for group in e.small])
    text = f"Too small to say anything (under {e.small[0].needed} people): {listed}."
    return "not enough evidence", text


def _subgroups(e: Evidence) -> Answer:
    found = e.subgroups
    if not found.n_tested:
        return "not enough evidence", f"No subgroup has {found.min_size} people and peers."
    level = f"{found.n_tested:,} subgroups compared, {e.level * 100:g}% together, {e.n:,} {e.rows}"
    if not found.n_worse:
        return "passed", f"None of the subgroups fares clearly worse than its peers ({level})."
    worst = [f"{s.name} ({s.rate.value:.0%} against {s.others:.0%})" for s in found.listed]
    listed = _list(worst, n=found.n_worse)
    return "failed", f"Clearly worse than their peers: {listed} ({level})."


# ---------------------------------------------------------------------------------------------
# Scores and stability


def _ranking(e: Evidence) -> Answer:
    if e.quality is None or e.quality.auc_before is None or e.quality.auc_after is None:
        return None
    before, after, loss = e.quality.auc_before.value, e.quality.auc_after.value, e.quality.auc_loss
    if before is None or after is None or loss is None or loss.value is None:
        return None
    text = f"Area under the curve {before:.3f} before, {after:.3f} after"
    if loss.low is None or loss.high is None:
        return "not enough evidence", f"{text}; too few people for an interval of the difference."
    text += (
        f": a loss of {loss.value:.3f} (between {loss.low:.3f} and {loss.high:.3f}, {e.measured}); "
        f"the bar is {AREA_LOSS:g}."
    )
    if loss.high <= AREA_LOSS:
        return "passed", text
    return ("failed" if loss.low > AREA_LOSS else "not enough evidence"), text


def _calibration(e: Evidence) -> Answer:
    if e.calibration is None:
        return None
    before, after = e.calibration.error_before, e.calibration.error_after
    text = (
        f"Scores are off what happened by {before:.3f} on average before and {after:.3f} after. "
        "An edited score orders decisions; it is no probability."
    )
    worse = after - before - CALIBRATION_LOSS
    if worse <= 0:
        return "passed", text
    chance = 1 / math.sqrt(e.n)  # twice the most that a mean of so many outcomes varies by chance
    return ("failed" if worse > chance else "not enough evidence"), text


def _scores_agree(e: Evidence) -> Answer:
    if e.n_unlike is None:
        return None
    threshold = f"{e.request.threshold:g}"
    text = f"{e.n_unlike:,} of {e.n:,} decisions are not what score > {threshold} says."
    return _verdict(not e.n_unlike), text


def _stable(e: Evidence) -> Answer:
    if e.stability is None:
        return None
    found = e.stability
    if found.agreement is None:
        return "not enough evidence", "No refit changes anybody."
    if found.n_refits < ENOUGH_REFITS * found.n_asked:
        made = f"{found.n_refits} of {found.n_asked} refits were made"
        return "not enough evidence", f"Only {made}: {found.failure or 'interrupted'}."
    text = (
        f"Two of {found.n_refits} refits have {found.agreement:.0%} of the people they change in "
        f"common, on average ({found.n_rows:,} rows); the bar is {SAME_PEOPLE:.0%}."
    )
    return _verdict(found.agreement >= SAME_PEOPLE), text


def _list(items: list[str], most: int = 5, n: int | None = None) -> str:
    """Return the first few of `n` items; all that are given if None."""
    n = len(items) if n is None else n
    rest = f" and {n - most} more" if n > most else ""
    return ", ".join(shorten(item) for item in items[:most]) + rest


QUESTIONS: dict[str, tuple[str, Callable[[Evidence], Answer]]] = {
    "CM101": ("The target is reached on these rows", _target_here),
    "CM102": ("The target is reached for people like these", _target_beyond),
    "CM103": ("Not less fair than before", _not_less_fair),
    "CM104": ("No more changes than allowed", _few_changes),
    "CM105": ("Changes only in the allowed direction", _direction),
    "CM106": ("No more accuracy lost than allowed", _accuracy_limit),
    "CM107": ("The overall rate moves no more than allowed", _volume),
    "CM201": ("Not less accurate than before", _accuracy),
    "CM202": ("No group is decided less accurately", _accuracy_of_groups),
    "CM203": ("As many gains as losses, or more", _mostly_gains),
    "CM204": ("Close to the fewest changes possible", _near_limit),
    "CM301": ("A few rules say who changes", _described),
    "CM302": ("The update does not tell the groups apart", _proxy),
    "CM303": ("Every group is large enough", _large_groups),
    "CM304": ("No subgroup remains badly served", _subgroups),
    "CM401": ("Scores order people as well as before", _ranking),
    "CM402": ("Scores are as well calibrated as before", _calibration),
    "CM403": ("Scores and decisions agree", _scores_agree),
    "CM501": ("Refits change the same people", _stable),
}
