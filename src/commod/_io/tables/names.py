"""Check the names of the columns of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from commod.exceptions import InputError

_MAX_COLUMNS = 2_000  # DuckDB needs memory per column: 4,000 columns do not fit in 1 GB


def check_names(names: Sequence[str], where: str) -> None:
    """Refuse names that are empty, occur twice, or are the same for DuckDB."""
    if len(names) > _MAX_COLUMNS:
        raise InputError(
            f"{where!r} has {len(names):,} columns, but at most {_MAX_COLUMNS:,} are "
            "read. Keep the columns that are needed."
        )
    seen: dict[str, str] = {}
    for position, name in enumerate(names, start=1):
        if not name:
            raise InputError(
                f"Column {position} of {where!r} has no name. Name it, or leave it out (pandas "
                "writes such a column for its index unless index=False)."
            )
        earlier = seen.get(name.lower())
        seen[name.lower()] = name
        if earlier == name:
            raise InputError(f"{where!r} has two columns {name!r}. Rename or remove one of them.")
        if earlier is not None:
            raise InputError(
                f"{where!r} has the columns {earlier!r} and {name!r}, which differ only in upper "
                "and lower case; SQL does not tell them apart. Rename one of them."
            )


def check_same_columns(names: Mapping[str, Sequence[str]]) -> None:
    """Refuse files with different columns; `names` maps a file to its columns."""
    for (first, first_names), (other, other_names) in pairwise(names.items()):
        if list(first_names) == list(other_names):
            continue
        known, others = set(first_names), set(other_names)
        missing = [name for name in first_names if name not in others]
        added = [name for name in other_names if name not in known]
        difference = (
            f"only the first has {missing[0]!r}"
            if missing
            else f"only the second has {added[0]!r}"
            if added
            else "they come in another order"
        )
        raise InputError(
            f"{first!r} and {other!r} have different columns ({difference}). Read files with the "
            "same columns in the same order."
        )
