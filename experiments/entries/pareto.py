"""Entry: fairness against accuracy."""

from __future__ import annotations

import numpy as np

from experiments.entries.entry import FAILS, HOLDS, PARTLY, Entry, Frames, tables_in
from experiments.markdown import NOTHING, picture, spread, table
from experiments.methods import label_of
from experiments.protocol import ADULT

SIMILAR = 0.01  # largest gap of accuracy that counts as similar


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
        comparison = f"{line['table']}: adaptive COMMOD against {label_of(line['rival'])}"
        lines.append([comparison, line["claim"], gaps[0], answers[0], gaps[1], answers[1]])
    share = n_true / max(n_known, 1)
    status = HOLDS if share == 1 else PARTLY if share >= 0.5 else FAILS
    header = ["claim", "paper", "accuracy gap, DP", "holds", "accuracy gap, EO", "holds"]
    reason = (
        "The picture shows both variants of COMMOD, the table the adaptive one. A gap is its "
        "accuracy minus the other method's. It is the mean over the splits and levels of fairness "
        "that both reach, ± the standard deviation over splits. Accuracies within "
        f"{SIMILAR:g} of each other count as similar. Where COMMOD is less accurate, the likely "
        "reason is its purpose. It inverts the decisions of whole regions, and not all "
        "people there are near the threshold. We also tried a network for the ratio. It is no more "
        "accurate (entry on architectures)."
    )
    body = [
        picture("pareto", "Accuracy against fairness, both tables, both notions", base),
        table(header, lines),
        reason,
    ]
    if ADULT in tables_in(curve):
        body += [f"**{ADULT}**", picture("pareto_adult", "Accuracy against fairness, Adult", base)]
    return Entry(
        "Fairness and accuracy",
        "COMMOD is better than LPP on Law School and than FRAPPE on COMPAS, similar to the other "
        "blind methods, and worse than the oracles",
        "in words",
        f"adaptive: {n_true} of {n_known} comparisons on {' and '.join(names)} hold",
        status,
        f"With adaptive COMMOD, {n_true} of the paper's {n_known} comparisons (both notions) hold "
        "at equal fairness.",
        tuple(body),
    )


def _answer(claim: str, gap: float) -> str:
    """Return whether a gap of accuracy is what the paper says, or how it differs."""
    if np.isnan(gap):
        return NOTHING
    observed = "similar" if abs(gap) <= SIMILAR else "better" if gap > 0 else "worse"
    return "yes" if observed == claim else f"no, {observed}"
