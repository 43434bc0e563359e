"""Count the words of the documentation: what a reader meets, beside what commands print.

`python scripts/count_words.py` prints the totals; `--files` prints every page, longest first. A
word has a letter or a digit. Three kinds are counted apart: prose (sentences and tables), examples
(blocks of code and their outputs, which run as tests), and pages that a command writes whole. Of a
script of the gallery, docstring and comments count, and its code does not.
"""

from __future__ import annotations

import argparse
import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
WRITTEN_BY_COMMANDS = (  # by `make …`, or by a script that the page names
    *("docs/benchmarks.md", "docs/figures.md", "docs/licences.md", "docs/paper.md"),
)
GENERATED = ("docs/_build", "docs/gallery", "docs/reference/generated")
FENCE = re.compile(r"^(`{3,})([^\n]*)\n(.*?)^\1`*$", re.MULTILINE | re.DOTALL)
LINK_TARGET = re.compile(r"\]\([^)]*\)")
WORD = re.compile(r"\S*\w\S*")


def split_page(text: str) -> tuple[str, str]:
    r"""Return the prose and the examples of a page; addresses and lists of pages are neither.

    Examples
    --------
    >>> split_page("Fit [it](docs/fit.md):\n\n```python\n>>> 1 + 1\n2\n```\n")
    ('Fit [it]:\n\n\n', '>>> 1 + 1\n2\n')
    """
    prose = FENCE.sub(lambda found: found[3] if found[2].startswith("{eval-rst") else "", text)
    examples = [found[3] for found in FENCE.finditer(text) if not found[2].startswith("{")]
    return LINK_TARGET.sub("]", prose), "\n".join(examples)


def prose_of_script(text: str) -> str:
    """Return the prose of a gallery script: its docstring and its comments."""
    title = ast.get_docstring(ast.parse(text)) or ""
    return "\n".join([title, *(line for line in text.splitlines() if line.startswith("#"))])


def pages() -> Iterator[Path]:
    """Yield README.md, the pages of docs/ that people write or commands renew, and the gallery."""
    yield ROOT / "README.md"
    for path in sorted((ROOT / "docs").rglob("*.md")):
        if not path.relative_to(ROOT).as_posix().startswith(GENERATED):
            yield path
    yield from sorted((ROOT / "examples").glob("*.*"))


def count(path: Path) -> tuple[int, int, int]:
    """Return the words of a page in prose, in examples, and written by a command."""
    text = path.read_text("utf-8")
    if path.relative_to(ROOT).as_posix() in WRITTEN_BY_COMMANDS:
        return 0, 0, len(WORD.findall(text))
    prose, examples = (prose_of_script(text), "") if path.suffix == ".py" else split_page(text)
    return len(WORD.findall(prose)), len(WORD.findall(examples)), 0


def main() -> None:
    """Print the number of words."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", action="store_true", help="print every page, longest first")
    options = parser.parse_args()
    counts = {path: count(path) for path in pages()}
    if options.files:
        for path, words in sorted(counts.items(), key=lambda item: -sum(item[1])):
            print(*(f"{number:7,}" for number in words), path.relative_to(ROOT))
    kinds = ("prose", "examples", "written by commands")
    totals = [sum(words[kind] for words in counts.values()) for kind in range(3)]
    print(", ".join(f"{kind} {n:,}" for kind, n in zip(kinds, totals, strict=True)), end="; ")
    print(f"{sum(totals[:2]):,} words on {len(counts)} pages, without those of commands")


if __name__ == "__main__":
    main()
