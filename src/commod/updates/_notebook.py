"""A fitted update in a notebook: what it does, in a sentence and three small tables."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from commod._data.encoding import NumericTerms
from commod._text import count, number, percent, points, shorten, snippet
from commod.metrics._constraint import get_constraint

if TYPE_CHECKING:
    from commod.updates.base import BaseUpdate

__all__ = ["notebook_html"]

Table = tuple[str, list[str], list[list[Any]]]

MOST_LINES = 15
MOST_NAMED = 2


def notebook_html(update: BaseUpdate, diagram: str) -> str:
    """Return a fitted update as a piece of HTML, scikit-learn's own diagram folded below."""
    tables = [_before_and_after(update)]
    if getattr(update, "scorecard_", None) is not None:
        tables += _scorecard(update)
    shown = snippet(type(update).__name__, _sentences(update.status_), tables)
    folded = f"<details><summary>Parameters and attributes</summary>{diagram}</details>"
    return f"{shown}{folded}"


def _sentences(status: str) -> list[str]:
    """Return what was reached, a paragraph for each sentence: none is cut for its length."""
    ends = [part for part in status.replace(". ", ".\n").split("\n") if part]
    return ends or [status]


def _before_and_after(update: BaseUpdate) -> Table:
    metric = get_constraint(update.constraints).metric
    rows = [[metric, number(update.base_fairness_, 3), number(update.fairness_, 3)]]
    if not np.isnan(update.accuracy_):
        # as the sentence above writes it: one number, one spelling
        rows.append(["accuracy", number(update.base_accuracy_, 3), number(update.accuracy_, 3)])
    rows += [
        ["decisions changed", "–", percent(update.change_rate_)],
        ["people who gain the favourable outcome", "–", count(update.n_gains_)],
        ["people who lose it", "–", count(update.n_losses_)],
    ]
    held_out = getattr(update, "confidence", None) is not None
    where = f"{count(update.n_rows_)} {'held-out' if held_out else 'fit'} rows"
    return f"Measured on {where}", ["figure", "before", "after"], rows


def _scorecard(update: Any) -> list[Table]:
    """Return the strongest lines of the total scorecard, and the concepts it is split into."""
    card = update.scorecard_
    units = {c.name for c in card.encoding.columns if isinstance(c, NumericTerms)}
    # per standard deviation: points of columns in different units do not compare
    strength = np.abs(update.concept_contributions_ @ update.concept_weights_)
    order = [i for i in np.argsort(-strength, kind="stable") if card.points[i]]
    names = card.encoding.term_names
    rows: list[list[Any]] = [
        [names[i], points(card.points[i]), "per unit" if names[i] in units else "if it applies"]
        for i in order[:MOST_LINES]
    ]
    which = f"{len(rows)} strongest of {len(order)} lines"
    if not order:
        which = "no line has points"
    caption = f"Scorecard ({which}): r = {number(card.intercept, 3)} + points, changed if r < 0"
    tables: list[Table] = [(caption, ["line", "points", "counted"], rows)]
    concepts = _concepts(update)
    return [*tables, concepts] if concepts[2] else tables


def _concepts(update: Any) -> Table:
    """Return each concept by the columns it reads, those with the strongest lines first."""
    columns = update.scorecard_.encoding.term_columns
    rows = []
    for j in np.flatnonzero(update.scorecard_.contributions):
        strength = np.abs(update.concept_weights_[j])
        order = np.argsort(-strength, kind="stable")[: np.count_nonzero(strength)]
        n_lines = Counter(columns[i] for i in order)  # in this order
        named = [f"{shorten(name, 30)} ({n} line{'s'[: n > 1]})" for name, n in n_lines.items()]
        more = f" and {len(named) - MOST_NAMED} more" if len(named) > MOST_NAMED else ""
        weight = points(update.scorecard_.contributions[j])
        rows.append([f"concept {j}", weight, ", ".join(named[:MOST_NAMED]) + more])
    caption = "Concepts: one way to group the lines; only the total is identified by the data"
    return caption, ["concept", "weight in r", "columns"], rows
