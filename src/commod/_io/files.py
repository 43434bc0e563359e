"""Write files atomically, and keep copies of tables in private folders.

A reader sees the old file or the new one, never half of one.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path

from commod.exceptions import InputError

try:
    import fcntl
except ImportError:  # Windows: without locks, no temporary file is ever called stale
    fcntl = None  # type: ignore[assignment, unused-ignore]

_FOLDER_PREFIX = "commod-"
_LOCK_NAME = ".commod-lock"
_GRACE = 60.0  # seconds that a process has to lock the temporary file it created


_unfinished: set[Path] = set()  # temporary files and folders of this process


@dataclass(frozen=True)
class _Replacement:
    """A temporary file that is written and locked, and the file that it will replace."""

    path: str
    target: Path
    temporary: Path
    handle: int


_together: ContextVar[list[_Replacement] | None] = ContextVar("_together", default=None)


def write_whole(path: str | os.PathLike[str], data: bytes) -> Path:
    """Write `data` to `path` as a whole or not at all, and return the path."""
    with replacement_file(path) as temporary, open(temporary, "r+b") as file:
        file.write(data)
    return Path(path)


@contextmanager
def written_together() -> Iterator[None]:
    """Let all files that the block writes with this module appear when it ends, or none of them.

    The files wait under temporary names until the block ends; then all are renamed. If the block
    raises, or if one file cannot be renamed, every earlier file is as it was before.
    """
    waiting: list[_Replacement] = []
    token = _together.set(waiting)
    try:
        try:
            yield
        finally:
            _together.reset(token)
        _rename(waiting)
    finally:
        for replacement in waiting:
            _discard(replacement)


@contextmanager
def replacement_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield an empty temporary file beside `path` that replaces it when the block ends.

    If the block raises anything, KeyboardInterrupt and SystemExit included, the temporary file is
    removed and the earlier file stays as it was. No signal handler is installed: a process that
    is killed leaves its temporary file behind. The file is locked while it is written, so a later
    write to the same path recognises what a killed process left and removes it.

    In a block of `written_together` the file is replaced when that block ends.
    """
    replacement, waiting = _begin(path), _together.get()
    with ExitStack() as stack:
        stack.callback(_discard, replacement)
        with _named_errors(replacement.path):
            yield replacement.temporary
        if waiting is None:
            _rename([replacement])
        else:
            waiting.append(replacement)
            stack.pop_all()  # the block of `written_together` discards it


def remove_unfinished() -> None:
    """Remove the temporary files and folders of this process: call it only before it ends."""
    for path in tuple(_unfinished):
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            with suppress(OSError):
                path.unlink(missing_ok=True)


def _begin(path: str | os.PathLike[str]) -> _Replacement:
    """Create and lock the temporary file for `path`."""
    target = Path(os.path.realpath(path))  # a link stays a link: its target is replaced
    if not target.parent.is_dir():
        raise InputError(f"There is no folder {str(target.parent)!r} to write {target.name!r} in.")
    if target.is_dir():
        raise InputError(f"{str(target)!r} is a folder; name a file in it.")
    _remove_stale(target.parent, _temporary_prefix(target))
    temporary = _temporary_name(target)
    _unfinished.add(temporary)
    handle = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
    with suppress(OSError):  # where files cannot be locked, none is ever called stale
        _lock(handle)
    return _Replacement(str(path), target, temporary, handle)


def _temporary_name(target: Path) -> Path:
    return target.with_name(f"{_temporary_prefix(target)}{secrets.token_hex(8)}.part")


def _temporary_prefix(target: Path) -> str:
    return f".{target.name[:40]}."


def _rename(replacements: Sequence[_Replacement]) -> None:
    """Move temporary files to their targets; where one cannot be moved, undo those before it."""
    moved: list[tuple[Path, Path | None]] = []
    try:
        for replacement in replacements:
            with _named_errors(replacement.path):
                target = replacement.target
                if target.exists():  # a private file stays private
                    os.chmod(replacement.temporary, stat.S_IMODE(target.stat().st_mode))
                moved.append((target, _copy_of(target) if len(replacements) > 1 else None))
                os.replace(replacement.temporary, target)
    except BaseException:
        if len(replacements) > 1:
            _undo(moved)
        raise
    finally:
        for _, copy in moved:
            _remove_temporary(copy)


def _undo(moved: Sequence[tuple[Path, Path | None]]) -> None:
    """Put back the copies of the earlier files; remove files where there was none."""
    for target, copy in reversed(moved):
        with suppress(OSError):
            if copy is None:
                target.unlink(missing_ok=True)
            else:
                os.replace(copy, target)


def _copy_of(target: Path) -> Path | None:
    """Return a second name of a file, or a copy where it can have no other; None without a file."""
    if not target.exists():
        return None
    copy = _temporary_name(target)
    _unfinished.add(copy)
    try:
        os.link(target, copy)
    except OSError:
        shutil.copy2(target, copy)
    return copy


def _discard(replacement: _Replacement) -> None:
    """Remove a temporary file, if it was not moved, and unlock it."""
    _remove_temporary(replacement.temporary)
    os.close(replacement.handle)


def _remove_temporary(path: Path | None) -> None:
    if path is not None:
        path.unlink(missing_ok=True)
        _unfinished.discard(path)


@contextmanager
def _named_errors(path: str) -> Iterator[None]:
    """Let an OSError say which file it is about; a full disk does not."""
    try:
        yield
    except OSError as error:
        if error.errno is not None and error.filename is None:
            error.filename = path
        raise


@contextmanager
def private_folder() -> Iterator[Path]:
    """Yield a new folder that only this user can read; it is removed when the block ends.

    A process that is killed leaves its folder behind, perhaps with a copy of a table. The folder
    holds a locked file, so the next process recognises what a killed one left and removes it.
    """
    _remove_stale_folders(Path(tempfile.gettempdir()))
    folder = Path(tempfile.mkdtemp(prefix=_FOLDER_PREFIX))  # its mode is 0700
    _unfinished.add(folder)
    handle = None
    try:
        with suppress(OSError):  # where files cannot be locked, no folder is ever called stale
            handle = _locked_file(folder)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        _unfinished.discard(folder)
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
        for path in [e.path for e in entries if fcntl and e.name.startswith(_FOLDER_PREFIX)]:
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
