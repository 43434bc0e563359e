"""The documentation site: every public name in the reference, and what checks the built pages."""

import importlib
import inspect
import io
import re
import runpy
import tarfile
from pathlib import Path

import pytest
from scripts.archive_site import archive
from scripts.check_site import broken_links, read_pages, representative
from scripts.count_words import count, pages

import commod
from commod.cli._command import REMOVED_OPTIONS
from commod.updates.base import SUCCESSORS

DOCS = Path(__file__).parents[1] / "docs"
MODULES = ("commod", *(f"commod.{name}" for name in commod._MODULES))
RESULTS = runpy.run_path(str(DOCS / "conf.py"))["autosummary_context"]["results"]


def public_names():
    """Yield the full name of every public name but the modules, whose pages list these names."""
    for home in MODULES:
        module = importlib.import_module(home)
        for name in module.__all__:
            if not inspect.ismodule(getattr(module, name)):
                yield f"{home}.{name}"


NAMES = sorted(public_names())


def member(name):
    home, _, last = name.rpartition(".")
    return getattr(importlib.import_module(home), last)


def names_in_the_reference():
    """Yield the full names that the pages of the reference list."""
    for page in sorted((DOCS / "reference").glob("*.md")):
        module, listing = "", False
        for line in page.read_text("utf-8").splitlines():
            if found := re.match(r"\.\. (?:currentmodule|automodule|py:module):: (\S+)", line):
                module = found[1]
            elif found := re.match(r"\.\. py:data:: (\S+)", line):
                yield f"{module}.{found[1]}"
            elif line.startswith(".. autosummary::"):
                listing = True
            elif line.startswith("```"):
                listing = False
            elif listing and (found := re.fullmatch(r"   (\w+)", line)):
                yield f"{module}.{found[1]}"


def test_the_reference_has_every_public_name_once():
    listed = list(names_in_the_reference())
    assert len(listed) == len(set(listed))
    assert [name for name in NAMES if name not in listed] == [], "add them to docs/reference"


def test_the_reference_has_no_other_names():
    assert sorted(names_in_the_reference()) == NAMES


def returned_type(name):
    """Return the class of commod that a public function returns, by its annotation."""
    found = re.match(r"\w+", str(inspect.signature(member(name)).return_annotation))
    kind = getattr(inspect.getmodule(member(name)), found[0], None)
    return kind if inspect.isclass(kind) and kind.__module__.startswith("commod") else None


def test_the_page_of_a_function_describes_the_type_that_it_returns():
    described = [result for name in RESULTS for result in RESULTS[name]]
    assert len(described) == len(set(described))
    assert set(RESULTS) <= set(NAMES) and not set(described) & set(NAMES)
    for result in described:
        assert ">>>" in inspect.getdoc(member(result)), result
    functions = [name for name in NAMES if inspect.isfunction(member(name))]
    returned = {name: kind for name in functions if (kind := returned_type(name))}
    assert len(returned) > 10
    for name, kind in returned.items():
        assert kind in map(member, [*NAMES, *described]), f"name it for {name} in docs/conf.py"


def test_new_pages_are_doctests(pytestconfig):
    """Only what the build writes is left out, so every page that we write is run."""
    left_out = [p for p in pytestconfig.getini("norecursedirs") if p.startswith("docs/")]
    assert left_out == ["docs/_*", "docs/gallery", "docs/reference/generated"]
    ignored = (DOCS.parent / ".gitignore").read_text("utf-8").split()
    assert {"docs/_build/", "docs/gallery/", "docs/reference/generated/"} <= set(ignored)


def test_the_page_on_version_0_2_has_every_name_that_is_refused():
    page = (DOCS / "from-0.2.md").read_text("utf-8")
    names = [*REMOVED_OPTIONS, *SUCCESSORS["COMMOD"], *SUCCESSORS["ControlledDebiaser"]]
    assert [name for name in names if f"`{name}`" not in page] == []


def test_the_documentation_is_short_enough_to_be_read():
    """Pages that a command writes do not count: `python scripts/count_words.py --files`."""
    assert sum(sum(count(path)[:2]) for path in pages()) <= 60_000, "cut what another page says"


def test_tests_that_a_page_names_exist():
    named = {
        test
        for page in DOCS.rglob("*.md")
        for test in re.findall(r"(tests/[\w/]+\.py)::(test_\w+)", page.read_text("utf-8"))
    }
    assert len(named) > 10
    for path, test in named:
        assert f"def {test}(" in (DOCS.parent / path).read_text("utf-8"), f"{path}::{test}"


# ---------------------------------------------------------------------------------------------
# What checks the built site


@pytest.fixture
def site(tmp_path):
    (tmp_path / "b").mkdir()
    (tmp_path / "index.html").write_text(
        '<h1 id="top">a</h1><a href="b/c.html#here">c</a>', "utf-8"
    )
    (tmp_path / "b" / "c.html").write_text(
        '<p id="here"><a href="../index.html#top">a</a>', "utf-8"
    )
    return tmp_path


def test_a_site_without_broken_links(site):
    assert list(broken_links(site, read_pages(site))) == []


def test_a_broken_link_is_named(site):
    for text, words in [
        ('<a href="d.html">', "there is no file b/d.html"),
        ('<a href="../index.html#none">', "index.html has no such anchor"),
        ('<a href="#none">', "b/c.html has no such anchor"),
        ('<img src="none.png">', "there is no file b/none.png"),
        ('<script src="https://example.org/a.js">', "loads https://example.org/a.js from another"),
        ('<link rel="stylesheet" href="//example.org/a.css">', "from another host"),
        ('<a href="/index.html">', "from the root of the host"),
    ]:
        (site / "b" / "c.html").write_text(f'<p id="here">{text}', "utf-8")
        (finding,) = broken_links(site, read_pages(site))
        assert words in finding


def test_links_into_the_web_are_left_alone(site):
    (site / "b" / "c.html").write_text('<p id="here"><a href="https://example.org/x">', "utf-8")
    assert list(broken_links(site, read_pages(site))) == []


def test_pages_of_each_folder_are_opened(site):
    for number in range(9):
        (site / "b" / f"{number}.html").write_text("x" * number, "utf-8")
    names = list(read_pages(site))
    assert representative(site, names) == ["index.html", "b/c.html", "b/0.html"]


def test_the_archive_of_the_same_pages_has_the_same_bytes(site):
    first = archive(site)
    (site / "b" / "c.html").touch()
    assert archive(site) == first
    with tarfile.open(fileobj=io.BytesIO(first)) as tar:
        assert tar.getnames() == ["b/c.html", "index.html"]
