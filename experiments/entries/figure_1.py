"""Entries: Figure 1, and whether it depends on the method whose quartiles define segments."""

from __future__ import annotations

from experiments.base_points import DEFINERS
from experiments.entries.entry import (
    FAILS,
    HOLDS,
    NOTIONS,
    PARTLY,
    Entry,
    Frames,
    fewest_steps,
    slug,
)
from experiments.figure_1 import STEP
from experiments.markdown import picture
from experiments.methods import label_of
from experiments.paper import COMPAS, DP, EO, LAW_SCHOOL
from experiments.protocol import ADULT

SHORT = {DP: "dp", EO: "eo"}


def figure_1(frames: Frames, base: str) -> Entry:
    """Say how often COMMOD is below the other blind methods in Figure 1."""
    steps = frames["figure_1"]
    first, n, alone = fewest_steps(steps[steps["table"] != ADULT])
    q1, n_q1, _ = fewest_steps(steps[(steps["table"] != ADULT) & (steps["fairness_q"] == 1)])
    share = first / max(n, 1)
    status = HOLDS if share >= 0.9 else PARTLY if share >= 0.5 else FAILS
    verdict = (
        f"A point is a segment of fairness and a step of {STEP:g} of accuracy in which enough "
        "splits have updates of COMMOD and of another blind method. COMMOD has the fewest changes "
        f"in {first} of {n} points. In the least fair segment, it has them in {q1} of {n_q1}. In "
        f"{alone} further points, other blind methods have updates and COMMOD has none."
    )
    names = [
        (f"figure_1_{slug(name)}_{SHORT[notion]}", f"{name}, {NOTIONS[notion]}")
        for name, notion in steps[["table", "notion"]].drop_duplicates().itertuples(index=False)
    ]
    return Entry(
        "Figure 1: changes against accuracy per segment",
        "At similar accuracy and fairness, COMMOD consistently changes fewer decisions; Q1 is more "
        "subtle",
        "in words",
        f"fewest of the blind methods in {first} of {n} points",
        status,
        verdict,
        tuple(b for name, text in names for b in (f"**{text}**", picture(name, text, base))),
    )


def robustness(frames: Frames, base: str) -> Entry:
    """Say whether the result depends on the method whose quartiles define the segments."""
    steps = frames["robustness"]
    of_paper = steps[steps["table"] != ADULT]
    counts = {d: fewest_steps(of_paper[of_paper["definition"] == d]) for d in (2, 3)}
    share = min(first / max(n, 1) for first, n, _ in counts.values())
    status = HOLDS if share >= 0.9 else PARTLY if share >= 0.5 else FAILS
    texts = [f"{first} of {n} points with definition {d}" for d, (first, n, _) in counts.items()]
    alone = " and ".join(str(others) for _, _, others in counts.values())
    body = []
    for d in (2, 3):
        for name in (LAW_SCHOOL, COMPAS):
            text = f"{name}, definition {d} ({label_of(DEFINERS[d - 1])})"
            body += [f"**{text}**", picture(f"robustness_{slug(name)}_def{d}", text, base)]
    return Entry(
        "Robustness over the segments",
        "The result does not depend on the method whose quartiles define the segments",
        "in words",
        "; ".join(texts),
        status,
        f"COMMOD has the fewest changes of the blind methods in {' and '.join(texts)}. In {alone} "
        "further points, only other methods have updates.",
        (
            "The counts include both notions; the pictures show demographic parity. On Law School, "
            "the paper prints its edges. On COMPAS, and for equalized odds, the edges are those of "
            "our own sweeps.",
            *body,
        ),
    )
