"""The order in which workers get test files, so that none waits long for the other's last file.

The dearest come first, by the CPU seconds of `prices.csv`. Files that use the same program go to
one worker, where it starts once: Spark and PostgreSQL together, and Chromium.
"""

import re
from collections import defaultdict
from functools import cache
from pathlib import Path

from xdist.scheduler import LoadFileScheduling

from price_list import file_of, stored_prices

PROGRAMS = {
    "engines": re.compile(r"^def \w+\([^)]*\b(spark|postgres)\b|^from engines ", re.MULTILINE),
    "browser": re.compile(r"^def \w+\([^)]*\bbrowser\b", re.MULTILINE),
}


@cache
def scope_of(file, root):
    """Return what goes to one worker together: a file, or all files that use a program."""
    path = Path(root) / file
    if path.suffix != ".py" or path.name == "conftest.py":
        return file
    text = path.read_text("utf-8")
    return next((name for name, uses in PROGRAMS.items() if uses.search(text)), file)


def dearest_first(items, root):
    """Sort tests in place by the price of their scope; a new file has none, and comes first."""
    files = {item: file_of(item.nodeid) for item in items}
    totals = defaultdict(float)
    for file in set(files.values()):
        totals[scope_of(file, root)] += stored_prices().get(file, float("inf"))
    scopes = {item: scope_of(file, root) for item, file in files.items()}
    items.sort(key=lambda item: (-totals[scopes[item]], scopes[item], files[item]))


class ProgramsTogether(LoadFileScheduling):
    """Give whole files to workers, and all files that use a program to one."""

    def _split_scope(self, nodeid):
        return scope_of(file_of(nodeid), self.config.rootpath)
