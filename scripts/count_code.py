"""Count lines of code in src/: without docstrings, comments and blank lines.

`python scripts/count_code.py` prints the total; `--files` prints every file, longest first.
"""

from __future__ import annotations

import argparse
import ast
import io
import tokenize
from collections.abc import Iterable
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src"
NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}
DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def docstring_lines(nodes: Iterable[ast.AST]) -> set[int]:
    """Return the line numbers of docstrings, from all nodes of a file."""
    lines: set[int] = set()
    for node in nodes:
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            first = node.body[0]
            lines.update(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    return lines


def code_lines(text: str, nodes: Iterable[ast.AST] | None = None) -> int:
    r"""Return how many lines hold code; `nodes` are those of the parsed text, if known.

    Examples
    --------
    >>> code_lines('"Docstring."\n\n# comment\nx = (\n    1\n)\n')
    3
    """
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in NO_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines - docstring_lines(ast.walk(ast.parse(text)) if nodes is None else nodes))


def main() -> None:
    """Print the number of lines."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", action="store_true", help="print every file, longest first")
    options = parser.parse_args()
    counts = {path: code_lines(path.read_text("utf-8")) for path in SOURCE.rglob("*.py")}
    if options.files:
        for path, count in sorted(counts.items(), key=lambda item: -item[1]):
            print(f"{count:6,} {path.relative_to(SOURCE)}")
    print(f"{sum(counts.values()):,} lines of code in {len(counts)} files")


if __name__ == "__main__":
    main()
