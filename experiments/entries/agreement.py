"""Score agreement."""

from __future__ import annotations

from experiments.entries.entry import FAILS, HOLDS, PARTLY, Entry, Frames, nothing_found
from experiments.markdown import number, picture, spread, table
from experiments.methods import label_of


def agreement(frames: Frames, base: str) -> Entry:
    """Say whose edited scores stay closer to the black box's."""
    found = frames["agreement"]
    claim = "COMMOD keeps scores of unchanged people closer to the black box's than AdvDebias"
    if found.empty:
        return nothing_found("Score agreement", claim)
    kept = found[found["people"] == "unchanged"].set_index("method")
    moved = kept["mean_absolute_difference"]
    near = bool(moved["COMMOD"] < moved["AdversarialDebiasing"])
    ranks = kept["rank_correlation"]
    told = {m: spread(moved[m], kept.loc[m, "mean_absolute_difference_sd"]) for m in kept.index}
    lines = [
        [
            f"{label_of(line['method'])}, {line['people']}",
            *(number(line[n]) for n in ("p_rule", "accuracy", "changes")),
            *(
                spread(line[n], line[f"{n}_sd"])
                for n in ("mean_absolute_difference", "correlation", "rank_correlation")
            ),
        ]
        for line in found.to_dict("records")
    ]
    header = [
        "scores of",
        "P-rule",
        "accuracy",
        "changes",
        "mean absolute difference",
        "correlation",
    ]
    header += ["rank correlation"]
    ordered = bool(ranks["COMMOD"] > ranks["AdversarialDebiasing"])
    return Entry(
        'Score agreement ("calibration")',
        claim,
        "in words (Law School)",
        f"mean absolute difference {told['COMMOD']} against {told['AdversarialDebiasing']}",
        HOLDS if near and ordered else PARTLY if near or ordered else FAILS,
        f"Scores of unchanged people move by {told['COMMOD']} with COMMOD and by "
        f"{told['AdversarialDebiasing']} with AdvDebias, at similar fairness and accuracy.",
        (
            picture("agreement", "Scores after against scores before, both methods", base),
            table(header, lines),
            "The paper calls this calibration; it is agreement of two columns of scores and says "
            "nothing about frequencies.",
        ),
    )
