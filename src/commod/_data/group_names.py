"""Name groups: by their values, or as the user calls them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from commod._text import list_names, shown
from commod.exceptions import InputError, InputTypeError


def group_names_of(
    labels: Sequence[Hashable],
    columns: tuple[str, ...] | None,
    given: Mapping[Any, Any] | None = None,
) -> tuple[str, ...]:
    """Return a different text for each group: its values, with column names if there are several.

    `given` names values: ``{1: "women"}`` for one sensitive column, ``{"sex": {1: "women"}}`` for
    several. A value without a name stays as it is.

    Examples
    --------
    >>> group_names_of([("f", 1), ("m", 1)], ("sex", "age")), group_names_of([1, "1"], None)
    (('sex = f, age = 1', 'sex = m, age = 1'), ('1', "'1'"))
    >>> group_names_of([0, 1], None, {1: "women"})
    ('0', 'women')
    """
    parts = [label if isinstance(label, tuple) else (label,) for label in labels]
    parts = _renamed(parts, columns, given)
    names = [", ".join(map(str, part)) for part in parts]
    if columns is not None and len(columns) > 1:
        pairs = [zip(columns, part, strict=True) for part in parts]
        names = [", ".join(f"{column} = {value}" for column, value in pair) for pair in pairs]
    if len(set(names)) < len(names):  # 1 and "1" are two groups
        names = [", ".join(map(repr, part)) for part in parts]
    return tuple(names)


def _renamed(
    parts: list[tuple[Any, ...]], columns: tuple[str, ...] | None, given: Mapping[Any, Any] | None
) -> list[tuple[Any, ...]]:
    """Return the values of each group, replaced by their given names."""
    if given is None:
        return parts
    if not isinstance(given, Mapping):
        raise InputTypeError(
            f"group_names={shown(given)} must map groups to names, such as {{1: 'women'}}.",
            parameter="group_names",
        )
    n_columns = len(parts[0])
    by_column = [given] if n_columns == 1 else _by_column(columns, given, n_columns)
    for position, names in enumerate(by_column):
        check_group_names(names, {part[position] for part in parts})
    return [
        tuple(names.get(value, value) for names, value in zip(by_column, part, strict=True))
        for part in parts
    ]


def _by_column(
    columns: tuple[str, ...] | None, given: Mapping[Any, Any], n_columns: int
) -> list[Mapping[Any, Any]]:
    known = columns or tuple(str(i) for i in range(n_columns))
    if columns is None or not all(
        name in known and isinstance(names, Mapping) for name, names in given.items()
    ):
        raise InputError(
            f"sensitive_features has {n_columns} columns, so group_names needs the names of each "
            f"of them, such as {{{known[0]!r}: {{0: 'a', 1: 'b'}}}}; got {given!r}. The columns "
            f"are {', '.join(known) if columns else 'without names: pass a frame'}.",
            parameter="group_names",
        )
    return [given.get(name, {}) for name in known]


def check_group_names(names: Mapping[Any, Any], values: set[Any]) -> None:
    """Refuse a name for a value that does not occur, and one name for two groups."""
    listed = list_names(sorted(map(repr, values)))
    for value in names:
        if value not in values:
            raise InputError(
                f"group_names has {value!r}, which no row has; the groups are {listed}.",
                parameter="group_names",
            )
    after = [str(names.get(value, value)) for value in values]
    repeated = sorted({name for name, n in Counter(after).items() if n > 1})
    if names and repeated:
        raise InputError(
            f"group_names gives two groups the name {repeated[0]!r}. Names do not merge groups: "
            "change the values of sensitive_features for that.",
            parameter="group_names",
        )
