"""The few error and warning types; a message says what came, what was expected, the way out."""

from __future__ import annotations


class CommodError(Exception):
    """Base class of every error that commod raises on purpose."""


class InputError(CommodError, ValueError):
    """What the caller passed cannot be used; the message says how to mend it.

    Examples
    --------
    >>> from commod.metrics import p_rule
    >>> p_rule(None, [1, 0], sensitive_features=["a", None])
    Traceback (most recent call last):
    commod.exceptions.InputError: sensitive_features has 1 missing value in 2 rows. ...
    """


class InputTypeError(InputError, TypeError):
    """The caller passed an object of a kind that commod does not read."""


class BaseModelError(InputError):
    """The model to update cannot be used: its classes or its scores do not fit."""


class DatasetError(CommodError, OSError):
    """A table is missing, cannot be fetched, or is not the table it should be."""


class CommodWarning(UserWarning):
    """Base class of every warning that commod raises on purpose."""


class BaseModelWarning(CommodWarning):
    """The base model can be updated, but something about it deserves a look."""


class DataWarning(CommodWarning):
    """The rows can be used, but something about them deserves a look: small groups, proxies."""


class TrainingWarning(CommodWarning):
    """Training ended in a state the user should know about: interrupted, or collapsed."""


class InterruptionWarning(TrainingWarning):
    """Training was interrupted by the user; what was learned until then was kept."""


class TargetWarning(CommodWarning):
    """The stated fairness was not reached or cannot be promised; the message has the numbers."""
