"""Interruption: work in a thread ends soon after a signal, even if it never answers."""

import threading

import pytest

from commod._io import queries
from commod._io.queries import close_connection, has_abandoned_work, run_interruptibly, run_query


class StubConnection:
    """A DuckDB connection whose query and calls hang until the test lets them go."""

    def __init__(self):
        self.released = threading.Event()
        self.n_interrupts = 0

    def query(self):
        self.released.wait()

    def query_progress(self):
        return 10.0

    def interrupt(self):
        self.n_interrupts += 1
        self.released.wait()

    def close(self):
        self.released.wait()


@pytest.fixture
def stub(monkeypatch):
    monkeypatch.setattr(queries, "PATIENCE", 0.1)
    monkeypatch.setattr(queries, "_abandoned", [])
    connection = StubConnection()
    yield connection
    connection.released.set()


def stop_at_once(share):
    raise KeyboardInterrupt


def test_a_query_whose_interrupt_never_returns_is_abandoned(stub):
    with pytest.raises(KeyboardInterrupt):
        run_query(stub, stub.query, progress=stop_at_once)
    assert stub.n_interrupts == 1 and has_abandoned_work()
    close_connection(stub)  # returns, although the connection does not close


def test_a_signal_while_the_thread_starts_abandons_the_query_too(stub, monkeypatch):
    start, signals = threading.Thread.start, [KeyboardInterrupt]

    def interrupted_start(thread):
        start(thread)
        if signals:
            raise signals.pop()

    monkeypatch.setattr(threading.Thread, "start", interrupted_start)
    with pytest.raises(KeyboardInterrupt):
        run_query(stub, stub.query)
    assert has_abandoned_work()
    close_connection(stub)  # returns, although the connection does not close


def test_a_query_that_answers_an_interrupt_is_waited_for():
    ended, interrupted = [], threading.Event()

    def work():
        interrupted.wait()
        ended.append(True)

    with pytest.raises(ValueError, match="stop"):
        run_interruptibly(work, interrupted.set, poll=lambda: _raise(ValueError("stop")))
    assert ended and not has_abandoned_work()


def _raise(error):
    raise error


def test_results_and_errors_come_through():
    assert run_interruptibly(lambda: 3, lambda: None) == 3
    with pytest.raises(ZeroDivisionError):
        run_interruptibly(lambda: 1 / 0, lambda: None)
