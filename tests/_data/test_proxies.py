"""How well a column alone predicts the group."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commod._data.columns import read_columns
from commod._data.groups import read_groups
from commod._data.proxies import NEAR_COPY_AREA, ProxyTest
from tables_of_cases import every_line

N = 2_000


def column_of(values):
    return read_columns(pd.DataFrame({"code": values}))[0]


def predict(column, *codes):
    return ProxyTest(codes).predict(column)


def groups_of(n=N, k=2, seed=0):
    return np.random.default_rng(seed).integers(0, k, n)


def altered(group, share, seed=1):
    """Return a copy in which a share of the rows has the value of another group."""
    rng = np.random.default_rng(seed)
    rows = rng.choice(len(group), max(1, int(share * len(group))), replace=False)
    copied = group.copy()
    copied[rows] = (copied[rows] + 1) % (group.max() + 1)
    return copied


@every_line(
    "k, share, as_type",
    [(2, 1 / N, str), (3, 0.05, int), (6, 1 / N, float), (2, 0.05, bool), (6, 0.05, bool)],
)
def test_an_altered_copy_of_the_group_is_a_near_copy(k, share, as_type):
    group = groups_of(k=k)
    copied = altered(group, share)
    if as_type is bool and k > 2:
        copied = copied == 1  # tells one group of several
    prediction = predict(column_of(copied.astype(as_type)), group)
    assert prediction.is_near_copy
    assert prediction.area >= 1 - 1.2 * share


def test_each_kind_of_near_copy_is_found():
    group = groups_of(k=4)
    rng = np.random.default_rng(2)
    for values in (
        group + rng.normal(0, 0.2, N),  # a code with noise
        np.array(["x", "x", "y", "y"])[group],  # two groups merged
        np.array(["x", "y", "y", "x"])[group],  # other two groups merged
        np.array(["a", "b", "c", None], dtype=object)[group],  # missing is a value
        np.where(group == 2, np.nan, rng.normal(size=N)),
        np.array([f"town {g}-{i % 40}" for i, g in enumerate(group)]),  # many values for a group
        -np.exp(group + rng.normal(0, 0.1, N)),
        np.where(group == 3, 1e308, rng.normal(size=N)),
    ):
        assert predict(column_of(values), group).is_near_copy


@given(seed=st.integers(0, 10_000), k=st.integers(2, 8), n=st.sampled_from([60, 300, 2000]))
@settings(max_examples=12)
def test_columns_that_do_not_depend_on_the_group_are_no_copies(seed, k, n):
    rng = np.random.default_rng(seed)
    group = rng.choice(k, n, p=rng.dirichlet(np.full(k, 0.6)))
    columns = (
        np.arange(n).astype(str),
        np.arange(n),
        rng.permutation(n),
        rng.integers(0, 400, n).astype(str),
        rng.integers(0, 5, n),
        rng.standard_cauchy(n),
        np.where(rng.random(n) < 0.01, "rare", "common"),
        np.full(n, np.nan),
        np.zeros(n),
    )
    for values in columns:
        assert predict(column_of(values), group).area < NEAR_COPY_AREA


def test_the_area_is_that_of_all_pairs_compared_without_themselves():
    """Brute force: leave out a member and another row, and rank them by the remaining rows."""
    rng = np.random.default_rng(5)
    group = rng.integers(0, 2, 90)
    values = (rng.random(90) * 3 + group).astype(int)
    won, n_pairs = 0.0, 0
    prior = group.mean()
    for i in np.flatnonzero(group == 1):
        for j in np.flatnonzero(group == 0):
            others = np.setdiff1d(np.arange(90), [i, j])
            if values[i] == values[j]:
                won += 0.5
            else:
                shares = []
                for row in (i, j):
                    same = others[values[others] == values[row]]
                    shares.append((group[same].sum() + prior) / (len(same) + 1))
                won += float(shares[0] > shares[1]) + 0.5 * float(shares[0] == shares[1])
            n_pairs += 1
    assert predict(column_of(values), group).area == pytest.approx(won / n_pairs, abs=1e-12)


def test_a_rare_group_of_a_large_table_is_found_in_the_sample():
    group = np.zeros(60_000, dtype=int)
    group[np.arange(0, 60_000, 7)] = 1
    group[[5, 50, 500, *range(1_000, 1_060)]] = 2
    column = column_of(np.where(group == 2, "x", "y"))
    assert predict(column, group).groups == (2,)
    assert predict(column, group).area == 1
    assert not predict(column_of(np.arange(60_000) % 11), group).is_near_copy


def test_part_of_an_intersection_is_enough():
    race, sex = groups_of(seed=1), groups_of(seed=2)
    groups = read_groups(pd.DataFrame({"race": race, "sex": sex}), N)
    column = column_of(altered(sex, 0.01))
    assert predict(column, groups.codes, *groups.parts).area > 0.98


@pytest.mark.parametrize("name", ["compas", "law_school"])
def test_no_column_of_the_documentation_is_a_near_copy(name, request):
    data = request.getfixturevalue(name)
    groups = read_groups(data.sensitive_features, len(data.target))
    for column in read_columns(data.data):
        assert predict(column, groups.codes, *groups.parts).area < 0.8


def test_one_group_is_predicted_by_nothing():
    assert predict(column_of(["x", "y"] * 20), np.zeros(40, dtype=int)).area == 0.5
