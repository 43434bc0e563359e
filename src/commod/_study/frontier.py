"""Fit many updates in one computation, along targets, lambdas or strengths, and measure them.

`frontier` takes rows in memory, and `frontier_frame` a table that stays where it is. Both return a
`Frontier`: the updates with their figures, one of which can be selected, and their picture.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from numbers import Real
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter

from commod._data.columns import Column, plain
from commod._data.disclosure import FEWEST_DESCRIBED, in_totals
from commod._data.encoding import TermTable
from commod._data.parameters import check_choice, check_flag, check_number_parameter
from commod._record.explanation import Card, Estimate, Segments, Step, TradeOff
from commod._reporting.explain import SegmentFinder, make_card
from commod._reporting.explain.segments import FrameColumns
from commod._reporting.render.page import map_of
from commod._study.evaluation import (
    ANY_CHANGE,
    EvaluationRows,
    as_decisions,
    choose_evaluated,
    compared_groups,
    each_warning_once,
    read_evaluation_rows,
    rows_of_update,
)
from commod._study.pictures import (
    COLOR_LABELS,
    default_color,
    draw_dots,
    efficient_expectations,
)
from commod._text import count, first_rows, number, percent, snippet
from commod.bounds._limits import check_simple
from commod.constraints import AllOf
from commod.exceptions import InputError, TargetWarning
from commod.scorecard import MARGIN_COLUMN, AllowedChanges
from commod.updates import ControlledDebiaser
from commod.updates._fit_rows import FitRows
from commod.updates._interface import Candidate, RawRows
from commod.updates._targeted import checked_targets, given_groups
from commod.updates.base import BaseUpdate, check_update

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

Update = TypeVar("Update", bound=BaseUpdate)

NAME = "sensitive_probabilities"
NOTES = (
    "All figures were counted on all rows, and points come from those with the smallest hash. "
    "Segments and how often gainers outscore others need single rows, and were not computed."
)
MAX_SHOWN = 30  # updates of a table in a notebook
MOST_STEPS = 20  # steps of a trade-off: as many as a slider can show
MOST_BLIND = 8  # updates with a blind limit, each of which takes up to a second
EXPECTED = ("expected_fairness", "expected_change_rate", "expected_accuracy")
FIGURES = (
    "target",
    "fairness",
    "accuracy",
    "change_rate",
    "n_changes",
    "n_gains",
    "n_losses",
    "limit",
    "outscoring",
    "outscoring_losses",
    *EXPECTED,
)
BLIND = ("blind_limit", "blind_limit_low", "blind_limit_high")  # figures on request
BLIND_LABEL = "fewest without the group"


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
    compared = compared_groups(update, fit_rows)
    rows = read_evaluation_rows(reader, compared, read.base, eval_rows, rows_word)
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
    finder = SegmentFinder(FrameColumns(None, added=copies), before == rows.gain_raises)
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
    ...     update, people, sensitive_features="minority", key="id", targets=[0.6, 0.7, 0.8]
    ... )
    >>> bool((curve.frame()["fairness"] >= curve.frame()["target"]).all())
    True
    >>> curve.select(target=0.8).n_rows_
    60000
    """
    # Most programs have their rows in memory and never need these modules.
    from commod.updates._frame_fit import may_pull, opened_table, sweep_parts, take_base_model
    from commod.updates._frame_rows import read_whole

    if not hasattr(update, "fit_frame"):
        raise InputError(
            f"frontier_frame takes a ControlledDebiaser; got {type(update).__name__}. Use frontier "
            "on rows in memory for other updates.",
            parameter="update",
        )
    model = clone(set_moving(update, moving)).set_params(confidence=None)
    targets = checked_targets(model, targets)
    opened = opened_table(model, frame, sensitive_features, features, y_true=y_true, key=key)
    begin = perf_counter()
    curve = None
    with each_warning_once(), opened as table:
        if may_pull(table):
            X, y, groups, *_ = read_whole(model, table)
            curve = frontier(model, X, y, sensitive_features=groups, targets=targets)
        else:
            points, lines = sweep_parts(model, table, targets)
    if curve is not None:
        candidates = [getattr(point.candidate, "model", None) for point in curve.points]
        for reader in {id(one): one for one in candidates if one is not None}.values():
            take_base_model(reader, model)
        return curve
    return Frontier(
        [Point(*one) for one in points],
        counted_rows(model, lines),
        allowed=model._asked_changes(),
        fit_seconds=perf_counter() - begin,
        method=type(update).__name__,
        notes=NOTES,
    )


def counted_rows(update: BaseUpdate, rows: FitRows) -> EvaluationRows:
    """Return lines of counts as rows to measure on; scores of single people are not known."""
    people = rows.compared(update._stated().constraints)
    people = replace(people, weight=None, each=np.rint(rows.each))
    sizes = np.bincount(rows.groups.codes, rows.each, minlength=len(rows.groups.labels))
    is_hidden = ~rows.is_large_group & (sizes < FEWEST_DESCRIBED)
    return rows_of_update(
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


# ---------------------------------------------------------------------------------------------
# What is returned: the updates with their figures


class Point(NamedTuple):
    """One update of a frontier, and its decisions on the evaluated rows.

    Where rows stand for many people, `after` says how many of each it changes.
    """

    candidate: Candidate
    after: NDArray[Any]


Describe = Callable[[Point], tuple[Segments | None, Card | None]]


class Frontier:
    """Updates along the trade-off, measured on the same rows; made by `frontier`.

    Attributes
    ----------
    constraints : str
        The fairness constraint.
    base_fairness, base_accuracy : float
        The base model's figures on the same rows; accuracy is NaN without labels.
    rows_word : str
        "fit rows" or "evaluated rows": the rows on which the figures were measured.
    fit_seconds : float
        Seconds that fitting all updates took.
    needs_sensitive_features, randomised : bool
        Whether the updates need the group to decide, and whether some of them are randomised. A
        randomised update has expected figures.
    notes : str
        What was counted on all rows of a frame, and what is not known; empty for rows in memory.

    Examples
    --------
    >>> from commod import ControlledDebiaser, frontier
    >>> from commod.datasets import make_biased
    >>> from sklearn.linear_model import LogisticRegression
    >>> data = make_biased(800, random_state=0)
    >>> model = LogisticRegression().fit(data.data, data.target)
    >>> curve = frontier(
    ...     ControlledDebiaser(model),
    ...     data.data,
    ...     data.target,
    ...     sensitive_features=data.sensitive_features,
    ...     targets=[0.7, 0.9],
    ... )
    >>> len(curve), list(curve.frame().columns[:5])
    (2, ['target', 'fairness', 'accuracy', 'change_rate', 'n_changes'])
    """

    def __init__(
        self,
        points: Sequence[Point],
        rows: EvaluationRows,
        *,
        allowed: AllowedChanges = ANY_CHANGE,
        fit_seconds: float = float("nan"),
        needs_sensitive_features: bool = False,
        method: str = "update",
        describe: Describe | None = None,
        notes: str = "",
        blind_columns: Sequence[Column] | None = None,
    ) -> None:
        self.constraints = rows.constraint.name
        self.rows_word = rows.rows_word
        self.fit_seconds = fit_seconds
        self.needs_sensitive_features = needs_sensitive_features
        self.randomised = any(point.after.dtype.kind == "f" for point in points)
        self.notes = notes
        self.base_fairness, self.base_accuracy = rows.base_fairness, rows.base_accuracy
        self.points = list(points)
        self._rows = rows
        self._allowed = allowed
        self._method = method
        self._describe = describe
        self._figures = self._measured()
        self._has_blind_limits = blind_columns is not None
        if blind_columns is not None:
            self._add_blind_limits(blind_columns)

    def __len__(self) -> int:
        return len(self.points)

    def __getstate__(self) -> dict[str, Any]:
        self.trade_off()  # drops the columns of the evaluated rows: no file may hold them
        return self.__dict__.copy()

    def __repr__(self) -> str:
        return (
            f"Frontier of {len(self)} updates, {self._rows.metric} "
            f"{self.base_fairness:.3f} before, measured on {self._rows.name}"
        )

    def _repr_html_(self) -> str:
        metric = self._rows.metric
        before = f"{metric} {number(self.base_fairness, 3)}"
        if not np.isnan(self.base_accuracy):
            before += f" and accuracy {number(self.base_accuracy, 3)}"
        columns: list[tuple[str, Callable[[Any], str], str]] = [
            ("target", number, "target"),
            (metric, partial(number, digits=3), "fairness"),
            ("accuracy", partial(number, digits=3), "accuracy"),
            ("changed", percent, "change_rate"),
            ("fewest possible", percent, "limit"),
            ("gains", count, "n_gains"),
            ("losses", count, "n_losses"),
            ("gainers outscore", percent, "outscoring"),
        ]
        if self._has_blind_limits:
            columns.append((f"{BLIND_LABEL} (estimate)", percent, BLIND[0]))
        names = dict.fromkeys(name for line in self._figures for name in line)
        settings = [name for name in names if name not in (*FIGURES, *BLIND)]
        columns += [(name, _setting_text, name) for name in settings]
        header = [title for title, *_ in columns]
        rows = [[write(line.get(name)) for _, write, name in columns] for line in self._figures]
        measured = f"Measured on {self._rows.name}"
        table = first_rows(measured, header, rows, most=MAX_SHOWN, all_in="frame()")
        sentence = f"The base model has {before}. plot() draws the trade-off."
        sentences = [sentence, self.notes] if self.notes else [sentence]
        title = f"Frontier of {len(self)} updates ({self._method})"
        drawn = map_of(self._steps(None)) if self._efficient else ""
        return drawn + snippet(title, sentences, [table])

    def frame(self) -> pd.DataFrame:
        """Return one line per update as a pandas frame.

        Columns: `target` (NaN where an update has none), `fairness`, `accuracy`, `change_rate`,
        `n_changes`, `n_gains`, `n_losses`, `limit`, `outscoring`, `outscoring_losses`,
        `expected_fairness`, `expected_change_rate`, `expected_accuracy`, then the settings that
        differ between updates. Where several constraints are stated, columns with the names of the
        others hold their metrics. Expected figures are those on as many new people as were fitted;
        NaN where they are not known. The others are measured on the rows of the frontier. For a
        `ControlledDebiaser`, most lines are approximate: points are fitted at a few targets, and
        the other targets move the cut of the nearest ones. `select` fits again.

        `limit` is the fewest changes, as a share, that reach the same fairness in the same
        direction with the sensitive features in hand. `outscoring` is the share of pairs of the
        same group in which a person who gains has a higher base score than a person who stays
        rejected; `outscoring_losses` is the share in which a person who loses has a lower one than
        a person who keeps the favourable decision. Both are NaN where nobody gains, or loses; see
        `commod.metrics.outscoring_probability`.

        With ``frontier(..., blind_limit=True)``, `blind_limit` estimates the fewest changes without
        the group, as a share, for at most eight of the efficient updates. It is NaN for the others,
        and where the estimated rule is never as fair. `blind_limit_low` and `blind_limit_high` are
        its 95 % interval.
        """
        import pandas as pd

        return pd.DataFrame(self._figures)

    def trade_off(self) -> TradeOff:
        """Return the efficient updates, each with its segments and its scorecard.

        An update is efficient if no other one of the frontier is at least as fair with fewer
        changes, and if it is not less fair than the base model. The steps go from the base model
        towards parity; there are at most 20.

        Segments are searched for on the first call, or before the frontier is pickled. Afterwards
        the frontier keeps the segments and drops the columns. Segments are None for a randomised
        update, cards for an update without a scorecard, and both with `describe=False`.
        """
        trade_off = self._trade_off
        self._describe = None
        return trade_off

    def plot(self, ax: Axes | None = None, *, color: str | None = None) -> Axes:
        """Draw changes against fairness, whom the updates change as colour, and the exact limit.

        Dots are measured on rows. A dashed line shows what is expected on new people, where known,
        and another one the estimated blind limits with their intervals, where they were requested.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; a new figure if None.
        color : {"outscoring", "outscoring_losses", "accuracy"}, default=None
            The column of `frame` that the colour of a dot shows. If None, `outscoring` or
            `outscoring_losses`, depending on whether gains or losses are more; `accuracy` where
            base scores are not known. A dot whose value is undefined is hollow.

        Returns
        -------
        matplotlib Axes
        """
        import matplotlib.pyplot as plt

        frame = self.frame()
        color = check_choice(color, "color", COLOR_LABELS) if color else default_color(frame)
        limit_curve = self._limit_curve(frame["fairness"].dropna())
        if ax is None:
            _, ax = plt.subplots(figsize=(7, 4.5), layout="constrained")
        draw_dots(frame, color, ax)
        constraint = self._rows.constraint
        if (expected := efficient_expectations(frame, constraint)) is not None:
            label = "expected on new people"
            ax.plot(*expected, color="tab:orange", lw=1.5, ls="--", label=label)
        ax.plot(*limit_curve, color="black", lw=1.2, label="fewest possible changes")
        if self._has_blind_limits:
            blind = frame.dropna(subset="blind_limit").sort_values("fairness")
            low, high = blind["blind_limit_low"], blind["blind_limit_high"]
            ax.vlines(blind["fairness"], low, high, color="grey", lw=1)
            label, marks = f"{BLIND_LABEL} (estimate)", {"marker": "s", "ms": 4}
            line: dict[str, Any] = {"color": "black", "lw": 1.2, "ls": "--", **marks}
            ax.plot(blind["fairness"], blind["blind_limit"], label=label, **line)
        ax.plot([self.base_fairness], [0], "x", color="tab:red", label="base model")
        ax.set_xlabel(f"{self._rows.metric} on the {self._rows.name}")
        ax.set_ylabel("share of decisions changed")
        ax.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
        if not constraint.higher_is_fairer:
            ax.invert_xaxis()  # fairer is to the right for every constraint
        ax.legend(frameon=False)
        return ax

    def select(self, *, target: float | None = None, max_changes: float | None = None) -> Any:
        """Return the fitted update with the fewest changes that reaches `target`.

        Parameters
        ----------
        target : float, default=None
            Floor on the P-rule or ceiling on the disparity, on the evaluated rows. Without
            `X_eval`, it is one on new people, where expected figures are known.
        max_changes : float, default=None
            Largest share of changed decisions, on the same rows. Without a target, the fairest
            update within it is returned.

        Returns
        -------
        update
            A copy: the frontier keeps its own. A `ControlledDebiaser` is fitted again: for
            `target`, or with `X_eval` for the target of its line, and the new fit may change a few
            decisions more or fewer. Where no update reaches both, the fairest within `max_changes`
            (or of all), with a warning. The update was chosen on the rows of the frontier, so
            measure it on others.
        """
        if target is None and max_changes is None:
            raise InputError("select needs target=, max_changes= or both.")
        for name, value in (("target", target), ("max_changes", max_changes)):
            if value is not None:
                check_number_parameter(value, name, Real, min_val=0)
        prefix = "expected_" if self._uses_expectations else ""
        fairness = np.array([figures[f"{prefix}fairness"] for figures in self._figures])
        changes = np.array([figures[f"{prefix}change_rate"] for figures in self._figures])
        is_within = changes <= (np.inf if max_changes is None else max_changes)
        if not is_within.any():
            raise InputError(
                f"No update of this frontier changes at most {max_changes:.1%}; the fewest is "
                f"{changes.min():.1%}. Add looser targets."
            )
        if target is not None:
            is_good = (
                is_within & self._rows.constraint.is_met(fairness, target) & self._keeps_others
            )
            if is_good.any():
                candidate: Any = self._cheapest(is_good, changes).candidate
                # On other rows, the line's own target is the one that reaches it there.
                if self.rows_word == "fit rows" and hasattr(candidate, "with_target"):
                    candidate = candidate.with_target(target)
                return candidate.build()
        fairest = self._fairest_value(fairness[is_within])
        is_good = is_within & (fairness == fairest)
        if target is not None:
            warnings.warn(
                f"No update {'is expected to reach' if prefix else 'reaches'} "
                f"{self._rows.metric} {self._rows.constraint.sign} {target:g} on "
                f"{'new people' if prefix else f'the {self.rows_word}'}. "
                f"The closest one is returned: {fairest:.3f} with {changes[is_good].min():.1%} "
                "changed.",
                TargetWarning,
                stacklevel=2,
            )
        return self._cheapest(is_good, changes).candidate.build()

    @property
    def _keeps_others(self) -> NDArray[np.bool_]:
        """Return which updates keep the bounds of all constraints but the first one, shape (m,).

        That is measured, or expected where updates are selected by what is expected.
        """
        if not self._uses_expectations:
            return np.array([self._rows.keeps_others(figures) for figures in self._figures])
        known = [getattr(point.candidate, "expectation", None) for point in self.points]
        kept = [one is None or self._rows.keeps_others(one.values) for one in known]
        return np.array(kept, dtype=bool)

    @property
    def _uses_expectations(self) -> bool:
        """Return whether updates are selected by what is expected on new people."""
        is_known = [not np.isnan(figures["expected_fairness"]) for figures in self._figures]
        return self.rows_word == "fit rows" and all(is_known)

    def _cheapest(self, is_good: NDArray[np.bool_], changes: NDArray[np.float64]) -> Point:
        return self.points[int(np.argmin(np.where(is_good, changes, np.inf)))]

    def _fairest_value(self, fairness: NDArray[np.float64]) -> float:
        known = fairness[~np.isnan(fairness)]
        if not len(known):
            raise InputError(
                f"No update of this frontier has a defined {self._rows.metric}: nobody is "
                "decided positively, or a group has no row with the label it is measured on."
            )
        return float(known.max() if self._rows.constraint.higher_is_fairer else known.min())

    # -- figures ----------------------------------------------------------------------------------

    def _measured(self) -> list[dict[str, float]]:
        """Return the figures of all updates; those with the same decisions are measured once."""
        known: dict[tuple[str, bytes], dict[str, float]] = {}
        lines = []
        for point in self.points:
            key = point.after.dtype.str, point.after.tobytes()
            if key not in known:
                known[key] = self._rows.measure(point.after, self._allowed)
            settings = dict(point.candidate.settings)
            target = settings.pop("target", float("nan"))
            lines.append({"target": target, **known[key], **_expected(point.candidate), **settings})
        return lines

    @cached_property
    def _efficient(self) -> list[int]:
        """Return the positions of the efficient updates, least fair first, at most MOST_STEPS."""
        sign = 1.0 if self._rows.constraint.higher_is_fairer else -1.0
        return _spread(_efficient(self._figures, sign * self.base_fairness, sign), MOST_STEPS)

    def _add_blind_limits(self, columns: Sequence[Column]) -> None:
        """Estimate the blind limit of a few efficient updates; it is NaN for the others.

        `columns` are those of the evaluated rows.
        """
        people, n = self._rows.blind_people(columns), len(self._rows)
        moves = {"may_raise": self._allowed.may_raise, "may_lower": self._allowed.may_lower}
        found = {
            i: people.fewest(self._figures[i]["fairness"], **moves)
            for i in _spread(self._efficient, MOST_BLIND)
        }
        for i, line in enumerate(self._figures):
            blind = (found[i].n_changes, *found[i].interval) if i in found else (np.nan,) * 3
            shares = (value / n if np.isfinite(value) else np.nan for value in blind)
            line.update(zip(BLIND, shares, strict=True))

    @cached_property
    def _trade_off(self) -> TradeOff:
        return self._steps(self._describe)

    def _steps(self, describe: Describe | None) -> TradeOff:
        """Return the efficient updates, with segments and cards if these are described."""
        steps = []
        for i in self._efficient:
            settings: dict[str, Any] = {n: plain(value) for n, value in self._figures[i].items()}
            blind = [settings.pop(name, None) for name in BLIND]
            segments, card = describe(self.points[i]) if describe else (None, None)
            figures = {name: settings.pop(name) for name in FIGURES}
            limit = None if blind[0] is None else Estimate(*blind)
            shown: dict[str, Any] = {"segments": segments, "card": card, "blind_limit": limit}
            steps.append(Step(**figures, settings=settings, **shown))
        return TradeOff(
            constraints=self._rows.constraint.name,
            metric=self._rows.metric,
            method=self._method,
            rows=self.rows_word,
            n_rows=len(self._rows),
            base_fairness=plain(self.base_fairness),
            base_accuracy=plain(self.base_accuracy),
            steps=tuple(steps),
            higher_is_fairer=self._rows.constraint.higher_is_fairer,
        )

    def _limit_curve(self, fairness: Iterable[float]) -> tuple[list[float], list[float]]:
        """Return values of fairness over the range of the updates, and the limit at each."""
        values = sorted({self.base_fairness, *fairness})
        if len(values) > 1:
            values = np.linspace(values[0], values[-1], 40).tolist()
        return values, [self._rows.limit_at(value, self._allowed) for value in values]


def _expected(candidate: Candidate) -> dict[str, float]:
    """Return what is expected of an update on new people; NaN where that is not known."""
    known = getattr(candidate, "expectation", None)
    values = (np.nan,) * 3
    if known is not None:
        values = known.fairness, known.change_rate, known.accuracy
    return dict(zip(EXPECTED, map(float, values), strict=True))


def _setting_text(value: Any) -> str:
    """Return a setting in which updates differ as short text."""
    if value is None:
        return "–"
    return f"{value:.3g}" if isinstance(value, Real) else str(value)


def _efficient(figures: Sequence[Mapping[str, float]], base: float, sign: float) -> list[int]:
    """Return the positions of the efficient updates, least fair first.

    `sign` times fairness grows with fairness; `base` is this value for the base model.
    """
    value = [sign * line["fairness"] for line in figures]
    error = [-np.nan_to_num(line["accuracy"]) for line in figures]
    is_fairer = [i for i, v in enumerate(value) if not (np.isnan(v) or v < base)]
    order = sorted(is_fairer, key=lambda i: (figures[i]["n_changes"], -value[i], error[i]))
    efficient: list[int] = []
    for i in order:
        if not efficient or value[i] > value[efficient[-1]]:
            efficient.append(i)
    return efficient


def _spread(positions: list[int], most: int) -> list[int]:
    """Return at most so many of the positions, evenly spread, the first and last included."""
    if len(positions) <= most:
        return positions
    kept = np.linspace(0, len(positions) - 1, most).round().astype(int)
    return [positions[i] for i in kept]
