"""The names users rely on, the command that is installed, and the facts that are written twice."""

import inspect
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import commod
from commod import bounds, datasets, exceptions, metrics, rivals
from commod.updates.commod import DEFAULT_GRID

ROOT = Path(__file__).parents[1]
ABSTRACT = {"AwareRival", "LearningRows", "Rows"}  # parts of `Rival`, whose example shows them


def test_public_names():
    assert sorted(commod.__all__) == [
        "COMMOD",
        "Comparison",
        "ControlledDebiaser",
        "Frontier",
        "ScoreColumn",
        "__version__",
        "bounds",
        "compare",
        "datasets",
        "exceptions",
        "frontier",
        "metrics",
        "rivals",
        "scorecard",
    ]
    for name in commod.__all__:
        assert getattr(commod, name) is not None
    assert set(commod.__all__) <= set(dir(commod))


def test_an_unknown_name_says_what_there_is():
    with pytest.raises(AttributeError, match=r"no attribute 'Comod'; it has COMMOD"):
        commod.Comod  # noqa: B018


@pytest.mark.parametrize(
    "thing",
    [
        commod.COMMOD,
        commod.Comparison,
        commod.ControlledDebiaser,
        commod.Frontier,
        commod.ScoreColumn,
        commod.compare,
        commod.frontier,
        *(getattr(rivals, name) for name in rivals.__all__ if name not in ABSTRACT),
        *(getattr(metrics, name) for name in metrics.__all__ if name != "GroupRates"),
        *(getattr(datasets, name) for name in datasets.__all__),
        *(getattr(bounds, name) for name in bounds.__all__),
    ],
    ids=lambda thing: thing.__name__,
)
def test_every_public_name_has_an_example(thing):
    assert ">>>" in inspect.getdoc(thing)


@pytest.mark.parametrize(
    "update",
    [commod.COMMOD, commod.ControlledDebiaser, *{type(u) for u in rivals.lineup(None).values()}],
)
def test_documented_defaults_are_the_real_ones(update):
    text = inspect.getdoc(update)
    parameters = inspect.signature(update).parameters
    written = dict(re.findall(r"^(\w+) : .*?default=(.+?)$", text, flags=re.MULTILINE))
    assert set(written) == set(parameters) - {"estimator"}
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


def test_a_mistake_on_the_command_line_is_explained():
    done = run_command("demo", "--constraints", "fairness")
    assert done.returncode == 2
    assert "demographic_parity" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_folder_that_cannot_be_made_is_one_line_and_exit_code_2(tmp_path):
    (tmp_path / "taken").write_text("a file, not a folder")
    done = run_command("demo", "--lambda-fair", "0", "--output", "taken", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("commod: error:")


def test_the_demo_shows_people_points_and_pictures(tmp_path):
    done = run_command("demo", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    text = " ".join(done.stdout.split())  # the lines are broken at the width of the terminal
    for words in (
        "P-rule",
        "disparate mistreatment",
        "accuracy",
        "white: called high risk",
        "decisions change",
        "they lose",
        "points in r",
        "concept 0",
        "Next: commod demo --constraints equalized_odds",
    ):
        assert words in text, words
    pictures = sorted(path.name for path in (tmp_path / "commod-demo").iterdir())
    assert pictures == ["rates.png", "ratio.png", "scorecard.png"]
    for picture in pictures:
        assert f"saved commod-demo/{picture}" in text
