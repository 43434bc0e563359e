"""The house: sizes of files and functions, names, import circles, knowledge of constraints."""

import ast
import gc
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
def nodes_of(path):
    """Return all nodes of a file, its tree first; they are there until the end."""
    gc.disable()
    try:
        return list(ast.walk(ast.parse(path.read_text("utf-8"))))
    finally:
        gc.enable()


@cache
def functions_of(path):
    return [n for n in nodes_of(path) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]


def body_length(function):
    body = function.body[ast.get_docstring(function, clean=False) is not None :]
    return body[-1].end_lineno - body[0].lineno + 1 if body else 0


def n_parameters(function):
    arguments = function.args
    return len([*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs])


def test_files_and_functions_can_be_read_without_scrolling():
    assert [name_of(p) for p in FILES if len(p.read_text("utf-8").splitlines()) > 800] == []
    functions = [(name_of(path), f) for path in FILES for f in functions_of(path)]
    assert [(file, f.name) for file, f in functions if body_length(f) > 60] == []
    exempt = {"__init__", *PUBLIC_ENTRY_POINTS}
    many = [(file, f.name) for file, f in functions if n_parameters(f) > 12]
    assert [function for function in many if function[1] not in exempt] == []


# Ratchets: the size of the house. Lower them when it has shrunk; only a new feature may raise them.
MOST_LINES, MOST_FILES, MOST_CLASSES = 40_900, 191, 404
MOST_PARAMETERS = {ControlledDebiaser: 23, COMMOD: 16}  # of constructors, beside `estimator`


def test_the_house_grows_no_more():
    """Lines of code are those of scripts/count_code.py."""
    assert sum(code_lines(p.read_text("utf-8"), nodes_of(p)) for p in FILES) <= MOST_LINES
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


def compared_parts(node):
    """Return what a node compares, looks up or lists."""
    match node:
        case ast.Compare():
            return [node.left, *node.comparators]
        case ast.Dict():
            return node.keys
        case ast.Subscript():
            return [node.slice]
        case ast.MatchValue() | ast.Assign():
            return [node.value]
        case ast.AnnAssign() if not isinstance(node.value, ast.Constant):
            return [node.value]  # a default of a field compares nothing
        case _:
            return []


def lines_with_constraint_names(nodes):
    """Return the lines that compare, look up or list constraint names."""
    lines = []
    parts = [part for node in nodes for part in compared_parts(node)]
    while parts:
        part = parts.pop()
        if isinstance(part, ast.Constant) and part.value in CONSTRAINTS:
            lines.append(part.lineno)
        elif isinstance(part, ast.Tuple | ast.List | ast.Set):
            parts.extend(part.elts)
    return lines


def test_constraint_names_are_compared_in_one_file():
    others = [path for path in FILES if path != COMPARISONS]
    lines = {name_of(p): lines_with_constraint_names(nodes_of(p)) for p in others}
    assert {name: numbers for name, numbers in lines.items() if numbers} == {}


def test_a_comparison_with_a_constraint_name_is_noticed():
    texts = [
        'if name == "equalized_odds": pass',
        'if name in ("a", "demographic_parity"): pass',
        'largest = {"equalized_odds": 2}',
        'largest["equalized_odds"]',
        'NAMES = ["demographic_parity", "equalized_odds"]',
        'NAMES: tuple = ("demographic_parity", "equalized_odds")',
        'match name:\n    case "equalized_odds": pass',
    ]
    unnoticed = [t for t in texts if not lines_with_constraint_names(ast.walk(ast.parse(t)))]
    assert unnoticed == []
    assert lines_with_constraint_names(ast.walk(ast.parse('a: str = "equalized_odds"'))) == []


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
