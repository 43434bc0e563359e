"""Compiled programs in the user's cache folder: the next process loads them in a tenth of a second.

JAX has such a cache, switched off unless a folder is named. Where the user has named none, ours is
used while our own programs are compiled, and all settings are put back at once. They are those of
the whole process: what another thread compiles in that moment is kept in our folder, too.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any

import jax
from jax.experimental.compilation_cache import compilation_cache
from jaxlib.version import __version__ as compiler_version

__all__ = ["cache_home", "kept_programs"]

HOME_VARIABLE = "COMMOD_CACHE_HOME"
MOST_PROGRAMS = 200  # of about 100 kB each; those written first give way, however often used

_config: Any = jax.config
_in_use = Lock()


@contextmanager
def kept_programs() -> Iterator[None]:
    """Load from the cache folder what is compiled inside, or write it there.

    Nothing happens where JAX has a cache already or is told to have none, where the folder cannot
    be written, or where another thread is inside.
    """
    if not _in_use.acquire(blocking=False):
        yield
        return
    try:
        folder = None if _is_decided() else _folder()
        if folder is None:
            yield
        else:
            with _cache_in(folder):
                yield
    finally:
        _in_use.release()


def _is_decided() -> bool:
    """Return whether the user has chosen a cache, or none."""
    chosen, enabled = _config.jax_compilation_cache_dir, _config.jax_enable_compilation_cache
    return bool(chosen) or not enabled


@contextmanager
def _cache_in(folder: Path) -> Iterator[None]:
    ours = {
        "jax_compilation_cache_dir": str(folder),
        "jax_persistent_cache_min_compile_time_secs": 0.0,
        "jax_persistent_cache_min_entry_size_bytes": 0,
        "jax_raise_persistent_cache_errors": False,
    }
    before = {name: getattr(_config, name) for name in ours}
    anew: list[Path] = []

    def write_anew() -> None:
        """Let JAX write to an empty folder: where a file is there, a damaged one too, it does not.

        The warning comes before the program is compiled, so that it is written there.
        """
        with suppress(OSError):
            anew.append(Path(tempfile.mkdtemp(prefix="anew-", dir=folder)))
            _config.update("jax_compilation_cache_dir", str(anew[-1]))
            compilation_cache.reset_cache()

    try:
        for name, value in ours.items():
            _config.update(name, value)
        with _told_of_damage(write_anew):
            yield
    finally:
        for name, value in before.items():
            _config.update(name, value)
        compilation_cache.reset_cache()  # it would go on to serve all programs from our folder
        for written in anew:
            _move_programs(written, folder)


@contextmanager
def _told_of_damage(do: Callable[[], None]) -> Iterator[None]:
    """Call `do` where JAX cannot read a file: a damaged or half-written one is no program."""
    shown, inside = warnings.showwarning, True

    def show(message: Warning | str, *where: Any, **more: Any) -> None:
        if not inside or "persistent compilation cache" not in str(message):
            shown(message, *where, **more)
        elif "Error reading" in str(message):
            do()

    with warnings.catch_warnings():
        warnings.filterwarnings("always", message=".*persistent compilation cache")
        warnings.showwarning = show
        try:
            yield
        finally:  # not all Pythons put it back, and another thread may bring ours back later
            warnings.showwarning, inside = shown, False


def _move_programs(source: Path, folder: Path) -> None:
    """Put programs in the place of damaged ones, each at once: other processes may be reading."""
    with suppress(OSError):
        for file in source.glob("*-cache"):
            file.replace(folder / file.name)
    shutil.rmtree(source, ignore_errors=True)


def _folder() -> Path | None:
    """Return the folder for programs of this machine, or None where there can be none."""
    try:
        home = cache_home()
        if home is None:
            return None
        folder = home / f"jax-{compiler_version}-{_machine()}"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _forget_first_written(folder)
        return folder if os.access(folder, os.W_OK) and _is_ours_alone(folder) else None
    except (OSError, RuntimeError):  # whatever is wrong with it, a fit does without
        return None


def _is_ours_alone(folder: Path) -> bool:
    """Return whether nobody else can write there: who can writes programs that we would run."""
    if not hasattr(os, "getuid"):
        return True
    told = folder.stat()
    return told.st_uid == os.getuid() and not told.st_mode & 0o022


def cache_home() -> Path | None:
    """Return commod's cache folder: COMMOD_CACHE_HOME, or in the platform's; None switches it off.

    An empty COMMOD_CACHE_HOME means none. Raises RuntimeError where nobody knows the user's home.
    """
    chosen = os.environ.get(HOME_VARIABLE)
    if chosen is not None:
        return Path(chosen).expanduser() if chosen else None
    home = Path.home()
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local", "commod", "cache")
    if sys.platform == "darwin":
        return home / "Library" / "Caches" / "commod"
    return Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache", "commod")


@cache
def _machine() -> str:
    """Return a name for what this processor can do: JAX's own key does not look at it.

    A folder may be shared by unlike machines, and code for one may end the process on another.
    """
    known = [platform.machine(), platform.processor(), platform.version()]
    with suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        known = [line for line in lines if line.startswith(("model name", "flags", "Features"))]
        known = [platform.machine(), *sorted(set(known))]
    return hashlib.sha256("\n".join(known).encode()).hexdigest()[:16]


def _forget_first_written(folder: Path) -> None:
    files = list(folder.glob("*-cache"))
    if len(files) <= MOST_PROGRAMS:
        return
    with suppress(OSError):  # another process may be tidying up, too
        files.sort(key=lambda file: file.stat().st_mtime)
        for file in files[:-MOST_PROGRAMS]:
            file.unlink(missing_ok=True)
