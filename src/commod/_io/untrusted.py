"""Read what somebody else wrote: files of a limited size, strict JSON, and saved models.

JSON is data and never code. Of saved models, only listed types are accepted.
"""

from __future__ import annotations

import json
import os
import re
import stat
from pathlib import Path
from typing import Any

from commod.exceptions import InputError

MAX_DEPTH = 64  # patches and audits nest to about ten levels

_STRING = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*+"?', re.DOTALL)  # an open one goes to the end
_BRACKET = re.compile(r"[\[\]{}]")


def read_limited(path: str | os.PathLike[str], what: str, max_bytes: int) -> bytes:
    """Return the bytes of a regular file of at most `max_bytes`; `what` it should be."""
    name = str(Path(path))
    if not stat.S_ISREG(os.stat(path).st_mode):  # opening a pipe would wait for its writer
        raise InputError(f"{name!r} is not a regular file; copy the {what} into one.")
    with open(path, "rb") as file:
        data = file.read(max_bytes + 1)
    if len(data) > max_bytes:
        raise InputError(
            f"{name!r} is larger than {max_bytes / 2**20:g} MiB, the largest size of a {what}. "
            "Check whether it is the right file."
        )
    return data


def read_object(
    data: bytes, what: str, max_bytes: int, *, surrogates: bool = False
) -> dict[str, Any]:
    """Return the object of a JSON file of at most `max_bytes`; `what` it should be, for messages.

    Refused are: text that is not UTF-8, NaN and infinity, a key that occurs twice in one object,
    nesting beyond `MAX_DEPTH`, and anything but an object. Half a surrogate pair, which is no
    text, is refused unless `surrogates` is True.

    Examples
    --------
    >>> read_object(b'{"n": 1}', "a patch", 100)
    {'n': 1}
    >>> read_object(b'{"n": 1, "n": 2}', "a patch", 100)
    Traceback (most recent call last):
    commod.exceptions.InputError: It is not JSON: the key 'n' occurs twice in one object.
    """
    if len(data) > max_bytes:
        raise InputError(
            f"It is larger than {max_bytes / 2**20:g} MiB, the largest size of {what}. Check "
            "whether it is the right file."
        )
    try:
        text = data.decode("utf-8-sig")
        _check_depth(text, what)
        parsed = json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=as_object)
        if not surrogates:
            json.dumps(parsed, ensure_ascii=False).encode()  # refuses half a surrogate pair
    except UnicodeError as error:
        raise InputError(f"It is not text in UTF-8 ({error}).") from error
    except ValueError as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"It is not JSON: {error}.") from error
    if not isinstance(parsed, dict):
        raise InputError(f"It holds JSON of type {type(parsed).__name__}, expected an object.")
    return parsed


def as_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the pairs of a JSON object as a dict; refuse a key that occurs twice."""
    entries = dict(pairs)
    if len(entries) < len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise ValueError(f"the key {key[:80]!r} occurs twice in one object")
            seen.add(key)
    return entries


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a number in JSON")


def _check_depth(text: str, what: str) -> None:
    """Refuse deep nesting before parsing, which is recursive."""
    depth = 0
    for bracket in _BRACKET.finditer(_STRING.sub("", text)):
        depth += 1 if bracket.group() in "[{" else -1
        if depth > MAX_DEPTH:
            raise InputError(f"It nests too deeply to be {what}: beyond {MAX_DEPTH} levels.")


# ---------------------------------------------------------------------------------------------
# Types that a saved update, and a saved model of scikit-learn, may contain

_TYPES = {
    "_data.base_model": "ScoreColumn",
    "_data.encoding": "BinTerms CategoryTerms Encoding NumericTerms",
    "_record.audit": "LeftOutGroup",
    "_record.costs": "CountedUpdate",
    "_record.edits": "Cap Drop EditFigures EditRecord Lock Merge Round SetPoints",
    "_record.explanation": "Estimate ScoreKnot ScoreMap",
    "_words.update": (
        "AskedTarget Goal GroupsLeftOut NeededChanges PromiseOutcome UnknownPeople UpdateFacts"
    ),
    "metrics._constraint": "Constraint",
    "metrics._language": "AllOf FairnessConstraint Maximum Minimum Parity",
    "metrics._measures": "Measure Weights Within",
    "metrics._named_constraints": (
        "AccuracyParity DemographicParity EqualizedOdds ErrorRatio FalsePositiveRateParity "
        "MinimumRate MinimumTruePositiveRate PredictiveParity TruePositiveRateParity"
    ),
    "rivals._group_model": "LogisticGroupModel",
    "rivals.adversarial_debiasing": "AdversarialDebiasing",
    "rivals.calibrated_equalized_odds": "CalibratedEqualizedOdds",
    "rivals.fcgp": "FCGP _Smoother",
    "rivals.frappe": "FRAPPE",
    "rivals.individual_group_debiasing": "IndividualGroupDebiasing",
    "rivals.leaf_relabelling": "LeafRelabelling",
    "rivals.modified_naive_bayes": "ModifiedNaiveBayes",
    "rivals.multiaccuracy_boost": "MultiaccuracyBoost",
    "rivals.plug_in": "BayesPlugIn CFBC LPP",
    "rivals.projection": "FairProjection FairScoreTransformer",
    "rivals.rnf": "RNF",
    "rivals.thresholds": "MinimalFlip RejectOption RelaxedThresholdOptimizer ThresholdOptimizer",
    "rivals.wasserstein": (
        "FittedRegression GroupShift WassersteinLogisticRegression WassersteinPostProcessing"
    ),
    "scorecard": "EvidenceRule Scorecard",
    "updates._found_update": "Expectation UnknownGroupFigures UpdateSearch",
    "updates.ratio": "Network",
    "updates.commod": "COMMOD",
    "updates.controlled": "ControlledDebiaser",
}

TRUSTED_TYPES = tuple(
    f"commod.{module}.{name}" for module, names in _TYPES.items() for name in names.split()
)
"""Types to pass to ``skops.io.load(file, trusted=[*commod.TRUSTED_TYPES, ...])``.

All of them only hold numbers and names. Whether to trust the types of the base model is the user's
decision.
"""

_KERNELS = (
    *("CompoundKernel", "ConstantKernel", "DotProduct", "ExpSineSquared", "Exponentiation"),
    *("Matern", "Product", "RBF", "RationalQuadratic", "Sum", "WhiteKernel"),
)
_DISTANCES = (
    *("BrayCurtis", "Canberra", "Chebyshev", "Euclidean", "Hamming", "Haversine", "Jaccard"),
    *("Mahalanobis", "Manhattan", "Minkowski", "SEuclidean"),
)

MODEL_TYPES = frozenset(
    (
        *TRUSTED_TYPES,
        "numpy.dtype",
        "sklearn.calibration._CalibratedClassifier",
        "sklearn.calibration._SigmoidCalibration",
        "sklearn.calibration._TemperatureScaling",
        "sklearn.compose._column_transformer.make_column_selector",
        "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
        "sklearn.gaussian_process._gpc._BinaryGaussianProcessClassifierLaplace",
        *(f"sklearn.gaussian_process.kernels.{name}" for name in _KERNELS),
        "sklearn.impute._iterative.IterativeImputer",
        "sklearn.impute._iterative._ImputerTriplet",
        *(f"sklearn.metrics._dist_metrics.{name}Distance64" for name in _DISTANCES),
        "sklearn.metrics._scorer._PassthroughScorer",
        "sklearn.model_selection._split.KFold",
        "sklearn.model_selection._split.StratifiedKFold",
        "sklearn.neighbors._ball_tree.BallTree",
        "sklearn.neighbors._kd_tree.KDTree",
        "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
        "sklearn.neural_network._stochastic_optimizers.SGDOptimizer",
        "sklearn.tree._tree.Tree",
        "sklearn.utils._bunch.Bunch",
        "sklearn.utils._metadata_requests.MetadataRequest",
        "sklearn.utils._metadata_requests.MethodMetadataRequest",
    )
)
"""Types that `commod` on the command line accepts in a .skops file, beside what skops accepts.

skops may call any type that it is told to trust, with arguments of the file. So each type is
listed, and only holds data: it opens no file, starts nothing and keeps no function.
"""
