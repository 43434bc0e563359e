"""Records of the trade-off: the updates along a frontier, each with its segments and points."""

from __future__ import annotations

from dataclasses import dataclass

from commod._record.explanation import Card, Segments

__all__ = ["Step", "TradeOff"]


@dataclass(frozen=True)
class Step:
    """One update of a frontier: no other of it is as fair with fewer changes.

    `limit` is the fewest changes, as a share of the rows, that reach the same fairness in the same
    directions. Counts are expected ones, with fractions, where an update draws lots; it has no
    segments then, and no card where it is no scorecard.
    """

    target: float | None
    fairness: float
    accuracy: float | None
    change_rate: float
    n_changes: float
    n_gains: float
    n_losses: float
    limit: float | None
    settings: dict[str, float | None]
    segments: Segments | None
    card: Card | None


@dataclass(frozen=True)
class TradeOff:
    """The efficient updates of a frontier, from the base model's fairness towards parity."""

    constraints: str
    metric: str
    method: str
    rows: str
    n_rows: int
    base_fairness: float | None
    base_accuracy: float | None
    steps: tuple[Step, ...]
