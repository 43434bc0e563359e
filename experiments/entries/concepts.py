"""Sparsity and redundancy of concepts."""

from __future__ import annotations

import pandas as pd

from experiments.entries.entry import FAILS, HOLDS, PARTLY, Entry, Frames
from experiments.markdown import NOTHING, number, picture, spread, table
from experiments.table_1 import ENOUGH

LOSSES = "FRAPPE, with COMMOD's concept losses"


def concepts(frames: Frames, base: str) -> Entry:
    """Say whether COMMOD's concepts are sparser and less alike than FRAPPE's."""
    found = frames["concepts"]
    enough = found[found["n_updates"] >= min(ENOUGH, found["n_updates"].max())]
    wide = {
        name: enough.pivot_table(index="changes_from", columns="kind", values=name)
        for name in ("sparsity", "redundancy")
    }
    sparser, apart, n = _ahead(wide, "FRAPPE")
    with_losses, apart_with, n_with = _ahead(wide, LOSSES)
    ours = found.loc[found["kind"] == "COMMOD", "sparsity"]
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
        for line in found.to_dict("records")
    ]
    return Entry(
        "Sparsity and diversity of concepts",
        "At every number of changes COMMOD's concepts are sparser and less alike than FRAPPE's",
        "in words (Law School, k = 2)",
        f"sparser in {sparser}, less alike in {apart} of {n} bins of the share of changes",
        status,
        f"Sparser in {sparser} of {n} bins, less redundant in {apart} of {n}, as trained.",
        (
            picture("concepts", "Sparsity and redundancy of concepts by share of changes", base),
            table(["concepts, share of changes", "sparsity", "redundancy", "updates"], lines),
            "Sparsity is the share of zero weights (the paper counts the others), redundancy the "
            "Jaccard index of signed supports, on absolute weights of rows of unit norm. Sparser "
            f"is not sparse: COMMOD's trained concepts have {trained} zeros. Bins in which one of "
            f"the two has fewer than {ENOUGH} updates are not counted. The credit belongs to the "
            "concept losses: against FRAPPE trained with the same ones COMMOD is sparser in "
            f"{with_losses} and less redundant in {apart_with} of {n_with} bins. And only the sum "
            "of the concepts is identified by the data: written by whole columns, as the library "
            "shows them, any two share nothing.",
        ),
    )


def _ahead(wide: dict[str, pd.DataFrame], rival: str) -> tuple[int, int, int]:
    """Return in how many bins COMMOD is sparser, in how many less redundant, and of how many."""
    if "COMMOD" not in wide["sparsity"] or rival not in wide["sparsity"]:
        return 0, 0, 0
    pair = {name: frame[["COMMOD", rival]].dropna() for name, frame in wide.items()}
    sparser = pair["sparsity"]["COMMOD"] > pair["sparsity"][rival]
    apart = pair["redundancy"]["COMMOD"] < pair["redundancy"][rival]
    return int(sparser.sum()), int(apart.sum()), len(sparser)
