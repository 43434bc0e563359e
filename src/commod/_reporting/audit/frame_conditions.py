"""Count the people of a frame by the columns that constraints are within, inside its engine."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import narwhals as nw
import numpy as np

from commod._data.frames import fetch, numbers, objects
from commod._data.strata import read_stratum_column, refuse_missing
from commod._reporting.audit.condition_counts import ConditionCounts, condition_columns
from commod._reporting.audit.evidence import Evidence
from commod._reporting.audit.frame_columns import SCORES, is_group, select_roles
from commod._reporting.audit.frame_counts import MAX_CELLS, of_decided
from commod._reporting.audit.people import read_people
from commod._reporting.audit.stated import stated_constraints
from commod.exceptions import InputError


def count_conditions(
    frame: Any, roles: Mapping[str, Hashable], evidence: Evidence
) -> ConditionCounts | None:
    """Return the people by group, decisions and conditions; None where there is no condition.

    People of hidden groups are left out, as they are in `evidence`. `roles` are those of the other
    columns.
    """
    stated = [one.constraint for one in stated_constraints(evidence.request)]
    names = condition_columns(stated)
    if not names:
        return None
    keys = {role: column for role, column in roles.items() if role not in SCORES}
    within: dict[str, Hashable] = {f"within_{i}": name for i, name in enumerate(names)}
    selected = select_roles(frame, {**keys, **within})
    counted = of_decided(selected).group_by(*keys, *within).agg(nw.len().alias("n"))
    table = fetch(counted, MAX_CELLS)
    if table is None:
        raise InputError(
            f"The columns that constraints are within ({', '.join(names)}) make more than "
            f"{MAX_CELLS:,} combinations with groups and decisions. Put numbers into bins, or "
            "merge values.",
            parameter="request",
        )
    n = numbers(table, "n")
    for role, name in within.items():
        n_missing = int(n[[value is None for value in table[role]]].sum())
        refuse_missing(n_missing, int(n.sum()), f"Column {name!r}", "request")
    columns = {
        str(name): read_stratum_column(objects(table[role]), len(n), str(name), "request")
        for role, name in within.items()
    }
    groups = {roles[role]: objects(table[role]) for role in keys if is_group(role)}
    decisions = {role: table.get(role) for role in ("before", "after", "y_true")}
    # people of unknown groups were refused before, or they are in no comparison
    people = read_people(decisions, {}, groups, evidence.request, None, "ignore")
    lines = ConditionCounts.of_people(people, columns, n.astype(np.int64))
    return lines.shown(evidence.n_hidden, evidence.n_unknown_hidden)
