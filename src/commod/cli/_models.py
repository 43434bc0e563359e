"""Load a base model from a file, or refuse the file in one sentence.

An ONNX classifier becomes a model with `classes_` and `predict_proba`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from commod._io.optional import import_optional
from commod._io.queries import run_interruptibly
from commod._io.sources import check_file
from commod._io.untrusted import MODEL_TYPES
from commod._text import n_of
from commod.exceptions import BaseModelError, InputError

_PICKLES = (".pkl", ".pickle", ".joblib")
MODEL_SUFFIXES = (".skops", ".onnx", *_PICKLES)


def load_model(path: str | os.PathLike[str], *, trust: Sequence[str] = ()) -> Any:
    """Return the model in a file; it has `predict_proba` or `decision_function`.

    Parameters
    ----------
    path : str or path
        Ends in .skops, .onnx, .pkl, .pickle or .joblib.
    trust : sequence of str, default=()
        "pickle": load a pickle, which runs any code that it holds. Other texts: further types to
        allow in a .skops file. Estimators of scikit-learn, and the types of `MODEL_TYPES`, are
        allowed.

    Raises
    ------
    InputError
        The file cannot be used. The message says why, and how to correct it.
    """
    name, suffix = str(path), Path(path).suffix.lower()
    check_file(name, "a model")
    if suffix not in MODEL_SUFFIXES:
        raise InputError(
            f"{name!r} does not end in one of {', '.join(MODEL_SUFFIXES)}. Save the model with "
            "skops.io.dump, or use a column of its scores."
        )
    if suffix == ".skops":
        model = _load_skops(name, trust)
    elif suffix == ".onnx":
        model = OnnxModel(Path(name).read_bytes(), name)
    elif "pickle" in trust:
        joblib = import_module("joblib")  # scikit-learn installs it; it reads plain pickles too
        model = _call_loader(name, lambda: joblib.load(name))
    else:
        raise InputError(
            f"{name!r} is a pickle, and loading a pickle can run any code. If you trust where it "
            "comes from, pass --trust pickle; better, save the model with skops.io.dump."
        )
    is_model = hasattr(model, "predict_proba") or hasattr(model, "decision_function")
    if isinstance(model, type) or not is_model:
        kind = f"the class {model.__name__}" if isinstance(model, type) else type(model).__name__
        raise InputError(
            f"{name!r} holds {kind}, which has neither predict_proba nor decision_function. Save a "
            "fitted classifier itself, or use a column of its scores."
        )
    return model


def _load_skops(name: str, trust: Sequence[str]) -> Any:
    skops = import_optional("skops.io", "skops", "Reading a .skops file")
    trust = [kind.strip() for text in trust for kind in text.split(",")]
    unknown = _call_loader(name, lambda: skops.get_untrusted_types(file=name))
    allowed = [kind for kind in unknown if kind in trust or kind in MODEL_TYPES]
    refused = sorted(set(unknown) - set(allowed))
    if refused:
        raise InputError(
            f"{name!r} holds types that are not known to be safe: {', '.join(refused)}. If you "
            f"trust where the file comes from, allow them: --trust {','.join(refused)}."
        )
    return _call_loader(name, lambda: skops.load(name, trusted=allowed))


def _call_loader(name: str, load: Callable[[], Any]) -> Any:
    """Return the result of `load`; turn any error into an InputError of one sentence."""
    try:
        return load()
    except ModuleNotFoundError as error:
        raise InputError(
            f"{name!r} needs the package {error.name}, which is not installed here. Install it, in "
            "the version the model was saved with."
        ) from error
    except Exception as error:  # a pickle can raise anything
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise InputError(
            f"{name!r} cannot be loaded ({type(error).__name__}: {reason}). It may be damaged, of "
            "another format, or saved with other versions; save it again with the versions here."
        ) from error


# ---------------------------------------------------------------------------------------------
# ONNX

_TYPES: dict[str, Any] = {
    "tensor(float)": np.float32,
    "tensor(double)": np.float64,
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
    "tensor(bool)": np.bool_,
    "tensor(string)": object,
}
_SCORES = ("tensor(float)", "tensor(double)", "seq(map(")


class OnnxModel:
    """A classifier in an ONNX file.

    The graph has one of two kinds of input:

    - one matrix of numbers with a column for every column of the table;
    - one input for each column, under the column's name.

    The graph returns probabilities, as a tensor or as a list of dictionaries (ZipMap of skl2onnx).

    Parameters
    ----------
    content : bytes
        The bytes of the file.
    name : str
        Name of the model in messages.
    """

    def __init__(self, content: bytes, name: str) -> None:
        self.name = name
        self._content = content
        self._start()

    def _start(self) -> None:
        runtime = import_optional("onnxruntime", "onnx", "Running an .onnx file")
        options = runtime.SessionOptions()
        options.log_severity_level = 4  # errors are raised; do not print them as well
        try:
            self._session = runtime.InferenceSession(
                self._content, options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # onnxruntime has one class per error state
            reason = " ".join(str(error).split())[:200]
            raise InputError(
                f"{self.name!r} cannot be loaded as an ONNX model ({reason}). It may be damaged or "
                "of another format; save it again."
            ) from error
        self._inputs = self._session.get_inputs()
        self._output = self._probability_output()
        self.classes_ = _classes(self._content)

    def _probability_output(self) -> str:
        """Return the name of the output that holds probabilities."""
        outputs = self._session.get_outputs()
        scores = [o for o in outputs if o.type.startswith(_SCORES)]
        if not scores:
            shown = ", ".join(f"{o.name} {o.type}" for o in outputs)
            raise InputError(
                f"{self.name!r} gives no probabilities (outputs: {shown}). Convert a classifier "
                "with its probabilities."
            )
        return next((o.name for o in scores if "prob" in o.name.lower()), scores[-1].name)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the probability of each class, shape (n_rows, n_classes)."""
        inputs = self._model_inputs(X)
        try:
            (output,) = self._run(inputs)
        except Exception as error:
            reason = " ".join(str(error).split())[:200]
            raise BaseModelError(f"{self.name!r} could not score the rows ({reason}).") from error
        if isinstance(output, list):
            output = [[row[label] for label in self.classes_.tolist()] for row in output]
        proba = np.asarray(output, dtype=np.float64)
        if proba.ndim == 1 or proba.shape[1] == 1:
            score = proba.reshape(-1)
            proba = np.column_stack([1 - score, score])
        is_near = (proba > -1e-6) & (proba < 1 + 1e-6)  # float32 may miss 0 and 1 by rounding
        return np.where(is_near, np.clip(proba, 0, 1), proba)

    def _run(self, inputs: dict[str, NDArray[Any]]) -> Any:
        """Return the outputs of the graph; Ctrl-C ends a graph that loops for ever."""
        runtime = import_optional("onnxruntime", "onnx", "Running an .onnx file")
        options = runtime.RunOptions()
        options.log_severity_level = 4
        return run_interruptibly(
            lambda: self._session.run([self._output], inputs, options),
            lambda: setattr(options, "terminate", True),
        )

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the more probable class of each row."""
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

    def _model_inputs(self, X: Any) -> dict[str, NDArray[Any]]:
        """Return the value of each input of the graph."""
        columns = _columns(X)
        names = [i.name for i in self._inputs]
        if len(names) == 1 and names[0] not in columns:
            return {names[0]: self._matrix(columns)}
        if isinstance(X, np.ndarray) and len(columns) == len(names):
            columns = dict(zip(names, columns.values(), strict=True))
        missing = [name for name in names if name not in columns]
        if missing:
            raise BaseModelError(
                f"{self.name!r} reads the columns {', '.join(names)}, but the table has no "
                f"{missing[0]!r}. Rename or add it."
            )
        return {i.name: self._tensor(i, columns[i.name]).reshape(-1, 1) for i in self._inputs}

    def _matrix(self, columns: dict[str, NDArray[Any]]) -> NDArray[Any]:
        (matrix,) = self._inputs
        width = matrix.shape[-1] if matrix.shape else None
        if isinstance(width, int) and width != len(columns):
            raise BaseModelError(
                f"{self.name!r} reads a matrix of {width} columns, but the table has "
                f"{len(columns)} ({', '.join(list(columns)[:10])}). Pass the columns it was "
                "trained on, in their order."
            )
        return np.column_stack([self._tensor(matrix, v, name) for name, v in columns.items()])

    def _tensor(self, model_input: Any, values: NDArray[Any], column: str = "") -> NDArray[Any]:
        """Return a column in the type of an input; missing text becomes the empty text."""
        name = column or model_input.name
        dtype = _TYPES.get(model_input.type)
        if dtype is None:
            raise BaseModelError(
                f"{self.name!r} reads {model_input.type} as input {model_input.name!r}; expected "
                "numbers, text or booleans."
            )
        if dtype is object:
            texts = [("" if v is None or v != v else str(v)) for v in values.tolist()]
            return np.array(texts, dtype=object)
        try:
            numbers = values.astype(np.float64)  # None becomes NaN
        except (TypeError, ValueError) as error:
            raise BaseModelError(
                f"{self.name!r} reads {name!r} as numbers, but the column holds other values "
                f"({error}). Encode it as it was encoded for training."
            ) from error
        is_float = np.issubdtype(dtype, np.floating)
        if not is_float and np.isnan(numbers).any():
            raise BaseModelError(
                f"{self.name!r} reads {name!r} as {model_input.type}, but it has "
                f"{n_of(int(np.isnan(numbers).sum()), 'missing value')}. Fill them first."
            )
        return (numbers if is_float else values).astype(dtype)

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_clone__(self) -> OnnxModel:
        return self

    def __getstate__(self) -> dict[str, Any]:
        return {"name": self.name, "_content": self._content}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._start()

    def __repr__(self) -> str:
        return f"OnnxModel({self.name!r})"


def _columns(X: Any) -> dict[str, NDArray[Any]]:
    if isinstance(X, np.ndarray):
        return {f"x{j}": values for j, values in enumerate(X.T)}
    frame = nw.from_native(X, eager_only=True)
    return {name: frame[name].to_numpy() for name in frame.columns}


def _classes(content: bytes) -> NDArray[Any]:
    """Return the labels in the order of the probabilities; 0 and 1 if the graph has none.

    A classifier node holds the labels as an attribute. If skl2onnx uses plain operators
    instead, a constant holds them.
    """
    onnx = import_optional("onnx", "onnx", "Reading the classes of an .onnx file")
    graph = onnx.load_model_from_string(content).graph
    constants = {constant.name: constant for constant in graph.initializer}
    for node in reversed(graph.node):
        for attribute in node.attribute:
            if attribute.name.startswith("classlabels") and (attribute.ints or attribute.strings):
                texts = [text.decode() for text in attribute.strings]
                return np.array(texts or list(attribute.ints))
        constant = constants.get(node.input[0]) if node.input else None
        if node.op_type == "ArrayFeatureExtractor" and constant and list(constant.dims) == [2]:
            values = onnx.numpy_helper.to_array(constant).tolist()
            return np.array([v.decode() if isinstance(v, bytes) else v for v in values])
    return np.array([0, 1])
