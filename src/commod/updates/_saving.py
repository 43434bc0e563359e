"""Save an update without the names of groups: a file counts the groups that were left out."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, Self

from commod._record import LeftOutGroup
from commod.updates._status import GroupText, count_groups, without_names


class SavedWithoutNames:
    """Let pickle, joblib and skops store counts where the update in memory names groups."""

    status_: str
    groups_left_out_: tuple[LeftOutGroup, ...]
    _group_texts: tuple[GroupText, ...] = ()

    def __getstate__(self) -> Any:
        """Return what a file may hold."""
        state: Any = super().__getstate__()
        if "groups_left_out_" not in self.__dict__:
            return state
        return {
            **state,
            "status_": self._status_without_names(),
            "groups_left_out_": without_names(self.groups_left_out_),
            "_group_texts": (),
        }

    def __copy__(self) -> Self:
        return self._with_attributes(self.__dict__)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self._with_attributes(copy.deepcopy(self.__dict__, memo))

    def _with_attributes(self, attributes: Mapping[str, Any]) -> Self:
        """Return a copy in memory; unlike a saved update, it keeps the names of groups."""
        copied = type(self).__new__(type(self))
        copied.__dict__.update(attributes)
        return copied

    def _status_without_names(self) -> str:
        """Return `status_` with counts of groups in the place of their names and rates."""
        return count_groups(self.status_, self._group_texts)
