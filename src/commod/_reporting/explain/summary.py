"""Write an explanation as lines of text: the segments, the points and the concepts."""

from __future__ import annotations

from collections.abc import Sequence

from commod._record import Card, CardLine, Concept, Segments
from commod._text import count, n_of, percent, points, shorten

LONGEST_NAME = 60  # characters
LONGEST_RULE = 120
MAX_TERMS = 8


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
    if not card.lines:
        return [f"Why: r = {card.intercept:.4g} for everybody; a decision changes where r < 0."]
    lines = [f"Why: r = {card.intercept:+.4g} and points; a decision changes where r < 0:"]
    lines += _term_lines(card.lines)
    for concept in card.concepts:
        lines += [_concept_line(concept), *_term_lines(concept.lines)]
    return lines


def _term_lines(terms: Sequence[CardLine]) -> list[str]:
    lines = [
        f"  {points(t.points):>10} {t.unit + ' ' if t.unit else ''}{shorten(t.term, LONGEST_NAME)}"
        for t in terms[:MAX_TERMS]
    ]
    n_more = len(terms) - MAX_TERMS
    return [*lines, f"  and {n_of(n_more, 'weaker term')}"] if n_more > 0 else lines


def _concept_line(concept: Concept) -> str:
    active, inactive = (
        "nobody" if estimate.value is None else percent(estimate.value)
        for estimate in (concept.change_if_active, concept.change_if_inactive)
    )
    name = shorten(concept.name, LONGEST_NAME)
    return (
        f"Concept {concept.number} ({name}), points towards a change; where it is active {active} "
        f"change, elsewhere {inactive}:"
    )
