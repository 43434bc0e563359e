"""Answer CM302: whether the update predicts the group better than the base score does."""

from __future__ import annotations

from typing import NamedTuple

from commod._record import Estimate, Proxy, State, is_evidence
from commod._reporting.audit.evidence import Evidence
from commod._reporting.audit.sentences import MAX_LISTED, interval
from commod._text import distinct, distinct_pair, list_names, shorten

NAME_LIMIT, ITEM_LIMIT = 60, 160  # characters of a name, and of a name with its figures
MAX_GROUP_AREA = 0.7  # area under the curve with which any update may predict a group


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


def predicts_no_group(e: Evidence) -> tuple[State, str]:
    """Return whether −r, the evidence or the change predicts a group better than is allowed."""
    if e.reads_group:
        return "failed", "The update reads the group, or a column that determines it, to decide."
    candidates = map(prediction_of, e.proxies)
    predictions = [prediction for prediction in candidates if prediction is not None]
    if not predictions:
        return "not enough evidence", "No two groups are large enough to be compared."
    by_ratio = e.proxies[0].by_ratio
    predictor = "The evidence" if is_evidence(e.card) else "−r" if by_ratio else "The change"
    scale = _scale(e, any(p.base is not None for p in predictions))
    failed = [str(p) for p in predictions if p.is_clear]
    if failed:
        groups = list_names(failed, MAX_LISTED, width=ITEM_LIMIT)
        return "failed", f"{predictor} predicts who belongs to {groups}. {scale}"
    unsure = [str(p) for p in predictions if p.is_possible]
    if unsure:
        groups = list_names(unsure, MAX_LISTED, width=ITEM_LIMIT)
        return "not enough evidence", f"{predictor} may predict who belongs to {groups}. {scale}"
    best = max(predictions, key=lambda p: p.area)
    if not by_ratio:
        # few changes predict nobody's group, even where all of them are in one group
        text = f"r is not known. The change alone predicts no group better than {best}. {scale}"
        return "not enough evidence", text
    return "passed", f"{predictor} predicts no group better than {best}. {scale}"


def _scale(e: Evidence, has_base: bool) -> str:
    text = (
        f"The figures are areas under the curve ({interval(e)}): 0.5 means chance, 1 means exact."
    )
    allowed = f"This check allows {MAX_GROUP_AREA:g}"
    if has_base:
        allowed += ", or the area of the base score where that is larger"
    return f"{text} {allowed}."
