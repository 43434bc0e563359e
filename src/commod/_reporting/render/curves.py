"""Show how well scores rank the people of each group: sentences, tables and ROC curves."""

from __future__ import annotations

from collections.abc import Iterable

from commod._record import AreaBetween, Audit, Estimate, GroupRoc, LargestGap, RocFigures
from commod._reporting.render import texts
from commod._reporting.render.charts import Chart, chart_path, unit_square
from commod._reporting.render.tables import Cell, ReportTable, figure, interval, table_of, text
from commod._reporting.render.tables import three_digits as three
from commod._text import estimate, number, percent, shorten

MOST_CURVES = 5  # in one picture
NOT_KNOWN = "Not known: ROC curves of groups need scores and labels."
UNDEFINED = Estimate(None, None, None)


def sentences(audit: Audit) -> Iterable[str]:
    """Yield what the areas between the ROC curves mean, before and after; nothing without them."""
    roc = audit.roc
    if roc is None:
        return
    for when, largest in (("Before", roc.largest_before), ("After", roc.largest_after)):
        if largest is not None:
            yield _sentence(audit, when, largest)


def _sentence(audit: Audit, when: str, largest: LargestGap) -> str:
    gap = largest.gap
    level = texts.level_text(audit.level)
    ends = f"{number(gap.area.low, 3)} to {number(gap.area.high, 3)}"
    verdict = "Chance alone may explain it" if gap.may_be_chance else "Chance does not explain it"
    return (
        f"{when} the update, the largest area between the ROC curves of two groups (ABROCA) is "
        f"{three(gap.area.value)} ({level} interval {ends}): “{shorten(largest.first, 40)}” and "
        f"“{shorten(largest.second, 40)}”. {verdict}: if the true curves were equal, it would be "
        f"{three(gap.chance)} on average, and above {three(gap.chance_high)} in {_rarely(audit)}."
    )


def _rarely(audit: Audit) -> str:
    """Return the share of samples in which chance exceeds `chance_high`."""
    return f"{(1 - audit.level) / 2 * 100:g}% of samples"


def area_texts(roc: RocFigures) -> list[tuple[str, str, str, str, str]]:
    """Return the areas under and between the curves by group as short texts, for a terminal."""

    def written(figure: Estimate | None) -> str:
        return estimate(figure or UNDEFINED, "number", 3)

    def between(group: GroupRoc, gap: AreaBetween | None) -> str:
        if group.name == roc.reference:
            return "largest group"
        return written(None if gap is None else gap.area)

    return [
        (
            group.name,
            written(group.auc_before),
            written(group.auc_after),
            between(group, group.gap_before),
            between(group, group.gap_after),
        )
        for group in roc.groups
    ]


# Tables -------------------------------------------------------------------------------------------


def areas(audit: Audit, roc: RocFigures) -> ReportTable:
    """Return the area under the ROC curve of each group."""
    label = texts.score_label(audit.request)

    def cell(group: GroupRoc, area: Estimate | None) -> Cell:
        if group.why_unknown:
            return Cell("not known", group.why_unknown, None, "number")
        return interval(area, three, "not measured")

    return table_of(
        "group-auc",
        "Area under the ROC curve (AUC) of each group: how often a person with "
        f"{label} has a higher score than a person of the same group without it. 0.5 means chance. "
        f"{texts.measured(audit)}",
        roc.groups,
        (
            ("Group", lambda g: Cell(g.name, "largest group" if g.name == roc.reference else "")),
            (f"Truly {label}", lambda g: figure(g.n_positive)),
            ("Others", lambda g: figure(g.n_negative)),
            ("AUC before", lambda g: cell(g, g.auc_before)),
            ("AUC after", lambda g: cell(g, g.auc_after)),
            ("Loss of AUC", lambda g: cell(g, g.auc_loss)),
        ),
    )


def gaps(audit: Audit, roc: RocFigures) -> ReportTable:
    """Return the areas between ROC curves: the largest one, and every group beside the reference.

    With two groups, both are the same pair, which is listed once.
    """
    rows: list[tuple[str, str, AreaBetween | None, AreaBetween | None]] = [
        (g.name, f"beside {shorten(roc.reference or '', 40)}", g.gap_before, g.gap_after)
        for g in roc.groups
        if g.name != roc.reference and not g.why_unknown
    ]
    if len(rows) > 1:
        before, after = (
            None if largest is None else largest.gap
            for largest in (roc.largest_before, roc.largest_after)
        )
        rows.insert(0, ("largest of all pairs", _pairs(roc), before, after))
    return table_of(
        "curve-gaps",
        "Area between the ROC curve of each group and that of the largest group (ABROCA). 0 means "
        "that the scores rank both groups equally well at every threshold. Chance alone makes it "
        "positive: “by chance” is "
        f"its mean if the true curves were equal, and what it exceeds in {_rarely(audit)}. "
        f"{texts.measured(audit)}",
        rows,
        (
            ("Group", lambda row: Cell(row[0], row[1])),
            ("Before", lambda row: _area(row[2])),
            ("Before, by chance", lambda row: _chance(row[2])),
            ("After", lambda row: _area(row[3])),
            ("After, by chance", lambda row: _chance(row[3])),
        ),
        sortable=False,
    )


def _pairs(roc: RocFigures) -> str:
    """Return the pairs with the largest areas, before and after, once if they are the same."""
    known = [pair for pair in (roc.largest_before, roc.largest_after) if pair is not None]
    named = dict.fromkeys(f"{shorten(p.first, 30)} and {shorten(p.second, 30)}" for p in known)
    return "; then ".join(named)


def _area(gap: AreaBetween | None) -> Cell:
    return interval(None if gap is None else gap.area, three, "not measured")


def _chance(gap: AreaBetween | None) -> Cell:
    if gap is None:
        return figure(None, three, "not measured")
    return Cell(three(gap.chance), f"up to {three(gap.chance_high)}", gap.chance, "number")


def points(audit: Audit, roc: RocFigures) -> ReportTable:
    """Return the points of the drawn curves."""
    rows = [
        (group.name, when, *point)
        for group in drawn(roc)
        for when, curve in (("before", group.curve_before), ("after", group.curve_after))
        for point in curve
    ]
    return table_of(
        "curve-points",
        "Points of the ROC curves. At least five people lie between two points. Measured on the "
        f"{texts.evaluated_rows(audit)}.",
        rows,
        (
            ("Group", lambda row: text(row[0])),
            ("When", lambda row: text(row[1])),
            ("False positive rate", lambda row: figure(row[2], percent)),
            ("True positive rate", lambda row: figure(row[3], percent)),
        ),
    )


# Pictures -----------------------------------------------------------------------------------------


def drawn(roc: RocFigures) -> list[GroupRoc]:
    """Return the groups of the picture: the reference, then those farthest from it."""

    def distance(group: GroupRoc) -> float:
        gap = group.gap_after or group.gap_before
        value = None if gap is None else gap.area.value
        return float("inf") if value is None else value

    known = [group for group in roc.groups if not group.why_unknown]
    return sorted(known, key=distance, reverse=True)[:MOST_CURVES]


def picture(roc: RocFigures, when: str) -> Chart:
    """Return the ROC curves of the groups, before or after the update."""
    bottom = 330.0
    side_title = f"True positive rate {when} the update"
    x, y, marks = unit_square(bottom, "False positive rate", side_title)
    areas = []
    for i, group in enumerate(drawn(roc)):
        if curve := getattr(group, f"curve_{when}"):
            area = getattr(group, f"auc_{when}")
            marks.append(chart_path([(x(a), y(b)) for a, b in curve], f"roc roc-{i}"))
            areas.append(f"{shorten(group.name, 40)}: {estimate(area or UNDEFINED, 'number', 3)}")
    label = f"ROC curves of groups {when} the update. Areas under the curves: {'; '.join(areas)}."
    return Chart(bottom + 46, label, tuple(marks))
