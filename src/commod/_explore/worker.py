"""Fit updates in a process of its own, which can be stopped at any time.

The process reads tasks from its standard input and writes results to its standard output, both as
pickles with their length in front. Only the page's own process holds the two pipes.
"""

from __future__ import annotations

import contextlib
import copy
import os
import pickle
import struct
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import IO, Any

import pandas as pd

from commod._data.base_model import ScoreColumn
from commod._explore.edits import FittedRows, PeopleOfFit, build, without_warnings
from commod.exceptions import CommodError
from commod.updates import ControlledDebiaser
from commod.updates._edit import EditPlan
from commod.updates._interface import Listener, listening, tell

_LENGTH = struct.Struct(">Q")
STARTING = 60.0  # seconds that a process may take to start and to read the rows
ENDING = 5.0  # seconds that a process may take to end after it has closed its pipes


class WorkerStoppedError(Exception):
    """The process has ended before its task."""


class WorkerFailedError(Exception):
    """The task has failed; the message says why."""


def send(stream: IO[bytes], message: Any) -> None:
    """Write one message."""
    data = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
    stream.write(_LENGTH.pack(len(data)))
    stream.write(data)
    stream.flush()


def receive(stream: IO[bytes]) -> Any:
    """Read one message; EOFError where the other side is gone."""
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        raise EOFError
    (length,) = _LENGTH.unpack(head)
    data = stream.read(length)
    if len(data) < length:
        raise EOFError
    return pickle.loads(data)


# ---------------------------------------------------------------------------------------------
# Tasks


def run_task(task: tuple[str, Any], people: PeopleOfFit) -> Any:
    """Return the update that a task asks for: a fit, or an edit that fits terms again."""
    kind, given = task
    tell("reading the rows")
    with without_warnings():  # the page shows the status
        if kind == "fit":
            X, y, groups = people
            return given.fit(X, y, sensitive_features=groups)
        update, plan = given
        assert isinstance(plan, EditPlan)
        return build(update, FittedRows(update, people), plan)


def without_model(update: ControlledDebiaser) -> ControlledDebiaser:
    """Return a copy of an update without its base model, which may be large."""
    return with_model(update, None)


def with_model(update: ControlledDebiaser, estimator: Any) -> ControlledDebiaser:
    """Return a copy of an update, and of those before its edits, with a base model."""
    copied = copy.copy(update)
    copied.estimator = estimator
    if "_params_of_fit" in vars(copied):
        copied._params_of_fit = {**copied._params_of_fit, "estimator": estimator}
    if copied._earlier_update is not None:
        copied._earlier_update = with_model(copied._earlier_update, estimator)
    return copied


# ---------------------------------------------------------------------------------------------
# The page's side


def ignore_step(step: str) -> None:
    """Hear a step of a fit and do nothing."""


def always() -> bool:
    """Return that a task is wanted."""
    return True


class Worker:
    """A process that has the rows and runs one task at a time.

    Where rows or base model cannot be sent to a process, tasks run in the page's own process. They
    cannot be stopped there: their result is dropped.
    """

    def __init__(self, people: PeopleOfFit, estimator: Any) -> None:
        self._people, self._estimator = people, estimator
        self._process: subprocess.Popen[bytes] | None = None
        self._ready: threading.Thread | None = None
        self._can_send = True
        self._lock = threading.Lock()

    def warm_up(self) -> None:
        """Start the process and send the rows, without waiting for it."""
        with self._lock:
            if self._process is not None or not self._can_send:
                return
            self._process = _start()
            ready = threading.Thread(target=self._send_rows, args=(self._process,), daemon=True)
            self._ready = ready
            ready.start()

    def _send_rows(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None and process.stdout is not None
        try:
            send(process.stdin, (self._people, self._estimator))
            if receive(process.stdout) != "ready":
                raise TypeError
        except Exception as error:  # a model may refuse to be sent in any way
            if self._process is process:  # otherwise somebody stopped it, and closed its pipes
                self._store_can_send(process, error)

    def _store_can_send(self, process: subprocess.Popen[bytes], error: Exception) -> None:
        """Store whether rows and base model can be sent, after an error of the attempt to send."""
        if not isinstance(error, EOFError | OSError):
            process.kill()
            self._can_send = False
            return
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(ENDING)
        if process.poll() not in (None, -9, -15):  # it was not killed: it cannot read the model
            self._can_send = False

    def run(
        self,
        task: tuple[str, Any],
        listener: Listener = ignore_step,
        is_wanted: Callable[[], bool] = always,
    ) -> Any:
        """Return the result of a task; WorkerStoppedError where somebody stops it meanwhile.

        `listener` hears each step of the fit as it begins. Whoever stops a task must first let
        `is_wanted` return False: the task then never begins in another process.
        """
        process = self._ready_process(is_wanted)
        if process is None:
            return self._run_here(task, listener)
        assert process.stdin is not None and process.stdout is not None
        try:
            send(process.stdin, _without_models(task))
            state, result = receive(process.stdout)
            while state == "step":
                listener(result)
                state, result = receive(process.stdout)
        except (EOFError, OSError, ValueError):  # ValueError: its pipes are closed already
            self._end(process)
            raise WorkerStoppedError from None
        if state == "failed":
            raise WorkerFailedError(result)
        return with_model(result, self._estimator)

    def _ready_process(self, is_wanted: Callable[[], bool]) -> subprocess.Popen[bytes] | None:
        """Return the process once it has the rows; None where it cannot have them."""
        self.warm_up()
        with self._lock:
            process, ready = self._process, self._ready
        if process is not None and ready is not None:
            ready.join(STARTING)
        # Checked after the process is known: a later stop ends this very process.
        is_ended = process is None or self._process is not process
        if not is_wanted() or (is_ended and self._can_send):
            raise WorkerStoppedError
        if process is None or not self._can_send:
            self.stop()
            return None
        if process.poll() is not None or (ready is not None and ready.is_alive()):
            self._end(process)
            return None
        return process

    def _run_here(self, task: tuple[str, Any], listener: Listener) -> Any:
        try:
            with listening(listener):
                return run_task(task, self._people)
        except CommodError as error:
            raise WorkerFailedError(str(error)) from None

    def stop(self) -> None:
        """End the process at once; the next task starts another one."""
        process = self._process
        if process is not None:
            self._end(process)

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        """End one process; another one that was started meanwhile goes on."""
        with self._lock:
            if self._process is process:
                self._process = self._ready = None
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):  # data for a process that is gone
                    stream.close()


def _without_models(task: tuple[str, Any]) -> tuple[str, Any]:
    kind, given = task
    if kind == "fit":
        return kind, without_model(given)
    update, plan = given
    return kind, (without_model(update), plan)


def _start() -> subprocess.Popen[bytes]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return subprocess.Popen(
        [sys.executable, "-c", "from commod._explore.worker import main; main()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment,
        start_new_session=True,  # Ctrl-C is for the page, which then ends this process
    )


# ---------------------------------------------------------------------------------------------
# The process's side


def serve(tasks: IO[bytes], results: IO[bytes]) -> None:
    """Run tasks until the page is gone."""
    try:
        people, estimator = receive(tasks)
        send(results, "ready")
        _fit_anything()
        while True:
            task = receive(tasks)
            with listening(lambda step: send(results, ("step", step))):
                outcome = _outcome(task, people, estimator)
            send(results, outcome)
    except EOFError:
        return


def _fit_anything() -> None:
    """Fit a few made-up rows: the first fit of a process loads many modules."""
    score = [i / 40 for i in range(1, 40)] * 4
    X = {"score": score, "x": [i % 7 for i in range(len(score))]}
    groups = ["a" if (i % 7) * (i % 40) > 60 else "b" for i in range(len(score))]
    update = ControlledDebiaser(ScoreColumn("score"), min_group_size=5, target_on="fit_rows")
    with without_warnings(), contextlib.suppress(CommodError):
        update.fit(pd.DataFrame(X), sensitive_features=groups)


def _outcome(task: tuple[str, Any], people: PeopleOfFit, estimator: Any) -> tuple[str, Any]:
    kind, given = task
    try:
        if kind == "fit":
            task = kind, with_model(given, estimator)
        else:
            task = kind, (with_model(given[0], estimator), given[1])
        return "done", without_model(run_task(task, people))
    except CommodError as error:
        return "failed", str(error)
    except Exception as error:  # whatever a base model raises: the process goes on
        return "failed", f"{type(error).__name__}: {error}"


def main() -> None:
    """Serve on the standard streams; what a model prints goes to standard error."""
    tasks, results = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    serve(tasks, results)
