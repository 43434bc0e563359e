"""Every rival on tables that break careless code; `make figures` has ten times as many."""

import pytest
from benchmarks.hostile_tables import REFUSED, SHAPES, hostile_table, rival_names, trouble_of

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("quick_compilation")]

TRAINED, OTHERS = rival_names()
N_TABLES = 12
NETWORK_SHAPES = SHAPES[:1] * len(SHAPES)  # one shape, one compilation
TABLES = [hostile_table(seed) for seed in range(N_TABLES)]


@pytest.mark.parametrize("name", OTHERS)
def test_a_hostile_table_is_handled_or_refused(name):
    outcomes = [trouble_of(name, table) for table in TABLES]
    assert set(outcomes) <= {None, REFUSED}
    assert outcomes.count(None) >= N_TABLES // 6


@pytest.mark.parametrize("name", TRAINED)
def test_a_network_trains_on_a_hostile_table(name):
    settings = {"epochs": 2, "batch_size": 64, "progress": False}
    tables = [hostile_table(seed, *shape) for seed, shape in enumerate(NETWORK_SHAPES)]
    assert {trouble_of(name, table, **settings) for table in tables} <= {None, REFUSED}
