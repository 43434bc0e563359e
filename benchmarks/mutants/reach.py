"""A pytest plugin: note which lines each test reaches, or run chosen tests in a given order.

With `REACH=folder`, every process measures the lines of the package under the name of the test, or
of the fixture that is being made: what a fixture reaches counts for all tests that use it. With
`CHOSEN=file`, only the tests that the file names are run, in its order.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

FOLDER = os.environ.get("REACH")
CHOSEN = os.environ.get("CHOSEN")
FIXTURE = "fixture "

_tests: dict[str, dict[str, Any]] = {}


@contextmanager
def _named(name: str) -> Iterator[None]:
    """Count lines under a name; programs that are started meanwhile inherit it."""
    from coverage import Coverage

    measured, outer = Coverage.current(), os.environ.get("COVERAGE_CONTEXT")
    if measured is None:
        yield
        return
    measured.switch_context(name)
    os.environ["COVERAGE_CONTEXT"] = name
    try:
        yield
    finally:
        measured.switch_context(outer or "")
        os.environ.pop("COVERAGE_CONTEXT")
        if outer is not None:
            os.environ["COVERAGE_CONTEXT"] = outer


def _name_of(fixture: Any) -> str:
    return f"{FIXTURE}{fixture.baseid}::{fixture.argname}"


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep the chosen tests, in their order."""
    if CHOSEN:
        order = {name: i for i, name in enumerate(Path(CHOSEN).read_text("utf-8").splitlines())}
        items[:] = sorted(
            (item for item in items if item.nodeid in order), key=lambda item: order[item.nodeid]
        )


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: Any) -> Any:
    """Count what a fixture reaches under its own name."""
    if not FOLDER:
        return (yield)
    with _named(_name_of(fixturedef)):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Any:
    """Count what a test reaches under its name."""
    if not FOLDER:
        return (yield)
    with _named(item.nodeid):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Any:
    """Note the CPU seconds of a test, and the fixtures that it uses."""
    if not FOLDER:
        return (yield)
    begin = sum(os.times()[:4])
    result = yield
    test_item: Any = item  # the classes of pytest do not declare what follows
    known = test_item._fixtureinfo.name2fixturedefs
    used = {_name_of(one) for name in test_item.fixturenames for one in known.get(name, ())}
    test = _tests.setdefault(item.nodeid, {})
    test |= {"fixtures": sorted(used), "seconds": sum(os.times()[:4]) - begin}
    return result


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Note whether a test passed: the worst of its phases."""
    if FOLDER:
        test = _tests.setdefault(report.nodeid, {})
        test["passed"] = test.get("passed", True) and report.passed


def pytest_sessionfinish() -> None:
    """Store what this process knows."""
    if FOLDER:
        Path(FOLDER, f"tests-{os.getpid()}.json").write_text(json.dumps(_tests), "utf-8")
