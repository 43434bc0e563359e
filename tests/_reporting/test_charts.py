"""The charts of a report show their figures where the axes say, and stay inside the picture."""

import re
from dataclasses import replace

import audits
import numpy as np
import pytest

from commod._record.explanation import Estimate
from commod._reporting.render import charts
from commod._reporting.render.tables import drawn_groups

FULL, STEPS = audits.audit(), audits.trade_off()


def names(name, _):
    return name


LOWER = replace(
    STEPS,
    higher_is_fairer=False,
    base_fairness=0.4,
    steps=tuple(
        replace(step, fairness=0.35 - 0.05 * i, blind_limit=Estimate(0.01 * i, None, None))
        for i, step in enumerate(STEPS.steps)
    ),
)
CURVES = replace(FULL.calibration, calibrated=FULL.calibration.before[::-1], error_calibrated=0.02)
CHARTS = {
    "rates": charts.group_rates(FULL, names),
    "of hundred": charts.group_rates(FULL, names, per_hundred=True),
    "concepts": charts.concept_changes(FULL.card, names),
    "columns": charts.refit_columns(FULL.stability, names),
    "trade-off": charts.trade_off(STEPS, names),
    "of a gap": charts.trade_off(LOWER, names),
    "accuracy": charts.trade_off(STEPS, names, of_accuracy=True),
    "calibration": charts.calibration(CURVES),
    "refits": charts.refit_histogram(FULL.stability),
    "roc before": charts.roc_curves(FULL.roc, "before"),
    "roc after": charts.roc_curves(FULL.roc, "after"),
}


def marks(chart, kind):
    """Return the attributes of the marks of a class, in order."""
    found = [m.attributes for m in chart.marks if m.attributes["class"] == kind]
    assert found, kind
    return found


def places(path):
    """Return the places of a path of straight lines, shape (n, 2)."""
    return np.array([[float(v) for v in place.split()] for place in path[1:].split("L")])


def read(chart, shown):
    """Return what the axes of a chart say about places, by the texts and lines of their ticks."""
    ticks = [m for m in chart.marks if m.tag == "text" and m.attributes["class"] == "tick"]
    of_x = [(m.attributes["x"], float(m.text)) for m in ticks if m.text[-1] != "%"]
    values = [float(m.text.rstrip("%")) / 100 for m in ticks if m.text[-1] == "%"]
    heights = [float(m["d"].split()[1].split("H")[0]) for m in marks(chart, "grid")]
    assert len(of_x) > 2 and len(heights) > 2
    scales = [np.polyfit(*np.transpose(of_x), 1), np.polyfit(heights, values, 1)]
    x, y = np.transpose(shown)
    return np.column_stack([np.polyval(scales[0], x), np.polyval(scales[1], y)])


def corners(mark):
    """Return the outermost places of a mark, shape (n, 2)."""
    at = mark.attributes
    if mark.tag == "rect":
        ends = at["x"] + at["width"], at["y"] + at["height"]
        return np.array([(at["x"], at["y"]), ends])
    if mark.tag == "circle":
        return np.array([(at["cx"] + r, at["cy"] + r) for r in (-at["r"], at["r"])])
    if mark.tag == "text":
        return np.array([(at["x"], at["y"])])
    found, x, y = [], 0.0, 0.0
    for letter, numbers in re.findall(r"([MLHVv])([^MLHVvZ]*)", at["d"]):
        first, *others = (float(v) for v in numbers.split())
        if letter in "ML":
            x, (y,) = first, others
        elif letter == "H":
            x = first
        else:
            y = first if letter == "V" else y + first
        found.append((x, y))
    return np.array(found)


@pytest.mark.parametrize("name", CHARTS)
def test_every_mark_is_inside_the_picture(name):
    chart = CHARTS[name]
    for mark in chart.marks:
        if mark.attributes.get("d") == "M0 0":
            continue
        assert (corners(mark) >= 0).all(), mark
        assert (corners(mark) <= (chart.width, chart.height)).all(), mark


def test_bars_are_as_long_as_the_figures():
    of_concepts = [
        e for c in FULL.card.concepts for e in (c.change_if_active, c.change_if_inactive)
    ]
    figures = {
        "rates": [e for g in FULL.groups for e in (g.favorable_before, g.favorable_after)],
        "concepts": of_concepts,
        "columns": [Estimate(s, None, None) for s in sorted(FULL.stability.columns.values())[::-1]],
    }
    for name, estimates in figures.items():
        chart = CHARTS[name]
        full = marks(chart, "track")
        scale = 1.0
        if name == "concepts":  # the longest bar or interval is nearly full
            scale = min(1.0, 1.05 * max(v for e in estimates for v in (e.value, e.high) if v))
        bars = [m.attributes for m in chart.marks if m.attributes["class"] in ("before", "after")]
        assert len(bars) == len(full) == len(estimates)
        texts = marks(chart, "value")
        for bar, track, text, shown in zip(bars, full, texts, estimates, strict=True):
            assert text["x"] == chart.width and bar["y"] < text["y"] < bar["y"] + bar["height"]
            assert (bar["x"], bar["y"]) == (track["x"], track["y"])
            assert bar["width"] / track["width"] == pytest.approx(shown.value / scale, abs=2e-3)
        intervals = [e for e in estimates if e.low is not None]
        whiskers = marks(chart, "whisker") if intervals else []
        for whisker, shown in zip(whiskers, intervals, strict=True):
            ends = np.array(re.match(r"M([\d.]+) [\d.]+H([\d.]+)", whisker["d"]).groups(), float)
            expected = np.clip([shown.low, shown.high], 0, scale) / scale
            near = pytest.approx(expected, abs=2e-3)
            rows = {round(float(row), 1) for row in re.findall(r"M[\d.]+ ([\d.]+)", whisker["d"])}
            beside = [b for b in bars if b["y"] < max(rows) and min(rows) < b["y"] + b["height"]]
            assert len(beside) == 1
            assert (ends - full[0]["x"]) / full[0]["width"] == near


@pytest.mark.parametrize(("name", "curve"), [("trade-off", STEPS), ("of a gap", LOWER)])
def test_steps_and_limits_of_a_trade_off_stand_at_their_figures(name, curve):
    chart = CHARTS[name]
    base = [(curve.base_fairness, 0.0)]
    made = [(s.fairness, s.change_rate) for s in curve.steps]
    limits = [(s.fairness, s.limit) for s in curve.steps if s.limit is not None]
    blind = [(s.fairness, s.blind_limit.value) for s in curve.steps if s.blind_limit]
    lines = {"made-line": base + made, "limit-line": base + limits, "blind-line": blind}
    for kind, expected in lines.items():
        if expected:
            shown = read(chart, places(marks(chart, kind)[0]["d"]))
            np.testing.assert_allclose(shown, expected, atol=2e-3)
    np.testing.assert_allclose(read(chart, chart.places), made, atol=2e-3)
    right = np.argmax(np.array(chart.places)[:, 0])
    fairest = (np.argmax if curve.higher_is_fairer else np.argmin)(
        [s.fairness for s in curve.steps]
    )
    assert right == fairest


def test_accuracies_stand_at_their_figures():
    expected = [(s.fairness, s.accuracy) for s in STEPS.steps]
    np.testing.assert_allclose(
        read(CHARTS["accuracy"], CHARTS["accuracy"].places), expected, atol=2e-3
    )


def test_dots_of_calibration_stand_at_score_and_observed_share():
    chart, curves = CHARTS["calibration"], CURVES
    circles = [(m["cx"], m["cy"]) for m in marks(chart, "dot-before")]
    squares = [
        (m["x"] + m["width"] / 2, m["y"] + m["height"] / 2) for m in marks(chart, "dot-after")
    ]
    diamonds = [
        places(m.attributes["d"].rstrip("Z")).mean(axis=0)
        for m in chart.marks
        if m.tag == "path" and m.attributes["class"] == "dot-calibrated"
    ]
    of_kind = {"before": circles, "after": squares, "calibrated": diamonds}
    for kind, shown in of_kind.items():
        bins = getattr(curves, kind)
        expected = [(b.mean_score, b.observed.value) for b in bins]
        np.testing.assert_allclose(read(chart, shown), expected, atol=2e-3)
        known = [b for b in bins if b.observed.low is not None]
        intervals = marks(chart, f"whisker {kind}-line") if known else []
        ends = [
            [(b.mean_score, np.clip(end, 0, 1)) for end in (b.observed.low, b.observed.high)]
            for b in known
        ]
        for interval, expected in zip(intervals, ends, strict=True):
            x, low, high = re.match(r"M(\S+) (\S+)V(\S+)", interval["d"]).groups()
            shown = [(float(x), float(low)), (float(x), float(high))]
            np.testing.assert_allclose(read(chart, shown), expected, atol=2e-3)
    (low, high) = read(chart, places(marks(chart, "diagonal")[0]["d"]))
    np.testing.assert_allclose([low, high], [(0, 0), (1, 1)], atol=2e-3)


@pytest.mark.parametrize("when", ["before", "after"])
def test_roc_curves_go_through_their_points(when):
    chart, drawn = CHARTS[f"roc {when}"], drawn_groups(FULL.roc)
    assert {group.name for group in drawn} == {g.name for g in FULL.roc.groups if g.auc_before}
    for i, group in enumerate(drawn):
        if curve := getattr(group, f"curve_{when}"):
            shown = read(chart, places(marks(chart, f"roc roc-{i}")[0]["d"]))
            np.testing.assert_allclose(shown, curve, atol=2e-3)


def test_columns_of_refits_are_as_tall_as_the_counts_and_have_their_number_above():
    chart, counts = CHARTS["refits"], np.array(FULL.stability.histogram)
    bars, texts = marks(chart, "after"), marks(chart, "value")
    heights, lefts, widths = (
        np.array([b[side] for b in bars]) for side in ("height", "x", "width")
    )
    np.testing.assert_allclose(heights / heights.max(), counts / counts.max(), atol=2e-3)
    middles = [text["x"] for text in texts]
    np.testing.assert_allclose(middles, lefts + widths / 2, atol=0.2)
    np.testing.assert_allclose([text["y"] for text in texts], [b["y"] - 5 for b in bars], atol=0.2)
    ends = {round(b["y"] + b["height"], 1) for b in bars}
    assert max(ends) - min(ends) < 0.2 and (lefts[1:] > (lefts + widths)[:-1]).all()
