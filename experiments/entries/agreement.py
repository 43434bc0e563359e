"""Entry: how closely edited scores agree with the black box's scores."""

from __future__ import annotations

from experiments.entries.entry import (
    ADAPTIVE_ONLY,
    FAILS,
    HOLDS,
    PARTLY,
    Entry,
    Frames,
    entry_without_updates,
)
from experiments.markdown import number, picture, spread, table
from experiments.methods import label_of


def agreement(frames: Frames, base: str) -> Entry:
    """Say which method's edited scores stay closer to the black box's."""
    measures = frames["agreement"]
    claim = "COMMOD keeps the scores of unchanged people closer to the black box's than AdvDebias"
    if measures.empty:
        return entry_without_updates("Score agreement", claim)
    kept = measures[measures["people"] == "unchanged"].set_index("method")
    moved = kept["mean_absolute_difference"]
    near = bool(moved["COMMOD"] < moved["AdversarialDebiasing"])
    ranks = kept["rank_correlation"]
    texts = {m: spread(moved[m], kept.loc[m, "mean_absolute_difference_sd"]) for m in kept.index}
    lines = [
        [
            f"{label_of(line['method'])}, {line['people']}",
            *(number(line[n]) for n in ("p_rule", "accuracy", "changes")),
            *(
                spread(line[n], line[f"{n}_sd"])
                for n in ("mean_absolute_difference", "correlation", "rank_correlation")
            ),
        ]
        for line in measures.to_dict("records")
    ]
    header = [
        "scores of",
        "P-rule",
        "accuracy",
        "changes",
        "mean absolute difference",
        "correlation",
        "rank correlation",
    ]
    ordered = bool(ranks["COMMOD"] > ranks["AdversarialDebiasing"])
    return Entry(
        'Score agreement ("calibration")',
        claim,
        "in words (Law School)",
        f"adaptive: mean absolute difference {texts['COMMOD']} against "
        f"{texts['AdversarialDebiasing']}",
        HOLDS if near and ordered else PARTLY if near or ordered else FAILS,
        f"The scores of unchanged people move by {texts['COMMOD']} with COMMOD and by "
        f"{texts['AdversarialDebiasing']} with AdvDebias, at similar fairness and accuracy.",
        (
            picture("agreement", "Scores after against scores before, both methods", base),
            table(header, lines),
            ADAPTIVE_ONLY,
            "The paper calls this calibration. It is the agreement of two columns of scores, and "
            "it says nothing about frequencies.",
        ),
    )
