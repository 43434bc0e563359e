"""The audit says how well the points of small categories tell the group of their people."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from commod import ScoreColumn, audit, explain
from commod._data.columns import read_columns
from commod._record.explanation import CardLine, Estimate
from commod._reporting.audit.checks import CHECKS, MAX_AREA, SmallCellPoints, checks_of
from quick_updates import quick_control

N, N_TOWNS = 2_000, 50


def rows_of(tells, seed=0):
    random = np.random.RandomState(seed)
    town = random.randint(N_TOWNS, size=N)
    group = random.rand(N) < 0.4 + tells * np.where(np.arange(N_TOWNS) % 2, 1, -1)[town]
    x = random.randn(N) + 0.6 * group
    score = 1 / (1 + np.exp(1 - x))
    X = pd.DataFrame({"x": x, "score": score, "town": np.char.add("t", town.astype(str))})
    return X, np.where(group, "g", "h")


@pytest.fixture(scope="module")
def check():
    """Return the check of an update, fitted and audited on rows whose towns tell so much."""

    def made(tells, **settings):
        X, group = rows_of(tells)
        update = quick_control(ScoreColumn("score"), target=0.8, max_lines=None, **settings).fit(
            X, sensitive_features=group
        )
        why = explain(update, X)
        result = audit(why.y_before, why.y_after, sensitive_features=group, explanation=why)
        return next((check for check in result.checks if check.code == "CM306"), None)

    return made


def test_small_towns_that_tell_the_group_fail_the_check(check):
    answer = check(0.25)
    assert answer.state == "failed"
    assert "The points of categories that fewer than 100 people share predict" in answer.sentence
    assert "people of the audited rows" in answer.sentence


def test_an_area_at_the_bar_is_within_it():
    def state(low, high):
        found = SimpleNamespace(
            rows="rows",
            n=900,
            level=0.95,
            n_in_small_cells=40,
            counted=SimpleNamespace(compared_names=["a"]),
            small_cell_areas=[Estimate(0.5 * (low + high), low, high)],
        )
        (answer,) = checks_of(found, [check for check in CHECKS if check.code == "CM306"])
        return answer.state

    assert state(0.55, MAX_AREA) == "passed"
    assert state(0.55, MAX_AREA + 1e-9) == state(MAX_AREA, 0.7) == "not enough evidence"
    assert state(MAX_AREA + 1e-9, 0.7) == "failed"
    assert state(0.3, 0.35) == "failed"  # who is not in the group is predicted equally well


def test_the_check_is_absent_where_no_small_category_has_points(check):
    assert check(0.25, locked_features=["town"]) is None


def points_of(X, lines):
    cells = SmallCellPoints(lines, len(X))
    for column in read_columns(X):
        cells.add(column)
    return cells


def test_only_points_of_small_categories_count():
    town = ["large"] * 120 + ["small"] * 30 + [None] * 20 + ["new"] * 5
    X = pd.DataFrame({"town": town, "age": [1.0] * 170 + [np.nan] * 5})
    terms = {
        "town = large": ("town", 5.0),
        "town = small": ("town", -1.0),
        "town is missing": ("town", 2.0),
        "age": ("age", 7.0),
        "age is missing": ("age", 0.5),
    }
    lines = [CardLine(term, name, "", p, None, None) for term, (name, p) in terms.items()]
    cells = points_of(X, lines)
    assert cells.points.tolist() == [0.0] * 120 + [-1.0] * 30 + [2.0] * 20 + [0.5] * 5
    assert cells.is_inside.tolist() == [False] * 120 + [True] * 55


def test_the_area_is_that_of_all_pairs():
    random = np.random.RandomState(0)
    town = random.choice(["a", "b", "c"], 60)
    group = random.randint(2, size=60)
    X = pd.DataFrame({"town": town})
    values = {"a": -0.5, "b": 0.1, "c": 1.0}
    lines = [CardLine(f"town = {t}", "town", "", p, None, None) for t, p in values.items()]
    areas = points_of(X, lines).group_areas(group, np.array([True, True]), 0.95)
    push = np.array([-values[t] for t in town])
    pairs = push[group == 1][:, None] - push[group == 0]
    assert areas[1].value == pytest.approx(np.mean((pairs > 0) + 0.5 * (pairs == 0)))
