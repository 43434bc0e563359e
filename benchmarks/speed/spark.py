"""A session of Spark on this machine, where Spark and Java are installed."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

HAS_SPARK = bool(shutil.which("java")) and find_spec("pyspark") is not None


@contextmanager
def spark_session() -> Iterator[Any]:
    """Yield a Spark session on two threads of this machine, whose JVM has at most 2 GB."""
    from pyspark.sql import SparkSession

    settings = {
        "spark.driver.memory": "2g",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "localhost",
        "spark.sql.shuffle.partitions": "4",
    }
    session = SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    try:
        yield session
    finally:
        session.stop()
