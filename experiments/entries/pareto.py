"""Fairness against accuracy."""

from __future__ import annotations

import numpy as np

from experiments.entries.entry import FAILS, HOLDS, PARTLY, Entry, Frames, tables_in
from experiments.markdown import NOTHING, picture, spread, table
from experiments.methods import label_of
from experiments.protocol import ADULT

SIMILAR = 0.01  # of accuracy


def pareto(frames: Frames, base: str) -> Entry:
    """Say how COMMOD's accuracy compares at equal fairness."""
    curve, claims = frames["pareto"], frames["pareto_claims"]
    names = [n for n in tables_in(curve) if n != ADULT]
    lines, n_true, n_known = [], 0, 0
    for line in claims.to_dict("records"):
        answers = [_answer(line["claim"], line[f"gap_{short}"]) for short in ("dp", "eo")]
        n_true += answers.count("yes")
        n_known += sum(answer != NOTHING for answer in answers)
        gaps = [spread(line[f"gap_{short}"], line[f"sd_{short}"]) for short in ("dp", "eo")]
        what = f"{line['table']}: COMMOD against {label_of(line['rival'])}"
        lines.append([what, line["claim"], gaps[0], answers[0], gaps[1], answers[1]])
    share = n_true / max(n_known, 1)
    status = HOLDS if share == 1 else PARTLY if share >= 0.5 else FAILS
    header = ["claim", "paper", "accuracy gap, DP", "so", "accuracy gap, EO", "so"]
    why = (
        "Gaps are COMMOD's accuracy minus the other's, means over the splits and levels of "
        f'fairness that both reach, ± over splits; "similar" is taken as within {SIMILAR:g}. '
        "A likely reason where COMMOD is less accurate is what it is made for: it inverts the "
        "decisions of whole regions, and people there were not all in doubt. Tried: a network for "
        "the ratio, which is no more accurate (entry on architectures)."
    )
    body = [
        picture("pareto", "Accuracy against fairness, both tables, both notions", base),
        table(header, lines),
        why,
    ]
    if ADULT in tables_in(curve):
        body += [f"**{ADULT}**", picture("pareto_adult", "Accuracy against fairness, Adult", base)]
    return Entry(
        "Fairness and accuracy",
        "COMMOD is better than LPP on Law School and than FRAPPE on COMPAS, similar to the other "
        "blind methods, and worse than the oracles",
        "in words",
        f"{n_true} of {n_known} comparisons on {' and '.join(names)} come out",
        status,
        f"{n_true} of the paper's {n_known} comparisons (both notions) hold at equal fairness.",
        tuple(body),
    )


def _answer(claim: str, gap: float) -> str:
    """Return whether a gap of accuracy is what the paper says, or how it is not."""
    if np.isnan(gap):
        return NOTHING
    found = "similar" if abs(gap) <= SIMILAR else "better" if gap > 0 else "worse"
    return "yes" if found == claim else f"no, {found}"
