"""Entry: other architectures of the ratio."""

from __future__ import annotations

import numpy as np

from experiments.entries.entry import ADAPTIVE_ONLY, FAILS, HOLDS, PARTLY, Entry, Frames
from experiments.markdown import number, picture, table

SIMILAR = 0.01  # of accuracy


def architectures(frames: Frames, base: str) -> Entry:
    """Say whether a linear ratio is as accurate as networks."""
    curve = frames["architectures"]
    gaps = frames["architecture_gaps"].set_index("architecture")["gap"]
    worst = gaps.abs().max()
    status = HOLDS if worst <= SIMILAR else PARTLY if worst <= 2 * SIMILAR else FAILS
    gap_texts = ", ".join(f"{gap:+.3f} against {name}" for name, gap in gaps.items())
    reached = curve[curve["n_reached"] >= curve["n_splits"] / 2]
    furthest = reached.groupby("architecture", sort=False)["level"].max()
    reach = ", ".join(f"{name} {number(level, 2)}" for name, level in furthest.items())
    lines = [
        [name, number(level, 2), number(gaps.get(name, np.nan))] for name, level in furthest.items()
    ]
    header = ["architecture", "P-rule that half of the splits reach"]
    header += ["accuracy of concepts minus its own"]
    return Entry(
        "Ratio architectures",
        "A linear ratio does as well as networks on Law School",
        "in words",
        f"adaptive: mean accuracy at equal P-rule: {gap_texts}",
        status,
        "At equal P-rule, the mean accuracy of the concept bottleneck differs as follows: "
        f"{gap_texts}. Half of the splits reach this P-rule: {reach}.",
        (
            picture("architectures", "Best accuracy at each P-rule, by architecture", base),
            table(
                [
                    "architecture",
                    "P-rule that half of the splits reach",
                    "accuracy of concepts minus its own",
                ],
                lines,
            ),
            ADAPTIVE_ONLY,
            '"Plain linear" is one concept without a penalty. `COMMOD(architecture="mlp")` has no '
            "scorecard. Its changes are described from its decisions only, and `to_patch` refuses "
            "it.",
        ),
    )
