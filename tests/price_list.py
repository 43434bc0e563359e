"""What tests cost: CPU seconds by file, of a process and of the programs that it started.

Every run ends with the dearest files. `PRICES=tests/prices.csv make test` stores the list.
"""

import os
from collections import Counter
from pathlib import Path

import pytest

N_SHOWN = 20


def cpu_seconds():
    """Return the CPU seconds of this process and of its ended children."""
    return sum(os.times()[:4])


class PriceList:
    """Measure each test in its process, and add the prices up where the reports arrive."""

    def __init__(self):
        self.seconds, self.n_tests = Counter(), Counter()
        self.last = cpu_seconds()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self):
        """Write the seconds since the last phase of a test on its report, which travels."""
        report = yield
        now = cpu_seconds()
        report.cpu_seconds, self.last = now - self.last, now
        return report

    def pytest_runtest_logreport(self, report):
        """Add a report of any process."""
        file = report.nodeid.partition("::")[0]
        self.seconds[file] += getattr(report, "cpu_seconds", 0.0)
        self.n_tests[file] += report.when == "call"

    def pytest_terminal_summary(self, terminalreporter):
        """Print the dearest files, and store all of them where that is asked for."""
        total, n_tests = sum(self.seconds.values()), sum(self.n_tests.values())
        terminalreporter.section(f"{total:.0f} CPU seconds in {n_tests} tests; the dearest files")
        for file, seconds in self.seconds.most_common(N_SHOWN):
            terminalreporter.write_line(f"{seconds:7.1f} s  {self.n_tests[file]:4} tests  {file}")
        if path := os.environ.get("PRICES"):
            rows = [f"{f},{self.n_tests[f]},{s:.1f}" for f, s in sorted(self.seconds.items())]
            Path(path).write_text("\n".join(["file,tests,seconds", *rows]) + "\n", "utf-8")
