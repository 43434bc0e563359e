"""An explanation as lines of text: who changes, by rules, and why, by points and concepts."""

from __future__ import annotations

from collections.abc import Sequence

from commod._record import Card, CardLine, Concept, Segments
from commod._text import points

LONGEST = 60


def shortened(text: str, most: int = LONGEST) -> str:
    """Return a text, its end left out where it is too long."""
    return text if len(text) <= most else text[: most - 1] + "…"


def segments_in_lines(segments: Segments) -> list[str]:
    """Return the rules, and what no rule describes."""
    if not segments.segments:
        return (
            ["Nobody changes."]
            if not segments.n_gains + segments.n_losses
            else ["No short rule describes who changes."]
        )
    lines = [
        f"  {s.direction}  {shortened(s.text, 120)}  {s.n_changed:,} of {s.size:,} change"
        for s in segments.segments
    ]
    described = segments.n_described_gains + segments.n_described_losses
    n = segments.n_gains + segments.n_losses
    lines.append(f"  Together they describe {described:,} of {n:,} changes.")
    for word, some, none in (
        ("gain", segments.n_gains, not segments.n_described_gains),
        ("loss", segments.n_losses, not segments.n_described_losses),
    ):
        if some and none:
            words = word if some == 1 else {"gain": "gains", "loss": "losses"}[word]
            lines.append(f"  No short rule describes the {some:,} {words}.")
    return ["Who changes:", *lines]


def card_in_lines(card: Card | None) -> list[str]:
    """Return the points and the concepts; nothing without a scorecard."""
    if card is None:
        return []
    if not card.lines:
        return [f"Why: r = {card.intercept:.4g} for everybody; a decision changes where r < 0."]
    lines = [f"Why: r = {card.intercept:+.4g} and points; a decision changes where r < 0:"]
    lines += _lines(card.lines)
    for concept in card.concepts:
        lines.append(_concept_in_words(concept))
        lines += _lines(concept.lines)
    return lines


def _lines(lines: Sequence[CardLine], most: int = 8) -> list[str]:
    shown = [
        f"  {points(line.points):>10} {line.unit + ' ' if line.unit else ''}{shortened(line.term)}"
        for line in lines[:most]
    ]
    rest = len(lines) - most
    return [*shown, f"  and {rest} weaker lines"] if rest > 0 else shown


def _concept_in_words(concept: Concept) -> str:
    shares = [
        "nobody" if e.value is None else f"{e.value:.1%}"
        for e in (concept.change_if_active, concept.change_if_inactive)
    ]
    return (
        f"Concept {concept.number} ({shortened(concept.name)}), points towards a change; where "
        f"active {shares[0]} change, elsewhere {shares[1]}:"
    )
