"""Print the result of the demo: the answer, the groups, the segments and the scorecard."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table

if TYPE_CHECKING:
    from rich.console import Console

    from commod import Audit, Explanation

__all__ = ["print_result"]

N_TERMS = 15  # of the scorecard; the report shows more


def print_result(audit: Audit, explanation: Explanation, console: Console) -> None:
    """Print who changes and why."""
    console.print()
    for sentence in audit.answer:
        console.print(f"• {sentence}", highlight=False)
    if audit.notice:
        notice = f"Most of the changes are losses. {audit.notice}"
        console.print(f"• [bold]{notice}[/]", highlight=False)
    _print_groups(audit, console)
    _print_segments(audit, console)
    _print_scorecard(audit, console)
    changed = explanation.gain | explanation.loss
    if changed.any():
        console.print(f"\nOne person: {explanation.person(int(changed.argmax())).sentence}")


def _print_groups(audit: Audit, console: Console) -> None:
    table = _table("Before and after", ("", "before", "after"))
    for fairness in audit.fairness[:2]:
        best = "1 is equal" if fairness.higher_is_fairer else "0 is equal"
        values = (fairness.before.value, fairness.after.value)
        table.add_row(f"{fairness.metric} ({best})", *(_number(value, ".3f") for value in values))
    for group in audit.groups:
        table.add_section()
        for heading, rate in (
            (f"{group.name}: called high risk", "selected"),
            ("  of those not arrested again", "false_positive"),
            ("  of those arrested again", "true_positive"),
            ("  accuracy", "accuracy"),
        ):
            estimates = (getattr(group, f"{rate}_{when}") for when in ("before", "after"))
            table.add_row(heading, *(_number(e and e.value, ".1%") for e in estimates))
        table.add_row("  gain, lose", "", f"{group.n_gains}, {group.n_losses} of {group.n:,}")
    console.print("\n", table)


def _print_segments(audit: Audit, console: Console) -> None:
    if audit.segments is None or not audit.segments.segments:
        return
    table = _table("Who changes, in a few rules", ("rule", "", "change", "of all such changes"))
    for segment in audit.segments.segments:
        table.add_row(
            segment.text,
            segment.direction,
            f"{segment.n_changed} of {segment.size}",
            f"{segment.coverage:.0%}",
        )
    console.print("\n", table)


def _print_scorecard(audit: Audit, console: Console) -> None:
    card = audit.card
    assert card is not None
    condition = "" if audit.request.direction == "any" else " and the direction allows it"
    console.print(
        f"\nA decision changes where r(x) < 0{condition}. r starts at {card.intercept:+.3f}; each "
        "term adds its points (a number counts per unit). A minus pushes towards a change."
    )
    strongest = f", its {N_TERMS} strongest terms" if len(card.lines) > N_TERMS else ""
    table = _table(f"The update as a scorecard{strongest}", ("term", "points in r", "concept"))
    for term in card.lines[:N_TERMS]:
        number = "" if term.concept is None else str(term.concept)
        table.add_row(term.term, f"{term.points:+.3f} {term.unit}".rstrip(), number)
    console.print(table)
    for concept in card.concepts:
        rates = (concept.change_if_active.value, concept.change_if_inactive.value)
        active, inactive = (_number(rate, ".1%") for rate in rates)
        console.print(
            f"Concept {concept.number} ({concept.name}): where it pushes more than usual, {active} "
            f"change, elsewhere {inactive}.",
            highlight=False,
        )


def _table(title: str, headings: tuple[str, ...]) -> Table:
    table = Table(title=title, title_justify="left")
    for i, heading in enumerate(headings):
        table.add_column(heading, justify="right" if i else "left")
    return table


def _number(value: float | None, style: str) -> str:
    return "not known" if value is None else format(value, style)
