"""The Spark job of docs/more-than-one-machine.md runs, and its report is verified."""

import contextlib
import io
import runpy
import sys

import duckdb
import pytest
from benchmarks.cluster import job_of_page, read_events

from commod import Patch, verify_report

N_ROWS = 50_000
LOANS = f"""
    SELECT id, region, income, debt, branch, (id * 48271) % 65537 / 65537 < score AS y, score
    FROM (
        SELECT *, 1 / (1 + exp(0.6 - income + 0.5 * debt - 0.9 * (region = 'east')::INT)) AS score
        FROM (
            SELECT i AS id, CASE WHEN i % 5 < 2 THEN 'west' ELSE 'east' END AS region,
                   (i * 7919) % 1009 / 500 - 1 + 0.8 * (region = 'east')::INT AS income,
                   (i * 104729) % 1013 / 500 - 1 AS debt,
                   CASE WHEN (i * 31) % 7 < 3 THEN 'a' ELSE 'b' END AS branch
            FROM range({N_ROWS}) AS numbers(i)))
"""


@pytest.fixture(scope="module")
def finished(spark, tmp_path_factory):
    """The folder of the finished job, what it printed, and the rows that each query fetched.

    It runs in the session of the tests, where no Python may be started for the rows.
    `python -m benchmarks.cluster` submits it to a cluster.
    """
    from pyspark.sql.classic.dataframe import DataFrame

    folder, printed, fetched = tmp_path_factory.mktemp("cluster"), io.StringIO(), []
    loans = f"SELECT * REPLACE (y::INT AS y) FROM ({LOANS})"
    duckdb.sql(loans).write_parquet(str(folder / "loans.parquet"))
    job = folder / "job.py"
    job.write_text(job_of_page())

    def counting(fetch):
        def counted(frame, *args, **kwargs):
            result = fetch(frame, *args, **kwargs)
            fetched.append(len(result))
            return result

        return counted

    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(printed):
        patch.setattr(type(spark), "stop", lambda session: None)
        patch.setattr(spark.sparkContext, "pythonExec", "no-python-on-executors")
        patch.setattr(sys, "argv", [str(job), str(folder / "loans.parquet"), str(folder / "out")])
        for name in ("collect", "toPandas", "toArrow"):
            patch.setattr(DataFrame, name, counting(getattr(DataFrame, name)))
        runpy.run_path(str(job), run_name="__main__")
    return folder, printed.getvalue(), fetched


def test_the_report_of_the_job_belongs_to_its_patch(finished):
    folder, printed, _ = finished
    assert verify_report(folder / "out" / "patch.json", folder / "out" / "report.html").passed
    assert "Expected on new people: " in printed


def test_spark_decides_as_the_patch_does_elsewhere(finished):
    folder, *_ = finished
    patch = Patch.load(folder / "out" / "patch.json")
    known = patch.apply(duckdb.read_parquet(str(folder / "loans.parquet")), score="score")
    decided = duckdb.read_parquet(str(folder / "out" / "decided" / "*.parquet"))
    pairs = known.set_alias("a").join(decided.set_alias("b"), "a.id = b.id")
    query = "count(*), sum((a.commod_decision = b.commod_decision)::INT), sum(a.commod_changed)"
    ((n, n_equal, n_changed),) = pairs.aggregate(query).fetchall()
    assert n == n_equal == N_ROWS
    assert 0 < n_changed < N_ROWS / 2


def test_the_rows_come_once_and_all_others_are_counts(finished):
    fetched = sorted(finished[-1])
    assert fetched[-1] == N_ROWS  # a small table comes whole
    assert fetched[-2] < N_ROWS / 10


def test_costs_are_sums_over_the_tasks_of_a_log():
    task = {
        "Input Metrics": {"Records Read": 10, "Bytes Read": 80},
        "Shuffle Write Metrics": {"Shuffle Bytes Written": 5},
        "Result Size": 3,
        "Executor CPU Time": 7,
    }
    ended = {"Event": "SparkListenerTaskEnd", "Task Metrics": task}
    other = {"Event": "SparkListenerStageCompleted"}
    failed = {"Event": "SparkListenerTaskEnd"}
    assert read_events([{"Event": "SparkListenerJobStart"}, ended, other, ended, failed]) == {
        "jobs": 1,
        "rows_read": 20,
        "bytes_read": 160,
        "shuffled": 10,
        "results": 6,
        "cpu": 14,
    }
