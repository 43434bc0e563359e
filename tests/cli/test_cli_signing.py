"""What the command line says to somebody who signs: `audit --strict`, tied files, `verify`."""

from __future__ import annotations

import json
import sys

import numpy as np
import pandas as pd
import pytest

from commod.cli import main

pytest.importorskip("duckdb")


@pytest.fixture
def call(monkeypatch, capsys, tmp_path):
    """Return what runs the command in this process: exit code, standard output and error."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["commod", *map(str, arguments)])
        capsys.readouterr()
        code = 0
        try:
            main()
        except SystemExit as stop:
            code = stop.code or 0
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


def decided(path, *, fairer):
    """Write decisions of two groups: the later ones are fairer, or less fair, than the earlier."""
    few, many = np.tile([0, 0, 0, 1], 100), np.tile([0, 0, 1, 1], 100)
    old, new = (few, many) if fairer else (many, few)
    group = np.repeat(["a", "b"], 400)
    table = {"old": np.r_[many, old], "new": np.r_[many, new], "group": group}
    pd.DataFrame(table).to_csv(path, index=False)


AUDIT = ("--before", "old", "--after", "new", "--sensitive", "group")


def test_a_strict_audit_fails_where_a_check_blocks_signing(call, tmp_path):
    decided(tmp_path / "better.csv", fairer=True)
    decided(tmp_path / "worse.csv", fairer=False)
    code, out, _ = call("audit", "better.csv", *AUDIT, "--strict")
    assert code == 0 and "Nothing blocks signing." in out
    code, out, _ = call("audit", "worse.csv", *AUDIT)
    assert code == 0 and "1 check blocks signing: CM103." in out
    code, out, _ = call("audit", "worse.csv", *AUDIT, "--strict", "--json")
    assert code == 1 and json.loads(out)["blocks_signing"] == ["CM103"]
