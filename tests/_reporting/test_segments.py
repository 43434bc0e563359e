"""Segments: a few precise rules, counted correctly, on any kind of table."""

import math

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commod._data.columns import read_columns
from commod._reporting.explain import find_segments
from commod._reporting.explain.conditions import (
    MAX_CATEGORIES,
    RuleCondition,
    RuleSearch,
    bin_columns,
)
from commod._reporting.explain.segments import refine
from commod._text import shorten
from commod.exceptions import InputError
from tables_of_cases import every_line

N = 600


def nobody(n):
    return np.zeros(n, dtype=bool)


def gains(X, gain, **how):
    """Describe gains among people who all had the unfavourable outcome."""
    n = len(gain)
    return find_segments(X, np.asarray(gain), nobody(n), nobody(n), **how)


def holds(condition, column):
    """Return which rows satisfy a condition, computed without the code under test."""
    column = pd.Series(column).reset_index(drop=True)
    missing = column.isna().to_numpy()
    if condition.values is not None:
        inside = column.isin(list(condition.values)).to_numpy() != condition.negated
    else:
        low = -math.inf if condition.low is None else condition.low
        high = math.inf if condition.high is None else condition.high
        inside = np.array([not m and low <= v < high for v, m in zip(column, missing, strict=True)])
    return np.where(missing, condition.missing, inside)


def rows_of(segment, X, favorable_before):
    rows = favorable_before if segment.direction == "loss" else ~favorable_before
    for condition in segment.conditions:
        rows = rows & holds(condition, X[condition.column])
    return rows


def check_counts(X, gain, loss, before, result):
    """Count everything again by applying the conditions."""
    segments, segment_of = result
    again = np.full(len(gain), -1)
    for i, segment in enumerate(segments.segments):
        changed = loss if segment.direction == "loss" else gain
        rows = rows_of(segment, X, before)
        assert segment.size == rows.sum()
        assert segment.n_changed == (rows & changed).sum()
        new = rows & changed & (again < 0)
        assert segment.n_new == new.sum() > 0
        again[new] = i
        assert segment.precision.value == segment.n_changed / segment.size > 0.5
        assert 0 <= segment.precision.low <= segment.precision.value <= segment.precision.high <= 1
        assert segment.coverage == segment.n_changed / changed.sum()
        assert len({c.column for c in segment.conditions}) == len(segment.conditions)
    assert np.array_equal(segment_of, again)
    assert segments.n_rows == len(gain)
    assert (segments.n_gains, segments.n_losses) == (gain.sum(), loss.sum())
    assert segments.n_described_gains == (gain & (again >= 0)).sum()
    assert segments.n_described_losses == (loss & (again >= 0)).sum()
    directions = [segment.direction for segment in segments.segments]
    assert directions == sorted(directions)  # gains first


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "age": rng.integers(18, 70, N),
            "income": rng.lognormal(10, 0.5, N).round(2),
            "job": rng.choice(["x", "y", "z", "u", "v"], N),
            "town": rng.choice([f"town {i}" for i in range(40)], N),
            "is_new": rng.random(N) < 0.3,
            "noise": rng.normal(size=N),
        }
    )
    X.loc[rng.random(N) < 0.15, "income"] = np.nan
    X.loc[rng.random(N) < 0.1, "job"] = None
    return X


# -- planted rules are found ----------------------------------------------------------------------


def test_a_planted_rule_is_found_exactly(table):
    gain = (table["age"] < 35) & (table["job"] == "x")
    segments, segment_of = gains(table, gain)
    (segment,) = segments.segments
    assert set(segment.text.split(" and ")) == {"age < 35", "job = x"}
    assert segment.direction == "gain"
    assert segment.n_changed == segment.size == segments.n_described_gains == gain.sum()
    assert np.array_equal(segment_of == 0, gain)


@every_line(
    "plant, text",
    [
        (lambda X: X["age"] >= 61, "age ≥ 61"),
        (lambda X: (X["age"] >= 30) & (X["age"] < 37), "30 ≤ age < 37"),
        (lambda X: X["visits"] == 4, "visits = 4"),
        (lambda X: X["job"].isin(["x", "z"]), "job is one of x, z"),
        (lambda X: X["job"].notna() & (X["job"] != "u"), "job is known and not u"),
        (lambda X: X["income"].isna(), "income is missing"),
        (lambda X: X["income"].notna(), "income is not missing"),
        (lambda X: X["income"].isna() | (X["income"] < 15000), "income < 15000 (or missing)"),
        (lambda X: X["is_new"], "is_new = True"),
        (lambda X: X["region"] == "region 7", "region = region 7"),
    ],
)
def test_one_condition_in_plain_words(table, plant, text):
    table = table.assign(visits=np.arange(N) % 10)
    table["region"] = [f"region {i % 13}" for i in range(N)]
    gain = plant(table).to_numpy()
    segments, _ = gains(table, gain)
    assert [segment.text for segment in segments.segments] == [text]
    assert segments.segments[0].n_changed == segments.segments[0].size == gain.sum()


def test_a_column_without_missing_values_says_nothing_about_them(table):
    X = table.assign(job=table["job"].fillna("w"))
    segments, _ = gains(X, (X["job"] != "u").to_numpy())
    assert segments.segments[0].text == "job is not u"


def test_two_planted_rules_and_both_directions(table):
    before = np.arange(N) % 2 == 0
    gain = ~before & ((table["age"] >= 60) | table["is_new"]).to_numpy()
    loss = before & (table["age"] < 30).to_numpy()
    found = find_segments(table, gain, loss, before)
    check_counts(table, gain, loss, before, found)
    texts = [(segment.direction, segment.text) for segment in found[0].segments]
    assert set(texts) == {("gain", "age ≥ 60"), ("gain", "is_new = True"), ("loss", "age < 30")}
    assert found[0].n_described_gains == gain.sum()
    assert found[0].n_described_losses == loss.sum()


def test_a_rule_survives_some_noise(table):
    rule = ((table["age"] < 30) & (table["is_new"])).to_numpy()
    rng = np.random.default_rng(1)
    gain = np.where(rng.random(N) < 0.02, ~rule, rule)
    segments, _ = gains(table, gain)
    best = segments.segments[0]
    assert set(best.text.split(" and ")) == {"age < 30", "is_new = True"}
    assert best.precision.value > 0.9


@every_line("share, seed", [(0.03, 0), (0.1, 1), (0.3, 2)])
def test_changes_without_a_pattern_have_no_rule(table, share, seed):
    gain = np.random.default_rng(seed).random(N) < share
    assert gains(table, gain)[0].segments == ()


def test_a_wide_rule_that_hardly_beats_chance_does_not_hide_the_narrow_ones():
    # Most people change, so the rule with the highest coverage is best but says little.
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"claims": rng.poisson(2.5, N), "smoker": rng.random(N) < 0.3})
    gain = (0.6 * X["claims"] + 1.2 * X["smoker"] + rng.normal(0, 0.9, N) > 1).to_numpy()
    found = gains(X, gain)
    check_counts(X, gain, nobody(N), nobody(N), found)
    assert gain.mean() > 0.7
    assert [s.text for s in found[0].segments[:2]] == ["claims ≥ 3", "smoker = True"]
    for segment in found[0].segments[:2]:
        n_wrong = segment.size - segment.n_changed
        assert segment.n_changed * (~gain).sum() >= 2 * n_wrong * gain.sum()


def test_a_wide_list_of_categories_does_not_hide_a_narrow_one():
    # a: most people, a little above the mean; b, c: few, and nearly all of them
    rng = np.random.default_rng(0)
    k = rng.choice(list("abcd"), 2000, p=[0.5, 0.1, 0.1, 0.3])
    share = {"a": 0.6, "b": 0.95, "c": 0.95, "d": 0.3}
    gain = rng.random(2000) < np.array([share[v] for v in k])
    segments, _ = gains(pd.DataFrame({"k": k}), gain)
    assert [segment.text for segment in segments.segments] == ["k is one of b, c"]
    segments, _ = gains(pd.DataFrame({"k": np.where(k == "d", None, k)}), gain)
    assert [segment.text for segment in segments.segments] == ["k is one of b, c"]


def test_a_rule_that_is_wrong_more_often_than_right_describes_nobody(table):
    # Only old people lose, but few of them: significant, and still no description.
    before = np.ones(N, dtype=bool)
    loss = (table["age"] >= 60).to_numpy() & (np.random.default_rng(0).random(N) < 0.2)
    assert 10 < loss.sum() < 0.3 * (table["age"] >= 60).sum()
    X = pd.DataFrame({"is_old": table["age"] >= 60})
    found, segment_of = find_segments(X, nobody(N), loss, before)
    assert found.segments == ()
    assert found.n_described_losses == 0
    assert (segment_of == -1).all()


def test_a_rule_must_be_precise_on_the_sample_and_on_all_rows(monkeypatch):
    # 45% of the rows with k = p change: too few for either of the two limits on precision.
    X = pd.DataFrame({"k": np.repeat(["p", "q"], [2_000, 40_000])})
    gain = (np.arange(len(X)) < 2_000) & (np.arange(len(X)) % 20 < 9)
    assert gain[:2_000].mean() == 0.45
    monkeypatch.setattr("commod._reporting.explain.conditions.MIN_PRECISION", 0.4)
    assert gains(X, gain)[0].segments == ()
    monkeypatch.setattr("commod._reporting.explain.segments.MIN_PRECISION", 0.4)
    assert gains(X, gain)[0].segments[0].text == "k = p"


@every_line(
    "value, text",
    [
        ("a, b", "k = “a, b”"),
        ("salt and pepper", "k = “salt and pepper”"),
        ("one or two", "k = “one or two”"),
        ("x=1", "k = “x=1”"),
        ("missing", "k = “missing”"),
        ("", "k = “”"),
        (" ", "k = “ ”"),
        ("7", "k = “7”"),
        ("1e5", "k = “1e5”"),
        ("Andorra la Vella", "k = Andorra la Vella"),
        (True, "k = True"),
    ],
)
def test_a_value_that_could_be_misread_is_quoted(value, text):
    others = [False] * 40 if value is True else ["u", "v"] * 20
    X = pd.DataFrame({"k": [value] * 20 + others})
    assert gains(X, np.arange(60) < 20)[0].segments[0].text == text


def test_a_column_whose_name_is_a_number_is_called_a_column():
    x = np.arange(200)
    X = pd.DataFrame({0: x % 4, 1: x // 40, "2.5": x % 2})
    texts = [s.text for s in gains(X, (x % 4 == 2) & (x >= 80))[0].segments]
    assert set(texts[0].split(" and ")) == {"column 0 = 2", "column 1 ≥ 2"}
    assert gains(X, x % 2 == 1)[0].segments[0].text == "column 2.5 = 1"


def test_rules_and_conditions_are_few(table, monkeypatch):
    gain = ((table["age"] * 1.0 + 20 * table["noise"]) > 60).to_numpy()
    more, _ = gains(table, gain)
    assert len(more.segments) <= 4
    monkeypatch.setattr("commod._reporting.explain.segments.MAX_SEGMENTS", 1)
    monkeypatch.setattr("commod._reporting.explain.segments.MAX_CONDITIONS", 1)
    segments, _ = gains(table, gain)
    assert len(segments.segments) == 1
    assert len(segments.segments[0].conditions) == 1
    assert more.n_described_gains > segments.n_described_gains


def test_refining_drops_a_useless_condition_and_replaces_a_wrong_one(table):
    gain = ((table["age"] < 25) & table["is_new"]).to_numpy()
    binned = bin_columns(read_columns(table[["age", "noise", "is_new"]]), np.ones(N))
    search = RuleSearch(binned, gain, ~gain, (1.0, 1.0))
    conditions = (
        RuleCondition(0, 1.0, high=40.0),
        RuleCondition(1, 1.0, high=2.5),
        RuleCondition(2, 1.0, bins=(1,)),
    )
    rule = refine(search, search.rule(conditions))
    assert {condition.column for condition in rule.conditions} == {0, 2}
    assert rule.conditions[0].high == 25.0
    assert np.array_equal(rule.rows, gain)


def test_every_rule_adds_coverage_and_precision(table):
    gain = ((table["age"] * 1.0 + 20 * table["noise"]) > 60).to_numpy()
    segments, _ = gains(table, gain)
    for segment in segments.segments:
        assert segment.n_new >= 0.02 * gain.sum()
        assert segment.precision.value > 2 * gain.mean()
        assert len({c.column for c in segment.conditions}) == len(segment.conditions) <= 3


# -- the numbers ----------------------------------------------------------------------------------

row = st.tuples(
    st.one_of(st.none(), st.integers(-3, 12).map(float), st.sampled_from([0.1, 2.5, 1e9])),
    st.one_of(st.none(), st.sampled_from(["a", "b", "", "c, d", "1"])),
    st.booleans(),
    st.booleans(),
    st.booleans(),
)


@settings(max_examples=10)
@given(st.lists(row, min_size=1, max_size=60))
def test_counts_equal_those_of_the_conditions_applied_again(rows):
    x, group, flag, before, changed = (list(column) for column in zip(*rows, strict=True))
    X = pd.DataFrame({"x": pd.Series(x, dtype=float), "group": pd.Series(group, dtype=object)})
    X["flag"] = flag
    before, changed = np.array(before), np.array(changed)
    gain, loss = changed & ~before, changed & before
    check_counts(X, gain, loss, before, find_segments(X, gain, loss, before))


@settings(max_examples=8)
@given(st.integers(0, 10_000), st.sampled_from([0.0, 0.02, 0.1]), st.integers(80, 400))
def test_counts_of_rules_that_describe_something(seed, noise, n):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"x": rng.normal(size=n).round(1), "k": rng.integers(0, 6, n)})
    X["group"] = rng.choice(["a", "b", "c", "d"], n)
    X.loc[rng.random(n) < 0.1, "x"] = np.nan
    X.loc[rng.random(n) < 0.1, "group"] = None
    before = rng.random(n) < 0.3
    rule = (X["x"].fillna(rng.choice([-9, 9])) < rng.normal()) & (
        X["group"] != rng.choice(list("abc"))
    )
    changed = rule.to_numpy() ^ (rng.random(n) < noise)
    gain, loss = changed & ~before, changed & before
    found = find_segments(X, gain, loss, before)
    check_counts(X, gain, loss, before, found)
    if not noise and 30 < gain.sum() < 0.4 * (~before).sum():
        assert found[0].n_described_gains > 0.5 * gain.sum()


def test_the_interval_is_wilsons_at_the_level(table):
    from scipy.stats import binomtest

    gain = ((table["age"] * 1.0 + 20 * table["noise"]) > 60).to_numpy()
    for level in (0.9, 0.95):
        segment = gains(table, gain, level=level)[0].segments[0]
        test = binomtest(segment.n_changed, segment.size)
        wilson = test.proportion_ci(level, method="wilson")
        assert segment.precision.low == pytest.approx(wilson.low)
        assert segment.precision.high == pytest.approx(wilson.high)


def test_many_rows_are_sampled_and_counted_in_full(monkeypatch):
    rng = np.random.default_rng(0)
    n = 90_000
    X = pd.DataFrame({"age": rng.integers(18, 80, n), "job": rng.choice(list("abcdef"), n)})
    X["noise"] = rng.normal(size=n)
    before = rng.random(n) < 0.5
    changed = ((X["age"] < 22) & (X["job"] == "b")).to_numpy()
    gain, loss = changed & ~before, changed & before & (X["noise"] > 0).to_numpy()
    found = find_segments(X, gain, loss, before)
    check_counts(X, gain, loss, before, found)
    first, second = found[0].segments
    assert set(first.text.split(" and ")) == {"age < 22", "job = b"}
    assert first.n_changed == first.size == gain.sum()
    assert second.n_changed == loss.sum()
    again = find_segments(X, gain, loss, before)
    assert again[0] == found[0]
    monkeypatch.setattr("commod._reporting.explain.segments.SEED", 1)
    other = find_segments(X, gain, loss, before)[0]
    assert other.segments[0] == first


# -- any table ------------------------------------------------------------------------------------


def test_pandas_polars_arrow_and_arrays_give_the_same_segments(table):
    gain = ((table["age"] < 30) & (table["income"] < 30000)).to_numpy()
    pandas, of_pandas = gains(table, gain)
    polars, of_polars = gains(pl.from_pandas(table), gain)
    arrow, _ = gains(pl.from_pandas(table).to_arrow(), gain)
    assert pandas == polars == arrow
    assert np.array_equal(of_pandas, of_polars)
    numbers = table[["age", "income"]].to_numpy()
    array, of_array = gains(numbers, gain)
    assert np.array_equal(of_pandas, of_array)
    named = array.segments[0].text.replace("x0", "age").replace("x1", "income")
    assert named == pandas.segments[0].text
    nested, _ = gains(numbers.tolist(), gain)
    assert nested == array


def test_the_order_of_rows_and_of_columns_does_not_matter(table):
    rng = np.random.default_rng(0)
    gain = ((table["age"] * 1.0 + 20 * table["noise"]) > 60).to_numpy()
    found, segment_of = gains(table, gain)
    turned = rng.permutation(N)
    again, turned_of = gains(table.iloc[turned], gain[turned])
    assert again == found
    assert np.array_equal(turned_of, segment_of[turned])
    codes = pd.DataFrame({"code": [f"c{i % 24}" for i in range(N)]})  # more than can be listed
    chosen, _ = gains(codes, np.arange(N) % 24 < 12)
    again, _ = gains(codes.iloc[turned], (np.arange(N) % 24 < 12)[turned])
    assert chosen == again
    assert len(chosen.segments[0].conditions[0].values) == MAX_CATEGORIES
    mirrored, _ = gains(table[table.columns[::-1]], gain)
    assert mirrored.n_described_gains == found.n_described_gains


def test_nobody_changes_and_everybody_changes(table):
    none, of_none = gains(table, nobody(N))
    assert none.segments == ()
    assert (of_none == -1).all()
    before = np.arange(N) % 3 == 0
    found, _ = find_segments(table, ~before, nobody(N), before)
    (segment,) = found.segments
    assert (segment.text, segment.conditions) == ("everyone", ())
    assert segment.size == segment.n_changed == (~before).sum()


@every_line("n", [1, 2, 3, 8])
def test_a_handful_of_rows(n):
    X = pd.DataFrame({"a": np.arange(n), "b": list("abcdefgh")[:n]})
    everyone = gains(X, np.ones(n, dtype=bool))[0].segments[0]
    assert (everyone.text, everyone.size) == ("everyone", n)
    one = np.arange(n) == 0
    check_counts(X, one, nobody(n), nobody(n), gains(X, one))


def test_no_rule_singles_out_a_few_people(table):
    gain = np.arange(N) < 19
    X = table.assign(who=[f"person {i}" for i in range(N)], id=np.arange(N))
    X["rare"] = np.where(gain, "rare", "usual")
    assert gains(X, gain)[0].segments == ()
    X["rare"] = np.where(np.arange(N) < 20, "rare", "usual")
    assert gains(X.drop(columns="id"), np.arange(N) < 20)[0].segments[0].text == "rare = rare"


def test_no_rule_names_a_category_or_missing_values_of_a_few_people():
    # 100 people change: 19 of each of four towns, 19 without a town, and 5 others
    town = np.repeat(["a", "b", "c", "d", None, "e", "f"], [19, 19, 19, 19, 19, 305, 200])
    X = pd.DataFrame({"town": town})
    changed = np.arange(600) < 100
    for segment in gains(X, changed)[0].segments:
        assert segment.text == "town is not one of e, f"
    X["town"] = np.where(pd.isna(town), "e", town)
    X.loc[:18, "town"] = None
    X["x"] = np.where(np.arange(600) < 19, np.nan, np.arange(600.0))
    assert not [s for s in gains(X, changed)[0].segments if "missing" in s.text]


def test_constant_empty_and_identifying_columns_are_in_no_rule(table):
    X = table.assign(
        constant=1.0,
        empty=np.nan,
        nothing=None,
        one_word="same",
        who=[f"person {i}" for i in range(N)],
        code=[f"c{i % 150}" for i in range(N)],
    )
    gain = ((X["age"] < 25) | (X["who"].isin(X["who"][:60]))).to_numpy()
    found = gains(X, gain)
    check_counts(X, gain, nobody(N), nobody(N), found)
    for segment in found[0].segments:
        for condition in segment.conditions:
            assert condition.column not in ("constant", "empty", "nothing", "one_word", "who")
            assert len(condition.values or ()) <= MAX_CATEGORIES


def test_many_categories_never_become_a_long_list():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 5000, 20_000)
    X = pd.DataFrame({"code": [f"c{i}" for i in codes], "x": rng.normal(size=20_000)})
    found = gains(X, codes < 700)
    for segment in found[0].segments:
        for condition in segment.conditions:
            assert len(condition.values or ()) <= MAX_CATEGORIES


def test_columns_that_cannot_be_read_are_in_no_rule(table):
    gain = (table["age"] < 25).to_numpy()
    X = table.assign(
        born=pd.Timestamp("2026-01-01") - pd.to_timedelta(table["age"] * 365, unit="D"),
        nested=[[age] for age in table["age"]],
        endless=np.where(gain, np.inf, 0.0),
    )
    assert gains(X, gain)[0].segments[0].text == "age < 25"
    frame = pl.from_pandas(table).with_columns(
        born=pl.lit("2026-01-01").str.to_date(), nested=pl.concat_list("age", "noise")
    )
    assert gains(frame, gain)[0].segments[0].text == "age < 25"
    only = X[["born", "nested"]]
    assert gains(only, gain)[0].segments == ()


def test_skipped_columns_are_in_no_rule(table):
    gain = (table["age"] < 25).to_numpy()
    for segment in gains(table, gain, skip=["age"])[0].segments:
        assert all(condition.column != "age" for condition in segment.conditions)


def test_names_and_values_are_kept_as_they_came():
    long = "<script>" + 10_000 * "x" + "\u202e'\"=1+1"
    X = pd.DataFrame({long: [0, 1] * 50, "v": ["🙂", long] * 50})
    segments, _ = gains(X, np.arange(100) % 2 == 0)
    (segment,) = segments.segments
    assert segment.text in (f"{shorten(long)} = 0", "v = 🙂")
    assert segment.conditions[0].column in X.columns


def test_an_exact_edge_is_not_rounded_away():
    x = np.random.default_rng(0).random(5000)
    segments, _ = gains(x[:, None], x < 0.6137)
    assert segments.segments[0].n_changed == segments.segments[0].size == (x < 0.6137).sum()


def test_numbers_without_noise():
    x = np.linspace(0, 1, 1001) * 0.3 + 0.1
    segments, _ = gains(x[:, None], x < 0.2)
    assert segments.segments[0].text == "x0 < 0.2"
    big = np.arange(1000) * 10_000.0
    segments, _ = gains(big[:, None], big >= 5_000_000)
    assert segments.segments[0].text == "x0 ≥ 5000000"


@pytest.mark.parametrize("seed", range(4))  # the odd value is in the sample or not
def test_a_column_that_mixes_numbers_and_text_beyond_the_sample(seed, monkeypatch):
    monkeypatch.setattr("commod._reporting.explain.segments.SEED", seed)
    n = 60_000
    x = np.arange(n) % 50
    X = pd.DataFrame({"mixed": pd.Series(x.tolist(), dtype=object)})
    X.loc[n - 1, "mixed"] = "unknown"
    segments, _ = gains(X, x < 5)
    (segment,) = segments.segments
    assert segment.n_changed == segment.size == (x < 5).sum()


@pytest.mark.parametrize("seed", range(4))
def test_a_column_that_cannot_be_read_beyond_the_sample(seed, monkeypatch):
    monkeypatch.setattr("commod._reporting.explain.segments.SEED", seed)
    n = 60_000
    x = np.arange(n) % 50
    X = pd.DataFrame({"x": x * 1.0, "y": x // 5})
    X.loc[n - 1, "x"] = np.inf
    found = gains(X, x < 5)
    assert all(s.text == "y = 0" for s in found[0].segments)
    check_counts(X, x < 5, nobody(n), nobody(n), found)


def test_rare_changes_are_weighted_down_where_they_are_sampled_more():
    # All 200 rows of p change, and a tenth of q. In the sample half of q seems to change.
    X = pd.DataFrame({"k": np.repeat(["p", "q", "r"], [200, 8_000, 191_800])})
    gain = np.arange(len(X)) < 1_000
    segments, _ = gains(X, gain)
    assert segments.segments[0].text == "k = p"


def test_what_is_no_table_is_refused():
    with pytest.raises(InputError, match="must be a table"):
        find_segments(np.arange(3), nobody(3), nobody(3), nobody(3))
