"""Name the successor of each parameter and value that an earlier version had."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from commod.exceptions import InputError, InputTypeError

P = ParamSpec("P")
Owner = TypeVar("Owner")

IN_TRAINING = (
    *("hidden", "batch_size", "learning_rate", "adversary_hidden", "adversary_steps"),
    *("adversary_learning_rate", "adaptive_fairness", "warmup_epochs", "ramp_epochs", "init"),
    *("concepts_by_column", "reads_score", "progress"),
)
SUCCESSORS = {  # by class and parameter
    "COMMOD": {
        **{name: f"Pass training={{{name!r}: ...}}." for name in IN_TRAINING},
        "condition_on_logit": "Pass training={'reads_score': ...}.",
    },
    "ControlledDebiaser": {
        "numeric": "Pass points='per unit' or 'per bin'.",
        "fit_rows_are_new": "If the fit rows are new to the base model, silence a "
        "commod.exceptions.SeenRowsWarning.",
        "reads_score": "Pass borderline=0 for the fewest changes, wherever people score.",
        "sparsity": "Pass max_lines for a shorter scorecard.",
        "accuracy_weight": "Pass borderline, and y to fit: the most accurate update is taken.",
        "n_concepts": "The scorecard has two concepts. Pass n_concepts to commod.explain for more.",
        "sample": "Leave it out: points come from all rows, or from a million of them.",
        "random_state": "Leave it out: no step is random.",
        "progress": "Leave it out: a fit takes moments.",
    },
}
REMOVED_VALUES = {"points": {"free": "Pass 'auto', 'per unit' or 'per bin'."}}  # by parameter


def successor_of(estimator: str, name: str) -> str:
    """Return what replaces a removed parameter of an estimator; empty if it had none of this name.

    Examples
    --------
    >>> successor_of("COMMOD", "ramp_epochs")
    "Pass training={'ramp_epochs': ...}."
    >>> successor_of("COMMOD", "epochs")
    ''
    """
    return SUCCESSORS.get(estimator, {}).get(name, "")


def refuse_removed(estimators: Iterable[type], names: Iterable[str]) -> None:
    """Raise InputError for the first name that is a removed parameter of one of the classes."""
    for estimator in estimators:
        for name in names:
            if successor := successor_of(estimator.__name__, name):
                text = f"{estimator.__name__} has no parameter {name!r} since version 0.3."
                raise InputTypeError(f"{text} {successor}", parameter=name)


def refuse_removed_value(name: str, value: object) -> None:
    """Raise InputError for a value that a parameter took in an earlier version."""
    successors = REMOVED_VALUES.get(name, {})
    if isinstance(value, str) and value in successors:
        text = f"{name}={value!r} is not known since version 0.3. {successors[value]}"
        raise InputError(text, parameter=name)


def naming_successors(
    init: Callable[Concatenate[Owner, P], None],
) -> Callable[Concatenate[Owner, P], None]:
    """Let a constructor refuse removed parameters with a sentence that names their successors."""

    @wraps(init)
    def checked(self: Owner, /, *args: P.args, **params: P.kwargs) -> None:
        refuse_removed(type(self).__mro__, params)
        init(self, *args, **params)

    return checked
