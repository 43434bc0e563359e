"""Every sentence with a rate says which label the rate counts."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from typer.testing import CliRunner

from commod import ScoreColumn, audit, compare, explain, frontier, report
from commod._words.update import further_sentences
from commod.cli import app
from commod.datasets import load_compas, make_biased
from commod.rivals import BayesPlugIn, RejectOption
from quick_updates import quick_control

RATES = r"P-rules?|TPR gap|FPR gap|disparate mistreatment"
NAMES = {
    (0, 1): {0: "denied", 1: "approved"},
    ("no", "yes"): {"no": "turned away", "yes": "let in"},
}


def sentences(text: str) -> list[str]:
    return re.split(r"(?<=[.!?])\s+(?=[A-Z“])|\n", text)


def unnamed(text: str, labels: tuple[str, ...]) -> list[str]:
    """Return the sentences with a fairness metric that does not say whose."""
    named = "|".join(re.escape(label) for label in labels)
    return [
        sentence
        for sentence in sentences(text)
        if re.search(RATES, sentence, re.IGNORECASE)
        and not re.search(rf"({RATES}) of ({named})", sentence, re.IGNORECASE)
    ]


FEW_GAINS = {"max_changes": 0.02, "direction": "gains_only"}
FITS = [
    {"labels": labels, "counted": counted, "constraints": constraints, **more}
    for labels, counted, constraints, more in [
        ((0, 1), "default", "demographic_parity", {"confidence": 0.9}),
        ((0, 1), "first", "equalized_odds", FEW_GAINS),
        (("no", "yes"), "paper", "false_positive_rate_parity", {"min_group_size": 60}),
        (("no", "yes"), "default", "demographic_parity", {"target": 1.0}),
        (("no", "yes"), "first", "demographic_parity", {}),
    ]
]
COUNTED = {
    "default": lambda labels: {},
    "first": lambda labels: {"favorable_label": labels[0]},
    "paper": lambda labels: {"pos_label": labels[1], "favorable_label": labels[0]},
}


def small_rows(labels):
    data = make_biased(240, random_state=3)
    group = np.asarray(data.sensitive_features).astype(object)
    group[:9] = "rare"
    y = np.where(data.target == 1, labels[1], labels[0])
    model = LogisticRegression().fit(data.data, y)
    return data.data.assign(score=model.predict_proba(data.data)[:, 1]), y, group


@pytest.mark.filterwarnings("ignore::commod.exceptions.CommodWarning")
@pytest.mark.parametrize("options", FITS, ids=str)
def test_status_audit_and_report_name_the_label_of_every_rate(options, tmp_path):
    options = dict(options)
    labels, counted = options.pop("labels"), COUNTED[options.pop("counted")]
    X, y, group = small_rows(labels)
    update = quick_control(ScoreColumn("score"), **counted(labels), **options)
    update.fit(X, y, sensitive_features=group)
    plain = tuple(f"label {label}" for label in labels)
    assert unnamed(update.status_, plain) == []
    assert re.search(RATES, update.status_)
    assert (
        unnamed(re.sub("<[^>]+>", "\n", update._repr_html_()).partition("Parameters")[0], plain)
        == []
    )
    explanation = explain(update, X)
    names = NAMES[labels] if len(options) > 1 else None
    result = audit(
        explanation.y_before,
        explanation.y_after,
        sensitive_features=group,
        y_true=y,
        explanation=explanation,
        label_names=names,
    )
    shown = plain if names is None else tuple(f"“{name}”" for name in names.values())
    path = report(result, tmp_path / "report.md")
    texts = [*result.answer, repr(result), *(check.sentence for check in result.checks)]
    for text in [*texts, path.read_text(encoding="utf-8")]:
        assert unnamed(text, shown) == []
    other_ratio = result.fairness[0].other_after
    if other_ratio is not None and other_ratio.value is not None:
        other = result.fairness[0].other_name
        assert any(f"The {other} was" in sentence for sentence in result.answer)


@pytest.mark.filterwarnings("ignore::commod.exceptions.DataWarning")
def test_the_ratio_of_the_other_label_is_shown_beside():
    X, y, group = small_rows((0, 1))
    update = quick_control(ScoreColumn("score"), favorable_label=0, target=0.9)
    update.fit(X, y, sensitive_features=group)
    compared = group != "rare"

    def ratio(decisions, label):
        rates = [np.mean(decisions[group == g] == label) for g in set(group[compared])]
        return f"{min(rates) / max(rates):.3f}"

    before, after = (X["score"] > 0.5).astype(int).to_numpy(), update.predict(X)
    assert (
        f"P-rule of label 0 {ratio(before, 0)} → {ratio(after, 0)} "
        f"(P-rule of label 1 {ratio(before, 1)} → {ratio(after, 1)})"
    ) in update.status_


def test_both_readings_of_propublicas_rate():
    """False positives are people judged high risk who did not reoffend: that needs pos_label=1."""
    data = load_compas()
    X, y, race = data.data, np.asarray(data.target), np.asarray(data.sensitive_features)
    high = np.asarray(X["priors_count"] >= 2).astype(int)
    scored = pd.DataFrame({"age": X["age"], "risk": np.where(high, 0.75, 0.25)})
    parity = {"constraints": "false_positive_rate_parity", "favorable_label": 0, "target": 0.2}
    wrongly_high, wrongly_low = (
        quick_control(ScoreColumn("risk"), **parity, **label).fit(
            scored, y, sensitive_features=race
        )
        for label in ({"pos_label": 1}, {})
    )

    def gap(decided, truth):
        among = [np.mean(high[(race == g) & (y == truth)] == decided) for g in set(race)]
        return max(among) - min(among)

    assert wrongly_high.base_fairness_ == pytest.approx(gap(decided=1, truth=0))
    assert wrongly_low.base_fairness_ == pytest.approx(gap(decided=0, truth=1))
    assert (
        "decided 1 among those whose true label is 0." in further_sentences(wrongly_high._facts)[-1]
    )
    assert (
        "decided 0 among those whose true label is 1." in further_sentences(wrongly_low._facts)[-1]
    )
    explanation = explain(wrongly_high, scored)
    result = audit(
        explanation.y_before,
        explanation.y_after,
        sensitive_features=race,
        y_true=y,
        explanation=explanation,
        label_names={0: "low risk", 1: "high risk"},
    )
    spelled = "decided “high risk” among those whose true label is “low risk”"
    assert spelled in " ".join(result.answer)
    assert spelled in result.fairness[0].definition


def test_studies_and_rivals_name_the_label():
    data = make_biased(300, random_state=1)
    model = LogisticRegression().fit(data.data, data.target)
    rows = {"sensitive_features": data.sensitive_features}
    update = quick_control(model, favorable_label=0)
    curve = frontier(update, data.data, data.target, targets=[0.8, 0.9], **rows)
    rival = RejectOption(model, favorable_label=0)
    both = compare([rival], data.data, data.target, **rows)
    plug_in = BayesPlugIn(model, favorable_label=0).fit(data.data, data.target, **rows)
    for text in (repr(curve), curve._repr_html_(), repr(both), both._repr_html_(), plug_in.status_):
        assert unnamed(re.sub("<[^>]+>", "\n", text), ("label 0", "label 1")) == []
        assert "P-rule of label 0" in text


def test_the_command_line_names_the_label_and_reads_a_score_of_the_other_label(tmp_path):
    X, y, group = small_rows((0, 1))
    X.assign(default=y, group=group).to_csv(tmp_path / "rows.csv", index=False)
    common = [str(tmp_path / "rows.csv"), "--sensitive", "group", "--label", "default"]
    given = ["--score-column", "score", "--favorable", "0", "--at-least", "0.9"]
    given += ["--target-on", "fit_rows"]
    out = ["--out", str(tmp_path / "patch.json"), "--force"]
    other = ["--out", str(tmp_path / "other.json")]
    fitted = CliRunner().invoke(app, ["debias", *common, *given, *out])
    assert fitted.exit_code == 0, fitted.output
    assert "P-rule of label 0 ≥ 0.9" in fitted.output
    assert unnamed(fitted.output, ("label 0", "label 1")) == []
    stated = CliRunner().invoke(app, ["debias", *common, *given, *out, "--score-is-for", "1"])
    assert stated.output.splitlines()[0] == fitted.output.splitlines()[0]
    backwards = CliRunner().invoke(
        app, ["debias", *common, *given, *other, "--score-is-for", "0", "-q"]
    )
    assert "order the labels backwards" in backwards.output
    checked = CliRunner().invoke(app, ["check", str(tmp_path / "patch.json"), *common])
    assert unnamed(checked.output, ("label 0", "label 1")) == []
