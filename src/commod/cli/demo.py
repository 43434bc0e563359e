"""`commod demo`: make a real model fairer in three acts, and open the page of the update."""

from __future__ import annotations

import re
import warnings
import webbrowser
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from commod._text import at_bound, visible
from commod._words.shared import EVIDENCE
from commod.cli._command import with_options
from commod.cli._options import Options
from commod.cli._printing import console
from commod.exceptions import InputError

if TYPE_CHECKING:
    from commod import COMMOD, Audit, ControlledDebiaser, Explanation
    from commod._record.audit import Group
    from commod._record.explanation import Estimate
    from commod.cli._rows import LoadedRows

    Update: TypeAlias = ControlledDebiaser | COMMOD
    People: TypeAlias = tuple[LoadedRows, LoadedRows, LoadedRows]

LABELS = {0: "low risk", 1: "high risk"}
TARGET = 0.8  # the P-rule that US guidelines on hiring call the four-fifths rule
MAX_MARGIN = 0.2  # nobody with a score below 0.3 or above 0.7 changes
LAMBDAS = (0.5, 1.0, 2.0, 3.0, 4.0, 6.0)  # the frontier of COMMOD
WIDTH = 40  # characters of a share of 1
NAME_WIDTH = 18
N_TERMS = 5  # of the scorecard; the report shows all
N_RULES = 1
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
IN_WORDS = {
    "any": "It gives “low risk” to people with many points, and takes it from people with few.",
    "gains_only": "It gives “low risk” to people with many points, and takes it from nobody.",
    "losses_only": "It takes “low risk” from people with few points, and gives it to nobody.",
}
FALSE_ALARMS = "False alarms are people who are called “high risk” and are not arrested again."


@with_options("commod demo --open", "commod demo --direction any --output my-folder")
def demo(options: Options) -> None:
    """Make a recidivism model fairer: the problem, the update, who changes and what it costs."""
    printer, folder = DemoPrinter(), options.folder
    folder.mkdir(parents=True, exist_ok=True)  # first: a bad folder must fail before the fit
    people = learned, fit_rows, new_rows = split(options.seed)
    with warnings.catch_warnings(), printer.console.status("The update is fitted ..."):
        warnings.simplefilter("ignore")  # the audit reports what the library warns of
        update = new_update(options, base_model(learned)).fit(**fit_rows.named())
        audit, explanation = audited(update, new_rows)
        other = _other_direction(update, fit_rows)
        audits = [audit] if other is None else [audit, audited(other, new_rows)[0]]
    printer.text(headline(audit), "bold")
    printer.text(
        f"\nThe model is a logistic regression. From {len(learned):,} people of the table "
        "COMPAS it learned who is arrested again within two years. The update is fitted on "
        f"{len(fit_rows):,} other people. Everything here is measured on {len(new_rows):,} "
        "people whom neither has seen."
    )
    _print_problem(printer, audit)
    _print_update(printer, audit)
    _print_costs(printer, audits)
    if other is not None and not other.reached_:
        printer.text(
            f"With {DIRECTIONS[other.direction]}, no update was found that is expected to reach "
            "the target."
        )
    _print_people(printer, audit, explanation)
    path = _write(update, audit, people, folder, printer)
    printer.text("\nNext: commod demo --open; the README has ten lines for your own model.")
    if options.open_page:
        _open(update, fit_rows, path, printer)


# ---------------------------------------------------------------------------------------------
# The update


def split(seed: int) -> People:
    """Return the people of COMPAS in three parts that share nobody, 40 %, 30 % and 30 %.

    The first are for the base model, the second for the update, the third for the measurement.
    """
    from sklearn.model_selection import train_test_split

    from commod.cli._rows import LoadedRows
    from commod.datasets import load_compas

    table: Any = load_compas()
    race = table.race.where(table.race == "African-American", "others")  # ProPublica's comparison
    everybody = LoadedRows(table.data, table.target, race)
    learned, others = train_test_split(range(len(race)), test_size=0.6, random_state=seed)
    fit, new = train_test_split(others, test_size=0.5, random_state=seed)
    return everybody.take(learned), everybody.take(fit), everybody.take(new)


def new_update(options: Options, model: Any) -> Update:
    """Return the update of the demo, not fitted; refuse a target and a direction for COMMOD.

    The label whose rates are compared is the favourable outcome, “low risk”, for all decisions.
    Rates among true labels are those of “high risk”: ProPublica counted people who are called high
    risk and are not arrested again.
    """
    from commod import COMMOD, ControlledDebiaser
    from commod.metrics._constraint import get_constraint

    counts_errors = get_constraint(options.demo_constraints).needs_labels
    common: dict[str, Any] = {
        "constraints": options.demo_constraints,
        "pos_label": 1 if counts_errors else 0,
        "favorable_label": 0,
    }
    told = {"target": options.demo_target, "direction": options.demo_direction}
    stated: dict[str, Any] = {name: value for name, value in told.items() if value is not None}
    if options.method == "COMMOD":
        for name in stated:
            raise InputError(f"--{name} belongs to --method ControlledDebiaser; this is COMMOD.")
        common |= {"random_state": options.seed, "training": {"progress": False}}
        return COMMOD(model, lambda_fair=3.0, lambda_ratio=0.2, **common)
    common |= {"direction": "gains_only", "max_margin": MAX_MARGIN}
    if not counts_errors:
        common["target"] = TARGET
    return ControlledDebiaser(model, **(common | stated))


def base_model(rows: LoadedRows) -> Any:
    """Return a logistic regression that learned from the first part of the people."""
    from sklearn.compose import make_column_selector, make_column_transformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MinMaxScaler, OneHotEncoder

    encode = make_column_transformer(
        (MinMaxScaler(), make_column_selector(dtype_include="number")),
        (OneHotEncoder(handle_unknown="ignore"), make_column_selector(dtype_exclude="number")),
    )
    model = make_pipeline(encode, LogisticRegression(max_iter=1000))
    return model.fit(rows.X, rows.y)


def _other_direction(update: Update, rows: LoadedRows) -> ControlledDebiaser | None:
    """Return the update of gains only, or of losses only where `update` itself is gains only."""
    from sklearn.base import clone

    from commod import ControlledDebiaser

    if not isinstance(update, ControlledDebiaser):  # COMMOD states no direction
        return None
    direction = "losses_only" if update.direction == "gains_only" else "gains_only"
    return clone(update).set_params(direction=direction).fit(**rows.named())


def audited(update: Update, rows: LoadedRows) -> tuple[Audit, Explanation]:
    """Return the audit and the explanation of an update on the people whom nobody has seen."""
    import commod

    explanation = commod.explain(update, rows.X)
    audit = commod.audit(
        update.estimator.predict(rows.X),
        update.predict(rows.X),
        sensitive_features=rows.groups,
        y_true=rows.y,
        X=rows.X,
        explanation=explanation,
        label_names=LABELS,
        rows="held-out people",
        title="Recidivism model (COMPAS): who changes, and why",
    )
    return audit, explanation


def _write(
    update: Update, audit: Audit, people: People, folder: Path, printer: DemoPrinter
) -> Path:
    """Write report, ledger and audit, and print their names; return the path of the report."""
    import commod
    from commod._io.files import write_whole, written_together

    rows = people[1].named() | people[2].named("_eval")
    if isinstance(update, commod.COMMOD):
        rows["grid"] = {"lambda_fair": LAMBDAS}
    with warnings.catch_warnings(), written_together():
        warnings.simplefilter("ignore")
        with printer.console.status("The report: the same for other targets ..."):
            frontier = commod.frontier(update, **rows)
            path = commod.report(audit, folder / "report.html", frontier=frontier)
        audit.ledger.to_csv(folder / "ledger.csv")
        write_whole(folder / "audit.json", audit.to_json().encode())
    printer.text(f"\nThe report: {path}", "bold")
    printer.text("It is one file that needs no network. Beside it: ledger.csv and audit.json.")
    return path


def _open(update: Update, rows: LoadedRows, report: Path, printer: DemoPrinter) -> None:
    """Open the page of the update until Ctrl-C; the report where a method has no page."""
    import commod
    from commod.cli.debias import in_browser

    if isinstance(update, commod.COMMOD):
        webbrowser.open(report.resolve().as_uri())
        return
    with commod.explore(update, **rows.named(), label_names=LABELS) as page:
        printer.text(f"Page: {page.url}")
        printer.text("Do not share the address. Press Ctrl-C to end.")
        with suppress(KeyboardInterrupt), in_browser(page.url, is_wanted=True):
            page.wait()


# ---------------------------------------------------------------------------------------------
# The printer


GroupBar: TypeAlias = tuple[str, float] | tuple[str, float, float]  # name, share before and after

# The characters of a picture: a kept, a gained and a lost part of a share, the target, an arrow.
MARKS = ("█", "▒", "·", "┆", "→")
ASCII = ("#", "+", ".", "|", "->")


def bar_line(bar: GroupBar, target: float | None, marks: Sequence[str]) -> tuple[str, str, str]:
    """Return name, bar and figures of one group; the bar always has WIDTH characters.

    Examples
    --------
    >>> bar_line(("women", 0.25, 0.5), 0.6, ASCII)
    ('women             ', '##########++++++++++    |               ', '25.0% -> 50.0%')
    """
    name, *shares = bar
    before, after = shares[0], shares[-1]
    kept, gained, lost, goal, arrow = marks
    ends = [round(WIDTH * share) for share in (min(shares), max(shares))]
    moved = gained if after > before else lost
    cells = list((kept * ends[0] + moved * (ends[1] - ends[0])).ljust(WIDTH))
    if target is not None:
        position = min(round(WIDTH * target), WIDTH - 1)
        if cells[position] == " ":  # a longer bar covers the mark
            cells[position] = goal
    figures = f" {arrow} ".join(f"{share:.1%}" for share in shares)
    name = name if len(name) <= NAME_WIDTH else name[: NAME_WIDTH - 1] + "…"
    return name.ljust(NAME_WIDTH), "".join(cells), figures


class DemoPrinter:
    """Print the three acts, at most 80 columns wide."""

    def __init__(self) -> None:
        self.console = console()
        self.console.width = min(self.console.width, MAX_WIDTH)
        self.marks, self.line = (ASCII, "-") if self.console.options.ascii_only else (MARKS, "─")

    def title(self, text: str) -> None:
        """Print a heading."""
        self.console.print()
        self.console.rule(f"[bold]{text}", align="left", characters=self.line)

    def text(self, text: str = "", style: str | None = None) -> None:
        """Print text, wrapped at words."""
        self.console.print(self._shown(text), style=style, markup=False, highlight=False)

    def _shown(self, text: str) -> str:
        """Return text that the terminal can show."""
        shown = visible(text, keep="\n")
        if self.marks is ASCII:
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
            for mark, style in zip(self.marks, ("cyan", "bold green", "bold red"), strict=False):
                line.highlight_regex(f"{re.escape(mark)}+", style)
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


# ---------------------------------------------------------------------------------------------
# The sentences


def headline(audit: Audit) -> str:
    """Return whether the target is kept on the measured rows, in one sentence or two."""
    fairness = audit.fairness[0]
    before, after = fairness.before.value, fairness.after.value
    if before is None or after is None:
        return f"No news: the {fairness.name} cannot be measured on these {audit.n:,} people."
    went = f"the {fairness.name} goes from {before:.2f} to {after:.2f} on {audit.n:,} new people"
    if fairness.bound is None:
        return f"The {went.removeprefix('the ')}. No target was asked for."
    asked = at_bound(f"{fairness.bound:g}", fairness.higher_is_fairer)
    if fairness.is_kept:
        return f"Good news: the target is kept. {went[0].upper()}{went[1:]}; asked was {asked}."
    low, high = fairness.after.low, fairness.after.high
    missed = f"The target is missed: {went}; asked was {asked}."
    if low is None or high is None:
        return missed
    why = (
        "It contains the target, so chance explains the miss: about half of all samples miss a "
        "target that is kept in expectation."
        if low <= fairness.bound <= high
        else "It does not contain the target: these people differ from the fit rows by more than "
        "chance explains."
    )
    return f"{missed} The {audit.level:.0%} interval is {low:.2f} to {high:.2f}. {why}"


def _counts_errors(audit: Audit) -> bool:
    """Return whether rates of “high risk” are compared, among those who are not arrested again."""
    return audit.request.pos_label == 1


def _print_problem(printer: DemoPrinter, audit: Audit) -> None:
    """Print act 1: the rates of the groups before the update, as a picture."""
    printer.title("1. The problem")
    fairness = audit.fairness[0]
    if _counts_errors(audit):
        printer.text(
            "The model was trained without race. Of the people who are not arrested again, it "
            "calls more African-American people “high risk”, as ProPublica found:"
        )
        printer.bars([(group.name, _shares(group, audit)[0]) for group in audit.groups])
        return
    printer.text(
        "The model was trained without race. It calls African-American people “low risk” less "
        "often than others:"
    )
    rates = {group.name: _shares(group, audit)[0] for group in audit.groups}
    goal = None if fairness.bound is None else fairness.bound * max(rates.values())
    printer.bars(list(rates.items()), goal)
    if goal is not None and fairness.before.value is not None:
        printer.text(
            f"The P-rule is {fairness.before.value:.2f}: the lowest rate divided by the highest. "
            f"The target is {fairness.bound:g}, or {goal:.1%} here ({printer.marks[3]})."
        )


def _print_update(printer: DemoPrinter, audit: Audit) -> None:
    """Print act 2: the rates after the update, what was asked, and the scorecard."""
    from commod._reporting.render.texts import asked_expected_measured

    printer.title("2. The update")
    printer.bars([(group.name, *_shares(group, audit)) for group in audit.groups])
    if line := asked_expected_measured(audit):
        after = audit.fairness[0].after
        if after.low is not None and after.high is not None:
            line += f" The {audit.level:.0%} interval of the measured value is {after.low:.2f} to "
            line += f"{after.high:.2f}."
        printer.text(line)
    card = audit.card
    assert card is not None
    rule = (
        f"A decision may change where r(x) < 0. r starts at {card.intercept:+.2f}; each term adds "
        "its points; a minus pushes towards a change."
    )
    if card.rule is not None:
        start = f"{EVIDENCE}\n\nExactly: start at {card.intercept:+.2f} and add the points."
        rule = " ".join([IN_WORDS[audit.request.direction], start, *card.rule.sentences])
    printer.text(
        f"\nThe update is a card of {len(card.lines)} terms with points; race is none of them. "
        f"{rule} The {min(N_TERMS, len(card.lines))} strongest terms:"
    )
    rows = [(term.text, f"{term.points:+.3f} {term.unit}".rstrip()) for term in card.lines]
    printer.table(("term", "points in r" if card.rule is None else "points"), rows[:N_TERMS])


def _print_costs(printer: DemoPrinter, audits: Sequence[Audit]) -> None:
    """Print act 3: who changes and what it costs, and the same for the update beside it."""
    printer.title("3. Who changes, and what it costs")
    headings = ["", *(DIRECTIONS[audit.request.direction] for audit in audits)]
    headings[1] += " (this update)"
    columns = [_costs(audit) for audit in audits]
    printer.table(headings, [(name, *(column[name] for column in columns)) for name in columns[0]])
    printer.text(FALSE_ALARMS)
    needed = " and ".join(
        f"{audit.limit.n_target} changes with {DIRECTIONS[audit.request.direction]}"
        for audit in audits
        if audit.limit.n_target
    )
    if needed:
        printer.text(
            "For the target, a method that knows everybody's group needs, on these people, at "
            f"least {needed}."
        )


def _print_people(printer: DemoPrinter, audit: Audit, explanation: Explanation) -> None:
    """Print who changes: the broadest rule, and one person."""
    segments = audit.segments
    for rule in () if segments is None else segments.segments[:N_RULES]:
        printer.text(
            f"\nWho changes: {rule.n_changed} of the {rule.size} people with {rule.text}. They are "
            f"{rule.coverage:.0%} of all changes of this kind ({rule.direction})."
        )
    changed = explanation.gain | explanation.loss
    if changed.any():
        printer.text(f"\nOne person: {explanation.person(int(changed.argmax())).sentence}")


def _costs(audit: Audit) -> dict[str, str]:
    """Return the figures of one update, by the name of the row of the table."""
    fairness, changes, quality = audit.fairness[0], audit.changes, audit.quality
    figures = {
        "people whose decision changes": f"{changes.n_changes} ({changes.n_changes / audit.n:.1%})",
        "gain, lose “low risk”": f"{changes.n_gains}, {changes.n_losses}",
    }
    figures |= {f"  {group.name}": f"{group.n_gains}, {group.n_losses}" for group in audit.groups}
    figures[fairness.name] = _before_after(fairness.before, fairness.after, ".2f")
    if audit.expected is not None:
        figures["  expected on new people"] = f"{audit.expected.fairness:.2f}"
    alarms = [_false_alarms(group, audit) for group in audit.groups]
    gaps = [max(column) - min(column) for column in zip(*alarms, strict=True)]
    figures["false alarms, gap of groups"] = f"{gaps[0]:.2f} → {gaps[1]:.2f}"
    if quality is not None:
        accuracy = _before_after(quality.accuracy_before, quality.accuracy_after, ".1%")
        figures["accuracy"] = accuracy
    return figures


def _before_after(before: Estimate, after: Estimate, style: str) -> str:
    values = (before.value, after.value)
    return " → ".join("not known" if v is None else format(v, style) for v in values)


def _shares(group: Group, audit: Audit) -> tuple[float, float]:
    """Return the rate of a group that is compared, before and after."""
    if _counts_errors(audit):
        return _false_alarms(group, audit)
    return group.favorable_before.value or 0.0, group.favorable_after.value or 0.0


def _false_alarms(group: Group, audit: Audit) -> tuple[float, float]:
    """Return the share called high risk (1) of those not arrested again (0), before and after.

    The audit has the rates of `pos_label`; if that is low risk (0), the others are called high
    risk.
    """
    rate = "false_positive" if _counts_errors(audit) else "true_positive"
    before, after = (
        getattr(getattr(group, f"{rate}_{when}"), "value", None) or 0.0
        for when in ("before", "after")
    )
    return (before, after) if _counts_errors(audit) else (1 - before, 1 - after)
