"""Score a large table by batches; a model sees each batch in the types of the whole table.

Arrow batches lose two things when they become pandas frames one by one. Whole numbers and booleans
change their type where a batch has a missing value, and each batch has its own categories.
`BatchTypes` holds what the whole table says about both.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from commod._data.arrays import Floats
from commod._data.base_model import model_columns, proba_of_model
from commod._text import shorten
from commod.exceptions import BaseModelError

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


@dataclass(frozen=True)
class BatchTypes:
    """What one batch does not show about its columns.

    - `incomplete`: columns of whole numbers or booleans with a missing value in some row. In
      memory, pandas holds them as float64 or as objects.
    - `categories`: for each column of categories, the values of all batches.
    """

    incomplete: frozenset[str] = frozenset()
    categories: Mapping[str, Sequence[Any]] = field(default_factory=dict)


class FunctionModel:
    """A function from a frame to scores, of shape (n,) or (n, 2), as a base model."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self.function = function

    def predict_proba(self, X: Any) -> Any:
        """Return what the function gives."""
        return self.function(X)


def is_function(model: Any) -> bool:
    """Return whether a model is a function instead of a classifier."""
    is_classifier = hasattr(model, "predict_proba") or hasattr(model, "decision_function")
    return callable(model) and not is_classifier and not isinstance(model, type)


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


def types_of_table(table: pa.Table) -> BatchTypes:
    """Return the types of a table that is in memory."""
    types = import_module("pyarrow").types
    incomplete = [
        column.name
        for column in table.schema
        if types.is_integer(column.type) or types.is_boolean(column.type)
        if table[column.name].null_count
    ]
    return BatchTypes(frozenset(incomplete), dictionary_values([table]))


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
            f"The base model {model_name(model)} failed on {where} ({type(error).__name__}: "
            f"{reason}). It gets the columns as a pandas frame. Correct these rows, or the model.",
            parameter="estimator",
        ) from error


def model_name(model: Any) -> str:
    """Return the name of a model for sentences."""
    if isinstance(model, FunctionModel):
        return str(getattr(model.function, "__name__", type(model.function).__name__))
    return type(model).__name__


# ---------------------------------------------------------------------------------------------
# Spark


def partition_scorer(
    payload: bytes, columns: Sequence[str], kept: Sequence[str], name: str, types: BatchTypes
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return the function that a Spark worker calls with the batches of a partition.

    It yields the `kept` columns and the scores under `name`. `payload` is the pickled model.
    """

    def score(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        arrow = import_module("pyarrow")
        model, first = _load_on_worker(payload), 0
        place = _partition_name()
        for batch in batches:
            rows = pandas_rows(arrow.Table.from_batches([batch.select(list(columns))]), types)
            scores = arrow.array(score_rows(model, rows, first, place), arrow.float64())
            arrays = [batch.column(column) for column in kept]
            yield arrow.RecordBatch.from_arrays([*arrays, scores], [*kept, name])
            first += len(batch)

    return score


def _load_on_worker(payload: bytes) -> Any:
    try:
        return pickle.loads(payload)
    except ImportError as error:
        package = (error.name or str(error)).partition(".")[0]
        raise BaseModelError(worker_text(package), parameter="estimator") from error


def worker_text(package: str) -> str:
    """Return what to do where a Spark worker lacks a package."""
    return (
        f"A Spark worker cannot import {package!r}, which scoring with the base model needs. "
        "Install it on the workers in the version that is installed here (see spark.archives), or "
        "write the scores into a column and pass ScoreColumn('its name')."
    )


def _partition_name() -> str:
    context = import_module("pyspark").TaskContext.get()
    return "a partition" if context is None else f"Spark partition {context.partitionId()}"
