"""Score bounds and promises: against published tables, brute force and exact binomials."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import optimize, stats

from commod._statistics.intervals import (
    _difference_distance,
    _is_significant,
    _ratio_distance,
    as_floats,
    difference_interval,
    difference_null_variance,
    difference_safe_bound,
    difference_upper_bound,
    ratio_lower_bound,
    ratio_null_variance,
    ratio_safe_bound,
)
from commod._statistics.promises import (
    _promised,
    fairness_interval,
    promise_along,
    promised_fairness,
    rows_factor,
)

PARITY, ODDS = "demographic_parity", "equalized_odds"
GAPS = ["true_positive_rate_parity", "false_positive_rate_parity"]
CONSTRAINTS = [PARITY, ODDS, *GAPS]

every_constraint = st.sampled_from(CONSTRAINTS)
quick = settings(deadline=None, max_examples=15)
alphas = st.sampled_from([0.001, 0.025, 0.05, 0.2])


def promise_holds(constraints, sizes, positives, target, confidence):
    """Return whether the promise for one table reaches the target."""
    return promise_along(constraints, [(sizes, positives)], target, confidence) == 0


def ratio_is_above(x1, n1, x2, n2, ratio, alpha):
    """Return where the score test shows that p1 / p2 is above `ratio`."""
    share = np.asarray(ratio) / (1 + np.asarray(ratio))
    return _is_significant(*_ratio_distance(*as_floats(x1, n1, x2, n2), share), alpha)


def difference_is_below(x1, n1, x2, n2, difference, alpha):
    """Return where the score test shows that p1 - p2 is below `difference`."""
    counts = as_floats(x1, n1, x2, n2)
    return _is_significant(*_difference_distance(*counts, np.asarray(difference)), alpha)


def ratio_interval(x1, n1, x2, n2, alpha):
    """Return Koopman's lower and upper bound of p1 / p2, each with error `alpha`."""
    with np.errstate(divide="ignore"):
        high = 1 / ratio_lower_bound(x2, n2, x1, n1, alpha)
    return ratio_lower_bound(x1, n1, x2, n2, alpha), high


@st.composite
def proportions(draw, largest=60):
    """A count and the size it is out of; counts of 0 and of everybody are common."""
    size = draw(st.integers(1, largest))
    count = draw(st.one_of(st.integers(0, size), st.sampled_from([0, size])))
    return count, size


@st.composite
def tables(draw, constraints=PARITY, n_groups=None):
    """`sizes` and `positives` of shape (n_rows, n_groups), no cell empty."""
    n_groups = n_groups or draw(st.integers(2, 4))
    n_rows = 2 if constraints == ODDS else 1
    cells = [[draw(proportions()) for _ in range(n_groups)] for _ in range(n_rows)]
    return np.array([[s for _, s in row] for row in cells]), np.array(
        [[c for c, _ in row] for row in cells]
    )


def fairness(constraints, rates):
    """Return the fairness value of rates of shape (n_rows, n_groups)."""
    if constraints == PARITY:
        return rates.min() / rates.max()
    return (rates.max(axis=1) - rates.min(axis=1)).sum()


def is_fair(constraints, value, target):
    return value >= target if constraints == PARITY else value <= target


def every_two(sizes, positives):
    """Return x1, n1, x2, n2 of every ordered pair of groups, from a list over groups of each."""
    groups = zip(positives, sizes, strict=True)
    return np.array([[*a, *b] for a, b in itertools.permutations(groups, 2)]).T


# ---------------------------------------------------------------------------------------------
# Bounds: against published values, closed forms and brute force


@pytest.mark.parametrize(
    ("counts", "low", "high"),
    [
        # Koopman (1984) prints 2.94 and 7.15; all digits from statsmodels 0.15,
        # confint_proportions_2indep(compare="ratio", method="score", correction=False).
        ((36, 40, 16, 80), 2.9395691922, 7.1522234349),
        ((7, 34, 1, 34), 1.2208528535, 42.5757176098),
        ((460, 1000, 500, 1000), 0.8394863630, 1.0079286939),
        ((5, 56, 0, 29), 0.7256888836, math.inf),
    ],
)
def test_ratio_interval_equals_koopmans(counts, low, high):
    assert ratio_interval(*counts, alpha=0.025) == pytest.approx((low, high), rel=1e-9)


@pytest.mark.parametrize(
    ("counts", "low", "high"),
    [  # Newcombe (1998), Statistics in Medicine 17, table II, method 5 (Mee)
        ((56, 70, 48, 80), 0.0533, 0.3377),
        ((9, 10, 3, 10), 0.1821, 0.8370),
        ((6, 7, 2, 7), 0.0544, 0.8478),
        ((5, 56, 0, 29), -0.0313, 0.1926),
        ((0, 10, 0, 20), -0.1611, 0.2775),
        ((10, 10, 0, 20), 0.7225, 1.0000),
    ],
)
def test_difference_interval_equals_mees(counts, low, high):
    assert difference_interval(*counts, alpha=0.025) == pytest.approx((low, high), abs=5e-5)


@pytest.mark.parametrize("alpha", [0.05, 0.001])
def test_certain_groups_have_wilsons_bound(alpha):
    # With everybody accepted (or nobody), one rate carries all the doubt: Wilson's interval.
    z_square = stats.norm.isf(alpha) ** 2
    wilson = 50 / (50 + z_square)
    assert ratio_lower_bound(50, 50, 80, 80, alpha) == pytest.approx(wilson, rel=1e-9)
    assert difference_upper_bound(0, 50, 0, 80, alpha) == pytest.approx(1 - wilson, rel=1e-9)


def likelihood_is_greatest(counts, line, low, high):
    """Return the p2 of greatest likelihood with p1 = line(p2), by search."""
    x1, n1, x2, n2 = counts

    def cost(p2):
        return -(stats.binom.logpmf(x1, n1, line(p2)) + stats.binom.logpmf(x2, n2, p2))

    return optimize.minimize_scalar(
        cost, bounds=(low, high), method="bounded", options={"xatol": 1e-9}
    ).x


@quick
@given(proportions(), proportions(), st.floats(0.1, 5))
def test_ratio_null_variance_is_at_the_likeliest_rates(first, second, ratio):
    p2 = likelihood_is_greatest((*first, *second), lambda p: ratio * p, 0, min(1, 1 / ratio))
    p1 = ratio * p2
    expected = p1 * (1 - p1) / first[1] + ratio**2 * p2 * (1 - p2) / second[1]
    assert ratio_null_variance(*first, *second, ratio) == pytest.approx(expected, abs=1e-5)


@quick
@given(proportions(), proportions(), st.floats(-0.95, 0.95))
def test_difference_null_variance_is_at_the_likeliest_rates(first, second, difference):
    low, high = max(0, -difference), min(1, 1 - difference)
    p2 = likelihood_is_greatest((*first, *second), lambda p: p + difference, low, high)
    p1 = p2 + difference
    expected = p1 * (1 - p1) / first[1] + p2 * (1 - p2) / second[1]
    variance = difference_null_variance(*first, *second, difference)
    assert variance == pytest.approx(expected, abs=1e-5)


def test_nothing_varies_where_the_difference_leaves_no_choice():
    assert difference_null_variance(10, 10, 0, 10, difference=1) == 0
    assert difference_null_variance(3, 10, 6, 10, difference=-1) == 0


# ---------------------------------------------------------------------------------------------
# Bounds: properties


@quick
@given(proportions(), proportions(), alphas, st.floats(0.01, 10))
def test_a_ratio_passes_its_test_exactly_below_the_bound(first, second, alpha, ratio):
    bound = ratio_lower_bound(*first, *second, alpha)
    assume(abs(ratio - bound) > 1e-6 * ratio)
    assert ratio_is_above(*first, *second, ratio, alpha) == (bound > ratio)


@quick
@given(proportions(), proportions(), alphas, st.floats(-1, 1))
def test_a_difference_passes_its_test_exactly_above_the_bound(first, second, alpha, difference):
    bound = difference_upper_bound(*first, *second, alpha)
    assume(abs(difference - bound) > 1e-6)
    assert difference_is_below(*first, *second, difference, alpha) == (bound < difference)


@quick
@given(proportions(), proportions(), alphas)
def test_bounds_move_with_the_counts(first, second, alpha):
    more, fewer = (min(first[0] + 1, first[1]), first[1]), (max(second[0] - 1, 0), second[1])
    rounding = 1e-8
    for favoured in ((*more, *second), (*first, *fewer)):
        ratio = ratio_lower_bound(*favoured, alpha)
        assert ratio >= ratio_lower_bound(*first, *second, alpha) * (1 - rounding)
        difference = difference_upper_bound(*favoured, alpha)
        assert difference >= difference_upper_bound(*first, *second, alpha) - rounding


@quick
@given(proportions(), proportions())
def test_more_error_and_more_rows_give_tighter_bounds_on_their_side_of_the_estimate(first, second):
    counts = np.array([*first, *second])
    estimate = first[0] / first[1] - second[0] / second[1]
    uppers = [
        difference_upper_bound(*counts, 0.01),
        difference_upper_bound(*counts, 0.1),
        difference_upper_bound(*(3 * counts), 0.1),
        estimate,
    ]
    assert all(a >= b - 1e-9 for a, b in itertools.pairwise(uppers))
    assume(second[0] > 0)
    lowers = [
        ratio_lower_bound(*counts, 0.01),
        ratio_lower_bound(*counts, 0.1),
        ratio_lower_bound(*(3 * counts), 0.1),
        first[0] / first[1] / (second[0] / second[1]),
    ]
    assert all(a <= b * (1 + 1e-9) for a, b in itertools.pairwise(lowers))


@quick
@given(proportions(), proportions(), alphas)
def test_swapping_the_groups_and_counting_the_refused_mirror_a_difference(first, second, alpha):
    low, high = difference_interval(*first, *second, alpha)
    assert difference_interval(*second, *first, alpha) == (-high, -low)
    refused = [(size - count, size) for count, size in (second, first)]
    bound = difference_upper_bound(*refused[0], *refused[1], alpha)
    assert bound == pytest.approx(high, abs=1e-8)


@quick
@given(st.lists(st.tuples(proportions(), proportions()), min_size=1, max_size=5), alphas)
def test_arrays_give_what_their_elements_give(pairs, alpha):
    columns = np.array([[*first, *second] for first, second in pairs]).T
    for bound in (ratio_lower_bound, difference_upper_bound):
        assert bound(*columns, alpha).tolist() == [bound(*pair, alpha) for pair in columns.T]


def test_nobody_positive_leaves_a_ratio_open():
    assert ratio_interval(0, 50, 20, 50, alpha=0.05)[0] == 0
    assert ratio_interval(20, 50, 0, 50, alpha=0.05)[1] == math.inf
    assert ratio_interval(0, 50, 0, 50, alpha=0.05) == (0, math.inf)
    assert not ratio_is_above(0, 50, 0, 50, ratio=0.01, alpha=0.05)


def test_an_empty_group_gives_nan_and_passes_no_test():
    counts = np.array([(0, 0, 3, 5), (3, 5, 0, 0), (0, 0, 0, 0)]).T
    for bounds in (ratio_interval, difference_interval):
        assert np.isnan(bounds(*counts, 0.05)).all()
    assert not ratio_is_above(*counts, 0.01, 0.05).any()
    assert not difference_is_below(*counts, 0.99, 0.05).any()


# ---------------------------------------------------------------------------------------------
# Errors and power of the tests, exactly: every outcome of two binomials, weighted


def outcomes(event, sizes):
    """Return where `event(x1, x2)`, a function of two count arrays, happens."""
    return event(*np.ix_(*(np.arange(size + 1) for size in sizes))).astype(float)


def probability(happens, sizes, rates):
    """Return the probability of an event, from its `outcomes`."""
    first, second = (
        stats.binom.pmf(np.arange(size + 1), size, rate)
        for size, rate in zip(sizes, rates, strict=True)
    )
    return first @ happens @ second


sizes_above_50 = pytest.mark.parametrize("sizes", [(50, 50), (75, 53), (50, 150), (1000, 50)])


@sizes_above_50
def test_a_ratio_at_the_target_seldom_passes(sizes):
    # Worst over a fine grid of rates and fourteen sizes from 50 to 1000: 6.2 %, mean 5.0 %.
    n1, n2 = sizes
    passed = outcomes(lambda x1, x2: ratio_is_above(x1, n1, x2, n2, 0.8, 0.05), sizes)
    errors = [probability(passed, sizes, (0.8 * p, p)) for p in np.linspace(0.25, 1, 16)]
    assert max(errors) < 0.062
    assert 0.04 < np.mean(errors) < 0.055


@sizes_above_50
def test_a_difference_at_the_ceiling_seldom_passes(sizes):
    n1, n2 = sizes
    passed = outcomes(lambda x1, x2: difference_is_below(x1, n1, x2, n2, 0.1, 0.05), sizes)
    errors = [probability(passed, sizes, (p + 0.1, p)) for p in np.linspace(0.2, 0.9, 15)]
    assert max(errors) < 0.065
    assert 0.04 < np.mean(errors) < 0.055


@pytest.mark.parametrize(
    ("sizes", "rates"),
    [
        ((250, 750), (0.7, 0.9)),
        ((750, 250), (0.7, 0.9)),
        ((500, 1500), (0.4, 0.7)),
    ],
)
def test_nine_in_ten_pass_where_the_p_rule_is_2_93_deviations_above_the_target(sizes, rates):
    def promised(x1, x2):
        above = ratio_is_above(x1, sizes[0], x2, sizes[1], 0.8, 0.05)
        return above & ratio_is_above(x2, sizes[1], x1, sizes[0], 0.8, 0.05)

    passed = outcomes(promised, sizes)
    for rate in rates:
        # 2.93 = z(0.95) + z(0.9), and the deviation is that of the log ratio, at the target.
        p1 = 0.8 * rate
        deviation = math.sqrt((1 - p1) / (p1 * sizes[0]) + (1 - rate) / (rate * sizes[1]))
        ratio = 0.8 * math.exp(2.93 * deviation)
        assert 0.9 < probability(passed, sizes, (ratio * rate, rate)) < 0.97


# ---------------------------------------------------------------------------------------------
# Promises


@quick
@given(tables())
def test_a_promised_p_rule_is_the_worst_bound_of_all_ordered_pairs(table):
    sizes, positives = table
    expected = min(ratio_safe_bound(*every_two(sizes[0], positives[0]), 0.05))
    assert promised_fairness(PARITY, sizes, positives, 0.95) == pytest.approx(expected)


@quick
@given(tables(ODDS))
def test_a_promised_disparity_squares_and_adds_the_bounds_of_two_gaps(table):
    def gaps_and_excesses(x1, n1, x2, n2):
        gap = x1 / n1 - x2 / n2
        return list(zip(gap, difference_safe_bound(x1, n1, x2, n2, 0.05) - gap, strict=True))

    rows = [gaps_and_excesses(*every_two(*row)) for row in zip(*table, strict=True)]
    expected = max(
        gap1 + gap2 + math.hypot(excess1, excess2)
        for (gap1, excess1), (gap2, excess2) in itertools.product(*rows)
    )
    assert promised_fairness(ODDS, *table, 0.95) == pytest.approx(expected)
    for name, row, pairs in zip(GAPS, zip(*table, strict=True), rows, strict=True):
        bound = max(gap + excess for gap, excess in pairs)
        assert promised_fairness(name, [row[0]], [row[1]], 0.95) == pytest.approx(bound)


@quick
@given(tables(n_groups=3), st.floats(0.05, 0.95))
def test_a_promise_is_given_when_every_pair_passes_its_test(table, target):
    sizes, positives = table
    assume(abs(promised_fairness(PARITY, sizes, positives, 0.95) - target) > 1e-6)
    passed = ratio_safe_bound(*every_two(sizes[0], positives[0]), 0.05) >= target
    assert promise_holds(PARITY, sizes, positives, target, 0.95) == passed.all()


@pytest.mark.parametrize(
    ("constraints", "sizes", "positives", "fair", "unfair"),
    [
        (PARITY, [[1000, 1000]], [[460, 500]], 0.85, 0.86),
        (GAPS[0], [[1000, 1000]], [[500, 460]], 0.08, 0.07),
        (ODDS, [[1000, 1000]] * 2, [[500, 460], [100, 110]], 0.11, 0.09),
    ],
)
def test_a_promise_is_a_floor_on_the_p_rule_and_a_ceiling_on_gaps(
    constraints, sizes, positives, fair, unfair
):
    assert promise_holds(constraints, sizes, positives, fair, 0.95)
    assert not promise_holds(constraints, sizes, positives, unfair, 0.95)


def test_nothing_is_promised_where_fairness_is_undefined():
    for constraints, empty in itertools.product(CONSTRAINTS, (True, False)):
        n_rows = 2 if constraints == ODDS else 1
        sizes = [[50, 0]] * n_rows if empty else [[50]] * n_rows
        positives = [[25, 0]] * n_rows if empty else [[25]] * n_rows
        loosest = 0 if constraints == PARITY else 2
        assert math.isnan(promised_fairness(constraints, sizes, positives, 0.95))
        assert not promise_holds(constraints, sizes, positives, loosest, 0.95)
        assert np.isnan(fairness_interval(constraints, sizes, positives, 0.95)).all()
        assert math.isnan(rows_factor(constraints, sizes, positives, 0.5, 0.95))


@pytest.mark.parametrize(
    ("accepted", "last"),
    [
        ([490, 450, 420, 480], 1),  # the fourth would pass, but comes after a failure
        ([420, 490, 490], None),
        ([490, 480], 1),
        ([], None),
    ],
)
def test_the_path_ends_at_the_first_failure(accepted, last):
    tables = [([[1000, 1000]], [[count, 500]]) for count in accepted]
    assert promise_along(PARITY, tables, target=0.8, confidence=0.95) == last


def test_few_answers_along_a_path_are_false():
    # Models judged by the same people, from fair to unfair; one lies just below the target.
    rng = np.random.default_rng(7)
    p_rules = np.array([0.98, 0.94, 0.9, 0.86, 0.82, 0.7999, 0.78, 0.7])
    sizes = np.array([[300, 600]])
    n_draws, n_false = 250, 0
    for _ in range(n_draws):
        luck = [np.sort(rng.random(size)) for size in sizes[0]]
        selected = np.searchsorted(luck[0], 0.5 * p_rules), np.searchsorted(luck[1], 0.5)
        tables = [(sizes, [[count, selected[1]]]) for count in selected[0]]
        last = promise_along(PARITY, tables, target=0.8, confidence=0.95)
        n_false += last is not None and p_rules[last] < 0.8
    assert 0.02 * n_draws < n_false <= 0.065 * n_draws


# ---------------------------------------------------------------------------------------------
# Interval


@settings(max_examples=40)
@given(constraints=every_constraint, data=st.data())
def test_the_interval_holds_the_observed_value_and_is_wider_than_the_promise(constraints, data):
    sizes, positives = data.draw(tables(constraints))
    assume(constraints != PARITY or positives.any())
    low, high = fairness_interval(constraints, sizes, positives, 0.95)
    value = fairness(constraints, positives / sizes)
    assert 0 <= low <= value + 1e-9
    assert value - 1e-9 <= high <= (2 if constraints == ODDS else 1)
    promised = promised_fairness(constraints, sizes, positives, 0.95)
    assert low <= promised + 1e-9 if constraints == PARITY else high >= promised - 1e-9


@quick
@given(proportions(), proportions())
def test_two_groups_have_the_folded_interval_of_their_ratio_and_difference(first, second):
    (x1, n1), (x2, n2) = first, second
    low = ratio_safe_bound(x1, n1, x2, n2, 0.025)
    with np.errstate(divide="ignore"):
        high = 1 / ratio_safe_bound(x2, n2, x1, n1, 0.025)
        ends = low, high, 1 / low, 1 / high
    expected = min(ends), 1 if low <= 1 <= high else max(end for end in ends if end <= 1)
    assert fairness_interval(PARITY, [[n1, n2]], [[x1, x2]], 0.95) == pytest.approx(expected)
    low = -difference_safe_bound(x2, n2, x1, n1, 0.025)
    high = difference_safe_bound(x1, n1, x2, n2, 0.025)
    expected = 0 if low <= 0 <= high else min(abs(low), abs(high)), max(abs(low), abs(high))
    assert fairness_interval(GAPS[0], [[n1, n2]], [[x1, x2]], 0.95) == pytest.approx(expected)


@pytest.mark.parametrize("rates", [(0.5, 0.5), (0.48, 0.5), (0.45, 0.5), (0.3, 0.6)])
def test_the_interval_of_two_groups_misses_seldom_at_any_distance_from_equality(rates):
    sizes, value = (60, 150), rates[0] / rates[1]

    def missed(x1, x2):
        low, high = ratio_interval(x1, sizes[0], x2, sizes[1], 0.025)
        with np.errstate(divide="ignore"):
            fair_end = np.minimum(1, np.minimum(high, 1 / low))
            return (np.minimum(low, 1 / high) > value) | (fair_end < value)

    assert probability(outcomes(missed, sizes), sizes, rates) < 0.057


@pytest.mark.parametrize(
    ("constraints", "rates"),
    [
        (PARITY, [[0.5, 0.5, 0.5]]),
        (ODDS, [[0.7, 0.7], [0.2, 0.2]]),
    ],
)
def test_the_interval_of_several_groups_or_cells_is_conservative(constraints, rates):
    rng = np.random.default_rng(3)
    sizes = np.array([[100, 200, 300], [200, 150, 100]])[: len(rates), : len(rates[0])]
    value = fairness(constraints, np.array(rates))
    missed = 0
    for _ in range(100):
        low, high = fairness_interval(constraints, sizes, rng.binomial(sizes, rates), 0.9)
        missed += not low <= value <= high
    assert missed <= 0.1 * 100 + 7  # more than two deviations above 10 %


def test_nobody_selected_tells_nothing():
    assert fairness_interval(PARITY, [[50, 50]], [[0, 0]], 0.95) == (0, 1)
    assert promised_fairness(PARITY, [[50, 50]], [[0, 0]], 0.95) == 0


# ---------------------------------------------------------------------------------------------
# Rows


@pytest.mark.parametrize(
    ("constraints", "rates", "target", "power"),
    [
        (PARITY, [[0.46, 0.5]], 0.8, 0.9),
        (PARITY, [[0.5, 0.5]], 0.8, 0.8),  # may fail in either order
        (PARITY, [[0.81, 0.9]], 0.8, 0.8),
        (PARITY, [[0.45, 0.5, 0.5, 0.5]], 0.8, 0.9),
        (GAPS[0], [[0.7, 0.75, 0.7]], 0.1, 0.8),
        (ODDS, [[0.7, 0.75], [0.2, 0.17]], 0.2, 0.9),
        (ODDS, [[0.5, 0.52], [0.02, 0.01]], 0.2, 0.8),  # one cell has nearly all the doubt
        (ODDS, [[0.7, 0.7, 0.7], [0.2, 0.2, 0.2]], 0.2, 0.9),
    ],
)
def test_with_as_many_rows_the_promise_is_given_as_often_as_asked(
    constraints, rates, target, power
):
    sizes = np.array([[100, 300, 200, 100], [200, 100, 100, 100]])[: len(rates), : len(rates[0])]
    factor = rows_factor(constraints, sizes, sizes * np.array(rates), target, 0.95, power)
    enough = np.round(sizes * factor).astype(int)
    draws = np.random.default_rng(11).binomial(enough, rates, (1500, *enough.shape))
    values = _promised(constraints, np.broadcast_to(enough, draws.shape), draws, alpha=0.05)
    assert np.mean(is_fair(constraints, values, target)) == pytest.approx(power, abs=0.03)


@settings(max_examples=40)
@given(constraints=every_constraint, data=st.data())
def test_a_promise_that_fails_needs_more_rows_and_a_missed_target_endlessly_many(constraints, data):
    sizes, positives = data.draw(tables(constraints))
    target = data.draw(st.sampled_from([0.2, 0.5, 0.8]))
    value = fairness(constraints, positives / sizes) if positives.any() else 0
    factor = rows_factor(constraints, sizes, positives, target, 0.95)
    if not is_fair(constraints, value, target):
        assert factor == math.inf
    elif factor < 1:
        assert promise_holds(constraints, sizes, positives, target, 0.95)


@settings(max_examples=30)
@given(constraints=every_constraint, data=st.data())
def test_twice_the_rows_need_half_the_growth(constraints, data):
    sizes, positives = data.draw(tables(constraints))
    once = rows_factor(constraints, sizes, positives, 0.5, 0.95)
    assert rows_factor(constraints, 2 * sizes, 2 * positives, 0.5, 0.95) == pytest.approx(once / 2)


@pytest.mark.parametrize(
    ("constraints", "positives", "target"), [(PARITY, [[4, 5]], 0.8), (GAPS[0], [[3, 2]], 0.1)]
)
def test_no_rows_show_that_a_value_beats_its_equal(constraints, positives, target):
    # In floats 0.1 - (0.3 - 0.2) is above 0.
    assert rows_factor(constraints, [[10, 10]], positives, target, 0.95) == math.inf
