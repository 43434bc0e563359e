"""The exact limits of one fit, and what they say in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from commod.metrics._constraint import get_constraint
from commod.updates._search import Search

if TYPE_CHECKING:
    from commod.updates.controlled import ControlledDebiaser

__all__ = ["LimitsInWords", "round_up"]


class LimitsInWords:
    """The exact limits of one fit, and what they and its sample say in words."""

    def __init__(
        self,
        update: ControlledDebiaser,
        search: Search,
        decisions: NDArray[np.bool_],
        weighted: bool,
    ) -> None:
        self.update, self.search, self.weighted = update, search, weighted
        rows = search.rows
        self.before = rows.base.decisions
        self.fairness = rows.fairness(update.constraints, decisions)
        self.n = len(rows)
        self.n_changed = int((decisions != self.before).sum())
        self.share = float("nan")
        if not weighted and not np.isnan(self.fairness) and self.fairness > 0:
            fewest = search.limit(self.fairness, self.before)
            if fewest is not None:
                self.share = fewest / self.n

    def sentences(self) -> list[str]:
        """Return what a reader should know about the search and the limits."""
        said = self._sample()
        if self.weighted:
            return [*said, "With sample weights the limit, a count of people, is not given."]
        if not np.isnan(self.share) and self.n_changed:
            said.append(
                f"The same fairness needs at least {self.share:.1%} changed, even with the "
                "sensitive attribute in hand."
            )
        if not self.update.reached_ and self.update.promised_ is None:
            said.append(self._why_not())
        if self.update.n_losses_ > self.update.n_gains_ and self.update.direction == "any":
            said.append(self._gains_only())
        return said

    def _sample(self) -> list[str]:
        n_sought, n, verified = self.update._sampled
        if n_sought >= n:
            return []
        text = (
            f"The direction was sought on {n_sought:,} of the {n:,} rows that the update was "
            "fitted on, drawn by group and decision, its cut on all of them"
        )
        checked = ", where it changes no larger share than in the sample, but for chance"
        return [text + (checked if verified else "") + "."]

    def _why_not(self) -> str:
        update, search = self.update, self.search
        constraint = get_constraint(update.constraints)
        goal = f"{constraint.metric} {constraint.sign} {update._target:g}"
        fewest = search.limit(update._target, self.before)
        if fewest is None:
            return f"{goal} cannot be reached with direction={update.direction!r} by any update."
        text = (
            f"{goal} needs at least {fewest / self.n:.1%} of decisions changed even if the "
            "sensitive attribute were used"
        )
        caps = [
            f"{name} is {getattr(update, name):.1%}"
            for name in ("max_changes", "max_accuracy_loss", "max_volume_change")
            if getattr(update, name) is not None
        ]
        return f"{text}; {', '.join(caps)}." if caps else f"{text}; these columns do not reach it."

    def _gains_only(self) -> str:
        raises = bool(self.update.favorable_label_ == self.update.pos_label_)
        fewest = self.search.limit(self.fairness, self.before, gains=raises)
        if fewest is None:
            return "Gains alone cannot reach the same fairness."
        return f"With gains only the same fairness needs at least {fewest / self.n:.1%} changed."


def round_up(rows: float) -> int:
    """Return a number of rows with two digits that count."""
    step = 10 ** max(0, int(np.floor(np.log10(max(rows, 1)))) - 1)
    return int(np.ceil(rows / step) * step)
