"""Searches run with one BLAS thread and leave the number of threads as it was."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController, threadpool_limits

from commod import ControlledDebiaser, ScoreColumn
from commod._solvers.search.threads import single_blas_thread
from commod.datasets import make_biased


def n_blas_threads():
    libraries = ThreadpoolController().select(user_api="blas").info()
    return [library["num_threads"] for library in libraries]


@pytest.fixture
def two_threads():
    """Two BLAS threads, also on a machine with one processor."""
    with threadpool_limits(2, "blas"):
        yield n_blas_threads()


def test_fits_in_four_threads_leave_the_number_of_blas_threads_unchanged(two_threads):
    data = make_biased(300, bias=1.5, random_state=0)
    rng = np.random.default_rng(0)
    X = data.data.assign(score=rng.random(len(data.data)))

    def fit(target):
        everybody_is_ready.wait()
        update = ControlledDebiaser(ScoreColumn("score"), target=target, sparsity=0)
        return update.fit(X, data.target, sensitive_features=data.sensitive_features)

    everybody_is_ready = Barrier(4)
    with ThreadPoolExecutor(4) as pool:
        for _ in range(4):  # which fit ends last is up to chance
            list(pool.map(fit, (0.75, 0.8, 0.85, 0.9)))
    assert n_blas_threads() == two_threads


def test_the_limit_holds_until_the_last_search_leaves(two_threads):
    with single_blas_thread:
        with single_blas_thread:
            assert set(n_blas_threads()) <= {1}
        assert set(n_blas_threads()) <= {1}
    assert n_blas_threads() == two_threads
