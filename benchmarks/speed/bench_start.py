"""Time to start: the help of the command line, and imports in a fresh process.

The start of Python is included. `import commod` must not load JAX.
"""

from __future__ import annotations

import sys
from typing import Any

import pytest
from benchmarks.speed.cases import case
from benchmarks.speed.names import START
from benchmarks.speed.processes import COMMOD, measure_command, run
from benchmarks.speed.settings import current

SETTINGS = current()
WITHOUT_JAX = "import sys, commod; sys.exit('jax' in sys.modules)"
COMMANDS = {
    "commod --help": (COMMOD, "--help"),
    "import commod": (sys.executable, "-c", "import commod"),
    "from commod import COMMOD": (sys.executable, "-c", "from commod import COMMOD"),
    "import sklearn.linear_model": (sys.executable, "-c", "import sklearn.linear_model"),
    "python": (sys.executable, "-c", ""),
}


@pytest.mark.parametrize(
    "name", [case(name, group=START, name=name, turns=SETTINGS.turns) for name in COMMANDS]
)
def test_start(benchmark: Any, name: str) -> None:
    """Time a command in several rounds, because the first round may read from the disk."""
    if name == "import commod":
        run(sys.executable, "-c", WITHOUT_JAX)
    measure_command(benchmark, *COMMANDS[name], rounds=SETTINGS.fits)
