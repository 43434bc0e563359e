"""Record of a group that is left out of the constraint because it has too few rows."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class LeftOutGroup:
    """A group with fewer than `min_group_size` rows: nothing is reached or promised for it.

    `n` is the number of its rows among those that `fit` got. `rate_before` and `rate_after` are
    the shares of these rows with `pos_label`, from the base model and from the update. They are
    None for a group of fewer than five people, whose rate would reveal one person's decision. A
    saved update keeps `n` alone: `name` is empty and the rates are None.

    Examples
    --------
    >>> LeftOutGroup("widowed", 25, 0.0, 0.04).n
    25
    """

    name: str
    n: int
    rate_before: float | None
    rate_after: float | None
