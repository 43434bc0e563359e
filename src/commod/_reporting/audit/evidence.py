"""All that was measured, from which checks and sentences are made."""

from __future__ import annotations

from dataclasses import dataclass

from commod._record import (
    Agreement,
    Calibration,
    ChangeSummary,
    Fairness,
    Group,
    Limit,
    Proxy,
    Quality,
    Request,
    Segments,
    SmallGroup,
    StabilitySummary,
    Subgroups,
)
from commod._reporting.audit.counts import Counts

__all__ = ["Evidence"]


@dataclass(frozen=True)
class Evidence:
    """Everything the questions are answered from."""

    rows: str
    n: int
    level: float
    request: Request
    counts: Counts
    compared: Counts
    names: tuple[str, ...]
    all_fairness: tuple[Fairness, ...]
    changes: ChangeSummary
    limit: Limit
    groups: tuple[Group, ...]
    quality: Quality | None
    agreement: Agreement | None
    calibration: Calibration | None
    proxies: tuple[Proxy, ...]
    small: tuple[SmallGroup, ...]
    subgroups: Subgroups
    segments: Segments | None
    stability: StabilitySummary | None
    unread: tuple[str, ...]
    reads_group: bool | None
    draws_lots: bool | None
    n_unlike: int | None  # decisions that are not what score > threshold says
    n_undecided: int = 0  # rows left out, having no decision
    has_rows: bool = True  # or counts and sums alone

    @property
    def fairness(self) -> Fairness:
        """Return the fairness that was asked for."""
        return self.all_fairness[0]

    @property
    def measured(self) -> str:
        """Return the level and the rows, for a sentence with an interval."""
        return f"{self.level * 100:g}% interval, {self.n:,} {self.rows}"

    @property
    def compared_on(self) -> str:
        """Return the same for a comparison of groups, which leaves small groups out."""
        left_out = self.n - self.compared.n
        rest = f" without {left_out:,} of groups too small" if left_out else ""
        return f"{self.level * 100:g}% interval, {self.compared.n:,} {self.rows}{rest}"
