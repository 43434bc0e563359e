"""Entry: sparsity and redundancy of concepts."""

from __future__ import annotations

import pandas as pd

from experiments.concepts import LABELS
from experiments.entries.entry import BOTH_VARIANTS, FAILS, HOLDS, PARTLY, Entry, Frames
from experiments.markdown import NOTHING, number, picture, spread, table
from experiments.methods import AS_IN_PAPER
from experiments.table_1 import ENOUGH

LOSSES = "FRAPPE, with COMMOD's concept losses"


def concepts(frames: Frames, base: str) -> Entry:
    """Say whether COMMOD's concepts are sparser and less alike than FRAPPE's."""
    bins = frames["concepts"]
    enough = bins[bins["n_updates"] >= min(ENOUGH, bins["n_updates"].max())]
    wide = {
        name: enough.pivot_table(index="changes_from", columns="kind", values=name)
        for name in ("sparsity", "redundancy")
    }
    sparser, apart, n = _ahead(wide, AS_IN_PAPER, "FRAPPE")
    adaptive = _ahead(wide, "COMMOD", "FRAPPE")
    with_losses, apart_with, n_with = _ahead(wide, "COMMOD", LOSSES)
    adaptive_zeros, papers_zeros = (_zeros(bins, kind) for kind in ("COMMOD", AS_IN_PAPER))
    status = HOLDS if sparser == apart == n else PARTLY if sparser or apart else FAILS
    if not n:
        status = NOTHING
    texts = [
        f"as in the paper, sparser in {sparser} and less alike in {apart} of {n} bins",
        f"adaptive, in {adaptive[0]} and in {adaptive[1]} of {adaptive[2]}",
    ]
    lines = [
        [
            f"{LABELS.get(line['kind'], line['kind'])}, from {line['changes_from']:.2f}",
            spread(line["sparsity"], line["sparsity_sd"], 2),
            spread(line["redundancy"], line["redundancy_sd"], 2),
            int(line["n_updates"]),
        ]
        for line in bins.to_dict("records")
    ]
    return Entry(
        "Sparsity and diversity of concepts",
        "At every share of changes, COMMOD's concepts are sparser and less alike than FRAPPE's",
        "in words (Law School, k = 2)",
        "; ".join(texts),
        status,
        f"COMMOD's trained concepts against FRAPPE's, per bin of the share of changes: "
        f"{'; '.join(texts)}.",
        (
            BOTH_VARIANTS,
            picture("concepts", "Sparsity and redundancy of concepts by share of changes", base),
            table(["concepts, share of changes", "sparsity", "redundancy", "updates"], lines),
            "Sparsity is the share of zero weights (the paper counts the nonzero weights). "
            "Redundancy is the Jaccard index of signed supports, on absolute weights of rows of "
            "unit norm. Sparser does not mean sparse: in the trained concepts, only this share of "
            f"the weights is zero: adaptive {adaptive_zeros}, as in the paper {papers_zeros}. "
            f"Bins in which one of the two methods has fewer than {ENOUGH} updates are not "
            "counted.",
            "Against FRAPPE trained with the same losses on its concepts, adaptive COMMOD is "
            f"sparser in {with_losses} and less redundant in {apart_with} of {n_with} bins. The "
            "data identify only the sum of the concepts. The library shows a partition of this sum "
            "by column. No column lies in two parts, so the partition has no redundancy by "
            "construction. It was not learned.",
        ),
    )


def _zeros(bins: pd.DataFrame, kind: str) -> str:
    """Return the lowest and the highest mean sparsity over bins."""
    shares = bins.loc[bins["kind"] == kind, "sparsity"]
    return f"{number(shares.min(), 2)} to {number(shares.max(), 2)}"


def _ahead(wide: dict[str, pd.DataFrame], variant: str, rival: str) -> tuple[int, int, int]:
    """Return three counts: bins in which COMMOD is sparser, bins with less redundancy, all bins."""
    if variant not in wide["sparsity"] or rival not in wide["sparsity"]:
        return 0, 0, 0
    pair = {name: frame[[variant, rival]].dropna() for name, frame in wide.items()}
    sparser = pair["sparsity"][variant] > pair["sparsity"][rival]
    apart = pair["redundancy"][variant] < pair["redundancy"][rival]
    return int(sparser.sum()), int(apart.sum()), len(sparser)
