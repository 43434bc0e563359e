"""Errors name what is close to a wrong name, and never hide that there are more names."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from commod import COMMOD, ScoreColumn, audit, audit_frame
from commod._text import did_you_mean, list_names
from commod.datasets import make_biased
from commod.exceptions import InputError
from commod.metrics import p_rule
from commod.rivals import RejectOption
from quick_updates import quick_control

DATA = make_biased(200, random_state=0)
WIDE = DATA.data.assign(**{f"c{i}": float(i) for i in range(40)}, income=1.0)
WIDE["score"] = np.linspace(0.05, 0.95, len(WIDE))
GROUPS = DATA.sensitive_features


def fit(update, X=WIDE, y=DATA.target):
    return update.fit(X, y, sensitive_features=GROUPS)


def test_errors_about_names_suggest_the_close_one():
    for call, suggestion in [
        (lambda: fit(quick_control(ScoreColumn("scroe"))), "'score'"),
        (lambda: fit(quick_control(ScoreColumn("score"), points="per bins")), "'per bin'"),
        (
            lambda: fit(quick_control(ScoreColumn("score"), direction="gain_only")),
            "'gains_only'",
        ),
        (
            lambda: fit(quick_control(ScoreColumn("score"), constraints="equalized_ods")),
            "'equalized_odds'",
        ),
        (
            lambda: fit(quick_control(ScoreColumn("score"), locked_features=["Incom"])),
            "'income'",
        ),
        (
            lambda: fit(quick_control(ScoreColumn("score"), monotone={"incme": 1})),
            "'income'",
        ),
        (lambda: fit(COMMOD(ScoreColumn("score"), architecture="concept")), "'concepts'"),
        (lambda: RejectOption(ScoreColumn("score")).set_params(strenght=1), "'strength'"),
        (
            lambda: audit([0, 1], [0, 1], sensitive_features=["a", "b"], request={"tarjet": 0.8}),
            "'target'",
        ),
        (
            lambda: audit_frame(
                pd.DataFrame({"old": [0], "new": [1], "group": ["a"]}),
                before="old",
                after="new",
                sensitive_features="grup",
            ),
            "'group'",
        ),
        (
            lambda: p_rule(None, ["yes", "no"], sensitive_features=["a", "b"], pos_label="Yes"),
            "'yes'",
        ),
    ]:
        with pytest.raises(InputError, match=f"Did you mean .*{suggestion}"):
            call()


def test_a_dialect_that_is_misspelt_is_suggested():
    update = fit(
        quick_control(LogisticRegression().fit(DATA.data, DATA.target)),
        DATA.data,
    )
    with pytest.raises(InputError, match="Did you mean 'postgres'"):
        update.to_patch().to_sql("postgre", table="people")


def test_all_classes_are_listed_or_counted():
    y = np.arange(200) % 7
    with pytest.raises(InputError, match=r"7 classes \(\[0, 1, 2, 3, 4, 5, 6\]\)"):
        fit(RejectOption(ScoreColumn("score")), y=y)
    with pytest.raises(InputError, match=r"50 classes .* and 30 more"):
        fit(RejectOption(ScoreColumn("score")), y=np.arange(200) % 50)


def test_a_long_list_of_columns_says_how_many_it_leaves_out():
    with pytest.raises(InputError, match=r"X has 45 columns: .* and 25 more") as error:
        fit(quick_control(ScoreColumn("score"), locked_features=["incme"]))
    assert "Did you mean 'income'?" in str(error.value)


def test_suggestions_are_few_and_close():
    assert did_you_mean("town", ["age", "income"]) == ""
    assert did_you_mean("LABEL", [f"c{i}" for i in range(500)] + ["label"]) == (
        " Did you mean 'label'?"
    )
    assert did_you_mean("1", [0, 1]) == " Did you mean 1?"
    assert did_you_mean({}, []) == "" and list_names([]) == "none"


# -- whole numbers that may be codes ------------------------------------------------------------


def test_columns_that_may_hold_codes_are_named_with_the_way_out():
    rng = np.random.default_rng(1)
    model = LogisticRegression().fit(DATA.data, DATA.target)
    scored = DATA.data.assign(
        score=model.predict_proba(DATA.data)[:, 1],
        grade=(GROUPS.iloc[0] == GROUPS) * 1 + rng.integers(0, 5, len(GROUPS)),
        flag=rng.integers(0, 2, len(GROUPS)),
    )
    update = quick_control(ScoreColumn("score"))
    fit(update, scored)
    assert update.search_.possible_codes == ("grade",)
    page = update._repr_html_()
    assert "grade" in page and "astype(&#x27;category&#x27;)" in page
    fit(update, scored.assign(grade=scored.grade.astype("category")))
    assert update.search_.possible_codes == ()
