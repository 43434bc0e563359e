"""Edit the points of a scorecard by hand: edits as plain data, and what they do to points.

`update.edit(edits, X, y, sensitive_features=...)` takes a mapping, an edit, or a list of these:

- ``{"town = Paris": 0.5}`` sets the points of a term, named as in the scorecard.
- ``{"town = Paris": "drop", "age": "drop"}`` sets a term, or all terms of a column, to 0.
- ``{"age": "lock"}`` takes a column out; later fits of the update must not read it either.
- ``{"town": Cap(-2, 2)}`` or ``{"town": {"cap": 2}}`` limits points; ``Cap(-2, 2)`` limits all.
- ``Round(0.5)`` rounds all points to a grid.
- ``Merge("town", ["Paris", "Lyon"])`` gives categories the same points.

Edits are applied in the order given.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from commod._data.arrays import Floats, Mask
from commod._data.columns import check_text
from commod._data.encoding import CategoryTerms, Encoding
from commod._record.edits import (
    AnyEdit,
    Cap,
    Drop,
    Edit,
    Lock,
    Merge,
    Round,
    SetPoints,
)
from commod._record.edits import EditFigures as EditFigures
from commod._record.edits import EditRecord as EditRecord
from commod._text import did_you_mean, list_names, n_of, shown
from commod.exceptions import InputError

__all__ = [
    "Cap",
    "Drop",
    "Lock",
    "Merge",
    "Round",
    "SetPoints",
]

LARGEST_POINTS = 1e9  # beyond it, sums of points lose the digits of the others
SMALLEST_STEP = 1e-9  # of a grid: points over a smaller step lose digits, or are infinite
ROUND_DIGITS = 12  # of a rounded number of points: 3 · 0.1 is 0.3


class EditedPoints(NamedTuple):
    """Points (d,) after edits, and two masks (d,): terms that were edited, and locked terms.

    Examples
    --------
    >>> from commod._data.encoding import CategoryTerms, Encoding
    >>> terms = Encoding((CategoryTerms("town", ("Lyon", "Nice")),))
    >>> edited = apply_edits(terms, np.array([1.0, 2.0]), [Drop("town = Nice")], np.array([3, 4]))
    >>> edited.points.tolist(), edited.is_edited.tolist(), edited.is_locked.tolist()
    ([1.0, 0.0], [False, True], [False, False])
    """

    points: Floats
    is_edited: Mask
    is_locked: Mask


# ---------------------------------------------------------------------------------------------
# Reading


def read_edits(edits: Any) -> tuple[AnyEdit, ...]:
    """Return edits as records, in order; refuse what is no edit.

    Examples
    --------
    >>> read_edits([{"town = Paris": 1, "age": "lock"}, Round(0.5)])
    (SetPoints(name='town = Paris', points=1.0, edit='set'), Lock(name='age', edit='lock'), \
Round(step=0.5, edit='round'))
    """
    return tuple(map(_checked, _flat(edits)))


def _flat(edits: Any) -> Iterator[AnyEdit]:
    if isinstance(edits, AnyEdit):
        yield edits
    elif isinstance(edits, Mapping):
        if isinstance(edits.get("edit"), str) and edits["edit"] in _KINDS:
            yield Edit.from_dict(dict(edits))
            return
        for name, value in edits.items():
            yield _named_edit(name, value)
    elif isinstance(edits, Sequence) and not isinstance(edits, str | bytes):
        for one in edits:
            yield from _flat(one)
    else:
        raise InputError(
            f"edits={shown(edits)} is no edit. Pass a mapping such as {{'age': 'drop'}}, one of "
            "the edits of commod.edit, or a list of these.",
            parameter="edits",
        )


_KINDS = ("set", "drop", "lock", "cap", "round", "merge")


def _named_edit(name: Any, value: Any) -> AnyEdit:
    """Return the edit that an entry of a mapping states."""
    if not isinstance(name, str):
        raise InputError(
            f"edits names a term or a column by text; got {shown(name)}. The scorecard's rows() "
            "lists the names.",
            parameter="edits",
        )
    if isinstance(value, str) and value == "drop":
        return Drop(name)
    if isinstance(value, str) and value == "lock":
        return Lock(name)
    if isinstance(value, Cap) and value.name in (None, name):
        return Cap(value.low, value.high, name)
    if isinstance(value, Mapping) and list(value) == ["cap"]:
        cap = value["cap"]
        if isinstance(cap, tuple | list) and len(cap) == 2:
            return Cap(cap[0], cap[1], name)
        return Cap(-cap if _is_number(cap) else cap, cap, name)
    if _is_number(value):
        return SetPoints(name, value)
    raise InputError(
        f"edits={{{shown(name)}: {shown(value)}}}: expected a number of points, 'drop', 'lock', "
        "Cap(low, high) or {'cap': 2}.",
        parameter="edits",
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool | np.bool_)


def _checked(edit: AnyEdit) -> AnyEdit:
    """Return an edit with plain numbers; refuse numbers and names that cannot be used."""
    if isinstance(edit, SetPoints):
        return SetPoints(_text(edit.name), _number(edit.points, "points"))
    if isinstance(edit, Drop | Lock):
        return type(edit)(_text(edit.name))
    if isinstance(edit, Cap):
        low, high = _number(edit.low, "low"), _number(edit.high, "high")
        if low > high:
            raise InputError(f"Cap({low:g}, {high:g}): low is above high.", parameter="edits")
        return Cap(low, high, None if edit.name is None else _text(edit.name))
    if isinstance(edit, Round):
        step = _number(edit.step, "step")
        if step < SMALLEST_STEP:
            raise InputError(
                f"Round({step:g}): step must be at least {SMALLEST_STEP:g}.", parameter="edits"
            )
        return Round(step)
    points = None if edit.points is None else _number(edit.points, "points")
    values: Any = edit.values
    if isinstance(values, str) or not isinstance(values, Sequence):
        raise InputError(
            f"Merge({edit.column!r}, {shown(values)}): values must be a list of categories.",
            parameter="edits",
        )
    return Merge(_text(edit.column), tuple(map(_plain, values)), points)


def _text(name: Any) -> str:
    if not isinstance(name, str):
        message = f"edits names terms and columns by text; got {shown(name)}."
        raise InputError(message, parameter="edits")
    check_text([name], "edits", "edits")
    return name


def _number(value: Any, name: str) -> float:
    if not _is_number(value) or not abs(value) <= LARGEST_POINTS:
        raise InputError(
            f"edits has {name}={shown(value)}; expected a number between -{LARGEST_POINTS:g} and "
            f"{LARGEST_POINTS:g}.",
            parameter="edits",
        )
    return float(value) + 0.0  # -0.0 becomes 0.0


def _plain(value: Any) -> Any:
    value = value.item() if isinstance(value, np.generic) else value
    if value is None or isinstance(value, str | bool | int | float):
        return value
    raise InputError(
        f"Merge names categories by text, numbers, booleans or None; got {shown(value)}.",
        parameter="edits",
    )


# ---------------------------------------------------------------------------------------------
# Terms


def find_terms(
    encoding: Encoding, name: str, *, columns: bool = True, parameter: str = "edits"
) -> list[int]:
    """Return the positions of the term, or of all terms of the column, that has this name.

    A column goes before a term of the same name. Without `columns`, only terms are looked for.

    Examples
    --------
    >>> from commod._data.encoding import BinTerms, Encoding
    >>> terms = Encoding((BinTerms("age", (25.0,), has_missing_term=False),))
    >>> find_terms(terms, "age ≥ 25"), find_terms(terms, "age")
    ([1], [0, 1])
    """
    found = [i for i, term in enumerate(encoding.term_names) if term == name]
    of_column = [i for i, column in enumerate(encoding.term_columns) if column == name]
    if columns and of_column:
        return of_column
    if len(found) > 1:
        raise InputError(
            f"{parameter} names {name!r}, which {len(found)} terms of the scorecard are called. "
            "Edit the whole column, or fit with values that read differently.",
            parameter=parameter,
        )
    if not found:
        known = [*encoding.term_names, *dict.fromkeys(encoding.term_columns)]
        terms = "terms of this column" if of_column else "terms of the scorecard"
        names = [encoding.term_names[i] for i in of_column] if of_column else known
        # the terms that `name` is the category of, or else close names
        categories = [term for term in known if term.endswith(f" = {name}")]
        suggestion = did_you_mean(categories[0] if categories else name, categories or known)
        raise InputError(
            f"{parameter} names {name!r}, which is no term of the scorecard"
            f"{' but a column' if of_column else ' and no column of it'} ({terms}: "
            f"{list_names(names)}).{'' if of_column else suggestion}",
            parameter=parameter,
        )
    return found


def apply_edits(
    encoding: Encoding,
    points: Floats,
    edits: Sequence[AnyEdit],
    n_people: NDArray[np.intp],
) -> EditedPoints:
    """Return the points (d,) of a scorecard after edits.

    Parameters
    ----------
    encoding : Encoding
        The d terms of the scorecard.
    points : ndarray of shape (d,)
        Their points.
    edits : sequence of edits
        As `read_edits` returns them; applied in this order.
    n_people : ndarray of shape (d,)
        People whom each term describes: the weights of `Merge`.

    Examples
    --------
    >>> from commod._data.encoding import CategoryTerms, Encoding
    >>> terms = Encoding((CategoryTerms("town", ("Lyon", "Nice", "Paris")),))
    >>> edits = read_edits([Merge("town", ["Lyon", "Nice"]), Round(0.5)])
    >>> apply_edits(terms, np.array([1.0, 2.0, -0.3]), edits, np.array([30, 10, 20])).points
    array([ 1. ,  1. , -0.5])
    """
    edited, before = points.copy(), points
    is_named, is_locked = (np.zeros(len(points), dtype=bool) for _ in range(2))
    for edit in edits:
        terms = _terms_of(encoding, edit)
        if isinstance(edit, SetPoints):
            edited[terms] = edit.points
        elif isinstance(edit, Drop | Lock):
            edited[terms] = 0.0
            is_locked[terms] |= isinstance(edit, Lock)
        elif isinstance(edit, Cap):
            edited[terms] = np.clip(edited[terms], edit.low, edit.high)
        elif isinstance(edit, Round):
            rounded = np.rint(edited / edit.step) * edit.step
            digits = [float(f"{value:.{ROUND_DIGITS}g}") for value in rounded.tolist()]
            edited = np.array(digits, dtype=np.float64) + 0.0
        else:
            weights = n_people[terms] if n_people[terms].any() else None
            mean = np.average(edited[terms], weights=weights)
            edited[terms] = mean if edit.points is None else edit.points
        if not isinstance(edit, Cap | Round):
            is_named[terms] = True
    if edited[is_locked].any():
        raise InputError(
            "edits locks a column and then gives it points again. Leave one of the two out.",
            parameter="edits",
        )
    return EditedPoints(edited, is_named | (edited != before), is_locked)


def _terms_of(encoding: Encoding, edit: AnyEdit) -> list[int]:
    """Return the positions of the terms that an edit is about."""
    if isinstance(edit, SetPoints):
        is_term = edit.points != 0 or edit.name in encoding.term_names
        return find_terms(encoding, edit.name, columns=not is_term)
    if isinstance(edit, Lock):
        if edit.name not in encoding.term_columns:
            names = list(dict.fromkeys(encoding.term_columns))
            raise InputError(
                f"edits locks {edit.name!r}, which is no column of the scorecard (columns: "
                f"{list_names(names)}).{did_you_mean(edit.name, names)}",
                parameter="edits",
            )
        return find_terms(encoding, edit.name)
    if isinstance(edit, Merge):
        return _merged_terms(encoding, edit)
    if isinstance(edit, Round) or edit.name is None:
        return list(range(encoding.n_terms))
    return find_terms(encoding, edit.name)


def _merged_terms(encoding: Encoding, edit: Merge) -> list[int]:
    """Return the terms of the values of a merge, each once."""
    of_column = find_terms(encoding, edit.column) if edit.column in encoding.term_columns else []
    spec = next((c for c in encoding.columns if c.name == edit.column), None)
    terms: list[int] = []
    for value in edit.values:
        names = [encoding.term_names[i] for i in of_column]
        found = [i for i, name in zip(of_column, names, strict=True) if name == value]
        if isinstance(spec, CategoryTerms):
            same = [
                i
                for i, category in zip(of_column, spec.categories, strict=True)
                if type(category) is type(value) and category == value
            ]
            found = same or found
        elif value is None:
            found = [i for i, n in zip(of_column, names, strict=True) if n.endswith("is missing")]
        if len(found) != 1:
            raise InputError(
                f"Merge({edit.column!r}, …) names {shown(value)}, which is no term of this column "
                f"(terms: {list_names(names)}).{did_you_mean(value, names)}",
                parameter="edits",
            )
        terms += [found[0]] if found[0] not in terms else []
    if len(terms) < 2:
        raise InputError(
            f"Merge({edit.column!r}, …) has {n_of(len(terms), 'term')}; expected two or more.",
            parameter="edits",
        )
    return terms
