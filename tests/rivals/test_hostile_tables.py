"""Every rival on tables that break careless code; `make figures` has ten times as many."""

import pytest
from benchmarks.hostile_tables import REFUSED, SHAPES, hostile_table, rival_names, trouble_of

from benchmarks import hostile_tables
from commod._solvers.training import loop

pytestmark = pytest.mark.usefixtures("quick_compilation")

TRAINED, OTHERS = rival_names()
# No method refuses all of these. They differ in groups, scores, labels, weights and threshold.
TABLES = [hostile_table(seed) for seed in (4, 8, 20, 23)]
NETWORK_TABLE = hostile_table(2, *SHAPES[0])


@pytest.fixture(autouse=True)
def one_strength(monkeypatch):
    """Let sweeps have one strength beside no change."""
    monkeypatch.setattr(hostile_tables, "N_STRENGTHS", 1)


@pytest.mark.parametrize("name", OTHERS)
def test_a_hostile_table_is_handled_or_refused(name):
    settings = {"max_rows": 60} if name == "FCGP" else {}
    first = OTHERS.index(name) % len(TABLES)  # every table is tried first by some methods
    for table in TABLES[first:] + TABLES[:first]:
        outcome = trouble_of(name, table, **settings)
        if outcome is None:
            return
        assert outcome == REFUSED
    pytest.fail("refuses every table")


@pytest.mark.parametrize("name", TRAINED)
def test_a_network_trains_on_a_hostile_table(name, monkeypatch):
    # half of the rows and all of them: both run the same program
    monkeypatch.setattr(loop, "padded_size", lambda n: -(-n // 128) * 128)
    settings = {"epochs": 2, "batch_size": 64, "progress": False}
    assert trouble_of(name, NETWORK_TABLE, **settings) is None
