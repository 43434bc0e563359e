"""Where the marks of each chart lie: layout only, numbers in, shapes of an SVG out."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from commod._record import Audit, Calibration, Card, Estimate, StabilitySummary, TradeOff
from commod._reporting.render.texts import ShortNames, group_rates_label
from commod._text import count, estimate, number, of_hundred, percent, shorten

__all__ = ["Chart", "Mark"]

WIDTH = 440.0  # small enough to be read on a phone, where the picture is scaled down a little
MOST_GROUPS = 12
Number = float | int


@dataclass(frozen=True)
class Mark:
    """One shape: its tag, its attributes, its text."""

    tag: str
    attributes: dict[str, str | Number]
    text: str = ""


@dataclass(frozen=True)
class Chart:
    """A picture and its text alternative; `places` has where each step of a trade-off lies."""

    height: float
    label: str
    marks: tuple[Mark, ...]
    places: tuple[tuple[float, float], ...] = ()
    width: float = WIDTH


@dataclass(frozen=True)
class Bar:
    """One bar: what stands left of it, its length in [0, 1] with an interval, what stands right."""

    label: str
    length: Estimate
    text: str
    kind: str


@dataclass(frozen=True)
class Axis:
    """Values from `low` to `high` on pixels from `start` to `end`."""

    low: float
    high: float
    start: float
    end: float
    ticks: tuple[float, ...] = field(default=())

    def __call__(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low)
        return round(self.start + share * (self.end - self.start), 1)


# charts -------------------------------------------------------------------------------------------


def group_rates(audit: Audit, names: ShortNames, *, per_hundred: bool = False) -> Chart:
    """Return the favourable outcome by group: two bars each, before and after."""
    shown = audit.groups[:MOST_GROUPS]
    bars = [
        (
            names(g.name, 34),
            [
                Bar(when, rate, _rate_text(rate, per_hundred), when)
                for when, rate in (("before", g.favorable_before), ("after", g.favorable_after))
            ],
        )
        for g in shown
    ]
    return _bars(bars, group_rates_label(audit), whiskers=not per_hundred)


def concept_changes(card: Card, names: ShortNames) -> Chart:
    """Return how often a decision changes where each concept is active and where not."""
    bars = [
        (
            names(f"{c.number}. {c.name}", 34),
            [
                Bar("active", c.change_if_active, percent(c.change_if_active.value), "after"),
                Bar("not", c.change_if_inactive, percent(c.change_if_inactive.value), "before"),
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


def refit_columns(found: StabilitySummary, names: ShortNames) -> Chart:
    """Return how often columns recur in refits."""
    listed = sorted(found.columns.items(), key=lambda item: -item[1])[:MOST_GROUPS]
    bars = [
        (names(column, 34), [Bar("", Estimate(share, None, None), percent(share), "after")])
        for column, share in listed
    ]
    label = "Share of refits that use a column: " + ", ".join(
        f"{shorten(column, 40)} {percent(share)}" for column, share in listed
    )
    return _bars(bars, label, whiskers=False)


def trade_off(found: TradeOff, names: ShortNames) -> Chart:
    """Return changes against fairness, the exact limit below, fairer to the right."""
    left, right, top, bottom = 48.0, WIDTH - 14, 30.0, 236.0
    fair = [s.fairness for s in found.steps]
    if found.base_fairness is not None:
        fair.append(found.base_fairness)
    rates = [s.change_rate for s in found.steps] + [s.limit for s in found.steps if s.limit]
    low, high, ticks = _span(fair)
    ends = (left, right) if found.higher_is_fairer else (right, left)
    x = Axis(low, high, *ends, ticks)
    y_low, y_high, y_ticks = _span([0.0, *rates], from_zero=True)
    y = Axis(y_low, y_high, bottom, top, y_ticks)
    made = [(x(s.fairness), y(s.change_rate)) for s in found.steps]
    limit = [(x(s.fairness), y(s.limit)) for s in found.steps if s.limit is not None]
    base = [] if found.base_fairness is None else [(x(found.base_fairness), y(0.0))]
    metric = names(found.metric, 34)
    marks = [
        *_frame(x, y, _short, lambda v: percent(v, _percent_digits(y_ticks))),
        _text(0, 14, "Share of decisions that change", "axis-title"),
        _text(left, bottom + 36, _isolated(metric), "axis-title"),
        _text(right, bottom + 36, "fairer →", "axis-title", "end"),
        _path([*base, *limit] if limit else [], "limit-line"),
        _path([*base, *made], "made-line"),
        *(Mark("circle", {"cx": a, "cy": b, "r": 3.4, "class": "made"}) for a, b in made),
    ]
    label = (
        f"Share of decisions that change against {metric}. "
        + "; ".join(
            f"{metric} {number(s.fairness)}: {percent(s.change_rate)} change, fewest possible "
            f"{percent(s.limit)}"
            for s in found.steps
        )
        + "."
    )
    return Chart(bottom + 46, label, tuple(marks), tuple(made))


def calibration(found: Calibration) -> Chart:
    """Return mean score against observed share, before and after, beside the diagonal."""
    left, right, top, bottom = 48.0, WIDTH - 24, 30.0, 300.0
    ticks = (0.0, 0.25, 0.5, 0.75, 1.0)
    x, y = Axis(0, 1, left, right, ticks), Axis(0, 1, bottom, top, ticks)
    marks = [
        *_frame(x, y, _short, lambda v: percent(v, 0)),
        _text(0, 14, "Share observed", "axis-title"),
        _text(right, bottom + 36, "Mean score", "axis-title", "end"),
        Mark("path", {"d": f"M{x(0)} {y(0)}L{x(1)} {y(1)}", "class": "diagonal"}),
    ]
    for when, bins in (("before", found.before), ("after", found.after)):
        for b in bins:
            marks += _whisker(x, y, b.mean_score, b.observed, when)
    label = (
        "Calibration: mean score against observed share. Mean distance "
        f"{number(found.error_before, 3)} before, {number(found.error_after, 3)} after."
    )
    return Chart(bottom + 46, label, tuple(marks))


def refit_histogram(found: StabilitySummary) -> Chart:
    """Return how many people change how often, in ten steps."""
    top, bottom = 24.0, 170.0
    n_bars = max(len(found.histogram), 1)
    wide, most = WIDTH / n_bars, max([*found.histogram, 1])
    marks = []
    for i, n in enumerate(found.histogram):
        tall = (bottom - top) * n / most
        middle = (i + 0.5) * wide
        marks += [
            _rect(i * wide + 3, bottom - tall, wide - 6, tall, "after"),
            _text(middle, bottom - tall - 5, _compact(n), "value", "middle"),
        ]
    marks += [
        Mark("path", {"d": f"M0 {bottom}H{WIDTH:g}", "class": "axis"}),
        _text(0, bottom + 16, "changes in 0 to 10% of refits", "tick"),
        _text(WIDTH, bottom + 16, "in 90 to 100%", "tick", "end"),
    ]
    label = "People by how often their decision changes in refits, from never to always: "
    return Chart(bottom + 24, label + ", ".join(map(count, found.histogram)), tuple(marks))


# parts --------------------------------------------------------------------------------------------


def _bars(
    groups: Sequence[tuple[str, Sequence[Bar]]],
    label: str,
    *,
    whiskers: bool,
    scale: float = 1.0,
) -> Chart:
    has_labels = any(bar.label for _, bars in groups for bar in bars)
    left, right, thick, gap = (50.0 if has_labels else 0.0), 352.0, 11.0, 16.0
    at, marks = 0.0, []
    for title, bars in groups:
        marks.append(_text(0, at + 13, _isolated(title), "name"))
        at += 19
        for bar in bars:
            marks.append(_text(0, at + 10, bar.label, "tick"))
            marks.append(_rect(left, at, right - left, thick, "track"))
            if bar.length.value is not None:
                marks += _one_bar(bar, left, right, at, thick, scale, whiskers)
            marks.append(_text(WIDTH, at + 10, bar.text, "value", "end"))
            at += gap
        at += 10
    return Chart(max(at - 8, 1.0), label, tuple(m for m in marks if m.tag != "text" or m.text))


def _one_bar(
    bar: Bar, left: float, right: float, at: float, thick: float, scale: float, whiskers: bool
) -> list[Mark]:
    axis = Axis(0, scale, left, right)
    made = [_rect(left, at, axis(bar.length.value or 0.0) - left, thick, bar.kind)]
    low, high = bar.length.low, bar.length.high
    if whiskers and low is not None and high is not None:
        a, b, y = axis(max(low, 0.0)), axis(min(high, scale)), round(at + thick / 2, 1)
        made.append(
            Mark("path", {"d": f"M{a} {y}H{b}M{a} {y - 3}v6M{b} {y - 3}v6", "class": "whisker"})
        )
    return made


def _whisker(x: Axis, y: Axis, score: float, seen: Estimate, kind: str) -> list[Mark]:
    if seen.value is None:
        return []
    a, b = x(score), y(seen.value)
    made = []
    if seen.low is not None and seen.high is not None:
        low, high = y(max(seen.low, 0.0)), y(min(seen.high, 1.0))
        made.append(Mark("path", {"d": f"M{a} {low}V{high}", "class": f"whisker {kind}-line"}))
    if kind == "before":
        made.append(Mark("circle", {"cx": a, "cy": b, "r": 4.5, "class": "dot-before"}))
    else:
        made.append(_rect(a - 4, b - 4, 8, 8, "dot-after"))
    return made


def _frame(
    x: Axis, y: Axis, write_x: Callable[[float], str], write_y: Callable[[float], str]
) -> Iterable[Mark]:
    left, right = min(x.start, x.end), max(x.start, x.end)
    for tick in y.ticks:
        yield Mark("path", {"d": f"M{left:g} {y(tick)}H{right:g}", "class": "grid"})
        yield _text(left - 7, y(tick) + 4, write_y(tick), "tick", "end")
    for tick in x.ticks:
        yield Mark("path", {"d": f"M{x(tick)} {y.start:g}v4", "class": "axis"})
        yield _text(x(tick), y.start + 18, write_x(tick), "tick", "middle")
    yield Mark("path", {"d": f"M{left:g} {y.start:g}H{right:g}", "class": "axis"})


def _span(
    values: Sequence[float], *, from_zero: bool = False
) -> tuple[float, float, tuple[float, ...]]:
    """Return ends a little outside the values, and about five round ticks between them."""
    low, high = min(values), max(values)
    wide = high - low or max(abs(high), 0.1)
    low, high = (0.0 if from_zero else low - 0.06 * wide), high + 0.06 * wide
    raw = wide / 4.5
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(m * power for m in (1, 2, 2.5, 5, 10) if m * power >= raw * 0.999)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return low, high, tuple(round(i * step, 10) for i in range(first, last + 1))


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
    for unit, name in ((1_000_000, "M"), (10_000, "k")):
        if n >= unit:
            thousands = n / (unit if name == "M" else 1_000)
            return f"{thousands:.0f}{name}"
    return count(n)


def _short(value: float) -> str:
    return f"{value:.10g}"


def _isolated(text: str) -> str:
    return f"\u2068{text}\u2069"  # SVG has no <bdi>: these two characters do what it does


def _text(x: float, y: float, text: str, kind: str, anchor: str = "start") -> Mark:
    x, y = round(x, 1), round(y, 1)
    return Mark("text", {"x": x, "y": y, "class": kind, "text-anchor": anchor}, text)


def _rect(x: float, y: float, width: float, height: float, kind: str) -> Mark:
    sides = zip(
        ("x", "y", "width", "height"), (x, y, max(width, 0.0), max(height, 0.0)), strict=True
    )
    return Mark("rect", {**{side: round(at, 1) for side, at in sides}, "class": kind})


def _path(places: Sequence[tuple[float, float]], kind: str) -> Mark:
    line = "L".join(f"{a} {b}" for a, b in places)
    return Mark("path", {"d": f"M{line}" if places else "M0 0", "class": kind})
