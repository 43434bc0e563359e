"""What a command loads: a command that answers from a small file loads nothing heavy."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pandas as pd

from commod import Patch

PATCH = Path(__file__).parents[1] / "patch" / "stored" / "demographic_parity.json"
HEAVY = (
    *("numpy", "narwhals", "scipy.special", "scipy.stats", "sklearn", "pandas", "pyarrow"),
    *("duckdb", "jax", "matplotlib", "jinja2", "sqlglot", "rich.console"),
)
COMMANDS = {  # one after the other, with what a command may load besides what is loaded already
    "--version": "",
    "--help": "rich.console",
    "show absent.json": "numpy narwhals",
    "show patch.json": "",
    "verify patch.json absent.html": "",
    "verify patch.json patch.json": "",
    "audit absent.csv --before b --after a --sensitive g": "",
    "check patch.json absent.csv --label y --sensitive g": "",
    "apply patch.json rows.csv edited.csv --score f": "duckdb pyarrow",
    "sql patch.json --dialect duckdb --table t": "sqlglot",
}
LISTED = f"""
import contextlib, io, sys
from commod.cli import main
for command in {list(COMMANDS)!r}:
    sys.argv, shown = ["commod", *command.split()], io.StringIO()
    before = set(sys.modules)
    with contextlib.suppress(SystemExit), contextlib.redirect_stdout(shown):
        main()
    print(*(set({HEAVY!r}) & set(sys.modules) - before))
"""


def test_commands_load_what_they_need(tmp_path):
    (tmp_path / "patch.json").write_bytes(PATCH.read_bytes())
    names = [column.name for column in Patch.load(PATCH).content.ratio.frame_columns]
    pd.DataFrame({"f": [0.5], **{name: [1.0] for name in names}}).to_csv(
        tmp_path / "rows.csv", index=False
    )
    done = subprocess.run(
        [sys.executable, "-c", LISTED],
        **{"cwd": tmp_path, "capture_output": True, "text": True, "check": True},
    )
    for (command, allowed), loaded in zip(COMMANDS.items(), done.stdout.splitlines(), strict=True):
        assert set(loaded.split()) <= set(allowed.split()), command
    assert (tmp_path / "edited.csv").exists(), done.stderr
