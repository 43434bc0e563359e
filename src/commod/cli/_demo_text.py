"""Print the result of the demo: the answer, the groups, the segments and the scorecard."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from commod.cli._options import OutputOptions
from commod.cli._printing import Printer, print_answer

if TYPE_CHECKING:
    from commod import Audit, Explanation
    from commod._record import Group

N_TERMS = 15  # of the scorecard; the report shows more


def print_result(audit: Audit, explanation: Explanation) -> None:
    """Print who changes and why."""
    printer = Printer(OutputOptions())
    printer.sentence()
    print_answer(printer, audit)
    _print_groups(audit, printer)
    _print_segments(audit, printer)
    _print_scorecard(audit, printer)
    changed = explanation.gain | explanation.loss
    if changed.any():
        person = explanation.person(int(changed.argmax()))
        printer.sentence()
        printer.sentence(f"One person: {person.sentence}")


def _print_groups(audit: Audit, printer: Printer) -> None:
    rows = [
        (
            f"{fairness.name} ({'1' if fairness.higher_is_fairer else '0'} is equal)",
            *(_number(value.value, ".3f") for value in (fairness.before, fairness.after)),
        )
        for fairness in audit.fairness[:2]
    ]
    for group in audit.groups:
        rows.append((f"{group.name}: called low risk", *_shares(group, "favorable")))
        for heading, true_label in (
            ("  called high risk, of those not arrested again", 0),
            ("  called high risk, of those arrested again", 1),
        ):
            rows.append((heading, *_high_risk(group, true_label, audit.request.pos_label)))
        rows.append(("  accuracy", *_shares(group, "accuracy")))
        rows.append(("  gain, lose", "", f"{group.n_gains}, {group.n_losses} of {group.n:,}"))
    printer.sentence()
    printer.table("Before and after", ("", "before", "after"), rows)


def _shares(group: Group, rate: str) -> list[str]:
    """Return a rate of a group before and after the update."""
    estimates = (getattr(group, f"{rate}_{when}") for when in ("before", "after"))
    return [_number(estimate and estimate.value, ".1%") for estimate in estimates]


def _high_risk(group: Group, true_label: int, pos_label: Any) -> list[str]:
    """Return the share called high risk (1) among a true label, before and after the update.

    The audit has the rates of `pos_label`; if that is low risk (0), the rest is called high risk.
    """
    rate = "true_positive" if true_label == pos_label else "false_positive"
    estimates = [getattr(group, f"{rate}_{when}") for when in ("before", "after")]
    shares = [estimate and estimate.value for estimate in estimates]
    if pos_label == 0:
        shares = [None if share is None else 1 - share for share in shares]
    return [_number(share, ".1%") for share in shares]


def _print_segments(audit: Audit, printer: Printer) -> None:
    if audit.segments is None or not audit.segments.segments:
        printer.sentence()
        printer.sentence("Who changes: no short rule of 20 people or more describes them.")
        return
    rows = [
        (s.text, s.direction, f"{s.n_changed} of {s.size}", f"{s.coverage:.0%}")
        for s in audit.segments.segments
    ]
    headings = ("rule", "", "change", "of all such changes")
    printer.sentence()
    printer.table("Who changes, in a few rules", headings, rows)


def _print_scorecard(audit: Audit, printer: Printer) -> None:
    card = audit.card
    assert card is not None
    condition = "" if audit.request.direction == "any" else " and the direction allows it"
    printer.sentence()
    printer.sentence(
        f"A decision changes where r(x) < 0{condition}. r starts at {card.intercept:+.3f}; each "
        "term adds its points (a number counts per unit). A minus pushes towards a change."
    )
    strongest = f", its {N_TERMS} strongest terms" if len(card.lines) > N_TERMS else ""
    rows = [
        (
            term.term,
            f"{term.points:+.3f} {term.unit}".rstrip(),
            "" if term.concept is None else str(term.concept),
        )
        for term in card.lines[:N_TERMS]
    ]
    title = f"The update as a scorecard{strongest}"
    printer.table(title, ("term", "points in r", "concept"), rows)
    for concept in card.concepts:
        rates = (concept.change_if_active.value, concept.change_if_inactive.value)
        active, inactive = (_number(rate, ".1%") for rate in rates)
        printer.sentence(
            f"Concept {concept.number} ({concept.name}): where it pushes more than usual, {active} "
            f"change, elsewhere {inactive}."
        )


def _number(value: float | None, style: str) -> str:
    return "not known" if value is None else format(value, style)
