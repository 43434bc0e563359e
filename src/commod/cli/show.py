"""`commod show`: a patch as a scorecard on one page, or how it differs from another."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Annotated

import typer

from commod.cli import _options as options
from commod.cli._say import AsJson, Quiet, Say

__all__ = ["EXAMPLES", "command"]

EXAMPLES = (
    "commod show patch.json",
    "commod show patch.json --diff newer.json",
)


def command(
    patch: Annotated[Path, typer.Argument(help="The patch file.")],
    diff: Annotated[
        Path | None, typer.Option(help="Another patch: say what differs in it.")
    ] = None,
    every_line: Annotated[
        bool, typer.Option("--all", help="Every line of the scorecard, however many.")
    ] = False,
    sha256: options.Sha256 = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Print a patch as a scorecard that people can read."""
    from commod import Patch

    say = Say(as_json, quiet)
    loaded = Patch.load(patch, sha256)
    if diff is not None:
        said = loaded.diff(Patch.load(diff))
        for sentence in said or ["Both patches are alike."]:
            say.line(sentence)
        say.result({"differences": said})
        return
    with open(patch, "rb") as file:  # as it is on disk, however it is laid out
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    say.line(loaded.to_text(every_term=every_line))
    say.line(f"SHA-256 of the file: {digest}")
    say.result({"sha256": digest, "patch": json.loads(loaded.to_json())})
