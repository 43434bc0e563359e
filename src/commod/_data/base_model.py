"""Read scores in [0, 1] and base decisions from a base model or from a column of scores.

The base model was validated and must not change, so no function here fits it.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from numbers import Number
from typing import Any

import narwhals as nw
import numpy as np
import scipy
from numpy.typing import NDArray

from commod._data.columns import Column
from commod._data.labels import distinct_labels, is_label_in
from commod._data.tables import from_native, take_rows
from commod._text import did_you_mean, list_names, shown
from commod.exceptions import (
    BaseModelError,
    BaseModelWarning,
    InputError,
    ScoreOrderWarning,
    SeenRowsWarning,
)

DEFAULT_THRESHOLD = 0.5  # of every update
BACKWARD_AREA = 0.4  # an area under the curve below it, and below chance: scores in wrong order
MOST_RANKED = 50_000  # rows on which the order of the scores is checked
MOST_COMPARED = 1_000  # rows of the first comparison with the decisions of the model itself


@dataclass(frozen=True)
class ScoreColumn:
    """A base model whose scores are already a column of X.

    Parameters
    ----------
    column : str or int
        Name of the column that holds f(x) in [0, 1]; a position for NumPy arrays. The column
        never becomes part of the scorecard.
    score_is_for : label, default=None
        The label that a high score predicts: the base decision is this label where score >
        threshold. None: the larger of the two labels, as in scikit-learn's `predict_proba`.

    Examples
    --------
    >>> from commod import COMMOD, ScoreColumn
    >>> COMMOD(ScoreColumn("score")).estimator
    ScoreColumn(column='score')
    >>> ScoreColumn("probability of default", score_is_for="default")
    ScoreColumn(column='probability of default', score_is_for='default')
    """

    column: str | int
    score_is_for: Any = None

    def __repr__(self) -> str:
        stated = "" if self.score_is_for is None else f", score_is_for={self.score_is_for!r}"
        return f"{type(self).__name__}(column={self.column!r}{stated})"

    @property
    def name(self) -> str:
        """Return the name of the column in a table that was read by `read_columns`."""
        return self.column if isinstance(self.column, str) else f"x{self.column}"


@dataclass(frozen=True, repr=False)
class ModelScores(ScoreColumn):
    """A column with the scores of a model, which has the labels `classes_`; None: those of y.

    `reads_others` says whether the model reads other columns than those that are fitted on.
    """

    classes_: Any = field(default=None, compare=False)
    reads_others: bool = True


@dataclass(frozen=True)
class BaseScores:
    """The scores of n rows in the unit that is deployed, and the base decisions that they mean.

    `proba` has shape (n, 2). Its second column is the score, which predicts the *score's label*:
    the base decision is that label where score > threshold, and the other label elsewhere, so
    also where the score equals the threshold. Rates count `pos_label`; `is_for_positive` says
    whether the score's label is `pos_label`.

    Examples
    --------
    >>> default = BaseScores(np.array([[0.1, 0.9], [0.6, 0.4]]), 0.5, is_for_positive=False)
    >>> default.scores, default.decisions  # a high probability of default is no approval
    (array([0.9, 0.4]), array([False,  True]))
    """

    proba: NDArray[np.float64]
    threshold: float
    is_for_positive: bool = True
    mirrored_from: BaseScores | None = None

    @property
    def scores(self) -> NDArray[np.float64]:
        """Return the score of each row, shape (n,)."""
        return self.proba[:, 1]

    @cached_property
    def decisions(self) -> NDArray[np.bool_]:
        """Return whether the base decision is `pos_label`, shape (n,)."""
        return (self.scores > self.threshold) == self.is_for_positive

    @property
    def at_threshold(self) -> NDArray[np.bool_]:
        """Return where the score equals the threshold, shape (n,); no update changes these rows."""
        return self.deployed.scores == self.deployed.threshold

    @property
    def deployed(self) -> BaseScores:
        """Return the scores as they are deployed: of a mirrored score, the original."""
        return self if self.mirrored_from is None else self.mirrored_from

    @cached_property
    def for_positive(self) -> BaseScores:
        """Return the scores of `pos_label`: decisions are score > threshold in every row.

        A score of the other label is mirrored: 1 − score and 1 − threshold. A mirrored score on
        the wrong side of its threshold, by rounding or because the score equals the threshold,
        becomes the nearest number on the right side.
        """
        if self.is_for_positive:
            return self
        threshold = 1.0 - self.threshold
        above, below = np.nextafter(threshold, [2.0, -1.0])
        scores = np.where(
            self.decisions,
            np.maximum(self.proba[:, 0], above),
            np.minimum(self.proba[:, 0], below),
        )
        return BaseScores(np.column_stack([self.scores, scores]), threshold, True, self)

    def take(self, rows: Any) -> BaseScores:
        """Return the scores of some rows: an index, a mask or a slice."""
        original = None if self.mirrored_from is None else self.mirrored_from.take(rows)
        return BaseScores(self.proba[rows], self.threshold, self.is_for_positive, original)


def score_label(estimator: Any, classes: NDArray[Any]) -> Any:
    """Return the label that a high score predicts: `classes[1]` unless a ScoreColumn states it.

    Examples
    --------
    >>> score_label(ScoreColumn("pd", score_is_for=0), np.array([0, 1]))
    np.int64(0)
    """
    stated = estimator.score_is_for if isinstance(estimator, ScoreColumn) else None
    if stated is None:
        return classes[1]
    if not is_label_in(stated, classes.tolist()):
        raise InputError(
            f"score_is_for={shown(stated)} of {estimator!r} is not one of the labels: "
            f"{classes.tolist()}.{did_you_mean(stated, classes.tolist())} Pass the label that a "
            "high score predicts.",
            parameter="score_is_for",
        )
    return classes[classes == stated][0]


def base_classes(estimator: Any, y: NDArray[Any] | None) -> NDArray[Any]:
    """Return the two labels of the base model, in its own order, shape (2,)."""
    if not isinstance(estimator, ScoreColumn):
        check_ready(estimator)
    classes = getattr(estimator, "classes_", None)
    source = f"the base model {type(estimator).__name__} decides between"
    if classes is None:
        classes, source = _classes_of_labels(y), "y holds"
    classes = np.asarray(classes)
    if classes.ndim != 1 or len(classes) != 2:
        listed = list_names([repr(label) for label in classes.ravel().tolist()])
        raise BaseModelError(
            f"Only binary classification is supported: {source} {classes.size} classes "
            f"([{listed}]), but an update edits decisions between 2. Compare one label "
            "with all others, or pass two labels."
        )
    return classes


def _classes_of_labels(y: NDArray[Any] | None) -> NDArray[Any]:
    """Return the labels that occur, sorted; 0 and 1 where `y` is None."""
    if y is None:
        return np.array([0, 1])
    labels = distinct_labels(y)
    kinds = sorted({type(v).__name__ for v in labels})
    if len(kinds) > 1 and not all(isinstance(v, Number) for v in labels):
        raise BaseModelError(
            f"y mixes labels of different types ({', '.join(kinds)}), so it is not clear which is "
            "the positive one. Make all of them numbers or all of them text."
        )
    return np.unique(np.array(labels, dtype=y.dtype))


def check_ready(estimator: Any) -> None:
    """Refuse a base model that gives no scores or is not fitted."""
    name = type(estimator).__name__
    if isinstance(estimator, type):
        raise BaseModelError(
            f"The base model is the class {estimator.__name__} itself, not a model. Pass a fitted "
            f"model, such as {estimator.__name__}().fit(X, y)."
        )
    if not (hasattr(estimator, "predict_proba") or hasattr(estimator, "decision_function")):
        raise BaseModelError(
            f"The base model {estimator!r} has neither predict_proba nor decision_function. Pass a "
            "fitted classifier that scores, or ScoreColumn('name') if X holds its scores."
        )
    if hasattr(estimator, "fit") and hasattr(estimator, "get_params"):
        # a column of scores needs no scikit-learn, which takes longer to load than all else
        from sklearn.exceptions import NotFittedError
        from sklearn.utils.validation import check_is_fitted

        try:
            check_is_fitted(estimator)
        except NotFittedError as error:
            raise NotFittedError(
                f"The base model {name} is not fitted. An update edits an existing model and "
                "never trains it: fit the model first, then pass it. (Your own class can report "
                "that it is fitted with __sklearn_is_fitted__.)"
            ) from error


def base_scores(
    estimator: Any,
    X: Any,
    columns: Sequence[Column],
    *,
    classes: NDArray[Any],
    pos_label: Any,
    threshold: float,
) -> BaseScores:
    """Return the checked scores of the base model; `columns` are the columns of `X`."""
    if isinstance(estimator, ScoreColumn):
        proba = _proba_of_column(estimator, columns)
        _check_scores(proba[:, 1], estimator)
    else:
        is_same = names_of_model(estimator) == [column.name for column in columns]
        read = X if is_same else model_columns(estimator, X)  # which wraps the frame once more
        proba = proba_of_model(estimator, read, len(columns[0]))
    return BaseScores(proba, threshold, bool(score_label(estimator, classes) == pos_label))


def _proba_of_column(estimator: ScoreColumn, columns: Sequence[Column]) -> NDArray[np.float64]:
    names = [column.name for column in columns]
    if estimator.name not in names:
        raise BaseModelError(
            f"{estimator!r} is not a column of X (columns: {list_names(names)})."
            f"{did_you_mean(estimator.column, names)} Name one of them. For a NumPy array, pass "
            "its position, counted from 0."
        )
    column = columns[names.index(estimator.name)]
    if column.kind == "numeric":
        return _two_columns(column.values)
    example = column.first_value()
    if example is None:  # a column without any value has no kind of its own
        return np.full((len(column), 2), np.nan)
    raise BaseModelError(
        f"{estimator!r} holds {example!r}, but scores are numbers between 0 and 1. Convert the "
        "column, or name the column that holds the scores."
    )


def _two_columns(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.column_stack([1 - scores, scores])


def proba_of_model(estimator: Any, X: Any, n_rows: int) -> NDArray[np.float64]:
    """Return the checked probabilities that a model gives to the rows of `X`, shape (n_rows, 2).

    `X` has the columns that the model was fitted on: see `model_columns`.
    """
    method = "predict_proba" if hasattr(estimator, "predict_proba") else "decision_function"
    source = f"{method} of {_name(estimator)}"
    proba = _real_numbers(getattr(estimator, method)(X), source)
    if method == "decision_function":
        if proba.ndim == 2 and proba.shape[1] == 1:
            proba = proba[:, 0]
        if proba.ndim != 1:
            raise BaseModelError(f"{source} gave shape {proba.shape}; expected (n_rows,).")
        proba = scipy.special.expit(proba)
    if proba.ndim == 1:  # some wrappers return the score of classes_[1] alone
        proba = _two_columns(proba)
    if proba.ndim != 2 or proba.shape[1] != 2:
        raise BaseModelError(f"{source} gave shape {proba.shape}; expected (n_rows, 2).")
    if len(proba) != n_rows:
        raise BaseModelError(f"The base model gave {len(proba)} scores for {n_rows} rows.")
    _check_scores(proba[:, 1], estimator)
    return proba


def names_of_model(estimator: Any) -> list[str]:
    """Return the names of the columns that a model was fitted on; empty where it has none."""
    names = getattr(estimator, "feature_names_in_", None)
    return [] if names is None else [str(name) for name in names]


def model_columns(estimator: Any, X: Any) -> Any:
    """Return the columns of a frame that a model was fitted on; all where it does not say.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn.dummy import DummyClassifier
    >>> X = pd.DataFrame({"age": [30, 40], "town": ["a", "b"]})
    >>> model_columns(DummyClassifier().fit(X[["age"]], [0, 1]), X).columns.tolist()
    ['age']
    """
    names = names_of_model(estimator)
    frame = from_native(X, "X") if names else None
    if not isinstance(frame, nw.DataFrame) or frame.columns == names:
        return X
    has_all = set(names) <= set(frame.columns)
    return frame.select(names).to_native() if has_all else X


def _name(estimator: Any) -> str:
    return f"the base model {type(estimator).__name__}"


def _real_numbers(values: Any, source: str) -> NDArray[np.float64]:
    """Return what a base model gave as numbers; anything that is no real number is refused."""
    try:
        array = np.asarray(values)
        if array.dtype.kind == "O":  # numbers and None, for example
            array = np.array([_float_of(v) for v in array.ravel()]).reshape(array.shape)
        elif array.dtype.kind not in "fiub":
            raise TypeError
    except (TypeError, ValueError, OverflowError) as error:
        raise BaseModelError(
            f"{source} gave {shown(values)}, but scores are numbers: an array of shape "
            "(n_rows, 2) from predict_proba, (n_rows,) from decision_function."
        ) from error
    return array.astype(np.float64)


def _float_of(value: Any) -> float:
    if isinstance(value, str | bytes | complex | np.complexfloating):
        raise TypeError
    return float(value)


def _name_of(estimator: Any) -> str:
    return repr(estimator) if isinstance(estimator, ScoreColumn) else type(estimator).__name__


def _check_scores(scores: NDArray[np.float64], estimator: Any) -> None:
    name = _name_of(estimator)
    n_missing = int(np.isnan(scores).sum())
    if n_missing:
        raise BaseModelError(
            f"The base model {name} gave NaN as the score of {n_missing} of {len(scores)} rows. "
            "Every row needs a score: drop these rows or correct the model's input."
        )
    outside = (scores < 0) | (scores > 1)
    if outside.any():
        raise BaseModelError(
            f"The base model {name} gave scores outside [0, 1] in {int(outside.sum())} of "
            f"{len(scores)} rows (from {scores.min():.4g} to {scores.max():.4g}). Pass "
            "probabilities; a raw margin m becomes one through 1 / (1 + exp(-m))."
        )


def refuse_equal_scores(estimator: Any, base: BaseScores) -> None:
    """Refuse to fit on a base model that gives every row the same score."""
    scores = base.scores
    if len(scores) > 1 and np.ptp(scores) == 0:
        raise BaseModelError(
            f"The base model {_name_of(estimator)} gives every row the same score "
            f"({scores[0]:.4g}), so it does not tell people apart and an update has nothing to "
            "correct. Check that this is the model, or the column, that decides, and that it gets "
            "the columns that it was fitted on."
        )


def warn_about_base_model(
    estimator: Any,
    X: Any,
    base: BaseScores,
    *,
    classes: NDArray[Any],
    pos_label: Any,
    label: NDArray[np.bool_] | None,
) -> None:
    """Warn of equal or backward scores, of a `predict` that differs, and of training rows."""
    if np.ptp(base.scores) == 0:
        _warn(
            f"The base model gives every row the same score ({base.scores[0]:.4g}), so its scores "
            "do not distinguish people."
        )
    _warn_about_order(estimator, base, classes, pos_label, label)
    if not isinstance(estimator, ScoreColumn):
        warn_about_own_decisions(estimator, X, base, pos_label)
    if signs := training_signs(base, label):
        _warn(
            f"The fit rows look like rows the base model was trained on ({signs}). Its scores of "
            "these rows are too good: fit the update on held-out rows.",
            category=SeenRowsWarning,
        )


def training_signs(base: BaseScores, label: NDArray[np.bool_] | None) -> str:
    """Return the signs that the base model was trained on these rows; empty without any."""
    scores = base.scores
    extreme = float(np.mean((scores < 1e-6) | (scores > 1 - 1e-6)))
    accuracy = float(np.mean(base.decisions == label)) if label is not None else float("nan")
    # With a rare outcome every model looks accurate, so errors must also be rarer than it.
    rare = 0.0 if label is None else min(float(label.mean()), 1 - float(label.mean()))
    if extreme <= 0.5 and not (accuracy > 0.98 and 1 - accuracy < 0.1 * rare):
        return ""
    signs = [f"accuracy {accuracy:.3f}"] if label is not None else []
    return ", ".join([*signs, f"{extreme:.0%} of the scores at 0 or 1"])


def _warn_about_order(
    estimator: Any,
    base: BaseScores,
    classes: NDArray[Any],
    pos_label: Any,
    label: NDArray[np.bool_] | None,
) -> None:
    """Warn of scores that order the labels backwards, and where nobody can tell.

    Scores are never inverted here: only the user knows which label they predict.
    """
    predicted = score_label(estimator, classes)
    other = classes[classes != predicted][0]
    stated = f"{predicted!r}" if isinstance(predicted, str) else f"{predicted}"
    opposite = f"{other!r}" if isinstance(other, str) else f"{other}"
    if isinstance(estimator, ScoreColumn) and not isinstance(estimator, ModelScores):
        way_out = (
            f"pass ScoreColumn({estimator.column!r}, score_is_for={opposite}) (on the command "
            f"line: --score-is-for {other})"
        )
        is_silent = estimator.score_is_for is None and predicted != pos_label
        if label is None and is_silent:
            _warn(
                f"The column {estimator.name!r} is read as the score of label {stated}, and y is "
                f"None, so its order cannot be checked. If it is the score of label {opposite}, "
                f"{way_out}; else state score_is_for={stated}."
            )
    else:
        way_out = "check the model's classes_ and the coding of y"
    if label is None:
        return
    area, error = _area_under_curve(base.scores, label == base.is_for_positive)
    if area < BACKWARD_AREA and area + 2 * error < 0.5:
        _warn(
            f"The scores order the labels backwards: they are read as scores of label {stated}, "
            f"but people with that label have the lower scores (area under the curve {area:.3f}, "
            f"where 0.5 is chance). If they are scores of label {opposite}, {way_out}. Nothing "
            "was inverted.",
            category=ScoreOrderWarning,
        )


def _area_under_curve(
    scores: NDArray[np.float64], positive: NDArray[np.bool_]
) -> tuple[float, float]:
    """Return the area under the curve on at most MOST_RANKED rows, and its standard error.

    The error is that of Hanley and McNeil. Both are NaN where all labels are equal.
    """
    step = -(-len(scores) // MOST_RANKED)
    scores, positive = scores[::step], positive[::step]
    n_high = int(positive.sum())
    n_low = len(positive) - n_high
    if not n_high or not n_low:
        return float("nan"), float("nan")
    ranks = scipy.stats.rankdata(scores)
    area = (ranks[positive].sum() - n_high * (n_high + 1) / 2) / (n_high * n_low)
    both_high, both_low = area / (2 - area), 2 * area**2 / (1 + area)
    variance = area * (1 - area) + (n_high - 1) * (both_high - area**2)
    variance += (n_low - 1) * (both_low - area**2)
    return float(area), float(np.sqrt(max(variance, 0.0) / (n_high * n_low)))


def warn_about_own_decisions(estimator: Any, X: Any, base: BaseScores, pos_label: Any) -> None:
    """Warn if the model's own decisions differ from score > threshold.

    Predicting costs as much as scoring. So a large table is compared on a sample first, and on
    all rows only if the sample has a difference.
    """

    def differs(table: Any, decisions: NDArray[np.bool_]) -> NDArray[np.bool_]:
        given = estimator.predict(model_columns(estimator, table))
        try:
            predicted = np.asarray(given)
        except ValueError:  # rows of different lengths
            predicted = np.asarray(None)
        if predicted.size != len(decisions):
            raise BaseModelError(
                f"predict of {_name(estimator)} gave {shown(given)} for {len(decisions)} rows; "
                "expected one label per row."
            )
        return np.asarray((predicted.reshape(-1) == pos_label) != decisions)

    if not hasattr(estimator, "predict"):
        return
    if len(base.scores) > MOST_COMPARED:
        rows = _comparison_rows(base)
        if not differs(take_rows(X, rows), base.decisions[rows]).any():
            return
    different = differs(X, base.decisions)
    if different.any():
        way_out = "set threshold= to the threshold that is deployed"
        if base.threshold != DEFAULT_THRESHOLD:  # somebody has set it already
            way_out = f"check that threshold={base.threshold:g} is the one that is deployed"
        _warn(
            f"The base model's own predict differs from score > {base.threshold:g} in "
            f"{different.sum()} of {len(different)} rows. Changes are counted against score > "
            f"{base.threshold:g}; {way_out}.",
            stacklevel=7,
        )


def _comparison_rows(base: BaseScores) -> NDArray[np.intp]:
    """Return a sample: rows nearest to the threshold on each side, and evenly spaced rows.

    A model with another threshold decides differently in rows near this threshold first.
    """
    n = len(base.scores)
    parts = [np.arange(0, n, -(-2 * n // MOST_COMPARED))]
    n_nearest = MOST_COMPARED // 4
    for side in (base.decisions, ~base.decisions):
        rows = np.flatnonzero(side)
        if len(rows) > n_nearest:
            distance = np.abs(base.scores[rows] - base.threshold)
            rows = rows[np.argpartition(distance, n_nearest)[:n_nearest]]
        parts.append(rows)
    return np.unique(np.concatenate(parts))


def _warn(
    message: str, stacklevel: int = 6, category: type[BaseModelWarning] = BaseModelWarning
) -> None:
    warnings.warn(message, category, stacklevel=stacklevel)  # show the line that calls fit


def scores_digest(scores: NDArray[np.float64]) -> str:
    """Return the SHA-256 of scores (n,) as doubles, lowest byte first, in ascending order.

    So the order of the rows does not matter.

    Examples
    --------
    >>> scores_digest(np.array([0.5, 0.25]))[:8]
    'f4350073'
    """
    return scores_digest_by_row(np.sort(scores))


def scores_digest_by_row(scores: NDArray[np.float64]) -> str:
    """Return the SHA-256 of scores (n,) in the order of the rows, as version 0.2 stored it."""
    return hashlib.sha256(np.ascontiguousarray(scores, dtype="<f8").tobytes()).hexdigest()
