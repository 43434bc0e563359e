"""Prepare the rows of a fit that stay in their engine, and draw a sample of them into memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import narwhals as nw

from commod._text import n_of
from commod.cli._options import NameOptions
from commod.cli._rows import LoadedRows, TableReader, with_label_dtype
from commod.cli._tables import OpenTable
from commod.exceptions import InputError

if TYPE_CHECKING:
    from commod._data.scored_frames import ScoredFrame
    from commod.cli._tables import OpenTable

MOST_VALUES = 1_000  # of a label or of a sensitive column that gets names
SAMPLED_ROWS = 50_000  # that come into memory for checks and for `commod compare`
FEW_ROWS = 10_000  # the first rows rule out most columns of identifiers
CLASSES = 9_973  # a prime: whole numbers with equal remainders are a sample without order


@dataclass(frozen=True)
class FrameRows:
    """Rows of a table in their engine, and the columns that a fit reads for each purpose.

    `frame` is a native frame of the engine. `scores` are those of a base model that are a column of
    the frame (`with_model_scores`). Other attributes are as in `LoadedRows`.
    """

    frame: Any
    features: tuple[str, ...]
    sensitive: tuple[str, ...]
    label: str | None
    key: str | None
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

    @contextmanager
    def with_model_scores(self) -> Iterator[FrameRows]:
        """Yield the rows with a column of scores: a base model scores them once, by batches."""
        from commod import ScoreColumn
        from commod._data.scored_frames import with_scores

        if isinstance(self.estimator, ScoreColumn):
            yield self
            return
        with with_scores(self.frame, self.estimator, self.features) as scored:
            yield replace(self, frame=scored.frame, scores=scored)

    def split(self, test_size: float, seed: int) -> tuple[FrameRows, FrameRows]:
        """Return the rows to fit on and the rows to measure on, as `LoadedRows.split` does.

        Rows are drawn by a hash of the key, or of their number.
        """
        if not test_size:
            return self, self
        from commod._data.draws import split_frame

        kept, part = split_frame(self.frame, test_size, key=self.key, seed=seed)
        n_test = round(test_size * self.n_rows)
        return (
            replace(self, frame=kept, n_rows=self.n_rows - n_test),
            replace(self, frame=part, n_rows=n_test),
        )

    def sample(self, seed: int) -> LoadedRows:
        """Return about SAMPLED_ROWS random rows in memory; all rows of a smaller table."""
        from commod._data.draws import split_frame

        part = self.frame
        if self.n_rows > SAMPLED_ROWS:
            _, part = split_frame(part, SAMPLED_ROWS / self.n_rows, key=self.key, seed=seed)
        frame = _in_memory(part)
        if self.key is not None:  # engines return rows in any order
            frame = frame.sort_values(self.key, ignore_index=True, kind="stable")
        groups = frame[list(self.sensitive)]
        return LoadedRows(
            X=frame[list(self.features)],
            y=None if self.label is None else with_label_dtype(frame[self.label]),
            groups=groups if len(self.sensitive) > 1 else groups.iloc[:, 0],
            estimator=self.estimator,
            locked=self.locked,
            files=self.files,
        )


def read_in_engine(reader: TableReader, table: OpenTable, names: NameOptions) -> FrameRows:
    """Return the rows that the options of a fit describe, in the engine of the table."""
    estimator = reader.load_estimator()
    given, kinds = reader.columns, table.kinds
    features = reader.feature_columns(estimator, table.names)
    people = [*given.sensitive, *filter(None, [given.label])]
    others = [*people, *filter(None, [reader.columns.key])]
    frame: Any = nw.from_native(table.plain_rows(list(dict.fromkeys([*features, *others]))))
    n_rows = table.n_rows
    if given.drop_missing:
        known = [*people, *filter(None, [reader.model.score_column])]
        frame, n_rows = _drop_incomplete(reader, frame, n_rows, known)
    used = list(reader.usable_columns(features, kinds, lambda name: _is_identifier(frame, name)))
    labels = [0, 1]
    if given.label is not None:
        frame, labels = _with_labels(frame, given.label, kinds[given.label])
    classes = getattr(estimator, "classes_", None)
    labels = labels if classes is None else list(classes.tolist())
    frame = _with_group_names(frame, given.sensitive, names)
    return FrameRows(
        frame=frame.to_native(),
        features=tuple(used),
        sensitive=tuple(given.sensitive),
        label=given.label,
        key=reader.columns.key,
        labels=labels,
        estimator=reader.with_score_label(estimator, labels),
        locked=tuple(name for name in used if reader.is_locked(name, kinds)),
        files=table.files,
        n_rows=n_rows,
    )


def _in_memory(frame: Any) -> Any:
    lazy: Any = nw.from_native(frame)
    return lazy.collect(backend="pyarrow").to_native().to_pandas()


def _drop_incomplete(
    reader: TableReader, frame: Any, n_rows: int, known: Sequence[str]
) -> tuple[Any, int]:
    """Return the rows without missing values in the columns `known`, and their number."""
    is_missing = nw.any_horizontal(*(nw.col(name).is_null() for name in known), ignore_nulls=False)
    ones = nw.when(is_missing).then(nw.lit(1)).otherwise(nw.lit(0)).sum()
    n_dropped, names = int(frame.select(n=ones).collect()["n"][0] or 0), ", ".join(known)
    if n_dropped == n_rows:
        raise InputError(
            f"Every row has a missing value in {names}, so no row is left. Check these columns."
        )
    if n_dropped:
        reader.printer.note(f"{n_dropped:,} of {n_rows:,} rows were dropped: {names} is missing.")
    return frame.filter(~is_missing), n_rows - n_dropped


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


def _with_group_names(frame: Any, sensitive: Sequence[str], names: NameOptions) -> Any:
    """Return the frame with the groups under the names that the user gives them."""
    if not names.group_names:
        return frame
    from commod._data.groups import check_group_names

    known = {name: sorted(_values(frame, name), key=str) for name in sensitive}
    given: Any = names.groups(known)
    for column, renamed in ({sensitive[0]: given} if len(known) == 1 else given).items():
        check_group_names(renamed, set(known[column]))
        new = [str(renamed.get(value, value)) for value in known[column]]
        named = nw.col(column).replace_strict(
            known[column], new, default=None, return_dtype=nw.String
        )
        frame = frame.with_columns(named.alias(column))
    return frame
