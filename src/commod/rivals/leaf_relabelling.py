"""Leaf relabelling of a decision tree (Kamiran, Calders and Pechenizkiy 2010)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.tree import DecisionTreeClassifier

from commod._data.parameters import check_choice
from commod.exceptions import InputError
from commod.rivals._abilities import PARITY
from commod.rivals._base_layers import inputs_of_last_step, last_step
from commod.rivals._rows import DecisionRows, RivalFitRows
from commod.rivals._solvers.cover import Cover, cheapest_cover, greedy_cover
from commod.rivals.base import Rival

Floats = NDArray[np.float64]
Leaves = NDArray[np.intp]

SOLVERS = ("greedy", "exact")
OBJECTIVES = ("accuracy", "changes")
ROUNDING = 1e-12  # a smaller gain is a rounding error


class LeafRelabelling(Rival):
    """Invert the decision of some leaves of a decision tree, so that two groups' rates get closer.

    The discrimination is the positive rate of the favoured group minus that of the other group. A
    leaf is a candidate if inverting it lowers the discrimination. Leaves are chosen until the
    discrimination is at most (1 − strength) times that of the base model.

    Parameters
    ----------
    estimator : fitted DecisionTreeClassifier, or Pipeline that ends with one
        The base model. It is never refitted or edited.
    strength : float, default=1.0
        Share of the discrimination that must go, in [0, 1]; 0 changes nothing. The authors' bound ε
        on the discrimination is (1 − strength) times that of the base model.
    solver : str, default="greedy"
        "greedy" is the authors' algorithm: it adds the candidate with the largest reduction per
        cost until the bound holds. "exact" finds the smallest cost: by enumeration for up to 25
        candidates, otherwise by an integer programme.
    objective : str, default="accuracy"
        The cost of a leaf: the accuracy that it loses on the fit rows ("accuracy"), which needs y,
        or the number of its fit rows ("changes"). A leaf whose inversion loses no accuracy has the
        cost 0; leaves of equal cost are chosen by their number of rows.
    constraints : str, default="demographic_parity"
        The positive rates of all rows. Leaf relabelling knows no other constraint.
    min_group_size : int, default=30
        Fit rows that a group needs to be part of the constraint; smaller groups are reported.
    threshold : float, default=0.5
        The base decision is score > threshold; all rows of a leaf have the same decision.
    pos_label : label, default=None
        The label whose rates count. If None, `favorable_label`, or else `classes_[1]`.
    favorable_label : label, default=None
        The label that is good for the person; `pos_label` if None. It only names gains and losses.

    Attributes
    ----------
    relabelled_ : ndarray of int
        The leaves whose decisions are inverted, as numbered by the tree's `apply`.
    discrimination_ : float
        The discrimination on the fit rows after relabelling. It may be below 0: a leaf changes as a
        whole. NaN where it is undefined.
    is_optimal_ : bool
        Whether the solver proved that no choice has a smaller cost; False for "greedy".

    Notes
    -----
    A leaf without fit rows keeps its decision. Small leaves have uncertain rates: a tree with
    `min_samples_leaf` generalises better.

    References
    ----------
    Kamiran, Calders, Pechenizkiy: "Discrimination Aware Decision Tree Learning", ICDM 2010.

    Examples
    --------
    >>> from commod.datasets import make_biased
    >>> from commod.rivals import LeafRelabelling
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> data = make_biased(800, random_state=0)
    >>> tree = DecisionTreeClassifier(max_leaf_nodes=12, random_state=0)
    >>> tree = tree.fit(data.data, data.target)
    >>> update = LeafRelabelling(tree, strength=0.8, solver="exact")
    >>> update = update.fit(data.data, data.target, sensitive_features=data.sensitive_features)
    >>> bool(update.fairness_ > update.base_fairness_)
    True
    >>> changed = update.changes(data.data).changed
    >>> set(tree.apply(data.data)[changed]) == set(update.relabelled_)
    True
    """

    known_constraints: ClassVar[tuple[str, ...]] = (PARITY,)
    several_groups: ClassVar[bool] = False
    needs_tree: ClassVar[bool] = True
    largest_strength = 1.0

    def __init__(
        self,
        estimator: Any,
        *,
        strength: float = 1.0,
        solver: str = "greedy",
        objective: str = "accuracy",
        constraints: str = "demographic_parity",
        min_group_size: int = 30,
        threshold: float = 0.5,
        pos_label: Any = None,
        favorable_label: Any = None,
    ) -> None:
        self.estimator = estimator
        self.strength = strength
        self.solver = solver
        self.objective = objective
        self.constraints = constraints
        self.min_group_size = min_group_size
        self.threshold = threshold
        self.pos_label = pos_label
        self.favorable_label = favorable_label

    @property
    def needs_labels(self) -> bool:  # type: ignore[override]
        """Return whether `fit` needs y: to count the accuracy that a leaf loses."""
        return bool(self.fitted_param("objective") == "accuracy")

    def _check_base_model(self) -> None:
        model = self.estimator
        last = last_step(model)
        if not isinstance(last, DecisionTreeClassifier):
            ends = f" that ends with {type(last).__name__}" if last is not model else ""
            raise InputError(
                "LeafRelabelling inverts leaves of a decision tree; the base model is "
                f"{type(model).__name__}{ends}. Pass a fitted DecisionTreeClassifier, alone or as "
                "the last step of a Pipeline, or use a method for any model, such as "
                "ControlledDebiaser.",
                parameter="estimator",
            )

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice(self.solver, "solver", SOLVERS)
        check_choice(self.objective, "objective", OBJECTIVES)

    # -- learning -------------------------------------------------------------------------------

    def _learn(self, rows: RivalFitRows) -> None:
        self._learn_all([self], rows)

    def _learn_all(self, models: Sequence[Self], rows: RivalFitRows) -> None:
        """Count the leaves once; the models differ only in the discrimination that must go."""
        label = None
        if self.objective == "accuracy":
            label = rows.needed_labels(
                'objective="accuracy" counts the accuracy that a leaf loses',
                ', or choose objective="changes"',
            )
        effects = leaf_effects(rows, self._leaves(rows), label)
        for model in models:
            model._choose(effects)

    def _choose(self, effects: LeafEffects) -> None:
        """Store the leaves to invert."""
        candidate = effects.gain > ROUNDING
        gain, cost, size = (v[candidate] for v in (effects.gain, effects.cost, effects.n_rows))
        discrimination = effects.discrimination
        # A NaN, of an empty group, compares as False: then nothing is needed.
        needed = float(self.strength) * discrimination if discrimination > 0 else 0.0
        if self.solver == "exact":
            cover = cheapest_cover(gain, cost, size, needed)
        else:
            cover = Cover(greedy_cover(gain, cost, size, needed), needed <= 0)
        self.relabelled_ = effects.leaf[candidate][cover.chosen]
        self.discrimination_ = float(discrimination - gain[cover.chosen].sum())
        self.is_optimal_ = cover.is_optimal

    # -- deciding -------------------------------------------------------------------------------

    def _decide(self, rows: DecisionRows) -> NDArray[np.bool_]:
        if not len(self.relabelled_):
            return rows.base.decisions
        return rows.base.decisions ^ np.isin(self._leaves(rows), self.relabelled_)

    def _leaves(self, rows: DecisionRows) -> Leaves:
        """Return the leaf of each row, shape (n,)."""
        model = self.estimator_
        tree = last_step(model)
        leaves = rows.remember(model, lambda: tree.apply(inputs_of_last_step(model, rows.X)))
        return np.asarray(leaves, dtype=np.intp)

    def _sentence(self) -> str:
        text = super()._sentence()
        if np.isnan(self.discrimination_):
            text += " Nothing changes: a group has no weight, so its rate is undefined."
        elif self.discrimination_ < 0:
            text += " The group with the lower rate has the higher one now."
        return text


@dataclass(frozen=True)
class LeafEffects:
    """What it means to invert each of L leaves.

    Attributes
    ----------
    leaf : ndarray of shape (L,)
        The number of the leaf.
    gain : ndarray of shape (L,)
        How much the discrimination falls.
    cost : ndarray of shape (L,)
        What the inversion costs: the weight of rows that become wrong, or the number of rows.
    n_rows : ndarray of shape (L,)
        Rows in the leaf.
    discrimination : float
        The discrimination of the base decisions.
    """

    leaf: Leaves
    gain: Floats
    cost: Floats
    n_rows: Floats
    discrimination: float


def leaf_effects(
    rows: RivalFitRows, leaves: Leaves, label: NDArray[np.bool_] | None
) -> LeafEffects:
    """Return the effect of inverting each leaf; without labels, the cost is the number of rows."""
    leaf, first, index = np.unique(leaves, return_index=True, return_inverse=True)
    positive = rows.base.decisions[first]
    share = np.full((2, len(leaf)), np.nan)  # of each group's weight
    for group in range(rows.n_groups):
        weight = rows.weight * (rows.group == group)
        if (total := weight.sum()) > 0:
            share[group] = np.bincount(index, weight, len(leaf)) / total
    rates = share @ positive
    favoured = int(rates[1] > rates[0])
    difference = share[favoured] - share[1 - favoured]
    n_rows = np.bincount(index, minlength=len(leaf)).astype(np.float64)
    cost = n_rows
    if label is not None:
        signed = rows.weight * np.where(label == rows.base.decisions, 1.0, -1.0)
        cost = np.maximum(np.bincount(index, signed, len(leaf)), 0.0)
    gain = np.where(positive, difference, -difference)
    return LeafEffects(leaf, gain, cost, n_rows, float(rates[favoured] - rates[1 - favoured]))
