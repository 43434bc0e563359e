"""Entries: Figure 1, and whether it depends on the method whose quartiles define segments."""

from __future__ import annotations

from experiments.base_points import DEFINERS
from experiments.entries.entry import (
    BOTH_VARIANTS,
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
from experiments.markdown import NOTHING, picture
from experiments.methods import AS_IN_PAPER, VARIANTS, label_of
from experiments.paper import COMPAS, DP, EO, LAW_SCHOOL
from experiments.protocol import ADULT

SHORT = {DP: "dp", EO: "eo"}


def status_of(count: tuple[int, int, int]) -> str:
    """Return the verdict from the counts of points won, of all points, and of points without."""
    first, n, _ = count
    if not n:
        return NOTHING
    share = first / n
    return HOLDS if share >= 0.9 else PARTLY if share >= 0.5 else FAILS


def _of(count: tuple[int, int, int]) -> str:
    return f"{count[0]} of {count[1]}"


def figure_1(frames: Frames, base: str) -> Entry:
    """Say how often COMMOD is below the other blind methods in Figure 1."""
    steps = frames["figure_1"]
    of_paper = steps[steps["table"] != ADULT]
    counts = {variant: fewest_steps(of_paper, variant) for variant in VARIANTS}
    subtle = {v: fewest_steps(of_paper[of_paper["fairness_q"] == 1], v) for v in VARIANTS}
    verdict = (
        f"A point is a segment of fairness and a step of {STEP:g} of accuracy in which enough "
        "splits have updates of COMMOD and of a blind rival. "
    ) + " ".join(
        f"{label_of(v)}: it has the fewest changes in {counts[v][0]} of {counts[v][1]} points, and "
        f"in the least fair segment in {subtle[v][0]} of {subtle[v][1]}. In {counts[v][2]} further "
        "points, rivals have updates and it has none."
        for v in VARIANTS
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
        "fewest changes, against blind rivals: "
        + "; ".join(f"{text} in {_of(counts[v])} points" for v, text in VARIANTS.items()),
        status_of(counts[AS_IN_PAPER]),
        verdict,
        (
            f"{BOTH_VARIANTS} On Adult, only the adaptive variant was run. The counts leave out "
            "Adult.",
            *(b for name, text in names for b in (f"**{text}**", picture(name, text, base))),
        ),
    )


def robustness(frames: Frames, base: str) -> Entry:
    """Say whether the result depends on the method whose quartiles define the segments."""
    steps = frames["robustness"]
    of_paper = steps[steps["table"] != ADULT]
    counts = {
        v: {d: fewest_steps(of_paper[of_paper["definition"] == d], v) for d in (2, 3)}
        for v in VARIANTS
    }
    worst = min(counts[AS_IN_PAPER].values(), key=lambda count: count[0] / max(count[1], 1))
    texts = {
        v: " and ".join(f"{_of(count)} points with definition {d}" for d, count in by.items())
        for v, by in counts.items()
    }
    alone = {v: " and ".join(str(n) for _, _, n in by.values()) for v, by in counts.items()}
    body = []
    for d in (2, 3):
        for name in (LAW_SCHOOL, COMPAS):
            text = f"{name}, definition {d} ({label_of(DEFINERS[d - 1])})"
            body += [f"**{text}**", picture(f"robustness_{slug(name)}_def{d}", text, base)]
    return Entry(
        "Robustness over the segments",
        "The result does not depend on the method whose quartiles define the segments",
        "in words",
        "; ".join(f"{text}: {texts[v]}" for v, text in VARIANTS.items()),
        status_of(worst),
        " ".join(
            f"{label_of(v)}: it has fewer changes than every blind rival in {texts[v]}. In "
            f"{alone[v]} further points, only rivals have updates."
            for v in VARIANTS
        ),
        (
            BOTH_VARIANTS,
            "The counts include both notions; the pictures show demographic parity. On Law School, "
            "the paper prints its edges. On COMPAS, and for equalized odds, the edges are those of "
            "our own sweeps.",
            *body,
        ),
    )
