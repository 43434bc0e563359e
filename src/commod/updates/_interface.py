"""Define what studies, explanations and displays may ask of an update.

Every update (`COMMOD`, `ControlledDebiaser`, every rival) has the methods of `BaseUpdate` under
"internal interface". They exchange the records of this file:

1. `_read_rows(X, sensitive_features)` reads new rows once and returns `ReadRows`.
2. `_decide_rows(rows)` returns decisions; `_evaluate_rows(rows)` returns a `RowEvaluation`.
3. `_sweep(rows, targets, grid)` fits several settings on the same rows and returns a `Sweep`.

The interface is internal: it may change without notice.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, fields
from numbers import Real
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from sklearn.utils import Tags

from commod._data.arrays import Floats, Mask
from commod._data.base_model import BaseScores
from commod._data.columns import Column
from commod._data.encoding import TermTable
from commod._data.parameters import check_number_parameter
from commod._record.audit import FurtherConstraint
from commod._text import shown
from commod.exceptions import InputError, InputTypeError
from commod.metrics._language import AllOf
from commod.scorecard import Scorecard

Grid = Mapping[str, Sequence[float]]  # values of parameters, to be combined
Decisions = Mask | Floats  # final decisions, or the probability of a positive one


class RawRows(NamedTuple):
    """X, true labels and sensitive features of some rows, as the user passed them."""

    X: Any
    y: Any
    sensitive_features: Any

    def by_name(self, suffix: str = "") -> dict[str, Any]:
        """Return what the user passed by the name of its parameter."""
        return {f"{name}{suffix}": values for name, values in self._asdict().items()}


class ReadRows:
    """Hold n rows as an update has read them; each kind of update adds what it needs to decide.

    `columns` are the columns that the update may use, `base` the base model's scores.
    """

    columns: list[Column]
    base: BaseScores

    @property
    def terms(self) -> TermTable | None:
        """Return the rows as terms of the update's ratio; None for an update without a ratio."""
        return None

    def parts(self, size: int) -> Iterable[Self]:
        """Yield all rows in order, about `size` at a time where the update allows that."""
        yield self


@dataclass(frozen=True)
class RowEvaluation:
    """What an update does to n rows; arrays of shape (n,).

    `after` are the final decisions (random draws are made), `scores` the edited scores. `raw_ratio`
    is the ratio as learned, `ratio` the one that acts; both are None without a ratio.
    """

    after: Mask
    scores: Floats
    ratio: Floats | None = None
    raw_ratio: Floats | None = None

    @classmethod
    def join(cls, parts: Sequence[RowEvaluation]) -> RowEvaluation:
        """Return one evaluation of the rows of all parts, in order.

        Examples
        --------
        >>> part = RowEvaluation(np.array([True]), np.array([0.7]))
        >>> RowEvaluation.join([part, part]).scores
        array([0.7, 0.7])
        """
        joined: dict[str, Any] = {}
        for field in fields(cls):
            arrays = [getattr(part, field.name) for part in parts]
            joined[field.name] = None if arrays[0] is None else np.concatenate(arrays)
        return cls(**joined)


class Candidate(Protocol):
    """One setting of a sweep. `settings` holds what sets it apart from the others."""

    @property
    def settings(self) -> dict[str, float]: ...

    def decide(self, rows: Any) -> Decisions:
        """Return the decisions on rows that the sweep's `reader` has read."""
        ...

    def build(self) -> Any:
        """Return the fitted update. It belongs to the caller: changing it changes nothing here."""
        ...

    def scorecard(self) -> Scorecard:
        """Return the points alone, which is cheaper than `build`."""
        ...


@dataclass(frozen=True)
class FittedCandidate:
    """A candidate that is fitted already."""

    settings: dict[str, float]
    update: Any

    def decide(self, rows: ReadRows) -> Decisions:
        """Return the decisions on rows that were read."""
        return self.update._decide_rows(rows)

    def build(self) -> Any:
        """Return a copy of the update, so that refitting the copy leaves the candidate alone."""
        return copy.copy(self.update)

    def scorecard(self) -> Scorecard:
        """Return the points of the update."""
        return self.update.scorecard_


@dataclass(frozen=True)
class Sweep:
    """The candidates of a sweep. `reader` is a fitted update that reads rows for all of them."""

    candidates: Sequence[Candidate]
    reader: Any


def read_numbers(name: str, values: Any) -> list[float] | None:
    """Return a non-empty list of numbers; None where `values` is None.

    Examples
    --------
    >>> read_numbers("targets", (1, 0.5))
    [1.0, 0.5]
    >>> read_numbers("targets", "high")
    Traceback (most recent call last):
    commod.exceptions.InputError: targets must be a list of numbers, such as [0.7, 0.8]; got 'high'.
    """
    if values is None:
        return None
    try:
        numbers = [float(check_number_parameter(value, name, Real)) for value in values]
    except TypeError:  # not a list, or a list of other things
        numbers = []
    if not numbers or isinstance(values, str):
        raise InputError(
            f"{name} must be a list of numbers, such as [0.7, 0.8]; got {shown(values)}.",
            parameter=name,
        )
    return numbers


def check_grid(grid: Any) -> None:
    """Raise InputError unless a grid is None or a mapping of names to lists of values."""
    is_mapping = grid is None or isinstance(grid, Mapping)
    lists = grid.values() if is_mapping and grid else ()
    if not is_mapping or not all(isinstance(v, Iterable) and not isinstance(v, str) for v in lists):
        raise InputTypeError(
            f"grid={shown(grid)} must map names of parameters to lists of values, such as "
            "{'strength': [0, 0.5, 1]}.",
            parameter="grid",
        )


def read_grid(grid: Grid | None, name: str, owner: str, hint: str = "") -> list[float] | None:
    """Return the values of the one parameter that a grid may hold; None without values.

    An empty `name` means that it may hold none.

    Examples
    --------
    >>> read_grid({"strength": [0, 1]}, "strength", "A rival")
    [0.0, 1.0]
    """
    check_grid(grid)
    unknown = [str(key) for key in grid or {} if key != name]
    if unknown:
        allowed = f"{owner}'s grid may hold {name}" if name else f"{owner} has no grid"
        raise InputError(
            f"{allowed}; got {', '.join(unknown)}. {hint}".strip(),
            parameter="grid",
        )
    return read_numbers(name, (grid or {}).get(name))


@dataclass(slots=True)
class UpdateTags(Tags):  # type: ignore[misc]
    """scikit-learn's tags, and what an update needs to learn and to decide.

    Attributes
    ----------
    needs_sensitive_features : bool
        Whether `predict` takes the sensitive features.
    randomised : bool
        Whether random draws decide some rows.
    needs_labels : bool
        Whether `fit` needs y for every constraint; an error-based constraint always needs it.
    needs_tree : bool
        Whether the base model must be a fitted decision tree.
    needs_network : bool
        Whether the method works on the layers of a neural network. They are the base model's layers
        where it is a network; otherwise the method trains a network of its own.
    needs_group_in_model : bool
        Whether the base model must read the group as a column of X.
    trained_anew : bool
        Whether a new model replaces the base model, so that even a small strength changes the
        decisions that retraining alone would change.
    """

    needs_sensitive_features: bool = False
    randomised: bool = False
    needs_labels: bool = False
    needs_tree: bool = False
    needs_network: bool = False
    needs_group_in_model: bool = False
    trained_anew: bool = False


def further_constraints(requirements: AllOf) -> tuple[FurtherConstraint, ...]:
    """Return all constraints but the first one, with their bounds, as records."""
    return tuple(
        FurtherConstraint(part.constraint.name, part.bound) for part in requirements.parts[1:]
    )


def check_no_bounds(asked: AllOf, method: str, parameter: str) -> None:
    """Refuse a bound: `method` has no target, and its `parameter` says how far it goes."""
    for part in asked.parts:
        if part.bound is not None:
            raise InputError(
                f"constraints states the bound of {part.text!r}, but {method} has no target: "
                f"{parameter} says how far it goes. Leave the bound out, or use "
                "ControlledDebiaser, which searches for the bound.",
                parameter="constraints",
            )


# ---------------------------------------------------------------------------------------------
# Show a progress bar on standard error that disappears when the work is done


_open_bars: list[str] = []  # a fit inside a study shows none: the bar of the study counts fits


@contextmanager
def progress_bar(
    label: str, show: bool | None, unit: str = "epochs"
) -> Iterator[Callable[[int, int], None] | None]:
    """Yield a function `report(done, total)`, or None where nothing is shown.

    `show=None` shows progress on a terminal only, and not inside another bar, shown or not.
    """
    if show is None:
        show = sys.stderr.isatty() and not _open_bars
    _open_bars.append(label)
    try:
        with _bar(label, unit) if show else nullcontext() as report:
            yield report
    finally:
        _open_bars.pop()


@contextmanager
def _bar(label: str, unit: str) -> Iterator[Callable[[int, int], None]]:
    """Yield a function that shows progress."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    if not (console.is_terminal or console.is_jupyter):  # a log file gets lines only
        yield lambda done, total: console.print(f"{label}: {done} of {total} {unit}")
        return
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task(label, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


# ---------------------------------------------------------------------------------------------
# Tell which step a fit is at


Listener = Callable[[str], None]
_listener: ContextVar[Listener | None] = ContextVar("commod_steps", default=None)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Let `listener` hear the steps of all fits of this thread inside the block.

    Examples
    --------
    >>> with listening(print):
    ...     tell("measuring the update")
    measuring the update
    >>> tell("nobody hears this")
    """
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def tell(step: str) -> None:
    """Tell the listener that a step begins."""
    listener = _listener.get()
    if listener is not None:
        listener(step)
