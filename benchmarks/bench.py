"""Speed and memory, ours and others': `make bench`, `make bench-quick`.

Every benchmark of `benchmarks/speed` runs in a process of its own, programs that are compared in
turns. The full run writes docs/benchmarks.md; `--only rows predict` measures some parts again and
keeps them in benchmarks/results/bench.json; `--write-docs` writes the page from what is kept there.
The quick run is tiny, judges nothing and writes nothing but its own results: it shows that all of
it runs. Exit code 1: a benchmark failed, a bar was missed that is no goal, or a full run did not
measure one.

Where other work keeps cores busy, `OMP_NUM_THREADS=1 make bench` is fairer to programs with several
threads.
"""

from __future__ import annotations

import argparse
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
from benchmarks.harness.figures import Found, evaluate, spread
from benchmarks.harness.page import PICTURE, page
from benchmarks.harness.picture import draw_rows
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
from commod.cli._signals import ending_on_sigterm

PARTS = tuple(section.part for section in SECTIONS)
RESULTS = HERE / "results"
PAGE = ROOT / "docs" / "benchmarks.md"
Measured = list[tuple[Step, dict[str, Any]]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what is asked for and return the exit code."""
    options = read_options(arguments)
    settings, path = FULL, RESULTS / "bench.json"
    if options.quick:
        settings, path = QUICK, RESULTS / "bench-quick.json"
    if options.write_docs:
        parts = read(path)
        if options.quick or not parts:
            print("The page shows a full run: run `make bench` first, and leave --quick out.")
            return 2
        write_docs(parts, settings)
        return 0
    with ending_on_sigterm(), tempfile.TemporaryDirectory(prefix="commod-bench-") as folder:
        try:
            parts = measure(options, Place(Path(folder), options.quick), settings, path)
        except KeyboardInterrupt:
            print("\nInterrupted; parts that were finished are kept.")
            return 130
    if is_whole(options):
        write_docs(parts, settings)
    return conclude(parts, settings, options, path)


def read_options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="tiny: shows that everything runs")
    parser.add_argument("--only", nargs="+", choices=PARTS, metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--match", help="only benchmarks whose words contain this; not kept")
    parser.add_argument("--write-docs", action="store_true", help="the page from what is kept")
    return parser.parse_args(arguments)


def is_whole(options: argparse.Namespace) -> bool:
    """Return whether everything is measured, and at full size."""
    return not (options.quick or options.only or options.match)


def measure(
    options: argparse.Namespace, place: Place, settings: Settings, path: Path
) -> dict[str, Any]:
    """Measure part after part, keep each when it is finished, and return them."""
    cases = chosen(list_cases(place), options)
    for environment in dict.fromkeys(case.environment for case in cases):
        python_of(environment)
    jobs = (os.cpu_count() or 1) if place.quick else 1  # what judges nothing may share cores
    clock = Clock(sum(1 for _ in steps_of(cases)))
    parts: dict[str, Any] = {}
    for together in in_batches(cases, jobs):
        found = measure_batch(together, place, jobs, clock)
        parts |= found
        if not options.match:
            keep(merged(read(path), parts), path)
        some = options.quick or options.match  # figures that nobody measured are not missing
        show([one for one in judged(found, settings) if one.values or not some], not place.quick)
    return parts


def in_batches(cases: list[Case], jobs: int) -> list[list[Case]]:
    """Return parts one after another, or all at once where several processes run."""
    by_part = [[case for case in cases if case.part == name] for name in PARTS]
    batches = [[case for part in by_part for case in part]] if jobs > 1 else by_part
    return [batch for batch in batches if batch]


def chosen(cases: Iterable[Case], options: argparse.Namespace) -> list[Case]:
    """Return the benchmarks that are asked for; a quick run installs no other library."""
    cases = [case for case in cases if not options.only or case.part in options.only]
    if options.match:
        cases = [c for c in cases if options.match in f"{c.part} {c.group}, {c.name}"]
    if options.quick:
        for missing in sorted({c.environment for c in cases if not is_ready(c.environment)}):
            print(f"{missing}: left out, its environment is not there (`make bench` makes it)")
        cases = [case for case in cases if is_ready(case.environment)]
    return cases


def measure_batch(cases: list[Case], place: Place, jobs: int, clock: Clock) -> dict[str, Any]:
    """Return parts with their machine and time."""
    told, start = machine.describe(), time.perf_counter()
    parts = gather(run_all(list(steps_of(cases)), place, jobs, clock))
    in_order(parts, [(case.part, case.group, case.name) for case in cases])
    for part in parts.values():
        part.update(told, seconds=time.perf_counter() - start)
    return parts


def run_all(steps: list[Step], place: Place, jobs: int, clock: Clock) -> Measured:
    """Run processes in order, or those of different benchmarks at the same time."""
    chains = [steps]
    if jobs > 1:
        chains = [[s for s in steps if s.case == case] for case in {s.case: None for s in steps}]
    processes = Processes()
    pool = ThreadPoolExecutor(jobs)
    try:
        found = pool.map(lambda chain: run_chain(chain, place, clock, processes), chains)
        return [pair for chain in found for pair in chain]
    finally:
        processes.end()  # nothing is left behind where this run is interrupted
        pool.shutdown(cancel_futures=True)


def run_chain(steps: list[Step], place: Place, clock: Clock, processes: Processes) -> Measured:
    """Run processes one after another; a benchmark that failed has no further turns."""
    measured: Measured = []
    failed: set[Case] = set()
    for step in steps:
        if step.case in failed:
            clock.tell(step, None)
            continue
        turn = run_step(step, place, processes)
        if "failed" in turn:
            failed.add(step.case)
        clock.tell(step, turn)
        measured.append((step, turn))
    return measured


class Clock:
    """Prints a line for each process that has ended."""

    def __init__(self, n: int) -> None:
        self.n, self.done, self.start = n, 0, time.perf_counter()

    def tell(self, step: Step, turn: dict[str, Any] | None) -> None:
        """Say what a process measured; None: it was left out after an earlier one failed."""
        self.done += 1
        seconds = int(time.perf_counter() - self.start)
        case = step.case
        if turn is None:
            said = "left out"
        elif "failed" in turn:
            said = f"FAILED\n{turn['failed']}"
        else:
            said = "cache filled" if step.turn < 0 else f"{spread(turn['rounds'])} s"
        counted = case.turns > 1 and step.turn >= 0
        which = f", turn {step.turn + 1} of {case.turns}" if counted else ""
        where = f"[{self.done:>3}/{self.n}  {seconds // 60:02}:{seconds % 60:02}]"
        print(f"{where} {case.part}: {case.group}, {case.name}{which}: {said}", flush=True)


def judged(parts: dict[str, Any], settings: Settings, *, every: bool = False) -> list[Found]:
    """Return the figures of these parts, or `every` figure, one of a part that is missing too."""
    some = [figure for figure in figures(settings) if every or figure.part in parts]
    return [evaluate(figure, parts) for figure in some]


def show(found: Iterable[Found], judge: bool) -> None:
    """Print figures beside their bars."""
    for one in found:
        said = (one.figure.bar_in_words, one.verdict) if judge else ("", "")
        line = f"  {one.figure.words:<78} {spread(one.values):<30} {said[0]:<14} {said[1]}"
        print(line.rstrip(), flush=True)


def write_docs(parts: dict[str, Any], settings: Settings) -> None:
    """Write the page and its picture."""
    picture = draw_rows(parts, settings)
    text = page(parts, figures(settings), picture=picture is not None)
    if picture is not None:
        write_whole(PAGE.parent / PICTURE, picture)
    write_whole(PAGE, text.encode())
    print(f"\nWritten: {PAGE.relative_to(ROOT)}")


def conclude(
    parts: dict[str, Any], settings: Settings, options: argparse.Namespace, path: Path
) -> int:
    """Say what failed and what was missed, and return the exit code; a quick run judges nothing."""
    whole = is_whole(options)
    found = [] if options.quick else judged(parts, settings, every=whole)
    failed, missed = failures(parts), [one for one in found if one.fails(whole_run=whole)]
    for part, benchmark in failed:
        print(f"FAILED: {part}: {benchmark['group']}, {benchmark['name']}")
    for one in missed:
        said = f"{spread(one.values)}, {one.figure.bar_in_words}"
        print(f"{one.verdict}: {one.figure.words}: {said}")
    if not options.match:
        print(f"Every timing: {path.relative_to(ROOT)}")
    return 1 if failed or missed else 0


if __name__ == "__main__":
    sys.exit(main())
