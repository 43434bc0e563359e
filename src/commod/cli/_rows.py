"""Read the rows of a fit: features, labels, groups and base model, in memory or in their engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np
import pandas as pd

from commod._io.tables import StoredTable, read_frame
from commod._text import n_of
from commod.cli._command import named_columns
from commod.cli._engines import EngineChoice, choose_engine
from commod.cli._models import load_model
from commod.cli._options import Options, find_label
from commod.cli._printing import Printer
from commod.cli._tables import check_columns, count_rows, open_table
from commod.exceptions import InputError

if TYPE_CHECKING:
    from commod._data.scored_frames import ScoredFrame

# --ignore keeps the update from a column that another option names as well
MAY_BE_IGNORED = (
    {"--ignore", "--sensitive"},
    {"--ignore", "--score-column"},
    {"--ignore", "--key"},
)
MIN_IDENTIFIERS = 100  # rows that a column of identifiers has at least
READABLE_KINDS = ("text", "integer", "number", "boolean")  # kinds that a scorecard can read
MOST_VALUES = 1_000  # of a label or of a sensitive column that gets names
SAMPLED_ROWS = 50_000  # that come into memory for checks and for `commod compare`
FEW_ROWS = 10_000  # the first rows rule out most columns of identifiers
CLASSES = 9_973  # a prime: whole numbers with equal remainders are a sample without order


@dataclass(frozen=True)
class LoadedRows:
    """Rows of a table in memory, and the base model that scores them.

    Only the base model reads the `locked` columns. The index of `X` names the rows in a ledger: it
    holds the identifier, or the row number from 0.
    """

    X: pd.DataFrame
    y: Any
    groups: Any
    estimator: Any = None
    locked: tuple[str, ...] = ()
    files: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, frame: pd.DataFrame, options: Options, features: list[str], *known: Any
    ) -> LoadedRows:
        """Return the rows of a frame; `known` are base model, locked columns and files."""
        groups, label = frame[options.sensitive], options.label
        y = None if label is None else _with_label_dtype(frame[label])
        one_or_more = groups if len(options.sensitive) > 1 else groups.iloc[:, 0]
        return cls(frame[features], y, one_or_more, *known)

    def __len__(self) -> int:
        return len(self.X)

    @property
    def labels(self) -> list[Any]:
        """Return the two labels: those of the base model if it has any, else those of `y`."""
        classes = getattr(self.estimator, "classes_", None)
        if classes is not None:
            return list(classes.tolist())
        return [0, 1] if self.y is None else sorted(self.y.dropna().unique().tolist(), key=str)

    def named(self, ending: str = "") -> dict[str, Any]:
        """Return X, y and groups as parameters of the library whose names have this ending."""
        named = {"X": self.X, "y": self.y, "sensitive_features": self.groups}
        return {name + ending: values for name, values in named.items()}

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
        return self.take(np.sort(order[n_test:])), self.take(np.sort(order[:n_test]))

    def with_group_names(self, options: Options) -> LoadedRows:
        """Return the rows with the groups under the names that the user gives them."""
        frame = self.groups.to_frame() if isinstance(self.groups, pd.Series) else self.groups.copy()
        known = {name: frame[name].dropna().unique().tolist() for name in frame}
        for column, renamed in _group_names(options, known).items():
            values = [renamed.get(value, value) for value in frame[column].tolist()]
            frame[column] = pd.Series(values, index=frame.index, dtype=object)
        return replace(self, groups=frame if len(known) > 1 else frame.iloc[:, 0])

    def take(self, index: Any) -> LoadedRows:
        """Return the rows at some positions."""
        return replace(
            self,
            X=self.X.iloc[index],
            y=None if self.y is None else self.y.iloc[index],
            groups=self.groups.iloc[index],
        )


@dataclass(frozen=True)
class FrameRows:
    """Rows of a table in their engine, and the columns that a fit reads for each purpose.

    `frame` is a native frame of the engine. `scores` are those of a base model that are a column of
    the frame (`with_model_scores`). Other attributes are as in `LoadedRows`.
    """

    options: Options
    frame: Any
    features: tuple[str, ...]
    labels: list[Any]
    estimator: Any
    locked: tuple[str, ...]
    files: tuple[str, ...]
    n_rows: int
    scores: ScoredFrame | None = None

    @property
    def score(self) -> str:
        """Return the column of the scores."""
        return str(self.estimator.column) if self.scores is None else self.scores.column

    @property
    def fit_rows(self) -> Any:
        """Return the rows as `fit_frame` reads them; a base model need not score them again."""
        return self.frame if self.scores is None else replace(self.scores, frame=self.frame)

    def named(self) -> dict[str, Any]:
        """Return the columns as parameters of `fit_frame`."""
        return {
            "sensitive_features": self.options.sensitive,
            "y_true": self.options.label,
            "features": list(self.features),
            "key": self.options.key,
        }

    @contextmanager
    def with_model_scores(self, printer: Printer) -> Iterator[FrameRows]:
        """Yield the rows with a column of scores: a base model scores them once, by batches."""
        from commod import ScoreColumn
        from commod._data.scored_frames import with_scores

        if isinstance(self.estimator, ScoreColumn):
            yield self
            return
        with ExitStack() as stack:
            with printer.library_call(), printer.spinner("scoring"):
                scores = with_scores(self.frame, self.estimator, self.features)
                scored = stack.enter_context(scores)
            yield replace(self, frame=scored.frame, scores=scored)

    def split(self, test_size: float, seed: int) -> tuple[FrameRows, FrameRows]:
        """Return the rows to fit on and the rows to measure on, as `LoadedRows.split` does.

        Rows are drawn by a hash of the key, or of their number.
        """
        if not test_size:
            return self, self
        from commod._data.draws import split_frame

        kept, part = split_frame(self.frame, test_size, key=self.options.key, seed=seed)
        n_test = round(test_size * self.n_rows)
        return (
            replace(self, frame=kept, n_rows=self.n_rows - n_test),
            replace(self, frame=part, n_rows=n_test),
        )

    def sample(self, seed: int) -> LoadedRows:
        """Return about SAMPLED_ROWS random rows in memory; all rows of a smaller table."""
        from commod._data.draws import split_frame

        part, key = self.frame, self.options.key
        if self.n_rows > SAMPLED_ROWS:
            _, part = split_frame(part, SAMPLED_ROWS / self.n_rows, key=key, seed=seed)
        lazy: Any = nw.from_native(part)
        frame = lazy.collect(backend="pyarrow").to_native().to_pandas()
        if key is not None:  # engines return rows in any order
            frame = frame.sort_values(key, ignore_index=True, kind="stable")
        known = (self.estimator, self.locked, self.files)
        return LoadedRows.of(frame, self.options, list(self.features), *known)


@dataclass(frozen=True)
class TableReader:
    """Read the rows that the options of a fit describe."""

    options: Options
    printer: Printer

    def open(self) -> StoredTable:
        """Return the table with its rows in their files; its columns are checked."""
        options = self.options
        if (options.model is None) == (options.score_column is None):
            raise InputError(
                "Say where the base model's scores come from: --model FILE or --score-column NAME, "
                "one of them."
            )
        if options.score_is_for is not None and options.score_column is None:
            raise InputError(
                "--score-is-for belongs to --score-column: a model knows the labels it scores. "
                "Leave it out."
            )
        table = open_table(options.files, options, self.printer)
        try:
            self._check_columns(table)
        except BaseException:
            table.close()
            raise
        return table

    def choose(self, table: StoredTable, needs: Mapping[str, str]) -> EngineChoice:
        """Return where the rows are processed; `needs` are options that need them in memory."""
        columns = self.options.features or table.names
        others = {*self.options.ignore, self.options.key}
        read = [name for name in columns if name not in others]
        return choose_engine(self.options, table, read, needs)

    def load(self, table: StoredTable) -> LoadedRows:
        """Return the rows in memory; everything is checked before it is used."""
        estimator, features = self._model_and_columns(table)
        frame = self._read_frame(table, features)

        def is_identifier(name: str) -> bool:
            return len(frame) >= MIN_IDENTIFIERS and bool(frame[name].is_unique)

        used = list(self._usable_columns(features, table.kinds, is_identifier))
        known = (estimator, self._locked(used, table), table.files)
        rows = LoadedRows.of(frame, self.options, used, *known)
        return replace(rows, estimator=self._with_score_label(estimator, rows.labels))

    def leave_in_engine(self, table: StoredTable) -> FrameRows:
        """Return the rows in the engine of the table."""
        options = self.options
        estimator, features = self._model_and_columns(table)
        frame: Any = nw.from_native(table.plain_rows(self._columns_to_read(features)))
        n_rows = table.n_rows
        if options.drop_missing:
            known = self._known_columns()
            is_missing = nw.any_horizontal(
                *(nw.col(name).is_null() for name in known), ignore_nulls=False
            )
            n_dropped = count_rows(frame, is_missing)
            self._tell_dropped(n_dropped, n_rows, known)
            frame, n_rows = frame.filter(~is_missing), n_rows - n_dropped
        used = list(
            self._usable_columns(features, table.kinds, lambda name: _is_identifier(frame, name))
        )
        labels = [0, 1]
        if options.label is not None:
            frame, labels = _with_labels(frame, options.label, table.kinds[options.label])
        classes = getattr(estimator, "classes_", None)
        labels = labels if classes is None else list(classes.tolist())
        return FrameRows(
            options=options,
            frame=_with_group_names(frame, options).to_native(),
            features=tuple(used),
            labels=labels,
            estimator=self._with_score_label(estimator, labels),
            locked=self._locked(used, table),
            files=table.files,
            n_rows=n_rows,
        )

    def _check_columns(self, table: StoredTable) -> None:
        """Refuse a column that the table does not have, or that two options name."""
        check_columns(table, self.options)
        allowed = list(MAY_BE_IGNORED)
        if self.options.model is not None:
            # One without column names may need the sensitive column; the update never reads it.
            allowed.append({"--features", "--sensitive"})
        first: dict[str, str] = {}
        for option, name in named_columns(self.options):
            if name in first and {option, first[name]} not in allowed:
                raise InputError(
                    f"Column {name!r} is named by {first[name]} and by {option}; it can be one."
                )
            first[name] = option

    @property
    def _conditions(self) -> tuple[str, ...]:
        """Return the columns that constraints are within."""
        return tuple(self.options.requirements.columns)

    def _known_columns(self) -> list[str]:
        """Return the columns of labels, groups and scores, which must be known in every row."""
        options = self.options
        groups = [] if options.unknown_groups == "ignore" else options.sensitive
        return [*groups, *filter(None, [options.label, options.score_column])]

    def _columns_to_read(self, features: Sequence[str]) -> list[str]:
        options = self.options
        people = [*options.sensitive, *filter(None, [options.label, options.key])]
        return list(dict.fromkeys([*features, *people]))

    def _model_and_columns(self, table: StoredTable) -> tuple[Any, list[str]]:
        """Return the base model, or the column of its scores, and the columns to read for a fit."""
        options = self.options
        if options.score_column is not None:
            from commod import ScoreColumn

            estimator: Any = ScoreColumn(options.score_column)
        else:
            assert options.model is not None
            estimator = load_model(options.model, trust=options.trust)
        features = self._columns_of_model(estimator, table.names)
        more = [name for name in self._conditions if name not in features]
        if more and options.score_column is None:
            raise InputError(
                f"--constraint is within {more[0]!r}, which the base model does not read, and it "
                "gets all columns of the fit. Pass its scores instead, with --score-column."
            )
        return estimator, [*features, *more]

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
        options, score = self.options, self.options.score_column
        others = {*options.sensitive, *options.ignore, options.label, options.key}
        chosen = options.features or [name for name in names if name not in others]
        if score is not None:
            return chosen if score in chosen else [*chosen, score]
        n_needed = getattr(estimator, "n_features_in_", len(chosen))
        if n_needed != len(chosen):
            raise InputError(
                f"The base model was fitted on {n_needed} columns without names, and the table has "
                f"{len(chosen)} for it. Name them in the model's order, each with --features."
            )
        return chosen

    def _with_score_label(self, estimator: Any, labels: list[Any]) -> Any:
        """Return a score column that says which label it predicts, where the user states it."""
        stated = self.options.score_is_for
        if stated is None:
            return estimator
        return replace(estimator, score_is_for=find_label("--score-is-for", stated, labels))

    def _read_frame(self, table: StoredTable, features: Sequence[str]) -> pd.DataFrame:
        """Return the rows with all columns that the fit needs; label, group, score are known."""
        options = self.options
        with self.printer.progress("reading") as progress:
            frame = read_frame(table, self._columns_to_read(features), progress=progress)
        if options.key is not None:
            frame.index = _row_identifiers(frame[options.key])
        known = self._known_columns()
        if options.drop_missing:
            kept = frame[known].notna().all(axis=1)
            self._tell_dropped(int((~kept).sum()), len(frame), known)
            frame = frame[kept]
        for name in known:
            n_missing = int(frame[name].isna().sum())
            if n_missing:
                can_keep = name in options.sensitive and options.command != "compare"
                keep = " To keep people of unknown groups, pass --unknown-groups ignore."
                raise InputError(
                    f"Column {name!r} is missing in {n_missing:,} of {len(frame):,} rows, but "
                    "labels, groups and scores must be known. Fill it in, or drop such rows with "
                    f"--drop-missing.{keep if can_keep else ''}"
                )
        return frame

    def _tell_dropped(self, n_dropped: int, n_rows: int, known: Sequence[str]) -> None:
        """Print how many rows are dropped, because a known column is missing; refuse all rows."""
        names = ", ".join(known)
        if n_dropped == n_rows:
            raise InputError(
                f"Every row has a missing value in {names}, so no row is left. Check these columns."
            )
        if n_dropped:
            self.printer.note(f"{n_dropped:,} of {n_rows:,} rows were dropped: {names} is missing.")

    def _usable_columns(
        self, features: Sequence[str], kinds: Any, is_identifier: Callable[[str], bool]
    ) -> Iterator[str]:
        """Yield the columns without dates and identifiers; a base model keeps all its columns.

        `is_identifier` says whether a column of whole numbers differs from row to row.
        """
        options = self.options
        for name in features:
            is_chosen = name in options.features or name in self._conditions
            is_readable = kinds[name] in READABLE_KINDS
            if options.score_column in (None, name) or (is_readable and is_chosen):
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

    def _locked(self, names: Sequence[str], table: StoredTable) -> tuple[str, ...]:
        """Return the columns that only the base model may read."""
        options = self.options
        unread = {*options.sensitive, *options.ignore}
        chosen = {*options.features, options.score_column} if options.features else {*names}
        return tuple(
            name
            for name in names
            if name in unread or name not in chosen or table.kinds[name] not in READABLE_KINDS
        )


def _row_identifiers(column: pd.Series[Any]) -> Any:
    if not column.is_unique or column.isna().any():
        raise InputError(
            f"--key {str(column.name)!r} does not name rows: it repeats a value, or one is missing."
        )
    return pd.Index(column, name=column.name)


def _with_label_dtype(column: pd.Series[Any]) -> pd.Series[Any]:
    """Return labels as int or bool where missing values had made them float or object."""
    if column.dtype == "float64" and column.notna().all() and (column % 1 == 0).all():
        return column.astype("int64")
    if column.dtype == object and column.notna().all() and column.isin([True, False]).all():
        return column.astype(bool)
    return column


def check_test_size(test_size: float) -> float:
    """Refuse a number that is no share of the rows; call this before any row is read."""
    if not 0 <= test_size < 1:
        raise InputError(f"--test-size {test_size:g} is no share of the rows: give 0 to below 1.")
    return test_size


def _is_identifier(frame: Any, name: str) -> bool:
    """Return whether a column of whole numbers differs from row to row, but for few rows.

    The first rows rule out most columns. Of the others, all rows whose number has a certain
    remainder are compared: equal numbers have equal remainders.
    """
    first = frame.select(name).head(FEW_ROWS).collect()[name]
    if len(first) < 2 or first.is_null().any() or first.n_unique() < len(first):
        return False
    if len(first) < FEW_ROWS:
        return True
    remainder = int(first[0]) % CLASSES
    value = nw.col(name)
    same = frame.filter((value % CLASSES + CLASSES) % CLASSES == remainder).select(name)
    counted = same.select(n=nw.len(), different=nw.col(name).n_unique()).collect()
    return bool(counted["n"][0] == counted["different"][0])


def _with_labels(frame: Any, label: str, kind: str) -> tuple[Any, list[Any]]:
    """Return the two labels, and the frame; whole numbers are int, as in memory."""
    values = _values(frame, label)
    if kind == "number" and all(float(value).is_integer() for value in values):
        frame = frame.with_columns(nw.col(label).cast(nw.Int64))
        values = [int(value) for value in values]
    return frame, sorted(values, key=str)


def _values(frame: Any, column: str) -> list[Any]:
    """Return the different values of a column; refuse a column of many."""
    found = frame.select(column).unique().head(MOST_VALUES + 1).collect()[column]
    values = [value for value in found.drop_nulls().to_list() if value == value]
    if len(values) > MOST_VALUES:
        raise InputError(
            f"Column {column!r} has more than {n_of(MOST_VALUES, 'value')}, and a label or a group "
            "has few. Check that this is the column that you mean."
        )
    return values


def _with_group_names(frame: Any, options: Options) -> Any:
    """Return the frame with the groups under the names that the user gives them."""
    if not options.group_names:
        return frame
    known = {name: sorted(_values(frame, name), key=str) for name in options.sensitive}
    for column, renamed in _group_names(options, known).items():
        new = [str(renamed.get(value, value)) for value in known[column]]
        named = nw.col(column).replace_strict(
            known[column], new, default=None, return_dtype=nw.String
        )
        frame = frame.with_columns(named.alias(column))
    return frame


def _group_names(options: Options, known: dict[str, list[Any]]) -> dict[str, dict[Any, Any]]:
    """Return the checked names of groups by sensitive column; `known` are its values."""
    from commod._data.groups import check_group_names

    given: dict[Any, Any] = options.named_groups(known) or {}
    by_column = {next(iter(known)): given} if given and len(known) == 1 else given
    for column, renamed in by_column.items():
        check_group_names(renamed, set(known[column]))
    return by_column
