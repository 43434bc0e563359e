"""Tell which step of a fit has begun. Nobody listens, unless somebody asks to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Listener = Callable[[str], None]

_listener: ContextVar[Listener | None] = ContextVar("commod_steps", default=None)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Let `listener` hear the steps of all fits of this thread inside the block.

    Examples
    --------
    >>> with listening(print):
    ...     tell("measuring the update")
    measuring the update
    >>> tell("nobody hears this")
    """
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def tell(step: str) -> None:
    """Tell the listener that a step begins."""
    listener = _listener.get()
    if listener is not None:
        listener(step)
