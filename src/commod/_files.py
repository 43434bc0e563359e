"""Files written whole or not at all."""

from __future__ import annotations

import os
import secrets
import stat
from pathlib import Path

from commod.exceptions import InputError

__all__ = ["write_whole"]


def write_whole(path: str | os.PathLike[str], data: bytes) -> Path:
    """Write a file under a temporary name beside its place and move it there; return the path.

    A reader sees the old file or the new one, and an interrupted run leaves neither half.
    """
    target = Path(path).resolve()  # a link stays a link: what it points to is replaced
    if not target.parent.is_dir():
        raise InputError(f"There is no folder {str(target.parent)!r} to write {target.name!r} in.")
    if target.is_dir():
        raise InputError(f"{str(target)!r} is a folder; name a file in it.")
    beside = target.with_name(f".{target.name[:40]}.{secrets.token_hex(8)}")
    handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        if target.exists():  # a private file stays private
            os.chmod(beside, stat.S_IMODE(target.stat().st_mode))
        os.replace(beside, target)
    except BaseException:
        os.unlink(beside)
        raise
    return Path(path)
