"""Read the decisions of an update, a rival or a pair of models, and what else is known of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np
from sklearn.utils import get_tags

from commod._data.arrays import Floats, Mask
from commod._data.columns import Column, plain
from commod._data.encoding import TermTable
from commod._data.labels import (
    binary_outcomes,
    check_length,
    distinct_labels,
    is_label_in,
    read_labels,
)
from commod._data.tables import n_rows_of
from commod._record.audit import Request
from commod._record.explanation import Card, CardLine, CardRule, Concept
from commod._reporting.explain.reasons import column_means, ratio_per_point
from commod._solvers.concepts import MAX_CONCEPT_ROWS, Concepts, by_column
from commod._statistics.intervals import share_estimate
from commod._statistics.score_map import map_scores
from commod._text import shorten
from commod.exceptions import InputError
from commod.scorecard import Scorecard
from commod.updates._interface import RowEvaluation
from commod.updates.base import BaseUpdate, check_update

CHUNK = 50_000  # rows that are encoded at the same time
LONGEST_SETTING = 60  # characters
MAX_NAMES = 2  # columns in the name of a concept


def row_chunks(n: int) -> list[slice]:
    """Return slices of at most CHUNK rows that together cover n rows."""
    return [slice(first, min(first + CHUNK, n)) for first in range(0, n, CHUNK)]


def decisions_of_labels(
    X: Any, y_before: Any, y_after: Any, pos_label: Any, favorable_label: Any
) -> dict[str, Any]:
    """Return the fields of an `Explanation` that two models give by their decisions only."""
    if y_before is None or y_after is None:
        raise InputError("Without an update, pass the decisions: y_before=..., y_after=....")
    before, after = read_labels(y_before, "y_before"), read_labels(y_after, "y_after")
    for name, labels in {"y_before": before, "y_after": after}.items():
        check_length(labels, name, n_rows_of(X))
    values = list(dict.fromkeys([*distinct_labels(before), *distinct_labels(after)]))
    if pos_label is None and is_label_in(favorable_label, values):
        pos_label = favorable_label
    if pos_label is None:
        if 1 not in values:
            raise InputError(
                f"The decisions are {values[:4]}: pass the label that counts as positive as "
                "pos_label=."
            )
        pos_label = 1
    decisions = binary_outcomes((before, after), ("y_before", "y_after"), pos_label)
    others = [value for value in values if value != pos_label]
    favorable = pos_label if favorable_label is None else favorable_label
    if favorable not in (pos_label, *others):
        raise InputError(
            f"favorable_label={favorable!r} is none of the decisions: {values}.",
            parameter="favorable_label",
        )
    return {
        "before": decisions[0],
        "after": decisions[1],
        "y_before": before,
        "y_after": after,
        "pos_label": plain(pos_label),
        "negative_label": plain(others[0]) if others else None,
        "favorable_label": plain(favorable),
        "request": Request(pos_label=plain(pos_label), favorable_label=plain(favorable)),
        "unread_columns": frozenset(),
    }


def check_labels(update: BaseUpdate, pos_label: Any, favorable_label: Any) -> None:
    """Refuse labels that are not the update's own."""
    for name, given in (("pos_label", pos_label), ("favorable_label", favorable_label)):
        own = getattr(update, f"_{name}", None)
        if given is not None and own is not None and given != own:
            raise InputError(
                f"{name}={given!r}, but the update was fitted with {plain(own)!r}. Leave it out."
            )


def decisions_of_update(
    update: BaseUpdate, X: Any, sensitive_features: Any, level: float, n_concepts: int | None
) -> dict[str, Any]:
    """Return the fields of an `Explanation` that an update gives on some rows."""
    check_update(
        update, "explain", "For any other model: explain(None, X, y_before=..., y_after=...)."
    )
    if sensitive_features is None and get_tags(update).needs_sensitive_features:
        raise InputError(
            f"{type(update).__name__} decides by group: pass explain(update, X, "
            "sensitive_features=...) with the group of each row."
        )
    rows = update._read_rows(X, sensitive_features)
    scorecard, maker = getattr(update, "scorecard_", None), None
    if n_concepts is not None:
        if scorecard is None:
            raise InputError(
                f"This {type(update).__name__} has no scorecard, hence no concepts. Leave "
                "n_concepts out.",
                parameter="n_concepts",
            )
        scorecard = in_concepts(scorecard, rows.columns, n_concepts)
    if scorecard is not None:
        maker = CardMaker(scorecard, update._allowed_changes().max_margin)
    parts = []
    for part in rows.parts(CHUNK):
        evaluated = update._evaluate_rows(part)
        if maker is not None and part.terms is not None:
            favorable = part.base.decisions == (update._pos_label == update._favorable_label)
            maker.add(part.terms, evaluated.after != part.base.decisions, favorable)
        parts.append(evaluated)
    evaluation = RowEvaluation.join(parts)
    score_map, calibrated = getattr(update, "calibration_", None), None
    if score_map is not None:
        threshold = float(update._fitted_param("threshold"))
        calibrated = map_scores(score_map, evaluation.scores, threshold)
    before = rows.base.decisions
    return {
        "before": before,
        "after": evaluation.after,
        "y_before": update._labels_of(before),
        "y_after": update._labels_of(evaluation.after),
        "pos_label": plain(update._pos_label),
        "negative_label": plain(update.classes_[update.classes_ != update._pos_label][0]),
        "favorable_label": plain(update._favorable_label),
        "scores_before": rows.base.deployed.scores,
        "scores_after": evaluation.scores,
        "scores_calibrated": calibrated,
        "ratio": evaluation.ratio,
        "raw_ratio": evaluation.raw_ratio,
        "card": None if maker is None else maker.card(level),
        "scorecard": scorecard,
        "request": update.request(),
        "unread_columns": update._unread_columns(),  # such a column is not a reason for a change
    }


def settings_of(update: BaseUpdate | None) -> dict[str, str]:
    """Return the parameters of an update as short texts."""
    params = {} if update is None else update._fitted_params()
    texts = {name: v if isinstance(v, str) else repr(v) for name, v in params.items()}
    return {
        # An address in memory is not a setting, and it differs each time.
        name: type(params[name]).__name__ if " at 0x" in text else shorten(text, LONGEST_SETTING)
        for name, text in texts.items()
        if name != "estimator"
    }


# ---------------------------------------------------------------------------------------------
# A scorecard as a record: points, concepts, and what each concept does to people


def in_concepts(card: Scorecard, columns: Sequence[Column], n_concepts: int) -> Scorecard:
    """Return the same points in so many concepts: columns that vary together share one."""
    encoding = card.encoding
    step = -(-len(columns[0]) // MAX_CONCEPT_ROWS)
    terms = encoding.encode([column.take(slice(None, None, step)) for column in columns])
    points = np.zeros((n_concepts, encoding.n_terms))
    points[0] = card.points
    whole, ones = Concepts(points, np.eye(n_concepts)[0], 0.0), np.ones(encoding.n_terms)
    split = by_column(whole, encoding, terms, ones, np.ones(len(terms)))
    concept = np.abs(split.weights * split.contributions[:, None]).argmax(axis=0)
    points = np.zeros_like(points)
    points[concept, np.arange(encoding.n_terms)] = card.points
    intercepts, term = np.zeros(n_concepts), 0
    for spec, mean in zip(encoding.columns, column_means(card).tolist(), strict=True):
        intercepts[concept[term]] -= mean
        term += spec.n_terms
    used = (np.abs(points).sum(axis=1) > 0) * 1.0
    return replace(card, contributions=used, concept_points=points, concept_intercepts=intercepts)


def make_card(
    scorecard: Scorecard,
    terms: TermTable,
    changed: Mask,
    favorable: Mask,
    max_margin: float | None = None,
) -> Card:
    """Return the scorecard as a record, measured on the people whose terms are given.

    `changed` (n,) says whose decision changes, `favorable` (n,) whose base decision is the
    favourable one. Intervals are two-sided, of level 0.95. `max_margin` is as in `CardMaker`.
    """
    maker = CardMaker(scorecard, max_margin)
    maker.add(terms, changed, favorable)
    return maker.card(0.95)


class CardMaker:
    """Measure what a scorecard does to people, chunk by chunk of rows.

    `max_margin` is the largest distance from the threshold at which a decision may change; None:
    any.
    """

    def __init__(self, scorecard: Scorecard, max_margin: float | None = None) -> None:
        self.scorecard, self.max_margin = scorecard, max_margin
        self.used = np.flatnonzero(scorecard.contributions).tolist()
        self._n = 0
        self._mean = np.zeros(scorecard.encoding.n_terms)
        self._square = np.zeros(scorecard.encoding.n_terms)  # sum of squared distances
        # People by concept, whether it is active, and whether they change.
        self._counts = np.zeros((len(self.used), 2, 2), dtype=np.intp)

    def add(self, terms: TermTable, changed: Mask, favorable: Mask) -> None:
        """Add the people of one chunk, by the pairwise update of mean and variance."""
        n = len(terms)
        mean, scale = terms.moments(np.ones(n))
        difference = mean - self._mean
        self._square += n * scale**2 + difference**2 * (self._n * n / (self._n + n))
        self._mean += difference * (n / (self._n + n))
        self._n += n
        for i, j in enumerate(self.used):
            active = push_of(self.scorecard, j, terms, favorable) > 0
            self._counts[i] += np.bincount(2 * active + changed, minlength=4).reshape(2, 2)

    def card(self, level: float) -> Card:
        """Return the scorecard as a record, measured on all people that were added."""
        is_used = self.scorecard.concept_points[self.used] != 0
        concepts = [
            self.used[int(np.argmax(column))] if column.sum() == 1 else None for column in is_used.T
        ]
        rule = self.scorecard.rule
        return Card(
            intercept=float(self.scorecard.intercept),
            lines=self._terms(self.scorecard.points, concepts),
            concepts=tuple(self._concept(i, level) for i in range(len(self.used))),
            rule=None
            if rule is None
            else CardRule(
                **asdict(rule), sentences=tuple(rule.sentences(max_margin=self.max_margin))
            ),
        )

    def _concept(self, i: int, level: float) -> Concept:
        j = self.used[i]
        weight = float(self.scorecard.contributions[j])
        sign = -1.0 if self.scorecard.rule is None else 1.0
        points = sign * weight * self.scorecard.concept_points[j]
        terms = self._terms(points, [j] * len(points))
        n_inactive, n_active = self._counts[i].sum(axis=1).tolist()
        inactive_changed, active_changed = self._counts[i, :, 1].tolist()
        return Concept(
            number=j,
            name=_name(terms),
            contribution=weight,
            n_active=n_active,
            n_inactive=n_inactive,
            change_if_active=share_estimate(active_changed, n_active, level),
            change_if_inactive=share_estimate(inactive_changed, n_inactive, level),
            lines=terms,
        )

    def _terms(self, points: Floats, concepts: Sequence[int | None]) -> tuple[CardLine, ...]:
        """Return the terms that have points, the largest spread over people first."""
        encoding = self.scorecard.encoding
        names, columns = encoding.term_names, encoding.term_columns
        exact = [value for spec in encoding.columns for value in spec.exact_values]
        per_unit = encoding.counted_names
        pairs = zip(names, columns, strict=True)
        counted = [per_unit.get(term, "") if term == column else "" for term, column in pairs]
        spread = np.abs(points) * np.sqrt(self._square / max(self._n, 1))
        order = sorted(np.flatnonzero(points).tolist(), key=lambda t: (-spread[t], t))
        return tuple(
            CardLine(
                term=names[t],
                column=columns[t],
                unit="per unit" if counted[t] else "",
                points=float(points[t]),
                spread=float(spread[t]) if self._n else None,
                concept=concepts[t],
                counted=counted[t],
                exact=exact[t],
            )
            for t in order
        )


def push_of(scorecard: Scorecard, concept: int, terms: TermTable, favorable: Mask) -> Floats:
    """Return what a concept adds to −r on each row, shape (n,).

    Concepts are centred on the fit rows: the mean push there is 0. A concept is active where its
    push is above 0.
    """
    start = float(scorecard.concept_intercepts[concept])
    value = terms.total(scorecard.concept_points[concept], start)
    return -ratio_per_point(scorecard.rule, favorable) * scorecard.contributions[concept] * value


def _name(terms: Sequence[CardLine]) -> str:
    """Return the names of the columns with the largest spread over people."""
    sizes: dict[str, float] = {}
    for term in terms:
        sizes[term.column] = sizes.get(term.column, 0.0) + (term.spread or 0.0) ** 2
    return ", ".join(sorted(sizes, key=lambda name: -sizes[name])[:MAX_NAMES])
