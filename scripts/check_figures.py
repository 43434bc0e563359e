"""List the commits that pages name, and the pages whose figures an older program made.

    python scripts/check_figures.py

A page that says "Measured ..., commit X", or names X in a row of a table, states figures of
commit X. Figures are stale if X is not in the history, or if `src`, `benchmarks` or `experiments`
differ from X. Stored results and the version number may differ. Every other commit that a page
names must be in the history. The exit code is 1 if it is not, or if a released version (one without
"dev") has stale figures. Run it from the root.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
CODE = ("src", "benchmarks", "experiments", ":!experiments/results")
VERSION_LINE = "^__version__ = "
COMMIT = re.compile(
    r"(?P<measured>[Mm]easured [^\n]*?, )?\bcommit `?(?P<prose>[0-9a-f]{7,40})\b"
    r"|^\|[^\n]*\| (?P<cell>[0-9a-f]{7,40})(?P<changed> with local changes)? \|",
    re.MULTILINE,
)


class Named(NamedTuple):
    """A commit that a page names."""

    page: str
    commit: str
    is_measured: bool
    fault: str

    def is_problem(self, is_release: bool) -> bool:
        """Return whether the page must be mended before this version is handed out."""
        return bool(self.fault) and (is_release or not self.is_measured)


def named_commits(root: Path) -> list[Named]:
    """Return each commit that a page of a repository names, once for each page."""
    found: dict[tuple[str, str], bool] = {}
    changed = set()
    for path in sorted([*root.glob("*.md"), *root.glob("docs/**/*.md")]):
        page = str(path.relative_to(root))
        if page.startswith(("docs/_build", "docs/gallery", "docs/reference/generated")):
            continue
        for match in COMMIT.finditer(path.read_text("utf-8")):
            key = (page, match["prose"] or match["cell"])
            measured = bool(match["measured"] or match["cell"])
            found[key] = found.get(key, False) or measured
            changed |= {key} if match["changed"] else set()
    return [
        Named(*key, measured, _fault(root, key[1], measured, key in changed))
        for key, measured in found.items()
    ]


def _fault(root: Path, commit: str, is_measured: bool, had_changes: bool) -> str:
    """Return why a page may not name a commit like this; empty if it may."""
    if _git(root, "merge-base", "--is-ancestor", commit, "HEAD") is None:
        return "not in the history"
    if had_changes:
        return "measured with changes that were not committed"
    if not is_measured:
        return ""
    lines = _git(root, "diff", "--numstat", f"-I{VERSION_LINE}", commit, "--", *CODE) or ""
    return f"{len(lines.splitlines())} files of code differ" if lines else ""


def _git(root: Path, *arguments: str) -> str | None:
    """Return what git prints, or None if it fails."""
    done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else None


def has_history(root: Path) -> bool:
    """Return whether a folder is a git repository with all its commits."""
    return _git(root, "rev-parse", "--is-shallow-repository") == "false"


def is_release(root: Path) -> bool:
    """Return whether the version of the project is one for users."""
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    return "dev" not in project["version"]


def main() -> int:
    """Print a table of the named commits; return 1 if a page must be mended."""
    if not has_history(ROOT):
        print("This copy of the repository has no complete history.")
        return 1
    named, release = named_commits(ROOT), is_release(ROOT)
    print("| page | commit | states figures of it | fault |\n| --- | --- | --- | --- |")
    for one in named:
        states = "yes" if one.is_measured else "no"
        print(f"| {one.page} | {one.commit} | {states} | {one.fault or 'none'} |")
    return int(any(one.is_problem(release) for one in named))


if __name__ == "__main__":
    sys.exit(main())
