"""Every rival on tables that break careless code; `make figures` has ten times as many."""

import pytest
from benchmarks.hostile_tables import REFUSED, SHAPES, hostile_table, rival_names, trouble_of

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("quick_compilation")]

TRAINED, OTHERS = rival_names()
# No method refuses all of these. They differ in groups, scores, labels, weights and threshold.
TABLES = [hostile_table(seed) for seed in (4, 8, 20, 23)]
NETWORK_TABLES = [hostile_table(seed, *SHAPES[0]) for seed in (0, 2)]  # one compilation


@pytest.mark.parametrize("name", OTHERS)
def test_a_hostile_table_is_handled_or_refused(name):
    outcomes = [trouble_of(name, table) for table in TABLES]
    assert set(outcomes) <= {None, REFUSED}
    assert outcomes.count(None) >= 2


@pytest.mark.parametrize("name", TRAINED)
def test_a_network_trains_on_a_hostile_table(name):
    settings = {"epochs": 2, "batch_size": 64, "progress": False}
    outcomes = {trouble_of(name, table, **settings) for table in NETWORK_TABLES}
    assert None in outcomes
    assert outcomes <= {None, REFUSED}
