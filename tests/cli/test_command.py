"""Options as dataclasses: typer reads every field, and an error names the option."""

from dataclasses import dataclass
from typing import ClassVar

import pytest
import typer
from typer.testing import CliRunner

from commod.cli._command import named_columns, option, with_options
from commod.cli._options import ConstraintOptions
from commod.exceptions import InputError
from commod.metrics._constraint import CONSTRAINTS


@dataclass(frozen=True, kw_only=True)
class Cake:
    PANEL: ClassVar[str] = "Cake"

    fillings: list[str] = option([], "--filling", help="A filling.", is_column=True)
    label: str | None = option(None, help="A label.", sets=("y", "y_true"), is_column=True)
    layers: int = option(2, help="How many layers.")
    is_iced: bool = option(False, help="Whether it has icing.")


def run(command, *arguments):
    app = typer.Typer()
    app.command()(with_options(command))
    return CliRunner().invoke(app, arguments, env={"COLUMNS": "120"})


def test_a_command_gets_its_options_as_one_object():
    cakes = []

    def bake(name: str, cake: Cake, seed: int = 0) -> None:
        cakes.append((name, cake, seed))

    assert run(bake, "Anna").exit_code == 0
    options = ("--filling", "a", "--filling", "b", "--layers", "3", "--is-iced", "--seed", "7")
    assert run(bake, "Bert", *options).exit_code == 0
    assert cakes == [
        ("Anna", Cake(), 0),
        ("Bert", Cake(fillings=["a", "b"], layers=3, is_iced=True), 7),
    ]


def test_the_help_has_a_panel_with_types_and_defaults():
    def bake(cake: Cake) -> None:
        """Bake a cake."""

    text = run(bake, "--help").output
    for words in ("Bake a cake.", "─ Cake ─", "--filling", "How many layers. [default: 2]"):
        assert words in text, text
    assert "--no-is-iced" not in text


@pytest.mark.parametrize(
    ("parameter", "expected"),
    [
        ("layers", "--layers: wrong"),
        ("y", "--label: wrong"),
        ("y_true", "--label: wrong"),
        ("seed", "--seed: wrong"),
        ("n_jobs", "wrong"),
        (None, "wrong"),
    ],
)
def test_an_error_names_the_option_that_sets_the_parameter(parameter, expected):
    def bake(cake: Cake, seed: int = 0) -> None:
        raise InputError("wrong", parameter=parameter)

    assert str(run(bake).exception) == expected


def test_columns_come_with_the_options_that_name_them():
    cake = Cake(fillings=["a", "b"], label="c")
    assert named_columns(cake, Cake()) == [
        ("--filling", "a"),
        ("--filling", "b"),
        ("--label", "c"),
    ]


def test_the_help_names_every_constraint():
    def fit(constraint: ConstraintOptions) -> None:
        pass

    text = " ".join(run(fit, "--help").output.split())
    assert all(name in text for name in CONSTRAINTS), text
