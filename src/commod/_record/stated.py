"""Records of stated constraints: further ones beside the first, and the strata of a condition."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class FurtherConstraint:
    """A constraint that a request states beside its first one.

    `constraints` is its name, with its condition; `bound` is a floor or a ceiling, None where none
    is stated.

    Examples
    --------
    >>> FurtherConstraint("minimum_rate within 'department'", 0.3).bound
    0.3
    """

    constraints: str
    bound: float | None


@dataclass(frozen=True)
class StratumGroup:
    """One group of a stratum: its people and, for each measure, the value before and after.

    A value is None where it is undefined.
    """

    name: str
    n: int
    before: tuple[float | None, ...]
    after: tuple[float | None, ...]


@dataclass(frozen=True)
class Stratum:
    """People who have one value of the column, and the metric among them.

    `groups` are those that are large enough to be compared.
    """

    name: str
    n: int
    before: float | None
    after: float | None
    groups: tuple[StratumGroup, ...]


@dataclass(frozen=True)
class StratumTable:
    """The strata that a conditional constraint compares, least fair after the update first.

    - `column`, `over`, `min_rows`: the condition.
    - `measures`: what is compared, in the order of the values of each group.
    - `n_strata` values occur. `n_compared` of them are compared, with `n_people` people.
    - `n_left_out` are not compared: too few rows of too few groups. They have `n_people_left_out`
      people.
    - `n_hidden` are compared, but not listed: with their figures, those of fewer than five people
      could be computed.
    """

    column: str
    over: str
    min_rows: int
    measures: tuple[str, ...]
    n_strata: int
    n_compared: int
    n_people: int
    n_left_out: int
    n_people_left_out: int
    n_hidden: int
    listed: tuple[Stratum, ...]
