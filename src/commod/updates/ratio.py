"""Updates that multiply the margin by a ratio r(x): their decisions, scores and patches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted, validate_data

from commod._data.base_model import BaseScores, refuse_equal_scores
from commod._data.columns import Column, read_columns
from commod._data.encoding import Encoding, TermTable, matching_column
from commod._record.audit import Audit
from commod._record.explanation import ScoreMap
from commod._solvers.problem import Layer
from commod._statistics.score_map import map_scores
from commod.exceptions import InputError
from commod.patch import Patch
from commod.scorecard import (
    MARGIN_COLUMN,
    AllowedChanges,
    Scorecard,
    edited_scores,
    margins,
    new_decisions,
)
from commod.updates._as_patch import base_of, content_of, patch_of
from commod.updates._interface import ReadRows, RowEvaluation
from commod.updates.base import BaseUpdate, ChangedDecisions

CHUNK_ROWS = 8192  # at a time; the hidden units of all rows would be the largest array in memory


@dataclass(frozen=True, eq=False)
class Network:
    """Layers of ReLU units with one output; the first layer reads terms in raw units.

    `layers` holds a matrix (inputs, units) and a bias (units,) for each layer.

    Examples
    --------
    >>> from commod._data.encoding import NumericTerms
    >>> age = NumericTerms("age", fill=40.0, has_missing_term=False)
    >>> double = Network(Encoding((age,)), ((np.array([[2.0]]), np.array([-1.0])),))
    >>> double.output([Column("age", "numeric", np.array([30.0, np.nan]))])
    array([59., 79.])
    """

    encoding: Encoding
    layers: tuple[Layer, ...]

    def output(self, columns: Sequence[Column]) -> NDArray[np.float64]:
        """Return the output for each row, shape (n,)."""
        return self.evaluate(self.encoding.encode(columns))

    def evaluate(self, terms: TermTable) -> NDArray[np.float64]:
        """Return the output for rows that are encoded as terms, shape (n,)."""
        output = np.empty(len(terms))
        for start in range(0, len(terms), CHUNK_ROWS):
            chunk = np.arange(start, min(start + CHUNK_ROWS, len(terms)))
            output[chunk] = self._apply(terms.take(chunk))
        return output

    def hidden_units(self, columns: Sequence[Column]) -> NDArray[np.float64]:
        """Return the units of the first hidden layer for each row, shape (n, units)."""
        return np.maximum(self._first_layer(self.encoding.encode(columns)), 0.0)

    def _first_layer(self, terms: TermTable) -> NDArray[np.float64]:
        matrix, bias = self.layers[0]
        x = bias + terms.numeric @ matrix[terms.numeric_terms]
        table = np.vstack([matrix, np.zeros(matrix.shape[1])])  # code d is no term
        for codes in terms.codes.T:
            x += table[codes]
        return np.asarray(x)

    def _apply(self, terms: TermTable) -> NDArray[np.float64]:
        x = self._first_layer(terms)
        for matrix, bias in self.layers[1:]:
            x = np.maximum(x, 0.0) @ matrix + bias
        return x[:, 0]


RatioFunction = Scorecard | Network  # that returns r


@dataclass(frozen=True)
class RatioRows(ReadRows):
    """Rows that an update with a ratio has read; `encoding` turns `columns` into terms."""

    columns: list[Column]
    base: BaseScores
    encoding: Encoding

    @cached_property
    def terms(self) -> TermTable:
        """Return the rows as terms."""
        return self.encoding.encode(self.columns, len(self.base.scores))

    def parts(self, size: int) -> Iterator[RatioRows]:
        """Yield the rows in order, `size` at a time: all of them as terms take much memory."""
        for start in range(0, len(self.base.scores), size):
            part = slice(start, start + size)
            columns = [column.take(part) for column in self.columns]
            yield RatioRows(columns, self.base.take(part), self.encoding)


class RatioUpdate(BaseUpdate):
    """An update with a ratio r; predicting needs NumPy and the base model only.

    r is a scorecard. A subclass may have another `_ratio_function`; `scorecard_` is None then.

    Examples
    --------
    >>> from commod import COMMOD, ControlledDebiaser
    >>> issubclass(COMMOD, RatioUpdate), issubclass(ControlledDebiaser, RatioUpdate)
    (True, True)
    """

    scorecard_: Scorecard | None
    calibration_: ScoreMap | None = None
    _why_uncalibrated: str = "only its points were computed"

    def _fit_base(self, X: Any, columns: Sequence[Column]) -> BaseScores:
        base = super()._fit_base(X, columns)
        refuse_equal_scores(self.estimator, base)
        return base

    def _ratio_function(self) -> RatioFunction:
        """Return the function r."""
        assert self.scorecard_ is not None
        return self.scorecard_

    def _linear(self, missing: str) -> Scorecard:
        """Return the scorecard; refuse a network, and say what it does not have."""
        check_is_fitted(self)
        if self.scorecard_ is None:
            raise InputError(
                f"architecture='mlp' has no {missing}. Fit "
                'COMMOD(architecture="concepts") or a ControlledDebiaser.',
                parameter="architecture",
            )
        return self.scorecard_

    def _scored_columns(
        self, X: Any, function: RatioFunction | None = None
    ) -> tuple[BaseScores, list[Column]]:
        """Return the base model's scores and the columns; only those of `function`, if given."""
        encoding = (function or self._ratio_function()).encoding
        kinds = encoding.kinds
        only = None if function is None else {*kinds, *self._score_column()}
        columns = read_columns(X, kinds, self._unread(), only)
        validate_data(self, X, skip_check_array=True, reset=False)
        # before scoring: a base model's own error would say less
        columns = _as_fitted(columns, encoding)
        base = self._base(X, columns)
        return base, self._with_score_columns(base.scores, self._features(columns))

    def _with_score_columns(
        self, scores: NDArray[np.float64], columns: Sequence[Column]
    ) -> list[Column]:
        """Return the columns that r reads: those of X, and one of the score if r reads it.

        A column of X with the same name is refused.
        """
        of_score = self._score_columns(scores)
        names = {column.name for column in of_score}
        for column in columns:
            if column.name in names:
                raise InputError(
                    f"X has a column {column.name!r}, the name that reads_score gives to a column "
                    "of the base model's score. Rename the column, or leave reads_score out of "
                    "training.",
                    parameter="training",
                )
        return [*columns, *of_score]

    def _reads_margin(self) -> bool:
        """Return whether r reads the signed margin, on the scale of the logit."""
        return False

    def _base_and_ratio(self, X: Any) -> tuple[BaseScores, NDArray[np.float64]]:
        base, ratio = self._base_and_raw_ratio(X)
        return base, self._effective(base, ratio)

    def _base_and_raw_ratio(self, X: Any) -> tuple[BaseScores, NDArray[np.float64]]:
        """Return the base model's scores and the learned r, shape (n,), before any gate."""
        check_is_fitted(self)
        function = self._ratio_function()
        function = function.in_use() if isinstance(function, Scorecard) else function
        base, columns = self._scored_columns(X, function)
        return base, function.evaluate(function.encoding.encode(columns, len(base.scores)))

    def _effective(self, base: BaseScores, total: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return r for rows with these base scores, from the sum of their points.

        A subclass may set it to 1 for some rows.
        """
        card = self._ratio_function()
        rule = card.rule if isinstance(card, Scorecard) else None
        return total if rule is None else rule.ratio(total, base.scores, base.threshold)

    def raw_ratio(self, X: Any) -> NDArray[np.float64]:
        """Return the sum of the points, shape (n,), even where the update must not change a row.

        It is the learned r(x); for a scorecard with a `rule` it is the evidence v(x).
        """
        return self._base_and_raw_ratio(X)[1]

    def ratio(self, X: Any) -> NDArray[np.float64]:
        """Return r(x) of each row, shape (n,); a decision changes where r(x) < 0."""
        return self._base_and_ratio(X)[1]

    def concepts(self, X: Any) -> NDArray[np.float64]:
        """Return the value of each concept on each row, shape (n, k), centred on the fit rows.

        ``raw_ratio(X) = intercept_ + concepts(X) @ concept_contributions_``, up to rounding. A
        COMMOD with architecture="mlp" has no concepts.
        """
        card = self._linear("concepts: they are parts of a linear ratio").in_use(concepts=True)
        return card.concepts(self._scored_columns(X, card)[1])

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the new decision of each row, shape (n,), as one of `classes_`.

        X needs the columns of the fit. A column without points is passed to the base model only,
        so it may hold anything that the base model accepts.
        """
        base, ratio = self._base_and_ratio(X)
        return self._labels_of(new_decisions(base, ratio))

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the edited scores, shape (n, 2), columns in the order of `classes_`.

        Where r is exactly 1, they are the base model's scores, bit for bit. With
        ``score_edit="changed_only"`` they are so wherever the decision stays. They are not
        calibrated probabilities: `calibrated_proba` returns these.
        """
        base, ratio = self._base_and_ratio(X)
        edited = self._edited(base, ratio)
        is_same = edited == base.scores
        proba = np.column_stack([np.where(is_same, base.proba[:, 0], 1 - edited), edited])
        return proba if self._score_label() == self.classes_[1] else proba[:, ::-1]

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return the edited margin, shape (n,): positive where `classes_[1]` is predicted."""
        base, ratio = self._base_and_ratio(X)
        if self._fitted_param("score_edit", "all") == "all":
            size = np.abs(ratio * margins(base.scores, base.threshold))
        else:
            size = np.abs(margins(self._edited(base, ratio), base.threshold))
        positive = new_decisions(base, ratio)
        is_second_class = positive == (self.classes_[1] == self._pos_label)
        return np.where(is_second_class, 1.0, -1.0) * np.maximum(size, np.finfo(float).tiny)

    def _edited(self, base: BaseScores, ratio: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the edited scores of rows with this effective ratio, shape (n,)."""
        score_edit = self._fitted_param("score_edit", "all")
        return edited_scores(base.scores, ratio, base.threshold, score_edit)

    def decision_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the probability of a positive decision, shape (n,): 0 or 1, never randomised."""
        base, ratio = self._base_and_ratio(X)
        return new_decisions(base, ratio).astype(np.float64)

    def changes(self, X: Any) -> ChangedDecisions:
        """Return which rows change and in which direction."""
        base, ratio = self._base_and_ratio(X)
        return self._changes(base.decisions, new_decisions(base, ratio))

    def _may_move(self) -> tuple[bool, bool]:
        """Return whether decisions may be raised, and whether they may be lowered."""
        return True, True

    def to_patch(
        self, audit: Audit | None = None, *, by: str | None = None, created: str | None = None
    ) -> Patch:
        """Return the update as a small file that edits a column of scores anywhere.

        The patch holds the scorecard, the request and the figures; no row, no sensitive value. A
        COMMOD with architecture="mlp" has no scorecard and cannot be a patch.

        Parameters
        ----------
        audit : Audit, default=None
            An audit of this update. The patch carries its digest; see `Patch.with_audit`.
        by : str, default=None
            Who saves the patch.
        created : str, default=None
            The time, as ISO 8601 writes it. None: now, in UTC. The time of an earlier patch gives
            the same bytes again.
        """
        missing = "scorecard, and a patch is one: it needs a linear ratio"
        cards = [(one, one._linear(missing)) for one in self._versions()]
        base = base_of(self)  # edits keep the base model
        contents = [
            content_of(one, card, one.calibration_, one._allowed_changes(), base)
            for one, card in cards
        ]
        patch = patch_of(contents, getattr(self, "edits_", ()), by, created)
        return patch if audit is None else patch.with_audit(audit)

    def _versions(self) -> Sequence[RatioUpdate]:
        """Return this update and those before its edits by hand, newest first."""
        return [self]

    def edit(self, *args: Any, **kwargs: Any) -> Self:
        """Refuse: this method states no target. `ControlledDebiaser` can be edited."""
        raise InputError(
            f"{type(self).__name__} cannot be edited by hand: it states no target that "
            "edited points could be held to. Fit a ControlledDebiaser with a target, and edit that."
        )

    def calibrated_proba(self, X: Any) -> NDArray[np.float64]:
        """Return calibrated probabilities, shape (n, 2), columns in the order of `classes_`.

        They are the edited scores of `predict_proba`, mapped by `calibration_`: a strictly rising
        line through at most 21 knots. Use them to rank people, and to price where no decision
        changed.

        - Every decision is kept: the probability of the score's label is above the threshold
          exactly where the decision is that label. A score at the threshold stays there.
        - People keep the order of their edited scores, up to rounding.
        - The price of kept decisions: where the true labels would put people onto the other side
          of the threshold, the probability is held next to the threshold. That is often so for
          people whose decision changed. `commod.audit` shows how far off it is for them.

        `fit` learns the map on its rows; with `confidence`, on the half that it fits on. Five folds
        of these rows choose the number of knots, by the Brier score on rows that a map was not
        learned on. The map is then learned on all of these rows. The figures in `calibration_`
        (Brier score, mean distance from the observed share) are out-of-fold. The update itself is
        not refitted in the folds, so `commod.audit` on new rows is the stricter measure.

        Parameters
        ----------
        X : table of shape (n, n_features)
            The columns of the fit.

        Raises
        ------
        InputError
            If `fit` had no true labels, or fewer than 5 people of a label, or 20 in all.

        Examples
        --------
        >>> from commod import ControlledDebiaser
        >>> from commod.datasets import make_biased
        >>> from sklearn.linear_model import LogisticRegression
        >>> data = make_biased(800, random_state=0)
        >>> model = LogisticRegression().fit(data.data, data.target)
        >>> update = ControlledDebiaser(model, target=0.8)
        >>> update = update.fit(data.data, data.target, sensitive_features=data.sensitive_features)
        >>> probability = update.calibrated_proba(data.data)[:, 1]
        >>> bool(((probability > 0.5) == (update.predict(data.data) == 1)).all())
        True
        """
        base, ratio = self._base_and_ratio(X)
        if self.calibration_ is None:
            raise InputError(
                f"This update has no calibrated probabilities: {self._why_uncalibrated}. Fit it "
                "with the true labels of enough people: fit(X, y, sensitive_features=...).",
                parameter="y",
            )
        scores = map_scores(self.calibration_, self._edited(base, ratio), base.threshold)
        proba = np.column_stack([1 - scores, scores])
        return proba if self._score_label() == self.classes_[1] else proba[:, ::-1]

    # -- internal interface: see _interface.py -----------------------------------------------------

    def _read_rows(self, X: Any, sensitive_features: Any = None) -> RatioRows:
        """Return new rows, read once; groups are not looked at."""
        check_is_fitted(self)
        base, columns = self._scored_columns(X)
        return RatioRows(columns, base, self._ratio_function().encoding)

    def _decide_rows(self, rows: RatioRows) -> NDArray[np.bool_]:
        """Return the decisions on rows that were read, shape (n,)."""
        ratio = self._effective(rows.base, self._ratio_function().evaluate(rows.terms))
        return new_decisions(rows.base, ratio)

    def _evaluate_rows(self, rows: RatioRows) -> RowEvaluation:
        """Return decisions, edited scores and ratio on rows that were read."""
        base = rows.base
        raw_ratio = self._ratio_function().evaluate(rows.terms)
        ratio = self._effective(base, raw_ratio)
        return RowEvaluation(
            after=new_decisions(base, ratio),
            scores=self._edited(base, ratio),
            ratio=ratio,
            raw_ratio=raw_ratio,
        )

    def _as_fitted(self, column: Column) -> Column:
        """Return a column in the kind that it had in the fit rows; a changed type is refused."""
        return _as_fitted([column], self._ratio_function().encoding)[0]

    def _allowed_changes(self) -> AllowedChanges:
        """Return in which directions, and how far from the threshold, decisions may change."""
        return AllowedChanges(*self._may_move(), self._fitted_param("max_margin"))

    def _score_columns(self, scores: NDArray[np.float64]) -> list[Column]:
        """Return the columns that r reads and that the base score determines."""
        threshold, columns = float(self._fitted_param("threshold")), []
        if self._reads_margin():
            columns.append(Column(MARGIN_COLUMN, "numeric", margins(scores, threshold)))
        return columns

    def _ratio_columns(self, X: Any, scores: NDArray[np.float64]) -> list[Column]:
        """Return the columns that the ratio reads, for rows whose base scores are known."""
        columns = read_columns(X, self._ratio_function().encoding.kinds, self._unread())
        return self._with_score_columns(scores, self._features(columns))


def _as_fitted(columns: Sequence[Column], encoding: Encoding) -> list[Column]:
    """Return columns in the kinds that their terms read; a column without terms as it is."""
    specs = {spec.name: spec for spec in encoding.columns}
    return [matching_column(specs[c.name], {c.name: c}) if c.name in specs else c for c in columns]
