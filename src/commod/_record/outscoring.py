"""Record of how people whose decision changes score beside people whose decision stays."""

from __future__ import annotations

from dataclasses import dataclass

from commod._record.explanation import Direction, Estimate


@dataclass(frozen=True)
class GroupOutscoring:
    """The probability among the pairs of one group; see `Outscoring`.

    The probability is undefined with fewer than five people on one side.
    """

    name: str
    n_changed: int
    n_others: int
    probability: Estimate


@dataclass(frozen=True)
class Outscoring:
    """How the base scores of people who change compare with those of people who do not.

    A pair is a person who changes and another one with the same base decision who does not. Scores
    are those of the favourable label. `same_group` is the share of pairs of the same group in which
    a gainer has the higher score, or a loser the lower one; ties count half. Below 0.5, the update
    passes over people who are nearer to the other decision. `overall` is the share of all pairs.

    The `n_changed` and `n_others` people are those of the compared groups. `true_share_changed` and
    `true_share_others` are the shares of them whose true label is favourable, None without labels.

    Examples
    --------
    >>> half = Estimate(0.5, 0.4, 0.6)
    >>> Outscoring("gain", 20, 90, half, half, None, None, ()).n_changed
    20
    """

    change: Direction
    n_changed: int
    n_others: int
    same_group: Estimate
    overall: Estimate
    true_share_changed: Estimate | None
    true_share_others: Estimate | None
    groups: tuple[GroupOutscoring, ...]
