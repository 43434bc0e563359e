"""Entry: sparsity and redundancy of concepts."""

from __future__ import annotations

import pandas as pd

from experiments.entries.entry import FAILS, HOLDS, PARTLY, Entry, Frames
from experiments.markdown import NOTHING, number, picture, spread, table
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
    sparser, apart, n = _ahead(wide, "FRAPPE")
    with_losses, apart_with, n_with = _ahead(wide, LOSSES)
    ours = bins.loc[bins["kind"] == "COMMOD", "sparsity"]
    trained = f"{number(ours.min(), 2)} to {number(ours.max(), 2)}"
    status = HOLDS if sparser == apart == n else PARTLY if sparser or apart else FAILS
    if not n:
        status = NOTHING
    lines = [
        [
            f"{line['kind']}, from {line['changes_from']:.2f}",
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
        f"sparser in {sparser}, less alike in {apart} of {n} bins of the share of changes",
        status,
        f"As trained, COMMOD's concepts are sparser in {sparser} of {n} bins and less redundant in "
        f"{apart} of {n}.",
        (
            picture("concepts", "Sparsity and redundancy of concepts by share of changes", base),
            table(["concepts, share of changes", "sparsity", "redundancy", "updates"], lines),
            "Sparsity is the share of zero weights (the paper counts the nonzero weights). "
            "Redundancy is the Jaccard index of signed supports, on absolute weights of rows of "
            f"unit norm. Sparser does not mean sparse: a share of only {trained} of the weights in "
            "COMMOD's trained concepts is zero. Bins in which one of the two methods has fewer "
            f"than {ENOUGH} updates are not counted.",
            "The concept losses make the difference. Against FRAPPE trained with the same losses, "
            f"COMMOD is sparser in {with_losses} and less redundant in {apart_with} of {n_with} "
            "bins. The data identify only the sum of the concepts. The library writes concepts by "
            "whole columns, and then no two concepts share a column.",
        ),
    )


def _ahead(wide: dict[str, pd.DataFrame], rival: str) -> tuple[int, int, int]:
    """Return three counts: bins in which COMMOD is sparser, bins with less redundancy, all bins."""
    if "COMMOD" not in wide["sparsity"] or rival not in wide["sparsity"]:
        return 0, 0, 0
    pair = {name: frame[["COMMOD", rival]].dropna() for name, frame in wide.items()}
    sparser = pair["sparsity"]["COMMOD"] > pair["sparsity"][rival]
    apart = pair["redundancy"]["COMMOD"] < pair["redundancy"][rival]
    return int(sparser.sum()), int(apart.sum()), len(sparser)
