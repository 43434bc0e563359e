"""Write files atomically: a reader sees the old file or the new one, never half of one."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from commod.exceptions import InputError

try:
    import fcntl
except ImportError:  # Windows: without locks, no temporary file is ever called stale
    fcntl = None  # type: ignore[assignment, unused-ignore]

_GRACE = 60.0  # seconds that a process has to lock the temporary file it created


def write_whole(path: str | os.PathLike[str], data: bytes) -> Path:
    """Write `data` to `path` as a whole or not at all, and return the path."""
    with replacement_file(path) as temporary, open(temporary, "r+b") as file:
        file.write(data)
    return Path(path)


@contextmanager
def replacement_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield an empty temporary file beside `path` that replaces it when the block ends.

    If the block raises anything, KeyboardInterrupt and SystemExit included, the temporary file is
    removed and the earlier file stays as it was. No signal handler is installed: a process that
    is killed leaves its temporary file behind. The file is locked while it is written, so a later
    write to the same path recognises what a killed process left and removes it.
    """
    target = Path(os.path.realpath(path))  # a link stays a link: its target is replaced
    if not target.parent.is_dir():
        raise InputError(f"There is no folder {str(target.parent)!r} to write {target.name!r} in.")
    if target.is_dir():
        raise InputError(f"{str(target)!r} is a folder; name a file in it.")
    prefix = f".{target.name[:40]}."
    _remove_stale(target.parent, prefix)
    temporary = target.with_name(f"{prefix}{secrets.token_hex(8)}.part")
    handle = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with suppress(OSError):  # where files cannot be locked, none is ever called stale
            _lock(handle)
        yield temporary
        if target.exists():  # a private file stays private
            os.chmod(temporary, stat.S_IMODE(target.stat().st_mode))
        os.replace(temporary, target)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno is not None and error.filename is None:
            error.filename = str(path)  # a full disk does not say which file it was
        raise
    finally:
        os.close(handle)


@contextmanager
def private_folder() -> Iterator[Path]:
    """Yield a new folder that only this user can read; it is removed when the block ends."""
    folder = Path(tempfile.mkdtemp(prefix="commod-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _remove_stale(folder: Path, prefix: str) -> None:
    """Remove the temporary files of killed processes: those that no process has locked."""
    pattern = re.compile(re.escape(prefix) + r"[0-9a-f]{16}\.part")
    with suppress(OSError), os.scandir(folder) as entries:
        for path in [entry.path for entry in entries if pattern.fullmatch(entry.name)]:
            with suppress(OSError):
                _remove_unless_locked(path)


def _remove_unless_locked(path: str) -> None:
    if fcntl is None or time.time() - os.stat(path).st_mtime < _GRACE:
        return
    handle = os.open(path, os.O_RDWR | os.O_NOFOLLOW)
    try:
        _lock(handle)
        os.unlink(path)
    finally:
        os.close(handle)


def _lock(handle: int) -> None:
    if fcntl is not None:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
