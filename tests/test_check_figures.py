"""The check of commits that pages name finds stale figures and commits that do not exist."""

import subprocess
from pathlib import Path

import pytest
from scripts import check_figures

ROOT = Path(__file__).parents[1]


def test_pages_name_commits_of_the_history_and_a_release_shows_its_own_figures():
    if not check_figures.has_history(ROOT):
        pytest.skip("needs the whole history of the repository")
    named = check_figures.named_commits(ROOT)
    assert {"docs/benchmarks.md", "docs/paper.md"} <= {one.page for one in named if one.is_measured}
    release = check_figures.is_release(ROOT)
    assert [one for one in named if one.is_problem(release)] == []


@pytest.fixture
def repository(tmp_path):
    """Return a function that writes a file, commits it and returns the commit, in a new folder."""

    def git(*words):
        name = ("-c", "user.name=a", "-c", "user.email=a@example.org")
        done = subprocess.run(["git", *name, *words], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def write(file, text):
        path = tmp_path / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        git("add", ".")
        git("commit", "-q", "-m", "A file")
        return git("rev-parse", "--short=12", "HEAD")

    git("init", "-q")
    return write


def test_figures_are_stale_once_the_program_differs(repository, tmp_path):
    def faults():
        return {one.commit: one.fault for one in check_figures.named_commits(tmp_path)}

    first = repository("src/a/__init__.py", "__version__ = '1.dev0'\n")
    gone = "0123456789ab"
    page = f"Measured 2026, commit {first}.\n\nLike commit {gone}, which is old.\n"
    repository("docs/page.md", page)
    assert faults() == {first: "", gone: "not in the history"}
    repository("src/a/__init__.py", "__version__ = '1'\n")
    repository("experiments/results/a.csv", "1\n")
    assert faults()[first] == ""
    repository("src/a/b.py", "1\n")
    assert faults()[first] == "1 files of code differ"
    measured, old = check_figures.named_commits(tmp_path)
    assert measured.is_problem(is_release=True) and not measured.is_problem(is_release=False)
    assert old.is_problem(is_release=False)
    changed = f"| commit |\n| --- |\n| part | {first} with local changes |\n"
    repository("docs/page.md", changed)
    assert faults() == {first: "measured with changes that were not committed"}
