"""Load a base model from a file, or refuse the file in one sentence."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from commod._io.optional import import_optional
from commod._io.persistence import MODEL_TYPES
from commod._io.tables.sources import check_file
from commod.exceptions import InputError

_PICKLES = (".pkl", ".pickle", ".joblib")
MODEL_SUFFIXES = (".skops", ".onnx", *_PICKLES)


def load_model(
    path: str | os.PathLike[str], *, trust_pickle: bool = False, trust: Sequence[str] = ()
) -> Any:
    """Return the model in a file; it has `predict_proba` or `decision_function`.

    Parameters
    ----------
    path : str or path
        Ends in .skops, .onnx, .pkl, .pickle or .joblib.
    trust_pickle : bool, default=False
        Whether to load a pickle. Loading a pickle runs any code that it holds.
    trust : sequence of str, default=()
        Further types to allow in a .skops file. Estimators of scikit-learn, and the types of
        `MODEL_TYPES`, are allowed.

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
        from commod.cli._onnx import OnnxModel

        model = OnnxModel.load(name)
    else:
        model = _load_pickle(name, trust_pickle)
    _check_scores(name, model)
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


def _load_pickle(name: str, trust_pickle: bool) -> Any:
    if not trust_pickle:
        raise InputError(
            f"{name!r} is a pickle, and loading a pickle can run any code. If you trust where it "
            "comes from, pass --trust-pickle; better, save the model with skops.io.dump."
        )
    joblib = import_module("joblib")  # scikit-learn installs joblib, which reads plain pickles too
    return _call_loader(name, lambda: joblib.load(name))


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


def _check_scores(name: str, model: Any) -> None:
    is_model = hasattr(model, "predict_proba") or hasattr(model, "decision_function")
    if isinstance(model, type) or not is_model:
        kind = f"the class {model.__name__}" if isinstance(model, type) else type(model).__name__
        raise InputError(
            f"{name!r} holds {kind}, which has neither predict_proba nor decision_function. Save a "
            "fitted classifier itself, or use a column of its scores."
        )
