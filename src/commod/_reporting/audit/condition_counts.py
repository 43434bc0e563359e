"""Count people by group, decisions, true label and the columns that constraints are within."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commod._data.arrays import Codes, Mask
from commod._data.disclosure import in_totals
from commod._data.groups import Groups
from commod._data.strata import read_condition, read_control_features
from commod._reporting.audit.counts import DecisionCounts
from commod._reporting.audit.people import AuditedPeople
from commod.exceptions import InputError
from commod.metrics._constraint import Constraint

IntArray = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class ConditionCounts:
    """People by all that constraints depend on; all arrays have shape (k,), one line per cell.

    A line stands for `n` people of the same group, true label and decisions, with the same values
    of all `columns`. `group` is −1 where it is not known.
    """

    group: Codes
    label: Mask | None
    before: Mask
    after: Mask
    n: IntArray
    columns: Mapping[str, Groups]

    @classmethod
    def of_counts(cls, counts: DecisionCounts) -> ConditionCounts:
        """Return the lines of counts; there are no conditions."""
        group, label, before, after = np.nonzero(counts.cells)
        return cls(
            group=group,
            label=label == 1 if counts.has_labels else None,
            before=before == 1,
            after=after == 1,
            n=counts.cells[group, label, before, after],
            columns={},
        )

    @classmethod
    def of_people(
        cls, people: AuditedPeople, columns: Mapping[str, Groups], n: IntArray | None = None
    ) -> ConditionCounts:
        """Return the lines of people; a row stands for one person, or for `n` (rows,)."""
        label = np.zeros(len(people), dtype=bool) if people.label is None else people.label
        key = people.groups.codes.astype(np.int64) + 1
        for part, size in [
            *((one.codes, len(one.labels)) for one in columns.values()),
            *((flag, 2) for flag in (label, people.before, people.after)),
        ]:
            _, key = np.unique(key * size + part, return_inverse=True)
        first = np.zeros(int(key.max(initial=0)) + 1, dtype=np.intp)
        first[key[::-1]] = np.arange(len(key))[::-1]
        totals = np.bincount(key, n, minlength=len(first)).astype(np.int64)
        return cls(
            group=people.groups.codes[first],
            label=None if people.label is None else people.label[first],
            before=people.before[first],
            after=people.after[first],
            n=totals,
            columns={name: replace(c, codes=c.codes[first]) for name, c in columns.items()},
        )

    def shown(
        self, n_hidden: NDArray[np.int64] | None, n_unknown_hidden: int = 0
    ) -> ConditionCounts:
        """Return the lines of people who are not hidden.

        `n_hidden` (n_groups,) counts those of hidden groups, `n_unknown_hidden` those whose group
        is not known.
        """
        if n_hidden is None:
            return self
        kept = in_totals(self.group, n_hidden > 0, n_unknown_hidden)
        return ConditionCounts(
            group=self.group[kept],
            label=None if self.label is None else self.label[kept],
            before=self.before[kept],
            after=self.after[kept],
            n=self.n[kept],
            columns={name: replace(c, codes=c.codes[kept]) for name, c in self.columns.items()},
        )


def condition_columns(constraints: Sequence[Constraint]) -> tuple[str, ...]:
    """Return the columns that constraints are within, each once."""
    conditions = (constraint.within for constraint in constraints)
    return tuple(dict.fromkeys(within.column for within in conditions if within is not None))


def read_conditions(
    names: Sequence[str], X: Any, control_features: Any, n_rows: int
) -> dict[str, Groups]:
    """Return the columns of conditions, from `control_features` where given, else from X."""
    if not names:
        return {}
    if control_features is not None:
        given = read_control_features(control_features, n_rows)
        return {name: given.strata(name) for name in names}
    if X is None:
        raise InputError(
            f"The request compares people within {names[0]!r}, and that column is not known here. "
            f"Pass it as control_features=data[{names[0]!r}], or among the columns of X.",
            parameter="control_features",
        )
    return {name: read_condition(X, name) for name in names}
