"""Leaf relabelling of a decision tree (Kamiran, Calders and Pechenizkiy 2010)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, milp
from sklearn.tree import DecisionTreeClassifier

from commod._data.arrays import Floats, Mask
from commod.bounds._integer import without_debug_lines
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


def leaf_effects(rows: RivalFitRows, leaves: Leaves, label: Mask | None) -> LeafEffects:
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


MAX_ENUMERATED = 25  # items; above, the halves have too many subsets

SCALE = 30.0  # of the constraint: HiGHS allows an error of 1e-6; larger scales make it print more
MAX_NODES = 1000  # of one integer programme; a limit in nodes gives the same result anywhere
MAX_SECONDS = 10.0  # of one integer programme, for trees of thousands of leaves


class Cover(NamedTuple):
    """The chosen items (m,), and whether no cheaper choice exists."""

    chosen: Mask
    is_optimal: bool


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


def cheapest_cover(gain: Floats, cost: Floats, size: Floats, needed: float) -> Cover:
    """Return the items of the smallest cost whose gains reach `needed`; of these, the smallest.

    Up to 25 items are enumerated. Above that, HiGHS solves an integer programme; if it reaches
    its limit, the result may not be optimal.

    Examples
    --------
    >>> gain, cost, size = np.array([0.4, 0.3, 0.1]), np.array([3.0, 2.0, 2.0]), np.ones(3)
    >>> cheapest_cover(gain, cost, size, needed=0.4).chosen
    array([ True, False, False])
    """
    if needed <= ROUNDING:
        return Cover(np.zeros(len(gain), dtype=np.bool_), True)
    if len(gain) <= MAX_ENUMERATED:
        return Cover(_enumerated(gain, cost, size, needed), True)
    return _programmed(gain, cost, size, needed)


def _enumerated(gain: Floats, cost: Floats, size: Floats, needed: float) -> Mask:
    """Return the best of all subsets: each subset of one half meets its best partner.

    The subsets of the second half are sorted by gain. Then the partners that gain enough are the
    last ones, and the best of the last ones is known for each position.
    """
    half = len(gain) // 2
    first, second = _subsets(half), _subsets(len(gain) - half)
    sums = [(first @ values[:half], second @ values[half:]) for values in (gain, cost, size)]
    (gain_1, gain_2), (cost_1, cost_2), (size_1, size_2) = sums
    by_gain = np.argsort(gain_2, kind="stable")
    rank = np.empty(len(second), dtype=np.intp)
    by_cost = np.lexsort([size_2, cost_2])
    rank[by_cost] = np.arange(len(second))
    best_of_last = by_cost[np.minimum.accumulate(rank[by_gain][::-1])[::-1]]
    position = np.searchsorted(gain_2[by_gain], needed - ROUNDING - gain_1)
    rows = np.flatnonzero(position < len(second))
    if not len(rows):  # the gains of all items are not enough
        return np.ones(len(gain), dtype=np.bool_)
    partner = best_of_last[position[rows]]
    total_cost, total_size = cost_1[rows] + cost_2[partner], size_1[rows] + size_2[partner]
    best = np.lexsort([total_size, total_cost])[0]
    return np.concatenate([first[rows[best]], second[partner[best]]]).astype(np.bool_)


def _subsets(n_items: int) -> NDArray[np.int8]:
    """Return all subsets, shape (2 ** n_items, n_items), as zeros and ones."""
    numbers = np.arange(1 << n_items)[:, None]
    return (numbers >> np.arange(n_items) & 1).astype(np.int8)


def _programmed(gain: Floats, cost: Floats, size: Floats, needed: float) -> Cover:
    """Return the solution of the integer programme; the greedy one where HiGHS has found none.

    Sizes only break ties of the cost, and only approximately: together they count a quarter of a
    step between two sums of costs. HiGHS stops half a step from its bound. So it proves the
    smallest cost where costs are whole numbers, with steps of 1; other costs have no smallest step.
    """
    greedy = greedy_cover(gain, cost, size, needed)
    step = 1.0 if (cost == np.round(cost)).all() else 1e-3 * cost[cost > 0].min()
    tie = 0.25 * step / max(size.sum(), 1.0)
    with without_debug_lines():
        solution = milp(
            cost + tie * size,
            integrality=np.ones(len(gain)),
            bounds=Bounds(0, 1),
            constraints=LinearConstraint(SCALE / needed * gain[None], lb=SCALE),
            options={
                "mip_rel_gap": 0.5 * step / max(cost @ greedy, step),
                "node_limit": MAX_NODES,
                "time_limit": MAX_SECONDS,
                # With presolving, HiGHS writes many lines of its own to the screen; else very few.
                "presolve": False,
            },
        )
    if solution.x is None:
        return Cover(greedy, False)
    chosen = solution.x > 0.5
    if gain[chosen].sum() < needed - ROUNDING:  # HiGHS rounds: add what is still needed
        others = np.flatnonzero(~chosen)
        missing = needed - gain[chosen].sum()
        chosen[others[greedy_cover(gain[others], cost[others], size[others], missing)]] = True
        return Cover(chosen, False)
    return Cover(chosen, solution.status == 0)
