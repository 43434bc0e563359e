"""Records of edits by hand: what was changed on a scorecard, when, by whom, and what it did."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, cast

from commod._record.explanation import Value
from commod._record.plain import from_plain, to_plain
from commod._text import list_names, plain

OffsetRule = Literal["target", "keep"]
MAX_NOTE = 2_000  # characters of a note


class Edit:
    """One edit of a scorecard, as data.

    Examples
    --------
    >>> Edit.from_dict({"edit": "round", "step": 0.5})
    Round(step=0.5, edit='round')
    """

    def to_dict(self) -> dict[str, Any]:
        """Return the edit as plain Python, ready for JSON."""
        return dict(to_plain(self))

    @staticmethod
    def from_dict(data: dict[str, Any]) -> AnyEdit:
        """Return the edit that `to_dict` wrote."""
        return from_plain(cast(Any, AnyEdit), data, "edit")


@dataclass(frozen=True)
class SetPoints(Edit):
    """Set the points of one term of the scorecard.

    Examples
    --------
    >>> SetPoints("town = Paris", 0.5).to_dict()
    {'name': 'town = Paris', 'points': 0.5, 'edit': 'set'}
    """

    name: str
    points: float
    edit: Literal["set"] = "set"


@dataclass(frozen=True)
class Drop(Edit):
    """Set the points of a term, or of all terms of a column, to 0.

    Examples
    --------
    >>> Drop("age").edit
    'drop'
    """

    name: str
    edit: Literal["drop"] = "drop"


@dataclass(frozen=True)
class Lock(Edit):
    """Take a column out of the scorecard; later fits must not read it either.

    Examples
    --------
    >>> Lock("age").edit
    'lock'
    """

    name: str
    edit: Literal["lock"] = "lock"


@dataclass(frozen=True)
class Cap(Edit):
    """Keep points between `low` and `high`: those of a term, of a column, or of all terms (None).

    Examples
    --------
    >>> Cap(-2, 2, "town").name
    'town'
    """

    low: float
    high: float
    name: str | None = None
    edit: Literal["cap"] = "cap"


@dataclass(frozen=True)
class Round(Edit):
    """Round all points to multiples of `step`, half-way ones to even multiples.

    Examples
    --------
    >>> Round(0.5).step
    0.5
    """

    step: float
    edit: Literal["round"] = "round"


@dataclass(frozen=True)
class Merge(Edit):
    """Give several categories, or bins, of a column the same points.

    `values` are categories (None is "missing"), or names of terms. `points` None: the mean of the
    present points, weighted by people.

    Examples
    --------
    >>> Merge("town", ("Paris", "Lyon")).points is None
    True
    """

    column: str
    values: tuple[Value | None, ...]
    points: float | None = None
    edit: Literal["merge"] = "merge"


AnyEdit = SetPoints | Drop | Lock | Cap | Round | Merge


@dataclass(frozen=True)
class EditFigures:
    """The figures of an update before or after an edit; None for an unknown one.

    Examples
    --------
    >>> figures = EditFigures(fairness=0.8, change_rate=0.05, n_gains=9, n_losses=1, reached=True)
    >>> figures.fairness, figures.reached
    (0.8, True)
    """

    fairness: float | None
    change_rate: float | None
    n_gains: float | None
    n_losses: float | None
    reached: bool | None


@dataclass(frozen=True)
class EditRecord:
    """One step of the history: what was edited, when, by whom, and the figures around it.

    - `when`: the time in UTC, as ISO 8601 writes it.
    - `by`, `note`: texts that the user gave; None if not given.
    - `offset`: whether the offset was moved for the "target", or is as it was ("keep").
    - `refit`: whether all other terms were fitted again; `pinned` are the terms that the user
      pinned beside the edited ones.

    Examples
    --------
    >>> unknown = EditFigures(None, None, None, None, None)
    >>> record = EditRecord(
    ...     when="2026-01-02T03:04:05Z", by="A. Lee", note=None, edits=(Drop("age"),),
    ...     offset="keep", refit=False, pinned=(), before=unknown, after=unknown,
    ... )
    >>> EditRecord.from_dict(record.to_dict()) == record
    True
    """

    when: str
    by: str | None
    note: str | None
    edits: tuple[AnyEdit, ...]
    offset: OffsetRule
    refit: bool
    pinned: tuple[str, ...]
    before: EditFigures
    after: EditFigures

    def to_dict(self) -> dict[str, Any]:
        """Return the record as plain Python, ready for JSON."""
        return dict(to_plain(self))

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> EditRecord:
        """Return the record that `to_dict` wrote."""
        return from_plain(cls, data)


def edit_words(edit: AnyEdit) -> str:
    """Return an edit in words, without its subject.

    Examples
    --------
    >>> edit_words(SetPoints("town = Paris", 0.5)), edit_words(Cap(-2, 2))
    ('set the points of town = Paris to +0.5', 'cap all terms between -2 and +2')
    """
    if isinstance(edit, SetPoints):
        return f"set the points of {plain(edit.name)} to {_exact(edit.points)}"
    if isinstance(edit, Drop | Lock):
        return f"{edit.edit} {plain(edit.name)}"
    if isinstance(edit, Cap):
        name = "all terms" if edit.name is None else plain(edit.name)
        return f"cap {name} between {_exact(edit.low)} and {_exact(edit.high)}"
    if isinstance(edit, Round):
        return f"round all points to multiples of {edit.step:g}"
    values = list_names([plain(value) for value in edit.values])
    to = "their mean" if edit.points is None else _exact(edit.points)
    return f"merge {values} of {plain(edit.column)} at {to}"


def record_words(record: EditRecord, *, with_origin: bool = True) -> str:
    """Return one step of the history in words: what, and the cut; also when, by whom and why."""
    by = "" if record.by is None else f" by {plain(record.by)}"
    what = [edit_words(edit) for edit in record.edits]
    what += [f"pin {list_names([plain(name) for name in record.pinned])}"] if record.pinned else []
    what += ["refit the other terms"] if record.refit else []
    offset = "the cut was kept" if record.offset == "keep" else "new cut for the target"
    words = ", ".join([*what, offset])
    if not with_origin:
        return words
    note = "" if record.note is None else f" ({plain(record.note)})"
    return f"{plain(record.when)}{by}: {words}{note}"


def _exact(points: float) -> str:
    """Return points with all digits that a user is likely to have typed; 0 has no sign."""
    return f"{points:+.12g}" if points else "0"
