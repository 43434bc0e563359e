"""The names users rely on, the command that is installed, and the facts that are written twice."""

import inspect
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import commod
from commod import exceptions, rivals
from commod.updates.commod import DEFAULT_GRID

ROOT = Path(__file__).parents[1]
MOST_NAMES = 110  # a ratchet: another public name must earn its place in the reference


def test_public_names():
    assert sorted(commod.__all__) == [
        "Audit",
        "COMMOD",
        "CalibrationDisplay",
        "ChangeDisplay",
        "ConceptDisplay",
        "ControlledDebiaser",
        "FrontierDisplay",
        "Patch",
        "Request",
        "ScoreColumn",
        "TRUSTED_TYPES",
        "__version__",
        "audit",
        "audit_frame",
        "bounds",
        "compare",
        "constraints",
        "datasets",
        "edit",
        "exceptions",
        "explain",
        "explore",
        "frontier",
        "frontier_frame",
        "metrics",
        "report",
        "rivals",
        "scorecard",
        "stability",
        "verify_report",
    ]
    for name in commod.__all__:
        assert getattr(commod, name) is not None
    assert set(commod.__all__) <= set(dir(commod))


def test_an_unknown_name_says_what_there_is():
    with pytest.raises(AttributeError, match=r"no attribute 'Comod'; it has .*COMMOD"):
        commod.Comod  # noqa: B018


def public_names():
    """Yield the module and the name of all that `__all__` lists, but for the modules themselves."""
    for module in (commod, *(getattr(commod, name) for name in commod._MODULES)):
        for name in module.__all__:
            if not inspect.ismodule(getattr(module, name)):
                yield module, name


def test_the_public_names_are_few_and_each_one_is_on_a_page():
    """Beside the reference: a name that no page and no example shows helps no user."""
    names = [name for _, name in public_names()]
    assert len(names) <= MOST_NAMES
    pages = [
        ROOT / "README.md",
        *(ROOT / "examples").rglob("*.py"),
        *(p for p in (ROOT / "docs").rglob("*.md") if not {"reference", "decisions"} & {*p.parts}),
    ]
    words = set(re.findall(r"\w+", "\n".join(page.read_text("utf-8") for page in pages)))
    assert [name for name in names if name not in {*words, "__version__"}] == []


def test_every_public_name_has_an_example_that_runs():
    """Pytest runs the docstrings of src; a constant is in an example of its page."""
    for module, name in public_names():
        thing = getattr(module, name)
        if callable(thing):
            text = inspect.getdoc(thing)
            section = re.search(r"^Examples\n-{8}\n(.*?)(?=^\S.*\n-{3,}$|\Z)", text, re.S | re.M)
            assert section and ">>>" in section[1], name
            assert thing.__module__.startswith("commod"), "pytest would not collect it"
        else:
            page = ROOT / "docs" / "reference" / f"{module.__name__.rpartition('.')[2]}.md"
            assert re.search(rf"^>>> .*\b{name}\b", page.read_text("utf-8"), re.M), name


def test_documented_defaults_of_functions_are_the_real_ones():
    for function in [
        commod.audit,
        commod.audit_frame,
        commod.explain,
        commod.frontier,
        commod.frontier_frame,
        commod.stability,
        commod.Patch.apply,
        commod.Patch.to_sql,
        commod.Patch.load,
    ]:
        parameters = inspect.signature(function).parameters
        written = dict(
            re.findall(r"^(\w+) : .*?default=(.+?)$", inspect.getdoc(function), flags=re.MULTILINE)
        )
        assert written
        for name, default in written.items():
            assert parameters[name].default == eval(default), name


def test_documented_defaults_are_the_real_ones():
    for update in [
        commod.COMMOD,
        commod.ControlledDebiaser,
        *dict.fromkeys(type(u) for u in rivals.lineup(None).values()),
    ]:
        text = inspect.getdoc(update)
        parameters = inspect.signature(update).parameters
        written = dict(re.findall(r"^(\w+) : .*?default=(.+?)$", text, flags=re.MULTILINE))
        assert set(written) == set(parameters) - {"estimator"}, update
        for name, default in written.items():
            assert parameters[name].default == eval(default), name


def test_warnings_can_be_told_apart():
    kinds = {"BaseModelWarning", "DataWarning", "TargetWarning", "TrainingWarning"}
    for name in kinds:
        kind = getattr(exceptions, name)
        assert issubclass(kind, exceptions.CommodWarning)
        assert inspect.getdoc(kind)
    assert issubclass(exceptions.CommodWarning, UserWarning)


def test_the_version_is_written_alike_everywhere():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["version"] == commod.__version__
    assert f"version: {commod.__version__}" in (ROOT / "CITATION.cff").read_text()
    assert f"## {commod.__version__}" in (ROOT / "CHANGELOG.md").read_text()


def test_the_default_grid_stays_within_the_range_of_the_paper():
    assert max(DEFAULT_GRID["lambda_fair"]) <= 10
    assert max(DEFAULT_GRID["lambda_ratio"]) <= 0.5


def run_command(*arguments, cwd=None):
    command = Path(sys.executable).with_name("commod")
    return subprocess.run(
        [command, *arguments], capture_output=True, text=True, cwd=cwd, check=False
    )


def test_the_installed_command_knows_its_version():
    done = run_command("--version")
    assert done.stdout.strip() == f"commod {commod.__version__}", done.stderr


def test_a_mistake_on_the_command_line_is_explained(call):
    code, _, err = call("demo", "--constraints", "fairness")
    assert code == 2
    assert "demographic_parity" in err
    assert "Traceback" not in err


def test_an_option_of_the_other_method_is_refused(tmp_path, call, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for options in (
        ("--method", "COMMOD", "--direction", "any"),
        ("--method", "COMMOD", "--target", "0.8"),
    ):
        code, _, err = call("demo", *options)
        assert code == 2
        assert "belongs to --method" in err


def test_a_folder_that_cannot_be_made_is_one_line_and_exit_code_2(tmp_path, call, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "taken").write_text("a file, not a folder")
    code, _, err = call("demo", "--output", "taken")
    assert code == 2
    assert err.startswith("commod: error:") and err.count("\n") == 1


def test_the_demo_says_who_changes_and_why_and_writes_the_report(demo):
    text, folder = demo
    text = " ".join(text.split())  # the lines are broken at the width of the terminal
    for words in (
        "P-rule",
        "accuracy",
        "“low risk” less often than others",
        "people whose decision changes",
        "a method that knows everybody's group needs",
        "Who changes: ",
        "evidence about the groups",
        "It gives “low risk” to people with many points, and takes it from nobody.",
        "the decision becomes favourable",
        "One person:",
        "The report: commod-demo/report.html",
        "Next: commod demo --open",
    ):
        assert words in text, words
    assert sorted(path.name for path in folder.iterdir()) == [
        "audit.json",
        "ledger.csv",
        "report.html",
    ]


def test_what_the_demo_writes_belongs_together(demo):
    _, folder = demo
    found = commod.Audit.from_json((folder / "audit.json").read_text())
    digest = commod.Ledger.digest_of(folder / "ledger.csv")
    assert digest == found.provenance.ledger_digest
    assert digest in (folder / "report.html").read_text()
    lines = (folder / "ledger.csv").read_text().splitlines()
    assert len(lines) - 1 == found.changes.n_changes
