"""Records of why decisions change: points, concepts and segments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = [
    "Card",
    "CardLine",
    "Concept",
    "Condition",
    "Direction",
    "Estimate",
    "Segment",
    "Segments",
]

Value = str | bool | int | float
Direction = Literal["gain", "loss"]


@dataclass(frozen=True)
class Estimate:
    """A figure and the ends of its interval; None where it is undefined or nothing is known."""

    value: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Condition:
    """One condition on a raw column: a range low ≤ x < high, or one of some values.

    `low` or `high` is None where a range is open; `values` is None for a range. `missing` says
    whether a missing value satisfies the condition. `negated`: none of `values` instead of one.
    """

    column: str
    low: float | None
    high: float | None
    values: tuple[Value, ...] | None
    missing: bool
    negated: bool
    text: str


@dataclass(frozen=True)
class Segment:
    """A readable rule that describes people whose decision changes in one direction.

    Of the `size` people with the base decision that can change in this direction and who satisfy
    all conditions, `n_changed` change: their share is `precision`. `coverage` is the share of all
    changes in this direction; `n_new` counts those that no earlier segment describes. A rule is
    right more often than wrong: what describes fewer of its own people describes nobody.
    """

    direction: Direction
    conditions: tuple[Condition, ...]
    text: str
    size: int
    n_changed: int
    n_new: int
    precision: Estimate
    coverage: float


@dataclass(frozen=True)
class Segments:
    """The few rules that describe the changed people, gains first, best first within each.

    `n_described_gains` of `n_gains` gains satisfy at least one rule for gains; so for losses.
    """

    segments: tuple[Segment, ...]
    n_rows: int
    n_gains: int
    n_losses: int
    n_described_gains: int
    n_described_losses: int


@dataclass(frozen=True)
class CardLine:
    """One line of a scorecard: the points a term adds to r (below 0 pushes towards a change).

    `unit` is "per unit" for a number, "" otherwise. `spread` is the standard deviation over the
    explained people of what the line adds to r, None where it was not measured. `concept` numbers
    the concept the line belongs to, None where several share it.
    """

    term: str
    column: str
    unit: str
    points: float
    spread: float | None
    concept: int | None


@dataclass(frozen=True)
class Concept:
    """One concept, told by what it does to *changing*: positive values push towards a change.

    `push` is what it adds to −r. It is active where that is above its mean on the fit rows;
    `change_if_active` and `change_if_inactive` are shares of the explained people who change.
    `lines` are its points on −r, strongest first.
    """

    number: int
    name: str
    contribution: float
    n_active: int
    n_inactive: int
    change_if_active: Estimate
    change_if_inactive: Estimate
    lines: tuple[CardLine, ...]


@dataclass(frozen=True)
class Card:
    """The total scorecard, r = intercept + points, beside the concepts it is split into."""

    intercept: float
    lines: tuple[CardLine, ...]
    concepts: tuple[Concept, ...]
