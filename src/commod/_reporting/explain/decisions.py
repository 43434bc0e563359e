"""Read the decisions of an update, a rival or a pair of models, and what else is known of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import get_tags

from commod._data.arrays import Floats, Mask
from commod._data.codes import plain
from commod._data.labels import (
    binary_outcome,
    check_length,
    distinct_labels,
    is_label_in,
    read_labels,
)
from commod._data.tables import n_rows_of
from commod._record import Card, Request
from commod._reporting.explain.cards import CardMaker
from commod._statistics.score_map import map_scores
from commod._text import shorten
from commod.exceptions import InputError
from commod.updates._interface import ReadRows, RowEvaluation
from commod.updates.base import BaseUpdate, check_update

CHUNK = 50_000  # rows that are encoded at the same time
LONGEST_SETTING = 60  # characters


def row_chunks(n: int) -> list[slice]:
    """Return slices of at most CHUNK rows that together cover n rows."""
    return [slice(first, min(first + CHUNK, n)) for first in range(0, n, CHUNK)]


@dataclass(frozen=True, eq=False, kw_only=True)
class ExplainedDecisions:
    """Decisions before and after, with scores, ratios and points where an update has them.

    `Explanation` has the meaning of each field.
    """

    before: Mask
    after: Mask
    y_before: NDArray[Any]
    y_after: NDArray[Any]
    pos_label: Any
    negative_label: Any
    favorable_label: Any
    scores_before: Floats | None = None
    scores_after: Floats | None = None
    scores_calibrated: Floats | None = None
    ratio: Floats | None = None
    raw_ratio: Floats | None = None
    card: Card | None = None
    request: Request
    unread_columns: frozenset[str] = field(default=frozenset(), repr=False)


def decisions_of_labels(
    X: Any, y_before: Any, y_after: Any, pos_label: Any, favorable_label: Any
) -> ExplainedDecisions:
    """Return the decisions of two models that are known by their decisions only."""
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
    if before.dtype == after.dtype:
        binary_outcome(np.concatenate([before, after]), "y_before and y_after", pos_label)
    elif len(values) > 2 or pos_label not in values:
        raise InputError(f"The decisions are {values[:4]}; expected two, pos_label among them.")
    others = [value for value in values if value != pos_label]
    favorable = pos_label if favorable_label is None else favorable_label
    if favorable not in (pos_label, *others):
        raise InputError(
            f"favorable_label={favorable!r} is none of the decisions: {values}.",
            parameter="favorable_label",
        )
    return ExplainedDecisions(
        before=np.asarray(before == pos_label, dtype=bool),
        after=np.asarray(after == pos_label, dtype=bool),
        y_before=before,
        y_after=after,
        pos_label=plain(pos_label),
        negative_label=plain(others[0]) if others else None,
        favorable_label=plain(favorable),
        request=Request(pos_label=plain(pos_label), favorable_label=plain(favorable)),
    )


def check_labels(update: BaseUpdate, pos_label: Any, favorable_label: Any) -> None:
    """Refuse labels that are not the update's own."""
    for name, given in (("pos_label", pos_label), ("favorable_label", favorable_label)):
        own = getattr(update, f"{name}_", None)
        if given is not None and own is not None and given != own:
            raise InputError(
                f"{name}={given!r}, but the update was fitted with {plain(own)!r}. Leave it out."
            )


def decisions_of_update(
    update: BaseUpdate, X: Any, sensitive_features: Any, level: float
) -> ExplainedDecisions:
    """Return the decisions of an update on some rows."""
    check_update(
        update, "explain", "For any other model: explain(None, X, y_before=..., y_after=...)."
    )
    if sensitive_features is None and get_tags(update).needs_sensitive_features:
        raise InputError(
            f"{type(update).__name__} decides by group: pass explain(update, X, "
            "sensitive_features=...) with the group of each row."
        )
    rows = update._read_rows(X, sensitive_features)
    evaluation, card = _evaluate(update, rows, level)
    before = rows.base.decisions
    return ExplainedDecisions(
        before=before,
        after=evaluation.after,
        y_before=update._labels_of(before),
        y_after=update._labels_of(evaluation.after),
        pos_label=plain(update.pos_label_),
        negative_label=plain(update.classes_[update.classes_ != update.pos_label_][0]),
        favorable_label=plain(update.favorable_label_),
        scores_before=rows.base.deployed.scores,
        scores_after=evaluation.scores,
        scores_calibrated=_calibrated(update, evaluation.scores),
        ratio=evaluation.ratio,
        raw_ratio=evaluation.raw_ratio,
        card=card,
        request=update.request(),
        unread_columns=update._unread_columns(),  # such a column is no reason for a change
    )


def _calibrated(update: BaseUpdate, edited: Floats) -> Floats | None:
    """Return edited scores as calibrated probabilities; None where the update has none."""
    score_map = getattr(update, "calibration_", None)
    if score_map is None:
        return None
    return map_scores(score_map, edited, float(update._fitted_param("threshold")))


def _evaluate(
    update: BaseUpdate, rows: ReadRows, level: float
) -> tuple[RowEvaluation, Card | None]:
    """Return what the update does to the rows, and its card where it has a scorecard."""
    scorecard = getattr(update, "scorecard_", None)
    maker = None
    if scorecard is not None:
        maker = CardMaker(scorecard, update._allowed_changes().max_margin)
    evaluations = []
    for part in rows.parts(CHUNK):
        evaluation = update._evaluate_rows(part)
        if maker is not None and part.terms is not None:
            before = part.base.decisions
            favorable = before == (update.pos_label_ == update.favorable_label_)
            maker.add(part.terms, evaluation.after != before, favorable)
        evaluations.append(evaluation)
    card = None if maker is None else maker.card(level)
    return RowEvaluation.join(evaluations), card


def settings_of(update: BaseUpdate | None) -> dict[str, str]:
    """Return the parameters of an update as short texts."""
    if update is None:
        return {}
    params = update._fitted_params()
    del params["estimator"]
    return {name: _setting(value) for name, value in params.items()}


def _setting(value: Any) -> str:
    text = value if isinstance(value, str) else repr(value)
    # An address in memory is no setting, and it differs each time.
    return type(value).__name__ if " at 0x" in text else shorten(text, LONGEST_SETTING)
