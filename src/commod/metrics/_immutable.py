"""Make constraints values: they cannot be changed, and are neither true nor false."""

from __future__ import annotations

from typing import Any

from commod.exceptions import InputError


class Immutable:
    """Refuse every change of an attribute, and to be read as true or false."""

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(
            f"{type(self).__name__} cannot be changed, as others may use it. Make a new one."
        )

    def __bool__(self) -> bool:
        # `A and B` would be B alone
        raise InputError(
            "A constraint is neither true nor false. Join two of them with A & B, not with 'and'; "
            "is_met says whether decisions keep one.",
            parameter="constraints",
        )

    def __delattr__(self, name: str) -> None:
        self.__setattr__(name, None)
