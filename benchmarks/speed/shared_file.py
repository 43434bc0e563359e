"""Files that several benchmarks of a run share; commod's interpreter makes each file once.

The module needs only the standard library, because peers read their rows here too. Run as a script,
it makes one file.
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


def shared_file(maker: str, *arguments: str | int, suffix: str = ".pickle") -> Path:
    """Return the path of a file, e.g. `shared_file("tables.rows", 1000, "text")`.

    A separate process makes the file, for two reasons. A process that has made a large table holds
    free memory, which would hide what it needs later. A child process would count the table as its
    own memory.
    """
    folder = Path(os.environ[FOLDER_VARIABLE])
    path = folder / ("-".join([maker, *map(str, arguments)]).replace(" ", "_") + suffix)
    with path.with_name(path.name + ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another process may be making the file
        if not path.exists():
            unfinished = path.with_name("unfinished-" + path.name)
            command = [os.environ[PYTHON_VARIABLE], "-m", "benchmarks.speed.shared_file", maker]
            subprocess.run([*command, str(unfinished), *map(str, arguments)], check=True)
            unfinished.replace(path)
    return path


def main(maker: str, path: str, *arguments: str) -> None:
    """Make one file."""
    module, function = maker.split(".")
    make = getattr(importlib.import_module(f"benchmarks.speed.{module}"), function)
    make(Path(path), *(int(text) if text.isdecimal() else text for text in arguments))


if __name__ == "__main__":
    main(*sys.argv[1:])
