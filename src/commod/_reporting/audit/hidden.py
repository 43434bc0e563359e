"""Leave people in very small groups out of every figure, so that no figure tells about them.

The rates of a group with fewer than five people are not shown: they would reveal the decision of a
single person. If these people were in the totals, anybody could compute the hidden figures: the
total minus the groups that are shown. So they are in no total either. The audit depends on the
number of these people only, and on nothing else about them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from commod._data.groups import FEWEST_DESCRIBED


def hidden_groups(sizes: NDArray[np.int64], min_group_size: int) -> NDArray[np.bool_]:
    """Return which groups are hidden, shape (n_groups,): too small to be compared or described.

    If all groups were hidden, nothing would be left to audit. Then none is, and the totals are
    those of all people.

    Examples
    --------
    >>> hidden_groups(np.array([12, 7, 1]), 30).tolist(), hidden_groups(np.array([1]), 30).tolist()
    ([False, False, True], [False])
    """
    hidden = (sizes < FEWEST_DESCRIBED) & (sizes < min_group_size)
    return np.zeros_like(hidden) if hidden.all() else hidden
