"""Options as dataclasses: typer reads every field, and an error names the option."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

import narwhals as nw
import polars as pl
import pytest
import typer
from typer.main import get_command
from typer.testing import CliRunner

from commod.cli import app
from commod.cli._command import (
    REMOVED_OPTIONS,
    named_columns,
    option,
    with_defaults,
    with_options,
)
from commod.cli._rows import MOST_VALUES, _values
from commod.exceptions import InputError
from commod.metrics._constraint import CONSTRAINTS
from tables_of_cases import every_line


@dataclass(frozen=True, kw_only=True)
@with_defaults
class Cake:
    command: str = ""
    name: str = option(("bake", "eat"), "Whose cake.", argument=True)
    fillings: list[str] = option(("bake",), "A filling.", "--filling", panel="Cake", is_column=True)
    label: str | None = option(("bake",), "A label.", panel="Cake", sets="y y_true", is_column=True)
    layers: int = option(("bake",), "How many layers.", panel="Cake", default=2)
    is_iced: bool = option(("bake",), "Whether it has icing.", panel="Cake")
    with_fork: bool = option(("eat",), "Whether to use a fork.", panel="Cake")


def run(command, *arguments):
    app = typer.Typer()
    app.command()(with_options()(command))
    return CliRunner().invoke(app, arguments, env={"COLUMNS": "120"})


def test_a_command_gets_its_options_as_one_object():
    cakes = []

    def bake(cake: Cake) -> None:
        cakes.append(cake)

    assert run(bake, "Anna").exit_code == 0
    options = ("--filling", "a", "--filling", "b", "--layers", "3", "--is-iced")
    assert run(bake, "Bert", *options).exit_code == 0
    assert cakes == [
        Cake(command="bake", name="Anna"),
        Cake(command="bake", name="Bert", fillings=["a", "b"], layers=3, is_iced=True),
    ]
    assert run(bake, "Bert", "--with-fork").exit_code == 2, "an option of another command"


def test_the_help_has_a_panel_with_types_and_defaults():
    def bake(cake: Cake) -> None:
        """Bake a cake."""

    text = run(bake, "--help").output
    for words in ("Bake a cake.", "─ Cake ─", "--filling", "How many layers. [default: 2]"):
        assert words in text, text
    assert "--no-is-iced" not in text


@every_line(
    "parameter, expected",
    [
        ("layers", "--layers: wrong"),
        ("y", "--label: wrong"),
        ("y_true", "--label: wrong"),
        ("n_jobs", "wrong"),
        (None, "wrong"),
    ],
)
def test_an_error_names_the_option_that_sets_the_parameter(parameter, expected):
    def bake(cake: Cake) -> None:
        raise InputError("wrong", parameter=parameter)

    assert str(run(bake, "Anna").exception) == expected


def test_columns_come_with_the_options_that_name_them():
    assert named_columns(Cake(fillings=["a", "b"], label="c")) == [
        ("--filling", "a"),
        ("--filling", "b"),
        ("--label", "c"),
    ]


def test_the_help_names_every_constraint():
    text = next(
        p.help for p in get_command(app).commands["debias"].params if p.name == "constraint"
    )
    assert all(name in text for name in CONSTRAINTS), text


# -- all commands together ------------------------------------------------------------------------


def names_in(text):
    return set(re.findall(r"(?<![\w-])--[a-z][a-z0-9-]*", text))


def options_of(command):
    return [param for param in command.params if param.param_type_name == "option"]


def test_all_commands_together_have_at_most_140_options():
    root = get_command(app)
    n_options = sum(map(len, map(options_of, (root, *root.commands.values()))))
    assert n_options <= 140


def test_explore_takes_the_very_options_of_debias():
    commands = get_command(app).commands
    debias, explore = commands["debias"], commands["explore"]
    shared = [param for param in explore.shared if param in debias.params]
    assert len(shared) > 25
    assert {param.name for param in options_of(explore)} == {"no_browser", "port"}


def test_the_help_of_debias_fits_on_two_screens_and_help_all_has_all_options(call, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    _, short, _ = call("debias", "--help")
    _, whole, _ = call("debias", "--help-all")
    panels = ("What to reach", "Whom to change", "Columns", "Model", "Output", "Advanced")
    places = [whole.index(f"─ {panel} ─") for panel in panels]
    assert places == sorted(places) and "─ Advanced ─" not in short
    assert len(short.splitlines()) <= 80
    debias = get_command(app).commands["debias"]
    known = {param.opts[0] for param in debias.params if param.opts[0].startswith("--")}
    assert known <= names_in(whole)
    assert names_in(short) < names_in(whole)


def test_options_of_every_command_stand_before_or_after_its_name(folder, call):
    told = ("audit", "decided.csv", "--before", "old", "--after", "new", "--sensitive", "race")
    after, before = (json.loads(call(*line)[1]) for line in ((*told, "--json"), ("--json", *told)))
    for answer in (after, before):
        del answer["audit"]["provenance"]["created"]  # the second may have passed
    assert after == before
    code, _, err = call("--force", "verify", "a.json", "b.html")
    assert code == 2 and "--force does not go with" in err and "verify. Leave it out." in err


@pytest.mark.parametrize("name", sorted(REMOVED_OPTIONS))
def test_a_removed_option_names_its_successor(call, name):
    command = "check" if name == "--score-is-for" else "debias"
    code, _, err = call(command, "a.csv", "b.csv", "--sensitive", "race", name, "1")
    assert code == 2 and err.count("\n") == 1
    assert (
        f"commod {command} has no option {name} since version 0.3. {REMOVED_OPTIONS[name]}" in err
    )
    debias = get_command(app).commands["debias"]
    assert names_in(REMOVED_OPTIONS[name]) <= {param.opts[0] for param in debias.params}


def test_a_label_or_a_group_has_at_most_a_thousand_values():
    frame = nw.from_native(pl.LazyFrame({"x": range(MOST_VALUES + 1)}))
    assert sorted(_values(frame.head(MOST_VALUES), "x")) == list(range(MOST_VALUES))
    with pytest.raises(InputError, match="has more than 1,000 values"):
        _values(frame, "x")
