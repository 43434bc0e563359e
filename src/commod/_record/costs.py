"""Records of what an update costs: wrong decisions, in counts and in money."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class CountedUpdate:
    """An update as a fit counted it: changes and errors of `n` people whom its points had not seen.

    `parameter` is what to pass to get it, such as "direction='gains_only'"; it is empty for the
    update that was kept. `fairness` is the metric that is expected of the first constraint.

    Examples
    --------
    >>> CountedUpdate("", 2000, 0, 388, 32, 356, 0.81).n_changes
    388
    """

    parameter: str
    n: int
    n_gains: int
    n_losses: int
    n_errors_fixed: int
    n_errors_introduced: int
    fairness: float

    @property
    def n_changes(self) -> int:
        """Return the number of people who change."""
        return self.n_gains + self.n_losses


@dataclass(frozen=True)
class Losses:
    """What wrong decisions cost before and after, in the unit of the two stated values.

    A missed person has the favourable true label and not the decision: that loses the `worth` of a
    right acceptance. A wrong acceptance, the reverse, has its `cost`. `before` and `after` are the
    sums over all audited people.
    """

    worth: float
    cost: float
    n_missed_before: int
    n_missed_after: int
    n_wrong_before: int
    n_wrong_after: int
    before: float
    after: float
