"""Ratio architectures."""

from __future__ import annotations

import numpy as np

from experiments.entries.entry import FAILS, HOLDS, PARTLY, Entry, Frames
from experiments.markdown import number, picture, table

SIMILAR = 0.01  # of accuracy


def architectures(frames: Frames, base: str) -> Entry:
    """Say whether a linear ratio does as well as networks."""
    curve = frames["architectures"]
    gaps = frames["architecture_gaps"].set_index("architecture")["gap"]
    worst = gaps.abs().max()
    status = HOLDS if worst <= SIMILAR else PARTLY if worst <= 2 * SIMILAR else FAILS
    told = ", ".join(f"{gap:+.3f} against {name}" for name, gap in gaps.items())
    reached = curve[curve["n_reached"] >= curve["n_splits"] / 2]
    furthest = reached.groupby("architecture", sort=False)["level"].max()
    reach = ", ".join(f"{name} {number(level, 2)}" for name, level in furthest.items())
    lines = [
        [name, number(level, 2), number(gaps.get(name, np.nan))] for name, level in furthest.items()
    ]
    return Entry(
        "Ratio architectures",
        "A linear ratio does as well as networks on Law School",
        "in words",
        f"mean accuracy at equal P-rule: {told}",
        status,
        f"Accuracy of the bottleneck of concepts at equal P-rule: {told}. The P-rule that half of "
        f"the splits reach: {reach}.",
        (
            picture("architectures", "Best accuracy at each P-rule, by architecture", base),
            table(
                ["architecture", "P-rule that half of the splits reach", "concepts minus it"],
                lines,
            ),
            '"Plain linear" is one concept without a penalty on it. `COMMOD(architecture="mlp")` '
            "has no scorecard: who changes is described from its decisions only, and `to_patch` "
            "refuses it.",
        ),
    )
