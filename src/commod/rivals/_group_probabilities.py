"""`GroupProbabilityRival`: what rules share that read P(S | x), or P(S, Y | x)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from commod._data.arrays import Floats
from commod._data.disclosure import MIN_CATEGORY_SIZE
from commod._data.parameters import check_number
from commod.exceptions import InputError
from commod.rivals._group_model import GroupModel, fit_group_model
from commod.rivals._rows import DecisionRows, RivalFitRows
from commod.rivals.base import AwareRival


@dataclass(frozen=True)
class CountedCells:
    """The rows that count in the constraint, and the cells that they belong to.

    Attributes
    ----------
    counted : ndarray of shape (n_rows,)
        Which of the fit rows count.
    share : ndarray of shape (n,)
        Weights of the counted rows; they sum to 1.
    effects : ndarray of shape (n_rate_rows, n_groups, n)
        γ: the probability of each cell over the cell's share.
    """

    counted: NDArray[np.bool_]
    share: Floats
    effects: Floats


class GroupProbabilityRival(AwareRival):
    """A rule on the effects γ_j: P(S = j | x) / P(S = j), or the same with the true label.

    - For constraints that compare errors, γ_j is P(S = j, Y = y | x) / P(S = j, Y = y).
    - If `aware` is True, the group is known. Otherwise a group model predicts it.
    """

    group_model_: GroupModel | None
    multipliers_: Floats
    shares_: Floats
    largest_strength = 1.0

    def __init__(
        self,
        estimator: Any,
        *,
        strength: float = 1.0,
        aware: bool = False,
        group_model: Any = None,
        constraints: str = "demographic_parity",
        locked_features: Sequence[str] = (),
        min_category_size: int = MIN_CATEGORY_SIZE,
        min_group_size: int = 30,
        threshold: float = 0.5,
        pos_label: Any = None,
        favorable_label: Any = None,
    ) -> None:
        self.estimator, self.strength, self.aware = estimator, strength, aware
        self.group_model, self.constraints = group_model, constraints
        self.locked_features, self.min_category_size = locked_features, min_category_size
        self.min_group_size, self.threshold, self.pos_label = min_group_size, threshold, pos_label
        self.favorable_label = favorable_label

    @property
    def needs_sensitive_features(self) -> bool:  # type: ignore[override]
        """Return whether `predict` takes the sensitive features: the value of `aware`."""
        return bool(self.fitted_param("aware"))

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number(self, "min_category_size", low=1, whole=True)
        model = self.group_model
        is_classifier = all(hasattr(model, name) for name in ("fit", "predict_proba", "get_params"))
        if model is not None and (isinstance(model, type) or not is_classifier):
            raise InputError(
                f"group_model={model!r} is no classifier that can be fitted and gives "
                "probabilities. Pass one that is not fitted, such as RandomForestClassifier(), or "
                "None for the built-in logistic regression.",
                parameter="group_model",
            )

    # -- learning -------------------------------------------------------------------------------

    def _learn(self, rows: RivalFitRows) -> None:
        self._learn_all([self], rows)

    def _learn_cells(self, models: Sequence[Self], rows: RivalFitRows) -> CountedCells:
        """Fit the group model once and store it in each model, with multipliers of 0."""
        group_model = None if self.aware else self._fit_group_model(rows)
        counted = rows.is_counted
        share = rows.weight[counted] / rows.weight[counted].sum()
        proba = self._cell_probabilities(rows, rows.n_groups, group_model)[:, :, counted]
        shares = proba @ share
        for model in models:
            model.group_model_ = group_model
            model.shares_ = shares
            model.multipliers_ = np.zeros_like(shares)
        return CountedCells(counted, share, _divide_by_shares(proba, shares))

    def _fit_group_model(self, rows: RivalFitRows) -> GroupModel:
        codes = rows.group
        if self._constraint.needs_labels:
            assert rows.label is not None
            codes = np.where(codes >= 0, codes + rows.n_groups * rows.label, -1)
        return fit_group_model(
            rows,
            codes,
            group_model=self.group_model,
            min_category_size=int(self.min_category_size),
            locked=self.locked_features,
        )

    def _is_defined(self, rows: RivalFitRows) -> bool:
        """Return whether every rate is defined: each cell has rows and a predicted share."""
        has_rows = rows.cells(self._constraint).totals(rows.weight) > 0
        return bool(has_rows.all() and (self.shares_ > 0).all())

    def _sentence(self) -> str:
        text = super()._sentence()
        if not (self.shares_ > 0).all():
            text += " Nothing changes: for one of the groups, every row has probability 0."
        return text

    # -- deciding -------------------------------------------------------------------------------

    def _effects(self, rows: DecisionRows) -> Floats:
        """Return γ of new rows, shape (n_rate_rows, n_groups, n)."""
        proba = self._cell_probabilities(rows, self.shares_.shape[1], self.group_model_)
        return _divide_by_shares(proba, self.shares_)

    def _cell_probabilities(
        self, rows: DecisionRows, n_groups: int, group_model: GroupModel | None
    ) -> Floats:
        """Return the probability that a row is in each cell, shape (n_rate_rows, n_groups, n).

        It is P(S = j | x), or P(S = j, Y = y | x) with the label y of the rate row. Without a group
        model the group is known, and the shifted base score is P(Y = 1 | x).
        """
        n_labels = 2 if self._constraint.needs_labels else 1
        if group_model is not None:
            classes = np.zeros((n_labels * n_groups, len(rows)))
            classes[group_model.classes] = group_model.probabilities(rows)
            table = classes.reshape(n_labels, n_groups, len(rows))
        else:
            assert rows.group is not None
            known = (rows.group == np.arange(n_groups)[:, None]).astype(np.float64)
            score = rows.scores_at_half
            table = np.stack([known * (1 - score), known * score] if n_labels > 1 else [known])
        return self._constraint.by_rate_row(table)


def _divide_by_shares(proba: Floats, shares: Floats) -> Floats:
    """Return proba (n_rate_rows, n_groups, n) over the cells' shares; 0 where a share is 0."""
    shares = shares[:, :, None]
    return np.divide(proba, shares, out=np.zeros_like(proba), where=shares > 0)
