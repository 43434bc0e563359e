"""Write an explanation as lines of text, and as tables: segments, points and concepts."""

from __future__ import annotations

from collections.abc import Sequence

from commod._record import Card, CardLine, Concept, Segments
from commod._text import EVIDENCE, Table, count, first_rows, n_of, percent, points, shorten

LONGEST_NAME = 60  # characters
LONGEST_RULE = 120
MAX_TERMS = 8
MAX_SHOWN = 20  # terms of a table in a notebook


def segment_lines(segments: Segments) -> list[str]:
    """Return one line per segment, then the number of changes that no segment describes."""
    n_changes = segments.n_gains + segments.n_losses
    if not segments.segments:
        return ["No short rule describes who changes." if n_changes else "Nobody changes."]
    lines = [
        f"  {s.direction}  {shorten(s.text, LONGEST_RULE)}  "
        f"{count(s.n_changed)} of {count(s.size)} change"
        for s in segments.segments
    ]
    n_described = segments.n_described_gains + segments.n_described_losses
    lines.append(f"  Together they describe {count(n_described)} of {n_of(n_changes, 'change')}.")
    for noun, n, n_described in (
        ("gain", segments.n_gains, segments.n_described_gains),
        ("loss", segments.n_losses, segments.n_described_losses),
    ):
        if n and not n_described:
            lines.append(f"  No short rule describes the {n_of(n, noun)}.")
    return ["Who changes:", *lines]


def card_lines(card: Card | None) -> list[str]:
    """Return the points and the concepts; an empty list without a scorecard."""
    if card is None:
        return []
    first, *others = rule_lines(card)
    lines = [f"Why: {first}", *others, *_term_lines(card.lines)]
    for concept in card.concepts:
        lines += [f"{_concept_line(card, concept)}:", *_term_lines(concept.lines)]
    return lines


def rule_lines(card: Card) -> list[str]:
    """Return how the points add up, and when a decision changes."""
    start = points(card.intercept)
    if card.rule is not None:
        add = f"start at {start} and add the points" if card.lines else f"the sum is {start}"
        return [f"{add}.", *card.rule.sentences, EVIDENCE]
    if card.lines:
        return [f"r = {card.intercept:+.4g} and points; a decision changes where r < 0:"]
    return [f"r = {card.intercept:.4g} for everybody; a decision changes where r < 0."]


def _term_lines(terms: Sequence[CardLine]) -> list[str]:
    lines = [
        f"  {points(t.points):>10} {t.unit + ' ' if t.unit else ''}{shorten(t.text, LONGEST_NAME)}"
        for t in terms[:MAX_TERMS]
    ]
    n_more = len(terms) - MAX_TERMS
    return [*lines, f"  and {n_of(n_more, 'weaker term')}"] if n_more > 0 else lines


def _concept_line(card: Card, concept: Concept) -> str:
    active, inactive = (
        "nobody" if estimate.value is None else percent(estimate.value)
        for estimate in (concept.change_if_active, concept.change_if_inactive)
    )
    name = shorten(concept.name, LONGEST_NAME)
    towards = "towards a change" if card.rule is None else "in the sum"
    where = "it is active" if card.rule is None else "it pushes towards a change"
    return (
        f"Concept {concept.number} ({name}), points {towards}; where {where} {active} change, "
        f"elsewhere {inactive}"
    )


def segment_tables(segments: Segments) -> list[Table]:
    """Return the segments as a table of a notebook; an empty list where there are none."""
    if not segments.segments:
        return []
    rows = [
        (s.direction, s.text, f"{count(s.n_changed)} of {count(s.size)}", percent(s.coverage, 0))
        for s in segments.segments
    ]
    n_changes = segments.n_gains + segments.n_losses
    n_described = segments.n_described_gains + segments.n_described_losses
    caption = f"Who changes: rules that describe {count(n_described)} of {count(n_changes)} changes"
    return [(caption, ("direction", "rule", "change", "of all in this direction"), rows)]


def card_tables(card: Card | None) -> list[Table]:
    """Return the points and each concept as tables of a notebook; empty without a scorecard."""
    if card is None or not card.lines:
        return []
    start = f"r = {points(card.intercept)}" if card.rule is None else points(card.intercept)
    changed = "; changed where r < 0" if card.rule is None else ""
    caption = f"Points: {start} and points{changed}"
    tables = [_term_table(caption, card.lines)]
    for concept in card.concepts:
        tables.append(_term_table(_concept_line(card, concept), concept.lines))
    return tables


def _term_table(caption: str, terms: Sequence[CardLine]) -> Table:
    rows = [(t.text, points(t.points), t.unit or "if it applies") for t in terms]
    header = ("term", "points", "counted")
    return first_rows(caption, header, rows, most=MAX_SHOWN, all_in="card")
