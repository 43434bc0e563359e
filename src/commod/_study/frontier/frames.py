"""Fit many updates on a table that stays where it is, and measure them on all its rows."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import Any

from sklearn.base import clone

from commod._study.each_once import each_warning_once
from commod._study.frontier.counts import counted_rows
from commod._study.frontier.curve import Frontier, Point
from commod._study.frontier.fitting import frontier
from commod.exceptions import InputError
from commod.updates import ControlledDebiaser
from commod.updates._stated import set_moving

NOT_COMPUTED = (
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
    Directions are searched for on a sample, for at most five of the targets. The other targets move
    the offset of these directions, which lies between two of about 1,300 bins. A table that is too
    small for a sample comes whole, and `frontier` sweeps it in memory.

    Parameters
    ----------
    update : ControlledDebiaser
        The update to fit. The sweep replaces its own target and ignores `confidence`.
    frame, sensitive_features, y_true, features, key
        The fit rows, as in `ControlledDebiaser.fit_frame`. All rows are measured.
    targets : sequence of float, default=None
        One update for each target, on new people or on the fit rows (`target_on`). None: 28 targets
        from the base model to near parity, and the update's own target among them.
    moving : int, default=0
        Which of several constraints moves; see `frontier`.

    Returns
    -------
    Frontier
        As `frontier` returns it. On a sample, what needs single rows is not known: `outscoring` and
        `outscoring_losses` are NaN, and the steps of `trade_off` have no segments and no points.
        `notes` says so. `searched_target` is the target that the direction was searched for.

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
    from commod.updates._frames.fit import WholeTable
    from commod.updates._frames.models import score_column, take_base_model
    from commod.updates._frames.sweep import sweep_frame

    if not hasattr(update, "fit_frame"):
        raise InputError(
            f"frontier_frame takes a ControlledDebiaser; got {type(update).__name__}. Use frontier "
            "on rows in memory for other updates.",
            parameter="update",
        )
    model = clone(set_moving(update, moving)).set_params(confidence=None)
    conditions = [one.within.column for one in model.stated().constraints if one.within]
    unused = {"sample_weight": None, "change_cost": None}
    named = name_columns(
        model.estimator, sensitive_features, conditions, features, y_true=y_true, key=key, **unused
    )
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
    for candidate in sweep.candidates:
        take_base_model(candidate.update, model)
    points = zip(sweep.candidates, sweep.n_changed, strict=True)
    return Frontier(
        [Point(candidate, n_changed) for candidate, n_changed in points],
        counted_rows(model, sweep.rows),
        "fit rows",
        allowed=model.asked_changes(),
        fit_seconds=perf_counter() - begin,
        method=type(update).__name__,
        notes=f"{sweep.text} {NOT_COMPUTED}",
    )


def _swept_updates(curve: Frontier) -> list[Any]:
    """Return the updates that those of a sweep in memory are copied from when asked for."""
    makers = [getattr(point.candidate, "fitted_copy", None) for point in curve.points]
    readers = {id(maker.__self__): maker.__self__ for maker in makers if maker is not None}
    return list(readers.values())
