"""Studies, explanations and displays use public methods and the internal interface only."""

import ast
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.utils import get_tags

import commod
from commod import COMMOD, ScoreColumn
from commod.datasets import make_biased
from commod.exceptions import InputError
from commod.rivals import MinimalFlip
from commod.scorecard import AllowedChanges
from commod.updates._interface import RawRows
from commod.updates.base import check_update
from quick_updates import quick_control

PACKAGE = Path(commod.__file__).parent
ROOMS = ("_study", "_displays", "_reporting/explain")
FILES = sorted(file for room in ROOMS for file in (PACKAGE / room).rglob("*.py"))
# The methods of updates/_interface.py: other rooms call them, and users do not see them.
INTERFACE = {
    *("_allowed_changes", "_as_fitted", "_asked_changes", "_bounds", "_compared_text"),
    *("_decide_rows", "_edit_columns", "_edit_rows", "_evaluate_rows"),
    *("_fitted_param", "_fitted_params", "_has_whole_points", "_labels_of"),
    *("_ratio_columns", "_read_base", "_read_rows", "_score_columns"),
    *("_stated", "_sweep", "_unread_columns"),
    *("_base_model", "_favorable_label", "_pos_label"),
}
METHODS = {"COMMOD", "ControlledDebiaser", "RatioUpdate", "Rival", "AwareRival"}


def own_private_names(tree):
    """Return the private attributes that the classes of a file define or set on self."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            names.add(node.attr)
    return names


def is_private(name):
    return name.startswith("_") and not name.startswith("__")


def foreign_private_access(source):
    """Return each `x._name` where x is neither self nor cls and the file does not own _name."""
    tree = ast.parse(source)
    own = own_private_names(tree)
    return [
        f"line {node.lineno}: {ast.unparse(node)}"
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and is_private(node.attr)
        and node.attr not in own | INTERFACE
        and not (isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"))
    ]


def names_in(node):
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}


def sorts_by_method(tree):
    """Return each isinstance(x, <a method>) of a file."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    checks = [call for call in calls if names_in(call.func) & {"isinstance", "issubclass"}]
    return [ast.unparse(call) for call in checks if names_in(call) & METHODS]


def test_nobody_reaches_into_private_parts_or_sorts_updates_by_their_method():
    sources = {str(file.relative_to(PACKAGE)): file.read_text() for file in FILES}
    reached = {name: foreign_private_access(text) for name, text in sources.items()}
    assert {name: found for name, found in reached.items() if found} == {}
    by_method = {name: sorts_by_method(ast.parse(text)) for name, text in sources.items()}
    assert {name: found for name, found in by_method.items() if found} == {}
    assert sorts_by_method(ast.parse("isinstance(update, (str, Rival))"))


def test_the_check_finds_foreign_private_access():
    for source, n in [
        ("update._base(X)", 1),
        ("self._update._base(X)", 1),
        ("self._base(X)", 0),
        ("model._read_base(X).scores", 0),
        ("update.__class__", 0),
        ("class A:\n    def _own(self): ...\nA()._own()", 0),
    ]:
        assert len(foreign_private_access(source)) == n


@pytest.fixture(scope="module")
def rows():
    data = make_biased(600, bias=1.5, random_state=0)
    return data.data, data.target, data.sensitive_features


@pytest.fixture(scope="module")
def model(rows):
    return LogisticRegression().fit(rows[0], rows[1])


@pytest.mark.parametrize(
    ("update", "how"),
    [
        (lambda model: quick_control(model), {"targets": [0.7, 0.9]}),
        (lambda model: COMMOD(model, epochs=3, random_state=0), {"grid": {"lambda_fair": [0, 9]}}),
        (lambda model: MinimalFlip(model), {"grid": {"strength": [0.5, 1]}}),
    ],
    ids=["ControlledDebiaser", "COMMOD", "MinimalFlip"],
)
def test_a_candidate_decides_as_the_update_that_it_builds(model, rows, update, how):
    X, y, group = rows
    sweep = update(model)._sweep(RawRows(X, y, group), **how)
    assert len(sweep.candidates) == 2
    read = sweep.reader._read_rows(X, group)
    np.testing.assert_array_equal(read.base.decisions, model.predict(X) == 1)
    for candidate in sweep.candidates:
        built = candidate.build()
        evaluation = built._evaluate_rows(built._read_rows(X, group))
        groups = {"sensitive_features": group} if get_tags(built).needs_sensitive_features else {}
        np.testing.assert_array_equal(
            built._labels_of(evaluation.after), built.predict(X, **groups)
        )
        proba = built.predict_proba(X, **groups)[:, 1]
        np.testing.assert_allclose(evaluation.scores, proba, rtol=1e-9)
        np.testing.assert_array_equal(candidate.decide(read), built._decide_rows(read))


def test_columns_are_edited_for_the_update_alone(rows):
    X, y, group = rows
    table = X.assign(score=np.linspace(0.01, 0.99, len(X)))
    update = quick_control(ScoreColumn("score"), locked_features=[X.columns[1]], target=0.5)
    names = []

    def edit(column):
        names.append(column.name)
        return column

    update._edit_columns(edit).fit(table, y, sensitive_features=group)
    assert update._unread_columns() == {"score", X.columns[1]}
    assert "score" not in names and X.columns[0] in names
    np.testing.assert_array_equal(update._read_base(table).scores, table["score"])


def test_rows_on_the_threshold_never_change(rows):
    X, y, group = rows
    scores = np.where(np.arange(len(X)) % 3, np.linspace(0.01, 0.99, len(X)), 0.5)
    update = quick_control(ScoreColumn("score"), target=0.5, direction="gains_only")
    update.fit(X.assign(score=scores), y, sensitive_features=group)
    assert update._allowed_changes() == AllowedChanges(may_raise=True, may_lower=False)
    mask = update._allowed_changes().mask(update._read_base(X.assign(score=scores)))
    np.testing.assert_array_equal(mask, scores < 0.5)


def test_an_object_that_is_no_update_is_refused():
    with pytest.raises(InputError, match=r"stability takes a .* or one of commod\.rivals; got str"):
        check_update("COMMOD", "stability")
