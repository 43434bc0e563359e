"""Updates that multiply the margin by a ratio r(x): its decisions and scores, whatever gives r."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted, validate_data

from commod._data.base_model import BaseScores, ScoreColumn
from commod._data.columns import Column, read_columns
from commod._data.encoding import Encoding, TermTable
from commod._solvers.concepts import Concepts
from commod._solvers.problem import raw_scorecard
from commod.exceptions import InputError
from commod.patch import Patch
from commod.scorecard import MARGIN_COLUMN, Scorecard, decide, edited_scores, margins
from commod.updates._as_patch import patch_of
from commod.updates.base import BaseUpdate, Changes

__all__ = ["RatioFunction", "RatioUpdate"]


class RatioFunction(Protocol):
    """What gives r: the points of a `Scorecard` or the layers of a `Network`."""

    @property
    def encoding(self) -> Encoding:
        """Return which raw column each term reads."""
        ...

    def evaluate(self, terms: TermTable) -> NDArray[np.float64]:
        """Return r of each row, shape (n,)."""
        ...


class RatioUpdate(BaseUpdate):
    """An update with a ratio r; predicting needs NumPy and the base model only.

    r is a scorecard. A subclass may have another `_ratio_function`; `scorecard_` is None then.
    """

    scorecard_: Scorecard | None
    condition_on_logit: bool = False

    def _ratio_function(self) -> RatioFunction:
        """Return what gives r."""
        assert self.scorecard_ is not None
        return self.scorecard_

    def _store_scorecard(
        self,
        encoding: Encoding,
        concepts: Concepts,
        mean: NDArray[np.float64],
        scale: NDArray[np.float64],
    ) -> None:
        """Keep a ratio learned on standardised terms as points on raw ones."""
        self.concept_weights_ = concepts.weights
        self.concept_contributions_ = concepts.contributions
        self.intercept_ = concepts.intercept
        self.term_names_ = encoding.term_names
        self.scorecard_ = raw_scorecard(encoding, concepts, mean, scale)

    def _read_rows(
        self, X: Any, reads: RatioFunction | None = None
    ) -> tuple[BaseScores, list[Column]]:
        """Return the base model's scores and the columns; only those that `reads` has, if given."""
        check_is_fitted(self)
        kinds = (reads or self._ratio_function()).encoding.kinds
        scores = [self.estimator.name] if isinstance(self.estimator, ScoreColumn) else []
        only = None if reads is None else {*kinds, *scores}
        columns = read_columns(X, kinds, self._unread(), only)
        validate_data(self, X, skip_check_array=True, reset=False)
        base = self._base(X, columns)
        return base, self._ratio_columns(base, self._features(columns))

    def _ratio_columns(self, base: BaseScores, columns: list[Column]) -> list[Column]:
        """Return the columns r reads: those of X, and the margin where r may depend on it."""
        if not self.condition_on_logit:
            return columns
        if any(c.name == MARGIN_COLUMN for c in columns):
            raise InputError(
                f"X has a column {MARGIN_COLUMN!r}, the name that condition_on_logit gives to the "
                "base model's margin. Rename it."
            )
        return [*columns, Column(MARGIN_COLUMN, "numeric", margins(base.scores, base.threshold))]

    def _base_and_ratio(self, X: Any) -> tuple[BaseScores, NDArray[np.float64]]:
        base, ratio = self._base_and_raw_ratio(X)
        return base, self._effective(base.decisions, ratio)

    def _base_and_raw_ratio(self, X: Any) -> tuple[BaseScores, NDArray[np.float64]]:
        """Return the base model's scores and r, shape (n,), whatever a gate makes of it."""
        check_is_fitted(self)
        function = self._ratio_function()
        function = function.in_use() if isinstance(function, Scorecard) else function
        base, columns = self._read_rows(X, function)
        return base, function.evaluate(function.encoding.encode(columns))

    def _effective(
        self, base: NDArray[np.bool_], ratio: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return the r that acts on rows with these base decisions; a gate may hold it at 1."""
        return ratio

    def raw_ratio(self, X: Any) -> NDArray[np.float64]:
        """Return the r(x) that was learned, shape (n,), whatever the direction allows."""
        return self._base_and_raw_ratio(X)[1]

    def ratio(self, X: Any) -> NDArray[np.float64]:
        """Return the r(x) that acts on each row, shape (n,); a decision changes where it is < 0."""
        return self._base_and_ratio(X)[1]

    def concepts(self, X: Any) -> NDArray[np.float64]:
        """Return the value of each concept on each row, shape (n, k), centred on the fit rows.

        ratio(X) = intercept_ + concepts(X) @ concept_contributions_, up to rounding.
        """
        check_is_fitted(self)
        assert self.scorecard_ is not None
        card = self.scorecard_.in_use(concepts=True)
        return card.concepts(self._read_rows(X, card)[1])

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the new decision of each row, shape (n,), as one of `classes_`.

        X needs the columns of the fit, but neither this nor any other method here looks at one
        without points: it may hold anything that the base model takes.
        """
        base, ratio = self._base_and_ratio(X)
        return self._labels_of(decide(base.scores, ratio, base.threshold))

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the edited scores, shape (n, 2), columns in the order of `classes_`.

        Where r is exactly 1 they are the base model's own, bit for bit. They order decisions and
        are not calibrated probabilities.
        """
        base, ratio = self._base_and_ratio(X)
        edited = edited_scores(base.scores, ratio, base.threshold)
        same = edited == base.scores
        proba = np.column_stack([np.where(same, base.proba[:, 0], 1 - edited), edited])
        return proba if self.classes_[1] == self.pos_label_ else proba[:, ::-1]

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return the edited margin, shape (n,): positive where `classes_[1]` is predicted."""
        base, ratio = self._base_and_ratio(X)
        size = np.abs(ratio * margins(base.scores, base.threshold))
        side = decide(base.scores, ratio, base.threshold) == (self.classes_[1] == self.pos_label_)
        return np.where(side, 1.0, -1.0) * np.maximum(size, np.finfo(float).tiny)

    def decision_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the chance of a positive decision, shape (n,): 0 or 1, nothing is drawn by lot."""
        base, ratio = self._base_and_ratio(X)
        return decide(base.scores, ratio, base.threshold).astype(np.float64)

    def changes(self, X: Any) -> Changes:
        """Return which rows change and in which direction."""
        base, ratio = self._base_and_ratio(X)
        return self._changes(base.decisions, decide(base.scores, ratio, base.threshold))

    def _may_move(self) -> tuple[bool, bool]:
        """Return whether decisions may become positive, and may cease to be."""
        return True, True

    def to_patch(self) -> Patch:
        """Return the update as a small file that edits a column of scores anywhere.

        It holds the scorecard and what was asked and reached; no row and no sensitive value.
        """
        check_is_fitted(self)
        return patch_of(self, *self._may_move())
