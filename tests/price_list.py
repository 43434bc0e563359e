"""What tests cost: CPU seconds of a process and of the programs that it started.

Every run ends with the dearest files. `PRICES=tests/prices.csv make test` stores the price of each
file, and of each test that is slow: `make test-fast` leaves those out.
"""

import csv
import os
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

PRICES = Path(__file__).parent / "prices.csv"
N_SHOWN = 20
SLOW = 0.1  # CPU seconds of a test, its fixtures included, from which on it is slow


def cpu_seconds():
    """Return the CPU seconds of this process and of its ended children."""
    return sum(os.times()[:4])


def file_of(test):
    """Return the file of a test."""
    return test.partition("::")[0]


@cache
def stored_prices():
    """Return the CPU seconds of each file and of each slow test, as a run stored them."""
    with PRICES.open(encoding="utf-8", newline="") as lines:
        return {line["test"]: float(line["seconds"]) for line in csv.DictReader(lines)}


class PriceList:
    """Measure each test in its process, and add the prices up where the reports arrive."""

    def __init__(self):
        self.seconds, self.n_tests = Counter(), Counter()
        self.last = cpu_seconds()

    def pytest_collection_finish(self):
        """Begin to measure: no test pays for what all of them import."""
        self.last = cpu_seconds()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self):
        """Write the seconds since the last phase of a test on its report, which travels."""
        report = yield
        now = cpu_seconds()
        report.cpu_seconds, self.last = now - self.last, now
        return report

    def pytest_runtest_logreport(self, report):
        """Add a report of any process to its test and to its file."""
        for name in {file_of(report.nodeid), report.nodeid}:
            self.seconds[name] += getattr(report, "cpu_seconds", 0.0)
            self.n_tests[name] += report.when == "call"

    def pytest_terminal_summary(self, terminalreporter):
        """Print the dearest files, and store the list where that is asked for."""
        files = Counter({name: s for name, s in self.seconds.items() if "::" not in name})
        n_tests = sum(self.n_tests[file] for file in files)
        title = f"{files.total():.0f} CPU seconds in {n_tests} tests; the dearest files"
        terminalreporter.section(title)
        for file, seconds in files.most_common(N_SHOWN):
            terminalreporter.write_line(f"{seconds:7.1f} s  {self.n_tests[file]:4} tests  {file}")
        if path := os.environ.get("PRICES"):
            kept = sorted(n for n, seconds in self.seconds.items() if n in files or seconds >= SLOW)
            with Path(path).open("w", encoding="utf-8", newline="") as lines:
                writer = csv.writer(lines, lineterminator="\n")
                writer.writerow(["test", "tests", "seconds"])
                writer.writerows([n, self.n_tests[n], f"{self.seconds[n]:.2f}"] for n in kept)
