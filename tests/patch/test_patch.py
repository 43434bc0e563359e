"""Patches: what is written is read back, what is damaged is refused, decisions are the same."""

from __future__ import annotations

import contextlib
import json
import os
import re
import warnings
from dataclasses import replace
from random import Random

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from patch_files import content_of, evidence_patch, mixed_patch, mutated, sealed
from patches import bins, category, number
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression

from commod import COMMOD, Patch, ScoreColumn
from commod.datasets import make_biased
from commod.exceptions import CommodWarning, InputError
from commod.patch.content import FurtherConstraint, FurtherReached
from commod.patch.file import MAX_BYTES
from quick_updates import quick_control
from tables_of_cases import every_line

ROWS = pd.DataFrame(
    {
        "income": [1.0, np.nan, 30.0, np.inf, 0.0, 8.0],
        "age": [24.0, 25.0, 40.5, np.nan, 99.0, 30.0],
        "job": ["clerk", "nurse", None, "pilot", "", "clerk"],
        "member": [True, False, None, True, False, True],
        "score": [0.2, 0.5, 0.9, 0.0, 1.0, np.nan],
    }
)


@pytest.fixture(scope="module")
def fitted(quick_compilation):
    """Return (rows with scores, update on the score column, update on the model, the model)."""
    data = make_biased(1500, random_state=0)
    model = LogisticRegression().fit(data.data, data.target)
    X = data.data.assign(
        score=model.predict_proba(data.data)[:, 1],
        town=np.random.default_rng(0).choice(["Oslo", "Rome", None], 1500),
    )
    told = {"sensitive_features": data.sensitive_features}
    column = quick_control(ScoreColumn("score"), constraints="equalized_odds")
    plain = quick_control(model, direction="gains_only")
    return (
        X,
        column.fit(X, data.target, **told),
        plain.fit(data.data, data.target, **told),
        model,
        data,
    )


# -- files ------------------------------------------------------------------------------------


def test_a_file_is_read_back_as_it_was_written(tmp_path):
    patch = mixed_patch()
    path = patch.save(tmp_path / "patch.json")
    read = Patch.load(path)
    assert read == patch
    assert read.to_json() == path.read_text("utf-8") == patch.to_json()
    assert hash(read) == hash(patch)


def test_a_file_of_a_fit_has_a_few_kilobytes_and_decides_as_the_update(tmp_path, fitted):
    X, column, plain, _, data = fitted
    for update, frame in ((column, X), (plain, data.data)):
        patch = Patch.load(update.to_patch().save(tmp_path / "patch.json"))
        assert os.path.getsize(tmp_path / "patch.json") < 20_000
        scored = X if update is column else data.data.assign(score=X["score"])
        edited = patch.apply(scored, score="score")
        np.testing.assert_array_equal(edited["commod_decision"], update.predict(frame))
        np.testing.assert_allclose(
            edited["commod_score"], update.predict_proba(frame)[:, 1], rtol=0, atol=1e-12
        )
        changes = update.changes(frame)
        np.testing.assert_array_equal(edited["commod_changed"], changes.changed)
        np.testing.assert_array_equal(edited["commod_direction"] == "gain", changes.gain)
        counts = patch.count(edited)
        assert (counts.n_gains, counts.n_losses) == (changes.n_gains, changes.n_losses)


def test_the_scorecard_of_a_patch_is_that_of_the_update(fitted):
    X, column, plain, _, data = fitted
    for update, frame in ((column, X), (plain, data.data)):
        _, columns = update._scored_columns(frame)
        ours, theirs = update.to_patch().scorecard, update.scorecard_
        np.testing.assert_array_equal(ours.ratio(columns), theirs.ratio(columns))
        np.testing.assert_array_equal(ours.concepts(columns), theirs.concepts(columns))


def test_a_patch_says_what_was_asked_and_reached(fitted):
    content = fitted[2].to_patch().content
    assert content.asked.direction == "gains_only" and content.asked.target == 0.8
    assert not content.ratio.may_lower and content.ratio.may_raise
    assert content.reached.fairness_after == pytest.approx(fitted[2].fairness_, rel=1e-5)
    assert content.reached.rows == "fit rows" and content.reached.n_rows == 1500
    assert content.base.digest is not None and content.base.model == "LogisticRegression"
    column = fitted[1].to_patch().content
    assert column.base.score == "score" and column.base.digest is None


def test_an_update_must_be_fitted_and_linear(quick_compilation):
    with pytest.raises(NotFittedError):
        quick_control(ScoreColumn("score")).to_patch()
    data = make_biased(300, random_state=0)
    model = LogisticRegression().fit(data.data, data.target)
    bent = COMMOD(model, architecture="mlp", epochs=0)
    bent.fit(data.data, data.target, sensitive_features=data.sensitive_features)
    with pytest.raises(InputError, match="needs a linear ratio"):
        bent.to_patch()


def test_an_update_that_reads_the_margin_is_a_patch_too(quick_compilation):
    data = make_biased(600, random_state=0)
    model = LogisticRegression().fit(data.data, data.target)
    update = COMMOD(model, training={"reads_score": True}, lambda_fair=4, epochs=5, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CommodWarning)
        update.fit(data.data, data.target, sensitive_features=data.sensitive_features)
    scored = data.data.assign(score=model.predict_proba(data.data)[:, 1])
    patch = Patch.from_json(update.to_patch().to_json())
    assert any(c.reads == "margin" for c in patch.content.ratio.columns)
    edited = patch.apply(scored)
    np.testing.assert_array_equal(edited["commod_decision"], update.predict(data.data))


def test_a_raw_column_may_have_the_name_of_the_margin():
    data = make_biased(600, random_state=0)
    model = LogisticRegression().fit(data.data, data.target)
    name = data.data.columns[0]
    X = data.data.rename(columns={name: "base margin"}).assign(
        score=model.predict_proba(data.data)[:, 1]
    )
    update = quick_control(ScoreColumn("score"), borderline=0.1)
    update.fit(X, data.target, sensitive_features=data.sensitive_features)
    patch = update.to_patch()
    reads = {c.name: c.reads for c in patch.content.ratio.columns}
    assert reads["base margin"] == "number" and set(reads.values()) == {"number"}
    np.testing.assert_array_equal(patch.apply(X)["commod_decision"], update.predict(X))


# -- refusing files ---------------------------------------------------------------------------


def _file(tmp_path, text):
    path = tmp_path / "patch.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@every_line(
    "text, match",
    [
        ("", "not JSON"),
        ("[]", "expected an object"),
        ("{", "not JSON"),
        ("null", "expected an object"),
        ("{}", "schema"),
        (b"\xff\xfe{}", "UTF-8"),
        ('{"schema": "commod.patch/99"}', "newer than"),
        ('{"schema": "commod.audit/1"}', "expected 'commod.patch/3'"),
        ('{"schema": NaN}', "NaN is not a number"),
        ('{"a": 1, "a": 2}', "occurs twice"),
        ('{"schema": "\\ud800"}', "UTF-8"),
        ("[" * 100_000, "nests too deeply|not JSON"),
        ('{"a": ' * 100_000, "nests too deeply|not JSON"),
        ('{"schema": ' + "1" * 5000 + "}", "not JSON"),
    ],
)
def test_what_is_no_patch_is_refused_in_one_sentence(tmp_path, text, match):
    with pytest.raises(InputError, match=match):
        Patch.load(_file(tmp_path, text))


def test_an_oversized_file_is_refused_without_reading_all_of_it(tmp_path):
    path = tmp_path / "patch.json"
    with open(path, "wb") as file:
        file.truncate(40 * MAX_BYTES)
    with pytest.raises(InputError, match="larger than 16 MiB"):
        Patch.load(path)


def test_a_device_is_no_patch():
    with pytest.raises(InputError, match="not a regular file"):
        Patch.load("/dev/zero")


def test_a_file_that_was_edited_is_refused(tmp_path):
    text = mixed_patch().to_json()
    with pytest.raises(InputError, match="damaged or edited"):
        Patch.load(_file(tmp_path, text.replace("P-rule ≥ 0.8", "P-rule ≥ 0.9")))


def test_a_file_that_was_laid_out_anew_is_the_same_patch(tmp_path):
    patch = mixed_patch()
    short = json.dumps(json.loads(patch.to_json()), sort_keys=True)
    whole = re.sub(r"(\d)\.0(?=[,}\]])", r"\1", short)  # as JavaScript writes numbers
    assert whole != short
    for text in (short, whole, "\ufeff" + short):
        assert Patch.load(_file(tmp_path, text)) == patch


def test_with_its_sha256_no_other_file_passes(tmp_path):
    patch = mixed_patch()
    path = patch.save(tmp_path / "patch.json")
    assert Patch.load(path, sha256=patch.sha256.upper()) == patch
    forged = Patch(replace(patch.content, method="Another"))  # with a digest that fits
    forged.save(path)
    assert Patch.load(path) == forged
    with pytest.raises(InputError, match="not the file that was signed off"):
        Patch.load(path, sha256=patch.sha256)
    with pytest.raises(InputError, match="64 hexadecimal digits"):
        Patch.load(path, sha256="1234")


@every_line(
    "columns, changes, match",
    [
        ([], {"threshold": 1.0}, "threshold"),
        ([], {"favorable": 2}, "neither"),
        ([], {"negative": 1}, "label 1 twice"),
        ([], {"negative": "no"}, "different types"),
        ([], {"negative": 2**63}, "64 bits"),
        ([], {"negative": True, "positive": 0, "favorable": 0}, "different types"),
        ([], {"favorable": True}, "neither"),
        ([], {"direction": "gains_only"}, "its gate has"),
        ([], {"direction": "upwards"}, "its gate has"),
        ([], {"constraints": "kindness"}, "kindness"),
        ([], {"target": -3.5}, "target"),
        ([], {"metric": "AUC"}, "metric 'AUC'"),
        ([], {"n_rows": 0}, "1 or more"),
        ([], {"fairness_after": 1.5}, "between 0 and 1"),
        ([], {"n_gains": 1e6}, "between 0 and 1000"),
        ([], {"max_changes": -0.1}, "between 0 and 1"),
        ([number("a", 1.0), number("a", 2.0)], {}, "several columns named 'a'"),
        ([number("", 1.0)], {}, "without a name"),
        ([number("a", 1e101)], {}, "expected a number within"),
        ([bins("a", [2.0, 1.0], [0.0, 1.0, 2.0])], {}, "do not rise"),
        ([bins("a", [], [1.0])], {}, "two bins or more"),
        ([category("a", {})], {}, "no term"),
        ([category("a", {1: 0.5})], {}, "same category twice"),
        ([replace(category("a", {1: 0.5}), unseen=0.5)], {}, "0.5 points for an unseen"),
        ([number("a", 1.0)], {"concept_weights": (2.0,)}, "add up to 2.0"),
        ([number("a", 1.0)], {"concept_weights": (1.0, 2.0)}, "one of each per concept"),
    ],
)
def test_a_content_that_contradicts_itself_is_refused(columns, changes, match):
    if "twice" in match and columns:
        columns = [replace(columns[0], categories=columns[0].categories * 2)]
    with pytest.raises(InputError, match=match):
        Patch(content_of(*columns, **changes))


TEXT = mixed_patch().to_json()
TEXTS = [TEXT, evidence_patch().to_json()]
SLOW = {
    "deadline": None,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
}
SEEDS = st.integers(0, 2**32)


@settings(max_examples=8, **SLOW)
@given(SEEDS)
def test_a_mutated_file_is_refused_or_the_same_patch(seed):
    random = Random(seed)
    for _ in range(15):  # 120 mutations in all
        tree = mutated(random, random.choice(TEXTS))
        try:
            read = Patch.from_json(json.dumps(tree))
        except InputError as error:
            assert "cannot be used as a patch" in str(error)
        else:
            assert read in (mixed_patch(), evidence_patch()), tree


@settings(max_examples=8, **SLOW)
@given(SEEDS)
def test_a_mutated_file_with_a_new_digest_is_refused_or_a_patch_that_works(seed):
    random, accepted = Random(seed), []
    for _ in range(15):  # 120 mutations in all
        with contextlib.suppress(InputError):
            accepted.append(
                Patch.from_json(json.dumps(sealed(mutated(random, random.choice(TEXTS)))))
            )
    for read in accepted[:1]:
        assert Patch.from_json(read.to_json()) == read
        assert str(read)
        assert (
            read == mixed_patch()
            or read.diff(mixed_patch())
            or replace(read.content, created=mixed_patch().content.created) == mixed_patch().content
        ), "what differs is said"


@settings(max_examples=15, **SLOW)
@given(SEEDS)
def test_a_mutated_file_that_is_accepted_decides_by_its_own_rule(seed):
    try:
        random = Random(seed)
        tree = mutated(random, random.choice(TEXTS))
        read = Patch.from_json(json.dumps(sealed(tree)))
        edited = read.apply(ROWS)
    except InputError:
        return  # refused, or it reads other columns now
    known = edited["commod_score"].notna()
    assert known.tolist() == [True, True, True, True, True, False]
    positive = edited["commod_score"] > read.content.base.threshold
    labels = np.where(positive, read.content.labels.positive, read.content.labels.negative)
    assert (labels == edited["commod_decision"])[known].all()


@settings(max_examples=40, **SLOW)
@given(st.data())
def test_damaged_bytes_are_refused_or_the_same_patch(data):
    raw = bytearray(TEXT.encode())
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(raw) - 1))
        how = data.draw(st.sampled_from(["flip", "cut", "insert", "drop"]))
        if how == "flip":
            raw[at] ^= 1 << data.draw(st.integers(0, 7))
        elif how == "cut":
            raw = raw[: at + 1]
        elif how == "insert":
            raw[at:at] = data.draw(st.binary(min_size=1, max_size=4))
        elif len(raw) > 1:
            del raw[at]
    from commod.patch.file import from_bytes

    try:
        read = from_bytes(bytes(raw))
    except InputError:
        return
    assert read == mixed_patch().content


# -- applying ---------------------------------------------------------------------------------


def test_rows_worked_out_by_hand():
    edited = mixed_patch().apply(ROWS)
    r = [
        1 - 0.25 - 1.5 - 2.0 - 0.5,  # 1, 24, clerk, member
        1 - 0.5 + 0.5 + 0.25 + 0.5 + 0.25,  # missing counts as 2; an edge is in the upper bin
        1 - 7.5 + 0.5 - 0.5,  # 40.5 on an edge, no job, nothing known of membership
        1 - 0.5 + 0.5 - 0.75 - 0.5,  # infinite is missing, no age, a job that is not listed
        1 - 0.0 + 0.5 + 0.125 + 0.25,  # the empty text is a category
    ]
    z = np.log([0.25, 1.0, 9.0, 1e-15 / (1 - 1e-15), (1 - 1e-15) / 1e-15])
    expected = 1 / (1 + np.exp(-np.clip(np.multiply(r, z), -30, 30)))
    expected[1] = 0.5
    np.testing.assert_allclose(edited["commod_score"][:5], expected, rtol=1e-9)
    assert edited["commod_changed"].tolist() == [True, False, True, True, False, False]
    assert edited["commod_decision"].tolist()[:5] == [1, 0, 0, 1, 1]
    assert edited["commod_direction"].tolist()[:5] == ["gain", "kept", "loss", "gain", "kept"]
    assert edited.iloc[5][["commod_score", "commod_decision", "commod_direction"]].isna().all()
    counts = mixed_patch().count(edited)
    assert (counts.n_rows, counts.n_without_score, counts.n_changed) == (6, 1, 3)


def test_a_gate_holds_scores_where_they_are():
    patch = mixed_patch(may_lower=False, direction="gains_only")
    edited = patch.apply(ROWS)
    assert edited["commod_direction"].tolist()[:5] == ["gain", "kept", "kept", "gain", "kept"]
    assert edited["commod_score"][2] == 0.9 and edited["commod_score"][4] == 1.0
    losses = mixed_patch(may_raise=False, direction="losses_only").apply(ROWS)
    assert losses["commod_direction"].tolist()[:5] == ["kept", "kept", "loss", "kept", "kept"]


TEXT_DTYPE = pd.Series(["text"]).dtype.name  # object in pandas 2


@every_line(
    "labels, dtype",
    [
        ((0, 1), "int64"),
        (("no", "yes"), TEXT_DTYPE),
        ((False, True), "bool"),
        ((-1.5, 1.0), "float64"),
    ],
)
def test_decisions_are_labels_of_their_own_type(labels, dtype):
    negative, positive = labels
    patch = mixed_patch(negative=negative, positive=positive, favorable=negative)
    edited = patch.apply(ROWS[:5])
    assert edited["commod_decision"].dtype == dtype
    assert edited["commod_decision"].tolist() == [
        positive if p else negative for p in (1, 0, 0, 1, 1)
    ]
    assert edited["commod_direction"].tolist()[0] == "loss"


def test_keys_are_typed():
    patch = Patch(content_of(category("code", {1: -2.0, "1": -4.0, "x": -8.0})))
    mixed = pd.DataFrame({"code": [1, "1", "x", 2, None, 1.0], "score": 0.9})
    assert patch.apply(mixed)["commod_changed"].tolist() == [True, True, True, False, False, True]
    text = pl.DataFrame({"code": ["1", "2"], "score": [0.9, 0.9]})
    assert patch.apply(text)["commod_changed"].to_list() == [True, False]
    whole = pl.DataFrame({"code": [1, 2], "score": [0.9, 0.9]})
    assert patch.apply(whole.lazy()).collect()["commod_changed"].to_list() == [True, False]
    only_text = Patch(content_of(category("code", {"1": -2.0})))
    with pytest.raises(InputError, match="reads categories such as '1' in column 'code'"):
        only_text.apply(whole)


@every_line("kind", ["object", "category", "string", TEXT_DTYPE])
def test_a_column_of_text_is_read_whatever_pandas_calls_it(kind):
    values = pd.Series(["clerk", "nurse", None, "pilot"], index=[7, 3, 9, 1]).astype(kind)
    patch = Patch(content_of(category("job", {"clerk": -2.0}, missing=-2.0), intercept=0.5))
    edited = patch.apply(pd.DataFrame({"job": values, "score": 0.9}))
    assert edited["commod_changed"].tolist() == [True, False, True, False]
    assert edited.index.tolist() == [7, 3, 9, 1]


def test_a_column_without_any_value_is_missing():
    patch = Patch(
        content_of(number("a", -1.0, if_missing=2.0), category("b", {"x": 1.0}, missing=-1.0))
    )
    frame = pl.DataFrame({"a": [None, None], "b": [None, None], "score": [0.9, 0.1]})
    assert patch.apply(frame)["commod_changed"].to_list() == [True, True]
    assert patch.apply(frame.to_arrow())["commod_changed"].to_pylist() == [True, True]


@every_line(
    "change, match",
    [
        (lambda f: f.drop(columns="age"), "reads column 'age', which the frame does not have"),
        (lambda f: f.drop(columns="score"), "no column 'score' with the base model's scores"),
        (lambda f: f.assign(age=["old"] * 6), "reads numbers in column 'age'"),
        (lambda f: f.assign(job=1.5), "reads categories such as 'clerk', 'nurse'"),
        (lambda f: f.assign(score="high"), "a score is a number"),
        (lambda f: f.assign(COMMOD_Score=1), "already"),
        (lambda f: f.to_numpy(), "Put the columns into a frame"),
        (lambda f: pd.concat([f, f], axis=1), "same name"),
        (lambda f: None, "NoneType"),
    ],
)
def test_a_frame_that_does_not_fit_is_refused(change, match):
    with pytest.raises(InputError, match=match):
        mixed_patch().apply(change(ROWS))


def test_many_columns_and_bins_are_no_trouble():
    rng = np.random.default_rng(0)
    names = [f"x{i}" for i in range(45)]
    edges = sorted(rng.normal(size=100).tolist())
    patch = Patch(
        content_of(
            *(number(name, float(p)) for name, p in zip(names, rng.normal(size=45), strict=True)),
            bins("b", edges, rng.normal(size=101).tolist()),
        )
    )
    frame = pd.DataFrame(rng.normal(size=(50, 45)), columns=names).assign(
        b=rng.normal(size=50), score=rng.uniform(size=50)
    )
    from commod._data.columns import read_columns

    r = patch.scorecard.ratio(read_columns(frame))
    edited = patch.apply(frame)
    np.testing.assert_array_equal(edited["commod_changed"], r < 0)


# -- people -----------------------------------------------------------------------------------


def test_a_patch_of_a_fit_holds_nobody(fitted):
    X, column, plain, model, data = fitted
    found = column.to_patch().verify(X, data.sensitive_features)
    assert found.passed and found.n_rows == 1500, str(found)
    found = plain.to_patch().verify(data.data, data.sensitive_features, estimator=model)
    assert found.passed, str(found)
    assert "No problem on 1,500 rows" in str(found)
    other = LogisticRegression(C=0.1).fit(data.data, data.target)
    found = plain.to_patch().verify(data.data, data.sensitive_features, estimator=other)
    assert not found.passed and "base model differs" in str(found)


RACES = ["White", "Black"] * 20
DATA = pd.DataFrame(
    {
        "income": np.arange(40) * 1234.5,
        "job": ["clerk", "nurse"] * 19 + ["astronaut", "nurse"],
        "answer": ["White" if i % 3 else "other" for i in range(40)],
        "race": RACES,
    }
)


@every_line(
    "column, match",
    [
        (category("race", {"White": 1.0}), "a value of the sensitive features"),
        (category("race", {"White": 1.0}), "determines the group"),
        (category("job", {"Black": 1.0}), "'Black', a value of the sensitive features"),
        (category("job", {"astronaut": 1.0}), "'astronaut', a value of 1 of the 40 rows"),
        (category("job", {"pilot": 1.0}), "'pilot', a value of 0 of the 40 rows"),
        (bins("income", [2469.0], [0.0, 1.0]), "2469.0, the value of 1 of the 40 rows"),
        (number("income", 1.0, if_missing=2469.0), "2469.0, the value of 1 of the 40 rows"),
        (number("Black", 1.0), "names a value of the sensitive features"),
        (number("age", 1.0), "reads column 'age', which X does not have"),
    ],
)
def test_verify_finds_what_a_patch_must_not_hold(column, match):
    found = Patch(content_of(column)).verify(DATA, RACES)
    assert not found.passed and any(match in problem for problem in found.problems)


def test_verify_finds_a_group_in_what_users_wrote():
    for content in (content_of(score="score of Black people"), replace(content_of(), by="Black")):
        found = Patch(content).verify(DATA, RACES)
        assert any("The texts of the patch contain 'Black'" in text for text in found.problems)


@every_line("name", ["other", "all", "people", "group", "rows", "fit", "decision"])
def test_verify_does_not_take_words_of_our_sentences_for_a_group(name):
    in_words = (
        "All other people of each group keep their decision; reached on the fit rows of all people."
    )
    races = [name if race == "Black" else race for race in RACES]
    patch = Patch(content_of(category("job", {"clerk": 1.0}), in_words=in_words))
    assert not [text for text in patch.verify(DATA, races).problems if "sensitive" in text]


def test_verify_does_not_take_a_namesake_for_a_group():
    found = Patch(content_of(category("answer", {"White": 1.0}))).verify(DATA, RACES)
    assert not any("sensitive" in problem for problem in found.problems)


def test_two_patches_differ_in_words():
    one = mixed_patch()
    assert one.diff(Patch(replace(one.content, created="2027-01-01"))) == []
    assert len(one.diff(mixed_patch(in_words="Otherwise said."))) == 1
    assert one.diff(one) == []
    columns = list(one.content.ratio.columns)
    assert "Columns are added in another order." in one.diff(Patch(content_of(*columns[::-1])))
    columns[1] = bins("age", [25.0, 41.0], [-1.5, 0.25, 0.5], missing=-0.75)
    columns[2] = category("job", {"clerk": -1.0, "nurse": 0.5}, missing=-0.5)
    del columns[3]
    other = Patch(
        content_of(*columns, number("tenure", 0.1), threshold=0.4, target=0.9, target_met=False)
    )
    said = one.diff(other)
    for sentence in (
        "Threshold: 0.5 → 0.4.",
        "Column member is no longer read.",
        "Column tenure is new (points per unit, 1 terms).",
        "Column age has other bins: 25, 40.5 → 25, 41.",
        "job = clerk: -2.0000 → -1.0000.",
        "job = '': +0.1250 → no term.",
        "Requested: target: 0.8 → 0.9.",
    ):
        assert sentence in said, said
    refitted = replace(one.content, base=replace(one.content.base, digest="b" * 64))
    said = "The base model is another one of the same class (its fingerprint differs)."
    assert one.diff(Patch(refitted)) == [said]
    asked = replace(one.content.asked, further=(FurtherConstraint("minimum_rate", 0.3),))
    reached = replace(one.content.reached, further=(FurtherReached(0.2, 0.31),))
    more = Patch(replace(one.content, asked=asked, reached=reached))
    assert "Requested: further: none → minimum_rate 0.3." in one.diff(more)
    with pytest.raises(InputError, match="another Patch"):
        one.diff("patch.json")


def test_a_patch_prints_as_a_scorecard_of_one_page(capsys):
    many = category("job", {f"job {i}": (i - 500) / 100 for i in range(1000)})
    patch = Patch(content_of(number("income", -0.25, if_missing=2.0), many))
    patch.print()
    text = capsys.readouterr().out
    assert len(text.splitlines()) < 40
    for words in (
        "income",
        "per unit",
        "job = job 999",
        "and 987 more terms of job",
        "r = +1",
        patch.digest,
    ):
        assert words in text
    assert "LogisticRegression" in repr(patch) and "income" in repr(patch)


def test_two_categories_that_read_alike_are_told_apart():
    one, other = (
        Patch(content_of(category("code", {1: points, "1": 0.5, " a": 0.25})))
        for points in (0.75, 0.8)
    )
    assert one.diff(other) == ["code = 1: +0.7500 → +0.8000."]
    assert all(name in str(one) for name in ("code = 1 ", "code = '1'"))


def test_the_page_says_which_concept_a_line_belongs_to(fitted):
    text = str(fitted[2].to_patch())
    card = fitted[2].scorecard_
    used = [j for j in range(2) if card.concept_points[j].any()]
    assert [j for j in range(2) if f"concept {j}" in text] == used
    assert "concept" not in str(mixed_patch())


def test_every_line_can_be_shown():
    many = category("job", {f"job {i}": (i - 500) / 100 for i in range(1000)})
    text = Patch(content_of(many)).to_text(every_term=True)
    assert "more lines" not in text and text.count("job = job") == 999  # one has no points


def test_names_cannot_break_the_page(capsys):
    patch = Patch(content_of(number("a\nb[red]\u202e", 1.0), category("x", {"[/]\x1b[31m": 1.0})))
    patch.print()
    text = capsys.readouterr().out
    assert "<script>" not in Patch(content_of(number("<script>", 1.0)))._repr_html_()
    assert "[red]" in text and "\u202e" not in text and "\x1b" not in text


def test_apply_keeps_every_column_and_revert_gives_the_frame_back():
    patch = mixed_patch()
    frame = pl.DataFrame(ROWS.to_dict("list"), strict=False).with_row_index("id")
    edited = patch.apply(frame, score="score", prefix="new_")
    assert edited.columns == [
        *frame.columns,
        *(f"new_{n}" for n in ("score", "decision", "changed", "direction")),
    ]
    assert patch.revert(edited, prefix="new_").equals(frame, null_equal=True)
    with pytest.raises(InputError, match="no column 'commod_score'"):
        patch.revert(edited)
    with pytest.raises(InputError, match="already"):
        patch.apply(edited, prefix="new_")
    with pytest.raises(InputError, match="apply the patch first"):
        patch.count(frame)


def test_a_model_has_one_fingerprint_however_it_is_stored():
    import io
    import pickle

    import joblib
    import skops.io
    from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from commod.patch.fingerprint import model_digest

    data = make_biased(300, random_state=0)
    seen = set()
    for model in (
        LogisticRegression(),
        make_pipeline(StandardScaler(), LogisticRegression()),
        RandomForestClassifier(5, random_state=0),
        GradientBoostingClassifier(n_estimators=5),
    ):
        model.fit(data.data, data.target)
        digest = model_digest(model)
        model.predict_proba(data.data)
        file = io.BytesIO()
        joblib.dump(model, file)
        file.seek(0)
        stored = skops.io.dumps(model)
        known = skops.io.get_untrusted_types(data=stored)
        for again in (
            model,
            pickle.loads(pickle.dumps(model)),
            joblib.load(file),
            skops.io.loads(stored, trusted=known),
        ):
            assert model_digest(again) == digest, model
        seen.add(digest)
        seen.add(model_digest(model.fit(data.data[:200], data.target[:200])))
    assert len(seen) == 8, "another model, another fingerprint"


def test_verify_finds_groups_that_are_numbers():
    random = np.random.default_rng(0)
    group = random.choice([7, 8], 400)
    code = pd.Series(np.where(random.random(400) < 0.03, 15 - group, group)).astype("category")
    X = pd.DataFrame({"code": code})
    found = Patch(content_of(category("code", {7: 1.0, 8: -1.0}))).verify(X, group)
    assert any("7, a value of the sensitive features" in problem for problem in found.problems)


@every_line(
    "values, ordered", [([1, 2, 3], True), (["a", "b", "a"], False), ([True, False, True], True)]
)
def test_categories_of_pandas_keep_their_type(values, ordered):
    column = pd.Series(pd.Categorical(values, ordered=ordered))
    patch = Patch(content_of(category("c", {values[0]: -2.0})))
    edited = patch.apply(pd.DataFrame({"c": column, "score": 0.9}))
    assert edited["commod_changed"].tolist() == [value == values[0] for value in values]


def test_frames_without_rows():
    patch = mixed_patch()
    for frame in (
        ROWS,
        ROWS.astype({"job": "category"}),
        pl.DataFrame(ROWS[["income", "age", "job", "score"]]).with_columns(
            pl.col("job").cast(pl.Categorical), member=None
        ),
    ):
        edited = patch.apply(frame[:0])
        assert len(edited) == 0 and "commod_score" in edited.columns


def test_whole_numbers_beyond_doubles_and_decimals_are_read():
    from decimal import Decimal

    import pyarrow as pa

    patch = Patch(content_of(number("n", -1e-15), intercept=1.0))
    large = [2**53 + 1, 5, None]
    table = pa.table({"n": pa.array(large, pa.int64()), "score": [0.9, 0.9, 0.9]})
    expected = [True, False, False]
    assert patch.apply(table)["commod_changed"].to_pylist() == expected
    arrow = pd.DataFrame({"n": pd.array(large, dtype="int64[pyarrow]"), "score": 0.9})
    assert patch.apply(arrow)["commod_changed"].tolist() == expected
    priced = pd.DataFrame({"n": [1.0], "score": [Decimal("0.9")]})
    assert patch.apply(priced)["commod_score"].tolist() == pytest.approx([0.9])
    with pytest.raises(InputError, match="a score is a number"):
        patch.apply(pd.DataFrame({"n": [1.0, 2.0], "score": ["high", 0.5]}))


def test_columns_of_pandas_may_be_numbered():
    random = np.random.default_rng(0)
    X = pd.DataFrame(random.normal(size=(600, 2)))
    group = np.where(X[0] + random.normal(size=600) > 0, "a", "b")
    model = LogisticRegression().fit(X, X[0] > 0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CommodWarning)
        update = quick_control(model, target=0.5).fit(X, X[0] > 0, sensitive_features=group)
    scored = X.assign(score=model.predict_proba(X)[:, 1])
    edited = update.to_patch().apply(scored)
    assert edited.columns[:3].tolist() == [0, 1, "score"]
    np.testing.assert_array_equal(edited["commod_decision"], update.predict(X))


def test_labels_are_those_of_the_model_whatever_the_user_calls_them():
    data = make_biased(600, random_state=0)
    model = LogisticRegression().fit(data.data, data.target)
    rows = {"X": data.data, "y": data.target, "sensitive_features": data.sensitive_features}
    update = quick_control(model, pos_label=1.0, favorable_label=False)
    labels = update.fit(**rows).to_patch().content.labels
    stated = [labels.negative, labels.positive, labels.favorable, labels.compared]
    assert stated == [0, 1, 0, 1] and {type(label) for label in stated} == {int}
    update.set_params(pos_label=None)  # the favourable label then counts
    labels = update.fit(**rows).to_patch().content.labels
    assert (labels.positive, labels.compared) == (1, 0) and type(labels.counted) is int


def test_a_pipe_does_not_hang(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="not a regular file"):
        Patch.load(tmp_path / "pipe")


def test_a_number_too_large_for_a_double_is_refused():
    text = mixed_patch().to_json().replace('"clerk"', "1" + "0" * 400)
    with pytest.raises(InputError, match="expected a number within"):
        Patch.from_json(text)
    with pytest.raises(InputError, match="same category twice"):
        Patch(content_of(category("a", {2**53: 1.0, 2**53 + 1: 2.0})))
    with pytest.raises(InputError, match="read from text"):
        Patch.from_json(b"{}")


def test_many_odd_categories_keep_their_points_and_rows_their_order_in_duckdb():
    duckdb = pytest.importorskip("duckdb")
    odd = ["", " ", "a'b", 'a"b', "a\\b", "ü", "A", "a", "a ", "%", "--", ";", "\n", "1", "true"]
    keys = [*odd, *(f"k{i}" for i in range(500))]
    random = np.random.default_rng(0)
    points = dict(zip(keys, random.normal(size=len(keys)).tolist(), strict=True))
    patch = Patch(content_of(category("c", points, missing=0.3), intercept=0.1))
    values = [*keys, None, "unseen"] * 5  # more rows than DuckDB reads at once
    frame = pl.DataFrame(
        {"i": range(len(values)), "c": values, "score": random.random(len(values))}
    )
    expected = patch.apply(frame)
    found = patch.apply(duckdb.from_arrow(frame.to_arrow())).pl()
    assert found["i"].to_list() == frame["i"].to_list()
    for name in ("commod_decision", "commod_direction"):
        assert found[name].to_list() == expected[name].to_list()
    np.testing.assert_allclose(found["commod_score"], expected["commod_score"], atol=1e-12)


def test_a_patch_that_could_not_be_loaded_is_not_written(tmp_path):
    values = {str(i) + "x" * 2**22: 0.5 for i in range(4)}
    patch = Patch(content_of(category("job", values)))
    with pytest.raises(InputError, match=r"file of 16\.0 MiB, but files above 16 MiB"):
        patch.save(tmp_path / "patch.json")
    with pytest.raises(InputError, match="16 MiB"):
        _ = patch.sha256  # so no report of it is written either
    assert not list(tmp_path.iterdir())
