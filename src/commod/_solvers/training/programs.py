"""Compile training programs ahead of time and keep them in the user's cache folder.

A program is found in this order:

1. in memory, where this process has used it before;
2. in the cache folder, where an earlier process has stored it (a tenth of a second);
3. by compiling it (a second or two), after which it is stored in the folder.

JAX's configuration is read and never written. Where the user has chosen a compilation cache of
JAX, or has switched it off, JAX compiles as usual and the cache folder of commod is not used.
"""

from __future__ import annotations

import hashlib
import os
import platform
import sys
import tempfile
import zlib
from collections.abc import Callable, Hashable
from contextlib import suppress
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
from jax.experimental.serialize_executable import deserialize_and_load, serialize
from jaxlib.version import __version__ as compiler_version

from commod._io.private_folders import private_path

HOME_VARIABLE = "COMMOD_CACHE_HOME"
SUFFIX = ".program"
MAX_PROGRAMS = 200  # on disk, about 100 kB each; the oldest files are removed first
MAX_IN_MEMORY = 1000


class Signature(NamedTuple):
    """Everything that a compiled program depends on, hashable.

    `tree`, `shapes` (with dtypes) and `device` describe the arguments. `static` holds the names
    and values of static arguments, and `configuration` is JAX's, as text.
    """

    tree: Hashable
    shapes: tuple[tuple[tuple[int, ...], Any], ...]
    device: Any
    static: tuple[tuple[str, Hashable], ...]
    configuration: str


def compiled_program(function: Any, arguments: tuple[Any, ...], **static: Hashable) -> Any:
    """Return a jitted function, compiled for arguments of these shapes and for static arguments.

    The result takes `arguments` only. At least one of their leaves must lie on a device.
    """
    if _user_chose_cache():
        return partial(function, **static)
    leaves, tree = jax.tree.flatten(arguments)
    device = next(leaf for leaf in leaves if isinstance(leaf, jax.Array)).devices().copy().pop()
    shapes = tuple((leaf.shape, leaf.dtype) for leaf in leaves)
    # a context such as jax.enable_x64 sets a value for one thread only: read it as an attribute
    values = sorted(jax.config.values.items())
    configuration = repr([(name, getattr(jax.config, name, value)) for name, value in values])
    signature = Signature(tree, shapes, device, tuple(static.items()), configuration)
    return _program(function, signature)


def _user_chose_cache() -> bool:
    """Return whether JAX has a compilation cache already, or is told to have none."""
    config: Any = jax.config
    return bool(config.jax_compilation_cache_dir) or not config.jax_enable_compilation_cache


@lru_cache(maxsize=MAX_IN_MEMORY)
def _program(function: Any, signature: Signature) -> Callable[..., Any]:
    abstract: Any = jax.ShapeDtypeStruct
    leaves = [abstract(*shape) for shape in signature.shapes]
    arguments = jax.tree.unflatten(signature.tree, leaves)
    lowered = function.lower(*arguments, **dict(signature.static))
    folder = _folder()
    if folder is None:
        return lowered.compile()
    file = folder / f"{_key(lowered, signature)}{SUFFIX}"
    program = _load(file, lowered, signature.device)
    if program is None:
        program = lowered.compile()
        _store(program, file)
        _remove_oldest(folder)
    return program


def _key(lowered: Any, signature: Signature) -> str:
    """Return a digest of the program's text and of everything that the compiler looks at."""
    device = signature.device
    parts = (
        lowered.as_text(),
        jax.__version__,
        device.client.platform_version,
        f"{device!r} {device.device_kind}",
        signature.configuration,
        os.environ.get("XLA_FLAGS", ""),
    )
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


# ---------------------------------------------------------------------------------------------
# Files


def _load(file: Path, lowered: Any, device: Any) -> Callable[..., Any] | None:
    """Return a stored program, or None where there is none that can be used.

    The checksum of zlib tells a damaged or truncated file from a program.
    """
    try:
        data = zlib.decompress(file.read_bytes())
        tree = jax.tree.structure(lowered.args_info)
        return deserialize_and_load(data, tree, lowered.out_tree, execution_devices=[device])
    except Exception:  # whatever is wrong with the file, the program can be compiled
        return None


def _store(program: Any, file: Path) -> None:
    """Write a program under a temporary name and move it to its place: others may be reading."""
    with suppress(Exception):  # a full disk, or a device whose programs cannot be stored
        data = zlib.compress(serialize(program)[0])
        handle, name = tempfile.mkstemp(dir=file.parent)
        try:
            with open(handle, "wb") as temporary:
                temporary.write(data)
            os.replace(name, file)
        finally:
            Path(name).unlink(missing_ok=True)


def _remove_oldest(folder: Path) -> None:
    with suppress(OSError):  # another process may be removing the same files
        files = sorted(folder.glob(f"*{SUFFIX}"), key=lambda file: file.stat().st_mtime)
        for file in files[:-MAX_PROGRAMS]:
            file.unlink(missing_ok=True)


# ---------------------------------------------------------------------------------------------
# The cache folder


def cache_home() -> Path | None:
    """Return the cache folder of commod; None where the user has switched it off.

    1. COMMOD_CACHE_HOME, where it is set; empty means None.
    2. Otherwise a folder in the platform's place for caches.

    Raises RuntimeError where the user's home is unknown.
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


def _folder() -> Path | None:
    """Return the folder for programs of this machine, or None where there can be none."""
    try:
        home = cache_home()
        if home is None:
            return None
        folder = private_path(home / f"programs-{compiler_version}-{_machine()}")
        return folder if folder is not None and os.access(folder, os.W_OK) else None
    except (OSError, RuntimeError):  # training does not need the folder
        return None


@cache
def _machine() -> str:
    """Return a digest of this processor's features.

    Unlike machines may share a folder, and a program for one may end the process on another.
    """
    features = [platform.machine(), platform.processor(), platform.version()]
    with suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        listed = {line for line in lines if line.startswith(("model name", "flags", "Features"))}
        features = [platform.machine(), *sorted(listed)]
    return hashlib.sha256("\n".join(features).encode()).hexdigest()[:16]
