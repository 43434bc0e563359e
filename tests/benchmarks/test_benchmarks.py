"""The runner of `make bench`: what it puts together, judges and writes; nothing is timed here."""

import json
import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from benchmarks.environments import is_ready
from benchmarks.harness.bars import figures
from benchmarks.harness.figures import Figure, evaluate, number, spread
from benchmarks.harness.page import CHANGES, PICTURE, page
from benchmarks.harness.picture import draw_changes, draw_rows, line_of
from benchmarks.harness.results import Value, gather, in_order, keep, merged, read
from benchmarks.harness.running import (
    Case,
    Place,
    Processes,
    Step,
    in_groups,
    read_answer,
    run_step,
    steps_of,
)
from benchmarks.speed.settings import FULL, QUICK
from experiments.frames import read_frames
from experiments.pictures.changes import draw_changes as draw_figure

from benchmarks import bench

TOLD = {
    "measured": "2026-01-02 03:04 UTC",
    "commit": "abc",
    "cores": 2,
    "processor": "A processor",
    "memory_gb": 24,
    "system": "Linux x86_64",
    "threads": "",
    "load": 0.5,
    "seconds": 60.0,
}
VERSIONS = {"python": "3.11.7", "packages": {"numpy": "2.4.6"}}


def make_case(name="fit", part="rows", group="10 rows", turns=1, cache="none"):
    return Case(part, f"bench_{part}.py::test[{name}]", group, name, "commod", turns, cache)


def make_turn(seconds, turn=0, **extra):
    return {
        "turn": turn,
        "rounds": [seconds],
        "seconds": seconds,
        "extra": extra,
        "versions": dict(VERSIONS),
    }


def make_parts(**turns):
    """Return a part "rows" with benchmarks of one group, each with seconds by turn."""
    measured = [
        (Step(make_case(name), i), make_turn(seconds, i))
        for name, found in turns.items()
        for i, seconds in enumerate(found)
    ]
    parts = gather(measured)
    parts["rows"].update(TOLD)
    return parts


def ratio(**settings):
    return Figure(
        "rows", "fit / copy", Value("10 rows", "fit"), Value("10 rows", "copy"), **settings
    )


def test_benchmarks_of_a_group_take_turns_and_caches_are_filled_first():
    first, cached, once = (
        make_case("a", turns=2),
        make_case("b", turns=2, cache="filled"),
        make_case("c"),
    )
    other = make_case("d", group="20 rows")
    order = [(step.case.name, step.turn) for step in steps_of([first, cached, once, other])]
    assert order == [("b", -1), ("a", 0), ("b", 0), ("c", 0), ("a", 1), ("b", 1), ("d", 0)]


def test_commod_has_bytecode_as_installed_packages_have(monkeypatch, tmp_path):
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    variables = Place(tmp_path, quick=False).variables()
    assert "PYTHONDONTWRITEBYTECODE" not in variables
    assert variables["OMP_NUM_THREADS"] == "2"


def test_benchmarks_of_a_group_stand_together_wherever_they_are_declared():
    cases = [make_case("a"), make_case("b", group="20 rows"), make_case("c")]
    assert [case.name for case in in_groups(cases)] == ["a", "c", "b"]


def test_ratios_are_taken_turn_by_turn():
    # over all turns both have the same median; turn by turn ours is twice the copy, or half of it
    parts = make_parts(fit=[2.0, 4.0, 1.0], copy=[1.0, 2.0, 2.0])
    assert evaluate(ratio(), parts).values == [2.0, 2.0, 0.5]


def test_a_turn_that_only_one_of_two_has_is_no_ratio():
    parts = make_parts(fit=[2.0, 6.0], copy=[1.0])
    assert evaluate(ratio(), parts).values == [2.0]


def test_a_turn_that_fills_a_cache_is_not_counted():
    case = make_case(cache="filled")
    parts = gather([(Step(case, -1), make_turn(9.0, -1)), (Step(case, 0), make_turn(1.0))])
    (benchmark,) = parts["rows"]["benchmarks"]
    assert [turn["seconds"] for turn in benchmark["turns"]] == [1.0]


def test_a_missed_bar_fails_a_run_and_a_missed_goal_does_not():
    for settings, verdict, fails in [
        ({"bar": 3.0}, "holds", False),
        ({"bar": 1.5}, "MISSED", True),
        ({"bar": 1.5, "sense": ">="}, "holds", False),
        ({"bar": 3.0, "sense": ">="}, "MISSED", True),
        ({"bar": 3.0, "goal": 1.5}, "holds, goal missed", False),
        ({"goal": 1.5}, "MISSED (a goal)", False),
        ({}, "", False),
    ]:
        found = evaluate(ratio(**settings), make_parts(fit=[2.0], copy=[1.0]))
        assert (found.verdict, found.fails(whole_run=True)) == (verdict, fails)
        assert found.fails(whole_run=False) == fails


def test_a_figure_whose_benchmark_failed_is_not_called_held():
    for settings, fails in [({"bar": 3.0}, True), ({"goal": 3.0}, False)]:
        found = evaluate(ratio(**settings), make_parts(copy=[1.0]))
        assert found.verdict == "not measured"
        assert found.fails(whole_run=True) == fails
        assert not found.fails(whole_run=False)


@pytest.mark.parametrize(
    ("words", "code"), [([], 1), (["--only", "rows"], 0), (["--match", "fit"], 0), (["--quick"], 0)]
)
@pytest.mark.parametrize("part", ["rows", "start"], ids=["a benchmark", "a whole part"])
def test_a_bar_that_nobody_measured_fails_a_whole_run_only(part, words, code, monkeypatch, capsys):
    unmeasured = ratio(bar=3.0)._replace(part=part)
    monkeypatch.setattr(bench, "figures", lambda settings: [unmeasured])
    parts, options = make_parts(copy=[1.0]), bench.read_options(words)
    assert bench.conclude(parts, FULL, options, bench.RESULTS / "x") == code
    assert ("not measured: fit / copy: –, <= 3" in capsys.readouterr().out) == bool(code)


def test_a_missed_bar_fails_every_run_but_a_quick_one(monkeypatch):
    for words, code in [([], 1), (["--only", "rows"], 1), (["--quick"], 0)]:
        monkeypatch.setattr(bench, "figures", lambda settings: [ratio(bar=1.5)])
        parts, options = make_parts(fit=[2.0], copy=[1.0]), bench.read_options(words)
        assert bench.conclude(parts, FULL, options, bench.RESULTS / "x") == code


def test_a_partial_run_replaces_its_own_parts_only(tmp_path):
    path = tmp_path / "results" / "bench.json"
    keep({"rows": {"benchmarks": ["old"]}, "start": {"benchmarks": ["kept"]}}, path)
    keep(merged(read(path), {"rows": {"benchmarks": ["new"]}}), path)
    assert read(path) == {"rows": {"benchmarks": ["new"]}, "start": {"benchmarks": ["kept"]}}


def test_results_that_cannot_be_written_leave_the_earlier_ones(tmp_path):
    path = tmp_path / "bench.json"
    keep({"start": {}}, path)
    with pytest.raises(TypeError):
        keep({"start": {}, "rows": object()}, path)
    assert read(path) == {"start": {}}
    assert [file.name for file in tmp_path.iterdir()] == ["bench.json"]


def test_benchmarks_are_shown_in_the_order_they_are_declared():
    parts = make_parts(copy=[1.0], fit=[2.0])
    in_order(parts, [("rows", "10 rows", "fit"), ("rows", "10 rows", "copy")])
    assert [b["name"] for b in parts["rows"]["benchmarks"]] == ["fit", "copy"]


def test_the_page_says_what_was_missed_and_what_failed():
    parts = make_parts(fit=[2.0, 4.0], copy=[1.0, 1.0])
    failed = (Step(make_case("audit"), 0), {"turn": 0, "failed": "line\nMemoryError: too much"})
    parts["rows"]["benchmarks"] += gather([failed])["rows"]["benchmarks"]
    text = page(parts, [ratio(bar=1.5)], picture=False)
    assert "0 of 1 bars hold, and 0 of 0 goals are reached." in text
    assert "| fit / copy | 3.00 (2.00 to 4.00) | <= 1.5 | **MISSED** |" in text
    assert "| 10 rows | audit | failed |" in text
    assert "10 rows, audit failed: `MemoryError: too much`" in text
    assert "A processor, 2 cores, 24 GB" in text
    assert "| commod | 3.11.7 | numpy 2.4.6 |" in text
    assert "## Start\n\nNot measured." in text


def test_the_page_shows_no_verdict_that_is_not_due():
    text = page(make_parts(fit=[2.0], copy=[1.0]), [ratio(bar=3.0)], picture=False)
    assert "1 of 1 bars hold, and 0 of 0 goals are reached." in text
    assert "**MISSED**" not in text.split("## ", 1)[1]


@pytest.fixture(scope="module")
def cases(tmp_path_factory):
    return bench.list_cases(Place(tmp_path_factory.mktemp("full"), False))


def test_every_figure_is_about_something_that_is_measured(cases):
    names = {(case.part, case.group, case.name) for case in cases}
    for figure in figures(FULL):  # a quick run is judged by none
        values = [value for value in (figure.top, figure.bottom) if value is not None]
        missing = [v for v in values if (figure.part, v.group, v.name) not in names]
        assert not missing, figure.name


def test_a_benchmark_that_fails_says_why_and_has_no_further_turns(tmp_path, capsys):
    case = Case("rows", "bench_nothing.py::test", "10 rows", "fit", "commod", 2, "none")
    steps = [Step(case, 0), Step(case, 1)]
    clock = bench.Clock(2)
    measured = bench.run_chain(steps, Place(tmp_path, True), clock, Processes())
    assert len(measured) == 1
    assert "bench_nothing.py" in measured[0][1]["failed"]
    said = capsys.readouterr().out
    assert "turn 1 of 2: FAILED" in said
    assert "turn 2 of 2: left out" in said
    parts = gather(measured)
    assert bench.conclude(parts, QUICK, bench.read_options(["--quick"]), bench.RESULTS / "x") == 1


def test_what_is_running_ends_with_the_run(tmp_path):
    processes, started = Processes(), tmp_path / "started"
    command = ["sh", "-c", f"sleep 60 & echo $! > {started}; wait"]
    with ThreadPoolExecutor() as pool:
        running = pool.submit(processes.run, command, dict(os.environ))
        while not (started.exists() and started.read_text().strip()):
            time.sleep(0.01)
        processes.end()
        code, _ = running.result(timeout=30)  # before the sleep ends by itself
    assert code != 0
    killed, latest = int(started.read_text()), time.monotonic() + 30
    while is_running(killed) and time.monotonic() < latest:  # a busy machine ends it a bit later
        time.sleep(0.01)
    assert not is_running(killed)
    assert processes.run(["sleep", "60"], dict(os.environ)) == (1, "interrupted")


def is_running(number):
    """Return whether a process is there and more than a name in a table."""
    try:
        return Path(f"/proc/{number}/stat").read_text().split()[2] != "Z"
    except FileNotFoundError:
        return False


def test_a_quick_run_installs_no_other_library(monkeypatch, capsys):
    monkeypatch.setattr(bench, "is_ready", lambda library: library == "commod")
    cases = [make_case(), make_case("AIF360")._replace(environment="aif360")]
    left = bench.chosen(cases, bench.read_options(["--quick"]))
    assert [case.name for case in left] == ["fit"]
    assert "aif360: left out" in capsys.readouterr().out
    assert len(bench.chosen(cases, bench.read_options([]))) == 2


def test_commods_own_environment_is_always_there():
    assert is_ready("commod")
    assert not is_ready("a library that nobody pinned")


def test_an_answer_of_pytest_benchmark_is_read_as_a_turn():
    answer = {
        "benchmarks": [{"stats": {"data": [3.0, 1.0, 2.0]}, "extra_info": {"peak_mb": 5.0}}],
        "machine_info": VERSIONS,
    }
    turn = read_answer(answer, 1)
    assert (turn["seconds"], turn["turn"], turn["extra"]) == (2.0, 1, {"peak_mb": 5.0})


def test_a_benchmark_runs_in_a_process_of_its_own(tmp_path, cases):
    (case,) = [c for c in cases if c.name == "python"]
    turn = run_step(Step(case, 0), Place(tmp_path, True), Processes())
    assert "failed" not in turn, turn
    assert turn["seconds"] > 0
    assert "numpy" in turn["versions"]["packages"]


def test_the_page_opens_with_time_against_rows_and_changes_against_the_p_rule():
    paper = json.loads((bench.PAPER / "run.json").read_text())
    text = page(make_parts(fit=[2.0], copy=[1.0]), [ratio(bar=3.0)], paper=paper)
    opening = text.split("## ", 1)[0]
    assert opening.index(PICTURE) < opening.index(CHANGES)
    assert f"measured by `make paper`, commit {paper['commit']}" in opening
    assert "10 of Law School, 10 of COMPAS, 3 of Adult" in opening
    assert text.count(PICTURE) == text.count(CHANGES) == 1


def test_the_picture_of_changes_has_the_limit_below_every_method():
    frames = read_frames(bench.PAPER)
    assert draw_changes(bench.PAPER).startswith(b"\x89PNG")
    panels = draw_figure(frames).axes
    assert [ax.get_title() for ax in panels] == ["Law School", "COMPAS", "Adult"]
    for ax in panels:
        bars = [part[0] for lines in ax.collections for part in lines.get_segments()]
        drawn = np.concatenate([line.get_xydata() for line in ax.lines])
        for left, right, height in ((x - 0.01, x + 0.73, y) for x, y in bars):
            at_level = (drawn[:, 0] > left) & (drawn[:, 0] < right)
            assert np.nanmin(drawn[at_level, 1]) >= height


def test_the_picture_is_of_seconds_per_row():
    measured = [
        (Step(make_case("fit", group=f"{n:,} rows of category"), 0), make_turn(seconds))
        for n, seconds in ((10_000, 0.1), (100_000, 0.5))
    ]
    parts = gather(measured)
    assert line_of(parts, FULL, "fit") == [(10_000, 10.0), (100_000, 5.0)]
    assert draw_rows(parts, FULL).startswith(b"\x89PNG")
    assert draw_rows(parts, QUICK) is None


def test_numbers_have_three_digits():
    assert number(0.9999) == "1.00"
    assert [number(v) for v in (0.00123456, 1.5, 20_000_000.4, 0.0)] == [
        "0.00123",
        "1.50",
        "20,000,000",
        "0",
    ]
    assert spread([]) == "–"
    assert spread([1.0, 3.0, 2.0]) == "2.00 (1.00 to 3.00)"


def test_only_a_full_run_writes_the_page(monkeypatch):
    written = []
    monkeypatch.setattr(bench, "measure", lambda *_: {})
    monkeypatch.setattr(bench, "write_docs", lambda *_: written.append("page"))
    for words in (["--quick"], ["--only", "rows"], ["--match", "fit"]):
        assert bench.main(words) == 0
    assert written == []
    bench.main([])
    assert written == ["page"]
