"""Measure speed and memory of commod and other libraries: `make bench`, `make bench-quick`.

Every benchmark of `benchmarks/speed` runs in its own process. Compared programs take turns.

- The full run writes docs/benchmarks.md, with a picture from the tables of `make paper`. It leaves
  out the parts that the same source has measured, so an interrupted run goes on.
- `--only rows predict` measures these parts again and stores them in docs/measured/bench.json.
- `--write-docs` writes the page from the stored results.
- The quick run is tiny and shows that every benchmark runs. It judges no bar and writes only its
  own results.

The exit code is 1 if a benchmark failed, a bar was missed, or a full run did not measure a bar. A
missed goal does not count. If other work keeps cores busy, `OMP_NUM_THREADS=1 make bench` is fairer
to programs with several threads.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks.environments import HERE, ROOT, is_ready, python_of
from benchmarks.harness import machine
from benchmarks.harness.bars import figures
from benchmarks.harness.figures import MeasuredFigure, evaluate, spread
from benchmarks.harness.page import CHANGES, PICTURE, page
from benchmarks.harness.picture import draw_changes, draw_rows
from benchmarks.harness.results import failures, gather, in_order, keep, merged, read
from benchmarks.harness.running import (
    Case,
    Place,
    Processes,
    Step,
    list_cases,
    run_step,
    steps_of,
)
from benchmarks.harness.sections import SECTIONS
from benchmarks.speed.settings import FULL, QUICK, Settings
from commod._io.files import write_whole
from commod.cli._signals import ending_on_signals

PARTS = tuple(section.part for section in SECTIONS)
RESULTS, MEASURED = HERE / "results", ROOT / "docs" / "measured"
PAGE = ROOT / "docs" / "benchmarks.md"
PAPER = ROOT / "experiments" / "results"  # the tables of `make paper`
Measured = list[tuple[Step, dict[str, Any]]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure the parts that the options name, and return the exit code."""
    options = read_options(arguments)
    settings, path = FULL, MEASURED / "bench.json"
    if options.quick:
        settings, path = QUICK, RESULTS / "bench-quick.json"
    if options.write_docs:
        parts = read(path)
        if options.quick or not parts:
            print("The page shows a full run. Run `make bench` first, and leave out --quick.")
            return 2
        write_docs(parts, settings)
        return 0
    with ending_on_signals(), tempfile.TemporaryDirectory(prefix="commod-bench-") as folder:
        try:
            parts = measure(options, Place(Path(folder), options.quick), settings, path)
        except KeyboardInterrupt:
            print("\nInterrupted. Finished parts are stored.")
            return 130
    if is_whole(options):
        write_docs(parts, settings)
    return conclude(parts, settings, options, path)


def read_options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--quick", action="store_true", help="tiny run that shows that every benchmark runs"
    )
    parser.add_argument("--only", nargs="+", choices=PARTS, metavar="PART", help=", ".join(PARTS))
    parser.add_argument(
        "--match", help="run benchmarks whose name contains this text; nothing is stored"
    )
    parser.add_argument(
        "--write-docs", action="store_true", help="write the page from the stored results"
    )
    return parser.parse_args(arguments)


def is_whole(options: argparse.Namespace) -> bool:
    """Return whether the run measures every part at full size."""
    return not (options.quick or options.only or options.match)


def measure(
    options: argparse.Namespace, place: Place, settings: Settings, path: Path
) -> dict[str, Any]:
    """Measure part after part, store each finished part, and return all of them."""
    earlier = read(path) if is_whole(options) else {}
    parts = {name: part for name, part in earlier.items() if machine.is_of_this_source(part)}
    cases = [case for case in chosen(list_cases(place), options) if case.part not in parts]
    for environment in dict.fromkeys(case.environment for case in cases):
        python_of(environment)
    jobs = (
        (os.cpu_count() or 1) if place.quick else 1
    )  # a quick run judges no bar: it may share cores
    clock = Clock(sum(1 for _ in steps_of(cases)))
    is_partial = options.quick or options.match  # not every figure has values then
    for batch in in_batches(cases, jobs):
        measured = measure_batch(batch, place, jobs, clock)
        parts |= measured
        if not options.match:
            keep(merged(read(path), parts), path)
        figures_ = [m for m in judged(measured, settings) if m.values or not is_partial]
        show(figures_, not place.quick)
    return parts


def in_batches(cases: list[Case], jobs: int) -> list[list[Case]]:
    """Return one batch per part, or a single batch if several processes run at the same time."""
    by_part = [[case for case in cases if case.part == name] for name in PARTS]
    batches = [[case for part in by_part for case in part]] if jobs > 1 else by_part
    return [batch for batch in batches if batch]


def chosen(cases: Iterable[Case], options: argparse.Namespace) -> list[Case]:
    """Return the benchmarks that the options name; a quick run installs no other library."""
    cases = [case for case in cases if not options.only or case.part in options.only]
    if options.match:
        cases = [c for c in cases if options.match in f"{c.part} {c.group}, {c.name}"]
    if options.quick:
        for missing in sorted({c.environment for c in cases if not is_ready(c.environment)}):
            print(f"{missing}: left out, its environment is missing (`make bench` creates it)")
        cases = [case for case in cases if is_ready(case.environment)]
    return cases


def measure_batch(cases: list[Case], place: Place, jobs: int, clock: Clock) -> dict[str, Any]:
    """Measure a batch and return its parts with machine and time."""
    provenance, start = machine.describe(), time.perf_counter()
    parts = gather(run_all(list(steps_of(cases)), place, jobs, clock))
    in_order(parts, [(case.part, case.group, case.name) for case in cases])
    for part in parts.values():
        part.update(provenance, seconds=time.perf_counter() - start)
    return parts


def run_all(steps: list[Step], place: Place, jobs: int, clock: Clock) -> Measured:
    """Run processes in order; with several jobs, run different benchmarks at the same time."""
    chains = [steps]
    if jobs > 1:
        chains = [[s for s in steps if s.case == case] for case in {s.case: None for s in steps}]
    processes = Processes()
    pool = ThreadPoolExecutor(jobs)
    try:
        measured = pool.map(lambda chain: run_chain(chain, place, clock, processes), chains)
        return [pair for chain in measured for pair in chain]
    finally:
        processes.end()  # an interrupted run leaves no process behind
        pool.shutdown(cancel_futures=True)


def run_chain(steps: list[Step], place: Place, clock: Clock, processes: Processes) -> Measured:
    """Run processes one after another; a failed benchmark gets no further turns."""
    measured: Measured = []
    failed: set[Case] = set()
    for step in steps:
        if step.case in failed:
            clock.report(step, None)
            continue
        turn = run_step(step, place, processes)
        if "failed" in turn:
            failed.add(step.case)
        clock.report(step, turn)
        measured.append((step, turn))
    return measured


class Clock:
    """Print a line for each process that has ended."""

    def __init__(self, n: int) -> None:
        self.n, self.done, self.start = n, 0, time.perf_counter()

    def report(self, step: Step, turn: dict[str, Any] | None) -> None:
        """Print what a process measured; `turn` is None if an earlier turn failed."""
        self.done += 1
        seconds = int(time.perf_counter() - self.start)
        case = step.case
        if turn is None:
            outcome = "left out"
        elif "failed" in turn:
            outcome = f"FAILED\n{turn['failed']}"
        else:
            outcome = "cache filled" if step.turn < 0 else f"{spread(turn['rounds'])} s"
        counted = case.turns > 1 and step.turn >= 0
        turn_text = f", turn {step.turn + 1} of {case.turns}" if counted else ""
        progress = f"[{self.done:>3}/{self.n}  {seconds // 60:02}:{seconds % 60:02}]"
        print(
            f"{progress} {case.part}: {case.group}, {case.name}{turn_text}: {outcome}", flush=True
        )


def judged(
    parts: dict[str, Any], settings: Settings, *, every: bool = False
) -> list[MeasuredFigure]:
    """Return the figures of these parts; `every` adds the figures of missing parts."""
    chosen_figures = [figure for figure in figures(settings) if every or figure.part in parts]
    return [evaluate(figure, parts) for figure in chosen_figures]


def show(measured: Iterable[MeasuredFigure], judge: bool) -> None:
    """Print figures beside their bars."""
    for figure, values, verdict in measured:
        bar, verdict = (figure.bar_text, verdict) if judge else ("", "")
        line = f"  {figure.name:<78} {spread(values):<30} {bar:<14} {verdict}"
        print(line.rstrip(), flush=True)


def write_docs(parts: dict[str, Any], settings: Settings) -> None:
    """Write the page and its pictures; the one of changes shows the last `make paper`."""
    picture, paper = draw_rows(parts, settings), json.loads((PAPER / "run.json").read_text())
    text = page(parts, figures(settings), picture=picture is not None, paper=paper)
    write_whole(PAGE.parent / CHANGES, draw_changes(PAPER))
    if picture is not None:
        write_whole(PAGE.parent / PICTURE, picture)
    write_whole(PAGE, text.encode())
    print(f"\nWritten: {PAGE.relative_to(ROOT)}")


def conclude(
    parts: dict[str, Any], settings: Settings, options: argparse.Namespace, path: Path
) -> int:
    """Print failures and missed bars, and return the exit code; a quick run judges no bar."""
    whole = is_whole(options)
    measured = [] if options.quick else judged(parts, settings, every=whole)
    failed, missed = failures(parts), [m for m in measured if m.fails(whole_run=whole)]
    for part, benchmark in failed:
        print(f"FAILED: {part}: {benchmark['group']}, {benchmark['name']}")
    for figure, values, verdict in missed:
        print(f"{verdict}: {figure.name}: {spread(values)}, {figure.bar_text}")
    if not options.match:
        print(f"Every timing: {path.relative_to(ROOT)}")
    return 1 if failed or missed else 0


if __name__ == "__main__":
    sys.exit(main())
