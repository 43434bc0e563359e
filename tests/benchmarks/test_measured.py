"""Figures that are measured part by part are stored, shown, and not measured twice."""

import pytest
from benchmarks.harness import machine, results

from benchmarks import measured

PART = {"commit": "abc", "measured": "today", "processor": "a processor", "cores": 2, "seconds": 7}


@pytest.fixture
def kept(tmp_path, monkeypatch):
    monkeypatch.setattr(measured, "STORED", tmp_path / "measured" / "figures.json")
    monkeypatch.setattr(measured, "PAGE", tmp_path / "figures.md")
    for name, rows in (("later", [("gap | group", "0.2", "<= 0.1", "MISSED")]), ("first", [])):
        measured.keep(name, {**PART, "rows": rows}, ["first", "later"])
    measured.keep(
        "first", {**PART, "rows": [("rate", "0.8", ">= 0.7", "holds")]}, ["first", "later"]
    )
    return tmp_path


def test_the_page_begins_with_what_is_missed_and_names_commit_and_command(kept):
    text = (kept / "figures.md").read_text()
    assert "1 of 2 bars hold." in text
    assert text.index("- later: gap | group: 0.2, bar <= 0.1") < text.index("## first")
    assert "`make figures FIGURES=first`: today, commit abc, a processor, 2 cores, 7 s." in text
    assert "| gap \\| group | 0.2 | &lt;= 0.1 | MISSED |" in text
    assert list(results.read(kept / "measured" / "figures.json")) == ["first", "later"]


def test_figures_of_chosen_seeds_are_not_stored(monkeypatch):
    for name in measured.CHANGES:
        monkeypatch.delenv(name, raising=False)
    assert not measured.is_changed()
    monkeypatch.setenv("SEEDS", "1000..1001")
    assert measured.is_changed()


@pytest.mark.parametrize(
    ("now", "is_same"), [("abc", True), ("abd", False), ("abc with local changes", False)]
)
def test_a_part_is_measured_again_after_the_source_changed(now, is_same, monkeypatch):
    monkeypatch.setattr(machine, "commit", lambda: now)
    assert (
        machine.is_of_this_source({**PART, "commit": now if "local" in now else "abc"}) == is_same
    )
