"""Files written whole or not at all."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import signal
import stat
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import NoReturn

from commod.exceptions import InputError

try:
    import fcntl
except (
    ImportError
):  # Windows: nobody can tell a stale temporary from one in use, so none is removed
    fcntl = None  # type: ignore[assignment, unused-ignore]

__all__ = ["ending_on_sigterm", "private_folder", "write_whole", "written_whole"]

_NEW = 60.0  # seconds in which a temporary may not be locked yet by the process that made it


def write_whole(path: str | os.PathLike[str], data: bytes) -> Path:
    """Write a file under a temporary name beside its place and move it there; return the path.

    A reader sees the old file or the new one, and an interrupted run leaves neither half.
    """
    with written_whole(path) as beside, open(beside, "r+b") as file:
        file.write(data)
    return Path(path)


@contextmanager
def written_whole(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield an empty temporary file beside `path`; once written, it is moved there.

    Where the block raises, or the process is asked to end, the temporary is removed and the earlier
    file stays as it was. The temporary is locked while it is written, so that a later run can tell
    what a killed process left behind, and removes it.
    """
    # a link stays a link: what it points to is replaced
    target = Path(os.path.realpath(path))
    if not target.parent.is_dir():
        raise InputError(f"There is no folder {str(target.parent)!r} to write {target.name!r} in.")
    if target.is_dir():
        raise InputError(f"{str(target)!r} is a folder; name a file in it.")
    start = f".{target.name[:40]}."
    _remove_stale(target.parent, start)
    beside = target.with_name(f"{start}{secrets.token_hex(8)}.part")
    with ending_on_sigterm():
        handle = os.open(beside, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
        try:
            _lock(handle)
            yield beside
            if target.exists():  # a private file stays private
                os.chmod(beside, stat.S_IMODE(target.stat().st_mode))
            os.replace(beside, target)
        except BaseException as error:
            beside.unlink(missing_ok=True)
            if isinstance(error, OSError) and error.errno is not None and error.filename is None:
                error.filename = str(path)  # a full disk does not say which file it was
            raise
        finally:
            os.close(handle)


@contextmanager
def private_folder() -> Iterator[Path]:
    """Yield a new folder that only this user can read; it is removed whatever happens."""
    with ending_on_sigterm():
        folder = Path(tempfile.mkdtemp(prefix="commod-"))
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def ending_on_sigterm() -> Iterator[None]:
    """Let a request to end raise SystemExit, so that temporaries are removed on the way out.

    Only the main thread may do so, and only where nobody else handles the request already.
    """
    is_free = (
        threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    )
    if is_free:
        signal.signal(signal.SIGTERM, _end)
    try:
        yield
    finally:
        if is_free:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _end(number: int, frame: FrameType | None) -> NoReturn:
    raise SystemExit(128 + number)


def _remove_stale(folder: Path, start: str) -> None:
    """Remove the temporaries of killed processes: those that nobody holds a lock on."""
    pattern = re.compile(re.escape(start) + r"[0-9a-f]{16}\.part")
    with suppress(OSError), os.scandir(folder) as entries:
        stale = [entry.path for entry in entries if pattern.fullmatch(entry.name)]
        for path in stale:
            with suppress(OSError):
                _remove_if_unused(path)


def _remove_if_unused(path: str) -> None:
    if fcntl is None or time.time() - os.stat(path).st_mtime < _NEW:
        return
    handle = os.open(path, os.O_RDWR | os.O_NOFOLLOW)
    try:
        _lock_now(handle)
        os.unlink(path)
    finally:
        os.close(handle)


def _lock(handle: int) -> None:
    with suppress(OSError):  # where files cannot be locked, no temporary is ever called stale
        _lock_now(handle)


def _lock_now(handle: int) -> None:
    if fcntl is not None:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
