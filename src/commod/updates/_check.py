"""Refuse objects that are not updates, with one message everywhere."""

from __future__ import annotations

from typing import Any

from commod.exceptions import InputError
from commod.updates.base import BaseUpdate


def check_update(update: Any, caller: str, alternative: str = "") -> None:
    """Refuse an object that is not an update; `alternative` says what to call for other models.

    Examples
    --------
    >>> check_update(1, "stability")
    Traceback (most recent call last):
    commod.exceptions.InputError: stability takes a ControlledDebiaser, a COMMOD or one of
    commod.rivals; got int.
    """
    if not isinstance(update, BaseUpdate):
        raise InputError(
            f"{caller} takes a ControlledDebiaser, a COMMOD or one of commod.rivals; got "
            f"{type(update).__name__}. {alternative}".rstrip()
        )
