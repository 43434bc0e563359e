"""Compare seeded results with stored ones: a refactoring must not change what users get.

`python -m benchmarks.same_fits` computes every case of `same_cases.py` and compares it with
`same_fits.json`. `--write` stores the results of this commit. Names after the options choose cases.

- Decisions must be identical, numbers equal to 1e-12.
- `bytes` are digests of what ships and of what is recorded: patches without date and versions, SQL
  of every dialect, ONNX graphs, and each part of an audit.
- `texts` are what users read: `status_` as it is, and digests of reports, notebooks, pictures,
  pages, commands.
  `--but-texts` leaves them out, where wording changes on purpose. `--show folder` writes the texts.

`make test` compares all cases but those of kind "Training": JAX rounds differently on another
processor, so compare these on one machine.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.same_cases import CASES
from benchmarks.same_outputs import OUTPUTS

STORED = Path(__file__).with_name("same_fits.json")
TOLERANCE = 1e-12


def stored_results() -> dict[str, Any]:
    """Return the stored result of each case."""
    results: dict[str, Any] = json.loads(STORED.read_text("utf-8"))
    return results


def differences(before: dict[str, Any], after: dict[str, Any], *, texts: bool = True) -> list[str]:
    """Return the differences between two results of one case as sentences."""
    wrong = [] if before["decisions"] == after["decisions"] else ["other decisions"]
    for name, values in before["numbers"].items():
        old = np.array(values, dtype=float)
        new = np.array(after["numbers"].get(name, []), dtype=float)
        if old.shape != new.shape:
            wrong.append(f"{new.size} {name} instead of {old.size}")
        elif not np.allclose(old, new, rtol=0, atol=TOLERANCE, equal_nan=True):
            wrong.append(f"{name} differ by up to {np.nanmax(np.abs(old - new)):.1e}")
    for kind in ("bytes", "texts") if texts else ("bytes",):
        old, new = before[kind], after[kind]
        other = [name for name in {**old, **new} if old.get(name) != new.get(name)]
        if other:
            wrong.append(f"other {kind}: {', '.join(other)}")
    return wrong


def write_texts(folder: Path, parts: Sequence[str]) -> None:
    """Write the texts of cases of kind "Output", so that two commits can be compared by `diff`."""
    for case, texts in OUTPUTS.items():
        if not parts or any(part in case for part in parts):
            (folder / case).mkdir(parents=True, exist_ok=True)
            for name, text in texts().items():
                Path(folder, case, name.replace("/", " ")).write_text(text, "utf-8")


def main() -> int:
    """Compute every case, then store the results or compare them with the stored ones."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="store the results of this commit")
    parser.add_argument("--but-texts", action="store_true", help="do not compare sentences")
    parser.add_argument("--show", metavar="FOLDER", help="write what users read to this folder")
    parser.add_argument("cases", nargs="*", help="parts of the names of cases; default: all cases")
    options = parser.parse_args()
    if options.show:
        write_texts(Path(options.show), options.cases)
        return 0
    stored = stored_results() if STORED.exists() else {}
    chosen = [n for n in CASES if not options.cases or any(part in n for part in options.cases)]
    different = []
    for name in chosen:
        started = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            after = CASES[name]()
        if options.write:
            stored[name] = after
            verdict = "stored"
        else:
            wrong = differences(stored[name], after, texts=not options.but_texts)
            different += [name] * bool(wrong)
            verdict = "; ".join(wrong) or "the same"
        print(f"{name}: {verdict} ({time.perf_counter() - started:.1f} s)", flush=True)
    if options.write:
        kept = {name: stored[name] for name in CASES if name in stored}
        STORED.write_text(json.dumps(kept, indent=1) + "\n", "utf-8")
    print(f"{len(chosen)} cases, {len(different)} of them differ")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
