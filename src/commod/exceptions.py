"""Errors and warnings. A message says what came, what was expected, and how to correct it."""

from __future__ import annotations

from commod._text.names import visible


class CommodError(Exception):
    """Base class of every error that commod raises on purpose.

    Its text shows codes for control characters: a name from a table cannot command a terminal.
    """

    def __str__(self) -> str:
        return visible(super().__str__(), keep="\n")


class InputError(CommodError, ValueError):
    """The caller passed something that cannot be used; the message says how to correct it.

    Parameters
    ----------
    *args : object
        The message.
    parameter : str, default=None
        Python name of the parameter that is wrong; None where several or none are to blame. The
        message names the same parameter. A part such as ``sensitive_features['sex']`` is stored as
        its parameter, and a text that is no Python name as None.

    Examples
    --------
    >>> from commod.metrics import p_rule
    >>> p_rule(None, [1, 0], sensitive_features=["a", None])
    Traceback (most recent call last):
    commod.exceptions.InputError: sensitive_features has 1 missing value in 2 rows. ...
    """

    def __init__(self, *args: object, parameter: str | None = None) -> None:
        super().__init__(*args)
        name = (parameter or "").partition("[")[0]
        self.parameter = name if name.isidentifier() else None


class InputTypeError(InputError, TypeError):
    """The caller passed an object of a type that commod does not read."""


class BaseModelError(InputError):
    """The base model cannot be updated: its classes or its scores do not fit."""


class DatasetError(CommodError, OSError):
    """A table is missing, cannot be downloaded, or differs from the expected table."""


class CommodWarning(UserWarning):
    """Base class of every warning that commod raises on purpose; its text is as an error's."""

    def __str__(self) -> str:
        return visible(super().__str__(), keep="\n")


class BaseModelWarning(CommodWarning):
    """The base model can be updated, but its owner should check something about it."""


class ScoreOrderWarning(BaseModelWarning):
    """Scores order the labels backwards; nothing was inverted, so figures may be of no use."""


class DataWarning(CommodWarning):
    """The rows can be used, but should be checked: for small groups or proxies, for example."""


class TrainingWarning(CommodWarning):
    """Training was interrupted, or collapsed to decisions that are all the same."""


class InterruptionWarning(TrainingWarning):
    """The user interrupted training; the update keeps what it had learned until then."""


class TargetWarning(CommodWarning):
    """The target was not reached or cannot be promised; the message states the values."""
