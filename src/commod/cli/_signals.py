"""End a command after SIGTERM or Ctrl-C: soon, with the right exit code, nothing half-written.

Python runs signal handlers in the main thread, between two of its instructions. A call into
another library can keep them waiting for ever. So a second thread reads the signals, too: Python
writes their numbers into a socket at once (`signal.set_wakeup_fd`). If the main thread does not
end the command in time, the second thread does.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import NoReturn

from commod._io.files import remove_unfinished
from commod._io.queries import has_abandoned_work

INTERRUPTED = 128 + signal.SIGINT  # exit code 130
GRACE = 5.0  # seconds that the main thread has to end the command
SHOW_CURSOR = "\x1b[?25h"  # a progress bar hides it


@contextmanager
def ending_on_signals() -> Iterator[None]:
    """Let SIGTERM and Ctrl-C end the block; use it only in the main program.

    SIGTERM raises SystemExit(143) and Ctrl-C raises KeyboardInterrupt, so that temporary files are
    removed on the way out. A command that has ended after SIGTERM has the exit code 143, whatever
    became of the exception. Handlers are installed only in the main thread, and only where a
    signal has no handler but Python's own.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    watch = _Watch()
    earlier = {
        number: signal.signal(number, watch.handle)
        for number, own in (
            (signal.SIGTERM, signal.SIG_DFL),
            (signal.SIGINT, signal.default_int_handler),
        )
        if signal.getsignal(number) is own
    }
    watch.start()
    try:
        yield
    except SystemExit as stop:
        if stop.code == INTERRUPTED:
            watch.must_end(signal.SIGINT)
        raise
    finally:
        for number, handler in earlier.items():
            signal.signal(number, handler)
        watch.stop()


class _Watch:
    """Record signals, and end the process if the main thread does not."""

    def __init__(self) -> None:
        self._ours, self._theirs = socket.socketpair()
        self._theirs.setblocking(False)
        self._ended = threading.Event()
        self._handled = threading.Event()
        self._final: int | None = None
        self._earlier_fd = -1

    def start(self) -> None:
        """Start reading signals."""
        self._earlier_fd = signal.set_wakeup_fd(self._theirs.fileno(), warn_on_full_buffer=False)
        threading.Thread(target=self._read, name="commod-signals", daemon=True).start()

    def handle(self, number: int, frame: FrameType | None) -> NoReturn:
        """Raise the exception that ends the command."""
        self._handled.set()
        if number == signal.SIGINT:
            raise KeyboardInterrupt
        self.must_end(number)
        sys.exit(128 + number)

    def must_end(self, number: int) -> None:
        """Record that the command ends with the exit code of a signal."""
        self._final = self._final or number

    def stop(self) -> None:
        """Stop reading signals; after one that ends the command, clean up and exit."""
        signal.set_wakeup_fd(self._earlier_fd)
        self._ended.set()
        self._theirs.close()  # ends the thread
        if self._final is not None:
            _clean_up()
            if has_abandoned_work():  # the interpreter would wait for it
                os._exit(128 + self._final)
            sys.exit(128 + self._final)

    def _read(self) -> None:
        """Wait for signals, and then for the main thread."""
        n_interrupts = 0
        with self._ours:
            while numbers := self._ours.recv(1):
                number = numbers[0]
                n_interrupts += number == signal.SIGINT
                if number == signal.SIGTERM or n_interrupts > 1:
                    is_late = not self._ended.wait(GRACE)
                elif number == signal.SIGINT:  # training goes on with what it has learned
                    is_late = not self._handled.wait(GRACE)
                else:
                    continue
                if is_late and not self._ended.is_set():
                    _clean_up()
                    os._exit(128 + number)


def _clean_up() -> None:
    """Remove temporary files and show the cursor of the terminal."""
    remove_unfinished()
    for stream in (sys.stderr, sys.stdout):
        with suppress(OSError, ValueError):
            if stream.isatty():
                os.write(stream.fileno(), SHOW_CURSOR.encode())
                return
