"""People: rows and the lines that count them give the same figures."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commod.bounds._general import fewest_changes
from commod.constraints import parse_constraint
from commod.exceptions import InputError
from commod.metrics._constraint import get_constraint
from commod.metrics._people import People, is_kept, loosened, read_target, strata_of

STATED = [
    "demographic parity >= 0.8",
    "equalized odds <= 0.2",
    "true positive rate parity <= 0.1 and minimum rate >= 0.3",
    "predictive parity <= 0.1",
    "demographic parity >= 0.8 within 'unit' min_rows=1",
    "minimum rate >= 0.3 within 'unit' average min_rows=1 and equalized odds largest <= 0.2",
]
N_GROUPS = 2
CHANCES = np.array([[1, 0], [0.5, 0.5], [0.25, 0.75], [0, 1]])  # of the groups

# group (−1: not known), true label, stratum, weight, decision before and after, chances
person = st.tuples(
    st.integers(-1, N_GROUPS - 1),
    st.booleans(),
    st.integers(0, 1),
    st.sampled_from([0.0, 0.5, 1.0, 2.0]),
    st.booleans(),
    st.booleans(),
    st.integers(0, len(CHANCES) - 1),
)
# one person of each group, label, stratum and decision, so that most figures are defined
EVERYBODY = [
    (group, bool(label), unit, 1.0, bool(decision), bool(decision), 3 * group)
    for group in range(N_GROUPS)
    for label in range(2)
    for unit in range(2)
    for decision in range(2)
]


def people_of(stated, lines, each, weight, *, with_chances):
    """Return people and their decisions before and after; each line stands for `each` people."""
    group, label, unit, _, before, after, chances = (
        np.array(part) for part in zip(*lines, strict=True)
    )
    strata = {
        one.constraint: strata_of(
            one.constraint, unit, ["a", "b"], group, N_GROUPS, label, n_people=each
        )
        for one in stated
        if one.constraint.within is not None
    }
    people = People(
        tuple(one.constraint for one in stated),
        group,
        N_GROUPS,
        label=label,
        weight=weight,
        each=each.astype(float),
        strata=strata,
        probabilities=CHANCES[chances] if with_chances else None,
    )
    return people, before, after


def figures(bounds, people, before, after):
    """Return all figures of a change of decisions, each as an array; None where not defined."""
    fewest = fewest_changes(people, before, bounds)
    found = {
        "sizes": people.sizes,
        "weights": people.weights,
        "counts": people.counts(after),
        "rates": people.rates(after),
        "fairness": people.fairness(after),
        "others": people.other_values(after),
        "n_counted": people.n_counted,
        "reached": people.reached_bounds(after, bounds),
        "fewest": None if fewest is None else (fewest.lower_bound, fewest.is_exact),
    }
    return {name: np.array(value, dtype=float) for name, value in found.items()}


def check_equal(found, expected):
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-12, atol=1e-12, err_msg=name)


@settings(max_examples=40)
@given(
    text=st.sampled_from(STATED),
    rows=st.lists(person, max_size=30),
    is_weighted=st.booleans(),
    with_chances=st.booleans(),
)
def test_rows_and_their_counted_lines_give_equal_figures(text, rows, is_weighted, with_chances):
    stated, rows = parse_constraint(text).parts, [*EVERYBODY, *rows]
    with_chances &= all(one.constraint.within is None for one in stated)
    weight = np.array([row[3] for row in rows]) if is_weighted else np.ones(len(rows))
    lines = sorted({(*row[:3], 0.0, *row[4:]) for row in rows})
    line_of = np.array([lines.index((*row[:3], 0.0, *row[4:])) for row in rows])
    each, total = np.bincount(line_of), np.bincount(line_of, weight)
    by_row = people_of(stated, rows, np.ones(len(rows), int), weight, with_chances=with_chances)
    by_line = people_of(stated, lines, each, total, with_chances=with_chances)
    bounds = [one.bound for one in stated]
    check_equal(figures(bounds, *by_row), figures(bounds, *by_line))


def test_people_of_unknown_groups_count_nowhere():
    stated = parse_constraint("demographic parity >= 0.8").parts
    rows = [*EVERYBODY, (-1, True, 0, 5.0, False, True, 0)]
    ones, weight = np.ones(len(rows), int), np.array([row[3] for row in rows])
    known = people_of(stated, EVERYBODY, ones[:-1], weight[:-1], with_chances=False)
    everybody = people_of(stated, rows, ones, weight, with_chances=False)
    check_equal(figures([0.8], *everybody), figures([0.8], *known))


@pytest.mark.parametrize(("name", "missed"), [("demographic_parity", 0.7), ("equalized_odds", 0.9)])
def test_a_bound_that_is_missed_becomes_the_value_that_was_reached(name, missed):
    constraint = get_constraint(name)
    assert is_kept(constraint, 0.8, 0.8) and not is_kept(constraint, 0.8, missed)
    for value, becomes in ((0.8, 0.8), (missed, missed), (np.nan, 0.8), (None, 0.8)):
        assert loosened(constraint, 0.8, value) == becomes
    assert not is_kept(constraint, None, 0.8) and not is_kept(constraint, 0.8, None)
    assert not is_kept(constraint, 0.8, np.nan)
    assert loosened(constraint, None, 0.5) == 0.5


def test_a_target_is_met_by_every_exact_value_that_rounds_to_it():
    for name, sign in (("demographic_parity", -1), ("equalized_odds", 1)):
        half = Fraction(0.8) / 2 + Fraction(math.nextafter(0.8, sign * math.inf)) / 2
        assert read_target(name, 0.8) == read_target(name, np.float32(0.8)) == half
        assert read_target(name, Fraction(4, 5)) == Fraction(4, 5)
        assert read_target(name, 1) == 1
    assert read_target("equalized_odds", 2) == 2 and read_target("equalized_odds", 0) == 0
    for name, target in (
        ("demographic_parity", 0),
        ("demographic_parity", math.nextafter(1, 2)),
        ("equalized_odds", math.nextafter(2, 3)),
        ("equalized_odds", -1e-300),
        ("equalized_odds", True),
        ("equalized_odds", "0.1"),
    ):
        with pytest.raises(InputError, match="must be a number in"):
            read_target(name, target)
