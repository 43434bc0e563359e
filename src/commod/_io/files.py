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

_FOLDER_PREFIX = "commod-"
_LOCK_NAME = ".commod-lock"
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
    """Yield a new folder that only this user can read; it is removed when the block ends.

    A process that is killed leaves its folder behind, perhaps with a copy of a table. The folder
    holds a locked file, so the next process recognises what a killed one left and removes it.
    """
    _remove_stale_folders(Path(tempfile.gettempdir()))
    folder = Path(tempfile.mkdtemp(prefix=_FOLDER_PREFIX))  # its mode is 0700
    handle = None
    try:
        with suppress(OSError):  # where files cannot be locked, no folder is ever called stale
            handle = _locked_file(folder)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if handle is not None:
            os.close(handle)


def _locked_file(folder: Path) -> int:
    """Return the handle of a locked file in the folder, under a name that it gets once locked.

    So a folder with a file of this name that is not locked belongs to no living process.
    """
    new = folder / f"{_LOCK_NAME}.new"
    handle = os.open(new, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        _lock(handle)
        os.rename(new, folder / _LOCK_NAME)
    except BaseException:
        os.close(handle)
        raise
    return handle


def _remove_stale_folders(parent: Path) -> None:
    """Remove the private folders of this user's killed processes; leave everything else alone."""
    with suppress(OSError), os.scandir(parent) as entries:
        for path in [e.path for e in entries if e.name.startswith(_FOLDER_PREFIX)]:
            with suppress(OSError, AttributeError):  # Windows has no O_NOFOLLOW: nothing is removed
                _remove_folder_unless_locked(path)


def _remove_folder_unless_locked(path: str) -> None:
    """Remove a private folder whose file no process has locked.

    All steps go through one handle of the folder. So nobody can put another folder, or a link, in
    its place between the checks and the removal.
    """
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        status = os.fstat(folder)
        is_private = status.st_uid == os.getuid() and stat.S_IMODE(status.st_mode) == 0o700
        if not is_private:
            return
        handle = os.open(_LOCK_NAME, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
        try:
            _lock(handle)  # fails while the owner lives
            for name in os.listdir(folder):
                if stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
                    shutil.rmtree(name, dir_fd=folder)
                elif name != _LOCK_NAME:
                    os.unlink(name, dir_fd=folder)
            os.unlink(_LOCK_NAME, dir_fd=folder)  # last: an interrupted removal is continued
            os.rmdir(path)
        finally:
            os.close(handle)
    finally:
        os.close(folder)


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
