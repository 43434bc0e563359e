"""The names of columns: what every file of a table must have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from commod.exceptions import InputError

__all__ = ["check_names", "check_same_columns"]

_MAX_COLUMNS = 2_000  # DuckDB needs time and memory per column: 4,000 do not fit in 1 GB


def check_names(names: Sequence[str], where: str) -> None:
    """Refuse names that are empty, occur twice, or that DuckDB cannot tell apart."""
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
    for (first, these), (other, those) in pairwise(names.items()):
        if list(these) == list(those):
            continue
        missing = [name for name in these if name not in those]
        added = [name for name in those if name not in these]
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
