"""Make the description for the package index of README.md, when the package is built.

A package index shows one page. Pictures and links to other files of the repository do not work
there, so pictures are left out and such links become plain text. Links into the web stay.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

try:
    from hatchling.metadata.plugin.interface import MetadataHookInterface
except ImportError:  # the tests call `package_readme` without the build tool
    MetadataHookInterface = object

NOTE = "The pages that this text names are in the folder `docs` of the source distribution."
FENCES = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
PICTURE = re.compile(r"^!\[[^\]]*\]\((?!https?:)[^)]*\)\n\n?", re.MULTILINE)
LINK = re.compile(r"(?<!!)\[([^\]]+)\]\((?!https?:)[^)]*\)")


def package_readme(text: str) -> str:
    """Return README.md without pictures and links that need the repository."""
    parts = FENCES.split(text)  # blocks of code have odd places and stay as they are
    parts[::2] = [LINK.sub(r"\1", PICTURE.sub("", part)) for part in parts[::2]]
    title, _, rest = "".join(parts).partition("\n\n")
    return f"{title}\n\n{NOTE}\n\n{rest}"


class ReadmeHook(MetadataHookInterface):
    """Give the description to the metadata of the package."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the field `readme`."""
        text = (Path(self.root) / "README.md").read_text("utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": package_readme(text)}
