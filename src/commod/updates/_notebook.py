"""Show a fitted update in a notebook: its status and up to three small tables."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from commod._text import (
    EVIDENCE,
    Table,
    codes_text,
    count,
    list_names,
    number,
    percent,
    points,
    shorten,
    snippet,
)
from commod._words.update import further_sentences, status_lines
from commod.updates._found_update import columns_of_codes

MAX_TERMS = 15
MAX_NAMED_COLUMNS = 2


def notebook_html(update: Any, diagram: str) -> str:
    """Return a fitted update as HTML, with scikit-learn's own diagram folded below it."""
    sentences = [*status_lines(update._facts), *further_sentences(update._facts)]
    tables = [figures_table(update)]
    if (card := getattr(update, "scorecard_", None)) is not None:
        codes = columns_of_codes(card, getattr(update, "_code_columns", ()))
        sentences += filter(None, [codes_text(codes)])
        tables += _scorecard_tables(update)
        if (rule := update.scorecard_.rule) is not None:  # the table says it otherwise
            max_margin = update._allowed_changes().max_margin
            sentences += [*rule.sentences(max_margin=max_margin), EVIDENCE]
    shown = snippet(type(update).__name__, sentences, tables)
    folded = f"<details><summary>Parameters and attributes</summary>{diagram}</details>"
    return f"{shown}{folded}"


def figures_table(update: Any) -> Table:
    """Return the figures of a fitted update, before and after, on the rows of its fit."""
    # three decimals, as the status has: one number, one spelling
    fairness, accuracy = (
        [number(value, 3) for value in values]
        for values in (
            (update.base_fairness_, update.fairness_),
            (update.base_accuracy_, update.accuracy_),
        )
    )
    rows = [[update._compared_text().metric, *fairness]]
    if not np.isnan(update.accuracy_):
        rows.append(["accuracy", *accuracy])
    rows += [
        ["decisions changed", "–", percent(update.change_rate_)],
        ["people who gain the favourable outcome", "–", count(update.n_gains_)],
        ["people who lose it", "–", count(update.n_losses_)],
    ]
    is_held_out = update._fitted_param("confidence", None) is not None
    measured = f"{count(update.n_rows_)} {'held-out' if is_held_out else 'fit'} rows"
    return f"Measured on {measured}", ["figure", "before", "after"], rows


def _scorecard_tables(update: Any) -> list[Table]:
    """Return the strongest terms of the scorecard, and the concepts it is split into."""
    card = update.scorecard_
    names, counted = card.encoding.term_names, card.encoding.counted_names
    # per standard deviation: points of columns in different units do not compare
    strength = np.abs(update.concept_contributions_ @ update.concept_weights_)
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
        strength = np.abs(update.concept_weights_[j])
        strongest = np.argsort(-strength, kind="stable")[: np.count_nonzero(strength)]
        n_terms = Counter(card.encoding.term_columns[i] for i in strongest)  # keeps this order
        named = [f"{shorten(name, 30)} ({n} term{'s'[: n > 1]})" for name, n in n_terms.items()]
        weight = points(card.contributions[j])
        concepts.append([f"concept {j}", weight, list_names(named, MAX_NAMED_COLUMNS)])
    if concepts:
        caption = "Concepts: one way to group the terms; only the total is identified by the data"
        tables.append((caption, ["concept", f"weight in {total}", "columns"], concepts))
    return tables
