"""Errors and warnings. A message says what came, what was expected, and how to correct it."""

from __future__ import annotations

from commod._text import visible

__all__ = [
    *("BaseModelError", "CommodError", "DatasetError", "InputError"),
    *("BaseModelWarning", "CommodWarning", "DataWarning", "ScoreOrderWarning"),
    *("SeenRowsWarning", "TargetWarning", "TrainingWarning"),
]


class CommodError(Exception):
    """Base class of every error that commod raises on purpose.

    Its text shows codes for control characters: a name from a table cannot command a terminal.

    Examples
    --------
    >>> from commod.metrics import p_rule
    >>> try:
    ...     p_rule(None, [1, 0], sensitive_features=["a", None])
    ... except CommodError as error:
    ...     type(error).__name__, error.parameter
    ('InputError', 'sensitive_features')
    """

    def __str__(self) -> str:
        return visible(super().__str__(), keep="\n")


class InputError(CommodError, ValueError):
    """The caller passed something that cannot be used; the message says how to correct it.

    An object of a type that commod does not read is a `TypeError`, too.

    Parameters
    ----------
    *args : object
        The message.
    parameter : str, default=None
        Python name of the parameter that is wrong; None if several or none are to blame. The
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
        name = (parameter or "").partition("[")[0]
        self.parameter = name if name.isidentifier() else None


class InputTypeError(InputError, TypeError):
    """The caller passed an object of a type that commod does not read.

    Examples
    --------
    >>> from commod.constraints import parse_constraint
    >>> parse_constraint(3)
    Traceback (most recent call last):
    commod.exceptions.InputTypeError: text=3 must be text, such as 'demographic parity >= 0.8'.
    """


class BaseModelError(InputError):
    """The base model cannot be updated: its classes or its scores do not fit.

    Examples
    --------
    >>> from commod import ScoreColumn
    >>> from commod.datasets import make_biased
    >>> from commod.rivals import RejectOption
    >>> data = make_biased(400, random_state=0)
    >>> update = RejectOption(ScoreColumn("x0"))  # its values are not probabilities
    >>> update.fit(data.data, data.target, sensitive_features=data.sensitive_features)
    Traceback (most recent call last):
    commod.exceptions.BaseModelError: The base model ScoreColumn(column='x0') gave scores ...
    """


class DatasetError(CommodError, OSError):
    """A table is missing, cannot be downloaded, or differs from the expected table.

    Examples
    --------
    >>> from commod.datasets import fetch_law_school
    >>> fetch_law_school(data_home="no-such-folder", download_if_missing=False)
    Traceback (most recent call last):
    commod.exceptions.DatasetError: no-such-folder/law_school.csv does not exist ...
    """


class CommodWarning(UserWarning):
    """Base class of every warning that commod raises on purpose; its text is as an error's.

    Examples
    --------
    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", CommodWarning)  # no warning of commod goes unseen
    ...     warnings.warn("Group 'a' has 3 rows.", DataWarning)
    Traceback (most recent call last):
    commod.exceptions.DataWarning: Group 'a' has 3 rows.
    """

    def __str__(self) -> str:
        return visible(super().__str__(), keep="\n")


class BaseModelWarning(CommodWarning):
    """The base model can be updated, but its owner should check something about it.

    Examples
    --------
    >>> issubclass(ScoreOrderWarning, BaseModelWarning)
    True
    """


class ScoreOrderWarning(BaseModelWarning):
    """Scores order the labels backwards; nothing was inverted, so figures may be of no use.

    Examples
    --------
    >>> import warnings
    >>> from commod.datasets import make_biased
    >>> from commod.rivals import RejectOption
    >>> from sklearn.linear_model import LogisticRegression
    >>> data = make_biased(400, random_state=0)
    >>> update = RejectOption(LogisticRegression().fit(data.data, 1 - data.target))
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", ScoreOrderWarning)
    ...     update.fit(data.data, data.target, sensitive_features=data.sensitive_features)
    Traceback (most recent call last):
    commod.exceptions.ScoreOrderWarning: The scores order the labels backwards: ...
    """


class SeenRowsWarning(BaseModelWarning):
    """The fit rows look as if the base model has seen them; silence it if they are new to it.

    Examples
    --------
    >>> import warnings
    >>> from commod import ControlledDebiaser
    >>> from commod.datasets import make_biased
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> data = make_biased(400, random_state=0)
    >>> update = ControlledDebiaser(DecisionTreeClassifier().fit(data.data, data.target))
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", SeenRowsWarning)
    ...     update.fit(data.data, data.target, sensitive_features=data.sensitive_features)
    Traceback (most recent call last):
    commod.exceptions.SeenRowsWarning: The fit rows look like rows the base model was trained on ...
    """


class DataWarning(CommodWarning):
    """The rows can be used, but should be checked: for small groups or proxies, for example.

    Examples
    --------
    >>> import warnings
    >>> from commod.datasets import make_biased
    >>> from commod.rivals import RejectOption
    >>> from sklearn.linear_model import LogisticRegression
    >>> data = make_biased(400, random_state=0)
    >>> groups = data.sensitive_features.mask(data.data.index < 5, "g2")  # five people
    >>> update = RejectOption(LogisticRegression().fit(data.data, data.target))
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", DataWarning)
    ...     update.fit(data.data, data.target, sensitive_features=groups)
    Traceback (most recent call last):
    commod.exceptions.DataWarning: ...
    """


class TrainingWarning(CommodWarning):
    """Training was interrupted, or collapsed to decisions that are all the same.

    An interruption has its own kind, `InterruptionWarning`.

    Examples
    --------
    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", TrainingWarning)  # a fit that collapsed is an error
    ...     warnings.warn("All decisions are the same.", TrainingWarning)
    Traceback (most recent call last):
    commod.exceptions.TrainingWarning: All decisions are the same.
    """


class InterruptionWarning(TrainingWarning):
    """The user interrupted training; the update keeps what it had learned until then.

    Examples
    --------
    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", InterruptionWarning)  # other warnings are still shown
    ...     warnings.warn("Training was interrupted.", InterruptionWarning)
    """


class TargetWarning(CommodWarning):
    """The target was not reached or cannot be promised; the message states the values.

    Examples
    --------
    >>> import warnings
    >>> from commod import ControlledDebiaser
    >>> from commod.datasets import make_biased
    >>> from sklearn.linear_model import LogisticRegression
    >>> data = make_biased(400, random_state=0)
    >>> model = LogisticRegression().fit(data.data, data.target)
    >>> update = ControlledDebiaser(
    ...     model, target=0.9, max_changes=0.01, target_on="fit_rows", borderline=0)
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", TargetWarning)
    ...     update.fit(data.data, data.target, sensitive_features=data.sensitive_features)
    Traceback (most recent call last):
    commod.exceptions.TargetWarning: The target was not reached on the fit rows; ...
    """
