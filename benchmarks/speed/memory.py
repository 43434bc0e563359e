"""Peak memory of an action beyond what the process held before, as Linux counts it (VmHWM)."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable
from pathlib import Path
from typing import Any


def held(field: str, process: int | str = "self") -> int:
    """Return VmRSS or VmHWM of a process, in bytes."""
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"This system does not report {field}.")


class Meter:
    """The peak memory of an action beyond what was held before, and of the whole process."""

    def __init__(self) -> None:
        self.peak: int | None = None
        self._before: int | None = None
        self._most = 0

    def open(self) -> None:
        """Start to measure: from here on the peak belongs to the action."""
        gc.collect()
        ctypes.CDLL(None).malloc_trim(0)  # free memory would hide what the action needs
        self._most = held("VmHWM")
        Path("/proc/self/clear_refs").write_text("5")  # the peak starts again from here
        self._before = held("VmRSS")

    def close(self) -> None:
        """Store the peak of the action."""
        if self._before is not None and self.peak is None:
            self.peak = held("VmHWM") - self._before

    @property
    def process_peak(self) -> int:
        """Return the most this process has held, in bytes."""
        return max(self._most, held("VmHWM"))


def measure(
    benchmark: Any,
    action: Callable[[], Any],
    rounds: int,
    before: Callable[[], Any] = lambda: None,
) -> Any:
    """Time an action with pytest-benchmark, record its memory, and return its last result.

    `before` is called before every round; neither its time nor its memory counts.
    """
    meter, results = Meter(), []

    def opened() -> None:
        meter.close()  # memory is that of the first round
        results.clear()  # the next round must not count the result of an earlier one
        before()
        if meter.peak is None:
            meter.open()

    benchmark.pedantic(lambda: results.append(action()), setup=opened, rounds=rounds)
    meter.close()
    benchmark.extra_info.update(
        peak_mb=(meter.peak or 0) / 1e6, process_peak_gb=meter.process_peak / 1e9
    )
    return results[-1]
