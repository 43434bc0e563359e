"""What is known of an update, a rival or a pair of models on some rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commod._data.base_model import ScoreColumn
from commod._data.codes import plain
from commod._data.labels import binary_outcome, check_length, distinct_labels, read_labels
from commod._data.tables import n_rows_of
from commod._record import Card, Request
from commod._reporting.explain.as_text import shortened
from commod._reporting.explain.cards import CardMaker
from commod.exceptions import InputError
from commod.rivals.base import Rival
from commod.scorecard import decide, edited_scores
from commod.updates.base import BaseUpdate
from commod.updates.controlled import ControlledDebiaser
from commod.updates.ratio import RatioUpdate

__all__ = ["Known", "check_labels", "chunks", "of_labels", "of_update", "request_of", "settings_of"]

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

CHUNK = 50_000  # rows that are terms at the same time


def chunks(n: int) -> list[slice]:
    """Return slices that go through n rows, so many at a time."""
    return [slice(first, min(first + CHUNK, n)) for first in range(0, n, CHUNK)]


@dataclass(frozen=True)
class Known:
    """Decisions before and after, labels, and what more an update tells of its rows."""

    before: Mask
    after: Mask
    y_before: NDArray[Any]
    y_after: NDArray[Any]
    pos_label: Any
    negative_label: Any
    favorable_label: Any
    scores_before: Floats | None = None
    scores_after: Floats | None = None
    ratio: Floats | None = None
    raw_ratio: Floats | None = None
    card: Card | None = None
    skip: frozenset[str] = frozenset()


def of_labels(X: Any, y_before: Any, y_after: Any, pos_label: Any, favorable_label: Any) -> Known:
    """Return what is known of two models by their decisions alone."""
    if y_before is None or y_after is None:
        raise InputError("Without an update, pass the decisions: y_before=..., y_after=....")
    n = n_rows_of(X)
    before, after = read_labels(y_before, "y_before"), read_labels(y_after, "y_after")
    check_length(before, "y_before", n)
    check_length(after, "y_after", n)
    values = list(dict.fromkeys([*distinct_labels(before), *distinct_labels(after)]))
    if pos_label is None:
        if 1 not in values:
            raise InputError(
                f"The decisions are {values[:4]}: pass the label that counts as positive as "
                "pos_label=."
            )
        pos_label = 1
    both = np.concatenate([before, after]) if before.dtype == after.dtype else None
    if both is not None:
        binary_outcome(both, "y_before and y_after", pos_label)
    elif len(values) > 2 or pos_label not in values:
        raise InputError(f"The decisions are {values[:4]}; expected two, pos_label among them.")
    others = [value for value in values if value != pos_label]
    favorable = pos_label if favorable_label is None else favorable_label
    if favorable not in (pos_label, *others):
        raise InputError(f"favorable_label={favorable!r} is none of the decisions: {values}.")
    return Known(
        before=np.asarray(before == pos_label, dtype=bool),
        after=np.asarray(after == pos_label, dtype=bool),
        y_before=before,
        y_after=after,
        pos_label=pos_label,
        negative_label=others[0] if others else None,
        favorable_label=favorable,
    )


def check_labels(update: Any, pos_label: Any, favorable_label: Any) -> None:
    """Refuse labels that are not the update's own."""
    for name, given in (("pos_label", pos_label), ("favorable_label", favorable_label)):
        own = getattr(update, f"{name}_", None)
        if given is not None and own is not None and given != own:
            raise InputError(
                f"{name}={given!r}, but the update was fitted with {plain(own)!r}. Leave it out."
            )


def of_update(update: Any, X: Any, sensitive_features: Any, level: float) -> Known:
    """Return what is known of an update on some rows."""
    if isinstance(update, RatioUpdate):
        found = _of_ratio(update, X, level)
    elif isinstance(update, Rival):
        found = _of_rival(update, X, sensitive_features)
    else:
        raise InputError(
            f"explain takes an update of commod or commod.rivals; got {type(update).__name__}. For "
            "any other model: explain(None, X, y_before=..., y_after=...)."
        )
    return found


def _of_ratio(update: RatioUpdate, X: Any, level: float) -> Known:
    base, columns = update._read_rows(X)
    function, scorecard = update._ratio_function(), update.scorecard_
    maker = None if scorecard is None else CardMaker(scorecard)
    n, decisions = len(base.scores), base.decisions
    raw, ratio, after = np.empty(n), np.empty(n), np.empty(n, dtype=bool)
    for part in chunks(n):  # all rows as terms at once would be a second X
        terms = function.encoding.encode([column.take(part) for column in columns])
        raw[part] = function.evaluate(terms)
        ratio[part] = update._effective(decisions[part], raw[part])
        after[part] = decide(base.scores[part], ratio[part], base.threshold)
        if maker is not None:
            maker.add(terms, after[part] != decisions[part])
    return Known(
        before=decisions,
        after=after,
        **_labels_and_skip(update, decisions, after),
        scores_before=base.scores,
        scores_after=edited_scores(base.scores, ratio, base.threshold),
        ratio=ratio,
        raw_ratio=raw,
        card=None if maker is None else maker.card(level),
    )


def _of_rival(update: Rival, X: Any, sensitive_features: Any) -> Known:
    groups = {}
    if update.needs_sensitive_features:
        if sensitive_features is None:
            raise InputError(
                f"{type(update).__name__} decides by group: pass explain(update, X, "
                "sensitive_features=...) with the group of each row."
            )
        groups = {"sensitive_features": sensitive_features}
    rows = update._read_rows(X, **groups)
    before, after = rows.base.decisions, update._made(rows)
    return Known(
        before=before,
        after=after,
        **_labels_and_skip(update, before, after),
        scores_before=rows.base.scores,
        scores_after=update._scores(rows, update._decided(rows)),
    )


def _labels_and_skip(update: BaseUpdate, before: Mask, after: Mask) -> dict[str, Any]:
    is_score = isinstance(update.estimator, ScoreColumn)
    return {
        "y_before": update._labels_of(before),
        "y_after": update._labels_of(after),
        "pos_label": update.pos_label_,
        "negative_label": update.classes_[update.classes_ != update.pos_label_][0],
        "favorable_label": update.favorable_label_,
        # what r must not or cannot read is no reason for a change
        "skip": update._unread() | ({update.estimator.name} if is_score else frozenset()),
    }


def request_of(update: Any, known: Known) -> Request:
    """Return what was asked of an update."""
    labels = {"pos_label": plain(known.pos_label), "favorable_label": plain(known.favorable_label)}
    if update is None:
        return Request(**labels)
    asked: dict[str, Any] = {}
    if isinstance(update, ControlledDebiaser):
        names = ("max_changes", "max_accuracy_loss", "max_volume_change", "confidence")
        asked = {name: _number(getattr(update, name)) for name in names}
        asked["direction"] = update.direction
        asked["target"] = None if update._is_budget else float(update.target_)
    return Request(
        constraints=update.constraints,
        threshold=float(update.threshold),
        **labels,
        **asked,
    )


def _number(value: Any) -> float | None:
    return None if value is None else float(value)


def settings_of(update: Any) -> dict[str, str]:
    """Return the parameters of an update as short texts."""
    if update is None:
        return {}
    params = update.get_params()
    del params["estimator"]
    return {name: _setting(value) for name, value in params.items()}


def _setting(value: Any) -> str:
    text = value if isinstance(value, str) else repr(value)
    # an address in memory is no setting, and another one each time
    return type(value).__name__ if " at 0x" in text else shortened(text)
