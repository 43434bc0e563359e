"""Read sensitive features, or probabilities of them, as groups, and columns of strata.

Decisions are read here too, together with labels, groups, strata and weights.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from commod._data.columns import (
    Coded,
    check_text,
    code_array,
    code_series,
    joint_codes,
    plain,
    read_columns,
)
from commod._data.labels import (
    binary_outcome,
    binary_outcomes,
    check_length,
    check_weights,
    one_dimensional,
    read_label_pair,
    read_labels,
)
from commod._data.tables import check_same_rows, from_native
from commod._text import did_you_mean, list_names, n_of, shown
from commod.exceptions import InputError, InputTypeError

CERTAIN = 1 - 1e-9  # a group with this probability is known
UNKNOWN_GROUPS = ("error", "ignore")  # what to do with a row whose group is missing
TOLERANCE = 1e-3  # of the sum of a row: tables of probabilities are often rounded to three digits
NAME = "sensitive_probabilities"
MAX_NAMED_COLUMNS = 5  # a longer list of texts is read as groups of rows


@dataclass(frozen=True)
class Groups:
    """The sensitive group of each row: `codes` (n,) index `labels`; −1 if it is not known.

    If groups are intersections of several columns, `parts` holds the codes of each column.
    `probabilities` (n, n_groups) are those of the groups where users state them in place of
    groups; `codes` are then the most likely groups.
    """

    codes: NDArray[np.intp]
    labels: tuple[Hashable, ...]
    parts: tuple[NDArray[np.intp], ...] = ()
    probabilities: NDArray[np.float64] | None = None

    @property
    def is_known(self) -> NDArray[np.bool_]:
        """Return which rows have a group that is certain, shape (n,)."""
        if self.probabilities is None:
            return self.codes >= 0
        return np.asarray(self.probabilities.max(axis=1) >= CERTAIN)

    @property
    def sizes(self) -> NDArray[np.intp]:
        """Return the number of rows of each group, shape (n_groups,); unknown ones do not count."""
        return self.count()

    def count(self, rows: NDArray[np.bool_] | None = None) -> NDArray[np.intp]:
        """Return how many of some rows (n,) each group has, (n_groups,), without unknown rows.

        If probabilities are given, these are expected numbers, rounded.
        """
        kept = slice(None) if rows is None else rows
        if self.probabilities is not None:
            return np.rint(self.probabilities[kept].sum(axis=0)).astype(np.intp)
        codes = self.codes[kept]
        return np.bincount(codes[codes >= 0], minlength=len(self.labels))

    def take(self, rows: NDArray[np.intp] | NDArray[np.bool_]) -> Groups:
        """Return the groups of some rows; they keep their numbers and labels."""
        return Groups(
            self.codes[rows],
            self.labels,
            tuple(part[rows] for part in self.parts),
            None if self.probabilities is None else self.probabilities[rows],
        )

    @property
    def codings(self) -> tuple[NDArray[np.intp], ...]:
        """Return the codes of the groups, and those of each column where there are several."""
        return self.codes, *self.parts


def read_groups(sensitive_features: Any, n_rows: int, unknown: str = "error") -> Groups:
    """Return the sensitive group of each row; several columns mean their intersections.

    Only groups that occur are listed, in sorted order. A label is the value itself, or a tuple of
    values for several columns. Missing values are refused. With `unknown` "ignore", a row that
    misses one of its values has the code −1, and empty texts are refused: it is not clear whether
    they mean "missing". Groups that are read already are returned as they are.
    """
    groups = read_groups_or_unknown(sensitive_features, n_rows, unknown)
    values = (v for g in groups.labels for v in (g if isinstance(g, tuple) else (g,)))
    blank = next((v for v in values if isinstance(v, str) and not v.strip()), None)
    if unknown == "ignore" and blank is not None:
        raise InputError(
            f"sensitive_features has the group {blank!r}, and unknown_groups='ignore' keeps only "
            "None, NaN and NA without a group. Replace such texts by None, or give them a name.",
            parameter="sensitive_features",
        )
    return groups


def read_groups_or_unknown(sensitive_features: Any, n_rows: int, unknown: str = "ignore") -> Groups:
    """Return the sensitive group of each row, −1 if it is missing and `unknown` is "ignore"."""
    if isinstance(sensitive_features, Groups):
        is_stated = sensitive_features.probabilities is not None
        name = NAME if is_stated else "sensitive_features"
        check_length(sensitive_features.codes, name, n_rows)
        return sensitive_features
    if sensitive_features is None:
        raise InputError(
            "sensitive_features is missing. Pass the group of each row, such as data['race']; it "
            "is needed while fitting only.",
            parameter="sensitive_features",
        )
    _refuse_names(sensitive_features, n_rows)
    table = _value_columns(sensitive_features)
    if not table:
        raise InputError(
            "sensitive_features has no column. Pass the group of each row.",
            parameter="sensitive_features",
        )
    hint = ", or a table of several columns"
    place = "sensitive_features"
    columns = [code_values(values, n_rows, place, place, "group", hint) for values in table]
    is_missing = np.any([coded.codes < 0 for coded in columns], axis=0)
    if is_missing.all() or (is_missing.any() and unknown != "ignore"):
        raise _missing_groups(int(is_missing.sum()), n_rows)
    if is_missing.any():
        return _known_groups(columns, is_missing)
    return _intersections(columns)


def _refuse_names(sensitive_features: Any, n_rows: int) -> None:
    """Refuse the name of a column, or a short list of names, where values are expected."""
    given = sensitive_features
    is_short = isinstance(given, list | tuple) and 0 < len(given) <= MAX_NAMED_COLUMNS
    if isinstance(given, str):
        text = f"sensitive_features={shown(given)} is text, not one value per row."
        values = f"Pass the values of the column, such as data[{shown(given)}]"
    elif is_short and len(given) != n_rows and all(isinstance(name, str) for name in given):
        names = [str(name) for name in given]
        text = f"sensitive_features has {len(given)} rows, but {n_rows} were expected."
        values = f"If {names} are names of columns, pass their values, such as data[{names}]"
    else:
        return
    raise InputError(
        f"{text} {values}. Only fit_frame and audit_frame take names.",
        parameter="sensitive_features",
    )


def _missing_groups(n_missing: int, n_rows: int) -> InputError:
    text = f"sensitive_features has {n_of(n_missing, 'missing value')} in {n_rows:,} rows."
    if n_missing == n_rows:
        return InputError(
            f"{text} No group is known, so no rate can be measured. Pass groups, or probabilities "
            "of the groups as sensitive_probabilities= of ControlledDebiaser.fit.",
            parameter="sensitive_features",
        )
    return InputError(
        f"{text} Drop those rows, or give them a group of their own, e.g. with fillna('unknown'). "
        "To keep them without a group, pass unknown_groups='ignore' to ControlledDebiaser or to "
        "audit: rates then come from the known rows, and changes count all rows.",
        parameter="sensitive_features",
    )


def _known_groups(columns: Sequence[Coded], is_missing: NDArray[np.bool_]) -> Groups:
    """Return the groups of rows of which some are unknown: these have the code −1."""
    known = ~is_missing
    present_columns = []
    for coded in columns:
        present, codes = np.unique(coded.codes[known], return_inverse=True)
        present_columns.append(Coded(codes, [coded.values[code] for code in present]))
    groups = _intersections(present_columns)

    def on_all_rows(codes: NDArray[np.intp]) -> NDArray[np.intp]:
        whole = np.full(len(known), -1, dtype=np.intp)
        whole[known] = codes
        return whole

    return Groups(on_all_rows(groups.codes), groups.labels, tuple(map(on_all_rows, groups.parts)))


def sensitive_names(sensitive_features: Any) -> tuple[str, ...] | None:
    """Return the names of the sensitive columns of a frame or a dict, None for anything else."""
    native = from_native(sensitive_features, "sensitive_features")
    if isinstance(native, nw.DataFrame):
        return tuple(map(str, native.columns))
    if isinstance(sensitive_features, dict):
        return tuple(map(str, sensitive_features))
    return None


def _value_columns(sensitive_features: Any) -> list[Any]:
    named = columns_by_name(sensitive_features, "sensitive_features")
    if named is not None:
        return list(named.values())
    array = array_of_values(sensitive_features)
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2 or array.shape[1] == 0:
        raise InputError(
            "sensitive_features must be one value per row, or a table of several columns; got "
            f"shape {array.shape}.",
            parameter="sensitive_features",
        )
    return list(array.T)


def columns_by_name(values: Any, parameter: str) -> dict[Any, Any] | None:
    """Return the columns of a series, a frame or a dict by name; None for anything else."""
    native = from_native(values, parameter)
    if isinstance(native, nw.Series):
        return {native.name: native}
    if isinstance(native, nw.DataFrame):
        return {column.name: column for column in native.iter_columns()}
    if isinstance(values, dict):
        places = {name: f"{parameter}[{name!r}]" for name in values}
        return {name: one_dimensional(values[name], place) for name, place in places.items()}
    return None


def array_of_values(values: Any) -> NDArray[Any]:
    """Return values as an array in which entries of lists keep their types."""
    return np.asarray(values, dtype=None if isinstance(values, np.ndarray) else object)


def code_values(
    values: Any, n_rows: int, place: str, parameter: str, kind: str, hint: str = ""
) -> Coded:
    """Return codes of a series or an array (n_rows,); values that cannot name a `kind` are refused.

    So is text that no file can hold.
    """
    try:
        coded = code_array(values) if isinstance(values, np.ndarray) else code_series(values)
    except TypeError as error:
        raise InputTypeError(
            f"{place} holds values that cannot name a {kind} ({error}). Pass one number or text "
            f"per row{hint}.",
            parameter=parameter,
        ) from error
    check_length(coded.codes, place, n_rows)
    check_text((value for value in coded.values if isinstance(value, str)), place, parameter)
    return coded


def sorted_groups(coded: Coded) -> Groups:
    """Return codes as groups whose labels are in sorted order."""
    values = coded.values
    try:
        order = sorted(range(len(values)), key=values.__getitem__)
    except TypeError:  # labels of different types cannot be compared
        order = sorted(range(len(values)), key=lambda i: (type(values[i]).__name__, str(values[i])))
    if order == list(range(len(values))):
        return Groups(coded.codes.astype(np.intp), tuple(values))
    return Groups(np.argsort(order)[coded.codes], tuple(values[i] for i in order))


def _intersections(columns: Sequence[Coded]) -> Groups:
    """Return the groups of one column, or the combinations of several that occur."""
    parts = [sorted_groups(coded) for coded in columns]
    if len(parts) == 1:
        return parts[0]
    codes, first_rows = joint_codes([part.codes for part in parts])
    labels = [[part.labels[code] for code in part.codes[first_rows]] for part in parts]
    return Groups(codes, tuple(zip(*labels, strict=True)), tuple(part.codes for part in parts))


# ---------------------------------------------------------------------------------------------
# Names


def group_names_of(
    labels: Sequence[Hashable],
    columns: tuple[str, ...] | None,
    given: Mapping[Any, Any] | None = None,
) -> tuple[str, ...]:
    """Return a different text for each group: its values, with column names if there are several.

    `given` names values: ``{1: "women"}`` for one sensitive column, ``{"sex": {1: "women"}}`` for
    several. A value without a name stays as it is.

    Examples
    --------
    >>> group_names_of([("f", 1), ("m", 1)], ("sex", "age")), group_names_of([1, "1"], None)
    (('sex = f, age = 1', 'sex = m, age = 1'), ('1', "'1'"))
    >>> group_names_of([0, 1], None, {1: "women"})
    ('0', 'women')
    """
    parts = [label if isinstance(label, tuple) else (label,) for label in labels]
    parts = _renamed(parts, columns, given)
    names = [", ".join(map(str, part)) for part in parts]
    if columns is not None and len(columns) > 1:
        pairs = [zip(columns, part, strict=True) for part in parts]
        names = [", ".join(f"{column} = {value}" for column, value in pair) for pair in pairs]
    if len(set(names)) < len(names):  # 1 and "1" are two groups
        names = [", ".join(map(repr, part)) for part in parts]
    return tuple(names)


def _renamed(
    parts: list[tuple[Any, ...]], columns: tuple[str, ...] | None, given: Mapping[Any, Any] | None
) -> list[tuple[Any, ...]]:
    """Return the values of each group, replaced by their given names."""
    if given is None:
        return parts
    if not isinstance(given, Mapping):
        raise InputTypeError(
            f"group_names={shown(given)} must map groups to names, such as {{1: 'women'}}.",
            parameter="group_names",
        )
    n_columns = len(parts[0])
    by_column = [given] if n_columns == 1 else _by_column(columns, given, n_columns)
    for position, names in enumerate(by_column):
        check_group_names(names, {part[position] for part in parts})
    return [
        tuple(names.get(value, value) for names, value in zip(by_column, part, strict=True))
        for part in parts
    ]


def _by_column(
    columns: tuple[str, ...] | None, given: Mapping[Any, Any], n_columns: int
) -> list[Mapping[Any, Any]]:
    known = columns or tuple(str(i) for i in range(n_columns))
    if columns is None or not all(
        name in known and isinstance(names, Mapping) for name, names in given.items()
    ):
        raise InputError(
            f"sensitive_features has {n_columns} columns, so group_names needs the names of each "
            f"of them, such as {{{known[0]!r}: {{0: 'a', 1: 'b'}}}}; got {given!r}. The columns "
            f"are {', '.join(known) if columns else 'without names: pass a frame'}.",
            parameter="group_names",
        )
    return [given.get(name, {}) for name in known]


def check_group_names(names: Mapping[Any, Any], values: set[Any]) -> None:
    """Refuse a name for a value that does not occur, and one name for two groups."""
    listed = list_names(sorted(map(repr, values)))
    for value in names:
        if value not in values:
            raise InputError(
                f"group_names has {value!r}, which no row has; the groups are {listed}.",
                parameter="group_names",
            )
    after = [str(names.get(value, value)) for value in values]
    repeated = sorted({name for name, n in Counter(after).items() if n > 1})
    if names and repeated:
        raise InputError(
            f"group_names gives two groups the name {repeated[0]!r}. Names do not merge groups: "
            "change the values of sensitive_features for that.",
            parameter="group_names",
        )


# ---------------------------------------------------------------------------------------------
# Probabilities of the groups, which stand in the place of groups that are not known


def read_group_probabilities(probabilities: Any) -> Groups:
    """Return the groups with their probabilities; rows are scaled to sum to exactly 1.

    `probabilities` has shape (n, n_groups): an array, or a frame whose columns are named after the
    groups. The groups of an array are called 0, 1, 2, …
    """
    values, labels = _as_table(probabilities)
    if values.shape[1] < 2:
        raise InputError(
            f"{NAME} has {n_of(values.shape[1], 'column')}, but fairness compares at least 2 "
            "groups. Pass one column per group; for two groups p and 1 − p.",
            parameter=NAME,
        )
    for is_bad, what in (
        (~np.isfinite(values).all(axis=1), "a value that is missing or infinite"),
        ((values < 0).any(axis=1), "a negative probability"),
    ):
        if is_bad.any():
            row = int(np.argmax(is_bad))
            raise InputError(
                f"Row {row} of {NAME} has {what}: {values[row].tolist()}. Pass probabilities in "
                "[0, 1] for every group. Where nothing is known about a person, pass the shares "
                "of the groups in the population.",
                parameter=NAME,
            )
    sums = values.sum(axis=1)
    is_off = np.abs(sums - 1) > TOLERANCE
    if is_off.any():
        row = int(np.argmax(is_off))
        raise InputError(
            f"Row {row} of {NAME} sums to {sums[row]:.6g}, not to 1 "
            f"({n_of(int(is_off.sum()), 'such row')} in {len(sums)}). Each row holds one "
            "probability per group. Divide every row by its sum, or add a column for all others.",
            parameter=NAME,
        )
    shares = values / sums[:, None]
    return Groups(shares.argmax(axis=1), labels, probabilities=shares)


def _as_table(probabilities: Any) -> tuple[NDArray[np.float64], tuple[Hashable, ...]]:
    """Return the values, (n, n_groups), and the name of each group."""
    native = from_native(probabilities, NAME)
    labels: tuple[Hashable, ...] | None = None
    if isinstance(native, nw.DataFrame):
        # pandas may have names that are not text
        labels = tuple(map(plain, getattr(probabilities, "columns", native.columns)))
        probabilities = native.to_numpy()
    elif isinstance(native, nw.Series):
        probabilities = native.to_numpy()
    try:
        values = np.asarray(probabilities, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputTypeError(
            f"{NAME} holds values that are no numbers ({error}). Pass one probability per row and "
            "group.",
            parameter=NAME,
        ) from error
    if values.ndim != 2 or not len(values):
        raise InputError(
            f"{NAME} has shape {values.shape}, but needs one row per person and one column per "
            "group. For two groups with probability p, pass np.column_stack([1 - p, p]).",
            parameter=NAME,
        )
    return values, tuple(range(values.shape[1])) if labels is None else labels


# ---------------------------------------------------------------------------------------------
# The columns that people are compared within: columns of X, or control features

UNNAMED = "control_features"  # the name of a column that has none


@dataclass(frozen=True)
class ControlFeatures:
    """Columns that people may be compared within, by name. A column is read where it is needed."""

    values: dict[str, Any]
    n_rows: int

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the columns; that of a column without a name is UNNAMED."""
        return tuple(self.values)

    def strata(self, name: str) -> Groups:
        """Return the stratum of each row in the column `name`.

        A column without a name is taken for it.

        Examples
        --------
        >>> columns = read_control_features({"unit": ["a", "b"], "band": [1, None]}, 2)
        >>> columns.strata("unit").labels
        ('a', 'b')
        >>> columns.strata("units")
        Traceback (most recent call last):
        commod.exceptions.InputError: control_features has no column 'units'; it has unit, band. Did
        you mean 'unit'?
        """
        known = UNNAMED if self.names == (UNNAMED,) else name
        if known not in self.values:
            raise InputError(
                f"control_features has no column {name!r}; it has {list_names(self.names)}."
                f"{did_you_mean(name, self.names)}",
                parameter="control_features",
            )
        return read_stratum_column(self.values[known], self.n_rows, known)


def read_control_features(control_features: Any, n_rows: int) -> ControlFeatures:
    """Return the columns of `control_features`.

    A column is a series, an array (n,), an array (n, 1), or one of a frame or a dict. A column
    without a name is called "control_features".
    """
    named = columns_by_name(control_features, "control_features")
    if named is not None:
        names = {name: UNNAMED if name in (None, "") else str(name) for name in named}
        return ControlFeatures({names[name]: named[name] for name in named}, n_rows)
    array = array_of_values(control_features)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise InputError(
            "control_features must be one value per row, or a frame or a dict of named columns; "
            f"got shape {array.shape}.",
            parameter="control_features",
        )
    return ControlFeatures({UNNAMED: array}, n_rows)


def read_stratum_column(
    values: Any, n_rows: int, name: str, parameter: str = "control_features"
) -> Groups:
    """Return the stratum of each row of one column; missing values are refused.

    `values` is a narwhals series or an array (n,), `name` is that of the column, and `parameter` is
    what the caller passed it as.
    """
    place = f"{parameter}[{name!r}]" if name != parameter else parameter
    coded = code_values(values, n_rows, place, parameter, "stratum")
    refuse_missing(int((coded.codes < 0).sum()), n_rows, place, parameter)
    return sorted_groups(coded)


def read_condition(X: Any, name: str) -> Groups:
    """Return the strata of the column `name` of X; missing values are refused.

    Examples
    --------
    >>> import pandas as pd
    >>> read_condition(pd.DataFrame({"unit": ["b", "a", "b"]}), "unit").labels
    ('a', 'b')
    """
    columns = {column.name: column for column in read_columns(X, only={name})}
    if name not in columns:
        names = list(columns)
        raise InputError(
            f"A constraint is within {shown(name)}, but X has no such column (columns: "
            f"{list_names(names)}).{did_you_mean(name, names)}",
            parameter="constraints",
        )
    column = columns[name]
    n_missing = int(column.is_missing().sum())
    refuse_missing(n_missing, len(column), f"Column {shown(name)}", "constraints")
    if column.kind == "numeric":
        return sorted_groups(code_array(column.values))
    return sorted_groups(Coded(column.values, list(column.categories)))


def refuse_missing(n_missing: int, n_rows: int, place: str, parameter: str) -> None:
    """Refuse a column of strata with missing values; `place` names the column."""
    if n_missing:
        raise InputError(
            f"{place} has {n_of(n_missing, 'missing value')} in {n_rows:,} rows, and people are "
            "compared within its values. Give them a value of their own, such as 'unknown', or "
            "drop these rows.",
            parameter=parameter,
        )


# ---------------------------------------------------------------------------------------------
# Decisions together with true labels, groups and weights


@dataclass(frozen=True)
class GroupedDecisions:
    """Checked decisions of n ≥ 1 rows; every array has shape (n,).

    `y_pred` and `y_true` hold the labels as they were passed. `decisions` and `outcomes` say where
    these equal the positive label. `y_true` and `outcomes` are None if true labels are unknown.
    `columns` are the control features; None if there are none.
    """

    y_pred: NDArray[Any]
    decisions: NDArray[np.bool_]
    y_true: NDArray[Any] | None
    outcomes: NDArray[np.bool_] | None
    groups: Groups
    weight: NDArray[np.float64]
    columns: ControlFeatures | None = None


def read_decisions(
    y_true: Any,
    y_pred: Any,
    sensitive_features: Any,
    pos_label: Any,
    sample_weight: Any = None,
    control_features: Any = None,
) -> GroupedDecisions:
    """Return checked decisions; `y_true` may be None, and otherwise uses the same two labels."""
    given = {"y_pred": y_pred, "y_true": y_true, "sensitive_features": sensitive_features}
    check_same_rows({**given, "sample_weight": sample_weight, UNNAMED: control_features})
    labels: NDArray[Any] | None = None
    outcomes: NDArray[np.bool_] | None = None
    if y_true is None:
        pred = read_labels(y_pred, "y_pred", allow_empty=False)
        decisions = binary_outcome(pred, "y_pred", pos_label)
    else:
        pred, labels = read_label_pair(y_pred, y_true, ("y_pred", "y_true"))
        outcomes, decisions = binary_outcomes((labels, pred), ("y_true", "y_pred"), pos_label)
    groups = read_groups(sensitive_features, len(pred))
    weight = check_weights(sample_weight, len(pred))
    columns = None
    if control_features is not None:
        columns = read_control_features(control_features, len(pred))
    return GroupedDecisions(pred, decisions, labels, outcomes, groups, weight, columns)
