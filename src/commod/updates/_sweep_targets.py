"""Search for the updates of a frontier: many targets, several degrees of shrinkage, past parity."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commod.scorecard import Scorecard
from commod.updates._interface import AllowedChanges, FittedCandidate
from commod.updates._search import Search, Update, eta_of
from commod.updates.ratio import RatioRows

__all__ = ["SearchCandidate", "sweep_search"]

N_TARGETS = 28  # default targets between the base model and parity, denser towards parity
# The update that fits the fit rows best is not the best one on new rows.
SHRINKAGES = (None, 0.5, 1.0)
# Extra changes past parity, as shares: of the fitted direction, and of the initial direction.
PAST_PARITY = (
    (0.03, 0.08, 0.15, 0.25),
    (0.015, 0.03, 0.045, 0.06, 0.08, 0.1, 0.125, 0.15, 0.19, 0.24, 0.3, 0.4),
)

Report = Callable[[int, int], None] | None
SweptUpdate = tuple[dict[str, float], Update]


def sweep_search(
    search: Search, targets: Sequence[float] | None, stated: float, report: Report
) -> list[SweptUpdate]:
    """Return settings and update of each target, loosest target first.

    Without targets, the default sweep is returned: targets from the base model's fairness to near
    parity, each at every shrinkage, then updates past parity on the fit rows. `stated` is the
    update's own target; where it lies between the default ones, it replaces the nearest.
    """
    constraint = search.constraint
    use_default = targets is None
    if targets is None:
        targets = _default_targets(search.base_value, constraint.near_ideal, stated)
    ordered = sorted(set(targets), reverse=not constraint.higher_is_fairer)
    path = search.path(ordered, report, SHRINKAGES if use_default else (None,))
    swept = [
        (_settings(target, update), update)
        for target, updates in zip(ordered, path, strict=True)
        for update in updates
    ]
    return [*swept, *_past_parity(search, path[-1])] if use_default else swept


def _default_targets(base_value: float, near_ideal: float, stated: float) -> list[float]:
    share = 1 - np.linspace(1, 0, N_TARGETS + 1)[1:] ** 1.5
    targets = (base_value + (near_ideal - base_value) * share).tolist()
    if min(targets) < stated < max(targets):
        targets[int(np.argmin(np.abs(np.array(targets) - stated)))] = stated
    return targets


def _past_parity(search: Search, fairest: Sequence[Update]) -> Iterator[SweptUpdate]:
    """Yield updates that change more than the fairest ones; they have no target."""
    for update, extras in zip((fairest[0], fairest[-1]), PAST_PARITY, strict=True):
        for extra in extras:
            further = search.beyond(update, extra)
            yield _settings(float("nan"), further), further


def _settings(target: float, update: Update) -> dict[str, float]:
    n_terms = int((update.weights != 0).sum())
    return {"target": target, "shrinkage": update.found.lean, "n_terms": n_terms}


@dataclass(frozen=True)
class SearchCandidate:
    """An update of a sweep; `fitted_copy(search, update, target)` builds it only when needed.

    The candidate holds the fit rows. Therefore, pickling stores the built update in its place.
    """

    settings: dict[str, float]
    search: Search
    update: Update
    allowed: AllowedChanges
    fitted_copy: Callable[[Search, Update, float | None], Any]

    def decide(self, rows: RatioRows) -> NDArray[np.bool_]:
        """Return the decisions on rows that were read, shape (n,)."""
        # an update that changes no fit row is stored as r = 1, so it changes no other row either
        acts = ((self.search.eta(self.update) > 0) & self.search.free).any()
        eta = eta_of(self.update, rows.terms, self.search.moments)
        return rows.base.decisions ^ ((eta > 0) & self.allowed.mask(rows.base) & acts)

    def build(self) -> Any:
        """Return the fitted update with its figures on the fit rows."""
        return self.fitted_copy(self.search, self.update, self.settings["target"])

    def scorecard(self) -> Scorecard:
        """Return the points alone: nothing is measured on the fit rows."""
        return self.fitted_copy(self.search, self.update, None).scorecard_

    def __reduce__(self) -> tuple[type[FittedCandidate], tuple[dict[str, float], Any]]:
        return FittedCandidate, (self.settings, self.build())
