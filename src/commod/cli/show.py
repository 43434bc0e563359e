"""`commod show`: print a patch as a scorecard, or how it differs from another patch."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Annotated

import typer

from commod.cli import _options as options
from commod.cli._command import with_options
from commod.cli._printing import Printer

EXAMPLES = (
    "commod show patch.json",
    "commod show patch.json --diff newer.json",
)


@with_options
def command(
    patch: options.PatchFile,
    accepted: options.PatchOptions,
    output: options.OutputOptions,
    diff: Annotated[
        Path | None, typer.Option(help="Another patch file: print how it differs from the first.")
    ] = None,
    every_term: Annotated[
        bool, typer.Option("--all", help="Print every term of the scorecard, however many.")
    ] = False,
) -> None:
    """Print a patch as a scorecard that people can read."""
    from commod import Patch

    printer = Printer(output)
    loaded = Patch.load(patch, accepted.sha256)
    if diff is not None:
        differences = loaded.diff(Patch.load(diff))
        for sentence in differences or ["Both patches are alike."]:
            printer.sentence(sentence)
        printer.json({"differences": differences})
        return
    with open(patch, "rb") as file:  # the file's own bytes, however its JSON is laid out
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    printer.page(loaded.to_text(every_term=every_term))
    printer.sentence(f"SHA-256 of the file: {digest}")
    printer.json({"sha256": digest, "patch": json.loads(loaded.to_json())})
