"""Compare seeded results with stored ones: a refactoring must not change what users get.

`python -m benchmarks.same_fits` computes every case of `same_cases.py` and compares it with
`same_fits.json`. `--write` stores the results of this commit. Names after the options choose cases.

- Decisions must be identical, numbers equal to 1e-12.
- `bytes` are digests of what ships and of what is recorded: patches without date and versions, SQL
  of every dialect, ONNX graphs, and each part of an audit.
- `texts` are digests of sentences. `--but-texts` leaves them out, where wording changes on purpose.

Training in JAX rounds differently on another processor, so store and compare on one machine.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.same_cases import CASES

STORED = Path(__file__).with_name("same_fits.json")
TOLERANCE = 1e-12


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


def main() -> int:
    """Compute every case, then store the results or compare them with the stored ones."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="store the results of this commit")
    parser.add_argument("--but-texts", action="store_true", help="do not compare sentences")
    parser.add_argument("cases", nargs="*", help="parts of the names of cases; default: all cases")
    options = parser.parse_args()
    stored = json.loads(STORED.read_text("utf-8")) if STORED.exists() else {}
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
