"""Run a blocking call in a thread, so that a signal ends the wait for it within seconds.

Python runs signal handlers in the main thread, between two of its instructions. A call into
another library blocks them. No handler is installed here: the command line has its own.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

Result = TypeVar("Result")

POLL = 0.05  # seconds between two checks of a running call
PATIENCE = 2.0  # seconds that an interrupted call has to end

_abandoned: list[threading.Thread] = []


def run_interruptibly(
    work: Callable[[], Result],
    interrupt: Callable[[], None],
    *,
    poll: Callable[[], None] | None = None,
) -> Result:
    """Return the result of `work`, which runs in its own thread; raise its error.

    Where the wait is broken off, for example by Ctrl-C, `interrupt` is called until the work ends.
    Work that has not ended after `PATIENCE` seconds is abandoned: its thread runs on, and
    `has_abandoned_work` returns True from then on. Do not use again what the work uses.

    Parameters
    ----------
    work : callable
        The blocking call.
    interrupt : callable
        Asks the work to end. It may block, too.
    poll : callable, default=None
        Called in the calling thread every `POLL` seconds.
    """
    outcome: dict[str, Any] = {}
    done = threading.Event()

    def call() -> None:
        try:
            outcome["result"] = work()
        except BaseException as error:
            outcome["error"] = error
        finally:
            done.set()

    thread = _thread(call)
    try:
        thread.start()  # waits until the thread runs, so a signal can break that off, too
        while not done.wait(POLL):
            if poll is not None:
                poll()
    except BaseException:
        _stop(thread, done, interrupt)
        raise
    thread.join()
    if "error" in outcome:
        raise outcome["error"]
    return outcome["result"]


def call_within_patience(function: Callable[[], None]) -> None:
    """Call a function; return after `PATIENCE` seconds at the latest, whether it has ended or not.

    Errors of the function are dropped. Use this to release what abandoned work may still hold.
    """

    def call() -> None:
        with suppress(Exception):
            function()

    thread = _thread(call)
    thread.start()
    thread.join(PATIENCE)


def has_abandoned_work() -> bool:
    """Return whether this process ever abandoned a call, which may still be running."""
    return bool(_abandoned)


def _stop(thread: threading.Thread, done: threading.Event, interrupt: Callable[[], None]) -> None:
    def repeat() -> None:
        while not done.is_set():
            interrupt()
            done.wait(POLL)

    _thread(repeat).start()
    if done.wait(PATIENCE):
        thread.join()
    else:
        _abandoned.append(thread)


def _thread(target: Callable[[], None]) -> threading.Thread:
    return threading.Thread(target=target, name="commod-work", daemon=True)
