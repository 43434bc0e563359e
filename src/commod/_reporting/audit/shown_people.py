"""Leave out people of groups that are too small to be shown; every figure counts the others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commod._data.disclosure import hidden_groups, in_totals
from commod._data.groups import Groups
from commod._reporting.audit.condition_counts import ConditionCounts
from commod._reporting.audit.people import AuditedPeople


@dataclass(frozen=True)
class ShownPeople:
    """The people outside hidden groups, whom figures count.

    `is_shown` (n,) says who they are. `n_hidden` (n_groups,) counts the others by group, and
    `n_unknown_hidden` those whose group is not known.
    """

    people: AuditedPeople
    is_shown: NDArray[np.bool_]
    n_hidden: NDArray[np.int64]
    n_unknown_hidden: int

    @property
    def is_complete(self) -> bool:
        """Return whether nobody is hidden."""
        return bool(self.is_shown.all())

    @cached_property
    def is_known(self) -> NDArray[np.bool_]:
        """Return which of the people who are shown have a known group."""
        return self.people.groups.is_known

    @cached_property
    def known(self) -> AuditedPeople:
        """Return the people of known groups, whom comparisons count."""
        return self.people if self.is_known.all() else self.people.take(self.is_known)

    def figures(self) -> dict[str, Any]:
        """Return the fields of `Evidence` that count these people and the hidden ones."""
        return {
            "coding": self.people.coding,
            "counts": self.people.count(),
            "unknown": self.people.count_unknown(),
            "n_hidden": self.n_hidden,
            "n_unknown_hidden": self.n_unknown_hidden,
        }


def without_hidden(everybody: AuditedPeople, min_group_size: int) -> ShownPeople:
    """Return the people outside groups that are too small to be shown."""
    sizes = everybody.groups.sizes.astype(np.int64)
    is_hidden = hidden_groups(sizes, sizes >= min_group_size)
    is_unknown = ~everybody.groups.is_known
    is_shown = in_totals(everybody.groups.codes, is_hidden, int(is_unknown.sum()))
    people = everybody if is_shown.all() else everybody.take(is_shown)
    n_unknown_hidden = int((is_unknown & ~is_shown).sum())
    return ShownPeople(people, is_shown, np.where(is_hidden, sizes, 0), n_unknown_hidden)


def count_conditions(
    everybody: AuditedPeople, conditions: Mapping[str, Groups], shown_people: ShownPeople
) -> ConditionCounts | None:
    """Return the counts of people outside hidden groups by stratum; None without a condition."""
    if not conditions:
        return None
    lines = ConditionCounts.of_people(everybody, conditions)
    return lines.shown(shown_people.n_hidden, shown_people.n_unknown_hidden)
