"""Define `ControlledDebiaser`: the user states a target, the library finds the fewest changes."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from commod._data.disclosure import MIN_CATEGORY_SIZE
from commod._data.encoding import Encoding
from commod.exceptions import InputError, TargetWarning
from commod.scorecard import Scorecard
from commod.updates._candidates import CountedCandidate, sweep_targets
from commod.updates._edit import EditRows, edited_update, read_plan
from commod.updates._fit_rows import check_group_columns, check_label_not_read, may_come_whole
from commod.updates._found_update import AllPeople, found_card
from commod.updates._interface import Grid, RawRows, Sweep, read_grid
from commod.updates._problem import FitProblem, point_problem
from commod.updates._targeted import (
    TargetedUpdate,
    check_controlled_parameters,
    check_labels_given,
    check_no_weighted_promise,
    checked_targets,
    find_asked,
    given_groups,
    problem_of,
)
from commod.updates.base import naming_successors


class ControlledDebiaser(TargetedUpdate):
    """The update with the fewest changes that reaches a stated target.

    It learns a scorecard v(x) on the raw columns: evidence about the groups that the constraint
    compares. A person with the unfavourable decision gains where v is above the cut, and a person
    with the favourable one loses where v is below minus the cut. The ratio is
    r(x) = cost(x) − side(x)·v(x)/cut, so decisions change exactly where r(x) < 0. The target is
    expected to hold on new people, and as few decisions as possible change. Where no such update is
    found, the closest one is kept and `status_` says why, with numbers. Only `fit` sees the
    sensitive features. The same rows give the same update in every order and on every machine.
    Needs NumPy and SciPy, not JAX.

    Parameters
    ----------
    estimator : fitted classifier or ScoreColumn
        The base model f. It is never refitted.
    constraints : str or object of commod.constraints, default="demographic_parity"
        "demographic_parity" (P-rule), "equalized_odds" (DM = ΔTPR + ΔFPR),
        "true_positive_rate_parity" or "false_positive_rate_parity" (one gap). An object may state a
        bound, a condition and several constraints at once:
        ``DemographicParity(ratio=0.8).within("unit") & MinimumRate(0.3)``, or a text such as
        "P-rule >= 0.8" (see `commod.constraints.parse_constraint`). The figures named
        fairness are those of the first one; see `values_` for the others.
    target : float, default=None
        Floor on the P-rule, or ceiling on the disparity; not beside a bound in `constraints`. None
        with `max_changes`: the best fairness for that budget. None without: 0.8 for a floor, 0.1
        for a ceiling.
    target_on : str, default="new_rows"
        "new_rows": the target holds in expectation on as many new people; see `expected_.fairness`.
        "fit_rows": it holds on the fit rows, and new people mostly fall short of it. Not used with
        `confidence`.
    max_changes : float, default=None
        Hard limit on the share of decisions that change, in [0, 1]. It holds on the fit rows and on
        the rows that each part of the points has not seen, as do the two limits below.
    max_accuracy_loss : float, default=None
        Hard limit on the loss of accuracy, in [0, 1]. Needs y.
    max_volume_change : float, default=None
        Hard limit on the change, up or down, of the overall rate of `pos_label`, in [0, 1].
    direction : str, default="any"
        "gains_only": nobody loses the favourable outcome; r is held at 1 where the base decision
        is favourable already. "losses_only": the reverse. "any": r acts everywhere.
    borderline : float, default=0.25
        Extra changes, as a share of the fewest, that may be spent on changing people nearer to the
        threshold. 0: the fewest changes. With y, the most accurate of the allowed updates is taken.
        Gains only is kept where it needs no more than these extra changes.
    max_margin : float, default=None
        Only borderline decisions may change: r is held at 1 where ``|score − threshold|`` is
        larger, on any row. In the unit of the score. None: no such gate.
    score_edit : str, default="changed_only"
        "changed_only": the base score stays, bit for bit, wherever the decision stays. A changed
        score goes just beyond the threshold. "all": the continuous edit of the paper,
        sigmoid(r·z + logit(threshold)), which moves every score.
    points : str, default="auto"
        "per unit": a numeric column has points per unit, counted from its centre. "per bin": it has
        points per bin, as in credit scorecards. "integers": points are whole numbers from −10 to 10
        per bin, so that people can add them up; not with `confidence` and `score_edit="all"`.
        "auto": per unit. Other points than whole numbers have three digits.
    max_lines : int, default=12
        The most lines of the scorecard. Categories of a column with equal points are one line, and
        so are bins in a row. None: all lines.
    monotone : mapping of str to int, default=None
        1: a larger value may only help, that is, raise v (a category may only have points ≥ 0).
        -1: it must not help. Version 0.2 had the opposite signs, because they were those of r.
    locked_features : collection of str, default=()
        Columns that the scorecard must not read; the base model still gets them.
    confidence : float, default=None
        Promise the target for new people, with this confidence. Updates are fitted on one half of
        the rows. The other half, which must also be new to the base model, tests their promises.
    min_category_size : int, default=20
        People that a category, a bin or "missing" needs to have points of its own. Rarer categories
        count as unseen. Fit rows with a positive weight count as people; with `confidence`, only
        the half that the update is fitted on counts. Below 20, the library's bar for naming a
        value, `status_` and the patch say how many terms rest on fewer people.
    min_group_size : int, default=30
        Fit rows that a group needs to be part of the constraint. Smaller ones are left out; see
        `groups_left_out_`.
    unknown_groups : str, default="error"
        What to do with rows whose sensitive features are missing. "error": refuse them. "ignore":
        rates come from the known rows; changes, volume and accuracy count all rows.
    threshold : float, default=0.5
        The base decision is `classes_[1]` where score > threshold; see `ScoreColumn` for a score
        of the other label.
    pos_label : label, default=None
        The label whose rates count. If None, `favorable_label`, or else `classes_[1]`.
    favorable_label : label, default=None
        The label that is good for the person; `pos_label` if None.

    Attributes
    ----------
    scorecard_ : Scorecard
        The evidence v and its concepts as points on the raw columns, and the rule that decides.
    reached_ : bool
        Whether the target is expected on new people; on the rows that `status_` names where
        `target_on` is "fit_rows" or `confidence` is used. True for a budget (`max_changes` without
        `target`). Never True for an update that changes more than half of all decisions, or makes
        99 % of them alike: `status_` and a TargetWarning say so first.
    promised_ : bool or None
        Whether the target is promised for new people; None without `confidence`.
    fairness_, base_fairness_, accuracy_, base_accuracy_, change_rate_ : float
        Figures of the update and of the base model: on the fit rows, with `confidence` on the
        held-out rows.
    values_, base_values_ : dict
        The metric of each stated constraint by its name: of the update and of the base model, on
        the same rows as `fairness_`.
    expected_ : Expectation
        What is expected of this update on a new sample of as many people, counted on values of rows
        that their points have not seen: `fairness`, `interval` (in which such a sample has its
        fairness, 95 times out of 100), `change_rate`, `accuracy` and `values` by constraint. NaN
        with "fit_rows" and with `confidence`.
    search_ : UpdateSearch
        How the update was found: the `direction` that was kept, which may be narrower than the
        parameter; `nearness`, how much a change costs more, the farther the score is from the
        threshold, in [0, 1]; `possible_codes`, columns of 3 to 20 different whole numbers that have
        points per unit. If these are codes of categories, convert the column first, with
        ``astype("category")``.
    fairness_interval_ : tuple of float
        Two-sided interval of the fairness for people like these rows, at `confidence` (0.95 if
        None). It is too optimistic on rows that the update was fitted on. NaN with sample weights.
    outscoring_ : dict
        For "gain" and "loss": how those who change score; see `metrics.outscoring_probability`.
    n_gains_, n_losses_, n_rows_ : int
        People who gain and who lose the favourable outcome, and the number of rows. Totals do not
        count people of groups left out with fewer than five rows.
    groups_left_out_ : tuple of LeftOutGroup
        The groups with fewer than `min_group_size` rows: `name`, `n`, `rate_before` and
        `rate_after`, on all rows that `fit` got. A saved update keeps `n` alone.
    limit_ : float
        The smallest share of changes that reaches the same fairness in the same direction, for a
        method that knows the sensitive features. NaN with sample weights. Where groups are unknown,
        only people of a known group have to change; the share is that of all rows. With
        `sensitive_probabilities`, the method knows these, and the share is a lower bound; NaN on
        more than 50,000 rows.
    unknown_groups_ : UnknownGroupFigures
        What is known where groups are not: `n_known`, the rows whose group is known (with
        probabilities, those of which one is 1); `change_rate` and `limit` among these rows (NaN
        with probabilities); `worst_case`, the lowest and the highest fairness over all assignments
        of people to groups, and `is_exact`, whether both can occur (otherwise they are proven
        bounds); `calibrated`, the interval of 95 % of draws, if each person's group is drawn with
        the stated probabilities.
    history_ : dict of str to list
        The steps of the fit as columns: "step", "change_rate" and "n_terms".
    concept_weights_, concept_contributions_, intercept_, term_names_
        As in `COMMOD`.
    edits_ : tuple of EditRecord
        The edits by hand so far, oldest first; see `edit` and `undo`.
    status_ : str
        All of this in sentences.

    Notes
    -----
    Points come from a ridge regression of the groups on the terms, in closed form. A small convex
    problem prices the inequalities of several groups or constraints. One exact count, on values of
    rows that their points have not seen, gives the cut. See docs/controlled.md.

    Examples
    --------
    >>> from commod import ControlledDebiaser
    >>> from commod.datasets import make_biased
    >>> from sklearn.linear_model import LogisticRegression
    >>> data = make_biased(800, random_state=0)
    >>> model = LogisticRegression().fit(data.data, data.target)
    >>> update = ControlledDebiaser(model, target=0.8)
    >>> update = update.fit(data.data, data.target, sensitive_features=data.sensitive_features)
    >>> bool(update.fairness_ >= 0.8), bool(update.change_rate_ >= update.limit_)
    (True, True)
    """

    @naming_successors
    def __init__(
        self,
        estimator: Any,
        *,
        constraints: Any = "demographic_parity",
        target: float | None = None,
        target_on: str = "new_rows",
        max_changes: float | None = None,
        max_accuracy_loss: float | None = None,
        max_volume_change: float | None = None,
        direction: str = "any",
        borderline: float = 0.25,
        max_margin: float | None = None,
        score_edit: str = "changed_only",
        points: str = "auto",
        max_lines: int | None = 12,
        monotone: Mapping[str, int] | None = None,
        locked_features: Collection[str] = (),
        confidence: float | None = None,
        min_category_size: int = MIN_CATEGORY_SIZE,
        min_group_size: int = 30,
        unknown_groups: str = "error",
        threshold: float = 0.5,
        pos_label: Any = None,
        favorable_label: Any = None,
    ) -> None:
        self.estimator = estimator
        self.constraints = constraints
        self.target = target
        self.target_on = target_on
        self.max_changes = max_changes
        self.max_accuracy_loss = max_accuracy_loss
        self.max_volume_change = max_volume_change
        self.direction = direction
        self.borderline = borderline
        self.max_margin = max_margin
        self.score_edit = score_edit
        self.points = points
        self.max_lines = max_lines
        self.monotone = monotone
        self.locked_features = locked_features
        self.confidence = confidence
        self.min_category_size = min_category_size
        self.min_group_size = min_group_size
        self.unknown_groups = unknown_groups
        self.threshold = threshold
        self.pos_label = pos_label
        self.favorable_label = favorable_label

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        sensitive_features: Any = None,
        sensitive_probabilities: Any = None,
        sample_weight: Any = None,
    ) -> Self:
        """Fit the update, preferably on rows that are new to the base model.

        Parameters
        ----------
        X : table of shape (n, n_features)
            NumPy array, pandas or polars frame; passed to the base model untouched. With nothing
            but scores, or with all columns locked, the people nearest to the threshold change.
        y : array-like of shape (n,)
            True labels. May be None for demographic parity.
        sensitive_features : array-like of shape (n,) or (n, n_sensitive)
            The group of each row; several columns mean their intersections.
        sensitive_probabilities : array-like of shape (n, n_groups), default=None
            Probabilities of the groups, in place of `sensitive_features`: an array, or a frame
            whose columns are named after the groups. Rows sum to 1. Rates are then expectations
            under these probabilities. Not allowed with `confidence`.
        sample_weight : array-like of shape (n,), default=None
            Weight of each row in fairness and accuracy. Changes count people, whatever their
            weight. Not allowed with `confidence`: its promise counts every person once.

        Returns
        -------
        self
        """
        with self._as_it_was_on_error():
            groups = given_groups(self, X, sensitive_features, sensitive_probabilities)
            self._store_fit(*find_asked(self._prepare(X, y, groups, sample_weight)))
        if not self.reached_ or self.promised_ is False:
            warnings.warn(self.status_, TargetWarning, stacklevel=2)
        return self

    def fit_frame(
        self,
        frame: Any,
        *,
        sensitive_features: str | Sequence[str],
        y_true: str | None = None,
        sample_weight: str | None = None,
        features: Sequence[str] | None = None,
        key: str | None = None,
    ) -> Self:
        """Fit the update on a table that stays where it is, such as in DuckDB or Spark.

        It is the same fit as `fit`. A table of at most a million rows comes whole. Of a larger
        table, the rows with the smallest hash of the key come onto this machine, and points come
        from them. The engine counts groups, rates, the exact limit, the cut and all figures on all
        rows. A base model that is no `ScoreColumn` scores the rows by batches, where they are.

        Parameters
        ----------
        frame : DuckDB relation, polars (lazy) frame, PySpark frame, pyarrow table or dataset, \
pandas frame, or path of Parquet files
            One row per person. A path may be a file, a folder or a pattern (``lake/*.parquet``).
        sensitive_features : str or list of str
            Column with the group of each row. Several columns mean their intersections.
        y_true : str, default=None
            Column with the true labels. May be None for demographic parity.
        sample_weight : str, default=None
            Column with the weight of each row; see `fit`.
        features : list of str, default=None
            The columns that the update may use. None: all columns that no other parameter names
            and, where a base model knows its columns, that it reads. X of `predict` has these
            columns and the column of scores. With a base model, X has the columns of the model
            first, and then the others.
        key : str, default=None
            Column of whole numbers or text that differs from row to row. Folds, and the rows that
            points come from, go by a hash of it, which is the same in every engine. So every engine
            and every order of the rows gives the same update. None: they go by the content of the
            rows, or by their number where a table does not come whole.

        Returns
        -------
        self

        Examples
        --------
        >>> import duckdb
        >>> from commod import ControlledDebiaser, ScoreColumn
        >>> people = duckdb.sql(
        ...     '''SELECT i AS id, i % 3 = 0 AS minority, (i * 7919) % 1000 / 1000 AS income,
        ...               0.2 + 0.5 * income + CASE WHEN minority THEN 0 ELSE 0.2 END AS score
        ...        FROM range(60000) AS t(i)'''
        ... )
        >>> update = ControlledDebiaser(ScoreColumn("score"), target=0.8)
        >>> update = update.fit_frame(people, sensitive_features="minority", key="id")
        >>> bool(update.expected_.fairness >= 0.8), update.n_rows_
        (True, 60000)
        """
        from commod.updates._frame_fit import may_pull, opened_table, read_parts
        from commod.updates._frame_rows import read_whole

        single = {"y_true": y_true, "sample_weight": sample_weight, "key": key}
        opened = opened_table(self, frame, sensitive_features, features, **single)
        with self._as_it_was_on_error(), opened as table:
            if may_pull(table):
                self._store_fit(*find_asked(self._prepare(*read_whole(self, table))))
            else:
                self._store_fit(*find_asked(*read_parts(self, table)))
        if not self.reached_ or self.promised_ is False:
            warnings.warn(self.status_, TargetWarning, stacklevel=2)
        return self

    # -- editing by hand ---------------------------------------------------------------------------

    def edit(
        self,
        edits: Any,
        X: Any,
        y: Any = None,
        *,
        sensitive_features: Any = None,
        sensitive_probabilities: Any = None,
        sample_weight: Any = None,
        offset: Literal["target", "keep"] = "target",
        refit: bool = False,
        pin: Collection[str] = (),
        by: str | None = None,
        note: str | None = None,
        when: str | None = None,
    ) -> Self:
        """Return a new update with points that were changed by hand; this one stays as it is.

        Parameters
        ----------
        edits : mapping, edit of `commod.edit`, or list of these
            What to change: ``{"town = Paris": 0.5, "age": "drop"}``. `commod.edit` lists all forms.
            Terms are named as in the scorecard.
        X, y, sensitive_features, sensitive_probabilities, sample_weight
            Rows to count the cut and to measure on, as in `fit`: the fit rows, or others.
        offset : str, default="target"
            "target": count the cut for the target again. "keep": the cut stays as it is.
        refit : bool, default=False
            Fit all terms that are neither edited nor pinned again, for the fewest changes. Edited
            and pinned terms keep their points exactly.
        pin : collection of str, default=()
            Further terms, or columns, that keep their points in a refit.
        by, note : str, default=None
            Who edits, and why: texts for the history.
        when : str, default=None
            The time of the edit, as ISO 8601 writes it. None: now, in UTC. Pass it to repeat an
            edit of a history.

        Returns
        -------
        ControlledDebiaser
            Fitted, with all figures on these rows. `edits_` has one more record.

        Notes
        -----
        Where the points cannot reach the target, the cut that comes closest is kept. Then
        `reached_` is False, and `status_` and a TargetWarning say so.

        Examples
        --------
        >>> from commod import ControlledDebiaser
        >>> from commod.datasets import make_biased
        >>> from sklearn.linear_model import LogisticRegression
        >>> data = make_biased(800, random_state=0)
        >>> model = LogisticRegression().fit(data.data, data.target)
        >>> rows = data.data, data.target
        >>> groups = {"sensitive_features": data.sensitive_features}
        >>> update = ControlledDebiaser(model, target=0.7).fit(*rows, **groups)
        >>> name, points = update.scorecard_.rows()[0]
        >>> edited = update.edit({name: round(points, 1)}, *rows, **groups, by="Ann")
        >>> dict(edited.scorecard_.rows())[name] == round(points, 1), len(edited.edits_)
        (True, 1)
        >>> edited.undo() is update
        True
        """
        check_is_fitted(self)
        plan = read_plan(edits, offset, refit, pin, by, note, when)
        if self._fitted_param("confidence") is not None:
            raise InputError(
                "edit would break the promise of this update: it was tested with "
                f"confidence={self._fitted_param('confidence')}, and edited points were not. Fit "
                "with confidence=None, then edit.",
                parameter="confidence",
            )
        given = X, y, sensitive_features, sensitive_probabilities, sample_weight
        edited = edited_update(self, self._edit_rows(*given), plan)
        if not edited.reached_:
            warnings.warn(edited.status_, TargetWarning, stacklevel=2)
        return edited

    def undo(self) -> Self:
        """Return the update before the last edit, as it was."""
        check_is_fitted(self)
        if self._earlier_update is None:
            raise InputError("undo has nothing to undo: this update was not edited.")
        return self._earlier_update

    def explore(self, X: Any, y: Any = None, *, sensitive_features: Any, **names: Any) -> Any:
        """Open a page on which this update can be changed by hand: `commod.explore(self, X, …)`.

        An update keeps no rows, so they are passed again. This update stays as it is.

        Examples
        --------
        >>> import pandas as pd
        >>> from commod import ControlledDebiaser, ScoreColumn
        >>> X = pd.DataFrame({"score": [0.4, 0.6] * 100, "age": range(200)})
        >>> groups = ["b" if age < 100 and age % 2 == 0 else "a" for age in X["age"]]
        >>> update = ControlledDebiaser(ScoreColumn("score"), target=0.9, target_on="fit_rows")
        >>> update = update.fit(X, sensitive_features=groups)
        >>> with update.explore(X, sensitive_features=groups) as page:
        ...     page.update is update
        True
        """
        commod = import_module("commod")  # by name: the page needs reports, and they need updates
        return commod.explore(self, X, y, sensitive_features=sensitive_features, **names)

    # -- fitting -----------------------------------------------------------------------------------

    def _record_params(self) -> None:
        """Keep the present parameters; a new fit begins a new history."""
        for name in ("edits_", "search_", "_earlier_update", "_terms_by_hand"):
            self.__dict__.pop(name, None)
        super()._record_params()

    def _prepare(
        self,
        X: Any,
        y: Any,
        sensitive_features: Any,
        sample_weight: Any,
        hashes: NDArray[np.uint64] | None = None,
        encoding: Encoding | None = None,
    ) -> FitProblem:
        """Check all input and return the problem of the fit; `encoding` None: learn the terms.

        Rows are in the order of their hashes: those of a key, or of their content if None.
        """
        self._record_params()
        self._check_parameters()
        check_no_weighted_promise(self, sample_weight)
        rows = self._read_fit_rows(X, y, sensitive_features, sample_weight)
        check_labels_given(self, rows.label is not None)
        self._check_locked(rows.columns)
        check_group_columns(rows, self.locked_features)
        check_label_not_read(rows, getattr(y, "name", None), self.locked_features)
        rows = replace(rows, hashes=hashes)
        if not rows.weight.all():  # a row without weight counts as absent
            rows = rows.take(np.flatnonzero(rows.weight))
        if not may_come_whole(len(rows)):
            self._scores_digest = None  # an engine does not bring all scores here
        return problem_of(self, rows, encoding)

    # -- parameters ---------------------------------------------------------------------

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_controlled_parameters(self)

    # -- internal interface: see _interface.py -----------------------------------------------------

    def _sweep(
        self, rows: RawRows, targets: Sequence[float] | None = None, grid: Grid | None = None
    ) -> Sweep:
        """Return an update for each target; each is built when asked for."""
        read_grid(grid, "", "A ControlledDebiaser", "Give targets= for the trade-off.")
        targets = checked_targets(self, targets)
        model = clone(self).set_params(confidence=None)
        problem = model._prepare(*rows, None)
        part = point_problem(problem)
        cards: dict[int, Scorecard] = {}
        people = None if part is problem else AllPeople(problem)
        first, swept = sweep_targets(part, people, targets)
        model._store_card(first.problem, found_card(first.problem, first.found))
        candidates = [CountedCandidate(*one, model, problem, cards) for one in swept]
        return Sweep(candidates, model)

    def _edit_rows(
        self,
        X: Any,
        y: Any = None,
        sensitive_features: Any = None,
        sensitive_probabilities: Any = None,
        sample_weight: Any = None,
    ) -> EditRows:
        """Return rows that were read once, for several edits of this update."""
        reader = type(self)(**self._fitted_params())
        groups = given_groups(reader, X, sensitive_features, sensitive_probabilities)
        encoding = self.scorecard_.encoding
        problem = reader._prepare(X, y, groups, sample_weight, encoding=encoding)
        return EditRows(reader, problem)
