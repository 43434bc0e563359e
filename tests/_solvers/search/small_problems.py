"""A small random search problem, and what is known about it by plain counting."""

import numpy as np
from commod._solvers.search.annealing import SearchTask
from commod._solvers.search.design import Design, Lookup
from commod._solvers.search.rates import Caps, Cells, change_effects
from hypothesis import settings
from hypothesis import strategies as st
from inequalities import inequalities_of

from commod.metrics import fairness_value

CONSTRAINTS = (
    "demographic_parity",
    "equalized_odds",
    "true_positive_rate_parity",
    "false_positive_rate_parity",
)
quick = settings(deadline=None, max_examples=30)
seeds = st.integers(0, 2**32 - 1)


def is_met(constraints, value, target):
    if constraints == "demographic_parity":
        return value >= target - 1e-12
    return value <= target + 1e-12


class Small:
    """A random small task: groups, labels, decisions, weights, and what changes would do."""

    def __init__(self, seed, constraints="demographic_parity", n=24, n_groups=2, caps=None):
        rng = np.random.default_rng(seed)
        self.rng, self.n, self.constraints = rng, n, constraints
        self.group = np.arange(n) % n_groups
        self.label = (np.arange(n) // n_groups) % 2 == 0  # every group has both labels
        self.decisions = rng.random(n) < np.where(self.group == 0, 0.7, 0.3)
        self.weight = rng.choice([0.5, 1.0, 2.0], n)
        self.may_change = rng.random(n) < 0.8
        self.cells = Cells.of(constraints, self.group, n_groups, self.label)
        self.effects = change_effects(
            self.cells, self.decisions, self.weight, may_change=self.may_change, label=self.label
        )
        self.caps = Caps() if caps is None else caps

    def inequalities(self, target):
        return inequalities_of(self.constraints, target, self.effects, self.caps)

    def task(self, design, inequalities, bounds=None):
        columns = np.arange(design.width)
        return SearchTask(
            design, self.effects, inequalities, columns, self.weight, (), bounds, sparsity=0.0
        )

    def fairness(self, changed):
        after = (self.decisions ^ changed).astype(int)
        return fairness_value(
            self.constraints,
            self.label.astype(int),
            after,
            sensitive_features=self.group,
            sample_weight=self.weight,
        )

    def within_caps(self, changed):
        share = self.weight / self.weight.sum()
        after = self.decisions ^ changed
        loss = share @ (self.decisions == self.label) - share @ (after == self.label)
        volume = abs(share @ after - share @ self.decisions)
        figures = ((changed.mean(), self.caps.changes), (loss, self.caps.accuracy_loss))
        figures = (*figures, (volume, self.caps.volume_change))
        return all(cap is None or value <= cap + 1e-9 for value, cap in figures)


def small_design(seed, n, p=3, c=2):
    rng = np.random.default_rng(seed)
    present = rng.random((n, c)) < 0.4
    lookups = [Lookup.of(np.where(present[:, j], 0, 1), np.array([j])) for j in range(c)]
    terms = np.arange(p + c)
    return Design(rng.normal(size=(n, p)), tuple(lookups), np.ones(c), terms, terms)
