"""Fit many updates in one computation, along targets, lambdas or strengths, and measure them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.utils import get_tags

from commod._data.columns import Column
from commod._data.encoding import TermTable
from commod._data.parameters import check_flag
from commod._record import Card, Segments
from commod._reporting.explain import SegmentFinder, make_card
from commod._reporting.explain.segments import InMemory
from commod._study.evaluation import (
    EvaluationRows,
    as_decisions,
    choose_evaluated,
    compared_groups,
    each_warning_once,
    read_evaluation_rows,
    read_fit_groups,
)
from commod._study.frontier.curve import Frontier, Point
from commod.bounds._counts import check_simple
from commod.scorecard import MARGIN_COLUMN
from commod.updates._interface import RawRows, set_moving
from commod.updates.base import BaseUpdate, check_update


def frontier(
    update: BaseUpdate,
    X: Any,
    y: Any = None,
    *,
    sensitive_features: Any = None,
    sensitive_probabilities: Any = None,
    targets: Sequence[float] | None = None,
    grid: Mapping[str, Sequence[float]] | None = None,
    moving: int = 0,
    X_eval: Any = None,
    y_eval: Any = None,
    sensitive_features_eval: Any = None,
    describe: bool = True,
    blind_limit: bool = False,
) -> Frontier:
    """Return many updates along the trade-off, fitted together and measured on the same rows.

    Parameters
    ----------
    update : ControlledDebiaser, COMMOD or one of commod.rivals
        The update to fit. The sweep replaces its own target, lambdas or strength.
    X, y, sensitive_features
        The fit rows, as in `update.fit`.
    sensitive_probabilities : table of shape (n, n_groups), default=None
        Probabilities of the groups in place of `sensitive_features`, for `ControlledDebiaser`. They
        need `X_eval` with `sensitive_features_eval`: updates are measured on people whose group is
        known.
    targets : sequence of float, default=None
        For ControlledDebiaser only: one update for each target, on new people or on the fit rows
        (`target_on`). Points are fitted at up to three of the targets. Between these, updates are
        approximate: each has the points of the nearest one and a cut of its own. None: 100 targets
        from the base model to near parity, the update's own target among them.
    grid : mapping of str to sequence, default=None
        Values to combine. COMMOD: its lambdas and `random_state` (None: the published grid). A
        rival: `strength` (None: its `default_strengths`). ControlledDebiaser: none.
    moving : int, default=0
        Which of several constraints moves, in the order of `constraints`; the others keep their
        bounds. `targets` are those of the one that moves.
    X_eval, y_eval, sensitive_features_eval : default=None
        Rows to measure on, preferably new ones; the fit rows if None.
    describe : bool, default=True
        Let `Frontier.trade_off` return segments and points of the efficient updates, which a
        report shows. Until its first call, the frontier keeps the columns of the evaluated rows.
        False saves this memory and the time of the call.
    blind_limit : bool, default=False
        Estimate the fewest changes of a rule that does not read the group, for the fairness of at
        most eight of the efficient updates: see `commod.bounds.blind_changes`. It takes five models
        of the evaluated rows and up to a second for each update, and needs one simple constraint.

    Returns
    -------
    Frontier

    Examples
    --------
    >>> from commod import ControlledDebiaser, frontier
    >>> from commod.datasets import make_biased
    >>> from sklearn.linear_model import LogisticRegression
    >>> old, new = make_biased(800, random_state=0), make_biased(800, random_state=1)
    >>> model = LogisticRegression().fit(old.data, old.target)
    >>> curve = frontier(
    ...     ControlledDebiaser(model),
    ...     old.data,
    ...     old.target,
    ...     sensitive_features=old.sensitive_features,
    ...     X_eval=new.data,
    ...     y_eval=new.target,
    ...     sensitive_features_eval=new.sensitive_features,
    ... )
    >>> len(curve)
    100
    >>> update = curve.select(target=0.8)
    >>> update.predict(new.data).shape
    (800,)
    """
    check_update(update, "frontier", "For other classifiers use compare.")
    check_flag(describe, "describe")
    check_flag(blind_limit, "blind_limit")
    update = set_moving(update, moving)
    if blind_limit:
        check_simple(update.stated().constraints, "The blind limit")
    given_groups = sensitive_features, sensitive_probabilities
    fit_rows = RawRows(X, y, read_fit_groups(update, X, *given_groups, X_eval))
    given = RawRows(X_eval, y_eval, sensitive_features_eval)
    eval_rows, rows_word = choose_evaluated(fit_rows, given)
    begin = perf_counter()
    with each_warning_once():
        sweep = update.sweep(fit_rows, targets, grid)
    fit_seconds = perf_counter() - begin
    reader: BaseUpdate = sweep.reader
    read = reader.read_rows(eval_rows.X, eval_rows.sensitive_features)
    rows = read_evaluation_rows(reader, compared_groups(update, fit_rows), read.base, eval_rows)
    raw_columns = [column for column in read.columns if column.name != MARGIN_COLUMN]
    describer = None
    if describe:
        has_scorecard = getattr(reader, "scorecard_", None) is not None
        terms, max_margin = read.terms if has_scorecard else None, reader.asked_changes().max_margin
        describer = PointDescriber.on_rows(rows, raw_columns, terms, max_margin)
    return Frontier(
        [Point(candidate, as_decisions(candidate.decide(read))) for candidate in sweep.candidates],
        rows,
        rows_word,
        allowed=reader.asked_changes(),
        fit_seconds=fit_seconds,
        needs_sensitive_features=get_tags(reader).needs_sensitive_features,
        method=type(update).__name__,
        describe=describer,
        blind_columns=raw_columns if blind_limit else None,
    )


# ---------------------------------------------------------------------------------------------
# Describe the updates of a frontier: who changes, as a few segments, and the points


@dataclass(frozen=True)
class PointDescriber:
    """Finds segments and points of updates on the evaluated rows, whose columns are read once.

    `terms` are the evaluated rows as terms of the scorecards; None for updates without one.
    `max_margin` is the largest distance from the threshold at which decisions may change.
    """

    finder: SegmentFinder
    rows: EvaluationRows
    terms: TermTable | None = None
    max_margin: float | None = None

    @classmethod
    def on_rows(
        cls,
        rows: EvaluationRows,
        columns: Sequence[Column],
        terms: TermTable | None,
        max_margin: float | None = None,
    ) -> PointDescriber:
        """Return the describer for these rows; `columns` are copied.

        The copy is needed because the caller may change the table before segments are searched.
        """
        copies = [
            replace(column, values=np.array(column.values[rows.in_totals])) for column in columns
        ]
        before = rows.before[rows.in_totals]
        finder = SegmentFinder(InMemory(copies), before == rows.gain_raises)
        if terms is not None and not isinstance(rows.in_totals, slice):
            terms = terms.take(np.flatnonzero(rows.in_totals))
        return cls(finder, rows, terms, max_margin)

    def __call__(self, point: Point) -> tuple[Segments | None, Card | None]:
        """Return the segments and the card of one update; None for a randomised update."""
        if point.after.dtype != np.bool_:
            return None, None
        counted = self.rows.in_totals
        changed = self.rows.before[counted] ^ point.after.astype(np.bool_)[counted]
        favorable = self.finder.favorable_before
        segments, _ = self.finder.find(changed & ~favorable, changed & favorable)
        if self.terms is None:
            return segments, None
        card = point.candidate.scorecard()
        return segments, make_card(card, self.terms, changed, favorable, self.max_margin)
