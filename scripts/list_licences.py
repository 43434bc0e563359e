"""Write docs/licences.md: the licences of dependencies and of every bundled file.

    python scripts/list_licences.py

Licences of packages are those that the installed packages state. Run it from the root, in the
environment of `make setup`. The page has no versions, because a licence seldom changes with one.
"""

from __future__ import annotations

import re
import tomllib
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "licences.md"
SOURCE = ROOT / "src" / "commod"
OURS = "BSD-3-Clause, as the code"
BUNDLED = {  # the first pattern that fits a file names its licence
    "datasets/data/compas.csv.gz": "none stated by the source, ProPublica (LICENCE.txt beside it)",
    "datasets/data/LICENCE.txt": OURS,
    "datasets/descriptions/*.rst": OURS,
    "_explore/page/*": f"{OURS}; written here, no foreign script, style or font",
    "_reporting/render/**/*": f"{OURS}; written here, no foreign script, style or font",
    "py.typed": "an empty file",
}
HEAD = """\
# Licences

`python scripts/list_licences.py` writes this page. It lists what packages and files state about
themselves, and is not legal advice.

commod itself has the BSD-3-Clause licence.
"""


def bundled() -> dict[str, str]:
    """Return the licence of each file in the package that is not Python."""
    files = [path for path in SOURCE.rglob("*") if path.is_file()]
    names = sorted(
        str(path.relative_to(SOURCE)) for path in files if path.suffix not in (".py", ".pyc")
    )
    fits = {
        pattern: {str(p.relative_to(SOURCE)) for p in SOURCE.glob(pattern)} for pattern in BUNDLED
    }
    return {
        name: next((BUNDLED[p] for p, fitting in fits.items() if name in fitting), "unknown")
        for name in names
    }


def required(requirements: list[str]) -> set[str]:
    """Return the names of packages that requirements bring, with what these bring in turn."""
    found: set[str] = set()
    waiting = [Requirement(text) for text in requirements]
    while waiting:
        one = waiting.pop()
        name = canonicalize_name(one.name)
        if name == "commod-debiasing" or (one.marker and not one.marker.evaluate({"extra": ""})):
            continue
        known, _ = name in found, found.add(name)
        extras = ["", *one.extras]
        for text in [] if known else _requires(name):
            child = Requirement(text)
            if child.marker is None or any(child.marker.evaluate({"extra": e}) for e in extras):
                child.marker = None
                waiting.append(child)
    return found


def _requires(name: str) -> list[str]:
    try:
        return metadata.requires(name) or []
    except metadata.PackageNotFoundError:
        return []


def licence(name: str) -> str:
    """Return the licence that an installed package states."""
    try:
        stated = metadata.metadata(name)
    except metadata.PackageNotFoundError:
        return "not installed where this page was written"
    classifiers = [c for c in stated.get_all("Classifier", []) if c.startswith("License ::")]
    names = [c.rpartition(" :: ")[2] for c in classifiers]
    texts = [stated.get("License-Expression"), *names, stated.get("License")]
    text = next((text for text in texts if text and text != "OSI Approved"), "not stated")
    return re.sub(r"\s+", " ", text.splitlines()[0])


def direct() -> dict[str, list[str]]:
    """Return the requirements of an installation, and of each extra that users install."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    users = {
        f"the extra `{k}`": v for k, v in extras.items() if k not in ("all", "dev", "docs", "test")
    }
    return {"every installation": project["dependencies"], **users}


def page() -> str:
    """Return the page."""
    seen: set[str] = set()
    lines = [HEAD, "## Packages", "", "| package | comes with | licence |", "| --- | --- | --- |"]
    for source, requirements in direct().items():
        for name in sorted(required(requirements) - seen):
            lines.append(f"| {name} | {source} | {licence(name)} |")
            seen.add(name)
    lines += ["", "## Files in the package that are not Python", "", "| file | licence |"]
    lines += ["| --- | --- |", *(f"| {name} | {text} |" for name, text in bundled().items())]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
