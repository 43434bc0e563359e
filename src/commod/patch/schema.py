"""Read every version of the patch schema: which fields each version added, and how to upgrade.

A file of an earlier version is upgraded when it is loaded: a field that its version did not have is
None. Its digest is checked over the fields that it has. A file is always written in the newest
version.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from commod.exceptions import InputError
from commod.patch.content import SCHEMA

FAMILY, _, _newest = SCHEMA.partition("/")
NEWEST = int(_newest)

# The fields that each version added, as paths of keys. None in an upgraded file: not known.
ADDED: Mapping[int, tuple[str, ...]] = {
    1: (),
    2: ("base.scores_digest", "seen.n_rows", "left_out", "audit", "versions"),
}


# Fields that a file has only where they are known: files of version 2 from before 0.2 lack them.
LEFT_OUT_IF_NONE = (("labels", "counted"),)


def version_of(schema: Any) -> int:
    """Return the version that a file states; refuse what is no patch, and a newer version.

    Examples
    --------
    >>> version_of("commod.patch/1")
    1
    >>> version_of("commod.patch/999")
    Traceback (most recent call last):
    commod.exceptions.InputError: Its schema is 'commod.patch/999', newer than 'commod.patch/2', ...
    """
    family, _, number = str(schema).partition("/")
    if family == FAMILY and re.fullmatch("[1-9][0-9]{0,8}", number):
        if int(number) in ADDED:
            return int(number)
        raise InputError(
            f"Its schema is {str(schema)[:80]!r}, newer than {SCHEMA!r}, which this version of "
            "commod reads. Upgrade commod: pip install -U commod-debiasing."
        )
    raise InputError(f"Its schema is {str(schema)[:80]!r}; expected {SCHEMA!r}.")


def upgraded(data: dict[str, Any], version: int) -> dict[str, Any]:
    """Return the content of a file of `version` with all fields that later versions added."""
    changed = {**data, "schema": SCHEMA}
    for holder, name in _later_fields(changed, version):
        if name in holder:
            raise InputError(
                f"It has an unknown field {name!r}: its schema, {FAMILY}/{version}, has no such "
                "field."
            )
        holder[name] = None
    return changed


def as_version(plain: dict[str, Any], version: int) -> dict[str, Any]:
    """Return a content as a file of `version` has it: without the fields of later versions."""
    changed = {**plain, "schema": f"{FAMILY}/{version}"}
    for holder, name in _later_fields(changed, version):
        del holder[name]
    for part, name in LEFT_OUT_IF_NONE:
        if changed[part].get(name) is None:
            changed[part] = {key: value for key, value in changed[part].items() if key != name}
    return changed


def _later_fields(data: dict[str, Any], version: int) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield the object and the name of each later field; objects are copied before."""
    copied: set[str] = set()
    for number in range(version + 1, NEWEST + 1):
        for path in ADDED[number]:
            part, _, name = path.rpartition(".")
            if not part:
                yield data, name
            elif isinstance(data.get(part), dict):  # else reading the content refuses it
                if part not in copied:
                    data[part] = dict(data[part])
                    copied.add(part)
                yield data[part], name
