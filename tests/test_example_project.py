"""The project in examples/projects runs as its README says: from the model to the monthly check."""

import runpy
import shlex
import shutil
from pathlib import Path

import pytest

pytest.importorskip("duckdb")
pytest.importorskip("skops.io")

PROJECT = Path(__file__).parents[1] / "examples" / "projects" / "loans"


def commands(name):
    """Return the arguments of each `commod` line of a file."""
    lines = (PROJECT / name).read_text("utf-8").splitlines()
    lines = [line.strip().removeprefix("- run: ") for line in lines]
    return [shlex.split(line)[1:] for line in lines if line.startswith("commod ")]


def test_the_project_finds_an_update_and_its_job_passes(tmp_path, monkeypatch, call):
    readme = (PROJECT / "README.md").read_text("utf-8")
    files = {path.name for path in PROJECT.iterdir() if path.is_file()}
    assert all(f"`{name}`" in readme for name in files - {"README.md"})
    for name in files:
        shutil.copy(PROJECT / name, tmp_path)
    monkeypatch.chdir(tmp_path)
    runpy.run_path("train.py")
    steps = commands("update.sh") + commands("ci.yml")
    assert [step[0] for step in steps] == ["debias", "verify", "show", "check", "apply"]
    for step in steps:
        code, out, err = call(*step)
        assert (code, err) == (0, "") and out, step
    (check,) = (step for step in steps if step[0] == "check")
    check[check.index("--at-least") + 1] = "0.99"
    assert call(*check)[0] == 1, "the job fails if the target does not hold"
    assert (tmp_path / "report.html").exists() and (tmp_path / "decided.csv").exists()
