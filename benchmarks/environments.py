"""Create the environments of other libraries from pinned versions."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent


def python_of(library: str) -> Path:
    """Return the interpreter of a library; create a peer's environment if it is missing."""
    if library == "commod":
        return Path(sys.executable)
    home, python = _home(library), _interpreter(library)
    if not is_ready(library):
        print(f"Installing {library} into {home.name} ...", flush=True)
        subprocess.run([sys.executable, "-m", "venv", "--clear", home], check=True)
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "-r", _versions(library)], check=True)
        _stamp(library).write_text(_versions(library).read_text())
    return python


def is_ready(library: str) -> bool:
    """Return whether an environment exists with the pinned versions."""
    if library == "commod":
        return True
    stamp = _stamp(library)
    return stamp.exists() and stamp.read_text() == _versions(library).read_text()


def _home(library: str) -> Path:
    return ROOT / f".venv-{library}"


def _interpreter(library: str) -> Path:
    folder, suffix = ("Scripts", ".exe") if os.name == "nt" else ("bin", "")
    return _home(library) / folder / f"python{suffix}"


def _versions(library: str) -> Path:
    return HERE / "peers" / f"constraints-{library}.txt"


def _stamp(library: str) -> Path:
    return _home(library) / "installed.txt"
