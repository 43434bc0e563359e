"""Every table of a report, as plain text: one list of them for HTML, Markdown and the slider."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from commod._record import (
    Audit,
    Calibration,
    Card,
    CardLine,
    Concept,
    Estimate,
    Group,
    Quality,
    Segments,
    StabilitySummary,
    TradeOff,
)
from commod._reporting.render import words
from commod._text import (
    NOT_KNOWN,
    count,
    number,
    percent,
    percentage_points,
    points,
    shorten,
)

__all__ = ["Cell", "Table"]

LINES = 12  # of a scorecard before the rest is folded away
MOST_LINES = 400  # even unfolded; the whole of it is in the audit's JSON
COLUMNS = 30  # that recur in refits
MOST_GROUPS = 60


@dataclass(frozen=True)
class Cell:
    """Text, a smaller second line, what to sort by, and how it is set."""

    text: str
    note: str = ""
    sort: float | None = None
    kind: str = "text"
    tone: str = ""
    limit: int = words.NAME


@dataclass(frozen=True)
class Table:
    """A caption, the names of the columns, rows of cells, and what was left out."""

    key: str
    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    sortable: bool = True
    more: str = ""


# cells --------------------------------------------------------------------------------------------


def name(text: Any) -> Cell:
    """Return a name that came from outside, or a short text."""
    return Cell(str(text))


def sentence(text: str) -> Cell:
    """Return a sentence."""
    return Cell(text, limit=words.SENTENCE)


def figure(
    value: float | None, write: Callable[[float | None], str] = count, reason: str = ""
) -> Cell:
    """Return a number that is sorted by its value."""
    return Cell(write(value), reason if value is None else "", value, "number")


def interval(
    figures: Estimate | None,
    write: Callable[[float | None], str] = percent,
    reason: str = "no labels",
) -> Cell:
    """Return a figure with its interval on the second line, or why there is none."""
    if figures is None:
        return Cell(NOT_KNOWN, reason, None, "number")
    if figures.value is None:
        return Cell(NOT_KNOWN, "undefined here", None, "number")
    low, high = figures.low, figures.high
    if low is None and high is None:
        note = "no interval"
    elif low is None or high is None:
        note = f"at most {write(high)}" if low is None else f"at least {write(low)}"
    else:
        note = f"{_without_unit(write(low))} to {write(high)}"
    return Cell(write(figures.value), note, figures.value, "number")


def direction(word: str) -> Cell:
    """Return a direction, with its sign and colour."""
    return Cell({"gain": "▲ gain", "loss": "▼ loss"}[word], tone=word)


def three_digits(value: float | None) -> str:
    """Return a number with three digits behind the point."""
    return number(value, 3)


# tables -------------------------------------------------------------------------------------------


def shown_groups(audit: Audit) -> list[Group]:
    """Return the groups that are shown: those that are compared first, and not thousands."""
    ordered = sorted(audit.groups, key=lambda group: not group.compared)
    return ordered[:MOST_GROUPS]


def _left_out(n: int) -> str:
    more = n - MOST_GROUPS
    return f"{count(more)} more groups are in the audit's JSON." if more > 0 else ""


def rates(audit: Audit) -> Table:
    """Return the favourable outcome by group, before and after: the numbers of the first chart."""
    return Table(
        "rates",
        f"Share of each group with {words.outcome(audit.request)}. {words.measured(audit)}",
        ("Group", "People", "Before", "After"),
        tuple(
            (name(g.name), figure(g.n), interval(g.favorable_before), interval(g.favorable_after))
            for g in shown_groups(audit)
        ),
        more=_left_out(len(audit.groups)),
    )


def segments(found: Segments, caption: str) -> Table:
    """Return the rules that describe who changes."""
    return Table(
        "segments",
        caption,
        (
            "Direction",
            "Rule",
            "Change",
            "New in this rule",
            "Share that changes",
            "Share of all such changes",
        ),
        tuple(
            (
                direction(s.direction),
                Cell(s.text, limit=words.SENTENCE // 2),
                Cell(f"{count(s.n_changed)} of {count(s.size)}", "", s.n_changed, "number"),
                figure(s.n_new),
                interval(s.precision),
                figure(s.coverage, percent),
            )
            for s in found.segments
        ),
    )


def step_segments(found: Segments) -> Table:
    """Return the rules of one step of a trade-off; no intervals, as their level is not known."""
    whole = segments(found, "Rules that describe who changes.")
    kept = (0, 1, 2, 4)
    return replace(
        whole,
        columns=tuple(whole.columns[i] for i in kept),
        rows=tuple(tuple(replace(row[i], note="") for i in kept) for row in whole.rows),
    )


def scorecard(card: Card, caption: str, *, with_spread: bool = True, most: int = LINES) -> Table:
    """Return the total scorecard, its strongest lines if there are many."""
    lines = _strongest(card.lines, most)
    columns: tuple[str, ...] = ("Line", "Points on r", "Pushes", "Spread in r", "Concept")
    rows = [_card_row(line) for line in lines]
    rows.insert(0, (name("(everybody starts with)"), _points(card.intercept), *[Cell("")] * 3))
    if not with_spread:
        columns, rows = columns[:3], [row[:3] for row in rows]
    hidden = len(card.lines) - len(lines)
    more = f"{count(hidden)} weaker lines are not shown here." if hidden else ""
    return Table("scorecard", caption, columns, tuple(rows), more=more)


def concept(found: Concept, most: int = LINES) -> Table:
    """Return the points of one concept, told on −r."""
    lines = found.lines[:most]
    hidden = len(found.lines) - len(lines)
    return Table(
        f"concept-{found.number}",
        "Its points on −r: positive points push towards a change.",
        ("Line", "Points on −r"),
        tuple((_line_name(line), _points(line.points)) for line in lines),
        sortable=False,
        more=f"{count(hidden)} weaker lines are not shown." if hidden else "",
    )


def concepts(audit: Audit, card: Card) -> Table:
    """Return how often decisions change where a concept is active and where it is not."""
    return Table(
        "concepts",
        "How often a decision changes where a concept is active (its push towards a change is "
        "above its mean on the fit rows) and where it is not. The factor with which it enters r is "
        f"already in its points. {words.measured(audit)}",
        ("Concept", "Factor in r", "Active", "Change if active", "Not active", "Change if not"),
        tuple(
            (
                name(f"{c.number}. {c.name}"),
                _points(c.contribution),
                figure(c.n_active),
                interval(c.change_if_active),
                figure(c.n_inactive),
                interval(c.change_if_inactive),
            )
            for c in card.concepts
        ),
    )


def outcomes(audit: Audit) -> Table:
    """Return who gains, who loses and how often outcomes occur, by group."""
    counted = words.counted(audit.request).removeprefix("the ").capitalize()
    return Table(
        "outcomes",
        f"Outcomes by group. {words.measured(audit)}",
        (
            "Group",
            "People",
            "Gains",
            "Losses",
            "Favourable before",
            "Favourable after",
            f"{counted} before",
            f"{counted} after",
        ),
        tuple(
            (
                Cell(g.name, "" if g.compared else "not compared"),
                figure(g.n),
                figure(g.n_gains),
                figure(g.n_losses),
                interval(g.favorable_before),
                interval(g.favorable_after),
                interval(g.selected_before),
                interval(g.selected_after),
            )
            for g in shown_groups(audit)
        ),
        more=_left_out(len(audit.groups)),
    )


def errors(audit: Audit) -> Table:
    """Return how right decisions are, and the mean score, by group."""
    return Table(
        "errors",
        f"Right and wrong decisions by group, and mean scores. {words.measured(audit)}",
        (
            "Group",
            f"Truly {words.counted(audit.request)}",
            "Accuracy before",
            "Accuracy after",
            "True positives before",
            "True positives after",
            "False positives before",
            "False positives after",
            "Mean score before",
            "Mean score after",
        ),
        tuple(
            (
                name(g.name),
                figure(g.n_positive_labels, reason="no labels"),
                *map(
                    interval,
                    (
                        g.accuracy_before,
                        g.accuracy_after,
                        g.true_positive_before,
                        g.true_positive_after,
                        g.false_positive_before,
                        g.false_positive_after,
                    ),
                ),
                figure(g.mean_score_before, three_digits, "not known"),
                figure(g.mean_score_after, three_digits, "not known"),
            )
            for g in shown_groups(audit)
        ),
        more=_left_out(len(audit.groups)),
    )


def fairness(audit: Audit) -> Table:
    """Return every fairness measure before and after."""
    n = audit.fairness[0].n if audit.fairness else None
    return Table(
        "fairness",
        f"Fairness measures. {words.measured(audit, n)}",
        ("Measure", "What it is", "Before", "After", "Fairer is"),
        tuple(
            (
                Cell(f.metric, "asked for" if f.asked and audit.request.target is not None else ""),
                sentence(words.meaning(f.constraints, audit.request) or f.constraints),
                interval(f.before, three_digits),
                interval(f.after, three_digits),
                name("higher" if f.higher_is_fairer else "lower"),
            )
            for f in audit.fairness
        ),
    )


def quality(audit: Audit, found: Quality) -> Table:
    """Return accuracy and area under the curve before and after."""
    return Table(
        "quality",
        f"How right decisions and scores are. {words.measured(audit)}",
        ("Measure", "Before", "After"),
        (
            (
                name("Accuracy of the decisions"),
                interval(found.accuracy_before),
                interval(found.accuracy_after),
            ),
            (
                name("Area under the curve (AUC) of the scores"),
                interval(found.auc_before, three_digits, "not known"),
                interval(found.auc_after, three_digits, "not known"),
            ),
            (
                name("Its loss, before minus after"),
                Cell(""),
                interval(found.auc_loss, three_digits, "not known"),
            ),
        ),
        sortable=False,
    )


def agreement(audit: Audit) -> Table | None:
    """Return how close the scores before and after are; None without scores."""
    found = audit.agreement
    if found is None:
        return None
    return Table(
        "agreement",
        f"How close the edited scores are to the base model's, on the {count(audit.n)} "
        f"{shorten(audit.rows, 60)}.",
        ("Measure", "Value"),
        (
            (name("Scores that are identical"), figure(found.share_identical, percent)),
            (
                name("Mean absolute difference"),
                figure(found.mean_absolute_difference, three_digits),
            ),
            (name("Correlation"), figure(found.correlation, three_digits, "undefined here")),
            (
                name("Rank correlation"),
                figure(found.rank_correlation, three_digits, "not known"),
            ),
        ),
        sortable=False,
    )


def calibration(audit: Audit, found: Calibration) -> Table:
    """Return mean scores beside what happened, before and after."""
    return Table(
        "calibration",
        "People with similar scores: their mean score and the share that has "
        f"{words.counted(audit.request)}. {words.measured(audit)}",
        ("Scores", "People", "Mean score", "Observed share"),
        tuple(
            (
                name(f"{when} {i}"),
                figure(b.n),
                figure(b.mean_score, three_digits),
                interval(b.observed),
            )
            for when, bins in (("before", found.before), ("after", found.after))
            for i, b in enumerate(bins, start=1)
        ),
    )


def proxies(audit: Audit) -> Table:
    """Return how well the update tells who belongs to a group."""
    return Table(
        "proxies",
        "How well the update tells who belongs to a group: area under the curve; 0.5 is not at "
        f"all, 0 and 1 are perfectly. {words.measured(audit)}",
        ("Group", "Told by", "The update", "The base model's score"),
        tuple(
            (
                name(p.group),
                name("−r" if p.by_ratio else "the change itself"),
                interval(p.update, three_digits),
                interval(p.base_score, three_digits, "not known"),
            )
            for p in audit.proxies
        ),
    )


def subgroups(audit: Audit) -> Table:
    """Return the subgroups that remain badly served."""
    found = audit.subgroups
    return Table(
        "subgroups",
        "Subgroups that fare worse than those they are compared with, worst first. "
        + words.measured(audit, level=found.level),
        ("Subgroup", "Share of", "People", "Before", "After", "Compared with", "Theirs", "Gap"),
        tuple(
            (
                Cell(s.name, limit=words.SENTENCE // 4),
                name(s.what),
                figure(s.n),
                figure(s.rate_before, percent),
                interval(s.rate),
                Cell(s.compared_with, f"{count(s.n_others)} people", limit=words.SENTENCE // 4),
                figure(s.others, percent),
                interval(s.gap, percentage_points),
            )
            for s in found.listed
        ),
    )


def small_groups(audit: Audit) -> Table:
    """Return the groups that are too small to compare."""
    return Table(
        "small-groups",
        "Groups with too few people to say anything; they are in no comparison.",
        ("Group", "People", "Needed"),
        tuple(
            (name(g.name), figure(g.n), figure(g.needed)) for g in audit.small_groups[:MOST_GROUPS]
        ),
        more=_left_out(len(audit.small_groups)),
    )


STATES = {
    "passed": "✓ passed",
    "failed": "✗ failed",
    "not enough evidence": "? not enough evidence",
}


def checks(audit: Audit) -> Table:
    """Return the checks; each state has a sign and a word."""
    return Table(
        "checks",
        "Questions with stable codes, and what was found.",
        ("Code", "Question", "State", "What was found"),
        tuple(
            (
                name(c.code),
                name(c.title),
                Cell(STATES[c.state], tone=c.state.replace(" ", "-")),
                sentence(c.sentence),
            )
            for c in audit.checks
        ),
    )


def stability_histogram(found: StabilitySummary) -> Table:
    """Return how many people change how often."""
    return Table(
        "stability-histogram",
        f"How often the decision of one of {count(found.n_rows)} people changes in "
        f"{count(found.n_refits)} refits.",
        ("Share of refits", "People"),
        tuple(
            (name(_tenth(i, len(found.histogram))), figure(n))
            for i, n in enumerate(found.histogram)
        ),
        sortable=False,
    )


def stability_columns(found: StabilitySummary) -> Table:
    """Return which columns recur in the scorecards of the refits."""
    listed = sorted(found.columns.items(), key=lambda item: -item[1])
    shown = listed[:COLUMNS]
    hidden = len(listed) - len(shown)
    return Table(
        "stability-columns",
        f"Share of the {count(found.n_refits)} refits whose scorecard uses a column.",
        ("Column", "Refits"),
        tuple((name(column), figure(share, percent)) for column, share in shown),
        more=f"{count(hidden)} columns that recur less are not shown." if hidden else "",
    )


def steps(trade_off: TradeOff) -> Table:
    """Return all steps of a trade-off, one line each, the base model first."""
    has_settings = any(step.settings for step in trade_off.steps)
    columns: tuple[str, ...] = (
        "Step",
        "Target",
        trade_off.metric,
        "Change",
        "Gains",
        "Losses",
        "Fewest possible",
        "Accuracy",
        "Who changes",
    )
    base = (
        name("base model"),
        Cell(""),
        figure(trade_off.base_fairness, three_digits),
        Cell("0", "0.0%", 0.0, "number"),
        figure(0),
        figure(0),
        Cell(""),
        figure(trade_off.base_accuracy, percent, "no labels"),
        Cell(""),
    )
    rows = [
        (
            Cell(str(i), "", i, "number"),
            figure(s.target, words.target),
            figure(s.fairness, three_digits),
            Cell(count(s.n_changes), percent(s.change_rate), s.n_changes, "number"),
            figure(s.n_gains),
            figure(s.n_losses),
            figure(s.limit, percent),
            figure(s.accuracy, percent, "no labels"),
            Cell(_rules(s.segments), settings(s.settings) if has_settings else "", limit=160),
        )
        for i, s in enumerate(trade_off.steps, start=1)
    ]
    return Table(
        "steps",
        f"Every step of the trade-off ({shorten(trade_off.method)}), measured on the "
        f"{count(trade_off.n_rows)} {shorten(trade_off.rows, 60)}. Fewest possible is the "
        "smallest share of changes that reaches the same fairness, with everybody's group in hand.",
        columns,
        (base, *rows),
    )


def settings(values: dict[str, float | None]) -> str:
    """Return the settings of a step as text."""
    return ", ".join(
        f"{key} = {'none' if value is None else f'{value:g}'}" for key, value in values.items()
    )


def _rules(found: Segments | None) -> str:
    if found is None:
        return NOT_KNOWN
    return "; ".join(f"{s.direction}: {s.text}" for s in found.segments) or "nobody"


def _strongest(lines: Sequence[CardLine], most: int) -> Sequence[CardLine]:
    if len(lines) <= most:
        return lines

    def strength(line: CardLine) -> float:
        return abs(line.points) if line.spread is None else line.spread

    kept = {id(line) for line in sorted(lines, key=strength, reverse=True)[:most]}
    return [line for line in lines if id(line) in kept]


def _line_name(line: CardLine) -> Cell:
    return Cell(line.term, line.unit)


def _points(value: float) -> Cell:
    return figure(value, points)


def _card_row(line: CardLine) -> tuple[Cell, ...]:
    pushes = "towards a change" if line.points < 0 else "keeps the decision"
    return (
        _line_name(line),
        _points(line.points),
        Cell(pushes if line.points else "nothing", tone="push" if line.points < 0 else "keep"),
        Cell("not measured", kind="number")
        if line.spread is None
        else figure(line.spread, three_digits),
        Cell("several" if line.concept is None else str(line.concept), "", line.concept, "number"),
    )


def _without_unit(text: str) -> str:
    return text.removesuffix("%").removesuffix(" points")


def _tenth(place: int, of: int) -> str:
    low, high = (percent(edge / of, 0) for edge in (place, place + 1))
    return f"{low} to {high}"
