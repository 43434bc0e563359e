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
from scipy.special import logit

from commod._data.codes import code_array
from commod._data.columns import LARGEST, Column, read_columns
from commod._data.encoding import ColumnTerms, NumericTerms, matching_column
from commod._io.optional import import_optional
from commod._record import Value, to_plain
from commod._statistics.score_map import pieces_of
from commod.exceptions import InputError, InputTypeError
from commod.patch.content import (
    SCHEMA,
    BinColumn,
    CategoryColumn,
    ColumnOfScore,
    Content,
    DistanceBinColumn,
    DistanceColumn,
    MarginColumn,
    NumberColumn,
    calibrated_in,
    gated_in,
    rule_of,
    terms_of,
)
from commod.patch.file import NEWEST, as_version, content_digest
from commod.patch.frames import check_columns, from_frame, schema_of
from commod.patch.sources import OBJECT_TYPES, category_points_of
from commod.scorecard import Operations, all_edited_in, crossing_at, is_changed, margins_in

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
    known = _is_between(base, 0.0, 1.0)
    threshold = graph.number(content.base.threshold)
    score = graph.where(known, base, threshold)  # any number will do where the score is missing
    is_at_threshold = score == threshold
    margin = margins_in(graph, score, is_at_threshold, content.base.threshold)
    distance = graph.node("Abs", score - threshold)
    ratio = _total(graph, content, margin, distance)
    rule = rule_of(content)
    if rule is not None:
        ratio = rule.ratio_in(graph, ratio, distance, score > content.base.threshold)
    ratio = gated_in(graph, content, ratio, score, distance)
    flipped = is_changed(ratio, is_at_threshold)
    positive = (score > threshold) ^ flipped
    if content.score_edit == "changed_only":
        edited = graph.where(
            flipped, crossing_at(content.base.threshold).place(score, graph), score
        )
    else:
        edited = all_edited_in(graph, score, ratio, margin, positive, content.base.threshold)
    as_label = graph.node("Cast", positive, to=_types()[np.int64])
    graph.output(0, np.float64, "Where", known, edited, np.nan)
    graph.output(1, np.int64, "Where", known, as_label, graph.constant(-1, np.int64))
    graph.output(2, np.bool_, "And", known, flipped)
    if calibrated:
        mapped = calibrated_in(
            graph, _mapped(graph, content, edited), edited, content.base.threshold
        )
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


class _Graph(Operations):
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
        self._inputs.append(self._helper.make_tensor_value_info(name, _types()[kind], ["n"]))
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
        self._outputs.append(self._helper.make_tensor_value_info(name, _types()[kind], ["n"]))

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
        start = self.number(float(logit(threshold)))
        return self.node("Log", odds) - start

    def sigmoid(self, value: Any, one: Any) -> _Value:
        return one / (one + self.node("Exp", -value))

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


def _types() -> dict[type, int]:
    proto = _onnx().TensorProto
    return {
        np.float64: proto.DOUBLE,
        np.int64: proto.INT64,
        np.int32: proto.INT32,
        np.bool_: proto.BOOL,
        str: proto.STRING,
    }


# ---------------------------------------------------------------------------------------------
# r


def _total(graph: _Graph, content: Content, margin: _Value, distance: _Value) -> _Value:
    """Return the intercept plus points, added in the order of the file."""
    intercept = graph.constant([content.ratio.intercept])
    total = graph.node("Expand", intercept, graph.node("Shape", margin))
    for column in content.ratio.columns:
        if isinstance(column, MarginColumn):
            parts = [margin * column.points]
        elif isinstance(column, DistanceColumn):
            parts = [distance * column.points]
        elif isinstance(column, DistanceBinColumn):
            parts = [_bin_points(graph, column, distance)]
        elif isinstance(column, CategoryColumn):
            parts = [_category_points(graph, column)]
        else:
            parts = _number_points(graph, column)
        for part in parts:
            total = total + part
    return total


def _is_between(value: _Value, low: float, high: float) -> Any:
    """Return whether a value is in a finite range; NaN and infinity are not."""
    return (value >= low) & (value <= high)


def _number_points(graph: _Graph, column: NumberColumn | BinColumn) -> list[_Value]:
    value = graph.input(input_name(column.name), np.float64)
    known = _is_between(value, -FINITE, FINITE)
    missing = 0.0 if column.missing is None else column.missing.points
    if isinstance(column, BinColumn):
        return [graph.where(known, _bin_points(graph, column, value), missing)]
    filled = graph.where(known, graph.clip(value, -LARGEST, LARGEST), column.if_missing)
    if column.centre:
        filled = filled - column.centre
    parts = [filled * column.points]
    if missing:
        parts.append(graph.where(known, 0.0, missing))
    return parts


def _bin_points(graph: _Graph, column: BinColumn | DistanceBinColumn, value: _Value) -> _Value:
    """Return the points of each value's bin; its number is the count of edges reached."""
    n_reached = _n_reached(graph, column.edges, value)
    return graph.node("Gather", [b.points for b in column.bins], n_reached)


def _n_reached(graph: _Graph, edges: Sequence[float], value: _Value) -> _Value:
    """Return how many of the edges each value reaches."""
    upright = graph.node("Unsqueeze", value, graph.constant([1], np.int64))
    reached = upright >= [list(edges)]
    ones = graph.node("Cast", reached, to=_types()[np.int32])
    return graph.node("ReduceSum", ones, graph.constant([1], np.int64), keepdims=0)


def _mapped(graph: _Graph, content: Content, score: _Value) -> _Value:
    """Return the probability that the calibration map has for the edited score."""
    assert content.calibration is not None
    pieces = pieces_of(content.calibration)
    n_reached = _n_reached(graph, [piece.start for piece in pieces[1:]], score)
    start, value, slope = (
        graph.node("Gather", numbers, n_reached)
        for numbers in zip(*((p.start, p.value, p.slope) for p in pieces), strict=True)
    )
    return (score - start) * slope + value


def _category_points(graph: _Graph, column: CategoryColumn) -> _Value:
    keys = _texts(column)
    missing = 0.0 if column.missing is None else column.missing.points
    points = [*(c.points for c in column.categories), missing, 0.0]
    codes = graph.node(
        "LabelEncoder",
        graph.input(input_name(column.name), str),
        domain="ai.onnx.ml",
        keys_strings=[*keys.values(), MISSING_TEXT],
        values_int64s=list(range(len(keys) + 1)),
        default_int64=len(keys) + 1,
    )
    return graph.node("Gather", points, codes)


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
    for column in content.ratio.columns:
        if isinstance(column, CategoryColumn):
            inputs[input_name(column.name)] = _read_texts(table, column)
        elif not isinstance(column, ColumnOfScore):
            inputs[input_name(column.name)] = _read_numbers(table, terms_of(column))
    return inputs


def _read_numbers(table: nw.DataFrame[Any], terms: ColumnTerms) -> NDArray[Any]:
    series = table[terms.name]
    if series.dtype.is_numeric():  # here infinite numbers are missing ones, as in every engine
        return series.cast(nw.Float64).to_numpy().astype(np.float64, copy=False)
    if not len(series):
        return np.empty(0)
    return matching_column(terms, {terms.name: _read(table, terms)}).values


def _read_texts(table: nw.DataFrame[Any], column: CategoryColumn) -> NDArray[Any]:
    """Return categories as the texts that the model knows, and two texts for all others."""
    series, terms = table[column.name], terms_of(column)
    if not len(series):
        return np.empty(0, dtype=object)
    if series.dtype.is_numeric():
        numbers = _read_numbers(table, terms)
        coded = code_array(np.where(np.isfinite(numbers), numbers, np.nan))
        codes, values = coded.codes, coded.values
    else:
        read = matching_column(terms, {column.name: _read(table, terms)})
        codes, values = read.values, list(read.categories)
    keys = [c.value for c in column.categories]
    if series.dtype not in OBJECT_TYPES:
        keys = [key for key, _ in category_points_of(column, series.dtype)]
    texts = _texts(column)
    known = {key: texts[key] for key in keys}
    value_texts = [known.get(value, UNSEEN_TEXT) for value in values]
    return np.array([*value_texts, MISSING_TEXT], dtype=object)[codes]


def _read(table: nw.DataFrame[Any], terms: ColumnTerms) -> Column:
    (column,) = read_columns(table.select(terms.name).to_native(), {terms.name: terms.kind})
    return column
