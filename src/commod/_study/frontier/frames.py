"""Fit many updates on a table that stays where it is, and measure them on all its rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from commod._data.codes import plain
from commod._data.disclosure import FEWEST_DESCRIBED, in_totals
from commod._study.evaluation import ANY_CHANGE, EVERYBODY, EvaluationRows, each_warning_once
from commod._study.frontier.curve import Frontier, Point
from commod._study.frontier.fitting import frontier
from commod._text import label_text
from commod.exceptions import InputError
from commod.updates import ControlledDebiaser
from commod.updates._fit_rows import FitRows
from commod.updates._interface import AllowedChanges, set_moving

NOTES = (
    "All figures were counted on all rows, and points come from those with the smallest hash. "
    "Segments and how often gainers outscore others need single rows, and were not computed."
)


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
    conditions = [one.within.column for one in model.stated().constraints if one.within]
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
        allowed=model.asked_changes(),
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
        assert self.people is not None
        is_all = isinstance(self.in_totals, slice)
        split = EvaluationRows(
            **{
                **{each.name: getattr(self, each.name) for each in fields(self)},
                "before": self.before[twice],
                "label": None if self.label is None else self.label[twice],
                "group": self.group[twice],
                "in_totals": EVERYBODY if is_all else self.in_totals[twice],  # type: ignore[index]
                "strata": {one: strata.take(twice) for one, strata in self.strata.items()},
                "people": np.concatenate([self.people - after, after.astype(np.float64)]),
            }
        )
        return split.measure(split.before ^ (np.arange(2 * n_rows) >= n_rows), allowed)


def counted_rows(update: Any, rows: FitRows) -> EvaluationCounts:
    """Return lines of counts as rows to measure on; scores of single people are not known."""
    group, n_groups = rows.large_groups
    sizes = np.bincount(rows.groups.codes, rows.each, minlength=len(rows.groups.labels))
    is_hidden = ~rows.is_large_group & (sizes < FEWEST_DESCRIBED)
    counted = in_totals(rows.groups.codes, is_hidden, 0)
    return EvaluationCounts(
        constraints=update.stated().constraints[0],
        before=rows.base.decisions,
        label=rows.label,
        group=group,
        n_groups=n_groups,
        gain_raises=bool(update.favorable_label_ == update.pos_label_),
        n_groups_left_out=int((~rows.is_large_group).sum()),
        in_totals=EVERYBODY if counted.all() else counted,
        outcome=label_text(None, plain(update.pos_label_)),
        standing=update.standing(),
        strata=rows.strata,
        people=np.rint(rows.each),
    )
