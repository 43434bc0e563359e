"""Make folders whose files nobody else can replace: commod runs programs that are stored there."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

MAX_LINKS = 40  # as Linux allows in one path
WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def private_path(folder: Path) -> Path | None:
    """Return the folder without links, made where it is missing; None where others could swap it.

    Every folder on the way from the root is checked, and every link in it with its own way. Each
    must belong to this user or to root, and nobody else may write there. A folder of root that all
    may write to is fine if it is sticky, as /tmp is: there nobody can move what others own. The
    last folder must be this user's own. Missing folders are made with mode 0700, whatever the umask
    is. On a system without owners of files, nothing is checked.

    Raises OSError where a folder cannot be read or made.
    """
    if not hasattr(os, "getuid"):
        folder.mkdir(parents=True, exist_ok=True)
        return folder
    parts = list(reversed(Path(os.path.abspath(folder)).parts))
    place = Path(parts.pop())
    if not _is_safe(os.lstat(place)):
        return None
    n_links = 0
    while parts:
        nearer = place / parts.pop()
        if nearer.name == "..":  # of a link
            place = place.parent
            continue
        with suppress(FileExistsError):
            _make_private(nearer)
        status = os.lstat(nearer)
        if stat.S_ISLNK(status.st_mode):
            n_links += 1
            if n_links > MAX_LINKS or not _belongs_to_us(status):
                return None
            target = Path(os.readlink(nearer))
            place = Path(target.anchor) if target.is_absolute() else place
            parts += reversed(target.parts[1:] if target.is_absolute() else target.parts)
            continue
        if not stat.S_ISDIR(status.st_mode) or not _is_safe(status):
            return None
        place = nearer
    status = os.lstat(place)
    is_own = status.st_uid == os.getuid() and not status.st_mode & WRITABLE_BY_OTHERS
    return place if is_own else None


def _make_private(folder: Path) -> None:
    os.mkdir(folder, 0o700)
    os.chmod(folder, 0o700)  # a umask may have taken more away; a default ACL may have added some


def _is_safe(status: os.stat_result) -> bool:
    """Return whether nobody but this user and root can move or replace what is in a folder."""
    if not _belongs_to_us(status):
        return False
    is_sticky = bool(status.st_mode & stat.S_ISVTX) and status.st_uid == 0
    return is_sticky or not status.st_mode & WRITABLE_BY_OTHERS


def _belongs_to_us(status: os.stat_result) -> bool:
    return status.st_uid in (0, os.getuid())
