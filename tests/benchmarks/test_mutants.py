"""Mutants are small faults that still parse, spread over rooms by lines, the same for a seed."""

import ast
import json
from pathlib import Path

import pytest
from benchmarks.mutants import running
from benchmarks.mutants.making import mutants_of, sample, shares_of
from benchmarks.mutants.running import IMPORT, PACKAGE, Reached, cached_lines, outcome_of

ROOT = Path(__file__).parents[2]
SOURCE = '''"""A module."""
from __future__ import annotations

LIMIT: int = 3


def halve(values: list[int], least: int = 1) -> list[int]:
    """Return 2 halves."""
    if least < 0 and not values:
        raise ValueError(f"{least + 1} is too small")
    total = -(sum(values) + (least)) / 2
    values[0] = max(total, least)
    return values  # é
'''


def test_every_kind_of_fault_is_made_where_it_stands():
    made = {
        (m.kind, m.applied(SOURCE).splitlines()[m.begin[0] - 1]) for m in mutants_of(SOURCE, "")
    }
    assert made == {
        ("constant", "LIMIT: int = 4"),
        ("constant", "def halve(values: list[int], least: int = 2) -> list[int]:"),
        ("comparison", "    if least <= 0 and not values:"),
        ("constant", "    if least < 1 and not values:"),
        ("negation", "    if least < 0 or not values:"),
        ("negation", "    if least < 0 and (values):"),
        ("statement", "        pass"),
        ("sign", "    total = (sum(values) + (least)) / 2"),
        ("sign", "    total = -(sum(values) - (least)) / 2"),
        ("sign", "    total = -(sum(values) + (least)) * 2"),
        ("constant", "    total = -(sum(values) + (least)) / 3"),
        ("arguments", "    values[0] = max(least, total)"),
        ("statement", "    pass"),
    }


def test_mutants_of_a_room_parse_differ_and_are_the_same_for_a_seed():
    room = ROOT / "src" / "commod" / "_statistics"
    mutants = sample(ROOT, room, 60, seed=3)
    assert mutants == sample(ROOT, room, 60, seed=3)
    assert len({m.kind for m in mutants}) == 6 and len(mutants) == 60
    for mutant in mutants:
        source = (ROOT / mutant.file).read_text("utf-8")
        changed = mutant.applied(source)
        assert changed != source
        ast.parse(changed)


def test_rooms_get_mutants_in_proportion_to_their_lines():
    assert shares_of({"a": 500, "b": 300, "c": 200}, 10) == {"a": 5, "b": 3, "c": 2}
    assert sum(shares_of({"a": 1, "b": 1, "c": 1}, 10).values()) == 10


def test_a_mutant_is_judged_by_the_tests_that_reach_its_line_the_cheapest_first():
    (mutant,) = mutants_of("x = f()\ny = z < w\n", "a.py")
    tests = {"t::dear": {"seconds": 80.0}, "t::cheap": {"seconds": 1.0}, "u": {"seconds": 20.0}}
    reached = Reached(tests, {"a.py": {2: {"t::dear", "t::cheap"}}}, dict.fromkeys(tests, 5))
    assert reached.tests_of(mutant) == ["t::cheap", "t::dear"]


def test_what_runs_on_import_is_judged_by_all_tests_of_the_file(tmp_path):
    names = ["t::reaches", "t::imports", "t::elsewhere"]
    tests = {name: {"passed": True, "seconds": 1.0, "fixtures": []} for name in names}
    (tmp_path / "tests-1.json").write_text(json.dumps(tests))
    data = pytest.importorskip("coverage").CoverageData(str(tmp_path / "data"))
    file = f"/tree/{PACKAGE}/a.py"
    for context, lines in ((IMPORT, [1]), ("t::imports", [1]), ("t::reaches", [3])):
        data.set_context(context)
        data.add_lines({file: lines})
    data.write()
    reached = Reached.read(tmp_path)
    (mutant,) = mutants_of("LIMIT = 2.5\n", f"{PACKAGE}/a.py")
    assert sorted(reached.tests_of(mutant)) == ["t::imports", "t::reaches"]


def test_what_runs_once_and_is_kept_is_judged_as_what_runs_on_import(tmp_path, monkeypatch):
    monkeypatch.setattr(running, "ROOT", tmp_path)
    source = "@cache\ndef kept():\n    return 1\n\n\ndef anew():\n    return 2\n"
    assert cached_lines(source) == {2, 3}
    file = tmp_path / PACKAGE / "a.py"
    file.parent.mkdir(parents=True)
    file.write_text(source)
    tests = {name: {"passed": True, "seconds": 1.0, "fixtures": []} for name in ("t::a", "t::b")}
    (tmp_path / "tests-1.json").write_text(json.dumps(tests))
    data = pytest.importorskip("coverage").CoverageData(str(tmp_path / "data"))
    for context, lines in (("t::a", [3]), ("t::b", [7])):
        data.set_context(context)
        data.add_lines({str(file): lines})
    data.write()
    kept, anew = mutants_of(source, f"{PACKAGE}/a.py")
    reached = Reached.read(tmp_path)
    assert (sorted(reached.tests_of(kept)), reached.tests_of(anew)) == (["t::a", "t::b"], ["t::b"])


def test_tests_that_all_skip_have_judged_nothing():
    for code, output, outcome in [
        (0, "3 passed, 2 skipped in 1.00s", "survived"),
        (0, "2 skipped in 0.10s", "skipped"),
        (5, "1 skipped in 0.10s", "skipped"),  # a whole file
        (1, "1 failed, 2 passed in 0.10s", "killed"),
        (2, "1 error in 0.10s", "killed"),  # the package cannot be imported
    ]:
        assert outcome_of(code, output) == outcome
