"""Files that several benchmarks of a run read: made once, by commod's interpreter.

Standard library only: peers read their rows here too. As a script it makes one file.
"""

from __future__ import annotations

import fcntl
import importlib
import os
import subprocess
import sys
from pathlib import Path

FOLDER_VARIABLE = "COMMOD_BENCH_FOLDER"
PYTHON_VARIABLE = "COMMOD_BENCH_PYTHON"


def kept(maker: str, *words: str | int, suffix: str = ".pickle") -> Path:
    """Return the file of a maker and its words, e.g. `kept("tables.rows", 1000, "text")`.

    It is made in a process of its own, because a process that has made a large table would hide
    memory that it needs later, and one that it starts would count the table as its own.
    """
    folder = Path(os.environ[FOLDER_VARIABLE])
    path = folder / ("-".join([maker, *map(str, words)]).replace(" ", "_") + suffix)
    with path.with_name(path.name + ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another process may be making it
        if not path.exists():
            beside = path.with_name("unfinished-" + path.name)
            command = [os.environ[PYTHON_VARIABLE], "-m", "benchmarks.speed.kept", maker]
            subprocess.run([*command, str(beside), *map(str, words)], check=True)
            beside.replace(path)
    return path


def main(maker: str, path: str, *words: str) -> None:
    """Make one file."""
    module, function = maker.split(".")
    make = getattr(importlib.import_module(f"benchmarks.speed.{module}"), function)
    make(Path(path), *(int(word) if word.isdecimal() else word for word in words))


if __name__ == "__main__":
    main(*sys.argv[1:])
