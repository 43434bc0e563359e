"""Print the demo: the result in one sentence, then the problem, the update, and what it costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from commod._text import EVIDENCE, visible
from commod.cli._printing import console

if TYPE_CHECKING:
    from commod import Audit, Explanation
    from commod._record import Group
    from commod._record.audit import Fairness


WIDTH = 40  # characters of a share of 1
NAME_WIDTH = 18


@dataclass(frozen=True)
class GroupBar:
    """The share of one group before the update and, where it is known, after it."""

    name: str
    before: float
    after: float | None = None


@dataclass(frozen=True)
class Marks:
    """The characters of a picture: a kept, a gained and a lost part of a share, and the target."""

    kept: str = "█"
    gained: str = "▒"
    lost: str = "·"
    target: str = "┆"
    arrow: str = "→"


ASCII = Marks("#", "+", ".", "|", "->")


def bar_line(bar: GroupBar, target: float | None, marks: Marks) -> tuple[str, str, str]:
    """Return name, bar and figures of one group; the bar always has WIDTH characters.

    Examples
    --------
    >>> bar_line(GroupBar("women", 0.25, 0.5), 0.6, ASCII)
    ('women             ', '##########++++++++++    |               ', '25.0% -> 50.0%')
    """
    after = bar.before if bar.after is None else bar.after
    ends = [round(WIDTH * share) for share in (min(bar.before, after), max(bar.before, after))]
    moved = marks.gained if after > bar.before else marks.lost
    cells = list((marks.kept * ends[0] + moved * (ends[1] - ends[0])).ljust(WIDTH))
    if target is not None:
        position = min(round(WIDTH * target), WIDTH - 1)
        if cells[position] == " ":  # a longer bar covers the mark
            cells[position] = marks.target
    figures = f"{bar.before:.1%}"
    if bar.after is not None:
        figures += f" {marks.arrow} {bar.after:.1%}"
    name = bar.name if len(bar.name) <= NAME_WIDTH else bar.name[: NAME_WIDTH - 1] + "…"
    return name.ljust(NAME_WIDTH), "".join(cells), figures


N_TERMS = 5  # of the scorecard; the report shows all
N_RULES = 1
ROUNDING = 1e-9  # of an expectation
MAX_WIDTH = 80  # columns; longer lines are hard to read
# What terminals without these characters show in their place.
PLAIN = str.maketrans(
    {"→": "->", "−": "-", "≥": ">=", "≤": "<=", "“": '"', "”": '"', "…": "...", "·": "."}
)
DIRECTIONS = {
    "any": "either direction",
    "gains_only": "gains only",
    "losses_only": "losses only",
}


def headline(audit: Audit) -> str:
    """Return whether the target is kept on the measured rows, in one sentence or two."""
    fairness = audit.fairness[0]
    before, after = fairness.before.value, fairness.after.value
    if before is None or after is None:
        return f"No news: the {fairness.name} cannot be measured on these {audit.n:,} people."
    went = f"the {fairness.name} goes from {before:.2f} to {after:.2f} on {audit.n:,} new people"
    if fairness.bound is None:
        return f"The {went.removeprefix('the ')}. No target was asked for."
    asked = f"{'at least' if fairness.higher_is_fairer else 'at most'} {fairness.bound:g}"
    if fairness.is_kept:
        return f"Good news: the target is kept. {went[0].upper()}{went[1:]}; asked was {asked}."
    low, high = fairness.after.low, fairness.after.high
    missed = f"The target is missed: {went}; asked was {asked}."
    if low is None or high is None:
        return missed
    contains = low <= fairness.bound <= high
    why = (
        "It contains the target, so chance explains the miss: about half of all samples miss a "
        "target that is kept in expectation."
        if contains
        else "It does not contain the target: these people differ from the fit rows by more than "
        "chance explains."
    )
    return f"{missed} The {audit.level:.0%} interval is {low:.2f} to {high:.2f}. {why}"


class DemoPrinter:
    """Print the three acts, at most 80 columns wide."""

    def __init__(self) -> None:
        self.console = console()
        self.console.width = min(self.console.width, MAX_WIDTH)
        self.marks = ASCII if self.console.options.ascii_only else Marks()

    def title(self, text: str) -> None:
        """Print a heading."""
        self.console.print()
        self.console.rule(f"[bold]{text}", align="left", characters="-" if self._ascii else "─")

    def text(self, text: str = "", style: str | None = None) -> None:
        """Print text, wrapped at words."""
        self.console.print(self._shown(text), style=style, markup=False, highlight=False)

    @property
    def _ascii(self) -> bool:
        return self.marks is ASCII

    def _shown(self, text: str) -> str:
        """Return text that the terminal can show."""
        shown = visible(text, keep="\n")
        if self._ascii:
            shown = shown.translate(PLAIN).encode("ascii", "replace").decode("ascii")
        return shown

    def bars(self, bars: Sequence[GroupBar], target: float | None = None) -> None:
        """Draw the shares of groups, with a mark at the target."""
        from rich.text import Text

        self.console.print()
        for bar in bars:
            name, cells, figures = bar_line(bar, target, self.marks)
            line = Text(f"  {self._shown(name)} ")
            line.append(cells)
            line.highlight_regex(_one_of(self.marks.kept), "cyan")
            line.highlight_regex(_one_of(self.marks.gained), "bold green")
            line.highlight_regex(_one_of(self.marks.lost), "bold red")
            line.append(f" {figures}")
            self.console.print(line, no_wrap=True)
        self.console.print()

    def table(self, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Print a table without lines between its rows."""
        from rich import box
        from rich.table import Table
        from rich.text import Text

        table = Table(box=box.SIMPLE_HEAD, pad_edge=True)
        for number, heading in enumerate(headings):
            justify: Any = "right" if number else "left"
            table.add_column(Text(self._shown(heading)), justify=justify, overflow="fold")
        for row in rows:
            table.add_row(*(Text(self._shown(cell)) for cell in row))
        self.console.print(table)


def _one_of(mark: str) -> str:
    import re

    return f"{re.escape(mark)}+"


def print_problem(printer: DemoPrinter, audit: Audit, *, counts_errors: bool) -> None:
    """Print act 1: the rates of the groups before the update, as a picture."""
    printer.title("1. The problem")
    fairness = audit.fairness[0]
    if counts_errors:
        printer.text(
            "The model was trained without race. Of the people who are not arrested again, it "
            "calls more African-American people “high risk”, as ProPublica found:"
        )
        printer.bars(
            [GroupBar(group.name, _false_alarms(group, audit)[0]) for group in audit.groups]
        )
        return
    printer.text(
        "The model was trained without race. It calls African-American people “low risk” less "
        "often than others:"
    )
    rates = [group.favorable_before.value or 0.0 for group in audit.groups]
    names = [group.name for group in audit.groups]
    goal = None if fairness.bound is None else fairness.bound * max(rates)
    printer.bars([GroupBar(*pair) for pair in zip(names, rates, strict=True)], goal)
    if goal is not None and fairness.before.value is not None:
        printer.text(
            f"The P-rule is {fairness.before.value:.2f}: the lowest rate divided by the highest. "
            f"The target is {fairness.bound:g}, or {goal:.1%} here ({printer.marks.target})."
        )


def print_update(printer: DemoPrinter, audit: Audit, *, counts_errors: bool) -> None:
    """Print act 2: the rates after the update, what was asked, and the scorecard."""
    from commod._reporting.render.texts import asked_expected_measured

    printer.title("2. The update")
    bars = []
    for group in audit.groups:
        shares = (
            _false_alarms(group, audit)
            if counts_errors
            else (group.favorable_before.value or 0.0, group.favorable_after.value or 0.0)
        )
        bars.append(GroupBar(group.name, *shares))
    printer.bars(bars)
    if line := asked_expected_measured(audit):
        fairness = audit.fairness[0]
        low, high = fairness.after.low, fairness.after.high
        if low is not None and high is not None:
            line += f" The {audit.level:.0%} interval of the measured value is {low:.2f} to "
            line += f"{high:.2f}."
        printer.text(line)
    card = audit.card
    assert card is not None
    rule = (
        f"A decision may change where r(x) < 0. r starts at {card.intercept:+.2f}; each term adds "
        "its points; a minus pushes towards a change."
    )
    if card.rule is not None:
        start = f"Start at {card.intercept:+.2f} and add the points."
        rule = " ".join([start, *card.rule.sentences, EVIDENCE])
    printer.text(
        f"\nThe update is a scorecard of {len(card.lines)} terms. {rule} The "
        f"{min(N_TERMS, len(card.lines))} strongest terms:"
    )
    rows = [(term.text, f"{term.points:+.3f} {term.unit}".rstrip()) for term in card.lines]
    printer.table(("term", "points in r" if card.rule is None else "points"), rows[:N_TERMS])


def print_costs(
    printer: DemoPrinter,
    audits: Sequence[Audit],
    explanation: Explanation,
    *,
    counts_errors: bool,
) -> None:
    """Print act 3: who changes and what it costs, and the same for the update beside it."""
    printer.title("3. Who changes, and what it costs")
    headings = ["", *(DIRECTIONS[audit.request.direction] for audit in audits)]
    headings[1] += " (this update)"
    columns = [_costs(audit) for audit in audits]
    rows = [(name, *(column[name] for column in columns)) for name in columns[0]]
    printer.table(headings, rows)
    printer.text(
        "False alarms are people who are called “high risk” and are not arrested again. The fewest "
        "changes possible are those of a method that knows everybody's group, for the same P-rule."
        if not counts_errors
        else "False alarms are people who are called “high risk” and are not arrested again."
    )
    for other in audits[1:]:
        if _expects_to_miss(other):
            printer.text(
                f"With {DIRECTIONS[other.request.direction]}, no update was found that is expected "
                "to reach the target."
            )
    segments = audits[0].segments
    for rule in () if segments is None else segments.segments[:N_RULES]:
        printer.text(
            f"\nWho changes: {rule.n_changed} of the {rule.size} people with {rule.text}. They are "
            f"{rule.coverage:.0%} of all changes of this kind ({rule.direction})."
        )
    changed = explanation.gain | explanation.loss
    if changed.any():
        person = explanation.person(int(changed.argmax()))
        printer.text(f"\nOne person: {person.sentence}")


def _costs(audit: Audit) -> dict[str, str]:
    """Return the figures of one update, by the name of the row of the table."""
    fairness, changes, quality = audit.fairness[0], audit.changes, audit.quality
    n_changes = changes.n_gains + changes.n_losses
    figures = {
        "people whose decision changes": f"{n_changes} ({n_changes / audit.n:.1%})",
        "gain, lose “low risk”": f"{changes.n_gains}, {changes.n_losses}",
    }
    figures |= {f"  {group.name}": f"{group.n_gains}, {group.n_losses}" for group in audit.groups}
    figures[fairness.name] = _before_after(fairness, ".2f")
    if audit.expected is not None:
        figures["  expected on new people"] = f"{audit.expected.fairness:.2f}"
    alarms = [_false_alarms(group, audit) for group in audit.groups]
    gaps = [max(column) - min(column) for column in zip(*alarms, strict=True)]
    figures["false alarms, gap of groups"] = f"{gaps[0]:.2f} → {gaps[1]:.2f}"
    if quality is not None:
        pair = (quality.accuracy_before.value, quality.accuracy_after.value)
        figures["accuracy"] = " → ".join(_number(value, ".1%") for value in pair)
    if audit.limit.n_fewest is not None:
        figures["fewest changes possible"] = str(audit.limit.n_fewest)
    return figures


def _expects_to_miss(audit: Audit) -> bool:
    """Return whether the target is not expected on new people."""
    fairness, expected = audit.fairness[0], audit.expected
    if expected is None or fairness.bound is None:
        return False
    distance = expected.fairness - fairness.bound
    return (distance if fairness.higher_is_fairer else -distance) < -ROUNDING


def _before_after(fairness: Fairness, style: str) -> str:
    pair = (fairness.before.value, fairness.after.value)
    return " → ".join(_number(value, style) for value in pair)


def _false_alarms(group: Group, audit: Audit) -> tuple[float, float]:
    """Return the share called high risk (1) of those not arrested again (0), before and after.

    The audit has the rates of `pos_label`; if that is low risk (0), the others are called high
    risk.
    """
    counts_low_risk = audit.request.pos_label == 0
    rate = "true_positive" if counts_low_risk else "false_positive"
    before, after = (
        getattr(getattr(group, f"{rate}_{when}"), "value", None) or 0.0
        for when in ("before", "after")
    )
    return (1 - before, 1 - after) if counts_low_risk else (before, after)


def _number(value: float | None, style: str) -> str:
    return "not known" if value is None else format(value, style)
