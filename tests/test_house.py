"""The house: sizes of files and functions, names, import circles, knowledge of constraints."""

import ast
import inspect
from collections import Counter, defaultdict
from functools import cache
from pathlib import Path

import pytest
from scripts.count_code import code_lines

from commod import COMMOD, ControlledDebiaser
from commod.metrics._constraint import CONSTRAINTS
from price_list import stored_prices

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "commod"
FILES = sorted(SOURCE.rglob("*.py"))
PUBLIC_ENTRY_POINTS = {"audit", "audit_frame", "compare", "edit", "frontier"}  # users pass keywords
MOST_CPU_SECONDS = 600  # of all tests, on the machine where the prices were renewed
COMPARISONS = SOURCE / "metrics" / "_constraint.py"


def name_of(path):
    return str(path.relative_to(SOURCE))


@cache
def tree_of(path):
    return ast.parse(path.read_text("utf-8"))


@cache
def nodes_of(path):
    return list(ast.walk(tree_of(path)))


def functions_of(path):
    for node in nodes_of(path):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def body_length(function):
    body = function.body[1:] if ast.get_docstring(function) else function.body
    return body[-1].end_lineno - body[0].lineno + 1 if body else 0


def n_parameters(function):
    arguments = function.args
    return len([*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs])


def test_files_and_functions_can_be_read_without_scrolling():
    assert [name_of(p) for p in FILES if len(p.read_text("utf-8").splitlines()) > 800] == []
    lengths = {(name_of(p), f.name): body_length(f) for p in FILES for f in functions_of(p)}
    assert {function: n for function, n in lengths.items() if n > 60} == {}


def test_functions_have_few_parameters():
    exempt = {"__init__", *PUBLIC_ENTRY_POINTS}
    numbers = {(name_of(p), f.name): n_parameters(f) for p in FILES for f in functions_of(p)}
    assert {key: n for key, n in numbers.items() if n > 12 and key[1] not in exempt} == {}


# Ratchets: the size of the house. Lower them when it has shrunk; only a new feature may raise them.
MOST_LINES, MOST_FILES, MOST_CLASSES = 40_877, 191, 404
MOST_PARAMETERS = {ControlledDebiaser: 23, COMMOD: 16}  # of constructors, beside `estimator`


def test_the_house_grows_no_more():
    """Lines of code are those of scripts/count_code.py."""
    assert sum(code_lines(p.read_text("utf-8")) for p in FILES) <= MOST_LINES
    assert len(FILES) <= MOST_FILES
    assert sum(isinstance(n, ast.ClassDef) for p in FILES for n in nodes_of(p)) <= MOST_CLASSES
    for estimator, most in MOST_PARAMETERS.items():
        assert len(inspect.signature(estimator).parameters) - 1 <= most


def test_a_parameter_named_update_has_a_type():
    untyped = [
        (name_of(path), function.name)
        for path in FILES
        if path.name != "_notebook.py"  # base.py imports it
        for function in functions_of(path)
        for argument in [*function.args.args, *function.args.kwonlyargs]
        if argument.arg == "update"
        and argument.annotation is not None
        and ast.unparse(argument.annotation) == "Any"
    ]
    assert untyped == []


def test_the_house_has_at_most_24_rooms():
    doors = {"__init__.py", "__main__.py"}  # they hold nothing of their own
    rooms = [p for p in SOURCE.iterdir() if p.suffix == ".py" or (p / "__init__.py").exists()]
    assert sum(p.name not in doors for p in rooms) <= 24


# ---------------------------------------------------------------------------------------------
# Constraint names


class Comparisons(ast.NodeVisitor):
    """Collect the lines that compare, look up or list constraint names."""

    def __init__(self):
        self.lines = []

    def _collect(self, node):
        if isinstance(node, ast.Constant) and node.value in CONSTRAINTS:
            self.lines.append(node.lineno)
        elif isinstance(node, ast.Tuple | ast.List | ast.Set):
            for element in node.elts:
                self._collect(element)

    def visit_Compare(self, node):
        for part in (node.left, *node.comparators):
            self._collect(part)
        self.generic_visit(node)

    def visit_Dict(self, node):
        for key in node.keys:
            self._collect(key)
        self.generic_visit(node)

    def visit_Subscript(self, node):
        self._collect(node.slice)
        self.generic_visit(node)

    def visit_MatchValue(self, node):
        self._collect(node.value)

    def visit_Assign(self, node):
        self._collect(node.value)
        self.generic_visit(node)

    def visit_AnnAssign(self, node):
        if not isinstance(node.value, ast.Constant):  # a default of a field compares nothing
            self._collect(node.value)
        self.generic_visit(node)


def lines_with_constraint_names(tree):
    found = Comparisons()
    found.visit(tree)
    return found.lines


def test_constraint_names_are_compared_in_one_file():
    others = [path for path in FILES if path != COMPARISONS]
    lines = {name_of(p): lines_with_constraint_names(tree_of(p)) for p in others}
    assert {name: numbers for name, numbers in lines.items() if numbers} == {}


@pytest.mark.parametrize(
    "text",
    [
        'if name == "equalized_odds": pass',
        'if name in ("a", "demographic_parity"): pass',
        'largest = {"equalized_odds": 2}',
        'largest["equalized_odds"]',
        'NAMES = ["demographic_parity", "equalized_odds"]',
        'NAMES: tuple = ("demographic_parity", "equalized_odds")',
        'match name:\n    case "equalized_odds": pass',
    ],
)
def test_a_comparison_with_a_constraint_name_is_noticed(text):
    assert lines_with_constraint_names(ast.parse(text))


# ---------------------------------------------------------------------------------------------
# Names and imports


def test_no_two_classes_share_a_name():
    names = Counter(
        node.name.lstrip("_")
        for path in FILES
        for node in nodes_of(path)
        if isinstance(node, ast.ClassDef)
    )
    assert {name: n for name, n in names.items() if n > 1} == {}


def module_of(path):
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports_of(path, modules):
    """Return the modules that a file imports anywhere, also in functions and for types."""
    for node in nodes_of(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in modules)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in modules else node.module


def test_no_import_circle():
    modules = {module_of(path): path for path in FILES}
    graph = {
        module: {name for name in imports_of(path, modules) if name in modules and name != module}
        for module, path in modules.items()
        if path.name != "__init__.py"  # packages re-export what is in them
    }
    importers = defaultdict(set)
    for module, targets in graph.items():
        for target in targets:
            importers[target].add(module)
    left = set(graph)
    while free := {m for m in left if not (graph[m] & left) or not (importers[m] & left)}:
        left -= free
    assert left == set()


# ---------------------------------------------------------------------------------------------
# What users see of an estimator

OF_EVERY_UPDATE = """
    calibrated_proba changes concepts decision_function decision_proba edit fit
    get_metadata_routing get_params predict predict_proba ratio raw_ratio request score
    set_fit_request set_params set_score_request to_patch
"""
OF_ONE_UPDATE = {
    ControlledDebiaser: "explore fit_frame undo",
    COMMOD: "as_in_the_paper",
}


@pytest.mark.parametrize("estimator", OF_ONE_UPDATE)
def test_tab_completion_shows_what_users_need(estimator):
    expected = {*OF_EVERY_UPDATE.split(), *OF_ONE_UPDATE[estimator].split()}
    unset = {"calibration_", "edits_", *inspect.signature(estimator).parameters}
    names = {name for name in dir(estimator) if not name.startswith("_")}
    assert names - unset == expected


# ---------------------------------------------------------------------------------------------
# What the tests cost


def test_the_tests_keep_to_their_budget():
    """Renew the prices with `PRICES=tests/prices.csv make test`."""
    seconds = {name: s for name, s in stored_prices().items() if "::" not in name}
    files = {str(p.relative_to(ROOT)) for p in (ROOT / "tests").rglob("test_*.py")}
    assert files - seconds.keys() == set(), "files without a price"
    gone = {name for name in seconds if not (ROOT / name).exists()}
    assert gone == set(), "prices of files that are gone"
    assert sum(seconds.values()) <= MOST_CPU_SECONDS
