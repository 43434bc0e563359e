"""Every rival on tables that break careless code; `make figures` has ten times as many."""

import pytest
from benchmarks.hostile_tables import REFUSED, hostile_table, trouble_of

from commod.rivals import Rival
from commod.rivals._lineup import every_method

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("quick_compilation")]

METHODS = {name: u for name, u in every_method(None).items() if isinstance(u, Rival)}
TRAINED = [name for name, update in METHODS.items() if hasattr(update, "batch_size")]
N_TABLES = 30
SHAPES = ((120, 3), (160, 3), (200, 5))


@pytest.mark.parametrize("name", [name for name in METHODS if name not in TRAINED])
def test_a_hostile_table_is_handled_or_refused(name):
    outcomes = [trouble_of(name, hostile_table(seed)) for seed in range(N_TABLES)]
    assert set(outcomes) <= {None, REFUSED}
    assert outcomes.count(None) >= 5


@pytest.mark.parametrize("name", TRAINED)
def test_a_network_trains_on_a_hostile_table(name):
    settings = {"epochs": 2, "batch_size": 64, "progress": False}
    tables = [hostile_table(seed, *shape) for seed, shape in enumerate(SHAPES)]
    assert {trouble_of(name, table, **settings) for table in tables} <= {None, REFUSED}
