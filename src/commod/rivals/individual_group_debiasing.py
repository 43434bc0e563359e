"""Individual and group debiasing (Lohia et al. 2019): the score of the same person elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np

from commod._data.arrays import Floats, Mask
from commod._data.base_model import BaseScores, ScoreColumn
from commod._data.disclosure import MIN_CATEGORY_SIZE
from commod._data.tables import as_matrix, from_native
from commod._text import did_you_mean, list_names
from commod.exceptions import InputError
from commod.metrics._constraint import PARITY
from commod.rivals._group_model import GroupModel, fit_group_model, is_classifier
from commod.rivals._rows import HALF, DecisionRows, RivalFitRows, at_half, find_group
from commod.rivals.base import AwareRival, ScoredRival, number

OTHERS = "a method that asks nothing of the base model, such as MinimalFlip or ControlledDebiaser"


@dataclass(eq=False, repr=False, kw_only=True)
class IndividualGroupDebiasing(ScoredRival, AwareRival):
    """Give a person of another group the score that they would have in the privileged group.

    The individual bias of a row is b = f(x, s = privileged) − f(x, s): how much higher the base
    model would score the same person in the privileged group. Rows of all other groups whose bias
    is above τ get the score f(x, s = privileged). All other rows keep their base decisions.

    The base model must read the group as a column of X. A model that does not read it gives every
    row a bias of 0, and no decision changes.

    Parameters
    ----------
    estimator : fitted classifier
        The base model. It is never refitted, and is asked twice for the score of each row.
    group_column : str or int, default=None
        The column of X that holds the group, which the base model reads; a position for NumPy
        arrays. Each group must have one value of its own there. Required.
    strength : float, default=0.9
        1 − τ, where τ is the bias above which a row changes its score. 0 changes nothing, because
        no bias is above 1. At 1, every row with a bias above 0 changes its score.
    detector : None, "logistic" or classifier, default=None
        None compares the bias of the row itself with τ, as the public port of the method does. A
        classifier learns from x which of the rows have a bias above τ, as in the paper, and then
        decides which new rows change their score. "logistic" is a logistic regression on terms of
        the columns. A classifier of yours is cloned and fitted on X; it needs predict_proba.
    privileged : label, default=None
        The privileged group, a value of `sensitive_features`. None: the group with the highest
        positive rate under the base model.
    min_category_size : int, default=20
        Fit rows that a category needs to become a term of the "logistic" detector.
    constraints : str, default="demographic_parity"
        The only constraint that the method knows.
    min_group_size : int, default=30
        Fit rows that a group needs; smaller groups keep their base decisions.
    threshold : float, default=0.5
        The base decision is score > threshold. The bias is measured after the score and its
        threshold were shifted on the logit scale until the threshold was 0.5.
    pos_label : label, default=None
        The label whose rates count. If None, `favorable_label`, or else `classes_[1]`.
    favorable_label : label, default=None
        The label that is good for the person; `pos_label` if None. It only names gains and losses.

    Attributes
    ----------
    privileged_ : label
        The privileged group.
    privileged_value_ : object
        The value of `group_column` in the privileged group.
    biased_share_ : float
        Share of the fit rows of all other groups whose bias is above τ.
    detector_ : object or None
        The fitted detector; None without one, or where all rows are on the same side of τ.

    Notes
    -----
    Without a detector the method only raises scores. So it may not reach parity, and it makes
    parity worse where the group named as privileged has a lower positive rate than the others.
    The authors choose τ as the largest value that meets a bound on the difference between the
    groups' rates; `frontier` and `compare` do the same with `strength`.

    References
    ----------
    Lohia, Ramamurthy, Bhide, Saha, Varshney, Puri: "Bias Mitigation Post-processing for Individual
    and Group Fairness", ICASSP 2019.

    Examples
    --------
    >>> from commod.datasets import make_biased
    >>> from commod.rivals import IndividualGroupDebiasing
    >>> from sklearn.linear_model import LogisticRegression
    >>> data = make_biased(800, random_state=0)
    >>> groups = data.sensitive_features
    >>> X = data.data.assign(group=groups == groups[0])
    >>> model = LogisticRegression().fit(X, data.target)
    >>> update = IndividualGroupDebiasing(model, group_column="group", strength=1.0)
    >>> update = update.fit(X, sensitive_features=groups)
    >>> bool(update.fairness_ > update.base_fairness_)
    True
    """

    group_column: str | int | None = None
    strength: float = 0.9
    detector: Any = None
    privileged: Any = None
    min_category_size: int = number(MIN_CATEGORY_SIZE, low=1, whole=True)

    known_constraints = (PARITY,)
    needs_group_in_model = True
    largest_strength = 1.0

    @property
    def default_strengths(self) -> tuple[float, ...]:
        """Return 1 − τ from 0 to 1, denser where τ is small: most models have small biases.

        A detector is trained for each τ, so the sweep with a detector has half as many values.
        """
        n_steps = 30 if self.detector is None else 15
        return tuple(1 - (1 - i / n_steps) ** 3 for i in range(n_steps + 1))

    def _check_base_model(self) -> None:
        reason = "asks the base model for the score of the same person in another group"
        if self.group_column is None:
            raise InputError(
                f"IndividualGroupDebiasing {reason}, so the model must read the group; got "
                "group_column=None. Pass group_column='...', the column of X that holds the "
                f"group. If the model does not read the group, use {OTHERS}.",
                parameter="group_column",
            )
        is_position = isinstance(self.group_column, int | np.integer)
        if isinstance(self.group_column, bool) or not (
            isinstance(self.group_column, str) or (is_position and int(self.group_column) >= 0)
        ):
            raise InputError(
                f"group_column={self.group_column!r} is no column: pass its name, or its position "
                "in a NumPy array, counted from 0.",
                parameter="group_column",
            )
        if isinstance(self.estimator, ScoreColumn):
            raise InputError(
                f"IndividualGroupDebiasing {reason}, but {self.estimator!r} is a column of scores "
                f"and cannot be asked. Pass the fitted model itself, or use {OTHERS}.",
                parameter="estimator",
            )

    def _check_parameters(self) -> None:
        super()._check_parameters()
        is_named = isinstance(self.detector, str) and self.detector == "logistic"
        if not (self.detector is None or is_named or is_classifier(self.detector)):
            raise InputError(
                f"detector={self.detector!r} is no classifier that can be fitted and gives "
                "probabilities. Pass None, 'logistic', or a classifier that has fit and "
                "predict_proba, such as RandomForestClassifier().",
                parameter="detector",
            )

    # -- learning -------------------------------------------------------------------------------

    def _learn(self, rows: RivalFitRows) -> None:
        assert self.group_column is not None
        rates = rows.rates(self._constraint, rows.base.decisions)[0]
        privileged = int(np.nanargmax(rates))
        if self.privileged is not None:
            privileged = find_group(self.privileged, rows.group_labels)
        self.privileged_ = rows.group_labels[privileged]
        self.privileged_value_ = group_values(rows, self.group_column)[privileged]
        others = rows.is_counted & self._is_other(rows)
        bias = self._bias(rows)
        is_biased = bias > self._tau
        self.biased_share_ = float(np.average(is_biased[others], weights=rows.weight[others]))
        self._largest_bias = float(bias[others].max())
        self.detector_: GroupModel | None = None
        if self.detector is not None and len(np.unique(is_biased[others])) > 1:
            is_logistic = isinstance(self.detector, str)
            self.detector_ = fit_group_model(
                rows,
                np.where(others, is_biased, -1).astype(np.intp),
                group_model=None if is_logistic else self.detector,
                min_category_size=self.min_category_size,
                name="detector",
            )

    @property
    def _tau(self) -> float:
        return 1.0 - float(self._fitted_param("strength"))

    def _is_other(self, rows: DecisionRows) -> Mask:
        """Return which rows belong to a known group that is not the privileged one, shape (n,)."""
        assert rows.group is not None
        return (rows.group >= 0) & (rows.group != self.group_labels_.index(self.privileged_))

    def _if_privileged(self, rows: DecisionRows) -> BaseScores:
        """Return the scores that the same people would have in the privileged group."""
        column, value = self._fitted_param("group_column"), self.privileged_value_

        def ask() -> BaseScores:
            return self._base(with_constant(rows.X, column, value), rows.columns).for_positive

        scores: BaseScores = rows.remember(("if_privileged", column, value), ask)
        return scores

    def _bias(self, rows: DecisionRows) -> Floats:
        """Return the individual bias of each row, shape (n,)."""
        other = self._if_privileged(rows)
        return at_half(other.scores, other.threshold) - rows.scores_at_half

    def _remarks(self) -> Iterator[str]:
        yield from super()._remarks()
        if self._largest_bias <= 0:
            yield (
                f"No row would score higher with {self._fitted_param('group_column')!r} of the "
                "privileged group: the base model does not read this column, or does not favour "
                "that group."
            )

    # -- deciding -------------------------------------------------------------------------------

    def _new_scores(self, rows: DecisionRows) -> Floats:
        """Return the score in the privileged group where a bias is detected, shape (n,)."""
        if self._tau == 1.0:  # no bias is above 1
            return rows.base.scores
        is_biased = self._is_other(rows) & self._detect(rows)
        return np.where(is_biased, self._if_privileged(rows).scores, rows.base.scores)

    def _detect(self, rows: DecisionRows) -> Mask:
        """Return which rows count as biased, shape (n,)."""
        if self._fitted_param("detector") is None:
            return self._bias(rows) > self._tau
        if self.detector_ is None:
            return np.full(len(rows), self.biased_share_ > HALF)
        probability = self.detector_.probabilities(rows)
        return np.asarray(probability[self.detector_.classes.tolist().index(1)] > HALF)


# ---------------------------------------------------------------------------------------------
# The column of X that holds the group: its value in each group, and the same rows in another one
#
# The base model is asked for the score that a person would have in another group. One column
# becomes a constant. The kind of table, the order and types of its columns and the categories stay.


def column_name(column: str | int) -> str:
    """Return the name of a column; a position becomes the name that arrays have.

    Examples
    --------
    >>> column_name("sex"), column_name(2)
    ('sex', 'x2')
    """
    return column if isinstance(column, str) else f"x{column}"


def group_values(rows: RivalFitRows, column: str | int) -> list[Any]:
    """Return the value of the group column in each group, as the table holds it.

    Each group must have one value of the column, and no two groups the same. Anything else is
    refused, because the same person in another group would not be defined.
    """
    names = [c.name for c in rows.columns]
    if column_name(column) not in names:
        raise InputError(
            f"group_column={column!r} is not a column of X (columns: {list_names(names)})."
            f"{did_you_mean(column, names)} Name the column that holds the group. For a NumPy "
            "array, pass its position, counted from 0.",
            parameter="group_column",
        )
    values = rows.columns[names.index(column_name(column))]
    found = []
    for group, label in enumerate(rows.group_labels):
        inside = np.flatnonzero(rows.group == group)
        codes = values.values[inside]
        if values.is_missing()[inside].any() or (codes != codes[0]).any():
            raise InputError(
                f"group_column={column!r} holds more than one value, or none, in the group "
                f"{label!r}. The column must hold the group itself: pass the column that "
                "sensitive_features was made from.",
                parameter="group_column",
            )
        found.append((codes[0], int(inside[0])))
    if len({code for code, _ in found}) < len(found):
        raise InputError(
            f"group_column={column!r} holds the same value in several groups, so it does not tell "
            "them apart. Pass the column that sensitive_features was made from.",
            parameter="group_column",
        )
    return [value_at(rows.X, row, column) for _, row in found]


def value_at(X: Any, row: int, column: str | int) -> Any:
    """Return one value of a table as a Python object."""
    frame = from_native(X, "X")
    if isinstance(frame, nw.DataFrame):
        value = frame.get_column(_key(frame, column))[row]
    else:
        value = as_matrix(X)[row, _position(column)]
    return value.item() if isinstance(value, np.generic) else value


def with_constant(X: Any, column: str | int, value: Any) -> Any:
    """Return the table with one column set to `value` in every row; types and categories stay.

    Examples
    --------
    >>> import pandas as pd
    >>> people = pd.DataFrame({"age": [30, 40], "sex": pd.Categorical(["f", "m"])})
    >>> with_constant(people, "sex", "m")["sex"].tolist()
    ['m', 'm']
    >>> with_constant(np.array([[30, 0], [40, 1]]), 1, 1)
    array([[30,  1],
           [40,  1]])
    """
    frame = from_native(X, "X")
    if not isinstance(frame, nw.DataFrame):
        return _array_with_constant(as_matrix(X), _position(column), value)
    key = _key(frame, column)
    if nw.dependencies.is_pandas_dataframe(X):
        return _pandas_with_constant(X, key, value)
    try:
        constant = nw.lit(value, dtype=frame.schema[key]).alias(key)
        return frame.with_columns(constant).to_native()
    except Exception as error:
        raise InputError(
            f"Column {key!r} has type {frame.schema[key]}, which cannot hold {value!r}, its value "
            "in the fit rows. Give the column the type it had.",
            parameter="X",
        ) from error


def _array_with_constant(array: Any, position: int, value: Any) -> Any:
    dtype = array.dtype
    if dtype.kind in "US":  # a longer text must not be cut
        dtype = np.result_type(dtype, np.array([value]).dtype)
    elif dtype.kind in "fiu":
        dtype = np.result_type(dtype, value)
    constant = array.astype(dtype, copy=True)
    constant[:, position] = value
    return constant


def _pandas_with_constant(X: Any, key: Any, value: Any) -> Any:
    import pandas as pd

    dtype = X[key].dtype
    if isinstance(dtype, pd.CategoricalDtype) and value not in dtype.categories:
        # rows of one group may come without the other group's category
        dtype = pd.CategoricalDtype(dtype.categories.append(pd.Index([value])), dtype.ordered)
    constant = pd.Series([value] * len(X), index=X.index, dtype=object)
    changed = X.copy(deep=False)
    try:
        typed = constant.astype(dtype)
        is_kept = bool((typed == value).all())
    except (TypeError, ValueError):
        is_kept = False
    changed[key] = typed if is_kept else constant.infer_objects()
    return changed


def _key(frame: nw.DataFrame[Any], column: str | int) -> Any:
    """Return the name of the column as the frame spells it; it may be no text in pandas."""
    return next(key for key in frame.columns if str(key) == column_name(column))


def _position(column: str | int) -> int:
    """Return the position of a column of an array, from its position or its name "x3"."""
    return int(column[1:]) if isinstance(column, str) else int(column)
