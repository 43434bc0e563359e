"""What a patch says about the tables it is used on."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from commod import Patch

__all__ = ["kinds_of", "score_of"]


def score_of(patch: Patch, given: str | None) -> str:
    """Return the column of scores: the one named, else the one the update was fitted on."""
    return given or patch.content.base.score or "score"


def kinds_of(patch: Patch, score: str, label: str | None = None) -> dict[str, str]:
    """Return the kinds of the columns that a patch reads, whatever the rows of a file look like.

    A batch in which all postcodes happen to be plain numbers still holds postcodes.
    """
    found = {score: "number"}
    for column in patch.content.ratio.columns:
        if column.reads in ("number", "bins"):
            found[column.name] = "number"
        elif column.reads == "category":
            types = {type(category.value) for category in column.categories}
            if types == {str}:
                found[column.name] = "text"
            elif types == {bool}:
                found[column.name] = "boolean"
    if label is not None:
        kind = type(patch.content.labels.positive)
        found[label] = {str: "text", bool: "boolean"}.get(kind, "number")
    return found
