"""Time whole commands from start to end, and measure their peak memory."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

COMMOD = str(Path(sys.executable).with_name("commod"))


def run(*command: str, codes: tuple[int, ...] = (0,)) -> float:
    """Run a command and return its peak memory in gigabytes."""
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)  # it was waited for here, not by Popen
    if child.returncode not in codes:
        raise RuntimeError(f"{' '.join(command[:3])} ended with {child.returncode}")
    return used.ru_maxrss * 1024 / 1e9


def measure_command(
    benchmark: Any, *command: str, rounds: int = 1, codes: tuple[int, ...] = (0,)
) -> None:
    """Time a command with pytest-benchmark, and record its memory."""
    held = []
    benchmark.pedantic(lambda: held.append(run(*command, codes=codes)), rounds=rounds)
    benchmark.extra_info["process_peak_gb"] = max(held)
