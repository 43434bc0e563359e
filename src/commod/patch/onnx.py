"""Write a patch as an ONNX model in double precision, to run next to the base model.

The model has one input per column. It adds terms one by one in the order of the file, so that the
ratio equals NumPy's to the last bit.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from functools import partialmethod
from importlib import import_module
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from commod._data.columns import code_array
from commod._data.encoding import ColumnTerms, NumericTerms
from commod._io.optional import import_optional
from commod._record.explanation import Value
from commod._record.plain import to_plain
from commod._statistics.score_map import MapPiece
from commod.exceptions import InputError, InputTypeError
from commod.patch.content import (
    SCHEMA,
    BinColumn,
    CategoryColumn,
    Content,
    NumberColumn,
    missing_points_of,
    terms_of,
)
from commod.patch.file import NEWEST, as_version, content_digest
from commod.patch.frames import (
    OBJECT_TYPES,
    category_points_of,
    check_columns,
    from_frame,
    read_as,
    schema_of,
)
from commod.patch.rule import PatchOperations, calibrated_in, parts_in, ratio_in
from commod.scorecard import edited_in, is_changed, logit_of, margins_in

MISSING_TEXT = "\x1fmissing"  # stands for a missing category
UNSEEN_TEXT = "\x1funseen"  # stands for a category without points
SCORE_INPUT = "score"
OUTPUTS = ("commod_score", "commod_decision", "commod_changed", "commod_calibrated")
COLUMN = "column:"
OPSET, ML_OPSET, IR_VERSION = 17, 3, 8  # onnxruntime 1.17 and later run them
FINITE = sys.float_info.max


def input_name(column: str) -> str:
    """Return the name of a column's input: the column's name, with a prefix if that is taken.

    Examples
    --------
    >>> input_name("age"), input_name("score"), input_name("column:age")
    ('age', 'column:score', 'column:column:age')
    """
    is_taken = column in (SCORE_INPUT, *OUTPUTS) or column.startswith(COLUMN)
    return COLUMN + column if is_taken else column


# ---------------------------------------------------------------------------------------------
# The model


def write_onnx(content: Content, calibrated: bool = False) -> Any:
    """Return an `onnx.ModelProto` that edits base scores.

    Inputs have shape (n,) and the names of their columns (see `input_name` for exceptions):

    - `score` and numbers: double, NaN where missing;
    - categories: text, `MISSING_TEXT` where missing, "true" and "false" for Booleans.

    Outputs have shape (n,):

    - `commod_score`: double, NaN without a base score;
    - `commod_decision`: int64, 1 for the positive label, 0 for the negative one, −1 without a base
      score;
    - `commod_changed`: Boolean;
    - with `calibrated`, `commod_calibrated`: double, NaN without a base score.

    Examples
    --------
    >>> from commod import ControlledDebiaser
    >>> from commod.datasets import make_biased
    >>> from sklearn.linear_model import LogisticRegression
    >>> import onnxruntime
    >>> data = make_biased(800, random_state=0)
    >>> model = LogisticRegression().fit(data.data, data.target)
    >>> update = ControlledDebiaser(model, target=0.8)
    >>> update = update.fit(data.data, data.target, sensitive_features=data.sensitive_features)
    >>> content = update.to_patch().content
    >>> session = onnxruntime.InferenceSession(write_onnx(content).SerializeToString())
    >>> scored = data.data.assign(score=model.predict_proba(data.data)[:, 1])
    >>> score, decision, changed = session.run(None, read_inputs(content, scored, "score"))
    >>> (decision == update.predict(data.data)).all()
    np.True_
    """
    graph = _Graph([input_name(c.name) for c in content.ratio.columns])
    base = graph.input(SCORE_INPUT, np.float64)
    known = graph.is_between(base, 0.0, 1.0)
    threshold = graph.number(content.base.threshold)
    score = graph.where(known, base, threshold)  # any number will do where the score is missing
    is_at_threshold = score == threshold
    margin = margins_in(graph, score, is_at_threshold, content.base.threshold)
    distance = graph.node("Abs", score - threshold)
    intercept = graph.constant([content.ratio.intercept])
    total = graph.node("Expand", intercept, graph.node("Shape", margin))
    for column in content.ratio.columns:
        for part in parts_in(graph, column, margin, distance):
            total = total + part
    ratio = ratio_in(graph, content, total, score, distance)
    flipped = is_changed(ratio, is_at_threshold)
    positive = (score > threshold) ^ flipped
    values = score, ratio, margin, flipped, positive
    edited = edited_in(graph, *values, content.base.threshold, content.score_edit)
    as_label = graph.node("Cast", positive, to=_type(np.int64))
    graph.output(0, np.float64, "Where", known, edited, np.nan)
    graph.output(1, np.int64, "Where", known, as_label, graph.constant(-1, np.int64))
    graph.output(2, np.bool_, "And", known, flipped)
    if calibrated:
        mapped = calibrated_in(graph, content, edited)
        graph.output(3, np.float64, "Where", known, mapped, np.nan)
    return graph.model(content)


def _operator(name: str) -> Any:
    """Return a method of a value that adds a node of this name, with the value first."""
    return lambda value, *others: value.graph.node(name, value, *others)


class _Value:
    """A value of a graph: operators add nodes, and a number beside them becomes a constant."""

    def __init__(self, graph: _Graph, name: str) -> None:
        self.graph, self.name = graph, name

    __add__, __sub__, __mul__, __truediv__ = map(_operator, ("Add", "Sub", "Mul", "Div"))
    __gt__, __ge__, __lt__ = map(_operator, ("Greater", "GreaterOrEqual", "Less"))
    __le__, __eq__ = map(_operator, ("LessOrEqual", "Equal"))
    __and__, __xor__, __invert__, __neg__ = map(_operator, ("And", "Xor", "Not", "Neg"))

    def __rsub__(self, other: float) -> _Value:
        return self.graph.node("Sub", other, self)


class _Graph(PatchOperations):
    """Build a graph node by node, with the operations of the rule on its values."""

    def __init__(self, taken: Sequence[str]) -> None:
        self._taken = {SCORE_INPUT, *OUTPUTS, *taken}
        self._helper: Any = _onnx().helper
        self._inputs: list[Any] = []
        self._outputs: list[Any] = []
        self._nodes: list[Any] = []
        self._constants: list[Any] = []

    def _new_name(self) -> str:
        number = len(self._nodes) + len(self._constants)
        name = f"value_{number}"
        while name in self._taken:
            name += "_"
        self._taken.add(name)
        return name

    def input(self, name: str, kind: type) -> _Value:
        self._inputs.append(self._helper.make_tensor_value_info(name, _type(kind), ["n"]))
        return _Value(self, name)

    def constant(self, value: Any, kind: type = np.float64) -> _Value:
        name = self._new_name()
        tensor = _onnx().numpy_helper.from_array(np.asarray(value, dtype=kind), name)
        self._constants.append(tensor)
        return _Value(self, name)

    def node(self, operator: str, *inputs: Any, domain: str = "", **attributes: Any) -> _Value:
        names = [self._name_of(value) for value in inputs]
        return self._append(operator, names, self._new_name(), domain=domain, **attributes)

    def output(self, which: int, kind: type, operator: str, *inputs: Any) -> None:
        name = OUTPUTS[which]
        self._append(operator, [self._name_of(value) for value in inputs], name)
        self._outputs.append(self._helper.make_tensor_value_info(name, _type(kind), ["n"]))

    def _name_of(self, value: Any) -> str:
        return value.name if isinstance(value, _Value) else self.constant(value).name

    def _append(self, operator: str, names: Sequence[str], name: str, **attributes: Any) -> _Value:
        self._nodes.append(self._helper.make_node(operator, names, [name], **attributes))
        return _Value(self, name)

    # The operations of the rule

    number = constant
    where, minimum = partialmethod(node, "Where"), partialmethod(node, "Min")
    maximum, clip = partialmethod(node, "Max"), partialmethod(node, "Clip")

    def logit(self, share: Any, threshold: float) -> _Value:
        odds = share / (1.0 - share)
        start = self.number(logit_of(threshold))
        return self.node("Log", odds) - start

    def sigmoid(self, value: Any, one: Any) -> _Value:
        return one / (one + self.node("Exp", -value))

    # The columns

    def number_column(self, column: NumberColumn | BinColumn) -> _Value:
        return self.input(input_name(column.name), np.float64)

    def in_bins(self, value: Any, edges: Sequence[float], points: Sequence[float]) -> _Value:
        return self.node("Gather", points, self._n_reached(value, edges))

    def on_lines(self, value: Any, lines: Sequence[MapPiece]) -> _Value:
        n_reached = self._n_reached(value, [line.start for line in lines[1:]])
        start, first, slope = (
            self.node("Gather", numbers, n_reached)
            for numbers in zip(*((p.start, p.value, p.slope) for p in lines), strict=True)
        )
        return (value - start) * slope + first

    def _n_reached(self, value: Any, edges: Sequence[float]) -> _Value:
        """Return how many of the edges each value reaches."""
        upright = self.node("Unsqueeze", value, self.constant([1], np.int64))
        ones = self.node("Cast", upright >= [list(edges)], to=_type(np.int32))
        return self.node("ReduceSum", ones, self.constant([1], np.int64), keepdims=0)

    def category_points(self, column: CategoryColumn) -> _Value:
        texts = _texts(column).values()
        codes = self.node(
            "LabelEncoder",
            self.input(input_name(column.name), str),
            domain="ai.onnx.ml",
            keys_strings=[*texts, MISSING_TEXT],
            values_int64s=list(range(len(texts) + 1)),
            default_int64=len(texts) + 1,
        )
        points = [*(c.points for c in column.categories), missing_points_of(column), 0.0]
        return self.node("Gather", points, codes)

    def model(self, content: Content) -> Any:
        helper = self._helper
        graph = helper.make_graph(
            self._nodes, "commod_patch", self._inputs, self._outputs, self._constants
        )
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid("ai.onnx.ml", ML_OPSET)]
        model = helper.make_model(
            graph, opset_imports=opsets, producer_name="commod", ir_version=IR_VERSION
        )
        about = {
            "schema": SCHEMA,
            "digest": content_digest(content),
            "threshold": repr(content.base.threshold),
            "labels": json.dumps(as_version(to_plain(content), NEWEST)["labels"]),
            "missing_text": MISSING_TEXT,
        }
        helper.set_model_props(model, about)
        _onnx().checker.check_model(model, full_check=True)
        return model


def _onnx() -> Any:
    onnx = import_optional("onnx", "onnx", "Writing an ONNX model")
    for part in ("checker", "helper", "numpy_helper"):
        import_module(f"onnx.{part}")
    return onnx


def _type(kind: type) -> int:
    number: int = _onnx().helper.np_dtype_to_tensor_dtype(np.dtype(object if kind is str else kind))
    return number


def _texts(column: CategoryColumn) -> dict[Value, str]:
    """Return the text of each category; refuse two categories with the same text."""
    texts = {c.value: _text(c.value) for c in column.categories}
    values: dict[str, Value] = {}
    for value, text in texts.items():
        if text in (MISSING_TEXT, UNSEEN_TEXT) or "\0" in text:
            raise InputError(
                f"Column {column.name!r} of the patch has the category {value!r}, which an "
                "input of an ONNX model cannot contain. Rename it."
            )
        if text in values:
            raise InputError(
                f"Column {column.name!r} of the patch has the categories {values[text]!r} and "
                f"{value!r}, which are the same text in an ONNX model. Fit the update on a column "
                "of one type."
            )
        values[text] = value
    return texts


def _text(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else repr(value)


# ---------------------------------------------------------------------------------------------
# Inputs


def read_inputs(content: Content, frame: Any, score: str) -> dict[str, NDArray[Any]]:
    """Return the model's inputs by name, for a frame in memory.

    Examples
    --------
    >>> from commod import ControlledDebiaser
    >>> from commod.datasets import make_biased
    >>> from sklearn.linear_model import LogisticRegression
    >>> data = make_biased(800, random_state=0)
    >>> model = LogisticRegression().fit(data.data, data.target)
    >>> update = ControlledDebiaser(model, target=0.8)
    >>> update = update.fit(data.data, data.target, sensitive_features=data.sensitive_features)
    >>> scored = data.data.assign(score=model.predict_proba(data.data)[:, 1])
    >>> inputs = read_inputs(update.to_patch().content, scored, "score")
    >>> inputs["score"].dtype, inputs["score"].shape
    (dtype('float64'), (800,))
    """
    table = from_frame(frame)
    if not isinstance(table, nw.DataFrame):
        raise InputTypeError(
            f"The inputs of an ONNX model are arrays, but the frame is lazy "
            f"({type(frame).__module__}.{type(frame).__name__}). Collect it first."
        )
    check_columns(content, schema_of(table), score, is_eager=True)
    inputs = {SCORE_INPUT: _read_numbers(table, NumericTerms(score, 0.0, False))}
    for column in content.ratio.frame_columns:
        if isinstance(column, CategoryColumn):
            inputs[input_name(column.name)] = _read_texts(table, column)
        else:
            inputs[input_name(column.name)] = _read_numbers(table, terms_of(column))
    return inputs


def _read_numbers(table: nw.DataFrame[Any], terms: ColumnTerms) -> NDArray[Any]:
    series = table[terms.name]
    if series.dtype.is_numeric():  # here infinite numbers are missing ones, as in every engine
        return series.cast(nw.Float64).to_numpy().astype(np.float64, copy=False)
    return read_as(table, terms).values.astype(np.float64, copy=False)


def _read_texts(table: nw.DataFrame[Any], column: CategoryColumn) -> NDArray[Any]:
    """Return categories as the texts that the model knows, and two texts for all others."""
    series, terms = table[column.name], terms_of(column)
    if series.dtype.is_numeric():
        numbers = _read_numbers(table, terms)
        coded = code_array(np.where(np.isfinite(numbers), numbers, np.nan))
        codes, values = coded.codes, coded.values
    else:
        read = read_as(table, terms)
        codes, values = read.values, list(read.categories)
    keys = [c.value for c in column.categories]
    if series.dtype not in OBJECT_TYPES:
        keys = [key for key, _ in category_points_of(column, series.dtype)]
    texts = _texts(column)
    known = {key: texts[key] for key in keys}
    value_texts = [known.get(value, UNSEEN_TEXT) for value in values]
    return np.array([*value_texts, MISSING_TEXT], dtype=object)[codes]
