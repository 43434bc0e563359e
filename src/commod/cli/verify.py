"""`commod verify`: check that a patch and the report that was signed belong together."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from commod.cli import _options as options
from commod.cli._command import with_options
from commod.cli._printing import Printer

EXAMPLES = (
    "commod verify patch.json report.html",
    "commod verify patch.json report.md --sha256 $SIGNED",
)


@with_options
def command(
    patch: options.PatchFile,
    report: Annotated[Path, typer.Argument(help="The report: .html, .md or .json.")],
    accepted: options.PatchOptions,
    output: options.OutputOptions,
) -> None:
    """Check that a patch and a report belong together, and name each field that differs.

    Exit code 0: they agree. 1: they differ, or the report was edited. 2: bad input, for example a
    damaged patch, or a report that carries no patch.
    """
    from commod import verify_report

    printer = Printer(output)
    result = verify_report(patch, report, sha256=accepted.sha256)
    printer.page(str(result))
    printer.json(
        {
            "agrees": result.passed,
            "differences": [
                {"field": d.field, "patch": d.in_patch, "report": d.in_report}
                for d in result.differences
            ],
            "patch_sha256": result.patch_sha256,
            "report_file_sha256": result.report_file_sha256,
        }
    )
    if not result.passed:
        raise typer.Exit(1)
