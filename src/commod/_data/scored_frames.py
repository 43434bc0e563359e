"""Let a base model score a table where it is, by batches, and keep the scores for several scans.

A fit reads the scores in several scans, so they are computed once and kept:

- Eager frames are in memory already: the scores become a column.
- DuckDB, polars, Arrow datasets and Parquet files: Arrow batches stream through the model. The
  scores and the columns that are needed go into a temporary Parquet file.
- Spark: workers score their partitions, and Spark keeps the result in its cache.

Arrow batches lose two things when they become pandas frames one by one. Whole numbers and booleans
change their type where a batch has a missing value, and each batch has its own categories.
`BatchTypes` holds what the whole table says about both.
"""

from __future__ import annotations

import errno
import os
import pickle
import re
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from glob import glob
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np

from commod._data.arrays import Floats
from commod._data.base_model import check_ready, model_columns, names_of_model, proba_of_model
from commod._data.frames import GLOB, hive_columns, is_spark, no_column, open_frame, parquet_pattern
from commod._data.tables import FreeNames
from commod._io.optional import import_optional
from commod._io.queries import quoted
from commod._text import shorten
from commod.exceptions import BaseModelError, InputError

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

BATCH_ROWS = 65_536  # that a model gets at a time
FIRST_ROWS = 1_000  # that are scored before all others: a model that cannot fails soon


@dataclass(frozen=True)
class ScoredFrame:
    """A frame with the scores of a base model.

    - `frame`: the columns that were asked for and the scores, in the engine of the original.
    - `column`: the name of the column of scores, which no other column has.
    - `first_rows`, `first_scores`: some rows as the model sees them, and their scores.
    """

    frame: Any
    column: str
    n_rows: int
    first_rows: Any
    first_scores: Floats


@contextmanager
def with_scores(
    frame: Any, model: Any, columns: Sequence[str] | None = None, *, keep: Sequence[str] = ()
) -> Iterator[ScoredFrame]:
    """Score a frame with a model, by batches; what is stored for it is removed at the end.

    Parameters
    ----------
    frame : any frame or path that `ControlledDebiaser.fit_frame` reads
    model : fitted classifier
    columns : sequence of str, default=None
        The columns that the model reads, in its order. None: those that it was fitted on.
    keep : sequence of str, default=()
        Columns to have beside the scores; all columns if empty.

    Yields
    ------
    ScoredFrame

    Examples
    --------
    >>> import duckdb
    >>> from sklearn.dummy import DummyClassifier
    >>> model = DummyClassifier().fit([[0], [0], [0], [0]], [0, 1, 1, 1])
    >>> people = duckdb.sql("SELECT i AS id, i % 5 AS grade FROM range(1000) AS t(i)")
    >>> with with_scores(people, model, ["grade"], keep=["id"]) as scored:
    ...     scored.frame.filter("id = 3").fetchall()
    [(3, 0.75)]
    """
    import_optional("pyarrow", "parquet", "Scoring a frame by batches")
    check_ready(model)
    lazy = open_frame(frame)
    schema = lazy.collect_schema()
    columns = list(names_of_model(model) if columns is None else columns)
    kept = list(dict.fromkeys(keep or schema))
    for parameter, names in (("estimator", columns), ("keep", kept)):
        for name in names:
            if name not in schema:
                raise no_column(parameter, name, schema)
    if not columns:
        raise InputError(
            f"The base model {type(model).__name__} does not know the names of its columns. Name "
            "them, in its order.",
            parameter="columns",
        )
    job = ScoringJob(frame, lazy, model, columns, kept, FreeNames(schema).take("commod_base_score"))
    eager = nw.from_native(frame, pass_through=True)
    engine = lazy.implementation
    if isinstance(eager, nw.DataFrame):
        yield job.in_memory(eager)
    elif is_spark(lazy):
        with _in_spark(job) as scored:
            yield scored
    elif engine.is_duckdb() or engine.is_polars():
        with _in_a_file(job) as scored:
            yield scored
    else:
        raise InputError(
            f"A base model scores frames of DuckDB, polars and Spark, Arrow datasets and Parquet "
            f"files; got {engine.value}. Write the scores into a column, and pass "
            "ScoreColumn('its name').",
            parameter="frame",
        )


@dataclass(frozen=True)
class ScoringJob:
    """A frame, the model that scores it, its columns, the columns to keep, and a free name."""

    original: Any
    lazy: nw.LazyFrame[Any]
    model: Any
    columns: list[str]
    kept: list[str]
    name: str

    @property
    def needed(self) -> list[str]:
        """Return all columns that are read."""
        return list(dict.fromkeys([*self.columns, *self.kept]))

    @cached_property
    def dataset(self) -> Any:
        """Return the Arrow dataset of the rows: it keeps types that engines lose. None without."""
        if hasattr(self.original, "scanner"):
            return self.original
        if not isinstance(self.original, str | os.PathLike):
            return None
        path = parquet_pattern(str(self.original))
        is_pattern = any(mark in path for mark in GLOB)
        files = sorted(glob(path, recursive=True)) if is_pattern else [path]
        if not files:  # a pattern of a remote store is read by the engine
            return None
        arrow, dataset = import_module("pyarrow"), import_module("pyarrow.dataset")
        folders = arrow.schema([(name, arrow.string()) for name in hive_columns(files)])
        return dataset.dataset(files, partitioning=dataset.partitioning(folders, flavor="hive"))

    def head(self, columns: Sequence[str]) -> pa.Table:
        """Return the first rows."""
        if self.dataset is not None:
            return self.dataset.head(FIRST_ROWS, columns=list(columns))
        return self.lazy.select(*columns).head(FIRST_ROWS).collect(backend="pyarrow").to_native()

    def tables(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Yield all rows, BATCH_ROWS at a time."""
        if self.dataset is not None:
            scanner = self.dataset.scanner(columns=list(columns), batch_size=BATCH_ROWS)
            return regrouped(scanner.to_batches(), BATCH_ROWS)
        return regrouped(_batches(self.lazy.select(*columns)), BATCH_ROWS)

    def survey(self) -> tuple[int, frozenset[str]]:
        """Return the number of rows, and the columns of `BatchTypes.incomplete`; one scan."""
        schema = self.lazy.collect_schema()
        changing = [c for c in self.columns if schema[c].is_integer() or schema[c] == nw.Boolean]
        counts = [nw.len().alias("n")]
        counts += [nw.col(c).count().alias(f"known{i}") for i, c in enumerate(changing)]
        n_rows, *known = self.lazy.select(*counts).collect(backend="pyarrow").row(0)
        is_incomplete = zip(changing, known, strict=True)
        return int(n_rows), frozenset(c for c, n in is_incomplete if n < n_rows)

    def in_memory(self, frame: nw.DataFrame[Any]) -> ScoredFrame:
        """Return a frame that is in memory with a column of scores."""
        read, kept = frame.select(self.columns), frame.select(self.kept)
        is_pandas = frame.implementation.is_pandas()  # a model gets its rows as they are
        table = None if is_pandas else read.to_arrow()
        types = BatchTypes()
        if table is not None:
            types = BatchTypes(self.survey()[1], dictionary_values([table]))

        def rows_from(start: int, n_rows: int) -> Any:
            if table is None:
                return read[start : start + n_rows].to_native()
            return pandas_rows(table.slice(start, n_rows), types)

        starts = range(0, len(frame), BATCH_ROWS)
        parts = [score_rows(self.model, rows_from(start, BATCH_ROWS), start) for start in starts]
        scores = np.concatenate([np.zeros(0), *parts])
        if table is None:
            scored = kept.to_native().assign(**{self.name: scores})
        else:
            column = nw.new_series(self.name, scores, nw.Float64, backend=frame.implementation)
            scored = kept.with_columns(column).to_native()
        first_rows = rows_from(0, FIRST_ROWS)
        return ScoredFrame(scored, self.name, len(frame), first_rows, scores[:FIRST_ROWS])


# ---------------------------------------------------------------------------------------------
# DuckDB, polars, Arrow datasets and Parquet files


@contextmanager
def _in_a_file(job: ScoringJob) -> Iterator[ScoredFrame]:
    """Yield a frame whose scores are in a temporary file, which is removed at the end."""
    _check_file_access(job.lazy)
    n_rows, incomplete = job.survey()
    head = job.head(job.needed)
    coded = dictionary_columns(head.select(job.columns).schema)
    categories = dictionary_values(job.tables(coded)) if coded else {}
    types = BatchTypes(incomplete, categories)
    first_rows = pandas_rows(head.select(job.columns), types)
    first_scores = score_rows(job.model, first_rows, 0)  # a model that cannot score fails at once
    with tempfile.TemporaryDirectory(prefix="commod-scores-", ignore_cleanup_errors=True) as folder:
        _check_disk(folder, head.select(job.kept), n_rows)
        path = str(Path(folder) / "scores.parquet")
        _write_scores(job, types, path, head)
        frame = _open_scores(job.lazy, path)
        yield ScoredFrame(frame, job.name, n_rows, first_rows, first_scores)


def _write_scores(job: ScoringJob, types: BatchTypes, path: str, head: pa.Table) -> None:
    arrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")

    def kept_with(table: pa.Table, scores: Floats) -> pa.Table:
        kept = table.select(job.kept)
        for name in dictionary_columns(kept.schema):  # each batch has its own dictionary
            position = kept.schema.get_field_index(name)
            values = kept.column(position).cast(kept.schema.field(name).type.value_type)
            kept = kept.set_column(position, name, values)
        return kept.append_column(job.name, arrow.array(scores, arrow.float64()))

    schema = kept_with(head.slice(0, 0), np.zeros(0)).schema.remove_metadata()
    coded = [column.name for column in schema if not arrow.types.is_floating(column.type)]
    first = 0
    try:
        with parquet.ParquetWriter(path, schema, compression="lz4", use_dictionary=coded) as writer:
            for table in job.tables(job.needed):
                scores = score_rows(job.model, pandas_rows(table.select(job.columns), types), first)
                writer.write_table(kept_with(table, scores).cast(schema))
                first += len(table)
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        raise _full_disk(str(Path(path).parent), "more than is free") from error


def _check_file_access(lazy: nw.LazyFrame[Any]) -> None:
    """Refuse a database that may not read files: no rows of it are written into one."""
    if not lazy.implementation.is_duckdb():
        return
    setting = "SELECT current_setting('enable_external_access')"
    ((is_allowed,),) = lazy.to_native().query("commod_frame", setting).fetchall()
    if not is_allowed:
        raise InputError(
            "The scores of a model are kept in a temporary file, but the settings of this DuckDB "
            "database forbid files (enable_external_access=false). Write the scores into a column, "
            "and pass ScoreColumn('its name').",
            parameter="frame",
        )


def _check_disk(folder: str, head: pa.Table, n_rows: int) -> None:
    """Refuse a table whose scores and columns do not fit on the disk, before it is scored."""
    needed = n_rows * (head.nbytes / max(len(head), 1) + 8)
    if needed > shutil.disk_usage(folder).free:
        raise _full_disk(folder, f"up to {_size(needed)}")


def _full_disk(folder: str, needed: str) -> InputError:
    free = _size(shutil.disk_usage(folder).free)
    return InputError(
        f"The scores and columns of the frame need {needed} in {str(Path(folder).parent)!r}, where "
        f"{free} are free. Set the environment variable TMPDIR to a folder on a larger disk, name "
        "fewer features, or pass ScoreColumn('name') where the frame has the scores.",
        parameter="frame",
    )


def _size(n_bytes: float) -> str:
    for unit in ("bytes", "kB", "MB", "GB"):
        if n_bytes < 1000:
            break
        n_bytes, unit = n_bytes / 1000, "TB"
    return f"{n_bytes:.3g} {unit}"


def _open_scores(lazy: nw.LazyFrame[Any], path: str) -> Any:
    """Return the file as a frame of the engine that the original is in."""
    if lazy.implementation.is_polars():
        return import_module("polars").scan_parquet(path)
    query = "SELECT * FROM read_parquet(" + quoted(path, "'") + ")"
    return lazy.to_native().query("commod_frame", query)  # a query runs in its own database


def _batches(lazy: nw.LazyFrame[Any]) -> Iterator[pa.RecordBatch]:
    """Yield all rows of a frame of DuckDB or polars, about BATCH_ROWS at a time."""
    native: Any = lazy.to_native()
    if lazy.implementation.is_duckdb():
        read = getattr(native, "to_arrow_reader", None) or native.fetch_record_batch
        yield from read(BATCH_ROWS)
    elif hasattr(native, "collect_batches"):
        for frame in native.collect_batches(chunk_size=BATCH_ROWS, maintain_order=True):
            yield from frame.to_arrow().to_batches()
    else:  # before Polars 1.34, all rows of the selected columns are in memory at once
        yield from native.collect().to_arrow().to_batches(BATCH_ROWS)


# ---------------------------------------------------------------------------------------------
# Spark


@contextmanager
def _in_spark(job: ScoringJob) -> Iterator[ScoredFrame]:
    """Yield a frame that Spark has scored and keeps in its cache until the end."""
    types = import_module("pyspark.sql.types")
    _, incomplete = job.survey()
    batch_types = BatchTypes(incomplete)
    first_rows = pandas_rows(job.head(job.columns), batch_types)
    first_scores = score_rows(job.model, first_rows, 0)  # a model that cannot score fails at once
    frame: Any = job.lazy.select(*job.needed).to_native()
    schema = types.StructType([*(frame.schema[name] for name in job.kept)])
    schema.add(job.name, types.DoubleType())
    score = _partition_scorer(_pickled(job.model), job.columns, job.kept, job.name, batch_types)
    with warnings.catch_warnings():  # about versions of pandas, though batches are Arrow's
        warnings.filterwarnings("ignore", "PySpark does not yet", FutureWarning)
        scored = frame.mapInArrow(score, schema).persist()
    try:
        yield ScoredFrame(scored, job.name, _count_scored(scored), first_rows, first_scores)
    finally:
        scored.unpersist()


def _pickled(model: Any) -> bytes:
    try:
        return bytes(import_module("pyspark.cloudpickle").dumps(model))
    except Exception as error:  # a model may refuse with any error
        raise BaseModelError(
            f"The base model {type(model).__name__} cannot be sent to Spark workers "
            f"({type(error).__name__}: {shorten(str(error), 200)}). Write its scores into a "
            "column, and pass ScoreColumn('its name').",
            parameter="estimator",
        ) from error


def _count_scored(scored: Any) -> int:
    """Return the number of rows; the error of a worker comes without its stack."""
    try:
        return int(scored.count())
    except Exception as error:
        text = str(error)
        if found := re.search(r"BaseModelError: (.+)", text):
            raise BaseModelError(found[1].strip(), parameter="estimator") from error
        if found := re.search(r"No module named '([^'.]+)", text):
            raise BaseModelError(_worker_text(found[1]), parameter="estimator") from error
        raise


def _partition_scorer(
    payload: bytes, columns: Sequence[str], kept: Sequence[str], name: str, types: BatchTypes
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return the function that a Spark worker calls with the batches of a partition.

    It yields the `kept` columns and the scores under `name`. `payload` is the pickled model.
    """

    def score(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        arrow = import_module("pyarrow")
        try:
            model = pickle.loads(payload)
        except ImportError as error:
            package = (error.name or str(error)).partition(".")[0]
            raise BaseModelError(_worker_text(package), parameter="estimator") from error
        first = 0
        context = import_module("pyspark").TaskContext.get()
        number = None if context is None else context.partitionId()
        place = "a partition" if number is None else f"Spark partition {number}"
        for batch in batches:
            rows = pandas_rows(arrow.Table.from_batches([batch.select(list(columns))]), types)
            scores = arrow.array(score_rows(model, rows, first, place), arrow.float64())
            arrays = [batch.column(column) for column in kept]
            yield arrow.RecordBatch.from_arrays([*arrays, scores], [*kept, name])
            first += len(batch)

    return score


def _worker_text(package: str) -> str:
    """Return what to do where a Spark worker lacks a package."""
    return (
        f"A Spark worker cannot import {package!r}, which scoring with the base model needs. "
        "Install it on the workers in the version that is installed here (see spark.archives), or "
        "write the scores into a column and pass ScoreColumn('its name')."
    )


# ---------------------------------------------------------------------------------------------
# Batches: a model sees each of them in the types of the whole table


@dataclass(frozen=True)
class BatchTypes:
    """What one batch does not show about its columns.

    - `incomplete`: columns of whole numbers or booleans with a missing value in some row. In
      memory, pandas holds them as float64 or as objects.
    - `categories`: for each column of categories, the values of all batches.
    """

    incomplete: frozenset[str] = frozenset()
    categories: Mapping[str, Sequence[Any]] = field(default_factory=dict)


def regrouped(batches: Iterable[pa.RecordBatch], n_rows: int) -> Iterator[pa.Table]:
    """Yield the rows of Arrow batches as tables of `n_rows` rows; the last one has the remainder.

    Batches of single rows would make a model slow, and empty ones would make it fail.

    Examples
    --------
    >>> import pyarrow as pa
    >>> batches = [pa.record_batch({"a": [i] * i}) for i in (0, 1, 4)]
    >>> [table["a"].to_pylist() for table in regrouped(batches, 2)]
    [[1, 4], [4, 4], [4]]
    """
    arrow = import_module("pyarrow")
    waiting: list[pa.RecordBatch] = []
    n_waiting = 0
    for batch in batches:
        waiting += [batch] if len(batch) else []
        n_waiting += len(batch)
        while n_waiting >= n_rows:
            table = arrow.Table.from_batches(waiting)
            yield table.slice(0, n_rows)
            waiting = [part for part in table.slice(n_rows).to_batches() if len(part)]
            n_waiting -= n_rows
    if n_waiting:
        yield arrow.Table.from_batches(waiting)


def dictionary_values(tables: Iterable[pa.Table]) -> dict[str, list[Any]]:
    """Return the categories of dictionary columns over all batches, by first appearance."""
    values: dict[str, dict[Any, None]] = {}
    for table in tables:
        for name in dictionary_columns(table.schema):
            known = values.setdefault(name, {})
            for chunk in table[name].chunks:
                known.update(dict.fromkeys(chunk.dictionary.to_pylist()))
    return {name: list(known) for name, known in values.items()}


def dictionary_columns(schema: pa.Schema) -> list[str]:
    """Return the columns of categories."""
    types = import_module("pyarrow").types
    return [column.name for column in schema if types.is_dictionary(column.type)]


def pandas_rows(table: pa.Table, types: BatchTypes) -> pd.DataFrame:
    """Return a batch as a pandas frame, in the types that the whole table has in memory.

    Decimal numbers become floats.

    Examples
    --------
    >>> import pyarrow as pa
    >>> batch = pa.table({"n": [1, 2], "is_new": [True, False]})
    >>> pandas_rows(batch, BatchTypes(frozenset({"n", "is_new"}))).dtypes.astype(str).tolist()
    ['float64', 'object']
    """
    arrow = import_module("pyarrow")
    for position, column in enumerate(table.schema):
        if arrow.types.is_decimal(column.type):
            numbers = table.column(position).cast(arrow.float64())
            table = table.set_column(position, column.name, numbers)
        elif arrow.types.is_dictionary(column.type):
            table = table.set_column(position, column.name, _signed_codes(table.column(position)))
    rows: pd.DataFrame = table.to_pandas()
    for name in types.incomplete.intersection(rows.columns):
        dtype = rows[name].dtype
        if isinstance(dtype, np.dtype) and dtype.kind in "biu":  # types of pandas keep theirs
            rows[name] = rows[name].astype(object if dtype.kind == "b" else "float64")
    for name in dictionary_columns(table.schema):
        if name in types.categories:
            rows[name] = rows[name].cat.set_categories(list(types.categories[name]))
    return rows


def _signed_codes(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a dictionary column with signed codes: PyArrow 17 makes pandas of no others."""
    arrow = import_module("pyarrow")
    kind = column.type
    if not arrow.types.is_unsigned_integer(kind.index_type):
        return column
    chunks = [
        arrow.DictionaryArray.from_arrays(
            chunk.indices.cast(arrow.int64()), chunk.dictionary, ordered=kind.ordered
        )
        for chunk in column.chunks
    ]
    signed = arrow.dictionary(arrow.int64(), kind.value_type, ordered=kind.ordered)
    return arrow.chunked_array(chunks, type=signed)


def score_rows(model: Any, rows: Any, first: int, place: str = "the frame") -> Floats:
    """Return the checked scores of a batch, shape (n,).

    An error names its rows; the batch begins with row `first`, counted from 0, of the `place`.
    """
    n_rows = len(rows)
    if not n_rows:
        return np.zeros(0)
    where = f"rows {first + 1:,} to {first + n_rows:,} of {place}"
    try:
        return proba_of_model(model, model_columns(model, rows), n_rows)[:, 1]
    except BaseModelError as error:
        raise BaseModelError(f"In {where}: {error}", parameter="estimator") from error
    except Exception as error:  # a model may raise anything
        reason = shorten(" ".join(str(error).split()), 300) or "no reason given"
        raise BaseModelError(
            f"The base model {type(model).__name__} failed on {where} ({type(error).__name__}: "
            f"{reason}). It gets the columns as a pandas frame. Correct these rows, or the model.",
            parameter="estimator",
        ) from error
