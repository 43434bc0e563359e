"""The fairness that is expected of a new sample, from rates of rows that are new to an update."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commod._statistics.promises import drawn_rates

RATES = st.lists(st.floats(0.1, 0.9), min_size=2, max_size=4)


def value(constraint, rates):
    """Return the fairness of rates (..., n_rate_rows, n_groups)."""
    highest, lowest = rates.max(axis=-1), rates.min(axis=-1)
    if constraint == "demographic_parity":
        return (lowest / highest)[..., 0]
    return (highest - lowest).sum(axis=-1)


def expected_fairness(constraint, sizes, rates):
    """Return the mean fairness of samples with the chance of fit rows and of new people."""
    draws = drawn_rates(np.array(sizes, float), np.array(rates), n_samples=2)
    return value(constraint, draws.T.reshape(-1, *np.shape(rates))).mean()


@given(RATES)
def test_many_people_have_the_measured_fairness(rates):
    sizes = [[10**8] * len(rates)]
    for constraint in ("demographic_parity", "true_positive_rate_parity"):
        expected = expected_fairness(constraint, sizes, [rates])
        assert expected == pytest.approx(value(constraint, np.array([rates])), abs=1e-3)


@given(st.lists(st.floats(0.35, 0.65), min_size=2, max_size=4), st.integers(100, 500))
def test_few_people_are_never_expected_to_be_fairer(rates, n):
    # Rates near 0 and 1 are an exception: chance cannot move them beyond.
    gap = expected_fairness("false_positive_rate_parity", [[n] * len(rates)], [rates])
    assert gap >= value("false_positive_rate_parity", np.array([rates])) - 1e-6


@pytest.mark.parametrize(
    ("constraint", "sizes", "rates"),
    [
        ("demographic_parity", [[400, 150, 200]], [[0.5, 0.4, 0.4]]),
        ("demographic_parity", [[2000, 60]], [[0.3, 0.27]]),
        ("equalized_odds", [[300, 80], [500, 120]], [[0.6, 0.6], [0.2, 0.25]]),
    ],
)
def test_it_is_the_mean_of_samples_where_the_offset_followed_the_chance_of_the_fit_rows(
    constraint, sizes, rates
):
    rng = np.random.default_rng(0)
    sizes, rates = np.array(sizes), np.array(rates)
    # The fit rows had chance, and the offset followed it until the rates were the measured ones.
    # So the true rates are the measured ones less that chance. New people bring their own.
    chance = rng.binomial(sizes, rates, (20_000, *sizes.shape)) / sizes - rates
    truth = np.clip(rates - chance, 0, 1)
    new = rng.binomial(sizes, truth) / sizes
    mean = value(constraint, new).mean()
    assert expected_fairness(constraint, sizes, rates) == pytest.approx(mean, abs=0.01)
