"""Lay out the charts of a report: numbers in, shapes of an SVG out."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from commod._record.audit import Audit, Calibration, StabilitySummary
from commod._record.explanation import Card, Estimate, RocFigures, TradeOff
from commod._reporting.render.tables import drawn_groups
from commod._reporting.render.texts import ShortNames, group_rates_label
from commod._text import count, estimate, number, of_hundred, percent, shorten

WIDTH = 440.0  # small enough to read on a phone, which scales the picture down a little
MOST_GROUPS = 12
THICKNESS = 11.0  # of a bar
Number = float | int
Bar = tuple[str, Estimate, str, str]  # text on the left, length in [0, 1], on the right; its kind


@dataclass(frozen=True)
class Mark:
    """One shape of an SVG."""

    tag: str
    attributes: dict[str, str | Number]
    text: str = ""


@dataclass(frozen=True)
class Chart:
    """A picture and its text alternative; `places` are the positions of a trade-off's steps."""

    height: float
    label: str
    marks: tuple[Mark, ...]
    places: tuple[tuple[float, float], ...] = ()
    width: float = WIDTH


@dataclass(frozen=True)
class Axis:
    """A scale that maps values from `low` to `high` to pixels from `start` to `end`."""

    low: float
    high: float
    start: float
    end: float
    ticks: tuple[float, ...] = field(default=())

    def __call__(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low)
        return round(self.start + share * (self.end - self.start), 1)


# Charts -------------------------------------------------------------------------------------------


def group_rates(audit: Audit, names: ShortNames, *, per_hundred: bool = False) -> Chart:
    """Return the favourable outcome by group as two bars each, before and after."""
    bars = [
        (
            names(g.name, 34),
            [
                (when, rate, _rate_text(rate, per_hundred), when)
                for when, rate in (("before", g.favorable_before), ("after", g.favorable_after))
            ],
        )
        for g in audit.groups[:MOST_GROUPS]
    ]
    return _bars(bars, group_rates_label(audit), whiskers=not per_hundred)


def concept_changes(card: Card, names: ShortNames) -> Chart:
    """Return how often decisions change where each concept is active and where it is not."""
    bars = [
        (
            names(f"{c.number}. {c.name}", 34),
            [
                ("active", c.change_if_active, percent(c.change_if_active.value), "after"),
                ("not", c.change_if_inactive, percent(c.change_if_inactive.value), "before"),
            ],
        )
        for c in card.concepts
    ]
    label = "Share of people whose decision changes, by concept. " + "; ".join(
        f"{shorten(c.name, 40)}: {estimate(c.change_if_active)} where active, "
        f"{estimate(c.change_if_inactive)} where not"
        for c in card.concepts
    )
    return _bars(bars, label, whiskers=True, scale=_top(card))


def refit_columns(stability: StabilitySummary, names: ShortNames) -> Chart:
    """Return the share of refits that use each column."""
    listed = sorted(stability.columns.items(), key=lambda item: -item[1])[:MOST_GROUPS]
    bars = [
        (names(column, 34), [("", Estimate(share, None, None), percent(share), "after")])
        for column, share in listed
    ]
    label = "Share of refits that use a column: " + ", ".join(
        f"{shorten(column, 40)} {percent(share)}" for column, share in listed
    )
    return _bars(bars, label, whiskers=False)


def trade_off(curve: TradeOff, names: ShortNames, *, of_accuracy: bool = False) -> Chart:
    """Return changes against fairness, above the limits; fairer is always to the right.

    If `of_accuracy`, return accuracy against fairness; all accuracies must be known.
    """
    left, right, top, bottom = 48.0, WIDTH - 14, 30.0, 236.0
    base_fairness = [] if curve.base_fairness is None else [curve.base_fairness]
    ends = (left, right) if curve.higher_is_fairer else (right, left)
    x = _axis([*(s.fairness for s in curve.steps), *base_fairness], *ends)
    if of_accuracy:
        made, base_value = [s.accuracy or 0.0 for s in curve.steps], curve.base_accuracy or 0.0
        limit, blind = [], []
        y = _axis([*made, base_value], bottom, top)
        title = "Right decisions (accuracy)"
        words = [f"{percent(value)} right" for value in made]
    else:
        made, base_value = [s.change_rate for s in curve.steps], 0.0
        limit = [(s.fairness, s.limit) for s in curve.steps if s.limit is not None]
        blind = [(s.fairness, s.blind_limit.value or 0.0) for s in curve.steps if s.blind_limit]
        rates = [*made, *(rate for _, rate in (*limit, *blind))]
        y = _axis([0.0, *rates], bottom, top, from_zero=True)
        title = "Share of decisions that change"
        words = [
            f"{percent(s.change_rate)} change, fewest possible {percent(s.limit)}"
            + (
                f", without the group an estimated {estimate(s.blind_limit)}"
                if s.blind_limit
                else ""
            )
            for s in curve.steps
        ]
    places = [(x(s.fairness), y(value)) for s, value in zip(curve.steps, made, strict=True)]
    base = [(x(value), y(base_value)) for value in base_fairness]
    limit = [(x(value), y(rate)) for value, rate in limit]
    metric = names(curve.metric, 34)
    marks = [
        *_frame(x, y, percent_digits=_percent_digits(y.ticks)),
        _text(0, 14, title, "axis-title"),
        _text(left, bottom + 36, _isolated(metric), "axis-title"),
        _text(right, bottom + 36, "fairer →", "axis-title", "end"),
        _line([*base, *limit] if limit else [], "limit-line"),
        _line([(x(value), y(rate)) for value, rate in blind], "blind-line"),
        _line([*base, *places], "made-line"),
        *(Mark("circle", {"cx": a, "cy": b, "r": 3.4, "class": "made"}) for a, b in places),
    ]
    listed = "; ".join(
        f"{metric} {number(s.fairness)}: {text}" for s, text in zip(curve.steps, words, strict=True)
    )
    label = f"{title} against {metric}. {listed}."
    return Chart(bottom + 46, label, tuple(marks), tuple(places))


def calibration(curves: Calibration) -> Chart:
    """Return observed share against mean score, with the diagonal.

    The scores are those before and after, and the calibrated probability where it is known.
    """
    bottom = 300.0
    x, y, marks = _unit_square(bottom, "Mean score", "Share observed")
    kinds = ("before", curves.before), ("after", curves.after), ("calibrated", curves.calibrated)
    for when, bins in kinds:
        for b in bins:
            marks += _dot(x, y, b.mean_score, b.observed, when)
    label = (
        "Calibration: mean score against observed share. Mean distance "
        f"{number(curves.error_before, 3)} before, {number(curves.error_after, 3)} after."
    )
    if curves.error_calibrated is not None:
        label += f" Calibrated probability: {number(curves.error_calibrated, 3)}."
    return Chart(bottom + 46, label, tuple(marks))


def refit_histogram(stability: StabilitySummary) -> Chart:
    """Return how many people change in which share of the refits."""
    top, bottom = 24.0, 170.0
    counts = stability.histogram
    wide, most = WIDTH / max(len(counts), 1), max([*counts, 1])
    marks = []
    for i, n in enumerate(counts):
        tall = (bottom - top) * n / most
        marks += [
            _rect(i * wide + 3, bottom - tall, wide - 6, tall, "after"),
            _text((i + 0.5) * wide, bottom - tall - 5, _compact(n), "value", "middle"),
        ]
    marks += [
        Mark("path", {"d": f"M0 {bottom}H{WIDTH:g}", "class": "axis"}),
        _text(0, bottom + 16, "changes in 0 to 10% of refits", "tick"),
        _text(WIDTH, bottom + 16, "in 90 to 100%", "tick", "end"),
    ]
    label = "People by how often their decision changes in refits, from never to always: "
    return Chart(bottom + 24, label + ", ".join(map(count, counts)), tuple(marks))


def roc_curves(roc: RocFigures, when: str) -> Chart:
    """Return the ROC curves of the groups, before or after the update."""
    bottom = 330.0
    side_title = f"True positive rate {when} the update"
    x, y, marks = _unit_square(bottom, "False positive rate", side_title)
    areas = []
    for i, group in enumerate(drawn_groups(roc)):
        if curve := getattr(group, f"curve_{when}"):
            area = getattr(group, f"auc_{when}")
            marks.append(_line([(x(a), y(b)) for a, b in curve], f"roc roc-{i}"))
            areas.append(f"{shorten(group.name, 40)}: {estimate(area, 'number', 3)}")
    label = f"ROC curves of groups {when} the update. Areas under the curves: {'; '.join(areas)}."
    return Chart(bottom + 46, label, tuple(marks))


# Parts --------------------------------------------------------------------------------------------


def _bars(
    groups: Sequence[tuple[str, Sequence[Bar]]], label: str, *, whiskers: bool, scale: float = 1.0
) -> Chart:
    """Return horizontal bars, several below each title; a bar of length `scale` is full."""
    has_labels = any(bar[0] for _, bars in groups for bar in bars)
    left, right, gap = (50.0 if has_labels else 0.0), 352.0, 16.0
    axis = Axis(0, scale, left, right)
    y, marks = 0.0, []
    for title, bars in groups:
        marks.append(_text(0, y + 13, _isolated(title), "name"))
        y += 19
        for name, length, text, kind in bars:
            marks.append(_text(0, y + 10, name, "tick"))
            marks.append(_rect(left, y, right - left, THICKNESS, "track"))
            marks += _bar(length, kind, axis, y, whiskers)
            marks.append(_text(WIDTH, y + 10, text, "value", "end"))
            y += gap
        y += 10
    return Chart(max(y - 8, 1.0), label, tuple(m for m in marks if m.tag != "text" or m.text))


def _bar(length: Estimate, kind: str, axis: Axis, top: float, whiskers: bool) -> Iterable[Mark]:
    value, low, high = length.value, length.low, length.high
    if value is None:
        return
    yield _rect(axis.start, top, axis(value) - axis.start, THICKNESS, kind)
    if whiskers and low is not None and high is not None:
        a, b, y = axis(max(low, 0.0)), axis(min(high, axis.high)), round(top + THICKNESS / 2, 1)
        line = f"M{a} {y}H{b}M{a} {y - 3}v6M{b} {y - 3}v6"
        yield Mark("path", {"d": line, "class": "whisker"})


def _dot(x: Axis, y: Axis, score: float, observed: Estimate, kind: str) -> list[Mark]:
    """Return a dot and the interval of its observed share."""
    if observed.value is None:
        return []
    a, b = x(score), y(observed.value)
    marks = []
    if observed.low is not None and observed.high is not None:
        low, high = y(max(observed.low, 0.0)), y(min(observed.high, 1.0))
        marks.append(Mark("path", {"d": f"M{a} {low}V{high}", "class": f"whisker {kind}-line"}))
    if kind == "before":
        marks.append(Mark("circle", {"cx": a, "cy": b, "r": 4.5, "class": "dot-before"}))
    elif kind == "after":
        marks.append(_rect(a - 4, b - 4, 8, 8, "dot-after"))
    else:
        diamond = f"M{a} {b - 5:g}L{a + 5:g} {b}L{a} {b + 5:g}L{a - 5:g} {b}Z"
        marks.append(Mark("path", {"d": diamond, "class": "dot-calibrated"}))
    return marks


def _unit_square(bottom: float, title: str, side_title: str) -> tuple[Axis, Axis, list[Mark]]:
    """Return two axes from 0 to 1, their marks, and the diagonal; titles are below and above."""
    left, right, top = 48.0, WIDTH - 24, 30.0
    ticks = (0.0, 0.25, 0.5, 0.75, 1.0)
    x, y = Axis(0, 1, left, right, ticks), Axis(0, 1, bottom, top, ticks)
    marks = [
        *_frame(x, y),
        _text(0, 14, side_title, "axis-title"),
        _text(right, bottom + 36, title, "axis-title", "end"),
        Mark("path", {"d": f"M{x(0)} {y(0)}L{x(1)} {y(1)}", "class": "diagonal"}),
    ]
    return x, y, marks


def _frame(x: Axis, y: Axis, percent_digits: int = 0) -> Iterable[Mark]:
    """Yield both axes; the ticks of `x` are numbers, those of `y` are in percent."""
    left, right = min(x.start, x.end), max(x.start, x.end)
    for tick in y.ticks:
        yield Mark("path", {"d": f"M{left:g} {y(tick)}H{right:g}", "class": "grid"})
        yield _text(left - 7, y(tick) + 4, percent(tick, percent_digits), "tick", "end")
    for tick in x.ticks:
        yield Mark("path", {"d": f"M{x(tick)} {y.start:g}v4", "class": "axis"})
        yield _text(x(tick), y.start + 18, f"{tick:.10g}", "tick", "middle")
    yield Mark("path", {"d": f"M{left:g} {y.start:g}H{right:g}", "class": "axis"})


def _axis(values: Sequence[float], start: float, end: float, *, from_zero: bool = False) -> Axis:
    """Return an axis that reaches a little beyond the values, with about five round ticks."""
    low, high = min(values), max(values)
    wide = high - low or max(abs(high), 0.1)
    low, high = (0.0 if from_zero else low - 0.06 * wide), high + 0.06 * wide
    raw = wide / 4.5
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(m * power for m in (1, 2, 2.5, 5, 10) if m * power >= raw * 0.999)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    ticks = tuple(round(i * step, 10) for i in range(first, last + 1))
    return Axis(low, high, start, end, ticks)


def _top(card: Card) -> float:
    ends = [
        end
        for c in card.concepts
        for e in (c.change_if_active, c.change_if_inactive)
        for end in (e.value, e.high)
        if end is not None
    ]
    return min(1.0, max([*ends, 0.01]) * 1.05)


def _percent_digits(ticks: Sequence[float]) -> int:
    return 0 if all(abs(100 * t - round(100 * t)) < 1e-6 for t in ticks) else 1


def _rate_text(rate: Estimate, per_hundred: bool) -> str:
    if rate.value is None:
        return "not known"
    return f"{of_hundred(rate.value)} of 100" if per_hundred else percent(rate.value)


def _compact(n: int) -> str:
    """Return a count in at most five characters."""
    if n >= 1_000_000:
        return f"{n / 1_000_000:.0f}M"
    return f"{n / 1_000:.0f}k" if n >= 10_000 else count(n)


def _isolated(text: str) -> str:
    return f"\u2068{text}\u2069"  # SVG has no <bdi>; these two characters isolate text instead


def _text(x: float, y: float, text: str, kind: str, anchor: str = "start") -> Mark:
    """Return a text that starts, ends or is centred at a place."""
    x, y = round(x, 1), round(y, 1)
    return Mark("text", {"x": x, "y": y, "class": kind, "text-anchor": anchor}, text)


def _rect(x: float, y: float, width: float, height: float, kind: str) -> Mark:
    sides = {"x": x, "y": y, "width": max(width, 0.0), "height": max(height, 0.0)}
    return Mark("rect", {**{side: round(size, 1) for side, size in sides.items()}, "class": kind})


def _line(places: Sequence[tuple[float, float]], kind: str) -> Mark:
    """Return a line through places."""
    line = "L".join(f"{a} {b}" for a, b in places)
    return Mark("path", {"d": f"M{line}" if places else "M0 0", "class": kind})
