"""Records of a trade-off: updates along a frontier, each with its segments and points."""

from __future__ import annotations

from dataclasses import dataclass, field

from commod._record.explanation import Card, Estimate, Segments
from commod._record.plain import ADDED_LATER


@dataclass(frozen=True)
class Step:
    """One update of a frontier; no other update on it is as fair with fewer changes.

    `limit` is the fewest changes, as a share of the rows, that reach the same fairness in the same
    directions. A randomised update has expected counts, with fractions, and no segments. `card` is
    None for an update that is not a scorecard. `outscoring` is the share of pairs of the same group
    in which a person who gains has a higher base score than one who stays rejected;
    `outscoring_losses` that in which a person who loses has a lower one than one who does not.
    Expected figures are those on as many new people as were fitted; None where not known.
    `blind_limit` estimates the share of changes that the same fairness needs without reading the
    group; None where it was not estimated, or is out of reach.
    """

    target: float | None
    fairness: float
    accuracy: float | None
    change_rate: float
    n_changes: float
    n_gains: float
    n_losses: float
    limit: float | None
    settings: dict[str, float | str | None]
    segments: Segments | None
    card: Card | None
    outscoring: float | None = field(default=None, metadata=ADDED_LATER)
    outscoring_losses: float | None = field(default=None, metadata=ADDED_LATER)
    expected_fairness: float | None = field(default=None, metadata=ADDED_LATER)
    expected_change_rate: float | None = field(default=None, metadata=ADDED_LATER)
    expected_accuracy: float | None = field(default=None, metadata=ADDED_LATER)
    blind_limit: Estimate | None = field(default=None, metadata=ADDED_LATER)


@dataclass(frozen=True)
class TradeOff:
    """The efficient updates of a frontier, ordered from the base model's fairness to the fairest.

    `higher_is_fairer` says whether higher values of `metric` are fairer.
    """

    constraints: str
    metric: str
    method: str
    rows: str
    n_rows: int
    base_fairness: float | None
    base_accuracy: float | None
    steps: tuple[Step, ...]
    higher_is_fairer: bool = field(default=True, metadata=ADDED_LATER)
