"""Decide what results may say about few people: the bars for values, categories and groups.

A value that few people share tells about these people. Its points, or its place in a rule, would
also rest on few people. So a category, "missing", a bin or a rule needs MIN_CATEGORY_SIZE people
wherever the library names one: scorecards, patches, rules, slices and rivals. Rows without weight
are nobody. `docs/decisions/0004-rare-categories.md` has the reasons.

The rates of a group with fewer than FEWEST_DESCRIBED people are not shown: they would reveal the
decision of a single person. If these people were in the totals, anybody could compute the hidden
figures: the total minus the groups that are shown. So they are in no total either. A fit and an
audit hide the same groups; otherwise the difference between their totals would reveal them. An
audit depends on the number of these people only, and on nothing else about them. The same holds for
people whose group is not known, where they are so few.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

MIN_CATEGORY_SIZE = 20  # people
FEWEST_DESCRIBED = 5  # people of a group

# People: a category that fewer share is small, and an audit checks what its points predict (CM306).
SMALL_CATEGORY = 100


def hidden_groups(sizes: NDArray[np.integer], is_compared: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return which groups are hidden, shape (n_groups,): too small to be compared or described.

    If all groups were hidden, nothing would be left to audit. Then none is, and the totals are
    those of all people.

    Examples
    --------
    >>> sizes = np.array([12, 7, 1])
    >>> hidden_groups(sizes, sizes >= 30).tolist(), hidden_groups(sizes[2:], sizes[2:] > 1).tolist()
    ([False, False, True], [False])
    """
    hidden = (sizes < FEWEST_DESCRIBED) & ~is_compared
    return np.zeros_like(hidden) if hidden.all() else hidden


def in_totals(
    codes: NDArray[np.integer], is_hidden: NDArray[np.bool_], n_unknown: int
) -> NDArray[np.bool_]:
    """Return which rows count in totals, shape (n,): neither hidden groups nor few unknown people.

    `codes` (n,) number the groups; −1 is an unknown one. `is_hidden` (n_groups,) comes from
    `hidden_groups`. `n_unknown` people have no known group; the rows may be counts of people.

    Examples
    --------
    >>> codes, is_hidden = np.array([0, 1, -1]), np.array([False, True])
    >>> in_totals(codes, is_hidden, 7).tolist(), in_totals(codes, is_hidden, 1).tolist()
    ([True, False, True], [True, False, False])
    """
    hides_unknown = 0 < n_unknown < FEWEST_DESCRIBED
    return np.asarray(~np.append(is_hidden, hides_unknown)[codes])  # −1 is the last entry
