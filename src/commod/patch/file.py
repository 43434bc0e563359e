"""Read and write patch files: JSON with a digest and a size limit.

Reading parses and checks. Nothing in a file is ever executed.

A file of an earlier version is upgraded when it is loaded: a field that its version did not have is
None, or has the value of `DEFAULTS`, or the default of its record. Its digest is checked over the
fields that it has. A file is always written in the newest version.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from commod._io.untrusted import read_limited, read_object
from commod._record.plain import from_plain, plain_digest, to_plain
from commod.exceptions import InputError
from commod.patch.checking import check_content
from commod.patch.content import SCHEMA, Content

FAMILY, _, _newest = SCHEMA.partition("/")
NEWEST = int(_newest)

# The fields that each version added, as paths of keys; a list stands for each of its entries.
# Those of version 2 are None in an upgraded file: not known.
ADDED: Mapping[int, tuple[str, ...]] = {
    1: (),
    2: ("base.scores_digest", "seen.n_rows", "left_out", "audit", "versions"),
    3: (
        "ratio.evidence",
        "ratio.columns.centre",
        "history.earlier.ratio.evidence",
        "history.earlier.ratio.columns.centre",
        "by",
    ),
}
# Fields that version 2 got before its release, with the value that a file without them has.
DEFAULTS: Mapping[str, Any] = {
    "score_edit": "all",
    "ratio.max_margin": None,
    "calibration": None,
}


# Fields that a file has only where they say something: files from before 0.2 lack them.
LEFT_OUT_IF_EMPTY = (
    ("labels", "counted"),
    ("asked", "further"),
    ("asked", "points"),
    ("reached", "further"),
)
TOP_IF_ANY = ("history", "by")  # edits by hand, and who saved the patch


def version_of(schema: Any) -> int:
    """Return the version that a file states; refuse what is not a patch, and a newer version.

    Examples
    --------
    >>> version_of("commod.patch/1")
    1
    >>> version_of("commod.patch/999")
    Traceback (most recent call last):
    commod.exceptions.InputError: Its schema is 'commod.patch/999', newer than 'commod.patch/3', ...
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
    for path, holder, name in _fields(changed, [*_added_after(version), *DEFAULTS]):
        if name in holder and path in DEFAULTS and version > 1:
            continue
        if name in holder:
            raise InputError(
                f"It has an unknown field {name!r}: its schema, {FAMILY}/{version}, has no such "
                "field."
            )
        if path not in ADDED[3]:
            holder[name] = DEFAULTS.get(path)
    return changed


def as_version(plain: dict[str, Any], version: int, absent: Collection[str] = ()) -> dict[str, Any]:
    """Return a content as a file of `version` has it: without the fields of later versions.

    `absent` are those of `DEFAULTS` that the file does not have.
    """
    changed = {**plain, "schema": f"{FAMILY}/{version}"}
    for _, holder, name in _fields(changed, [*_added_after(version), *absent]):
        holder.pop(name, None)  # a column of categories has no centre
    for part, name in LEFT_OUT_IF_EMPTY:
        if changed[part].get(name) in (None, []):
            changed[part] = {key: value for key, value in changed[part].items() if key != name}
    for name in TOP_IF_ANY:
        if not changed.get(name):
            changed.pop(name, None)
    return changed


def absent_fields(data: dict[str, Any]) -> list[str]:
    """Return the fields of `DEFAULTS` that a file does not have.

    Examples
    --------
    >>> absent_fields({"score_edit": "all", "ratio": {}})
    ['ratio.max_margin', 'calibration']
    """
    return [path for path, holder, name in _fields(dict(data), DEFAULTS) if name not in holder]


def _added_after(version: int) -> list[str]:
    return [path for number in range(version + 1, NEWEST + 1) for path in ADDED[number]]


def _fields(
    data: dict[str, Any], paths: Iterable[str]
) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Yield path, object and name of each field; objects are copied before."""
    for path in paths:
        *parts, name = path.split(".")
        holders = [data]
        for part in parts:
            holders = [inner for holder in holders for inner in _copies(holder, part)]
        for holder in holders:
            yield path, holder, name


def _copies(holder: dict[str, Any], part: str) -> list[dict[str, Any]]:
    """Return the object in a field, or those in its list, after putting copies in their place.

    What is neither is left alone: reading the content refuses it.
    """
    value = holder.get(part)
    if isinstance(value, dict):
        holder[part] = dict(value)
        return [holder[part]]
    if isinstance(value, list):
        holder[part] = [dict(item) if isinstance(item, dict) else item for item in value]
        return [item for item in holder[part] if isinstance(item, dict)]
    return []


MAX_BYTES = 16 * 2**20  # a hundred thousand categories; most patches have a few kilobytes


def to_bytes(content: Content) -> bytes:
    """Return the bytes of the file; the same content gives the same bytes.

    More bytes than `read_bytes` accepts are refused here, before anything is written.
    """
    plain = {**as_version(to_plain(content), NEWEST), "digest": content_digest(content)}
    data = (json.dumps(plain, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()
    if len(data) > MAX_BYTES:
        raise InputError(
            f"The patch would be a file of {len(data) / 2**20:.1f} MiB, but files above "
            f"{MAX_BYTES / 2**20:g} MiB are not read. Fit with a larger min_category_size or a "
            "lower max_lines, or undo edits."
        )
    return data


def content_digest(content: Content, version: int = NEWEST, absent: Collection[str] = ()) -> str:
    """Return the SHA-256 of the content, as a file of this version of the schema states it.

    `absent` are fields that the file does not have; see `absent_fields`.
    """
    return plain_digest(as_version(to_plain(content), version, absent))


def read_bytes(path: str | os.PathLike[str], sha256: str | None = None) -> bytes:
    """Return the bytes of a file of at most MAX_BYTES; with `sha256`, refuse any other file.

    Examples
    --------
    >>> read_bytes("no-such-patch.json", sha256="abc")
    Traceback (most recent call last):
    commod.exceptions.InputError: sha256='abc' is not a SHA-256: expected 64 hexadecimal digits, ...
    """
    if sha256 is not None and not re.fullmatch("[0-9a-fA-F]{64}", str(sha256)):
        raise InputError(
            f"sha256={str(sha256)[:80]!r} is not a SHA-256: expected 64 hexadecimal digits, as "
            "`sha256sum` prints or patch.sha256 holds."
        )
    data = read_limited(path, "patch", MAX_BYTES)
    actual = hashlib.sha256(data).hexdigest()
    if sha256 is not None and not hmac.compare_digest(actual, str(sha256).lower()):
        raise InputError(
            f"{str(Path(path))!r} is not the file that was signed off: its SHA-256 is {actual}, "
            f"expected {str(sha256).lower()}. The file was changed, or it is another patch."
        )
    return data


def from_bytes(data: bytes, name: str = "The patch") -> Content:
    """Return the content of a file; refuse one that is damaged, newer or contradicts itself."""
    try:
        return _content(read_object(data, "a patch", MAX_BYTES))
    except InputError as error:
        raise InputError(f"{name} cannot be used as a patch. {error}") from error


def _content(data: dict[str, Any]) -> Content:
    version = version_of(data.get("schema"))
    digest = data.pop("digest", None)
    content = from_plain(Content, upgraded(data, version))
    check_content(content)
    expected = content_digest(content, version, absent_fields(data))
    if digest != expected:
        raise InputError(
            f"Its digest is {str(digest)[:80]!r}, but its content has {expected!r}: the file was "
            "damaged or edited. Get it again from its source."
        )
    return content
