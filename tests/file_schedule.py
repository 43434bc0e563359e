"""The order in which workers get test files, so that none waits long for the other's last file."""

import re
from collections import Counter
from pathlib import Path

from xdist.scheduler import LoadFileScheduling

USES_SPARK = re.compile(r"^def \w+\([^)]*\bspark\b", re.MULTILINE)
SPARK = "spark"


def file_of(nodeid):
    return nodeid.split("::", 1)[0]


def uses_spark(path):
    return path.suffix == ".py" and USES_SPARK.search(path.read_text("utf-8")) is not None


def longest_first(items):
    """Sort tests in place: files with Spark, pages, then files with many slow tests."""
    slow, tests = Counter(), Counter()
    for item in items:
        tests[item.path] += 1
        slow[item.path] += item.get_closest_marker("slow") is not None
    ranks = {
        path: (not uses_spark(path), path.suffix != ".md", -slow[path], -tests[path], path)
        for path in tests
    }
    items.sort(key=lambda item: ranks[item.path])


class SparkTogether(LoadFileScheduling):
    """Give whole files to workers, and all files that use Spark to one: it starts once."""

    def __init__(self, config, log):
        super().__init__(config, log)
        self._root = Path(config.rootpath)
        self._scopes = {}

    def _split_scope(self, nodeid):
        file = file_of(nodeid)
        if file not in self._scopes:
            self._scopes[file] = SPARK if uses_spark(self._root / file) else file
        return self._scopes[file]
