"""Show a fitted update in a notebook: its status and up to three small tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commod._text import Table, count, list_names, number, percent, points, shorten, snippet
from commod._words.shared import EVIDENCE, codes_text
from commod._words.update import UpdateFacts, further_sentences, status_lines
from commod.scorecard import Scorecard

MAX_TERMS = 15
MAX_NAMED_COLUMNS = 2


def notebook_html(
    title: str,
    facts: UpdateFacts,
    codes: Sequence[str],
    card: Scorecard | None,
    weights: NDArray[np.float64] | None,
    max_margin: float | None,
    diagram: str,
) -> str:
    """Return a fitted update as HTML, with scikit-learn's own diagram folded below it.

    `codes` are columns that may hold codes of categories. `card` is None without a scorecard, else
    `weights` (k, d) are the standardised points of its concepts.
    """
    sentences = [*status_lines(facts), *further_sentences(facts)]
    sentences += filter(None, [codes_text(codes)])
    tables = [figures_table(facts)]
    if card is not None and weights is not None:
        tables += _scorecard_tables(card, weights)
        if card.rule is not None:  # the table says it otherwise
            sentences += [*card.rule.sentences(max_margin=max_margin), EVIDENCE]
    shown = snippet(title, sentences, tables)
    folded = f"<details><summary>Parameters and attributes</summary>{diagram}</details>"
    return f"{shown}{folded}"


def figures_table(facts: UpdateFacts) -> Table:
    """Return the figures of a fitted update, before and after, on the rows it was measured on."""
    goal = facts.goals[0]
    figures = [(goal.metric, goal.before, goal.after)]
    if not np.isnan(facts.accuracy[1]):
        figures.append(("accuracy", *facts.accuracy))
    # three decimals, as the status has: one number, one spelling
    rows = [[name, number(before, 3), number(after, 3)] for name, before, after in figures]
    rows += [
        ["decisions changed", "–", percent(facts.change_rate)],
        ["people who gain the favourable outcome", "–", count(facts.n_gains)],
        ["people who lose it", "–", count(facts.n_losses)],
    ]
    return f"Measured on {count(facts.n_rows)} {facts.rows}", ["figure", "before", "after"], rows


def _scorecard_tables(card: Scorecard, weights: NDArray[np.float64]) -> list[Table]:
    """Return the strongest terms of the scorecard, and the concepts it is split into."""
    names, counted = card.encoding.term_names, card.encoding.counted_names
    # per standard deviation: points of columns in different units do not compare
    strength = np.abs(card.contributions @ weights)
    order = [i for i in np.argsort(-strength, kind="stable") if card.points[i]]
    rows: list[list[Any]] = [
        [
            counted.get(names[i], names[i]),
            points(card.points[i]),
            "per unit" if names[i] in counted else "if it applies",
        ]
        for i in order[:MAX_TERMS]
    ]
    shown = f"{len(rows)} strongest of {len(order)} terms" if order else "no term has points"
    start, changed = number(card.intercept, 3), ", changed if r < 0" if card.rule is None else ""
    total = "r" if card.rule is None else "the sum"
    caption = f"Scorecard ({shown}): {total} = {start} + points{changed}"
    tables: list[Table] = [(caption, ["term", "points", "counted"], rows)]
    concepts = []
    for j in np.flatnonzero(card.contributions):
        strength = np.abs(weights[j])
        strongest = np.argsort(-strength, kind="stable")[: np.count_nonzero(strength)]
        n_terms = Counter(card.encoding.term_columns[i] for i in strongest)  # keeps this order
        named = [f"{shorten(name, 30)} ({n} term{'s'[: n > 1]})" for name, n in n_terms.items()]
        weight = points(card.contributions[j])
        concepts.append([f"concept {j}", weight, list_names(named, MAX_NAMED_COLUMNS)])
    if concepts:
        caption = "Concepts: one way to group the terms; only the total is identified by the data"
        tables.append((caption, ["concept", f"weight in {total}", "columns"], concepts))
    return tables
