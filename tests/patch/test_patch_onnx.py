"""`Patch.to_onnx`: the model's inputs, outputs and metadata, and what it refuses."""

import json
import math
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from patches import bins, category, content_of, margin, number

from commod.exceptions import InputError
from commod.patch import Patch
from commod.patch.onnx import MISSING_TEXT, OUTPUTS, UNSEEN_TEXT

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")


ALWAYS = OUTPUTS[:3]  # the calibrated probability is written on request


def run(patch, inputs):
    session = onnxruntime.InferenceSession(patch.to_onnx().SerializeToString())
    return dict(zip(ALWAYS, session.run(None, inputs), strict=True))


def every_kind(**options):
    columns = (
        number("age", 0.1, 30.0, -1.0),
        bins("income", [1.0, 2.5], [0.5, -0.5, 0.0]),
        category("town", {"Oslo": -3.0, "": 0.5}, 0.125),
        margin(0.25),
    )
    return Patch(content_of(*columns, **options))


def test_model_is_valid_double_precision_and_of_an_opset_that_is_widely_run():
    model = every_kind().to_onnx()
    onnx.checker.check_model(model, full_check=True)
    kinds = {i.name: i.type.tensor_type.elem_type for i in model.graph.input}
    double, text = onnx.TensorProto.DOUBLE, onnx.TensorProto.STRING
    assert kinds == {"score": double, "age": double, "income": double, "town": text}
    assert [o.name for o in model.graph.output] == list(ALWAYS)
    assert {o.domain: o.version for o in model.opset_import} == {"": 17, "ai.onnx.ml": 3}
    assert model.ir_version <= 9
    assert {n.op_type for n in model.graph.node}.isdisjoint({"MatMul", "Gemm", "Sum"})


def test_metadata_says_which_patch_it_is():
    patch = every_kind(threshold=0.3, labels=("no", "yes", "yes"))
    about = {p.key: p.value for p in patch.to_onnx().metadata_props}
    assert about["schema"] == "commod.patch/3"
    assert about["digest"] == patch.digest
    assert float(about["threshold"]) == 0.3
    assert json.loads(about["labels"]) == {"negative": "no", "positive": "yes", "favorable": "yes"}
    assert json.loads(about["labels"]) == json.loads(patch.to_json())["labels"]
    assert about["missing_text"] == MISSING_TEXT


def test_a_row_without_score_has_no_decision():
    inputs = {"score": np.array([math.nan, -0.1, 1.1, math.inf, 0.9])}
    found = run(Patch(content_of(intercept=-1.0)), inputs)
    assert found["commod_decision"].tolist() == [-1, -1, -1, -1, 0]
    assert found["commod_changed"].tolist() == [False] * 4 + [True]
    assert np.isnan(found["commod_score"][:4]).all()
    assert found["commod_score"][4] == pytest.approx(0.1)


def test_no_row_is_no_error():
    frame = pl.DataFrame({"score": [], "age": [], "income": [], "town": []}).cast(
        {"town": pl.String, "score": pl.Float64, "age": pl.Float64, "income": pl.Float64}
    )
    patch = every_kind()
    assert [len(v) for v in run(patch, patch.onnx_inputs(frame)).values()] == [0, 0, 0]


def test_names_that_are_taken_are_marked():
    patch = Patch(
        content_of(number("score", -1.0), number("commod_score", 0.5), number("value_0", 0.5))
    )
    names = [i.name for i in patch.to_onnx().graph.input]
    assert names == ["score", "column:score", "column:commod_score", "value_0"]
    frame = pd.DataFrame({"base": [0.9], "score": [3.0], "commod_score": [1.0], "value_0": [1.0]})
    inputs = patch.onnx_inputs(frame, score="base")
    assert list(inputs) == names
    assert run(patch, inputs)["commod_decision"].tolist() == [0]


def test_inputs_tell_missing_from_unseen():
    patch = Patch(content_of(category("town", {"Oslo": -3.0, "Rome": 1.0}, 0.5)))
    frames = {"score": [0.9] * 4, "town": ["Oslo", None, "Paris", "Rome"]}
    for frame in (pd.DataFrame(frames), pl.DataFrame(frames), pa.table(frames)):
        inputs = patch.onnx_inputs(frame)
        assert inputs["town"].tolist() == ["Oslo", MISSING_TEXT, UNSEEN_TEXT, "Rome"]


def test_typed_categories_are_told_apart():
    patch = Patch(content_of(category("flag", {True: -3.0})))
    booleans = pd.DataFrame({"score": [0.9, 0.9], "flag": [True, False]})
    assert patch.onnx_inputs(booleans)["flag"].tolist() == ["true", UNSEEN_TEXT]
    texts = pd.DataFrame({"score": [0.9, 0.9], "flag": ["true", "false"]})
    with pytest.raises(InputError, match="categories such as True"):
        patch.onnx_inputs(texts)
    mixed = pd.DataFrame({"score": [0.9] * 3, "flag": pd.Series([True, "yes", None], dtype=object)})
    assert patch.onnx_inputs(mixed)["flag"].tolist() == ["true", UNSEEN_TEXT, MISSING_TEXT]
    mixed["flag"] = pd.Series([True, "true", None], dtype=object)  # was true or false, became text
    with pytest.raises(InputError, match=r"held true or false .* holds text now"):
        patch.onnx_inputs(mixed)


def test_numbers_as_categories_are_read_from_numbers():
    patch = Patch(content_of(category("code", {1: -3.0, 2.5: 0.5})))
    frame = pl.DataFrame({"score": [0.9] * 4, "code": [1.0, 2.5, math.nan, 7.0]})
    assert patch.onnx_inputs(frame)["code"].tolist() == ["1", "2.5", MISSING_TEXT, UNSEEN_TEXT]


@pytest.mark.parametrize(
    ("categories", "message"),
    [
        ({"1": 0.5, 1: 0.25}, "'1' and 1, which are the same text"),
        ({True: 0.5, "true": 0.25}, "same text"),
        ({MISSING_TEXT: 0.5}, "cannot contain"),
        ({UNSEEN_TEXT: 0.5}, "cannot contain"),
        ({"a\0b": 0.5}, "cannot contain"),
    ],
)
def test_categories_that_no_text_can_stand_for_are_refused(categories, message):
    with pytest.raises(InputError, match=message):
        Patch(content_of(category("town", categories))).to_onnx()


def test_a_lazy_frame_and_a_lost_column_are_refused():
    patch = every_kind()
    with pytest.raises(InputError, match="Collect it first"):
        patch.onnx_inputs(pl.LazyFrame({"score": [0.5]}))
    with pytest.raises(InputError, match="reads column 'age', which the frame does not have"):
        patch.onnx_inputs(pl.DataFrame({"score": [0.5]}))
    with pytest.raises(InputError, match="no column 'f'"):
        patch.onnx_inputs(pl.DataFrame({"score": [0.5]}), score="f")


def test_onnx_missing_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(InputError, match=r"pip install 'commod-debiasing\[onnx\]'"):
        every_kind().to_onnx()
