"""Leaf relabelling of a decision tree (Kamiran, Calders and Pechenizkiy 2010)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.tree import DecisionTreeClassifier

from commod._data.arrays import Floats, Mask
from commod.exceptions import InputError
from commod.metrics._constraint import PARITY
from commod.rivals._rows import DecisionRows, RivalFitRows
from commod.rivals._trained import inputs_of_last_step, last_step
from commod.rivals.base import Rival, choice

# ---------------------------------------------------------------------------------------------
# Choose items whose gains reach a sum at the smallest cost: a knapsack problem

Leaves = NDArray[np.intp]

ROUNDING = 1e-12  # a smaller gain is a rounding error; a sum of gains may fall short by this much


@dataclass(eq=False, repr=False, kw_only=True)
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
        cost until the bound holds. "exact" finds the smallest cost.
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

    solver: str = choice("greedy", "exact")
    objective: str = choice("accuracy", "changes")

    known_constraints: ClassVar[tuple[str, ...]] = (PARITY,)
    several_groups: ClassVar[bool] = False
    needs_tree: ClassVar[bool] = True
    largest_strength = 1.0

    @property
    def needs_labels(self) -> bool:  # type: ignore[override]
        """Return whether `fit` needs y: to count the accuracy that a leaf loses."""
        return bool(self._fitted_param("objective") == "accuracy")

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

    # -- learning -------------------------------------------------------------------------------

    def _learn_all(self, models: Sequence[Self], rows: RivalFitRows) -> None:
        """Count the leaves once; the models differ only in the discrimination that must go."""
        label = None
        if self.objective == "accuracy":
            label = rows.needed_labels(
                'objective="accuracy" counts the accuracy that a leaf loses',
                ', or choose objective="changes"',
            )
        discrimination, leaf, *effects = leaf_effects(rows, self._leaves(rows), label)
        candidate = effects[0] > ROUNDING
        gain, cost, size = (effect[candidate] for effect in effects)
        for model in models:
            # A NaN, of an empty group, compares as False: then nothing is needed.
            needed = float(model.strength) * discrimination if discrimination > 0 else 0.0
            if self.solver == "exact":
                chosen, model.is_optimal_ = cheapest_cover(gain, cost, size, needed)
            else:
                chosen = greedy_cover(gain, cost, size, needed)
                model.is_optimal_ = needed <= 0
            model.relabelled_ = leaf[candidate][chosen]
            model.discrimination_ = float(discrimination - gain[chosen].sum())

    # -- deciding -------------------------------------------------------------------------------

    def _decide(self, rows: DecisionRows) -> Mask:
        if not len(self.relabelled_):
            return rows.base.decisions
        return rows.base.decisions ^ np.isin(self._leaves(rows), self.relabelled_)

    def _leaves(self, rows: DecisionRows) -> Leaves:
        """Return the leaf of each row, shape (n,)."""
        model = self._base_model
        tree = last_step(model)
        leaves = rows.remember(model, lambda: tree.apply(inputs_of_last_step(model, rows.X)))
        return np.asarray(leaves, dtype=np.intp)

    def _remarks(self) -> Iterator[str]:
        yield from super()._remarks()
        if np.isnan(self.discrimination_):
            yield "Nothing changes: a group has no weight, so its rate is undefined."
        elif self.discrimination_ < 0:
            yield "The group with the lower rate has the higher one now."


def leaf_effects(
    rows: RivalFitRows, leaves: Leaves, label: Mask | None
) -> tuple[float, Leaves, Floats, Floats, Floats]:
    """Return the discrimination of the base decisions, and what it means to invert each leaf.

    Arrays of shape (L,) have the numbers of the leaves, how much the discrimination falls, what the
    inversion costs, and the rows in the leaf. The cost is the weight of the rows that become wrong;
    without labels, it is the number of rows.
    """
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
    discrimination = float(rates[favoured] - rates[1 - favoured])
    return discrimination, leaf, gain, cost, n_rows


MAX_ENTRIES = 2**26  # of the table of sets and items; trees of thousands of leaves could need more


def greedy_cover(gain: Floats, cost: Floats, size: Floats, needed: float) -> Mask:
    """Return the items (m,) with the largest gain per cost until the sum of gains is reached.

    Items without cost come first, the smallest of them first.

    Examples
    --------
    >>> gain, cost, size = np.array([0.4, 0.3, 0.1]), np.array([4.0, 1.0, 5.0]), np.ones(3)
    >>> greedy_cover(gain, cost, size, needed=0.3)
    array([False,  True, False])
    """
    free = cost <= 0
    ratio = np.divide(gain, cost, out=np.full(len(gain), np.inf), where=~free)
    order = np.lexsort([size, -ratio])
    before = np.concatenate([[0.0], np.cumsum(gain[order])])[: len(gain)]
    chosen = np.zeros(len(gain), dtype=np.bool_)
    chosen[order[before < needed - ROUNDING]] = True
    return chosen


def cheapest_cover(gain: Floats, cost: Floats, size: Floats, needed: float) -> tuple[Mask, bool]:
    """Return the items of the smallest cost whose gains reach `needed`; of these, the smallest.

    The second value says whether no cheaper choice exists.

    Items are added one by one, the largest gain per cost first. Of all sets of these items, those
    are kept that may still be the best:

    - No other set gains as much, and costs less or, of equals, is smaller.
    - With the best of the items to come, a set costs no more than the greedy choice.

    If there are too many of them, a part is kept, and the result may not be optimal.

    Examples
    --------
    >>> gain, cost, size = np.array([0.4, 0.3, 0.1]), np.array([3.0, 2.0, 2.0]), np.ones(3)
    >>> cheapest_cover(gain, cost, size, needed=0.4)
    (array([ True, False, False]), True)
    """
    if needed <= ROUNDING:
        return np.zeros(len(gain), dtype=np.bool_), True
    greedy = greedy_cover(gain, cost, size, needed)
    most, enough, is_optimal = (1 + ROUNDING) * float(cost @ greedy), needed - ROUNDING, True
    items = np.lexsort([size, cost / gain])
    to_come = np.append(np.cumsum(gain[items][::-1])[::-1][1:], 0.0)
    next_price = np.append((cost / gain)[items][1:], 0.0)
    gains, costs, sizes = np.zeros(1), np.zeros(1), np.zeros(1)
    chosen = np.zeros((1, len(gain)), dtype=np.bool_)
    for item, rest, price in zip(items, to_come, next_price, strict=True):
        gains = np.minimum(np.append(gains, gains + gain[item]), enough)
        costs, sizes = np.append(costs, costs + cost[item]), np.append(sizes, sizes + size[item])
        chosen = np.concatenate([chosen, chosen])
        chosen[len(chosen) // 2 :, item] = True
        missing = enough - gains
        left = np.flatnonzero((missing <= rest + ROUNDING) & (costs + missing * price <= most))
        left = left[np.lexsort([sizes[left], costs[left], missing[left]])]
        rank = np.empty(len(left), dtype=np.intp)
        rank[np.lexsort([sizes[left], costs[left]])] = np.arange(len(left))
        left = left[rank == np.minimum.accumulate(rank)]
        step = -(-len(left) * len(gain) // MAX_ENTRIES)
        if step > 1:
            left, is_optimal = left[::step], False
        gains, costs, sizes, chosen = gains[left], costs[left], sizes[left], chosen[left]
    reached = np.flatnonzero(gains >= enough)
    if not len(reached):  # the gains of all items are not enough, or the best sets were left out
        return greedy, is_optimal
    best = reached[np.lexsort([sizes[reached], costs[reached]])[0]]
    return chosen[best], is_optimal
