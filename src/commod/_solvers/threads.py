"""Run searches with one BLAS thread and restore the number of threads afterwards."""

from __future__ import annotations

from functools import cache
from threading import Lock

from threadpoolctl import ThreadpoolController


class _SharedThreadLimit:
    """A context manager that several threads may be inside of at the same time.

    The number of BLAS threads belongs to the process. If every search set and restored the number
    by itself, the last one to finish would restore the limit of another. So the first search that
    enters sets the limit, and the last one that leaves restores the number from before.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._n_inside = 0

    def __enter__(self) -> None:
        with self._lock:
            if not self._n_inside:
                self._limits = _controller().limit(limits=1, user_api="blas")
                _release_control()
            self._n_inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._n_inside -= 1
            if not self._n_inside:
                self._limits.restore_original_limits()
                _release_control()


def _release_control() -> None:
    """Let any thread set the number of BLAS threads next.

    threadpoolctl reserves this for the thread that set it first, and ignores the others, until a
    context of that thread ends. The last search to leave may run in another thread.
    """
    with _controller().limit(limits=None):
        pass


@cache
def _controller() -> ThreadpoolController:
    """Return the libraries that are loaded at the first search: NumPy's and SciPy's, which it uses.

    To look for them takes milliseconds, and a fit has many searches.
    """
    return ThreadpoolController()


single_blas_thread = _SharedThreadLimit()  # products this small lose time to more threads
