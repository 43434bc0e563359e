"""Models in files: those that can be edited come out as they went in, others in one sentence."""

import copy
import importlib
import json
import os
import pickle
import sys
import warnings
import zipfile
from itertools import product

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    VotingClassifier,
)
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import Matern, WhiteKernel
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, KBinsDiscretizer, OneHotEncoder

from commod import ScoreColumn
from commod._io.untrusted import MODEL_TYPES
from commod.cli._models import load_model
from commod.exceptions import BaseModelError, InputError
from quick_updates import quick_control
from tables_of_cases import every_line

skops = pytest.importorskip("skops.io")
RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 3)).astype(np.float32)
Y = (X[:, 0] + 0.3 * RNG.normal(size=200) > 0).astype(int)


class WithoutScores:
    """Pickled below; it is no classifier."""


def saved(model, path):
    if path.suffix == ".skops":
        skops.dump(model, path)
    elif path.suffix == ".joblib":
        joblib.dump(model, path)
    else:
        path.write_bytes(pickle.dumps(model))
    return str(path)


# ---------------------------------------------------------------------------------------------
# skops and pickles


@every_line(
    "model, suffix",
    [
        (LogisticRegression(), ".PICKLE"),
        (RidgeClassifier(), ".pkl"),
        (GradientBoostingClassifier(n_estimators=3), ".skops"),
        (HistGradientBoostingClassifier(max_iter=3), ".skops"),
        (KNeighborsClassifier(), ".joblib"),
    ],
)
def test_a_model_comes_back_as_it_was_saved(tmp_path, model, suffix):
    model = clone(model).fit(X, Y)
    loaded = load_model(saved(model, tmp_path / f"m{suffix}"), trust=["pickle"])
    assert np.array_equal(loaded.predict(X), model.predict(X))


@every_line("suffix", [".joblib", ".pkl", ".pickle"])
def test_a_pickle_is_not_touched_without_trust(tmp_path, suffix):
    path = tmp_path / f"m{suffix}"
    path.write_bytes(b"cos\nsystem\n(S'touch " + os.fsencode(tmp_path / "owned") + b"'\ntR.")
    with pytest.raises(InputError, match=r"can run any code.*--trust pickle.*skops\.io\.dump"):
        load_model(path)
    assert not (tmp_path / "owned").exists()


def test_types_that_may_be_unsafe_are_listed_and_can_be_allowed(tmp_path):
    model = make_pipeline(FunctionTransformer(os.path.basename), LogisticRegression())
    path = saved(model, tmp_path / "m.skops")
    with pytest.raises(InputError, match=r"not known to be safe: posixpath.basename.*--trust"):
        load_model(path)
    assert load_model(path, trust=["posixpath.basename"]).steps[0][1].func is os.path.basename


@every_line("function", [np.load, np.testing.rundocs])
def test_functions_of_numpy_are_not_safe_for_being_of_numpy(tmp_path, function):
    model = make_pipeline(FunctionTransformer(function), LogisticRegression())
    with pytest.raises(InputError, match="not known to be safe: numpy"):
        load_model(saved(model, tmp_path / "m.skops"))


@every_line(
    "loader, name",
    [
        ("ListNode", "sklearn.utils._testing.TempMemmap"),
        ("ConstructorFromReduceNode", "sklearn.utils._testing.TempMemmap"),
        ("ObjectNode", "sklearn.utils._testing.MinimalClassifier"),
        ("ObjectNode", "sklearn.metrics._dist_metrics.PyFuncDistance64"),
        ("TypeNode", "sklearn.utils._testing.TempMemmap"),
    ],
)
def test_a_class_of_scikit_learn_is_not_called_for_being_of_scikit_learn(tmp_path, loader, name):
    """skops calls a type that it trusts, with what the file holds."""
    module, _, kind = name.rpartition(".")
    source, path = saved([1, 2], tmp_path / "list.skops"), tmp_path / "m.skops"
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(path, "w") as new:
        schema = json.loads(old.read("schema.json"))
        schema |= {"__class__": kind, "__module__": module, "__loader__": loader}
        if loader != "ListNode":
            schema["content"] = {**schema, "__class__": "tuple", "__module__": "builtins",
                                 "__loader__": "TupleNode"}  # fmt: skip
        new.writestr("schema.json", json.dumps(schema))
    with pytest.raises(InputError, match=f"not known to be safe: {name}.*--trust"):
        load_model(path)


def test_every_type_that_is_allowed_in_a_model_exists_and_is_a_class():
    absent = []
    for name in MODEL_TYPES:
        module, _, kind = name.rpartition(".")
        try:
            assert isinstance(getattr(importlib.import_module(module), kind), type), name
        except (ImportError, AttributeError):
            absent.append(name)
    assert len(absent) <= 3, absent  # scikit-learn adds and renames a few between versions


@every_line(
    "model",
    [
        CalibratedClassifierCV(LogisticRegression(), method="isotonic"),
        CalibratedClassifierCV(LogisticRegression()),
        GaussianProcessClassifier(1.0 * Matern() + WhiteKernel()),
        GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}),
        KNeighborsClassifier(algorithm="ball_tree", metric="manhattan"),
        MLPClassifier(max_iter=2, solver="sgd"),
        RandomForestClassifier(n_estimators=3),
        VotingClassifier([("a", LogisticRegression()), ("b", GaussianNB())], voting="soft"),
        make_pipeline(SimpleImputer(), KBinsDiscretizer(3), LogisticRegression()),
    ],
)
def test_usual_models_need_no_trust(tmp_path, model):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that few steps are not enough
        model = clone(model).fit(X, Y)
    loaded = load_model(saved(model, tmp_path / "m.skops"))
    assert np.array_equal(loaded.predict(X), model.predict(X))


@every_line(
    "suffix, content",
    product(
        [".skops", ".joblib", ".pkl", ".onnx"],
        [b"junk that is no model", b"PK\x03\x04", b"\x80\x04\x95"],
    ),
)
def test_a_damaged_file_is_one_sentence(tmp_path, suffix, content):
    path = tmp_path / f"m{suffix}"
    path.write_bytes(content)
    with pytest.raises(InputError, match="cannot be loaded") as caught:
        load_model(path, trust=["pickle"])
    assert "\n" not in str(caught.value)


@every_line("suffix", [".skops", ".joblib"])
def test_a_file_that_is_cut_off(tmp_path, suffix):
    path = tmp_path / f"m{suffix}"
    saved(LogisticRegression().fit(X, Y), path)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(InputError, match="cannot be loaded"):
        load_model(path, trust=["pickle"])


def test_what_is_no_file_of_a_model(tmp_path):
    os.mkfifo(tmp_path / "pipe.pkl")
    (tmp_path / "empty.skops").touch()
    (tmp_path / "m.json").write_text("{}")
    for path, message in [
        (tmp_path, "is a folder"),
        (tmp_path / "none.skops", "cannot be opened: No such file"),
        (tmp_path / "pipe.pkl", "pipe, socket or device"),
        (tmp_path / "empty.skops", r"is empty \(0 bytes\)"),
        (tmp_path / "m.json", r"does not end in one of .skops, .onnx, .pkl"),
    ]:
        with pytest.raises(InputError, match=message):
            load_model(path, trust=["pickle"])


def test_a_file_that_may_not_be_read(tmp_path, monkeypatch):
    path = saved(LogisticRegression(), tmp_path / "m.skops")

    def refuse(*args, **options):
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr("builtins.open", refuse)  # root may read everything
    with pytest.raises(InputError, match="cannot be opened: Permission denied"):
        load_model(path)


def test_a_pickle_of_a_package_that_is_not_here(tmp_path):
    path = tmp_path / "m.pkl"
    path.write_bytes(b"cno_such_package.models\nModel\n.")
    with pytest.raises(InputError, match="needs the package no_such_package"):
        load_model(path, trust=["pickle"])


@every_line(
    "thing, name",
    [
        (LinearRegression().fit(X, Y), "LinearRegression"),
        ({"model": LogisticRegression().fit(X, Y)}, "dict"),
        (LogisticRegression, "the class LogisticRegression"),
        (WithoutScores(), "WithoutScores"),
        (ScoreColumn("score"), "ScoreColumn"),
    ],
)
def test_what_does_not_score_is_refused(tmp_path, thing, name):
    with pytest.raises(InputError, match=f"holds {name}, which has neither predict_proba"):
        load_model(saved(thing, tmp_path / "m.pkl"), trust=["pickle"])


@every_line("suffix, package", [(".skops", "skops.io"), (".onnx", "onnxruntime")])
def test_a_package_that_is_not_installed_is_named_with_its_extra(
    tmp_path, monkeypatch, suffix, package
):
    (tmp_path / f"m{suffix}").write_bytes(b"x")
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(InputError, match=r"which is not installed.*'commod-debiasing\["):
        load_model(tmp_path / f"m{suffix}")


# ---------------------------------------------------------------------------------------------
# ONNX


def onnx_file(model, path, example, **options):
    convert = pytest.importorskip("skl2onnx").to_onnx
    path.write_bytes(convert(model, example, **options).SerializeToString())
    return str(path)


@pytest.mark.filterwarnings("ignore")
@every_line(
    "zipmap, labels, kind",
    [
        (True, [0, 1], LogisticRegression),
        (False, [3, 7], KNeighborsClassifier),
        (True, ["no", "yes"], LogisticRegression),
    ],
)
def test_an_onnx_matrix_model_scores_as_the_original(tmp_path, zipmap, labels, kind):
    model = kind().fit(X, np.array(labels)[Y])
    path = onnx_file(model, tmp_path / "m.onnx", X[:1], options={"zipmap": zipmap})
    loaded = load_model(path)
    assert loaded.classes_.tolist() == labels
    for table in (X, pd.DataFrame(X, columns=list("abc")), X.astype(np.float64)):
        assert np.allclose(loaded.predict_proba(table), model.predict_proba(X), atol=1e-5)
    assert np.mean(loaded.predict(X) == model.predict(X)) > 0.98


@pytest.fixture
def mixed(tmp_path):
    frame = pd.DataFrame(
        {
            "age": RNG.integers(20, 60, 200),
            "x": X[:, 0],
            "color": RNG.choice(["red", "blue"], 200),
        }
    )
    steps = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["color"]), remainder="passthrough"
    )
    model = make_pipeline(steps, LogisticRegression(max_iter=1000)).fit(frame, Y)
    path = onnx_file(model, tmp_path / "m.onnx", frame[:1], options={"zipmap": False})
    return model, frame, path


@pytest.mark.filterwarnings("ignore")
def test_an_onnx_model_with_an_input_for_each_column(mixed):
    model, frame, path = mixed
    loaded = load_model(path)
    assert np.allclose(loaded.predict_proba(frame), model.predict_proba(frame), atol=1e-4)
    reordered = frame[["color", "x", "age"]].assign(extra=1)
    assert np.array_equal(loaded.predict_proba(reordered), loaded.predict_proba(frame))


@pytest.mark.filterwarnings("ignore")
def test_tables_that_do_not_fit_an_onnx_model(mixed, tmp_path):
    _, frame, path = mixed
    loaded = load_model(path)
    with pytest.raises(BaseModelError, match=r"reads the columns age, x, color, .* no 'age'"):
        loaded.predict_proba(frame.drop(columns="age"))
    gaps = frame.assign(age=frame["age"].where(frame["age"] > 30))
    with pytest.raises(BaseModelError, match=r"'age' as tensor\(int64\), but it has .* missing"):
        loaded.predict_proba(gaps)
    with pytest.raises(BaseModelError, match="reads 'x' as numbers, but"):
        loaded.predict_proba(frame.assign(x="high"))
    matrix = load_model(onnx_file(LogisticRegression().fit(X, Y), tmp_path / "x.onnx", X[:1]))
    with pytest.raises(BaseModelError, match=r"matrix of 3 columns, but the table has 2 \(x0, x1"):
        matrix.predict_proba(X[:, :2])
    with pytest.raises(BaseModelError, match="reads 'color' as numbers"):
        matrix.predict_proba(frame)


@pytest.mark.filterwarnings("ignore")
def test_an_onnx_model_survives_copies_and_clones(tmp_path):
    path = onnx_file(LogisticRegression().fit(X, Y), tmp_path / "m.onnx", X[:1])
    loaded = load_model(path)
    expected = loaded.predict_proba(X)
    for again in (copy.deepcopy(loaded), clone(loaded), pickle.loads(pickle.dumps(loaded))):
        assert np.array_equal(again.predict_proba(X), expected)


@pytest.mark.filterwarnings("ignore")
def test_an_onnx_model_can_be_edited(tmp_path):

    group = np.where(X[:, 1] > 0, "a", "b")
    held_out = pd.DataFrame(X + RNG.normal(size=X.shape).astype(np.float32), columns=list("abc"))
    path = onnx_file(LogisticRegression().fit(X, Y), tmp_path / "m.onnx", X[:1])
    update = quick_control(load_model(path), target=0.5)
    update.fit(held_out, Y, sensitive_features=group)
    assert update.predict(held_out).shape == (200,)


@pytest.mark.filterwarnings("ignore")
def test_an_onnx_model_without_probabilities(tmp_path):
    onnx = pytest.importorskip("onnx")
    helper, proto = onnx.helper, onnx.TensorProto
    graph = helper.make_graph(
        [helper.make_node("Cast", ["X"], ["label"], to=proto.INT64)],
        "g",
        [helper.make_tensor_value_info("X", proto.FLOAT, [None, 1])],
        [helper.make_tensor_value_info("label", proto.INT64, [None, 1])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(InputError, match=r"no probabilities \(outputs: label tensor\(int64\)\)"):
        load_model(tmp_path / "m.onnx")


@every_line(
    "shape, node, a, scores",
    [
        ([None], "Sigmoid", [0.0, 100.0], [0.5, 1.0]),
        ([None, 1], "Sigmoid", [0.0, 100.0], [0.5, 1.0]),
        ([None, 1], "Identity", [-0.5, 1.5], [-0.5, 1.5]),  # no probabilities, nor made some
    ],
)
def test_an_onnx_model_of_one_score(tmp_path, shape, node, a, scores):
    onnx = pytest.importorskip("onnx")
    helper, proto = onnx.helper, onnx.TensorProto
    nodes = [helper.make_node(node, ["a"], ["s"])]
    nodes.append(
        helper.make_node("Identity", ["s"], ["score"])
        if len(shape) == 2
        else helper.make_node("Squeeze", ["s"], ["score"])
    )
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("a", proto.FLOAT, [None, 1])],
        [helper.make_tensor_value_info("score", proto.FLOAT, shape)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    loaded = load_model(tmp_path / "m.onnx")
    frame = pd.DataFrame({"other": ["x", "y"], "a": a})
    assert loaded.classes_.tolist() == [0, 1]
    assert np.allclose(loaded.predict_proba(frame), [[1 - score, score] for score in scores])
