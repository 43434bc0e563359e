"""Stability: shares and agreement are those of a naive loop, and nothing that failed is hidden."""

import itertools
import math
import pickle
import warnings
from dataclasses import replace

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from commod import COMMOD, ScoreColumn
from commod._record.plain import from_plain, to_plain
from commod._study.pictures import plain_text
from commod._study.stability import (
    ColumnUse,
    RowSampler,
    _uses,
    agreement_of,
    count_uses,
    stability,
)
from commod.datasets import make_biased
from commod.exceptions import InputError, InterruptionWarning, TrainingWarning
from commod.metrics import fairness_value
from commod.rivals import MinimalFlip
from commod.rivals.base import Rival
from commod.updates._interface import RawRows
from evidence_updates import with_evidence
from quick_updates import quick_control

matplotlib.use("Agg")

N = 300


@pytest.fixture(scope="module")
def biased():
    return make_biased(2 * N, bias=1.5, random_state=0)


@pytest.fixture(scope="module")
def model(biased):
    return LogisticRegression().fit(biased.data[:N], biased.target[:N])


@pytest.fixture(scope="module")
def rows(biased):
    return biased.data[N:], biased.target[N:], biased.sensitive_features[N:]


@pytest.fixture
def figures():
    """Close what a test draws, and nothing else is left open."""
    before = plt.get_fignums()
    yield
    plt.close("all")
    assert not before


def refit(update, rows, **how):
    X, y, s = rows
    how = {"n_refits": 4, "random_state": 0, "progress": False, **how}
    return stability(update, X, y, sensitive_features=s, **how)


@pytest.fixture(scope="module")
def found(model, rows):
    return refit(quick_control(model, target=0.8), rows, n_refits=5)


class Watched(Rival):
    """A rival that raises people by a rule and tells the test what it was fitted on."""

    seen: list
    rule = "column"

    def __init__(
        self,
        estimator,
        *,
        constraints="demographic_parity",
        strength=1.0,
        locked_features=(),
        min_group_size=30,
        threshold=0.5,
        pos_label=None,
        favorable_label=None,
        random_state=None,
    ):
        self.estimator = estimator
        self.constraints = constraints
        self.strength = strength
        self.locked_features = locked_features
        self.min_group_size = min_group_size
        self.threshold = threshold
        self.pos_label = pos_label
        self.favorable_label = favorable_label
        self.random_state = random_state

    def _learn(self, rows):
        type(self).seen.append((self, rows))
        self.cut_ = 0.0
        if self.rule == "random":
            self.cut_ = float(np.random.RandomState(self.random_state).randint(100))
        if self.rule == "sometimes" and len(self.seen) == 2:
            raise RuntimeError("out of luck")
        if self.rule == "interrupt" and len(self.seen) == 4:
            raise KeyboardInterrupt
        if self.rule == "never":
            raise RuntimeError("always out of luck")

    def _decide(self, rows):
        values = np.asarray(rows.columns[0].values)
        by_lot = np.sin(1000 * values + self.cut_) > 0.6
        changed = by_lot if self.rule == "random" else values > 1
        return rows.base.decisions ^ changed


@pytest.fixture
def watched(model):
    def make(rule="column", **params):
        Watched.seen, Watched.rule = [], rule
        return Watched(model, **params)

    return make


# -- the one number --------------------------------------------------------------------------------


def jaccard(a, b):
    either = len(a | b)
    return len(a & b) / either


@given(arrays(bool, array_shapes(min_dims=2, max_dims=2, min_side=2, max_side=7)))
def test_agreement_is_the_mean_jaccard_index_of_all_pairs(changed):
    sets = [set(np.flatnonzero(line)) for line in changed]
    value = agreement_of(changed)
    if not changed.any():
        assert math.isnan(value)
    else:
        pairs = [jaccard(a, b) for a, b in itertools.combinations(sets, 2) if a | b]
        assert value == pytest.approx(np.mean(pairs))


def test_agreement_counts_in_blocks_as_in_one(monkeypatch):
    changed = np.random.RandomState(0).rand(5, 50) < 0.3
    whole = agreement_of(changed)
    monkeypatch.setattr("commod._study.stability.BLOCK", 7)
    assert agreement_of(changed) == pytest.approx(whole)


def test_everything_equals_a_naive_loop(model, rows):
    update = quick_control(model, target=0.8)
    X, y, s = rows
    random = np.random.RandomState(0)
    sampler = RowSampler.read(update, RawRows(X, y, s), 0.5)
    models = [
        clone(update).set_params(min_group_size=15, min_category_size=3).fit(**sampler.draw(random))
        for _ in range(3)
    ]
    found = refit(update, rows, n_refits=3)
    before = model.predict(X)
    after = np.array([one.predict(X) for one in models])
    np.testing.assert_allclose(found.change_share, (after != before).mean(axis=0))
    np.testing.assert_allclose(found.gain_share, (after > before).mean(axis=0))
    np.testing.assert_allclose(found.loss_share, (after < before).mean(axis=0))
    np.testing.assert_allclose(found.change_rate, (after != before).mean(axis=1))
    fairness = [fairness_value("demographic_parity", y, one, sensitive_features=s) for one in after]
    np.testing.assert_allclose(found.fairness, fairness)
    sets = [set(np.flatnonzero(one != before)) for one in after]
    pairs = [jaccard(a, b) for a, b in itertools.combinations(sets, 2)]
    assert found.agreement == pytest.approx(np.mean(pairs))
    used = [one.scorecard_.columns_used for one in models]
    assert {name: use.share for name, use in found.columns.items()} == {
        name: np.mean([name in names for names in used]) for name in set(itertools.chain(*used))
    }
    cards = [dict(one.scorecard_.rows()) for one in models]
    for name, use in found.columns.items():  # all are numbers here: points per unit
        points = [card[name] for card in cards if name in card]
        assert use.towards_favorable == np.mean(np.array(points) > 0)
        assert found.terms[name] == use


def test_points_of_evidence_push_towards_the_favourable_decision(model, rows, figures):
    X, y, s = rows
    fitted = quick_control(model, target=0.7).fit(X, y, sensitive_features=s)
    cards = [with_evidence(fitted, X, seed=seed).scorecard_ for seed in range(4)]
    columns, terms = count_uses(cards)
    for name, use in columns.items():
        points = [dict(card.rows())[name] for card in cards]
        assert use.towards_change is None
        assert use.towards_favorable == np.mean(np.array(points) > 0)
        assert terms[name] == use
    found = replace(refit(fitted, rows, n_refits=2), columns=columns, terms=terms)
    assert found.columns_frame()["towards_favorable"].notna().all()
    assert "larger values push towards the favourable decision in" in found._repr_html_()
    legend = found.plot().axes[1].get_legend()
    assert "larger values push to favourable" in [text.get_text() for text in legend.get_texts()]


# -- tables whose answer is known ------------------------------------------------------------------


def test_a_rule_that_no_row_can_change_gives_the_same_people_each_time(watched, rows):
    found = refit(watched(), rows)
    changed = rows[0]["x0"] > 1 if hasattr(rows[0], "columns") else rows[0][:, 0] > 1
    assert found.agreement == 1
    np.testing.assert_array_equal(found.change_share, np.asarray(changed, dtype=float))
    assert found.n_always == int(np.sum(changed)) and found.n_sometimes == 0
    assert "the same" in repr(found) and found.columns == {}


def test_decisions_drawn_anew_each_time_have_little_in_common(watched, rows):
    found, again, other = (
        refit(watched("random"), rows, n_refits=5, random_state=seed) for seed in (1, 1, 2)
    )
    assert 0 < found.agreement < 0.5
    assert found.n_always == 0 < found.n_sometimes
    np.testing.assert_array_equal(found.change_share, again.change_share)
    assert (found.change_share != other.change_share).any()


def test_a_fair_model_changes_nobody_and_says_so():
    X = pd.DataFrame({"score": [0.2, 0.9] * 100, "x": np.arange(200.0)})
    s = np.repeat(["a", "b"], 100)
    y = np.array([0, 1] * 100)  # so that every half has as many of each score
    found = refit(quick_control(ScoreColumn("score"), target=0.8), (X, y, s))
    assert math.isnan(found.agreement) and found.summary().agreement is None
    assert "nobody's decision changes" in repr(found)
    assert found.n_never == 200 and math.isnan(found.reference_share)


# -- resamples -------------------------------------------------------------------------------------


def seen_sizes(update):
    return [np.bincount(rows.group + 1).tolist() for _, rows in type(update).seen]


def test_halves_keep_every_group_and_all_refits_have_one_size(watched, rows):
    update = watched()
    refit(update, rows)
    sizes = seen_sizes(update)
    assert len({tuple(size) for size in sizes}) == 1
    n_of_group = np.unique(rows[2], return_counts=True)[1]
    assert all(abs(2 * half - n) <= 2 for half, n in zip(sizes[0][1:], n_of_group, strict=True))


@pytest.mark.parametrize("size", [30, 31, 29])
def test_a_group_counts_in_refits_if_it_counts_in_the_fit(watched, size):
    data = make_biased(400, random_state=1)
    s = np.where(np.arange(400) < size, "few", np.where(np.arange(400) % 2, "a", "b"))
    update = watched()
    refit(update, (data.data, data.target, s), n_refits=2)
    in_constraint = {labels for _, r in Watched.seen for labels in r.group_labels}
    assert ("few" in in_constraint) == (size >= 30)


def test_nobody_is_drawn_twice_except_by_the_bootstrap(model):
    X = np.column_stack([np.arange(200.0), np.arange(200) % 7])
    base = LogisticRegression().fit(X, np.arange(200) % 2)
    s = np.arange(200) % 2
    for sample, n, repeated in (
        ("subsample", 100, False),
        (0.8, 160, False),
        ("bootstrap", 200, 1),
    ):
        Watched.seen, Watched.rule = [], "column"
        refit(Watched(base), (X, np.arange(200) // 100, s), sample=sample, n_refits=2)
        for _, drawn in Watched.seen:
            ids = drawn.columns[0].values
            assert len(ids) == n
            assert (len(set(ids)) < n) == bool(repeated)


@pytest.fixture(scope="module")
def policies():
    """Numbers that tell the group a little, and policies: most of them of four people each."""
    data = make_biased(600, bias=1.5, random_state=0)
    policy = np.array([f"p{i // 4}" for i in range(600)], dtype=object)
    policy[:40] = "large"
    policy[40:48] = None
    X = data.data.assign(score=data.proba_target, policy=policy)
    return X, data.target, np.asarray(data.sensitive_features)


@pytest.mark.parametrize(
    ("sample", "smallest", "n_policies"),
    [("bootstrap", 2, 140), ("subsample", 9, 1)],
)
def test_refits_have_no_category_that_the_fit_would_not_have(
    policies, sample, smallest, n_policies
):
    update = quick_control(ScoreColumn("score"), target=0.9, min_category_size=smallest)
    X, y, s = policies
    full = set(clone(update).fit(X, y, sensitive_features=s).term_names_)
    assert sum(name.startswith("policy") for name in full) == n_policies
    assert set(refit(update, policies, sample=sample, n_refits=2).terms) <= full


def test_an_id_column_without_points_is_in_no_refit(policies):
    X, y, s = policies
    X = X.assign(policy=np.array([f"p{i // 4}" for i in range(600)], dtype=object))
    update = quick_control(ScoreColumn("score"), target=0.9).fit(X, y, sensitive_features=s)
    assert "policy" not in {column.name for column in update.scorecard_.encoding.columns}
    found = refit(update, (X, y, s))
    assert found.columns and "policy" not in found.columns


def test_small_categories_that_the_fit_has_take_part_in_refits(policies):
    X, y, s = policies
    few = np.flatnonzero(s == "g1")[:32]  # a policy of one group: it matters, so it has points
    X = X.assign(policy=np.where(np.isin(np.arange(600), few), "small", "other"))
    update = quick_control(ScoreColumn("score"), target=0.9, min_category_size=30)
    assert "policy = small" in refit(update, (X, y, s), n_refits=2).terms


def test_the_base_model_of_a_refit_reads_the_table_as_it_is(policies):
    """Rare categories are hidden from the update, never from the model that decides."""
    seen = []

    class Reads:
        classes_ = np.array([0, 1])

        def fit(self, X, y):
            return self

        def predict_proba(self, X):
            seen.append(set(X["policy"]))
            return np.column_stack([1 - X["score"], X["score"]])

    X, y, s = policies
    refit(quick_control(Reads(), target=0.8), (X.fillna({"policy": "none"}), y, s))
    assert set().union(*seen) == set(X["policy"].fillna("none"))


def test_the_update_is_left_alone_and_keeps_its_seed(watched, rows):
    update = watched(random_state=3)
    refit(update, rows)
    assert not hasattr(update, "status_") and update.min_group_size == 30
    assert [one.random_state for one, _ in Watched.seen] == [3] * 4
    refit(watched(), rows)
    assert len({one.random_state for one, _ in Watched.seen}) == 4  # drawn, and different


# -- kinds of rows and updates -----------------------------------------------------------------


def test_frames_and_lists_give_what_arrays_give(rows):
    values, y, s = map(np.asarray, rows)
    names = [*(f"x{j}" for j in range(values.shape[1])), "score"]
    table = np.column_stack([values, 1 / (1 + np.exp(-values[:, 0]))])
    frame, index = pd.DataFrame(table, columns=names), np.arange(N) + 7
    update = quick_control(ScoreColumn("score"), target=0.8)
    expected = refit(update, (frame, y, s), n_refits=2)
    for X, labels, groups in (
        (frame.set_axis(index), y, pd.Series(s, index=index)),
        (pl.DataFrame(table, schema=names), y, pl.Series(s.tolist())),
        (frame, y.tolist(), s.tolist()),
    ):
        got = refit(update, (X, labels, groups), n_refits=2)
        np.testing.assert_array_equal(got.change_share, expected.change_share)
        assert got.columns == expected.columns


def test_several_sensitive_columns_mean_their_intersections(watched, rows):
    X, y, s = rows
    both = pd.DataFrame({"one": s, "two": np.arange(N) % 2}, index=s.index)
    update = watched()
    refit(update, (X, y, both), n_refits=2)
    assert len(Watched.seen[0][1].group_labels) == 4


def test_an_aware_rival_is_given_the_groups(model, rows):
    update = MinimalFlip(model, strength=1.0)
    found = refit(update, rows)
    assert found.change_rate.min() > 0 and found.columns == {}
    with pytest.raises(InputError, match="decides by group: pass sensitive_features_eval"):
        refit(update, rows, X_eval=rows[0])


def test_commod_refits_are_counted_too(model, rows, quick_compilation):
    training = {"warmup_epochs": 1, "adversary_hidden": (8,)}
    quickest = {"epochs": 3, "training": training, "random_state": 0}
    update = COMMOD(model, lambda_fair=5, **quickest)
    found = refit(update, rows, n_refits=2)
    assert found.n_refits == 2 and found.terms


def test_new_people_are_decided_on_where_given(model, rows, biased):
    X, y, s = biased.data[:N], biased.target[:N], biased.sensitive_features[:N]
    update = quick_control(model, target=0.8)
    alone = refit(update, rows, X_eval=X, n_refits=2)
    assert len(alone) == N and np.isnan(alone.fairness).all()
    assert alone.summary().fairness_low is None
    assert "evaluated rows" in repr(alone)
    known = refit(update, rows, X_eval=X, y_eval=y, sensitive_features_eval=s, n_refits=2)
    np.testing.assert_array_equal(known.change_share, alone.change_share)
    assert not np.isnan(known.fairness).any()
    with pytest.raises(InputError, match="belong to X_eval"):
        refit(update, rows, y_eval=y)


def test_a_fitted_update_is_followed_through_the_refits(model, rows):
    X, y, s = rows
    update = quick_control(model, target=0.8)
    update.fit(X, y, sensitive_features=s)
    found = refit(update, rows, n_refits=2)
    changed = update.predict(X) != model.predict(X)
    np.testing.assert_array_equal(found.reference, changed)
    assert found.reference_share == pytest.approx(found.change_share[changed].mean())
    assert "The given update changes" in repr(found)
    assert found.frame()["reference"].sum() == changed.sum()


# -- what goes wrong is said -----------------------------------------------------------------------


def test_refits_that_raise_are_counted_and_if_all_do_the_first_reason_is_the_error(watched, rows):
    found = refit(watched("sometimes"), rows)
    assert (found.n_refits, found.n_asked, found.n_failed) == (3, 4, 1)
    assert found.failures == ("RuntimeError: out of luck",)
    assert "1 of 4 refits failed: RuntimeError: out of luck" in repr(found)
    with pytest.raises(InputError, match=r"4 of 4 refits failed.*RuntimeError: always out of luck"):
        refit(watched("never"), rows)


def test_warnings_of_refits_are_collected_not_printed(model, rows):
    update = quick_control(model, target=0.98, max_changes=0.01)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = refit(update, rows, n_refits=2)
    assert len(found.warnings["TargetWarning"]) == 2
    assert "2 × TargetWarning, such as: " in repr(found)


def test_an_interrupt_keeps_the_refits_that_are_done(watched, rows):
    with pytest.warns(TrainingWarning, match="Interrupted after 3 of 30 refits"):
        found = refit(watched("interrupt"), rows, n_refits=30)
    assert (found.n_refits, found.n_asked) == (3, 30)


def test_an_interrupt_before_two_refits_is_passed_on(watched, rows):
    update = watched("interrupt")
    Watched.seen = [None, None]
    with pytest.raises(KeyboardInterrupt):
        refit(update, rows, n_refits=30)


def test_training_that_caught_the_interrupt_ends_the_refits(monkeypatch, watched, rows):
    learn = Watched._learn

    def warn_third(self, learning_rows):
        learn(self, learning_rows)
        # another warning of training interrupts nothing
        kind = InterruptionWarning if len(self.seen) == 3 else TrainingWarning
        warnings.warn("Training was interrupted.", kind, stacklevel=2)

    monkeypatch.setattr(Watched, "_learn", warn_third)
    with pytest.warns(InterruptionWarning, match="Interrupted after 2 of 30 refits"):
        found = refit(watched(), rows, n_refits=30)
    assert found.n_refits == 2


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"n_refits": 1}, "n_refits=1 must be a whole number of at least 2"),
        ({"n_refits": True}, "n_refits=True must be"),
        ({"sample": "half"}, "sample='half' is not known; choose 'subsample'"),
        ({"sample": 1.0}, "or a share between 0 and 1"),
    ],
)
def test_bad_settings_are_refused_before_any_fit(watched, rows, how, words):
    update = watched()
    with pytest.raises(InputError, match=words):
        refit(update, rows, **how)
    assert not Watched.seen


def test_only_updates_are_refitted(model, rows):
    with pytest.raises(InputError, match="got LogisticRegression"):
        refit(model, rows)


# -- what comes back -------------------------------------------------------------------------------


def test_the_summary_is_a_record_and_counts_everybody_once(found):
    summary = found.summary()
    assert from_plain(type(summary), to_plain(summary)) == summary
    assert sum(summary.histogram) == summary.n_rows == N
    assert summary.n_always + summary.n_sometimes + found.n_never == N
    assert summary.fairness_low == found.fairness.min()
    assert summary.changes_high == found.change_rate.max()


@given(st.integers(2, 60))
def test_the_steps_of_the_histogram_are_exact(n_refits):
    """Shares such as 3/30 lie on an edge: floating point must not choose the side."""
    times = np.arange(n_refits + 1)
    found = refit_counts(times, n_refits)
    expected = [sum(10 * t // n_refits == step for t in times[:-1]) for step in range(10)]
    expected[9] += 1
    assert list(found.summary().histogram) == expected
    assert found.n_always == found.n_never == 1


def refit_counts(times, n_refits, loses=False):
    """Return a Stability in which person i changes times[i] times."""
    from commod._study.stability import Stability

    share = times / n_refits
    return Stability(
        n_refits=n_refits, n_asked=n_refits, sample="random halves", rows_word="fit rows",
        constraints="demographic_parity", change_share=share,
        gain_share=np.where(loses, 0, share), loss_share=np.where(loses, share, 0),
        agreement=0.5, columns={}, terms={},
        fairness=np.full(n_refits, np.nan), change_rate=np.full(n_refits, 0.1), reference=None,
        failures=(), warnings={},
    )  # fmt: skip


def test_frames_have_a_line_per_person_and_per_column(found, rows):
    frame = found.frame(index=np.arange(N) + 100)
    assert frame.index[0] == 100 and len(frame) == N
    assert frame["change_share"].equals(frame["gain_share"] + frame["loss_share"])
    columns = found.columns_frame()
    assert columns["column"].tolist() == list(found.columns)
    assert columns["share"].is_monotonic_decreasing
    assert found.terms_frame()["term"].tolist() == list(found.terms)


def test_it_survives_pickling(found):
    again = pickle.loads(pickle.dumps(found))
    assert repr(again) == repr(found) and again.summary() == found.summary()


# -- the picture -----------------------------------------------------------------------------------


def test_the_picture_counts_everybody_who_changes_and_names_those_who_never_do(found, figures):
    figure = found.plot()
    people, columns = figure.axes
    counts = np.array([bar.get_height() for bar in people.patches]).reshape(2, -1).sum(axis=0)
    expected = np.bincount(found.times_changed, minlength=found.n_refits + 1)[1:]
    np.testing.assert_array_equal(counts, expected)
    assert f"{found.n_never:,} of {N:,} fit rows never change" in (
        people.get_legend().get_title().get_text()
    )
    labels = [label.get_text() for label in columns.get_yticklabels()]
    assert labels == list(found.columns)[::-1]
    figure.canvas.draw()


def test_gains_and_losses_stand_on_each_other(figures):
    found = refit_counts(np.array([1, 1, 1, 2]), 2, loses=np.array([True, False, False, False]))
    bars = found.plot().axes[0].patches
    assert [(bar.get_y(), bar.get_height()) for bar in bars] == [(0, 2), (0, 1), (2, 1), (1, 0)]


def test_the_picture_goes_where_it_is_put(found, figures):
    figure, (left, right) = plt.subplots(1, 2)
    assert found.plot(left) is figure
    assert left.patches and not right.patches
    found.plot((left, right))
    assert right.patches
    assert len(plt.get_fignums()) == 1


def test_hostile_names_are_drawn_as_they_are(figures):
    names = ["$\\frac{1}$", "a$b", "<script>", "_under", "long " * 2000, "two\nlines"]
    X = pd.DataFrame({name: np.arange(200.0) + i for i, name in enumerate(names)})
    X["score"] = np.where(np.arange(200) % 4 == 0, 0.9, 0.3)
    X.loc[np.arange(200) < 100, "score"] = 0.9
    s = np.repeat(["a", "b"], 100)
    found = refit(quick_control(ScoreColumn("score"), target=0.9), (X, None, s), n_refits=2)
    assert found.columns
    figure = found.plot()
    figure.canvas.draw()
    assert all(len(label.get_text()) < 50 for label in figure.axes[1].get_yticklabels())
    assert len(repr(found)) < 3000


def test_text_for_pictures_holds_no_formula():
    assert plain_text("$x$") == r"\$x\$"
    assert "\n" not in plain_text("two\nlines")


def test_groups_left_out_are_counted(model, rows):
    X, y, s = rows
    groups = np.where(np.arange(len(X)) < 10, "seldom", np.asarray(s))
    found = refit(quick_control(model, target=0.6), (X, y, groups), n_refits=2)
    note = "1 group (10 rows) left out of the fairness figures: too few fit rows"
    assert found.left_out == note and note in repr(found)


def test_a_column_pushes_towards_a_change_where_its_points_lower_r():
    pushes = {"age": [-2.0, -0.5, 1.0], "pay": [3.0], "town": [-1.0, math.nan]}
    of_ratio, of_evidence = (_uses(pushes, 4, is_evidence) for is_evidence in (False, True))
    assert list(of_ratio) == list(of_evidence) == ["age", "town", "pay"]
    assert of_ratio == {
        "age": ColumnUse(0.75, 2 / 3, None),
        "pay": ColumnUse(0.25, 0.0, None),
        "town": ColumnUse(0.5, None, None),
    }
    assert of_evidence == {
        "age": ColumnUse(0.75, None, 1 / 3),
        "pay": ColumnUse(0.25, None, 1.0),
        "town": ColumnUse(0.5, None, None),
    }
