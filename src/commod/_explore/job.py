"""Run one fit beside the page: it tells how long it has run, and it can be stopped."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from commod._explore.worker import Worker, WorkerFailedError, WorkerStoppedError


class FitJob:
    """A fit in the background; `done` gets its result.

    `task` is that of a worker. In an edit, a draft stands for its update: building it takes time,
    so the job does it.
    """

    def __init__(
        self,
        worker: Worker,
        task: tuple[str, Any],
        words: str,
        done: Callable[[FitJob, Any], None],
    ) -> None:
        self.words = words
        self.is_stopped = False
        self._worker, self._task, self._done = worker, task, done
        self._began = time.monotonic()
        self._seconds: float | None = None
        self._error = ""
        self._step = "starting"
        self._thread = threading.Thread(target=self._run, name="commod-fit", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    @property
    def is_running(self) -> bool:
        """Return whether the fit has neither ended nor been stopped."""
        return self._seconds is None and not self.is_stopped

    def stop(self) -> None:
        """End the fit at once; its result is dropped."""
        if self.is_running:
            self.is_stopped = True
            self._worker.stop()

    def wait(self, seconds: float | None = None) -> None:
        """Wait until the fit has ended."""
        self._thread.join(seconds)

    def view(self) -> dict[str, Any]:
        """Return the state of the fit for the page."""
        seconds = time.monotonic() - self._began if self._seconds is None else self._seconds
        state = "stopped" if self.is_stopped else "running" if self.is_running else "done"
        return {
            "state": "failed" if self._error else state,
            "seconds": round(seconds, 1),
            "step": self._step,
            "error": self._error,
        }

    def _is_wanted(self) -> bool:
        return not self.is_stopped

    def _hear(self, step: str) -> None:
        self._step = step

    def _run(self) -> None:
        try:
            kind, given = self._task
            if kind == "edit":
                draft, plan = given
                given = draft.update, plan
            if not self.is_stopped:
                update = self._worker.run((kind, given), self._hear, self._is_wanted)
                self._step = "counting for the page"
                self._done(self, update)
        except WorkerStoppedError:
            if not self.is_stopped:
                self._error = "The process of the fit has ended, perhaps for lack of memory."
        except WorkerFailedError as error:
            self._error = str(error)
        except Exception as error:  # the page must say so, whatever it was
            self._error = f"{type(error).__name__}: {error}"
        finally:
            self._seconds = time.monotonic() - self._began
            if self.is_stopped:
                self._worker.warm_up()
