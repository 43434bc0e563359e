"""What is published: true lower bounds, a description that works alone, stated licences."""

import re
import tomllib
from importlib.resources import files
from pathlib import Path

import pytest
from scripts.list_licences import PAGE, bundled, direct
from scripts.package_readme import package_readme

from commod.datasets import load_compas

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
REQUIREMENT = re.compile(r"([a-z0-9-]+)(?:\[[a-z]+\])?>=([0-9.]+)")


def lower_bounds(but_for=("dev",)):
    """Return the lower bound of each package that the project and its extras need."""
    extras = PROJECT["optional-dependencies"]
    wanted = [
        *PROJECT["dependencies"],
        *(r for name in extras if name not in but_for for r in extras[name]),
    ]
    others = [r for r in wanted if not r.startswith(PROJECT["name"])]
    matches = {r: REQUIREMENT.fullmatch(r.partition(";")[0]) for r in others}  # but for markers
    assert [r for r, match in matches.items() if match is None] == []
    return {match[1]: match[2] for match in matches.values()}


def pins(name):
    lines = (ROOT / name).read_text("utf-8").splitlines()
    return dict(line.split("==") for line in lines if line and not line.startswith("#"))


def as_numbers(version):
    return [int(part) for part in version.split(".")]


def test_the_lowest_versions_that_are_tested_are_the_lower_bounds():
    # the site is not built with them
    assert pins("constraints-lowest.txt") == lower_bounds(but_for=("dev", "docs"))


def test_the_pinned_versions_keep_the_lower_bounds():
    pinned = pins("constraints.txt")
    both = {name: bound for name, bound in lower_bounds().items() if name in pinned}
    assert {n for n, bound in both.items() if as_numbers(pinned[n]) < as_numbers(bound)} == set()


def test_every_extra_of_the_readme_is_one():
    text = (ROOT / "README.md").read_text("utf-8")
    assert "\npip install commod-debiasing " in text
    named = re.findall(r"commod-debiasing\[([a-z,]+)\]", text)
    assert named and set(",".join(named).split(",")) <= set(PROJECT["optional-dependencies"])


LINK = re.compile(r"!?\[[^\]]*\]\(([^)]*)\)")


def test_the_description_on_a_package_index_needs_no_other_file():
    text = package_readme((ROOT / "README.md").read_text("utf-8"))
    assert [link for link in LINK.findall(text) if not link.startswith("https://")] == []
    assert "pip install commod-debiasing" in text and "| Start, tutorials, concepts |" in text
    assert "<img" not in text and "<a " not in text
    assert ">>> print(update.status_)" in text, "code stays as it is"


def test_code_and_links_into_the_web_stay():
    text = "# a\n\n![x](y.png)\n\nSee [b](c.md), [d](https://e.f).\n\n```\nx[0](y)\n```\n"
    expected = "See b, [d](https://e.f).\n\n```\nx[0](y)\n```\n"
    assert package_readme(text).endswith(f"\n\n{expected}") and "y.png" not in package_readme(text)


def test_the_package_is_built_with_this_description():
    core = pytest.importorskip("hatchling.metadata.core")
    manager = pytest.importorskip("hatchling.plugin.manager").PluginManager()
    readme = core.ProjectMetadata(str(ROOT), manager).core.readme
    assert readme == package_readme((ROOT / "README.md").read_text("utf-8"))


def test_addresses_in_the_metadata_lead_into_the_web():
    assert all(url.startswith("https://") for url in PROJECT.get("urls", {}).values())


def test_the_table_in_the_package_says_under_which_licence_it_is():
    beside = files("commod.datasets").joinpath("data", "LICENCE.txt").read_text("utf-8")
    for text in (beside, load_compas().DESCR, load_compas.__doc__):
        assert "states no licence" in " ".join(text.split())


def test_the_page_of_licences_has_every_dependency_and_every_bundled_file():
    lines = PAGE.read_text("utf-8").splitlines()
    listed = {line.split(" | ")[0].removeprefix("| ") for line in lines if line.startswith("| ")}
    requirements = [one for several in direct().values() for one in several]
    needed = {REQUIREMENT.match(one)[1] for one in requirements}
    assert needed | set(bundled()) <= listed, "run scripts/list_licences.py"
    assert "unknown" not in bundled().values()


def test_ids_of_tests_hold_no_address_and_no_packed_data(request):
    """Addresses, and data packed with random content, differ from run to run."""
    ids = [item.nodeid for item in request.session.items]
    random = re.compile(r"0x[0-9a-f]{6}|(?:\\x[0-9a-f]{2}[^\\]{0,8}){40}")
    assert [name[:120] for name in ids if random.search(name)] == []
