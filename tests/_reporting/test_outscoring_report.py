"""An audit says whether people who change have base scores nearer to the threshold than others."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from commod import Audit, audit, audit_frame, report
from commod._data.disclosure import FEWEST_DESCRIBED
from commod.cli import app
from commod.metrics import outscoring_probability

N = 600


def people(seed=0, *, best_first=False, direction="gain"):
    """Return people of two groups, of whom a few change: the worst-scored, or the best-scored."""
    random = np.random.default_rng(seed)
    group = np.repeat(["a", "b"], N // 2)
    score = random.random(N).round(3)
    old = (score > 0.5) * 1
    starts = np.flatnonzero((old == (direction == "loss")) & (group == "b"))
    order = starts[np.argsort(score[starts])]
    # the nearest to the threshold: highest scores of the rejected, lowest of the others
    nearest_last = order if direction == "gain" else order[::-1]
    changed = nearest_last[-40:] if best_first else nearest_last[:40]
    new = old.copy()
    new[changed] = 1 - old[changed]
    y = (random.random(N) < score) * 1
    return pd.DataFrame({"group": group, "score": score, "old": old, "new": new, "y": y})


def audited(rows, **changes):
    given = {"y_true": rows["y"], "scores_before": rows["score"], **changes}
    return audit(rows["old"], rows["new"], sensitive_features=rows["group"], **given)


def check_of(result, code):
    return next((check for check in result.checks if check.code == code), None)


@pytest.mark.parametrize(
    ("direction", "code", "sentence"),
    [
        ("gain", "CM307", "People who gain have lower base scores for the favourable label"),
        (
            "loss",
            "CM308",
            "People who lose have higher base scores for the favourable label",
        ),
    ],
)
def test_changing_the_farthest_people_needs_a_reason(direction, code, sentence):
    result = audited(people(direction=direction))
    check = check_of(result, code)
    assert (check.state, check.severity) == ("failed", "needs a reason")
    assert sentence in check.sentence
    assert "Lowest by group: b (0.0%)." in check.sentence
    assert sum(sentence in text for text in result.answer) == 1
    assert code in result.verdict
    other = "CM308" if code == "CM307" else "CM307"
    assert check_of(result, other) is None


@pytest.mark.parametrize("direction", ["gain", "loss"])
def test_changing_the_nearest_people_passes(direction):
    result = audited(people(best_first=True, direction=direction))
    check = check_of(result, {"gain": "CM307", "loss": "CM308"}[direction])
    assert check.state == "passed"
    word = {"gain": "gain have higher", "loss": "lose have lower"}[direction]
    assert f"People who {word} base scores for the favourable label than" in check.sentence


def test_few_gains_are_not_enough_evidence():
    rows = people()
    low = np.flatnonzero((rows["old"] == 0) & (rows["group"] == "a"))[:2]
    rows["new"] = rows["old"]
    rows.loc[low, "new"] = 1
    rows.loc[low, "score"] = [0.2, 0.25]
    check = check_of(audited(rows), "CM307")
    assert check.state == "not enough evidence"
    assert "neither clearly higher nor clearly lower" in check.sentence


def test_the_figures_are_those_of_the_metric():
    rows = people(seed=3)
    rows["new"] = np.where(np.random.default_rng(0).random(N) < 0.15, 1 - rows["old"], rows["old"])
    result = audited(rows)
    assert [figures.change for figures in result.outscoring] == ["gain", "loss"]
    for figures in result.outscoring:
        measured = outscoring_probability(
            rows["score"],
            rows["old"],
            rows["new"],
            sensitive_features=rows["group"],
            change=figures.change,
            y_true=rows["y"],
        )
        assert figures.same_group.value == measured.value
        assert (figures.same_group.low, figures.same_group.high) == (measured.low, measured.high)
        assert figures.overall.value == measured.overall.value
        assert figures.true_share_changed.value == pytest.approx(measured.true_share_changed)
        assert figures.true_share_others.value == pytest.approx(measured.true_share_others)
        for group in figures.groups:
            assert group.probability.value == measured.by_group[group.name].value


def test_a_score_of_the_unfavourable_label_is_turned():
    rows = people()
    straight = audited(rows)
    turned = audit(
        1 - rows["old"],
        1 - rows["new"],
        sensitive_features=rows["group"],
        y_true=1 - rows["y"],
        scores_before=1 - rows["score"],
        pos_label=1,
        favorable_label=0,
    )
    assert turned.outscoring == straight.outscoring


def test_without_labels_no_true_shares_and_without_scores_nothing():
    rows = people()
    no_labels = audited(rows, y_true=None)
    assert no_labels.outscoring[0].true_share_changed is None
    assert not any("true label is favourable" in text for text in no_labels.answer)
    no_scores = audited(rows, scores_before=None)
    assert no_scores.outscoring == ()
    assert check_of(no_scores, "CM307") is None
    assert any("Scores before were not given" in text for text in no_scores.not_known)


def test_a_group_with_few_changes_has_no_figure_of_its_own():
    rows = people()
    few = np.flatnonzero((rows["old"] == 0) & (rows["group"] == "a"))[: FEWEST_DESCRIBED - 1]
    rows.loc[few, "new"] = 1
    shown, hidden = audited(rows).outscoring[0].groups[::-1]
    assert shown.probability.value is not None
    assert (hidden.n_changed, hidden.probability.value) == (FEWEST_DESCRIBED - 1, None)


def test_people_of_a_hidden_group_are_in_no_pair():
    rows = people()
    tiny = pd.DataFrame({"group": "tiny", "score": [0.4, 0.1], "old": 0, "new": [1, 0], "y": 1})
    both = pd.concat([rows, tiny], ignore_index=True)
    assert audited(both).outscoring == audited(rows).outscoring


def test_json_keeps_the_figures_and_older_audits_load():
    result = audited(people())
    assert Audit.from_json(result.to_json()).outscoring == result.outscoring
    older = result.to_dict()
    del older["outscoring"]
    assert Audit.from_dict(older).outscoring == ()


@pytest.mark.parametrize("ending", ["html", "md", "json"])
def test_reports_have_the_sentence_and_the_groups(tmp_path, ending):
    text = report(audited(people()), tmp_path / f"report.{ending}").read_text("utf-8")
    sentence = "People who gain have lower base scores for the favourable label"
    assert sentence in text
    assert "The true label is favourable for" in text
    if ending != "json":
        assert text.index(sentence) < text.index(
            "Who changes</h2>" if ending == "html" else "## Who"
        )
        assert "the base score of the one who loses is lower" in text  # the table by group


def test_an_audit_inside_an_engine_says_that_it_does_not_know():
    result = audit_frame(
        people(),
        before="old",
        after="new",
        sensitive_features="group",
        scores_before="score",
    )
    assert result.outscoring == ()
    assert any(
        "whether people who gain have higher base scores" in text for text in result.not_known
    )


def test_the_command_line_prints_the_sentence(tmp_path):
    people().to_csv(tmp_path / "decided.csv", index=False)
    command = ["audit", str(tmp_path / "decided.csv"), "--before", "old", "--after", "new"]
    command += ["--sensitive", "group", "--label", "y", "--score-before", "score"]
    printed = CliRunner().invoke(app, command)
    assert printed.exit_code == 0, printed.output
    assert "People who gain have lower base scores for the favourable label" in printed.output
    plain = CliRunner().invoke(app, [*command, "--json"])
    (figures,) = json.loads(plain.stdout)["audit"]["outscoring"]
    assert figures["same_group"]["value"] < 0.001


def test_where_everybody_changes_there_is_nobody_to_compare_with():
    scores, groups = np.tile([0.2, 0.4, 0.8, 0.9], 30), np.repeat(["a", "b", "c"], 40)
    before = (scores > 0.5).astype(int)
    result = audit(before, np.ones(120, int), sensitive_features=groups, scores_before=scores)
    check = next(check for check in result.checks if check.code == "CM307")
    assert check.state == "not enough evidence"
    assert check.sentence == "No group has people on both sides to compare (60 gains, 0 others)."
    assert not any("pairs of the same group" in text for text in result.answer)
