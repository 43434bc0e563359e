"""The cut of edited points is counted on values of rows that points have not seen."""

import warnings

import pytest
from sklearn.linear_model import LogisticRegression

from commod import ControlledDebiaser, Patch
from commod.datasets import make_biased
from commod.edit import Cap
from commod.exceptions import TargetWarning

N = 1000


def fitted(seed, **parameters):
    data = make_biased(2 * N, bias=1.5, random_state=seed)
    model = LogisticRegression().fit(data.data[:N], data.target[:N])
    rows = {
        "X": data.data[N:],
        "y": data.target[N:],
        "sensitive_features": data.sensitive_features[N:],
    }
    asked = {"target": 0.8, **parameters}
    return ControlledDebiaser(model, **asked).fit(**rows), rows


@pytest.fixture(scope="module")
def update_and_rows():
    return fitted(4)


def edit(update, rows, edits, **how):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TargetWarning)
        return update.edit(edits, **rows, **how)


@pytest.mark.parametrize("seed", [1, 4])
def test_an_edit_of_the_third_digit_changes_hardly_anything(update_and_rows, seed):
    update, rows = update_and_rows if seed == 4 else fitted(seed)
    name, points = update.scorecard_.rows()[0]
    edited = edit(update, rows, {name: round(points, 2)})
    assert edited.reached_
    assert edited.expected_.fairness == pytest.approx(update.expected_.fairness, abs=0.01)
    assert edited.change_rate_ == pytest.approx(update.change_rate_, abs=0.005)


def test_two_edits_one_by_one_are_the_same_as_both_at_once(update_and_rows):
    update, rows = update_and_rows
    (first, _), (second, _), *_ = update.scorecard_.rows()
    one_by_one = edit(edit(update, rows, {first: -0.4}), rows, {second: 0.2})
    at_once = edit(update, rows, {first: -0.4, second: 0.2})
    assert one_by_one.scorecard_ == at_once.scorecard_
    assert one_by_one.expected_.values == at_once.expected_.values
    assert one_by_one.expected_.interval == at_once.expected_.interval


def test_a_patch_tells_its_edits_with_its_own_figures(update_and_rows, tmp_path):
    update, rows = update_and_rows
    assert update.reached_ and update.fairness_ < 0.8  # by chance: it is expected on new people
    name, points = update.scorecard_.rows()[0]
    edited = edit(update, rows, {name: round(points, 2)}, by="Ann")
    patch = edited.to_patch()
    patch.save(tmp_path / "patch.json")
    loaded = Patch.load(tmp_path / "patch.json")
    assert loaded == patch
    (record,) = loaded.history
    assert (record.by, record.before.n_gains) == ("Ann", update.n_gains_)
    assert record.after.fairness == pytest.approx(edited.fairness_, abs=1e-5)


def test_without_points_nobody_changes_also_in_the_patch(update_and_rows):
    update, rows = update_and_rows
    empty = edit(update, rows, Cap(0, 0))
    kept = edit(empty, rows, {update.scorecard_.rows()[0][0]: 0.5}, offset="keep")
    for edited in (empty, kept):
        assert edited.change_rate_ == edited.expected_.change_rate == 0
        assert "no decision changes" in repr(edited.scorecard_).casefold()
        assert edited.to_patch().content.reached.change_rate == 0


def test_an_expected_target_that_the_fit_rows_miss_by_chance_is_not_called_missed(update_and_rows):
    update, rows = update_and_rows
    assert update.reached_ and update.fairness_ < 0.8
    edited = edit(update, rows, {})
    for status in (update.status_, edited.status_):
        assert "P-rule of label 1 ≥ 0.8. Expected on new people: 0.8" in status
        for words in ("was not reached", "cannot be reached", "no update of these columns"):
            assert words not in status
