"""Let a command that is asked to end remove its temporary files first."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn


@contextmanager
def ending_on_sigterm() -> Iterator[None]:
    """Let SIGTERM raise SystemExit(143), so that temporary files are removed on the way out.

    The handler is installed only in the main thread, and only where SIGTERM has no other handler.
    """
    is_free = (
        threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    )
    if is_free:
        signal.signal(signal.SIGTERM, _exit)
    try:
        yield
    finally:
        if is_free:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _exit(number: int, frame: FrameType | None) -> NoReturn:
    sys.exit(128 + number)
