"""Measure updates on lines of counts: an update is how many people of each line it changes."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commod._data.codes import plain
from commod._data.disclosure import FEWEST_DESCRIBED, in_totals
from commod._study.evaluation import ANY_CHANGE, EVERYBODY, EvaluationRows
from commod._text import label_text
from commod.updates._fit_rows import FitRows
from commod.updates._interface import AllowedChanges


class EvaluationCounts(EvaluationRows):
    """Rows that stand for many people, of whom an update may change some.

    An update comes as the number of people of each row whose decision it changes, shape (n,).
    """

    def measure(
        self, after: NDArray[Any], allowed: AllowedChanges = ANY_CHANGE
    ) -> dict[str, float]:
        """Return the figures of an update that changes `after` people; see `EvaluationRows`."""
        n_rows = len(self.before)
        twice = np.tile(np.arange(n_rows), 2)
        assert self.people is not None
        is_all = isinstance(self.in_totals, slice)
        split = EvaluationRows(
            **{
                **{each.name: getattr(self, each.name) for each in fields(self)},
                "before": self.before[twice],
                "label": None if self.label is None else self.label[twice],
                "group": self.group[twice],
                "in_totals": EVERYBODY if is_all else self.in_totals[twice],  # type: ignore[index]
                "strata": {one: strata.take(twice) for one, strata in self.strata.items()},
                "people": np.concatenate([self.people - after, after.astype(np.float64)]),
            }
        )
        return split.measure(split.before ^ (np.arange(2 * n_rows) >= n_rows), allowed)


def counted_rows(update: Any, rows: FitRows) -> EvaluationCounts:
    """Return lines of counts as rows to measure on; scores of single people are not known."""
    group, n_groups = rows.large_groups
    sizes = np.bincount(rows.groups.codes, rows.each, minlength=len(rows.groups.labels))
    is_hidden = ~rows.is_large_group & (sizes < FEWEST_DESCRIBED)
    counted = in_totals(rows.groups.codes, is_hidden, 0)
    return EvaluationCounts(
        constraints=update.stated().constraints[0],
        before=rows.base.decisions,
        label=rows.label,
        group=group,
        n_groups=n_groups,
        gain_raises=bool(update.favorable_label_ == update.pos_label_),
        n_groups_left_out=int((~rows.is_large_group).sum()),
        in_totals=EVERYBODY if counted.all() else counted,
        outcome=label_text(None, plain(update.pos_label_)),
        standing=update.standing(),
        strata=rows.strata,
        people=np.rint(rows.each),
    )
