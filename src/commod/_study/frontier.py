"""Fit many updates in one computation, along targets, lambdas or strengths, and measure them.

`frontier` takes rows in memory, and `frontier_frame` a table that stays where it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter

from commod._data.columns import Column
from commod._data.disclosure import FEWEST_DESCRIBED, in_totals
from commod._data.encoding import TermTable
from commod._data.parameters import check_flag
from commod._record import Card, Segments
from commod._reporting.explain import SegmentFinder, make_card
from commod._reporting.explain.segments import InMemory
from commod._study.curve import Describe, Frontier, Point
from commod._study.evaluation import (
    ANY_CHANGE,
    NAME,
    EvaluationRows,
    as_decisions,
    choose_evaluated,
    compared_groups,
    each_warning_once,
    read_evaluation_rows,
    rows_of_update,
    stated_of,
)
from commod.bounds._counts import check_simple
from commod.constraints import AllOf
from commod.exceptions import InputError
from commod.scorecard import MARGIN_COLUMN
from commod.updates import ControlledDebiaser
from commod.updates._controlled_parameters import given_groups
from commod.updates._fit_rows import FitRows
from commod.updates._interface import AllowedChanges, RawRows
from commod.updates.base import BaseUpdate, check_update

Update = TypeVar("Update", bound=BaseUpdate)

NOTES = (
    "All figures were counted on all rows, and points come from those with the smallest hash. "
    "Segments and how often gainers outscore others need single rows, and were not computed."
)


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
        check_simple(update._stated().constraints, "The blind limit")
    groups = sensitive_features
    if sensitive_probabilities is not None:
        _check_probabilities(update, has_eval=X_eval is not None)
        groups = given_groups(update, X, sensitive_features, sensitive_probabilities)
    fit_rows = RawRows(X, y, groups)
    given = RawRows(X_eval, y_eval, sensitive_features_eval)
    eval_rows, rows_word = choose_evaluated(fit_rows, given)
    begin = perf_counter()
    with each_warning_once():
        sweep = update._sweep(fit_rows, targets, grid)
    fit_seconds = perf_counter() - begin
    reader: BaseUpdate = sweep.reader
    read = reader._read_rows(eval_rows.X, eval_rows.sensitive_features)
    rows = read_evaluation_rows(reader, compared_groups(update, fit_rows), read.base, eval_rows)
    raw_columns = [column for column in read.columns if column.name != MARGIN_COLUMN]
    describer = None
    if describe:
        has_scorecard = getattr(reader, "scorecard_", None) is not None
        terms, max_margin = (
            read.terms if has_scorecard else None,
            reader._asked_changes().max_margin,
        )
        describer = _describer(rows, raw_columns, terms, max_margin)
    return Frontier(
        [Point(candidate, as_decisions(candidate.decide(read))) for candidate in sweep.candidates],
        rows,
        rows_word,
        allowed=reader._asked_changes(),
        fit_seconds=fit_seconds,
        needs_sensitive_features=get_tags(reader).needs_sensitive_features,
        method=type(update).__name__,
        describe=describer,
        blind_columns=raw_columns if blind_limit else None,
    )


def _check_probabilities(update: BaseUpdate, *, has_eval: bool) -> None:
    """Refuse probabilities of groups unless the update takes them, and others are measured.

    Updates are measured on people whose group is known, so probabilities need other rows for that.
    """
    if not has_fit_parameter(update, NAME):
        raise InputError(
            f"{type(update).__name__} needs the group of each person, not {NAME}. Pass "
            "sensitive_features of people whose group is known, or use ControlledDebiaser.",
            parameter=NAME,
        )
    if not has_eval:
        raise InputError(
            f"With {NAME}, a frontier needs people whose group is known to measure on. Pass them "
            "as X_eval, y_eval and sensitive_features_eval.",
            parameter=NAME,
        )


def _describer(
    rows: EvaluationRows,
    columns: Sequence[Column],
    terms: TermTable | None,
    max_margin: float | None,
) -> Describe:
    """Return what finds the segments and the card of an update on the evaluated rows.

    `terms` are the rows as terms of the scorecards; None for updates without one. `max_margin` is
    the largest distance from the threshold at which decisions may change. Columns are copied,
    because the caller may change the table before segments are searched.
    """
    counted = rows.in_totals
    copies = [replace(column, values=np.array(column.values[counted])) for column in columns]
    before = rows.before[counted]
    finder = SegmentFinder(InMemory(copies), before == rows.gain_raises)
    if terms is not None and not isinstance(counted, slice):
        terms = terms.take(np.flatnonzero(counted))

    def describe(point: Point) -> tuple[Segments | None, Card | None]:
        if point.after.dtype != np.bool_:  # a randomised update
            return None, None
        changed = before ^ point.after[counted]
        favorable = finder.favorable_before
        segments, _ = finder.find(changed & ~favorable, changed & favorable)
        if terms is None:
            return segments, None
        card = point.candidate.scorecard()
        return segments, make_card(card, terms, changed, favorable, max_margin)

    return describe


# ---------------------------------------------------------------------------------------------
# Tables that stay in their engine


def frontier_frame(
    update: ControlledDebiaser,
    frame: Any,
    *,
    sensitive_features: str | Sequence[str],
    y_true: str | None = None,
    features: Sequence[str] | None = None,
    key: str | None = None,
    targets: Sequence[float] | None = None,
    moving: int = 0,
) -> Frontier:
    """Return many updates along the trade-off of a table that stays in DuckDB, Spark or files.

    The engine counts fairness, accuracy, changes and the exact limit of every update on all rows.
    A table of at most a million rows comes whole, and `frontier` sweeps it in memory. Of a larger
    one, points are fitted for three of the targets, on the rows with the smallest hash of the key.
    The other targets take the points of the nearest one, and a cut that lies between two bins.

    Parameters
    ----------
    update : ControlledDebiaser
        The update to fit. The sweep replaces its own target and ignores `confidence`.
    frame, sensitive_features, y_true, features, key
        The fit rows, as in `ControlledDebiaser.fit_frame`. All rows are measured.
    targets : sequence of float, default=None
        One update for each target, on new people or on the fit rows (`target_on`). None: 100
        targets from the base model to near parity, and the update's own target among them.
    moving : int, default=0
        Which of several constraints moves; see `frontier`.

    Returns
    -------
    Frontier
        As `frontier` returns it. Where the table does not come whole, what needs single rows is
        not known: `outscoring` and `outscoring_losses` are NaN, and the steps of `trade_off` have
        no segments and no points. `notes` says so. `points_from` is the target whose points an
        update has, and `select` returns the update as it was counted. `fit_frame` fits a target
        exactly.

    Examples
    --------
    >>> import duckdb
    >>> from commod import ControlledDebiaser, ScoreColumn, frontier_frame
    >>> people = duckdb.sql(
    ...     '''SELECT i AS id, i % 3 = 0 AS minority, (i * 7919) % 1000 / 1000 AS income,
    ...               0.2 + 0.5 * income + CASE WHEN minority THEN 0 ELSE 0.2 END AS score
    ...        FROM range(60000) AS t(i)'''
    ... )
    >>> update = ControlledDebiaser(ScoreColumn("score"), target_on="fit_rows")
    >>> curve = frontier_frame(
    ...     update, people, sensitive_features="minority", key="id", targets=[0.7, 0.8, 0.9]
    ... )
    >>> bool((curve.frame()["fairness"] >= curve.frame()["target"]).all())
    True
    >>> curve.select(target=0.8).n_rows_
    60000
    """
    # Most programs have their rows in memory and never need these modules.
    from commod.updates._frames.columns import name_columns
    from commod.updates._frames.fit import sweep_frame
    from commod.updates._frames.models import score_column, take_base_model
    from commod.updates._frames.pulled import WholeTable

    if not hasattr(update, "fit_frame"):
        raise InputError(
            f"frontier_frame takes a ControlledDebiaser; got {type(update).__name__}. Use frontier "
            "on rows in memory for other updates.",
            parameter="update",
        )
    model = clone(set_moving(update, moving)).set_params(confidence=None)
    conditions = [one.within.column for one in model._stated().constraints if one.within]
    columns = {"y_true": y_true, "key": key, "sample_weight": None}
    named = name_columns(model.estimator, sensitive_features, conditions, features, **columns)
    begin = perf_counter()
    with each_warning_once(), score_column(model, frame, named) as (scored, with_score):
        sweep = sweep_frame(model, scored, with_score, targets)
        if isinstance(sweep, WholeTable):
            whole = {"y": sweep.y, "sensitive_features": sweep.sensitive_features}
            curve = frontier(model, sweep.X, targets=targets, **whole)
    if isinstance(sweep, WholeTable):
        for reader in _swept_updates(curve):
            take_base_model(reader, model)
        return curve
    points = zip(sweep.candidates, sweep.n_changed, strict=True)
    return Frontier(
        [Point(candidate, n_changed) for candidate, n_changed in points],
        counted_rows(model, sweep.rows),
        "fit rows",
        allowed=model._asked_changes(),
        fit_seconds=perf_counter() - begin,
        method=type(update).__name__,
        notes=NOTES,
    )


def _swept_updates(curve: Frontier) -> list[Any]:
    """Return the update that those of a sweep in memory are made from when asked for."""
    models = [getattr(point.candidate, "model", None) for point in curve.points]
    return list({id(model): model for model in models if model is not None}.values())


# ---------------------------------------------------------------------------------------------
# Measure updates on lines of counts: an update is how many people of each line it changes


class EvaluationCounts(EvaluationRows):
    """Rows that stand for many people, of whom an update may change some.

    An update comes as the number of people of each row whose decision it changes, shape (n,).
    """

    def measure(
        self, after: NDArray[Any], allowed: AllowedChanges = ANY_CHANGE
    ) -> dict[str, float]:
        """Return the figures of an update that changes `after` people; see `EvaluationRows`."""
        n_rows = len(self.before)
        twice = np.tile(np.arange(n_rows), 2)
        people, is_all = self.people.take(twice), isinstance(self.in_totals, slice)
        each = np.concatenate([self._each - after, after.astype(np.float64)])
        split = replace(
            self,
            before=self.before[twice],
            people=replace(people, each=each),
            in_totals=self.in_totals if is_all else self.in_totals[twice],  # type: ignore[index]
        )
        is_changed = np.arange(2 * n_rows) >= n_rows
        return super(EvaluationCounts, split).measure(split.before ^ is_changed, allowed)


def counted_rows(update: BaseUpdate, rows: FitRows) -> EvaluationCounts:
    """Return lines of counts as rows to measure on; scores of single people are not known."""
    people = replace(rows.compared(stated_of(update)), weight=None, each=np.rint(rows.each))
    sizes = np.bincount(rows.groups.codes, rows.each, minlength=len(rows.groups.labels))
    is_hidden = ~rows.is_large_group & (sizes < FEWEST_DESCRIBED)
    return rows_of_update(
        EvaluationCounts,
        update,
        counted=in_totals(rows.groups.codes, is_hidden, 0),
        people=people,
        before=rows.base.decisions,
        n_groups_left_out=int((~rows.is_large_group).sum()),
    )


def set_moving(update: Update, moving: int) -> Update:
    """Return an update whose constraint number `moving` comes first, because it moves."""
    parts = list(update._stated().parts)
    if isinstance(moving, bool) or not isinstance(moving, int) or not 0 <= moving < len(parts):
        numbers = "0" if len(parts) == 1 else f"0 to {len(parts) - 1}"
        raise InputError(
            f"moving={moving!r} is not the number of a constraint: pass {numbers}, in the order "
            "of constraints.",
            parameter="moving",
        )
    if moving == 0:
        return update
    parts.insert(0, parts.pop(moving))
    return clone(update).set_params(constraints=AllOf(parts))
