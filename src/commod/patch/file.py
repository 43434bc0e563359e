"""Read and write patch files: JSON with a digest and a size limit.

Reading parses and checks. Nothing in a file is ever executed.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
import stat
from collections.abc import Collection
from pathlib import Path
from typing import Any

from commod._io.strict_json import read_object
from commod._record import from_plain, plain_digest, to_plain
from commod.exceptions import InputError
from commod.patch.checking import check_content
from commod.patch.content import Content
from commod.patch.schema import NEWEST, absent_fields, as_version, upgraded, version_of

MAX_BYTES = 16 * 2**20  # a hundred thousand categories; most patches have a few kilobytes


def to_bytes(content: Content) -> bytes:
    """Return the bytes of the file; the same content gives the same bytes."""
    data = {**as_version(to_plain(content), NEWEST), "digest": content_digest(content)}
    return (json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()


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
    name = str(Path(path))
    if not stat.S_ISREG(os.stat(path).st_mode):  # opening a pipe would wait for its writer
        raise InputError(f"{name!r} is not a regular file; copy the patch into one.")
    with open(path, "rb") as file:
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise InputError(
            f"{name!r} is larger than {MAX_BYTES / 2**20:g} MiB, the largest size of a patch. "
            "Check whether it is the right file."
        )
    actual = hashlib.sha256(data).hexdigest()
    if sha256 is not None and not hmac.compare_digest(actual, str(sha256).lower()):
        raise InputError(
            f"{name!r} is not the file that was signed off: its SHA-256 is {actual}, expected "
            f"{str(sha256).lower()}. The file was changed, or it is another patch."
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
