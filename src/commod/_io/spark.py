"""Open Parquet files with Spark. The rows stay in Spark."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from commod._io.queries import quoted
from commod._io.sources import StoredTable, check_names, find_sources, hive_root, kind_of_type
from commod.exceptions import InputError

LOCAL = "local[*]"  # all cores of this machine
SETTINGS = {
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",  # "01" stays text
}


class SparkTable(StoredTable):
    """A table that Spark reads; closing it stops the session if `open_spark` has started it."""

    def plain_rows(self, columns: Sequence[str]) -> Any:
        """Return some columns in the types that `SourceTable.plain_rows` gives them."""
        wide = {"integer": "bigint", "number": "double", "text": "string"}
        chosen = []
        for name in columns:
            column = self.relation[quoted(name, "`")]
            kind = wide.get(self.kinds[name])
            chosen.append(column if kind is None else column.cast(kind).alias(name))
        return self.relation.select(*chosen)


def open_spark(paths: Sequence[str], master: str | None = None) -> SparkTable:
    """Return the table in Parquet files, read by Spark.

    Parameters
    ----------
    paths : sequence of str
        Files, folders or patterns on this machine, or addresses that Spark reads
        (hdfs://, s3a://).
    master : str, default=None
        Address of Spark: "local[2]", "spark://host:7077", "yarn", or "sc://host" (Spark Connect).
        None means all cores of this machine.

    Raises
    ------
    InputError
        The files cannot be used. The message says why, and how to correct it.
    """
    files = [name for path in paths for name in _spark_paths(os.fspath(path))]
    session, stop = _session(master or LOCAL)
    try:
        with _translated_errors():
            frame = session.read.parquet(*files)
            n_rows = int(frame.count())
        check_names(list(frame.columns), files[0])
        if not n_rows:
            raise InputError(f"{files[0]!r} has no rows; expected at least one row of data.")
    except BaseException:
        stop()
        raise
    kinds = {name: kind_of_type(dtype) for name, dtype in frame.dtypes}
    return SparkTable(frame, kinds, n_rows, tuple(files), stop)


def _spark_paths(path: str) -> list[str]:
    if "://" in path:
        return [path]
    sources = find_sources([path])
    if sources[0].is_text:
        raise InputError(
            f"--engine spark reads Parquet files, and {sources[0].name!r} is text. Pass --engine "
            "duckdb, which finds the types of text from all rows, or write the table as Parquet."
        )
    if hive_root([path], sources) is not None:  # Spark finds columns in the names of folders
        return [os.path.abspath(path)]
    return [str(source.path) for source in sources]


def _session(master: str) -> tuple[Any, Callable[[], None]]:
    """Return a session of Spark, and what stops it; a running session is used and stays."""
    try:
        sql = import_module("pyspark.sql")
    except ImportError as error:
        raise InputError(
            "--engine spark needs the package pyspark, which is not installed. Install it in the "
            "version of your cluster: pip install pyspark."
        ) from error
    running = sql.SparkSession.getActiveSession()
    if running is not None:
        return running, lambda: None
    builder = sql.SparkSession.builder.appName("commod")
    address = builder.remote if master.startswith("sc://") else builder.master
    try:
        session = address(master).config(map=SETTINGS).getOrCreate()
    except Exception as error:  # of Java, of the network, or of the address
        reason = " ".join(str(error).split())[:200]
        raise InputError(
            f"Spark does not start at {master} ({reason}). Check the address, and "
            "that Java is installed; or pass --engine duckdb."
        ) from error
    if hasattr(session, "_jsc"):  # the driver is this process: its log would fill the screen
        session.sparkContext.setLogLevel("ERROR")
    return session, session.stop


@contextmanager
def _translated_errors() -> Iterator[None]:
    from pyspark.errors import PySparkException

    try:
        yield
    except PySparkException as error:
        first = str(error).strip().partition("\n")[0][:300].rstrip(".")
        raise InputError(
            f"Spark cannot read the table ({first}). Check that the files are whole, and that "
            "every executor can read them."
        ) from error
