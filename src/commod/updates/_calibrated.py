"""Give an update a calibrated companion of its edited score: `calibrated_proba`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from commod._record import ScoreMap
from commod._statistics.calibrating import learn_score_map, too_few_text
from commod._statistics.score_map import map_scores
from commod.exceptions import InputError
from commod.scorecard import crossing_ends
from commod.updates._fit_rows import FitRows

AN_OLDER_FIT = "it was fitted by an earlier version of commod, or only its points were computed"


class CalibratedScores:
    """A part of `RatioUpdate`: the map of edited scores to probabilities, learned by `fit`.

    `calibration_` is None where no map could be learned. Updates that earlier versions stored have
    none.
    """

    calibration_: ScoreMap | None = None
    _why_uncalibrated: str = AN_OLDER_FIT
    classes_: NDArray[Any]
    fitted_param: Any
    _score_label: Any
    _base_and_ratio: Any
    _edited: Any

    def _store_calibration(self, rows: FitRows, ratio: NDArray[np.float64]) -> None:
        """Learn the map on the fit rows; `ratio` (n,) is the effective r.

        People of hidden groups and rows without weight are left out, as in every total.
        """
        counted = np.flatnonzero(rows.in_totals & (rows.weight > 0))
        label = None
        if rows.label is not None:
            label = (rows.label == rows.base.is_for_positive)[counted]
        self._why_uncalibrated, self.calibration_ = too_few_text(label), None
        if label is None or self._why_uncalibrated:
            return
        base = rows.base.take(counted)
        only_changed = self.fitted_param("score_edit") == "changed_only"
        self.calibration_ = learn_score_map(
            base.scores,
            self._edited(base, ratio[counted]),
            label,
            rows.weight[counted],
            base.threshold,
            crossing_ends(base.threshold) if only_changed else (),
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
