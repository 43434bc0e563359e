"""describe_groups: figures by hand, few people, every kind of table."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest

from commod.datasets import describe_groups, load_compas
from commod.exceptions import InputError

GROUP = ["a"] * 10 + ["b"] * 6
LABEL = [1] * 3 + [0] * 7 + [1] * 5 + [0]
X = pd.DataFrame({"age": [30.0, None] + [40.0] * 14, "town": ["x"] * 15 + [None]})


def test_figures_are_those_counted_by_hand():
    table = describe_groups(X, LABEL, sensitive_features=GROUP)
    assert table.index.tolist() == ["a", "b", "all"]
    assert table["people"].tolist() == [10, 6, 16]
    assert table["share"].tolist() == [10 / 16, 6 / 16, 1]
    assert table["label 1"].tolist() == [3 / 10, 5 / 6, 8 / 16]
    assert table["missing"].tolist() == [1 / 10, 1 / 6, 2 / 16]
    assert ((table["low"] < table["label 1"]) & (table["label 1"] < table["high"])).all()


def test_rates_of_a_bunch_are_those_that_pandas_counts():
    people = load_compas()
    table = describe_groups(people, pos_label=0)
    rates = (people.target == 0).groupby(people.sensitive_features).mean()
    assert table["label 0"].drop("all").to_dict() == pytest.approx(rates.to_dict())


@pytest.mark.parametrize(
    "convert", [pl.from_pandas, pd.DataFrame.to_numpy], ids=["polars", "numpy"]
)
def test_other_tables_give_the_same_figures(convert):
    expected = describe_groups(X, LABEL, sensitive_features=GROUP)
    table = describe_groups(convert(X), np.array(LABEL), sensitive_features=np.array(GROUP))
    pd.testing.assert_frame_equal(table, expected)


def test_passed_groups_and_labels_win_over_those_of_the_bunch():
    people = load_compas()
    table = describe_groups(people, 1 - people.target, sensitive_features=people.race)
    assert table.index[0] == "African-American"
    assert table.loc["all", "label 1"] == pytest.approx(1 - people.target.mean())


def test_several_columns_are_intersections_with_their_names():
    both = {"sex": ["f", "m"] * 8, "town": ["x"] * 16}
    table = describe_groups(X, sensitive_features=both)
    assert table.index.tolist() == ["sex = f, town = x", "sex = m, town = x", "all"]
    assert table.index.name == "sex, town"
    assert list(table.columns) == ["people", "share", "missing"]


def test_fewer_than_five_people_show_their_size_only_and_are_in_no_total():
    group = ["a"] * 12 + ["b"] * 4
    table = describe_groups(X, LABEL, sensitive_features=group)
    assert table["people"].tolist() == [12, 4, 12]
    assert table.loc["b", ["label 1", "low", "high", "missing"]].isna().all()
    # nothing about the four can be computed from the others
    assert table.loc["all"].drop("share").equals(table.loc["a"].drop("share"))
    other = describe_groups(X, LABEL[:12] + [0] * 4, sensitive_features=group)
    pd.testing.assert_frame_equal(table, other)


def test_people_without_a_group_have_a_line_of_their_own():
    for n_unknown, is_shown in [(4, False), (6, True)]:
        group = ["a"] * (16 - n_unknown) + [None] * n_unknown
        table = describe_groups(X, LABEL, sensitive_features=group)
        assert table.index.tolist() == ["a", "unknown", "all"]
        assert table.loc["unknown", "people"] == n_unknown
        assert table.loc["unknown"].notna().all() == is_shown
        assert table.loc["all", "people"] == (16 if is_shown else 16 - n_unknown)


def test_groups_may_be_called_all_and_unknown():
    group = ["all"] * 6 + ["unknown"] * 10
    table = describe_groups(X, LABEL, sensitive_features=group)
    assert table.index.tolist() == ["unknown", "all", "all_"]
    assert table["people"].tolist() == [10, 6, 16]


def test_names_from_outside_cannot_steer_a_terminal():
    table = describe_groups(X, sensitive_features=["\x1b[2J"] * 16)
    assert "\x1b" not in str(table)


def test_mistakes_are_explained():
    for arguments, message in [
        ((X, LABEL, {}), "pass a Bunch of commod.datasets, or X and sensitive_features="),
        ((X, LABEL, {"sensitive_features": GROUP[1:]}), "sensitive_features has 15 rows"),
        ((X, LABEL[1:], {"sensitive_features": GROUP}), "y has 15 rows"),
        ((X, range(16), {"sensitive_features": GROUP}), "y holds 16 different values"),
        ((X, LABEL, {"sensitive_features": GROUP, "pos_label": 2}), "pos_label=2 is not among"),
    ]:
        *positional, named = arguments
        with pytest.raises(InputError, match=message):
            describe_groups(*positional, **named)


def test_rows_in_another_order_are_refused():
    with pytest.raises(InputError, match="different orders"):
        describe_groups(X, pd.Series(LABEL)[::-1], sensitive_features=GROUP)
