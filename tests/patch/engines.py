"""Engines that apply a patch: each takes a patch and an arrow table and returns an arrow table.

The reference is plain Python (`patches.reference`). What runs here: pandas, polars, pyarrow, DuckDB
and Spark frames, SQL in DuckDB, Spark and PostgreSQL, and onnxruntime.
"""

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from patches import check_rows, check_scores, in_order, reference

from commod.patch import Patch

try:
    import onnxruntime
except ImportError:
    onnxruntime = None

ONNX_FRAMES = ("pandas", "polars", "pyarrow")


class Case:
    """A patch, a table, and what should become of it."""

    def __init__(self, content, table):
        self.content, self.table = content, table
        self.patch = Patch(content)
        self.expected = reference(content, table)


def in_pandas(patch, table, request):
    return pa.Table.from_pandas(patch.apply(table.to_pandas()))


def in_polars(patch, table, request):
    return patch.apply(pl.from_arrow(table)).to_arrow()


def in_lazy_polars(patch, table, request):
    return patch.apply(pl.from_arrow(table).lazy()).collect().to_arrow()


def in_pyarrow(patch, table, request):
    return patch.apply(table)


def in_duckdb(patch, table, request):
    with duckdb.connect() as connection:
        return patch.apply(connection.from_arrow(table)).to_arrow_table()


def in_duckdb_sql(patch, table, request):
    with duckdb.connect() as connection:
        connection.register("people", table)
        return connection.sql(patch.to_sql("duckdb", "people")).to_arrow_table()


def in_spark(patch, table, request):
    return patch.apply(_spark_frame(table, request)).toArrow()


def in_spark_sql(patch, table, request):
    _spark_frame(table, request).createOrReplaceTempView("people")
    session = request.getfixturevalue("spark")
    return session.sql(patch.to_sql("spark", "people")).toArrow()


def _spark_frame(table, request):
    """Read the table from Parquet: on the way through pandas NULL and NaN would become one."""
    session = request.getfixturevalue("spark")
    path = request.getfixturevalue("tmp_path") / "people.parquet"
    pq.write_table(table, path)
    return session.read.parquet(str(path))


POSTGRES_TYPES = {
    pa.float64(): "double precision",
    pa.int64(): "bigint",
    pa.string(): "text",
    pa.large_string(): "text",
    pa.bool_(): "boolean",
}


def in_postgres(patch, table, request):
    import psycopg

    with psycopg.connect(request.getfixturevalue("postgres")) as connection:
        quoted = [f.name.replace('"', '""') for f in table.schema]
        kinds = [POSTGRES_TYPES[kind] for kind in table.schema.types]
        fields = ", ".join(f'"{n}" {kind}' for n, kind in zip(quoted, kinds, strict=True))
        connection.execute(f"CREATE TEMP TABLE people ({fields}) ON COMMIT DROP")
        with connection.cursor().copy("COPY people FROM STDIN") as copy:
            for row in zip(*(column.to_pylist() for column in table.columns), strict=True):
                copy.write_row(row)
        cursor = connection.execute(patch.to_sql("postgres", "people"))
        names = [column.name for column in cursor.description]
        rows = cursor.fetchall()
    return pa.table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))


FRAMES = {
    "pandas": in_pandas,
    "polars": in_polars,
    "lazy polars": in_lazy_polars,
    "pyarrow": in_pyarrow,
    "DuckDB": in_duckdb,
    "Spark": in_spark,
    "SQL in DuckDB": in_duckdb_sql,
    "SQL in Spark": in_spark_sql,
    "SQL in PostgreSQL": in_postgres,
}
IN_MEMORY = ("pandas", "polars", "lazy polars", "pyarrow", "DuckDB", "SQL in DuckDB")
every_engine = pytest.mark.parametrize("engine", FRAMES)


def check_engine(case, engine, request):
    found = FRAMES[engine](case.patch, case.table, request)
    names = case.table.column_names
    assert found.column_names[: len(names)] == names
    assert len(found.column_names) == len(names) + 4
    assert found.num_rows == case.table.num_rows
    check_rows(case.content, case.expected, in_order(found))


def check_onnx(case, frame):
    """Compare what onnxruntime does to a frame with what was expected."""
    if onnxruntime is None:
        pytest.skip("onnxruntime is not installed")
    frames = {"pandas": case.table.to_pandas, "polars": lambda: pl.from_arrow(case.table)}
    inputs = case.patch.onnx_inputs(frames.get(frame, lambda: case.table)())
    session = onnxruntime.InferenceSession(case.patch.to_onnx().SerializeToString())
    score, decision, changed = session.run(None, inputs)
    labels = {1: case.content.labels.positive, 0: case.content.labels.negative, -1: None}
    assert [labels[d] for d in decision.tolist()] == case.expected.decision
    np.testing.assert_array_equal(changed, case.expected.changed)
    check_scores(case.content, case.expected, score)
