"""Read what the fit of an update expects of it on new people."""

from __future__ import annotations

from typing import Any

from commod._data.codes import plain
from commod._record import ExpectedOnNewPeople


def expected_of(update: Any) -> ExpectedOnNewPeople | None:
    """Return the figures that are expected on new people; None where the update has none.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> expected_of(SimpleNamespace(expected_fairness_=float("nan"))) is None
    True
    """
    fairness = plain(getattr(update, "expected_fairness_", None))
    if fairness is None:
        return None
    # Updates that an earlier version stored have no interval.
    low, high = map(plain, getattr(update, "expected_interval_", (None, None)))
    return ExpectedOnNewPeople(
        fairness=fairness,
        change_rate=float(update.expected_change_rate_),
        accuracy=plain(update.expected_accuracy_),
        low=low,
        high=high,
    )
