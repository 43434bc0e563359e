"""Count the first screen of a report for one update after another, on people read once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commod._data.groups import Groups
from commod._record import Audit, ExpectedOnNewPeople, Provenance, Request, Subgroups
from commod._reporting.audit.assembly import figures_of_first_screen
from commod._reporting.audit.evidence import Evidence
from commod._reporting.audit.people import AuditedPeople, read_people
from commod._reporting.audit.rates import fairness_of_stated
from commod._reporting.audit.request import add_label_names
from commod._reporting.audit.stated import (
    ShownPeople,
    condition_columns,
    count_conditions,
    read_conditions,
    stated_constraints,
    without_hidden,
)

LEVEL = 0.95  # of all intervals
MIN_SUBGROUP_SIZE = 100  # as in `audit`; the first screen has no subgroups
NO_PROVENANCE = Provenance(
    "", {}, None, {}, None, None, "", "", None
)  # reading versions takes time


@dataclass(frozen=True)
class FirstScreen:
    """People who were read once, for the figures of several updates of the same base model.

    Groups that are too small to be shown are in no figure, as in `audit`. `conditions` are the
    columns that constraints are within.
    """

    everybody: AuditedPeople
    shown: ShownPeople
    request: Request
    rows: str
    min_group_size: int
    conditions: Mapping[str, Groups]

    @classmethod
    def read(
        cls,
        y_before: Any,
        y_true: Any,
        sensitive_features: Any,
        X: Any,
        request: Request,
        *,
        rows: str,
        min_group_size: int,
        unknown_groups: str = "error",
        label_names: Mapping[Any, str] | None = None,
    ) -> FirstScreen:
        """Return the people with their decisions before the update, their groups and labels."""
        labels = {"y_before": y_before, "y_after": y_before, "y_true": y_true}
        people = read_people(labels, {}, sensitive_features, request, None, unknown_groups)
        within = condition_columns([one.constraint for one in stated_constraints(request)])
        conditions = read_conditions(within, X, None, len(people))
        shown = without_hidden(people, min_group_size)
        named = add_label_names(request, people.coding, label_names)
        return cls(people, shown, named, rows, min_group_size, conditions)

    def audit(self, after: NDArray[np.bool_], expected: ExpectedOnNewPeople | None) -> Audit:
        """Return an audit that has the figures of the first screen and no others.

        `after` (n,) says who has the positive decision.
        """
        evidence = self._evidence(after, expected)
        return Audit(
            **figures_of_first_screen(evidence),
            title="What the update changes",
            agreement=None,
            calibration=None,
            proxies=(),
            subgroups=Subgroups(0, 0, 0, MIN_SUBGROUP_SIZE, LEVEL, ()),
            segments=None,
            card=None,
            stability=None,
            checks=(),
            not_known=(),
            provenance=NO_PROVENANCE,
        )

    def _evidence(self, after: NDArray[np.bool_], expected: ExpectedOnNewPeople | None) -> Evidence:
        everybody = replace(self.everybody, after=after)
        shown = self.shown
        people = replace(shown.people, after=after if shown.is_complete else after[shown.is_shown])
        evidence = Evidence(
            **replace(shown, people=people).figures(),
            request=self.request,
            rows=self.rows,
            level=LEVEL,
            min_group_size=self.min_group_size,
            min_subgroup_size=MIN_SUBGROUP_SIZE,
            conditions=count_conditions(everybody, self.conditions, shown),
            expected=expected,
        )
        # Intervals of metrics that nobody asked for would take most of the time.
        evidence.__dict__["fairness_metrics"] = fairness_of_stated(
            evidence.compared,
            evidence.stated,
            evidence.compared_names,
            evidence.outcome,
            evidence.other_outcome,
            LEVEL,
        )
        return evidence
