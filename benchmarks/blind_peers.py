"""Compare the changes of blind alternatives with ours, at the same P-rule on the same test rows.

Alternatives run in their own environments, which the first run creates. They get encoded features.
Their base model is the logistic regression of the protocol, and each asks for a P-rule of 0.8.
ExponentiatedGradient is randomised, so its figures are expectations.
"""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

import numpy as np
from controlled import fit_update
from environments import HERE, python_of
from new_rows import Reached, fewest, frontier_of, means_of
from protocol import TABLES, Split, first_splits, make_split
from report import show

# name -> (environment and script, variant)
BLIND = {
    "OxonFair, inferred groups": ("oxonfair", "inferred"),
    "Fairlearn, ExponentiatedGradient": ("fairlearn", ""),
}
AWARE = {"OxonFair, groups given": ("oxonfair", "given")}


def write_rows(split: Split, path: Path) -> None:
    """Write both parts of a split, encoded, with the groups as 0 and 1."""

    def encode(part: object) -> np.ndarray:
        encoded = split.model[0].transform(part)
        return encoded.toarray() if hasattr(encoded, "toarray") else np.asarray(encoded)

    groups = np.unique(np.asarray(split.train.s, dtype=str))
    np.savez(
        path,
        X=encode(split.train.X),
        y=np.asarray(split.train.y),
        s=np.searchsorted(groups, np.asarray(split.train.s, dtype=str)),
        X_test=encode(split.test.X),
        s_test=np.searchsorted(groups, np.asarray(split.test.s, dtype=str)),
    )


def decisions_of(program: tuple[str, str], split: Split, folder: Path) -> np.ndarray:
    """Return an alternative's probability of a positive decision on each test row."""
    library, variant = program
    rows, answer = folder / "rows.npz", folder / "decisions.npy"
    write_rows(split, rows)
    script = HERE / "peers" / f"{library}_blind.py"
    command = [python_of(library), script, variant, rows, answer]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{library} failed:\n{done.stderr[-4000:]}")
    return np.load(answer)


def expected(split: Split, proba: np.ndarray) -> Reached:
    """Return the figures of decisions that are positive with these probabilities."""
    test = split.test
    before, y, s = split.model.predict(test.X), np.asarray(test.y), np.asarray(test.s)
    rates = [proba[s == group].mean() for group in np.unique(s)]
    changes = float(np.where(before == 0, proba, 1 - proba).mean())
    accuracy = float(np.where(y == 1, proba, 1 - proba).mean())
    return Reached(changes, float(min(rates) / max(rates)), accuracy)


def blind_peers() -> None:
    """Compare changes with each alternative's at that alternative's own test P-rule."""
    for name in TABLES:
        splits = [make_split(name, seed) for seed in first_splits(5)]
        frames = [frontier_of(split) for split in splits]
        base = float(np.mean([split.base()["accuracy"] for split in splits]))
        show(f"{name}: accuracy of the base model", f"{base:.3f}")
        with tempfile.TemporaryDirectory() as folder:
            for program, where in BLIND.items():
                theirs = [expected(s, decisions_of(where, s, Path(folder))) for s in splits]
                ours = [fewest(f, run.p_rule) for f, run in zip(frames, theirs, strict=True)]
                show_pair(f"{name}: {program}", theirs, ours)
            for program, where in AWARE.items():
                theirs = [expected(s, decisions_of(where, s, Path(folder))) for s in splits]
                show(f"{name}: {program}", means_of(theirs), "needs the group when predicting")
        chosen = [fit_update(split, target=0.8).predict(split.test.X) for split in splits]
        ours = [expected(s, d.astype(float)) for s, d in zip(splits, chosen, strict=True)]
        show(f"{name}: ours, target 0.8 on training rows", means_of(ours))


def show_pair(label: str, theirs: list[Reached], ours: list[Reached]) -> None:
    """Print an alternative and our fewest changes at its own P-rule, split by split."""
    show(label, means_of(theirs))
    pairs = [pair for pair in zip(theirs, ours, strict=True) if not np.isnan(pair[1].changes)]
    if not pairs:
        show(f"{label}: ours", "not reached", "fewer", False)
        return
    bar = float(np.mean([their.changes for their, _ in pairs]))
    ours = [our for _, our in pairs]
    mean = float(np.mean([our.changes for our in ours]))
    reached = "" if len(pairs) == len(theirs) else f", {len(pairs)} of {len(theirs)} reach it"
    show(f"{label}: ours", means_of(ours) + reached, f"< {bar:.3f}", mean < bar)
