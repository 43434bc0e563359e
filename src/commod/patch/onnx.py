"""Write a patch as an ONNX model in double precision, to run next to the base model.

The model has one input per column. It adds terms one by one in the order of the file, so that the
ratio equals NumPy's to the last bit.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
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
    rule_of,
    terms_of,
)
from commod.patch.file import NEWEST, as_version, content_digest
from commod.patch.frames import check_columns, from_frame, schema_of
from commod.patch.sources import OBJECT_TYPES, category_points_of
from commod.scorecard import MAX_EXPONENT, SCORE_CLIP, crossing_at

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
    known = graph.between(base, 0.0, 1.0)
    threshold = graph.constant(content.base.threshold)
    score = graph.node(
        "Where", known, base, threshold
    )  # any number will do where the score is missing
    is_at_threshold = graph.node("Equal", score, threshold)
    margin = _margin(graph, content, score, is_at_threshold)
    distance = graph.node("Abs", graph.node("Sub", score, threshold))
    total = _total(graph, content, margin, distance)
    ratio = _ratio_of_sum(graph, content, score, distance, total)
    ratio = _gated(graph, content, score, distance, ratio)
    flipped = graph.node(
        "And", graph.node("Less", ratio, graph.constant(0.0)), graph.node("Not", is_at_threshold)
    )
    positive = graph.node("Xor", graph.node("Greater", score, threshold), flipped)
    if content.score_edit == "changed_only":
        edited = graph.node("Where", flipped, _crossed(graph, content, score), score)
    else:
        edited = _edited(graph, content, score, margin, ratio, positive)
    as_label = graph.node("Cast", positive, to=_types()[np.int64])
    graph.output(0, np.float64, "Where", known, edited, graph.constant(np.nan))
    graph.output(1, np.int64, "Where", known, as_label, graph.constant(-1, np.int64))
    graph.output(2, np.bool_, "And", known, flipped)
    if calibrated:
        mapped = _calibrated(graph, content, edited)
        graph.output(3, np.float64, "Where", known, mapped, graph.constant(np.nan))
    return graph.model(content)


class _Graph:
    """Build a graph node by node; each method returns the name of a value."""

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

    def input(self, name: str, kind: type) -> str:
        self._inputs.append(self._helper.make_tensor_value_info(name, _types()[kind], ["n"]))
        return name

    def constant(self, value: Any, kind: type = np.float64) -> str:
        name = self._new_name()
        tensor = _onnx().numpy_helper.from_array(np.asarray(value, dtype=kind), name)
        self._constants.append(tensor)
        return name

    def node(self, operator: str, *inputs: str, domain: str = "", **attributes: Any) -> str:
        name = self._new_name()
        self._append(operator, inputs, name, domain=domain, **attributes)
        return name

    def output(self, which: int, kind: type, operator: str, *inputs: str) -> None:
        name = OUTPUTS[which]
        self._append(operator, inputs, name)
        self._outputs.append(self._helper.make_tensor_value_info(name, _types()[kind], ["n"]))

    def _append(self, operator: str, inputs: Sequence[str], name: str, **attributes: Any) -> None:
        self._nodes.append(self._helper.make_node(operator, list(inputs), [name], **attributes))

    def between(self, value: str, low: float, high: float) -> str:
        """Return whether a value is in a finite range; NaN and infinity are not."""
        above = self.node("GreaterOrEqual", value, self.constant(low))
        return self.node("And", above, self.node("LessOrEqual", value, self.constant(high)))

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


def _total(graph: _Graph, content: Content, margin: str, distance: str) -> str:
    """Return the intercept plus points, added in the order of the file."""
    intercept = graph.constant([content.ratio.intercept])
    total = graph.node("Expand", intercept, graph.node("Shape", margin))
    for column in content.ratio.columns:
        if isinstance(column, MarginColumn):
            parts = [graph.node("Mul", margin, graph.constant(column.points))]
        elif isinstance(column, DistanceColumn):
            parts = [graph.node("Mul", distance, graph.constant(column.points))]
        elif isinstance(column, DistanceBinColumn):
            parts = [_bin_points(graph, column, distance)]
        elif isinstance(column, CategoryColumn):
            parts = [_category_points(graph, column)]
        else:
            parts = _number_points(graph, column)
        for part in parts:
            total = graph.node("Add", total, part)
    return total


def _number_points(graph: _Graph, column: NumberColumn | BinColumn) -> list[str]:
    value = graph.input(input_name(column.name), np.float64)
    known = graph.between(value, -FINITE, FINITE)
    missing = 0.0 if column.missing is None else column.missing.points
    if isinstance(column, BinColumn):
        inside = _bin_points(graph, column, value)
        return [graph.node("Where", known, inside, graph.constant(missing))]
    bounds = graph.constant(-LARGEST), graph.constant(LARGEST)
    bounded = graph.node("Clip", value, *bounds)
    filled = graph.node("Where", known, bounded, graph.constant(column.if_missing))
    if column.centre:
        filled = graph.node("Sub", filled, graph.constant(column.centre))
    parts = [graph.node("Mul", filled, graph.constant(column.points))]
    if missing:
        parts.append(graph.node("Where", known, graph.constant(0.0), graph.constant(missing)))
    return parts


def _bin_points(graph: _Graph, column: BinColumn | DistanceBinColumn, value: str) -> str:
    """Return the points of each value's bin; its number is the count of edges reached."""
    n_reached = _n_reached(graph, column.edges, value)
    return graph.node("Gather", graph.constant([b.points for b in column.bins]), n_reached)


def _n_reached(graph: _Graph, edges: Sequence[float], value: str) -> str:
    """Return how many of the edges each value reaches."""
    upright = graph.node("Unsqueeze", value, graph.constant([1], np.int64))
    reached = graph.node("GreaterOrEqual", upright, graph.constant([list(edges)]))
    ones = graph.node("Cast", reached, to=_types()[np.int32])
    return graph.node("ReduceSum", ones, graph.constant([1], np.int64), keepdims=0)


def _category_points(graph: _Graph, column: CategoryColumn) -> str:
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
    return graph.node("Gather", graph.constant(points), codes)


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
# Scores


def _margin(graph: _Graph, content: Content, score: str, is_at_threshold: str) -> str:
    """Return the margin, exactly 0 at the threshold."""
    low, high = graph.constant(SCORE_CLIP), graph.constant(1 - SCORE_CLIP)
    clipped = graph.node("Clip", score, low, high)
    odds = graph.node("Div", clipped, graph.node("Sub", graph.constant(1.0), clipped))
    start = graph.constant(float(logit(content.base.threshold)))
    margin = graph.node("Sub", graph.node("Log", odds), start)
    return graph.node("Where", is_at_threshold, graph.constant(0.0), margin)


def _ratio_of_sum(graph: _Graph, content: Content, score: str, distance: str, total: str) -> str:
    """Return r as `EvidenceRule.ratio` computes it, before any gate; the sum itself if it is r."""
    rule = rule_of(content)
    if rule is None:
        return total
    is_above = graph.node("Greater", score, graph.constant(content.base.threshold))
    above = rule.pull_above
    pull = graph.node("Where", is_above, graph.constant(above), graph.constant(-above))
    rise = graph.node("Mul", distance, graph.constant(rule.cost_per_distance))
    cost = graph.node("Add", rise, graph.constant(rule.fixed_cost))
    return graph.node("Sub", cost, graph.node("Mul", total, pull))


def _gated(graph: _Graph, content: Content, score: str, distance: str, ratio: str) -> str:
    """Return the ratio, held at 1 where direction or `max_margin` forbid a change."""
    if content.ratio.max_margin is not None:
        is_far = graph.node("Greater", distance, graph.constant(content.ratio.max_margin))
        ratio = graph.node("Where", is_far, graph.constant(1.0), ratio)
    for may, comparison in (
        (content.ratio.may_raise, "LessOrEqual"),
        (content.ratio.may_lower, "Greater"),
    ):
        if not may:
            held = graph.node(comparison, score, graph.constant(content.base.threshold))
            ratio = graph.node("Where", held, graph.constant(1.0), ratio)
    return ratio


def _edited(
    graph: _Graph, content: Content, score: str, margin: str, ratio: str, positive: str
) -> str:
    """Return the edited score on its decision's side; the base score where the ratio is 1."""
    threshold = content.base.threshold
    cut, one = graph.constant(threshold), graph.constant(1.0)
    bounds = graph.constant(-MAX_EXPONENT), graph.constant(MAX_EXPONENT)
    exponent = graph.node("Clip", graph.node("Mul", ratio, margin), *bounds)
    logits = graph.node("Add", exponent, graph.constant(float(logit(threshold))))
    odds = graph.node("Exp", graph.node("Neg", logits))
    edited = graph.node("Div", one, graph.node("Add", one, odds))
    edited = graph.node("Where", graph.node("Equal", ratio, one), score, edited)
    is_above = graph.node("Greater", edited, cut)
    lowest = graph.constant(np.nextafter(threshold, 1.0))
    raised = graph.node("Where", is_above, edited, lowest)
    lowered = graph.node("Where", is_above, cut, edited)
    return graph.node("Where", positive, raised, lowered)


def _calibrated(graph: _Graph, content: Content, score: str) -> str:
    """Return the calibrated probability of the edited score, on the edited score's side."""
    assert content.calibration is not None
    threshold = content.base.threshold
    pieces = pieces_of(content.calibration)
    n_reached = _n_reached(graph, [piece.start for piece in pieces[1:]], score)
    start, value, slope = (
        graph.node("Gather", graph.constant(numbers), n_reached)
        for numbers in zip(*((p.start, p.value, p.slope) for p in pieces), strict=True)
    )
    rise = graph.node("Mul", graph.node("Sub", score, start), slope)
    mapped = graph.node("Add", rise, value)
    above = graph.node("Max", mapped, graph.constant(np.nextafter(threshold, 1.0)))
    below = graph.node("Min", mapped, graph.constant(np.nextafter(threshold, 0.0)))
    cut = graph.constant(threshold)
    beside = graph.node("Where", graph.node("Less", score, cut), below, cut)
    return graph.node("Where", graph.node("Greater", score, cut), above, beside)


def _crossed(graph: _Graph, content: Content, score: str) -> str:
    """Return the score on the other side of the threshold, as `crossing_at` places it."""
    line = crossing_at(content.base.threshold)
    up = graph.node("Mul", score, graph.constant(line.up_slope))
    raised = graph.node("Add", up, graph.constant(line.up_start))
    room = graph.node("Sub", graph.constant(1.0), score)
    down = graph.node("Mul", room, graph.constant(line.down_slope))
    lowered = graph.node("Sub", graph.constant(line.down_start), down)
    is_above = graph.node("Greater", score, graph.constant(line.threshold))
    return graph.node(
        "Where",
        is_above,
        graph.node("Min", lowered, graph.constant(line.just_below)),
        graph.node("Max", raised, graph.constant(line.just_above)),
    )


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
