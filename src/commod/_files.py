"""Files written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from commod.exceptions import InputError

__all__ = ["write_whole"]


def write_whole(path: str | os.PathLike[str], data: bytes) -> Path:
    """Write a file under a temporary name beside its place and move it there; return the path.

    A reader sees the old file or the new one, and an interrupted run leaves neither half.
    """
    target = Path(path)
    if not target.parent.is_dir():
        raise InputError(f"There is no folder {str(target.parent)!r} to write {target.name!r} in.")
    if target.is_dir():
        raise InputError(f"{str(target)!r} is a folder; name a file in it.")
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:40]}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.chmod(name, 0o666 & ~_umask())  # mkstemp makes files that only their owner may read
        os.replace(name, target)
    except BaseException:
        os.unlink(name)
        raise
    return target


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
