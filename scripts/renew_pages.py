"""Run pages and write their outputs anew: `python scripts/renew_pages.py docs/start.md`.

Only outputs that differ are written. The text around them is not: read `git diff` afterwards, and
correct the sentences that quote a number.
"""

from __future__ import annotations

import doctest
import sys
import textwrap
from pathlib import Path

WIDTH = 116
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS  # those of pyproject.toml


class Renewal(doctest.DocTestRunner):
    """Collect the outputs that differ, by the line of their first example line."""

    def __init__(self) -> None:
        super().__init__(optionflags=FLAGS, verbose=False)
        self.outputs: dict[int, str] = {}

    def report_failure(self, out, test, example, got):
        """Keep what an example printed."""
        self.outputs[example.lineno] = got

    def report_unexpected_exception(self, out, test, example, exc_info):
        """Stop at an error: it is no output to show."""
        raise exc_info[1]


def shown_lines(want: str, got: str) -> list[str]:
    """Return an output in lines of at most WIDTH, cut after as many lines as before if it was."""
    shown = []
    for line in got.splitlines():
        shown += textwrap.wrap(line, WIDTH) if len(line) > WIDTH else [line or "<BLANKLINE>"]
    if want.rstrip().endswith("..."):
        shown = [*shown[: max(want.count("\n") - 1, 1)], "..."]
    return shown


def renew(page: Path) -> int:
    """Write a page with its outputs of now, and return how many of them differed."""
    text = page.read_text(encoding="utf-8")
    test = doctest.DocTestParser().get_doctest(text, {"__name__": "__main__"}, page.name, None, 0)
    runner = Renewal()
    runner.run(test, clear_globs=False)
    lines = text.splitlines(keepends=True)
    for example in reversed(test.examples):
        if example.lineno not in runner.outputs:
            continue
        start = example.lineno + example.source.count("\n")
        end = start + example.want.count("\n")
        shown = shown_lines(example.want, runner.outputs[example.lineno])
        lines[start:end] = [f"{' ' * example.indent}{line}".rstrip() + "\n" for line in shown]
    page.write_text("".join(lines), encoding="utf-8")
    return len(runner.outputs)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        print(f"{name}: {renew(Path(name))} outputs written")
