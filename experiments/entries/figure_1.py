"""Figure 1, and whether it depends on whose quartiles the segments are."""

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
        f"In {first} of {n} points (a segment of fairness and a step of {STEP:g} of accuracy, with "
        f"enough splits of COMMOD and of another blind method) COMMOD has the fewest changes; in "
        f"the least fair segment in {q1} of {n_q1}. In {alone} further points other "
        "blind methods have updates and COMMOD has none."
    )
    names = [
        (f"figure_1_{slug(name)}_{SHORT[notion]}", f"{name}, {NOTIONS[notion]}")
        for name, notion in steps[["table", "notion"]].drop_duplicates().itertuples(index=False)
    ]
    return Entry(
        "Figure 1: changes against accuracy per segment",
        "At similar accuracy and fairness COMMOD consistently changes less; Q1 is more subtle",
        "in words",
        f"fewest of the blind methods in {first} of {n} points",
        status,
        verdict,
        tuple(b for name, says in names for b in (f"**{says}**", picture(name, says, base))),
    )


def robustness(frames: Frames, base: str) -> Entry:
    """Say whether the result depends on whose quartiles the segments are."""
    steps = frames["robustness"]
    of_paper = steps[steps["table"] != ADULT]
    found = {d: fewest_steps(of_paper[of_paper["definition"] == d]) for d in (2, 3)}
    share = min(first / max(n, 1) for first, n, _ in found.values())
    status = HOLDS if share >= 0.9 else PARTLY if share >= 0.5 else FAILS
    told = [f"{first} of {n} with definition {d}" for d, (first, n, _) in found.items()]
    alone = " and ".join(str(others) for _, _, others in found.values())
    body = []
    for d in (2, 3):
        for name in (LAW_SCHOOL, COMPAS):
            says = f"{name}, definition {d} ({label_of(DEFINERS[d - 1])})"
            body += [f"**{says}**", picture(f"robustness_{slug(name)}_def{d}", says, base)]
    return Entry(
        "Robustness over the segments",
        "The result does not depend on the method whose quartiles define the segments",
        "in words",
        "; ".join(told),
        status,
        f"COMMOD has the fewest changes of the blind methods in {' and '.join(told)}; in {alone} "
        "further points only others have updates.",
        (
            "Both notions are counted, demographic parity is drawn. On Law School the paper prints "
            "its edges; on COMPAS, and for equalized odds, they are those of our own sweeps.",
            *body,
        ),
    )
