"""Read the rows of a fit from the files of a table: features, labels, groups and base model."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from commod._io.optional import import_optional
from commod._io.persistence import MODEL_TYPES
from commod._io.sources import check_file
from commod._io.tables import read_frame
from commod.cli._command import named_columns
from commod.cli._engines import EngineOptions, TableSize
from commod.cli._options import (
    ColumnOptions,
    ModelOptions,
    NameOptions,
    TableOptions,
    find_label,
)
from commod.cli._printing import Printer
from commod.cli._tables import OpenTable, check_columns, open_table
from commod.exceptions import InputError

if TYPE_CHECKING:
    from commod._io.tables import SourceTable

# --ignore keeps the update from a column that another option names as well
MAY_BE_IGNORED = (
    {"--ignore", "--sensitive"},
    {"--ignore", "--score-column"},
    {"--ignore", "--key"},
)
MIN_IDENTIFIERS = 100  # rows that a column of identifiers has at least
READABLE_KINDS = ("text", "integer", "number", "boolean")  # kinds that a scorecard can read


@dataclass(frozen=True)
class LoadedRows:
    """Rows of a table in memory, and the base model that scores them.

    Only the base model reads the `locked` columns. The index of `X` names the rows in a ledger: it
    holds the identifier, or the row number from 0.
    """

    X: pd.DataFrame
    y: Any
    groups: Any
    estimator: Any
    locked: tuple[str, ...]
    files: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.X)

    @property
    def labels(self) -> list[Any]:
        """Return the two labels: those of the base model if it has any, else those of `y`."""
        classes = getattr(self.estimator, "classes_", None)
        if classes is not None:
            return list(classes.tolist())
        return [0, 1] if self.y is None else sorted(self.y.dropna().unique().tolist(), key=str)

    def split(self, test_size: float, seed: int) -> tuple[LoadedRows, LoadedRows]:
        """Return the rows to fit on and the rows to measure on.

        Both are all rows where `test_size` is 0.
        """
        if not test_size:
            return self, self
        order = np.random.default_rng(seed).permutation(len(self))
        n_test = round(test_size * len(self))
        if not 0 < n_test < len(self):
            raise InputError(f"--test-size {test_size:g} leaves no rows to fit or to measure on.")
        return self._take(np.sort(order[n_test:])), self._take(np.sort(order[:n_test]))

    def with_group_names(self, names: NameOptions) -> LoadedRows:
        """Return the rows with the groups under the names that the user gives them."""
        frame = self.groups.to_frame() if isinstance(self.groups, pd.Series) else self.groups
        known = {name: frame[name].dropna().unique().tolist() for name in frame}
        given = names.groups(known)
        if given is None:
            return self
        from commod._data.groups import check_group_names

        frame = frame.copy()
        for column, renamed in ({frame.columns[0]: given} if len(known) == 1 else given).items():
            check_group_names(renamed, set(known[column]))
            values = [renamed.get(value, value) for value in frame[column].tolist()]
            frame[column] = pd.Series(values, index=frame.index, dtype=object)
        return replace(self, groups=frame if len(known) > 1 else frame.iloc[:, 0])

    def _take(self, index: Any) -> LoadedRows:
        return replace(
            self,
            X=self.X.iloc[index],
            y=None if self.y is None else self.y.iloc[index],
            groups=self.groups.iloc[index],
        )


@dataclass(frozen=True)
class TableReader:
    """Read the rows that the options of a fit describe.

    `conditions` are the columns that constraints are within.
    """

    files: Sequence[str]
    columns: ColumnOptions
    model: ModelOptions
    table: TableOptions
    printer: Printer
    conditions: Sequence[str] = ()

    @property
    def keeps_unknown(self) -> bool:
        """Return whether rows without a group are kept."""
        return getattr(self.columns, "unknown_groups", "error") == "ignore"

    def open(self, engine: EngineOptions) -> OpenTable:
        """Return the table with its rows in their files; its columns are checked."""
        self.check_model()
        table = open_table(self.files, self.table, self.printer, engine=engine)
        try:
            self._check_columns(table)
        except BaseException:
            table.close()
            raise
        return table

    def size(self, table: OpenTable) -> TableSize:
        """Return the size of the columns that a fit reads."""
        features = self.columns.features or table.names
        others = {*self.columns.ignore, self.columns.key}
        return TableSize.of(table.n_rows, table.kinds, [n for n in features if n not in others])

    def load(self, table: SourceTable) -> LoadedRows:
        """Return the rows in memory; everything is checked before it is used."""
        estimator = self.load_estimator()
        features = self.feature_columns(estimator, table.names)
        frame = self._read_frame(table, features)
        used = list(
            self.usable_columns(
                features,
                table.kinds,
                lambda name: len(frame) >= MIN_IDENTIFIERS and bool(frame[name].is_unique),
            )
        )
        groups, label = frame[self.columns.sensitive], self.columns.label
        rows = LoadedRows(
            X=frame[used],
            y=None if label is None else with_label_dtype(frame[label]),
            groups=groups if len(self.columns.sensitive) > 1 else groups.iloc[:, 0],
            estimator=estimator,
            locked=tuple(name for name in used if self.is_locked(name, table.kinds)),
            files=table.files,
        )
        return replace(rows, estimator=self.with_score_label(rows.estimator, rows.labels))

    def with_score_label(self, estimator: Any, labels: list[Any]) -> Any:
        """Return a score column that says which label it predicts, where the user states it."""
        if self.model.score_is_for is None:
            return estimator
        label = find_label("--score-is-for", self.model.score_is_for, labels)
        return replace(estimator, score_is_for=label)

    def check_model(self) -> None:
        """Refuse options that do not say where scores come from."""
        given = self.model
        if (given.model is None) == (given.score_column is None):
            raise InputError(
                "Say where the base model's scores come from: --model FILE or --score-column NAME, "
                "one of them."
            )
        if given.score_is_for is not None and given.score_column is None:
            raise InputError(
                "--score-is-for belongs to --score-column: a model knows the labels it scores. "
                "Leave it out."
            )

    def load_estimator(self) -> Any:
        """Return the base model, or the column of its scores."""
        given = self.model
        if given.score_column is not None:
            from commod import ScoreColumn

            return ScoreColumn(given.score_column)

        assert given.model is not None
        return load_model(given.model, trust=given.trust)

    def _check_columns(self, table: OpenTable) -> None:
        """Refuse a column that the table does not have, or that two options name."""
        named = named_columns(self.columns, self.model)
        within = [("--constraint: the column within", name) for name in self.conditions]
        check_columns(table, [*named, *within])
        first: dict[str, str] = {}
        for option, name in named:
            if name in first and {option, first[name]} not in self._pairs_allowed:
                raise InputError(
                    f"Column {name!r} is named by {first[name]} and by {option}; it can be one."
                )
            first[name] = option

    @property
    def _pairs_allowed(self) -> list[set[str]]:
        """Return the pairs of options that may name one column.

        A base model without column names may need the sensitive column; the update never reads it.
        """
        if self.model.model is None:
            return list(MAY_BE_IGNORED)
        return [*MAY_BE_IGNORED, {"--features", "--sensitive"}]

    def feature_columns(self, estimator: Any, names: Sequence[str]) -> list[str]:
        """Return the columns to read for the update, its constraints and the base model."""
        return self._with_conditions(self._columns_of_model(estimator, names))

    def _columns_of_model(self, estimator: Any, names: Sequence[str]) -> list[str]:
        needed = [str(name) for name in getattr(estimator, "feature_names_in_", ())]
        missing = [name for name in needed if name not in names]
        if missing:
            raise InputError(
                f"The base model was fitted on column {missing[0]!r}, which the table does not "
                "have. Pass a table with the model's own columns, or --score-column if it holds "
                "the scores."
            )
        if needed:
            return needed
        columns, score = self.columns, self.model.score_column
        others = {*columns.sensitive, *columns.ignore, columns.label, columns.key}
        chosen = columns.features or [name for name in names if name not in others]
        if score is not None:
            return chosen if score in chosen else [*chosen, score]
        n_needed = getattr(estimator, "n_features_in_", len(chosen))
        if n_needed != len(chosen):
            raise InputError(
                f"The base model was fitted on {n_needed} columns without names, and the table has "
                f"{len(chosen)} for it. Name them in the model's order, each with --features."
            )
        return chosen

    def _with_conditions(self, features: list[str]) -> list[str]:
        """Return the columns with those that constraints are within."""
        more = [name for name in self.conditions if name not in features]
        if more and self.model.score_column is None:
            raise InputError(
                f"--constraint is within {more[0]!r}, which the base model does not read, and it "
                "gets all columns of the fit. Pass its scores instead, with --score-column."
            )
        return [*features, *more]

    def _read_frame(self, table: SourceTable, features: Sequence[str]) -> pd.DataFrame:
        """Return the rows with all columns that the fit needs; label, group, score are known."""
        people = [*self.columns.sensitive, *filter(None, [self.columns.label])]
        wanted = [*features, *people, *filter(None, [self.columns.key])]
        with self.printer.progress("reading") as progress:
            frame = read_frame(table, list(dict.fromkeys(wanted)), progress=progress)
        if self.columns.key is not None:
            frame.index = _row_identifiers(frame[self.columns.key])
        known = [*people, *filter(None, [self.model.score_column])]
        if self.keeps_unknown:
            known = [name for name in known if name not in self.columns.sensitive]
        if self.columns.drop_missing:
            frame = self._drop_incomplete(frame, known)
        for name in known:
            n_missing = int(frame[name].isna().sum())
            if n_missing:
                raise InputError(
                    f"Column {name!r} is missing in {n_missing:,} of {len(frame):,} rows, but "
                    "labels, groups and scores must be known. Fill it in, or drop such rows with "
                    f"--drop-missing.{self._way_to_keep(name)}"
                )
        return frame

    def _way_to_keep(self, name: str) -> str:
        """Return how to keep rows without a group, where the command can."""
        if name not in self.columns.sensitive or not hasattr(self.columns, "unknown_groups"):
            return ""
        return " To keep people of unknown groups, pass --unknown-groups ignore."

    def _drop_incomplete(self, frame: pd.DataFrame, known: Sequence[str]) -> pd.DataFrame:
        kept = frame[list(known)].notna().all(axis=1)
        n_dropped, names = int((~kept).sum()), ", ".join(known)
        if n_dropped == len(frame):
            raise InputError(
                f"Every row has a missing value in {names}, so no row is left. Check these columns."
            )
        if n_dropped:
            self.printer.note(
                f"{n_dropped:,} of {len(frame):,} rows were dropped: {names} is missing."
            )
        return frame[kept]

    def usable_columns(
        self, features: Sequence[str], kinds: Any, is_identifier: Callable[[str], bool]
    ) -> Iterator[str]:
        """Yield the columns without dates and identifiers; a base model keeps all its columns.

        `is_identifier` says whether a column of whole numbers differs from row to row.
        """
        for name in features:
            is_chosen, is_readable = name in self.columns.features, kinds[name] in READABLE_KINDS
            is_chosen = is_chosen or name in self.conditions
            if self.model.score_column in (None, name) or (is_readable and is_chosen):
                yield name
            elif not is_readable:
                text = f"Column {name!r} is of type {kinds[name]}, which a scorecard cannot read"
                if is_chosen:
                    raise InputError(f"{text}. Turn it into a number, such as days since a date.")
                self.printer.note(f"{text}: left out.")
            elif kinds[name] == "integer" and is_identifier(name):
                self.printer.note(
                    f"Column {name!r} has a different whole number in every row, as an identifier "
                    "has: left out. If it is one, pass --key; if not, name the columns with "
                    "--features."
                )
            else:
                yield name

    def is_locked(self, name: str, kinds: Any) -> bool:
        """Return whether only the base model may read a column."""
        columns = self.columns
        if name in (*columns.sensitive, *columns.ignore) or kinds[name] not in READABLE_KINDS:
            return True
        return bool(columns.features) and name not in (*columns.features, self.model.score_column)


def _row_identifiers(column: pd.Series[Any]) -> Any:
    if not column.is_unique or column.isna().any():
        raise InputError(
            f"--key {str(column.name)!r} does not name rows: it repeats a value, or one is missing."
        )
    return pd.Index(column, name=column.name)


def with_label_dtype(column: pd.Series[Any]) -> pd.Series[Any]:
    """Return labels as int or bool where missing values had made them float or object."""
    if column.dtype == "float64" and column.notna().all() and (column % 1 == 0).all():
        return column.astype("int64")
    if column.dtype == object and column.notna().all() and column.isin([True, False]).all():
        return column.astype(bool)
    return column


def check_test_size(test_size: float) -> None:
    """Refuse a number that is no share of the rows; call this before any row is read."""
    if not 0 <= test_size < 1:
        raise InputError(f"--test-size {test_size:g} is no share of the rows: give 0 to below 1.")


def check_group_not_determined(rows: LoadedRows, where: str = "") -> None:
    """Refuse a column that determines the group: the patch would hold the sensitive feature.

    `where` names the rows if they are not all rows.
    """
    from commod._data.columns import iter_columns
    from commod._data.groups import read_groups_or_unknown
    from commod._data.proxies import ProxyTest

    groups = read_groups_or_unknown(rows.groups, len(rows))
    test = ProxyTest(groups.take(groups.is_known).codings)
    score = getattr(rows.estimator, "name", None)
    for column in iter_columns(rows.X, skip=rows.locked):
        if column.name in rows.locked or column.name == score:
            continue
        if test.determines(column.take(groups.is_known)):
            raise InputError(
                f"Column {column.name!r} determines the sensitive group{where}, so a patch that "
                "reads it would hold the sensitive feature. Leave it out: --ignore "
                f"{column.name!r}."
            )


# ---------------------------------------------------------------------------------------------
# Load a base model from a file, or refuse the file in one sentence

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
        from commod.cli._onnx import OnnxModel

        model = OnnxModel.load(name)
    else:
        model = _load_pickle(name, "pickle" in trust)
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


def _load_pickle(name: str, is_trusted: bool) -> Any:
    if not is_trusted:
        raise InputError(
            f"{name!r} is a pickle, and loading a pickle can run any code. If you trust where it "
            "comes from, pass --trust pickle; better, save the model with skops.io.dump."
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
