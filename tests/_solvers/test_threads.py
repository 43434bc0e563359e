"""Fits run with one BLAS thread, on any machine, and leave the number of threads as it was."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
from sklearn.linear_model import LogisticRegression
from threadpoolctl import ThreadpoolController, threadpool_limits

from commod._solvers.threads import single_blas_thread
from commod.datasets import make_biased
from quick_updates import quick_control


def n_blas_threads():
    libraries = ThreadpoolController().select(user_api="blas").info()
    return [library["num_threads"] for library in libraries]


def test_fits_in_four_threads_leave_the_number_of_blas_threads_unchanged():
    data = make_biased(300, bias=1.5, random_state=0)
    model = LogisticRegression().fit(data.data, data.target)
    everybody_is_ready = Barrier(4)

    def fit(_):
        everybody_is_ready.wait()
        update = quick_control(model, target=0.8)
        update.fit(data.data, data.target, sensitive_features=data.sensitive_features)

    with threadpool_limits(2, user_api="blas"), ThreadPoolExecutor(4) as pool:
        before = n_blas_threads()
        assert max(before) == 2
        list(pool.map(fit, range(4)))  # which ends last is up to chance: see the last test
        assert n_blas_threads() == before


def test_a_fit_is_the_same_to_the_last_bit_with_one_and_two_threads():
    data = make_biased(20_000, bias=1.5, random_state=0)
    noise = np.random.default_rng(0).normal(size=(20_000, 30))
    X = np.column_stack([data.data.select_dtypes("number"), noise])
    model = LogisticRegression().fit(X[:1_000], data.target[:1_000])

    def points_with(n_threads):
        with threadpool_limits(n_threads, user_api="blas"):
            update = quick_control(model, target=0.8, target_on="new_rows")
            update.fit(X, data.target, sensitive_features=data.sensitive_features)
        return [update.scorecard_.intercept, *update.scorecard_.points]

    assert points_with(1) == points_with(2)


def test_the_limit_holds_until_the_last_search_leaves_in_whatever_thread():
    before = n_blas_threads()
    with ThreadPoolExecutor(1) as one, ThreadPoolExecutor(1) as other:
        one.submit(single_blas_thread.__enter__).result()
        other.submit(single_blas_thread.__enter__).result()
        one.submit(single_blas_thread.__exit__).result()
        assert set(n_blas_threads()) <= {1}
        other.submit(single_blas_thread.__exit__).result()
    assert n_blas_threads() == before
