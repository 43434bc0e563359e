"""A machine without JAX says so where JAX is needed, and works everywhere else."""

import tomllib
from pathlib import Path

import numpy as np
import pytest
from packaging.requirements import Requirement

from commod import COMMOD, ControlledDebiaser, ScoreColumn
from commod._io import optional
from commod.exceptions import InputError
from commod.rivals import FRAPPE, RNF, AdversarialDebiasing, lineup

PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"
TRAINED = (COMMOD, AdversarialDebiasing, FRAPPE, RNF)


@pytest.fixture
def without_jax(monkeypatch):
    monkeypatch.setattr(optional, "find_spec", lambda package: None)


@pytest.fixture
def people():
    rng = np.random.default_rng(0)
    group = np.repeat(["a", "b"], 100)
    column = rng.normal(size=200) + (group == "a")
    score = 1 / (1 + np.exp(-column))
    return np.column_stack([column, score]), column > 0.3, group


@pytest.mark.parametrize("method", TRAINED)
def test_a_method_that_trains_names_jax_and_another_way(method, without_jax, people):
    X, y, group = people
    way_out = rf"{method.__name__} is trained with JAX.*commod-debiasing\[paper\]"
    with pytest.raises(InputError, match=way_out):
        method(ScoreColumn(1), random_state=0).fit(X, y, sensitive_features=group)


def test_controlled_debiaser_needs_no_jax(without_jax, people):
    X, _, group = people
    update = ControlledDebiaser(ScoreColumn(1), target=0.8)
    assert update.fit(X, sensitive_features=group).status_


def test_the_lineup_leaves_out_what_needs_jax(without_jax):
    methods = lineup(ScoreColumn("score"))
    for method in TRAINED:
        assert method.__name__ not in methods
        assert "JAX" in methods.left_out[method.__name__]


@pytest.mark.parametrize(
    ("platform", "machine", "is_installed"),
    [
        ("linux", "x86_64", True),
        ("linux", "aarch64", True),
        ("darwin", "arm64", True),
        ("win32", "AMD64", True),
        ("darwin", "x86_64", False),
        ("linux", "ppc64le", False),
        ("linux", "i686", False),
        ("win32", "ARM64", False),
    ],
)
def test_the_extra_has_jax_only_where_it_has_wheels(platform, machine, is_installed):
    project = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"]
    assert [one for one in project["dependencies"] if one.startswith("jax")] == []
    (jax,) = map(Requirement, project["optional-dependencies"]["paper"])
    environment = {"sys_platform": platform, "platform_machine": machine, "extra": ""}
    assert jax.marker.evaluate(environment) == is_installed
