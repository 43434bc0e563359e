"""Run the Spark job of docs/more-than-one-machine.md, and print what it costs.

`python -m benchmarks.cluster 10000000` makes that many loans, submits the job to
`local-cluster[2,1,2048]`, and checks the report. It prints scans, shuffled bytes, the rows that
come back from each query, and the peak memory of the driver.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "more-than-one-machine.md"
MASTER = "local-cluster[2,1,2048]"  # two executors with one core and 2 GB each
DRIVER_MEMORY = "1g"
PYTHON_BLOCK = "```python\n"

# The job in a process that counts: the rows of each query that come back, and memory at the end.
COUNTED_JOB = """
import json, runpy, sys, time
from pathlib import Path
from pyspark.sql.classic.dataframe import DataFrame

counted = []

def counting(name):
    original = getattr(DataFrame, name)
    def fetch(frame, *args, **kwargs):
        start = time.perf_counter()
        result = original(frame, *args, **kwargs)
        counted.append({"by": name, "rows": len(result), "seconds": time.perf_counter() - start})
        return result
    setattr(DataFrame, name, fetch)

for name in ("collect", "toPandas", "toArrow"):
    counting(name)

def held(process):
    status = Path(f"/proc/{process}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) * 1024

from pyspark import SparkContext
stop = SparkContext.stop

def measured_stop(context):
    jvm = context._jvm.java.lang.ProcessHandle.current().pid()
    figures = {"queries": counted, "jvm": held(jvm), "python": held("self")}
    Path(answer).write_text(json.dumps(figures))
    stop(context)

SparkContext.stop = measured_stop
_, job, answer, *arguments = sys.argv
sys.argv = [job, *arguments]
runpy.run_path(job, run_name="__main__")
"""


def job_of_page() -> str:
    """Return the script of the page."""
    return PAGE.read_text().split(PYTHON_BLOCK, 1)[1].split("```", 1)[0]


def submit(job: Path, *arguments: str, settings: Iterable[tuple[str, str]] = ()) -> str:
    """Run a script with `spark-submit` on a cluster of two executors, and return its output."""
    found = find_spec("pyspark")
    if found is None or found.origin is None:
        raise SystemExit("The job needs Spark: pip install pyspark")
    home = Path(found.origin).parent
    command = [str(home / "bin" / "spark-submit"), "--master", MASTER]
    command += ["--driver-memory", DRIVER_MEMORY]
    quiet = [("spark.ui.enabled", "false"), ("spark.ui.showConsoleProgress", "false")]
    local = [("spark.driver.host", "localhost"), ("spark.driver.bindAddress", "127.0.0.1")]
    for name, value in (*quiet, *local, *settings):
        command += ["--conf", f"{name}={value}"]
    # Workers start executors from this folder. The page says that executors need no Python.
    variables = {"SPARK_HOME": str(home), "PYSPARK_DRIVER_PYTHON": sys.executable}
    variables["PYSPARK_PYTHON"] = "no-python-on-executors"
    done = subprocess.run(
        [*command, str(job), *arguments],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        cwd=job.parent,  # workers write their logs into the folder they start in
    )
    if done.returncode:
        raise RuntimeError(f"spark-submit ended with {done.returncode}:\n{done.stderr[-4000:]}")
    return done.stdout


def measure_job(
    loans: Path, folder: Path, settings: Iterable[tuple[str, str]] = ()
) -> dict[str, Any]:
    """Return what the job of the page costs on a table; its files are in `folder` / "out"."""
    job, counted, answer = (folder / name for name in ("job.py", "counted.py", "answer.json"))
    job.write_text(job_of_page())
    counted.write_text(COUNTED_JOB)
    log = folder / "log"
    log.mkdir()
    settings = [
        *settings,
        ("spark.eventLog.enabled", "true"),
        ("spark.eventLog.dir", log.as_uri()),
        ("spark.eventLog.compress", "false"),
        ("spark.sql.shuffle.partitions", "4"),
    ]
    start = time.perf_counter()
    arguments = (str(job), str(answer), str(loans), str(folder / "out"))
    output = submit(counted, *arguments, settings=settings)
    seconds = time.perf_counter() - start
    return {
        **json.loads(answer.read_text()),
        **read_events(_events(log)),
        "seconds": seconds,
        "output": output,
    }


def _events(log: Path) -> Iterator[dict[str, Any]]:
    for path in sorted(log.rglob("*")):
        if path.is_file() and not path.name.startswith((".", "appstatus")):
            yield from map(json.loads, path.read_text().splitlines())


def read_events(events: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Return jobs, rows and bytes read, bytes shuffled and returned, and nanoseconds of CPU."""
    sums = dict.fromkeys(("jobs", "rows_read", "bytes_read", "shuffled", "results", "cpu"), 0)
    for event in events:
        sums["jobs"] += event["Event"] == "SparkListenerJobStart"
        metrics = event.get("Task Metrics") if event["Event"] == "SparkListenerTaskEnd" else None
        if metrics:
            sums["rows_read"] += metrics["Input Metrics"]["Records Read"]
            sums["bytes_read"] += metrics["Input Metrics"]["Bytes Read"]
            sums["shuffled"] += metrics["Shuffle Write Metrics"]["Shuffle Bytes Written"]
            sums["results"] += metrics["Result Size"]
            sums["cpu"] += metrics["Executor CPU Time"]
    return sums


def main(n: int) -> None:
    """Make `n` loans, run the job, verify its report and print its costs."""
    from benchmarks.speed.lake import loans

    with tempfile.TemporaryDirectory(prefix="commod-cluster-") as name:
        folder = Path(name)
        loans(folder / "loans.parquet", n)
        figures = measure_job(folder / "loans.parquet", folder)
        pair = (str(folder / "out" / "patch.json"), str(folder / "out" / "report.html"))
        commod = str(Path(sys.executable).with_name("commod"))
        verified = subprocess.run([commod, "verify", *pair], capture_output=True, text=True)
    print(figures.pop("output"))
    queries = figures.pop("queries")
    for query in queries:
        print(f"{query['by']}: {query['rows']:,} rows in {query['seconds']:.1f} s")
    print(f"rows: {n:,}; seconds of the whole job: {figures['seconds']:.0f}")
    print(f"queries that fetch: {len(queries)}, most rows: {max(q['rows'] for q in queries):,}")
    print(f"Spark jobs: {figures['jobs']}, rows read / rows: {figures['rows_read'] / n:.2f}")
    print(
        f"GB read: {figures['bytes_read'] / 1e9:.3f}, MB shuffled: {figures['shuffled'] / 1e6:.2f}"
    )
    print(f"MB of results: {figures['results'] / 1e6:.2f}")
    print(f"seconds of CPU on executors: {figures['cpu'] / 1e9:.1f}")
    print(f"driver, peak GB: JVM {figures['jvm'] / 1e9:.2f}, Python {figures['python'] / 1e9:.2f}")
    print(f"commod verify: {verified.returncode} {verified.stdout.strip()}")
    sys.exit(verified.returncode)


if __name__ == "__main__":
    main(int(sys.argv[1]))
