"""Tables of a report as plain text: their cells, and those of all figures of an audit.

HTML, Markdown and the slider show the same tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from commod._record.audit import (
    Agreement,
    Audit,
    Calibration,
    CalibrationBin,
    Fairness,
    Gap,
    Group,
    Quality,
    Shipped,
    StabilitySummary,
    Stratum,
    StratumTable,
)
from commod._record.checks import by_importance
from commod._record.explanation import AreaBetween, Estimate, GroupRoc, RocFigures, is_evidence
from commod._reporting.render import texts
from commod._text import (
    NOT_KNOWN,
    at_bound,
    count,
    n_of,
    number,
    percent,
    percentage_points,
    shorten,
    signed_number,
)

Record = TypeVar("Record")
Columns = Sequence[tuple[str, Callable[[Record], "Cell"]]]


@dataclass(frozen=True)
class Cell:
    """A text, a note in smaller letters below it, a value to sort by, and how to show them.

    `kind` is "text" or "number"; `tone` names a colour of the style sheet; `limit` is the number of
    characters after which the text is cut.
    """

    text: str
    note: str = ""
    sort: float | None = None
    kind: str = "text"
    tone: str = ""
    limit: int = texts.NAME_LIMIT


@dataclass(frozen=True)
class ReportTable:
    """A caption, the names of the columns, rows of cells, and a sentence on omitted rows."""

    key: str
    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    sortable: bool = True
    more: str = ""


def table_of(
    key: str,
    caption: str,
    records: Iterable[Record],
    columns: Columns[Record],
    *,
    sortable: bool = True,
    more: str = "",
) -> ReportTable:
    """Return a table with one row per record; a column is its name and a function of a record."""
    names = tuple(name for name, _ in columns)
    rows = tuple(tuple(cell(record) for _, cell in columns) for record in records)
    return ReportTable(key, caption, names, rows, sortable, more)


def text(value: Any) -> Cell:
    """Return a cell with a name or a short text."""
    return Cell(str(value))


def sentence(value: str) -> Cell:
    """Return a cell with a sentence."""
    return Cell(value, limit=texts.SENTENCE_LIMIT)


def figure(
    value: float | None, write: Callable[[float | None], str] = count, reason: str = ""
) -> Cell:
    """Return a cell with a number; `reason` says why it may be missing."""
    return Cell(write(value), reason if value is None else "", value, "number")


def interval(
    estimate: Estimate | None,
    write: Callable[[float | None], str] = percent,
    reason: str = "no labels",
) -> Cell:
    """Return a cell with a figure and its interval as a note, or with why there is none."""
    if estimate is None:
        return Cell(NOT_KNOWN, reason, None, "number")
    if estimate.value is None:
        return Cell(NOT_KNOWN, "undefined here", None, "number")
    low, high = estimate.low, estimate.high
    if low is None and high is None:
        note = "no interval"
    elif low is None or high is None:
        note = f"at most {write(high)}" if low is None else f"at least {write(low)}"
    else:
        without_unit = write(low).removesuffix("%").removesuffix(" points")
        note = f"{without_unit} to {write(high)}"
    return Cell(write(estimate.value), note, estimate.value, "number")


def three_digits(value: float | None) -> str:
    """Return a number with three digits behind the point."""
    return number(value, 3)


# The tables ---------------------------------------------------------------------------------------

MOST_COLUMNS = 30  # that recur in refits
MOST_GROUPS = 60
DIRECTIONS = {"gain": "▲ gain", "loss": "▼ loss"}
STATES = {
    "passed": "✓ passed",
    "failed": "✗ failed",
    "not enough evidence": "? not enough evidence",
}


# Groups -------------------------------------------------------------------------------------------


def rates(audit: Audit) -> ReportTable:
    """Return the favourable outcome by group before and after: the numbers of the first chart."""
    return table_of(
        "rates",
        f"Share of each group with {texts.favourable_outcome(audit.request)}. "
        f"{texts.measured(audit)}",
        _shown_groups(audit),
        (
            ("Group", lambda g: text(g.name)),
            ("People", lambda g: figure(g.n)),
            *_before_and_after("", "favorable"),
        ),
        more=_omitted_groups(len(audit.groups)),
    )


def outcomes(audit: Audit) -> ReportTable:
    """Return gains, losses and rates of both outcomes by group."""
    counted = texts.sentence_case(texts.counted_outcome(audit.request).removeprefix("the "))
    return table_of(
        "outcomes",
        f"Outcomes by group. {texts.measured(audit)}",
        _shown_groups(audit),
        (
            ("Group", lambda g: Cell(g.name, "" if g.compared else "not compared")),
            ("People", lambda g: figure(g.n)),
            ("Gains", _of_group(lambda g: figure(g.n_gains))),
            ("Losses", _of_group(lambda g: figure(g.n_losses))),
            *_before_and_after("Favourable", "favorable"),
            *_before_and_after(counted, "selected"),
        ),
        more=_omitted_groups(len(audit.groups)),
    )


def errors(audit: Audit) -> ReportTable:
    """Return accuracy, error rates and mean scores by group."""
    return table_of(
        "errors",
        f"Right and wrong decisions by group, and mean scores. {texts.measured(audit)}",
        _shown_groups(audit),
        (
            ("Group", lambda g: text(g.name)),
            (
                f"Truly {texts.counted_outcome(audit.request)}",
                _of_group(lambda g: figure(g.n_positive_labels, reason="no labels")),
            ),
            *_before_and_after("Accuracy", "accuracy"),
            *_before_and_after("True positives", "true_positive"),
            *_before_and_after("False positives", "false_positive"),
            *_before_and_after("Mean score", "mean_score", partial(figure, write=three_digits)),
        ),
        more=_omitted_groups(len(audit.groups)),
    )


def reference(audit: Audit) -> ReportTable:
    """Return adverse impact ratio and standardised mean difference of each group."""
    score = texts.score_label(audit.request)
    return table_of(
        "reference",
        "Every group beside the reference group: the compared group with the highest share of "
        f"{texts.favourable_outcome(audit.request)} before the update. The adverse impact ratio "
        "is a group's share divided by that of the reference. The standardised mean difference is "
        f"a group's mean score of {score} minus that of the reference, divided by the standard "
        f"deviation of the scores. {texts.measured(audit)}",
        _shown_groups(audit),
        (
            ("Group", lambda g: Cell(g.name, "reference" if g.is_reference else "")),
            *_before_and_after("Impact ratio", "impact", partial(figure, write=three_digits)),
            *_before_and_after(
                "Mean difference",
                "score_gap",
                partial(figure, write=three_digits, reason="no scores"),
            ),
        ),
        more=_omitted_groups(len(audit.groups)),
    )


def _before_and_after(
    title: str, name: str, cell: Callable[[Any], Cell] = interval
) -> Columns[Group]:
    """Return the columns of a figure of groups before and after the update."""

    def column(when: str) -> tuple[str, Callable[[Group], Cell]]:
        heading = f"{title} {when}" if title else when.capitalize()
        return heading, _of_group(lambda group: cell(getattr(group, f"{name}_{when}")))

    return column("before"), column("after")


def _of_group(cell: Callable[[Group], Cell]) -> Callable[[Group], Cell]:
    """Return `cell` for groups that are described; a hidden group gets the reason instead."""
    hidden = Cell("not shown", "too few people", None, "number")
    return lambda group: hidden if group.n_gains is None else cell(group)


def small_groups(audit: Audit) -> ReportTable:
    """Return the groups that are too small to compare."""
    return table_of(
        "small-groups",
        "Groups with too few people. No comparison includes them. "
        f"The rates are those of {texts.counted_outcome(audit.request)}.",
        audit.small_groups[:MOST_GROUPS],
        (
            ("Group", lambda g: text(g.name)),
            ("People", lambda g: figure(g.n)),
            ("Needed", lambda g: figure(g.needed)),
            ("Rate before", lambda g: figure(g.rate_before, percent, "too few people")),
            ("Rate after", lambda g: figure(g.rate_after, percent, "too few people")),
        ),
        more=_omitted_groups(len(audit.small_groups)),
    )


def subgroups(audit: Audit) -> ReportTable:
    """Return the subgroups that fare worse than their peers."""
    return table_of(
        "subgroups",
        "Subgroups that fare worse than the people they are compared with, worst first. "
        + texts.measured(audit, level=audit.subgroups.level),
        audit.subgroups.listed,
        (
            ("Subgroup", lambda s: Cell(s.name, limit=texts.SENTENCE_LIMIT // 4)),
            ("Share of", lambda s: text(s.what)),
            ("People", lambda s: figure(s.n)),
            ("Before", lambda s: figure(s.rate_before, percent)),
            ("After", lambda s: interval(s.rate)),
            (
                "Compared with",
                lambda s: Cell(
                    s.compared_with, f"{count(s.n_others)} people", limit=texts.SENTENCE_LIMIT // 4
                ),
            ),
            ("Their share", lambda s: figure(s.others, percent)),
            ("Gap", lambda s: interval(s.gap, percentage_points)),
        ),
    )


def _shown_groups(audit: Audit) -> list[Group]:
    """Return at most `MOST_GROUPS` groups, those that are compared first."""
    return sorted(audit.groups, key=lambda group: not group.compared)[:MOST_GROUPS]


def _omitted_groups(n: int) -> str:
    n_more = n - MOST_GROUPS
    return f"{count(n_more)} more groups are in the audit's JSON." if n_more > 0 else ""


# Who changes --------------------------------------------------------------------------------------


def outscoring(audit: Audit) -> ReportTable:
    """Return how those who change score beside those who do not, in all groups and by group."""
    records = []
    for figures in audit.outscoring:
        people = figures.n_changed, figures.n_others
        records.append((figures, "all pairs of the same group", *people, figures.same_group))
        records.append((figures, "all pairs", *people, figures.overall))
        for g in figures.groups[:MOST_GROUPS]:
            records.append((figures, g.name, g.n_changed, g.n_others, g.probability))
    return table_of(
        "outscoring",
        "How often, in pairs of one who changes and one who does not, the base score of the one "
        "who gains is higher, or the base score of the one who loses is lower. 50% means chance. "
        f"{texts.measured(audit)}",
        records,
        (
            ("Change", lambda row: text(DIRECTIONS[row[0].change])),
            ("Group", lambda row: text(row[1])),
            ("People", lambda row: figure(row[2])),
            ("Others", lambda row: figure(row[3])),
            ("Share of pairs", lambda row: interval(row[4], reason="too few people")),
        ),
        sortable=False,
        more=_omitted_groups(max((len(f.groups) for f in audit.outscoring), default=0)),
    )


def true_shares(audit: Audit) -> ReportTable:
    """Return how often the true label is favourable, for those who change and the others."""
    return table_of(
        "true-shares",
        "Share of people whose true label is favourable: those who change, and those with the "
        f"same decision before who do not. {texts.measured(audit)}",
        audit.outscoring,
        (
            ("Change", lambda f: text(DIRECTIONS[f.change])),
            ("Those who change", lambda f: interval(f.true_share_changed)),
            ("Those who do not", lambda f: interval(f.true_share_others)),
        ),
        sortable=False,
    )


# Metrics and checks -------------------------------------------------------------------------------


def fairness(audit: Audit) -> ReportTable:
    """Return every fairness metric before and after."""
    n = audit.fairness[0].n if audit.fairness else None

    def bound_of(metric: Fairness) -> float | None:
        """Return the bound of a metric; audits of earlier versions have it in the request only."""
        return audit.request.target if metric.asked and metric.bound is None else metric.bound

    def figures(metric: Fairness, value: Estimate) -> Cell:
        """Return a value; that of a requested metric never reads like the bound it misses."""
        bound = bound_of(metric)
        if not metric.asked or bound is None:
            return interval(value, three_digits)
        return interval(value, partial(texts.bounded_number, bound=bound))

    def asked(metric: Fairness) -> Cell:
        bound = bound_of(metric)
        if not metric.asked or bound is None:
            return text("")
        words = at_bound(f"{bound:g}", metric.higher_is_fairer)
        if metric.is_kept is None:
            return text(words)
        kept, tone = ("✓ kept", "passed") if metric.is_kept else ("✗ not kept", "failed")
        return Cell(words, f"{kept} on these rows", tone=tone)

    return table_of(
        "fairness",
        f"Fairness metrics. {texts.measured(audit, n)}",
        audit.fairness,
        (
            ("Metric", lambda f: Cell(f.name, "asked for" if bound_of(f) is not None else "")),
            ("What it is", lambda f: sentence(f.definition or f.constraints.replace("_", " "))),
            ("Before", lambda f: figures(f, f.before)),
            ("After", lambda f: figures(f, f.after)),
            ("Bound", asked),
            ("Fairer is", lambda f: text("higher" if f.higher_is_fairer else "lower")),
        ),
    )


def proxies(audit: Audit) -> ReportTable:
    """Return how well the update predicts who belongs to a group."""
    learned = "the evidence" if is_evidence(audit.card) else "−r"
    return table_of(
        "proxies",
        "How well the update predicts who belongs to a group: area under the curve. 0.5 means not "
        f"at all; 0 and 1 mean perfectly. {texts.measured(audit)}",
        audit.proxies,
        (
            ("Group", lambda p: text(p.group)),
            ("Predicted by", lambda p: text(learned if p.by_ratio else "the change itself")),
            ("The update", lambda p: interval(p.update, three_digits)),
            (
                "The base model's score",
                lambda p: interval(p.base_score, three_digits, "not measured"),
            ),
        ),
    )


def checks(audit: Audit) -> list[tuple[str, ReportTable]]:
    """Return a heading and a table for each severity; each state has a sign and a word."""
    return [
        (
            texts.sentence_case(severity),
            table_of(
                "checks",
                texts.SEVERITY_MEANINGS[severity],
                group,
                (
                    ("Code", lambda c: text(c.code)),
                    ("Question", lambda c: text(c.title)),
                    ("State", lambda c: Cell(STATES[c.state], tone=c.state.replace(" ", "-"))),
                    ("Why", lambda c: sentence(c.sentence)),
                ),
            ),
        )
        for severity, group in by_importance(audit.checks)
    ]


def gaps(audit: Audit, shipped: Shipped) -> ReportTable:
    """Return the figures on the rows of the fit and on the audited rows, and their difference."""

    def written(gap: Gap, value: float | None) -> Cell:
        return figure(value, percent if gap.kind == "percent" else three_digits, "not measured")

    def difference(gap: Gap) -> Cell:
        if gap.kind == "percent":
            return figure(gap.difference, percentage_points)
        return figure(gap.difference, lambda value: signed_number(value, 3))

    return table_of(
        "gaps",
        f"The gap between fit and test: figures of the update on the {count(shipped.n_figure_rows)}"
        f" {shipped.fit_rows} and on the {texts.evaluated_rows(audit)}.",
        shipped.gaps,
        (
            ("Figure", lambda g: text(texts.sentence_case(g.name))),
            ("Fit", lambda g: written(g, g.fit)),
            ("Test", lambda g: written(g, g.test)),
            ("Test minus fit", difference),
        ),
        sortable=False,
    )


# Accuracy and scores ------------------------------------------------------------------------------


def quality(audit: Audit, summary: Quality) -> ReportTable:
    """Return accuracy and area under the curve before and after."""
    auc_before, auc_after, auc_loss = (
        interval(area, three_digits, "not measured")
        for area in (summary.auc_before, summary.auc_after, summary.auc_loss)
    )
    return ReportTable(
        "quality",
        f"How often decisions are right, and how well scores rank people. {texts.measured(audit)}",
        ("Measure", "Before", "After"),
        (
            (
                text("Accuracy of the decisions"),
                interval(summary.accuracy_before),
                interval(summary.accuracy_after),
            ),
            (text("Area under the curve (AUC) of the scores"), auc_before, auc_after),
            (text("Loss of AUC, before minus after"), Cell(""), auc_loss),
        ),
        sortable=False,
    )


def agreement(audit: Audit, scores: Agreement) -> ReportTable:
    """Return how close the scores before and after are."""
    distance, rank = scores.mean_absolute_difference, scores.rank_correlation
    return ReportTable(
        "agreement",
        "How close the edited scores are to the base model's scores, on the "
        f"{texts.evaluated_rows(audit)}.",
        ("Measure", "Value"),
        (
            (text("Share of identical scores"), figure(scores.share_identical, percent)),
            (text("Mean absolute difference"), figure(distance, three_digits)),
            (text("Correlation"), figure(scores.correlation, three_digits, "undefined here")),
            (text("Rank correlation"), figure(rank, three_digits, "not measured")),
        ),
        sortable=False,
    )


def calibration(audit: Audit, curves: Calibration) -> ReportTable:
    """Return mean scores and observed shares, before and after."""
    kinds = {"before": curves.before, "after": curves.after, "calibrated": curves.calibrated}
    return ReportTable(
        "calibration",
        "People with similar scores: their mean score, and the share with "
        f"{texts.score_label(audit.request)}. {texts.measured(audit)}",
        ("Scores", "People", "Mean score", "Observed share"),
        tuple(
            (text(f"{when} {i}"), *_calibration_cells(one))
            for when, bins in kinds.items()
            for i, one in enumerate(bins, start=1)
        ),
    )


def _calibration_cells(people: CalibrationBin) -> tuple[Cell, ...]:
    """Return the number of people, their mean score, and the observed share."""
    score = figure(people.mean_score, three_digits)
    return figure(people.n), score, interval(people.observed)


def brier_scores(audit: Audit, curves: Calibration) -> ReportTable:
    """Return Brier score and mean distance of each kind of score."""
    rows = [
        ("Base score (before)", curves.brier_before, curves.error_before),
        ("Edited score (after)", curves.brier_after, curves.error_after),
        ("Calibrated probability", curves.brier_calibrated, curves.error_calibrated),
    ]
    return ReportTable(
        "brier-scores",
        f"How near scores are to the true labels: those of {texts.score_label(audit.request)}. The "
        "Brier score is the mean squared difference. The distance is that of mean score and "
        f"observed share in the bins below. Lower is better. {texts.measured(audit)}",
        ("Score", "Brier score", "Mean distance"),
        tuple(
            (text(name), *(figure(value, three_digits, "not measured") for value in values))
            for name, *values in rows
        ),
        sortable=False,
    )


def changed_calibration(audit: Audit, curves: Calibration) -> ReportTable:
    """Return the calibrated probability of people who change, beside their true labels."""
    people = (("gain", curves.gains), ("loss", curves.losses))
    return ReportTable(
        "changed-calibration",
        "People whose decision changes: a calibrated probability keeps the decision, so it stays "
        "on the decision's side of the threshold, wherever their true labels are. The share is "
        f"that of {texts.score_label(audit.request)}. {texts.measured(audit)}",
        ("Change", "People", "Mean calibrated probability", "Observed share"),
        tuple(
            (text(DIRECTIONS[change]), *_calibration_cells(one))
            for change, one in people
            if one is not None
        ),
        sortable=False,
    )


# Stability ----------------------------------------------------------------------------------------


def stability_histogram(stability: StabilitySummary) -> ReportTable:
    """Return how many people change in which share of the refits."""
    n_bins = len(stability.histogram)
    return ReportTable(
        "stability-histogram",
        f"In how many of the {count(stability.n_refits)} refits the decisions of "
        f"{count(stability.n_rows)} people change.",
        ("Share of refits", "People"),
        tuple(
            (text(f"{percent(i / n_bins, 0)} to {percent((i + 1) / n_bins, 0)}"), figure(n))
            for i, n in enumerate(stability.histogram)
        ),
        sortable=False,
    )


def stability_columns(stability: StabilitySummary) -> ReportTable:
    """Return the share of refits whose scorecard uses each column."""
    shares = sorted(stability.columns.items(), key=lambda item: -item[1])
    n_more = len(shares) - MOST_COLUMNS
    return table_of(
        "stability-columns",
        f"Share of the {count(stability.n_refits)} refits whose scorecard uses a column.",
        shares[:MOST_COLUMNS],
        (("Column", lambda item: text(item[0])), ("Refits", lambda item: figure(item[1], percent))),
        more=f"{count(n_more)} columns that recur less often are not shown." if n_more > 0 else "",
    )


# Strata -------------------------------------------------------------------------------------------

MAX_STRATA = 30  # in a report; the JSON of the audit has all of them


def strata(audit: Audit) -> list[tuple[Fairness, ReportTable]]:
    """Return each conditional metric with a table of its strata, the least fair first."""
    return [(f, _strata(audit, f, f.strata)) for f in audit.fairness if f.strata is not None]


def _strata(audit: Audit, metric: Fairness, found: StratumTable) -> ReportTable:
    """Return one row per stratum and group; a stratum is named and measured in its first row."""
    rows = [
        (stratum if i == 0 else None, group)
        for stratum in found.listed[:MAX_STRATA]
        for i, group in enumerate(stratum.groups)
    ]

    def rates(values: Sequence[float | None]) -> Cell:
        return Cell(" / ".join(percent(value) for value in values), kind="number")

    def value(stratum: Stratum | None, when: str) -> Cell:
        if stratum is None:
            return text("")
        number = getattr(stratum, when)
        return figure(number, partial(texts.bounded_number, bound=metric.bound), "undefined here")

    n_more = len(found.listed) - MAX_STRATA
    return table_of(
        "strata",
        f"{texts.sentence_case(metric.name)} in each stratum, the least fair first, with the "
        f"groups' {' / '.join(found.measures)}. Measured on {n_of(found.n_people, 'person')}, "
        "without intervals.",
        rows,
        (
            (found.column, lambda row: text("" if row[0] is None else row[0].name)),
            ("Metric before", lambda row: value(row[0], "before")),
            ("Metric after", lambda row: value(row[0], "after")),
            ("Group", lambda row: text(row[1].name)),
            ("People", lambda row: figure(row[1].n)),
            ("Before", lambda row: rates(row[1].before)),
            ("After", lambda row: rates(row[1].after)),
        ),
        sortable=False,
        more=f"{n_of(n_more, 'stratum')} more are in the JSON of the audit." if n_more > 0 else "",
    )


# ROC curves of groups -----------------------------------------------------------------------------

MOST_CURVES = 5  # in one picture


def roc_areas(audit: Audit, roc: RocFigures) -> ReportTable:
    """Return the area under the ROC curve of each group."""
    label = texts.score_label(audit.request)

    def cell(group: GroupRoc, area: Estimate | None) -> Cell:
        if group.why_unknown:
            return Cell("not known", group.why_unknown, None, "number")
        return interval(area, three_digits, "not measured")

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


def curve_gaps(audit: Audit, roc: RocFigures) -> ReportTable:
    """Return the areas between ROC curves: the largest one, and every group beside the reference.

    With two groups, both are the same pair, which is listed once.
    """
    beside = f"beside {shorten(roc.reference or '', 40)}"
    rows = [
        (Cell(g.name, beside), *_area(g.gap_before), *_area(g.gap_after))
        for g in roc.groups
        if g.name != roc.reference and not g.why_unknown
    ]
    if len(rows) > 1:
        before, after = (
            None if largest is None else largest.gap
            for largest in (roc.largest_before, roc.largest_after)
        )
        largest_of_all = Cell("largest of all pairs", _pairs(roc))
        rows.insert(0, (largest_of_all, *_area(before), *_area(after)))
    return ReportTable(
        "curve-gaps",
        "Area between the ROC curve of each group and that of the largest group (ABROCA). 0 means "
        "that the scores rank both groups equally well at every threshold. Chance alone makes it "
        "positive: “by chance” is "
        f"its mean if the true curves were equal, and what it exceeds in {texts.rarely(audit)}. "
        f"{texts.measured(audit)}",
        ("Group", "Before", "Before, by chance", "After", "After, by chance"),
        tuple(rows),
        sortable=False,
    )


def _pairs(roc: RocFigures) -> str:
    """Return the pairs with the largest areas, before and after, once if they are the same."""
    known = [pair for pair in (roc.largest_before, roc.largest_after) if pair is not None]
    named = dict.fromkeys(f"{shorten(p.first, 30)} and {shorten(p.second, 30)}" for p in known)
    return "; then ".join(named)


def _area(gap: AreaBetween | None) -> tuple[Cell, Cell]:
    """Return an area between two curves, and what chance alone would give."""
    if gap is None:
        return (figure(None, three_digits, "not measured"),) * 2
    mean, high = three_digits(gap.chance), three_digits(gap.chance_high)
    chance = Cell(mean, f"up to {high}", gap.chance, "number")
    return interval(gap.area, three_digits, "not measured"), chance


def curve_points(audit: Audit, roc: RocFigures) -> ReportTable:
    """Return the points of the drawn curves."""
    return ReportTable(
        "curve-points",
        "Points of the ROC curves. At least five people lie between two points. Measured on the "
        f"{texts.evaluated_rows(audit)}.",
        ("Group", "When", "False positive rate", "True positive rate"),
        tuple(
            (text(group.name), text(when), *(figure(rate, percent) for rate in point))
            for group in drawn_groups(roc)
            for when, curve in (("before", group.curve_before), ("after", group.curve_after))
            for point in curve
        ),
    )


def drawn_groups(roc: RocFigures) -> list[GroupRoc]:
    """Return the groups of the picture: the reference, then those farthest from it."""

    def distance(group: GroupRoc) -> float:
        gap = group.gap_after or group.gap_before
        value = None if gap is None else gap.area.value
        return float("inf") if value is None else value

    known = [group for group in roc.groups if not group.why_unknown]
    return sorted(known, key=distance, reverse=True)[:MOST_CURVES]
