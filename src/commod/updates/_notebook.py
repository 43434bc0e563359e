"""Show a fitted update in a notebook: its status and up to three small tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commod._data.encoding import NumericTerms
from commod._text import (
    EVIDENCE,
    Table,
    count,
    list_names,
    number,
    percent,
    points,
    shorten,
    snippet,
)
from commod.scorecard import Scorecard

MAX_TERMS = 15
MAX_NAMED_COLUMNS = 2


@dataclass(frozen=True)
class Figures:
    """What an update did on the rows named by `rows`; accuracy is NaN without true labels."""

    metric: str
    base_fairness: float
    fairness: float
    base_accuracy: float
    accuracy: float
    change_rate: float
    n_gains: float
    n_losses: float
    rows: str


@dataclass(frozen=True)
class ScorecardView:
    """A scorecard and its concepts per standard deviation: `weights` (k, d), `contributions`.

    `max_margin` is the largest distance from the threshold at which a decision may change.
    """

    card: Scorecard
    weights: NDArray[np.float64]
    contributions: NDArray[np.float64]
    max_margin: float | None = None


def notebook_html(
    title: str, status: str, figures: Figures, scorecard: ScorecardView | None, diagram: str
) -> str:
    """Return a fitted update as HTML, with scikit-learn's own diagram folded below it."""
    tables, sentences = [_before_and_after(figures)], _sentences(status)
    if scorecard is not None:
        tables += _scorecard_tables(scorecard)
        sentences += _rule_sentences(scorecard)
    shown = snippet(title, sentences, tables)
    folded = f"<details><summary>Parameters and attributes</summary>{diagram}</details>"
    return f"{shown}{folded}"


def _sentences(status: str) -> list[str]:
    """Return the sentences of a status, one per paragraph: none is cut for its length."""
    sentences = [part for part in status.replace(". ", ".\n").split("\n") if part]
    return sentences or [status]


def _before_and_after(figures: Figures) -> Table:
    # three decimals, as the status has: one number, one spelling
    rows = [[figures.metric, number(figures.base_fairness, 3), number(figures.fairness, 3)]]
    if not np.isnan(figures.accuracy):
        rows.append(["accuracy", number(figures.base_accuracy, 3), number(figures.accuracy, 3)])
    rows += [
        ["decisions changed", "–", percent(figures.change_rate)],
        ["people who gain the favourable outcome", "–", count(figures.n_gains)],
        ["people who lose it", "–", count(figures.n_losses)],
    ]
    return f"Measured on {figures.rows}", ["figure", "before", "after"], rows


def _rule_sentences(view: ScorecardView) -> list[str]:
    """Return how the points decide where they are evidence; the table says it otherwise."""
    rule = view.card.rule
    return [] if rule is None else [*rule.sentences(max_margin=view.max_margin), EVIDENCE]


def _scorecard_tables(view: ScorecardView) -> list[Table]:
    """Return the strongest terms of the scorecard, and the concepts it is split into."""
    card, counted = view.card, view.card.encoding.counted_names
    # per standard deviation: points of columns in different units do not compare
    strength = np.abs(view.contributions @ view.weights)
    order = [i for i in np.argsort(-strength, kind="stable") if card.points[i]]
    names = card.encoding.term_names
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
    concepts = _concept_table(view)
    return [*tables, concepts] if concepts[2] else tables


def _concept_table(view: ScorecardView) -> Table:
    """Return each concept by the columns it reads, those with the strongest terms first."""
    columns = view.card.encoding.term_columns
    rows = []
    for j in np.flatnonzero(view.card.contributions):
        strength = np.abs(view.weights[j])
        order = np.argsort(-strength, kind="stable")[: np.count_nonzero(strength)]
        n_terms = Counter(columns[i] for i in order)  # keeps this order
        named = [f"{shorten(name, 30)} ({n} term{'s'[: n > 1]})" for name, n in n_terms.items()]
        weight = points(view.card.contributions[j])
        rows.append([f"concept {j}", weight, list_names(named, MAX_NAMED_COLUMNS)])
    caption = "Concepts: one way to group the terms; only the total is identified by the data"
    total = "r" if view.card.rule is None else "the sum"
    return caption, ["concept", f"weight in {total}", "columns"], rows


def columns_of_codes(card: Scorecard, candidates: Collection[str]) -> tuple[str, ...]:
    """Return the `candidates` that have points per unit in a scorecard."""
    per_unit = {c.name for c in card.encoding.columns if isinstance(c, NumericTerms)}
    has_points = {
        column
        for column, points in zip(card.encoding.term_columns, card.points, strict=True)
        if points and column in per_unit
    }
    return tuple(name for name in candidates if name in has_points)


def figures_of(update: Any) -> Figures:
    """Return the figures of a fitted update, and the rows that they were measured on."""
    is_held_out = update.fitted_param("confidence", None) is not None
    return Figures(
        metric=update.compared_text().metric,
        base_fairness=update.base_fairness_,
        fairness=update.fairness_,
        base_accuracy=update.base_accuracy_,
        accuracy=update.accuracy_,
        change_rate=update.change_rate_,
        n_gains=update.n_gains_,
        n_losses=update.n_losses_,
        rows=f"{count(update.n_rows_)} {'held-out' if is_held_out else 'fit'} rows",
    )
