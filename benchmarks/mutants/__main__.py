"""Measure the power of the tests: `make mutants`.

`mutmut` and `cosmic-ray` were tried on paper first. `mutmut` has no seed and no sample, and wraps
functions, which JAX and pickles see. `cosmic-ray` runs one command for every mutant, however few
tests reach it. 200 mutants in hours, not days, need both a sample and a choice of tests.

Settings by environment: `N` mutants, `SEED`, `JOBS` processes, `SKIP_REACH=1` to use the lines that
an earlier run stored, `ONLY=survived` to judge again those that survived the last time, and
`TESTS` for the folders of tests to use, in place of all.

Where Chromium, PostgreSQL, Java or an engine is missing, tests skip. Mutants that such tests alone
reach are named and counted apart, if the lines come from a machine that has it all. Lines measured
here do not show them: they are then among those that no test reaches.
"""

from __future__ import annotations

import csv
import os
from collections import Counter
from pathlib import Path

from benchmarks.mutants.making import room_of, sample
from benchmarks.mutants.running import PACKAGE, ROOT, Reached, Verdict, judge, measure

FOLDER = ROOT / "benchmarks" / "results" / "mutants"
STORED = FOLDER / "verdicts.csv"
FEW = 10  # mutants of a room, below which its share says little


def main() -> None:
    """Make mutants, judge them, print a table by room, and store what became of each."""
    n, seed = int(os.environ.get("N", "200")), int(os.environ.get("SEED", "0"))
    n_jobs = int(os.environ.get("JOBS", str(os.cpu_count() or 1)))
    reach = FOLDER / "reach"
    if not os.environ.get("SKIP_REACH"):
        measure(reach, n_jobs, os.environ.get("TESTS", "").split())
    mutants = sample(ROOT, ROOT / PACKAGE, n, seed)
    earlier = _stored() if os.environ.get("ONLY") else {}
    if earlier:
        mutants = [
            m for m in mutants if earlier.get(m.shown(_source(m.file))) == os.environ["ONLY"]
        ]
    verdicts = judge(mutants, Reached.read(reach), n_jobs)
    _store(verdicts)
    show(verdicts)


def show(verdicts: list[Verdict]) -> None:
    """Print the killed share by room, the survivors, and those whose tests all skipped."""
    made, killed = Counter[str](), Counter[str]()
    for one in verdicts:
        if one.how != "skipped":
            room = room_of(Path(one.mutant.file).relative_to(PACKAGE))
            made[room] += 1
            killed[room] += one.is_killed
    for room, n in sorted(made.items()):
        print(f"{room:20} {killed[room]:4} of {n:4}  {killed[room] / n:6.1%}" + " few" * (n < FEW))
    share = killed.total() / max(1, made.total())
    n_skipped = sum(one.how == "skipped" for one in verdicts)
    print(f"{n_skipped} more were reached only by tests that skipped on this machine")
    print(f"{'all rooms':20} {killed.total():4} of {made.total():4}  {share:6.1%}")
    for one in verdicts:
        if not one.is_killed:
            print(f"{one.how} ({one.n_tests} tests)", one.mutant.shown(_source(one.mutant.file)))


def _source(file: str) -> str:
    return (ROOT / file).read_text("utf-8")


def _stored() -> dict[str, str]:
    with STORED.open(encoding="utf-8", newline="") as lines:
        return {mutant: how for mutant, how, *_ in csv.reader(lines)}


def _store(verdicts: list[Verdict]) -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    with STORED.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        for one in verdicts:
            shown = one.mutant.shown(_source(one.mutant.file))
            writer.writerow([shown, one.how, one.n_tests, one.killer])


if __name__ == "__main__":
    main()
