"""Tables of who changes and why: segments, scorecards, concepts and the steps of a trade-off."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from commod._record.audit import Audit
from commod._record.edits import EditRecord, record_words
from commod._record.explanation import Card, CardLine, Concept, Estimate, Segments, TradeOff
from commod._reporting.render import texts
from commod._reporting.render.tables import (
    DIRECTIONS,
    Cell,
    ReportTable,
    figure,
    interval,
    table_of,
    text,
    three_digits,
)
from commod._text import NOT_KNOWN, count, estimate, percent, points, shorten
from commod._words.shared import EVIDENCE, POSITIVE_POINTS

SHOWN_TERMS = 12  # of a scorecard, before the others are folded away
MOST_TERMS = 400  # of an unfolded scorecard; the audit's JSON has all of them


def segments(rules: Segments, caption: str) -> ReportTable:
    """Return the rules that describe who changes."""
    return table_of(
        "segments",
        caption,
        rules.segments,
        (
            ("Direction", lambda s: Cell(DIRECTIONS[s.direction], tone=s.direction)),
            ("Rule", lambda s: Cell(s.text, limit=texts.SENTENCE_LIMIT // 2)),
            (
                "Change",
                lambda s: Cell(
                    f"{count(s.n_changed)} of {count(s.size)}", "", s.n_changed, "number"
                ),
            ),
            ("New in this rule", lambda s: figure(s.n_new)),
            ("Share that changes", lambda s: interval(s.precision)),
            ("Share of all such changes", lambda s: figure(s.coverage, percent)),
        ),
    )


def step_segments(rules: Segments) -> ReportTable:
    """Return the rules of one step; without intervals, because their level is not known."""
    table = segments(rules, "Rules that describe who changes.")
    kept = (0, 1, 2, 4)
    return replace(
        table,
        columns=tuple(table.columns[i] for i in kept),
        rows=tuple(tuple(replace(row[i], note="") for i in kept) for row in table.rows),
    )


def scorecard(
    card: Card, caption: str, *, with_spread: bool = True, most: int = SHOWN_TERMS
) -> ReportTable:
    """Return the total scorecard; only its strongest terms if there are more than `most`."""
    terms = _strongest(card.lines, most)
    hidden = len(card.lines) - len(terms)
    more = f"{count(hidden)} weaker terms are not shown here." if hidden else ""
    columns = (
        ("Term", lambda t: Cell(t.text, t.unit)),
        ("Points on r" if card.rule is None else "Points", lambda t: figure(t.points, points)),
        ("Effect", lambda t: _effect(card, t)),
        (f"Spread in {_sum(card)}", _spread),
        ("Concept", _concept_number),
    )
    table = table_of("scorecard", caption, terms, columns[: 5 if with_spread else 3], more=more)
    start = (text("Start (everybody)"), figure(card.intercept, points))
    empty = (Cell(""),) * (len(table.columns) - 2)
    return replace(table, rows=((*start, *empty), *table.rows))


def scorecard_caption(audit: Audit, card: Card) -> str:
    """Return the caption of the audited update's scorecard."""
    return (
        f"Total points on {_sum(card)}. Spread is the standard deviation of what a term adds to "
        f"{_sum(card)}, on the {texts.evaluated_rows(audit)}."
    )


def total_caption(card: Card, every_term: bool = False) -> str:
    """Return the caption of a scorecard without spread, or with every term."""
    return f"Total points on {_sum(card)}{', every term' if every_term else ''}."


def rule_sentences(audit: Audit, card: Card) -> list[str]:
    """Return how the points of the update decide, one sentence for each step."""
    request = audit.request
    if card.rule is None:
        allowed = ""
        if request.direction != "any":
            allowed = f" if the allowed direction permits it ({texts.allowed_direction(request)})"
        return [
            "Each person's points add up to a number r.",
            f"Where r is below 0, the decision changes{allowed}.",
            "Where r is 1, the score stays as it was.",
            "Points below 0 push towards a change.",
        ]
    sentences = [f"Start at {points(card.intercept)} and add the points.", *card.rule.sentences]
    return [*sentences, f"{texts.sentence_case(POSITIVE_POINTS)}.", EVIDENCE]


def _sum(card: Card) -> str:
    """Return what the points of a card add up to."""
    return "r" if card.rule is None else "the sum"


def edits(audit: Audit) -> ReportTable:
    """Return the edits by hand, oldest first, with the figures before and after each."""
    metric = audit.fairness[0].name
    return table_of(
        "edits",
        "Edits by hand, oldest first. Figures are those on the rows that each edit was measured "
        "on, before → after.",
        audit.edits,
        (
            ("When", lambda e: Cell(e.when, "" if e.by is None else f"by {e.by}")),
            (
                "What",
                lambda e: Cell(record_words(e, with_origin=False), e.note or "", limit=300),
            ),
            (metric, lambda e: text(_before_after(e, "fairness", three_digits))),
            ("Changed", lambda e: text(_before_after(e, "change_rate", percent))),
            ("Gains", lambda e: text(_before_after(e, "n_gains", count))),
            ("Losses", lambda e: text(_before_after(e, "n_losses", count))),
        ),
        sortable=False,
    )


def _before_after(record: EditRecord, name: str, write: Callable[[float | None], str]) -> str:
    return " → ".join(write(getattr(side, name)) for side in (record.before, record.after))


def concept_terms(card: Card, concept: Concept, most: int = SHOWN_TERMS) -> ReportTable:
    """Return the points of one concept: on −r, or on the sum where that is evidence."""
    hidden = len(concept.lines) - most
    heading, meaning = "Points on −r", "positive points push towards a change"
    if card.rule is not None:
        heading, meaning = "Points on the sum", POSITIVE_POINTS
    return table_of(
        f"concept-{concept.number}",
        f"{heading}: {meaning}.",
        concept.lines[:most],
        (("Term", lambda t: Cell(t.text, t.unit)), (heading, lambda t: figure(t.points, points))),
        sortable=False,
        more=f"{count(hidden)} weaker terms are not shown." if hidden > 0 else "",
    )


def concepts(audit: Audit, card: Card) -> ReportTable:
    """Return how often decisions change where a concept is active and where it is not."""
    return table_of(
        "concepts",
        "How often a decision changes where a concept is active, and where it is not. A concept is "
        "active where it pushes towards a change more than on average over the fit rows. Its "
        f"points include its factor in {_sum(card)}. {texts.measured(audit)}",
        card.concepts,
        (
            ("Concept", lambda c: text(f"{c.number}. {c.name}")),
            (f"Factor in {_sum(card)}", lambda c: figure(c.contribution, points)),
            ("Active", lambda c: figure(c.n_active)),
            ("Change if active", lambda c: interval(c.change_if_active)),
            ("Not active", lambda c: figure(c.n_inactive)),
            ("Change if not", lambda c: interval(c.change_if_inactive)),
        ),
    )


def _blind(limit: Estimate | None) -> str:
    """Return the blind limit of a step where it was estimated."""
    return f"without the group an estimated {estimate(limit)}" if limit else ""


def steps(trade_off: TradeOff) -> ReportTable:
    """Return all steps of a trade-off, one row each, after a row for the base model."""
    table = table_of(
        "steps",
        f"Every step of the trade-off ({shorten(trade_off.method)}), measured on the "
        f"{count(trade_off.n_rows)} {shorten(trade_off.rows, 60)}. “Fewest possible” is the "
        "smallest share of changes that reaches the same fairness, even with each person's group. "
        "“Gainers outscore” is the share of pairs of the same group in which a person who gains "
        "has a higher base score than a person who stays rejected. “Losers outscored” is the share "
        "in which a person who loses has a lower one than a person who does not.",
        enumerate(trade_off.steps, start=1),
        (
            ("Step", lambda row: figure(row[0])),
            ("Target", lambda row: figure(row[1].target, texts.target_number)),
            (trade_off.metric, lambda row: figure(row[1].fairness, three_digits)),
            ("Expected on new people", lambda row: Cell(texts.expected_text(row[1]))),
            ("Change", lambda row: _changes(row[1].n_changes, row[1].change_rate)),
            ("Gains", lambda row: figure(row[1].n_gains)),
            ("Losses", lambda row: figure(row[1].n_losses)),
            (
                "Fewest possible",
                lambda row: replace(figure(row[1].limit, percent), note=_blind(row[1].blind_limit)),
            ),
            ("Accuracy", lambda row: figure(row[1].accuracy, percent, "no labels")),
            ("Gainers outscore", lambda row: _outscoring(row[1].outscoring, row[1].n_gains)),
            (
                "Losers outscored",
                lambda row: _outscoring(row[1].outscoring_losses, row[1].n_losses),
            ),
            (
                "Who changes",
                lambda row: Cell(_rules(row[1].segments), settings(row[1].settings), limit=160),
            ),
        ),
    )
    base = {
        0: text("base model"),
        2: figure(trade_off.base_fairness, three_digits),
        4: _changes(0, 0.0),
        5: figure(0),
        6: figure(0),
        8: figure(trade_off.base_accuracy, percent, "no labels"),
    }
    first = tuple(base.get(i, Cell("")) for i in range(len(table.columns)))
    return replace(table, rows=(first, *table.rows))


def _outscoring(share: float | None, n_changed: float) -> Cell:
    return figure(share, percent, "" if n_changed else "nobody")


def settings(values: dict[str, float | str | None]) -> str:
    """Return the settings of a step as text."""

    def shown(value: float | str | None) -> str:
        if value is None:
            return "none"
        return value if isinstance(value, str) else f"{value:g}"

    return ", ".join(f"{key} = {shown(value)}" for key, value in values.items())


def _changes(n: float, share: float) -> Cell:
    return Cell(count(n), percent(share), n, "number")


def _rules(rules: Segments | None) -> str:
    if rules is None:
        return NOT_KNOWN
    return "; ".join(f"{s.direction}: {s.text}" for s in rules.segments) or "nobody"


def _strongest(terms: Sequence[CardLine], most: int) -> Sequence[CardLine]:
    """Return the `most` terms that vary most in r, in their given order."""

    def strength(i: int) -> float:
        spread = terms[i].spread
        return abs(terms[i].points) if spread is None else spread

    kept = sorted(range(len(terms)), key=strength, reverse=True)[:most]
    return [terms[i] for i in sorted(kept)]


def _effect(card: Card, term: CardLine) -> Cell:
    """Return towards which decision the points of a term push."""
    if not term.points:
        return Cell("nothing", tone="keep")
    if card.rule is None:
        is_push = term.points < 0
        effect = "towards a change" if is_push else "keeps the decision"
    else:
        is_for_gains, rule = term.points > 0, card.rule
        sides = [("gain", rule.may_gain, is_for_gains), ("loss", rule.may_lose, not is_for_gains)]
        sides.sort(key=lambda side: not side[2])
        allowed = [(change, is_for) for change, may_change, is_for in sides if may_change]
        effect = ", ".join(f"{'towards' if to else 'against'} a {change}" for change, to in allowed)
        is_push = any(is_for for _, is_for in allowed)
    return Cell(effect, tone="push" if is_push else "keep")


def _spread(term: CardLine) -> Cell:
    if term.spread is None:
        return Cell("not measured", kind="number")
    return figure(term.spread, three_digits)


def _concept_number(term: CardLine) -> Cell:
    label = "several" if term.concept is None else str(term.concept)
    return Cell(label, "", term.concept, "number")
