"""Make mutants: copies of a file of the package with one small fault."""

from __future__ import annotations

import ast
import random
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

COMPARED = {
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.In: "not in",
    ast.NotIn: "in",
    ast.Is: "is not",
    ast.IsNot: "is",
}
COMPUTED = {
    ast.Add: "-",
    ast.Sub: "+",
    ast.Mult: "/",
    ast.Div: "*",
    ast.FloorDiv: "*",
    ast.BitAnd: "|",
    ast.BitOr: "&",
}
SKIPPED_CALLS = {"isinstance", "issubclass", "field", "TypeVar", "NewType", "cast", "getattr"}


class Mutant(NamedTuple):
    """One fault: the text between two places of a file is replaced.

    Places are (line, column in bytes), as in `ast`. `statement` is the first line of the statement.
    """

    file: str
    kind: str
    begin: tuple[int, int]
    end: tuple[int, int]
    statement: int
    text: str

    @property
    def lines(self) -> set[int]:
        """Return the lines at which a test reaches the fault."""
        return {self.statement, *range(self.begin[0], self.end[0] + 1)}

    def applied(self, source: str) -> str:
        """Return the source of the file with the fault."""
        lines = source.encode("utf-8").splitlines(keepends=True)
        (first, start), (last, stop) = self.begin, self.end
        rest = lines[last - 1][stop:]
        lines[first - 1 : last] = [lines[first - 1][:start] + self.text.encode("utf-8") + rest]
        return b"".join(lines).decode("utf-8")

    def shown(self, source: str) -> str:
        """Return one line that says what changed."""
        line = source.splitlines()[self.begin[0] - 1].strip()
        return f"{self.file}:{self.begin[0]} {self.kind}: {line!r} -> {self.text!r}"


def sample(root: Path, package: Path, n: int, seed: int) -> list[Mutant]:
    """Return `n` mutants of a package, spread over its rooms by lines, over kinds alike."""
    rng = random.Random(seed)
    by_room: dict[str, dict[str, list[Mutant]]] = defaultdict(lambda: defaultdict(list))
    n_lines: dict[str, int] = defaultdict(int)
    for path in sorted(package.rglob("*.py")):
        room = room_of(path.relative_to(package))
        source = path.read_text("utf-8")
        n_lines[room] += len(source.splitlines())
        for mutant in mutants_of(source, str(path.relative_to(root))):
            by_room[room][mutant.kind].append(mutant)
    chosen = []
    for room, share in shares_of(n_lines, n).items():
        kinds = by_room[room]
        for _ in range(share):
            if not any(kinds.values()):
                break
            kind = rng.choice(sorted(k for k, of_kind in kinds.items() if of_kind))
            chosen.append(kinds[kind].pop(rng.randrange(len(kinds[kind]))))
    return chosen


def room_of(path: Path) -> str:
    """Return the room of a file, whose path is relative to the package."""
    return path.parts[0].removesuffix(".py")


def shares_of(n_lines: dict[str, int], n: int) -> dict[str, int]:
    """Return how many of `n` each room gets, in proportion to its lines (largest remainders)."""
    total = sum(n_lines.values())
    exact = {room: n * lines / total for room, lines in n_lines.items()}
    shares = {room: int(value) for room, value in exact.items()}
    by_rest = sorted(exact, key=lambda room: (shares[room] - exact[room], room))
    for room in by_rest[: n - sum(shares.values())]:
        shares[room] += 1
    return shares


def mutants_of(source: str, file: str) -> Iterator[Mutant]:
    """Yield all mutants of a file."""
    finder = _Finder(source, file)
    finder.visit(ast.parse(source))
    yield from finder.found


class _Finder(ast.NodeVisitor):
    """Collect the mutants of a file; annotations, imports, texts and docstrings have none."""

    def __init__(self, source: str, file: str) -> None:
        self.file, self.lines = file, source.encode("utf-8").splitlines(keepends=True)
        self.found: list[Mutant] = []
        self.statement = 1

    def visit(self, node: ast.AST) -> None:
        """Remember the statement that a node belongs to."""
        if isinstance(node, ast.stmt):
            self.statement = node.lineno
        super().visit(node)

    def _text(self, node: ast.expr) -> str:
        first, last = node.lineno - 1, (node.end_lineno or node.lineno) - 1
        lines = self.lines[first : last + 1]
        lines[-1] = lines[-1][: node.end_col_offset]
        lines[0] = lines[0][node.col_offset :]
        return b"".join(lines).decode("utf-8")

    def _add(self, kind: str, node: ast.expr | ast.stmt, text: str) -> None:
        begin, end = (node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)
        self.found.append(Mutant(self.file, kind, begin, end, self.statement, text))  # type: ignore[arg-type]

    def _between(self, kind: str, left: ast.expr, right: ast.expr, text: str) -> None:
        """Replace an operator with the whole expression on both sides of it, on its own line."""
        begin, end = (left.end_lineno, left.end_col_offset), (right.lineno, right.col_offset)
        if begin[0] == end[0]:
            old = self.lines[end[0] - 1][begin[1] : end[1]].decode("utf-8")
            if set("()") & set(old):  # brackets around a side stay where they are
                head = old[: len(old) - len(old.lstrip(" )"))]
                tail = old[len(old.rstrip(" (")) :]
                text = f"{head or ' '}{text}{tail or ' '}"
            else:
                text = f" {text} "
            self.found.append(Mutant(self.file, kind, begin, end, self.statement, text))  # type: ignore[arg-type]

    # -- what has no mutants -------------------------------------------------------------------

    def visit_keyword(self, node: ast.keyword) -> None:
        """Leave guards of `zip` alone: no call of ours has parts of unequal length."""
        if node.arg != "strict":
            self.generic_visit(node)

    def visit_Import(self, node: ast.Import) -> None:
        """Leave imports alone."""

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        """Leave imports alone."""

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Leave texts alone."""

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        """Leave the annotation alone."""
        if node.value is not None:
            self.visit(node.value)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        """Leave annotations and decorators alone."""
        for default in (*node.args.defaults, *filter(None, node.args.kw_defaults)):
            self.visit(default)
        for statement in node.body:
            self.visit(statement)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        """Leave bases and decorators alone."""
        for statement in node.body:
            self.visit(statement)

    def visit_If(self, node: ast.If) -> None:
        """Leave imports for types alone."""
        if self._text(node.test) != "TYPE_CHECKING":
            self.generic_visit(node)

    # -- faults --------------------------------------------------------------------------------

    def visit_Compare(self, node: ast.Compare) -> None:
        """Change comparisons."""
        left = node.left
        for operator, right in zip(node.ops, node.comparators, strict=True):
            self._between("comparison", left, right, COMPARED[type(operator)])
            left = right
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        """Change signs and operators."""
        if type(node.op) in COMPUTED and not isinstance(node.left, ast.Constant | ast.JoinedStr):
            self._between("sign", node.left, node.right, COMPUTED[type(node.op)])
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        """Drop a minus or a not."""
        if isinstance(node.op, ast.USub | ast.Not | ast.Invert):
            kind = "sign" if isinstance(node.op, ast.USub) else "negation"
            self._add(kind, node, f"({self._text(node.operand)})")
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        """Exchange `and` and `or`."""
        other = "or" if isinstance(node.op, ast.And) else "and"
        for left, right in zip(node.values, node.values[1:], strict=False):
            self._between("negation", left, right, other)
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        """Change numbers and truth values."""
        if isinstance(node.value, bool):
            self._add("constant", node, str(not node.value))
        elif isinstance(node.value, int | float):
            self._add("constant", node, f"{node.value + 1!r}")

    def visit_Call(self, node: ast.Call) -> None:
        """Swap the first two arguments."""
        if len(node.args) > 1 and self._text(node.func) not in SKIPPED_CALLS:
            first, second = node.args[:2]
            texts = self._text(first), self._text(second)
            is_starred = isinstance(first, ast.Starred) or isinstance(second, ast.Starred)
            if texts[0] != texts[1] and not is_starred:
                begin, end = first, second
                places = (begin.lineno, begin.col_offset), (end.end_lineno, end.end_col_offset)
                text = f"{texts[1]}, {texts[0]}"
                self.found.append(
                    Mutant(self.file, "arguments", *places, self.statement, text)  # type: ignore[arg-type]
                )
        self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> None:
        """Delete a call whose value is not used."""
        if isinstance(node.value, ast.Call):
            self._add("statement", node, "pass")
        if not isinstance(node.value, ast.Constant):
            self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        """Delete the statement."""
        self._add("statement", node, "pass")
        self.generic_visit(node)

    def visit_Raise(self, node: ast.Raise) -> None:
        """Delete the statement; the message has no mutants."""
        self._add("statement", node, "pass")

    def visit_Assign(self, node: ast.Assign) -> None:
        """Delete an assignment to a part of something."""
        if all(isinstance(target, ast.Attribute | ast.Subscript) for target in node.targets):
            self._add("statement", node, "pass")
        self.visit(node.value)

    def visit_Continue(self, node: ast.Continue) -> None:
        """Delete the statement."""
        self._add("statement", node, "pass")
