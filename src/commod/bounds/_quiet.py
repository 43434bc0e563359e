"""Keep a debug line of HiGHS away from the standard output.

HiGHS 1.12, which SciPy 1.17 has, may print a line of its own while it solves an integer programme
(HiGHS issue 2783). No option turns it off, and it would end up in what a program writes.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import tempfile
import threading
from collections.abc import Iterator
from typing import IO

DEBUG_LINE = b"HighsMipSolverData::"
STDOUT = 1  # the file descriptor


class _Diversion:
    """Standard output that goes to a file while at least one thread solves a programme."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.n_inside = 0
        self.original = -1
        self.written: IO[bytes] | None = None

    def enter(self) -> bool:
        """Divert the standard output; return False where there is none."""
        with self.lock:
            if not self.n_inside:
                try:
                    self.original = os.dup(STDOUT)
                except OSError:
                    return False
                self.written = tempfile.TemporaryFile()  # noqa: SIM115 - `leave` closes it
                os.dup2(self.written.fileno(), STDOUT)
            self.n_inside += 1
            return True

    def leave(self) -> None:
        """Restore the standard output, and write what others wrote to it meanwhile."""
        with self.lock:
            self.n_inside -= 1
            if self.n_inside:
                return
            ctypes.CDLL(None).fflush(None)  # HiGHS prints through the buffer of C
            os.dup2(self.original, STDOUT)
            os.close(self.original)
            assert self.written is not None
            with self.written as file:
                file.seek(0)
                others = [line for line in file if not line.startswith(DEBUG_LINE)]
            for line in others:
                os.write(STDOUT, line)


_DIVERSION = _Diversion()


@contextlib.contextmanager
def without_debug_lines() -> Iterator[None]:
    """Drop the debug lines of HiGHS from the standard output; all else is written.

    Nothing is done where a program has no standard output, and on Windows.
    """
    is_diverted = os.name == "posix" and _DIVERSION.enter()
    try:
        yield
    finally:
        if is_diverted:
            _DIVERSION.leave()
