"""Post-hoc against self-explainable."""

from __future__ import annotations

from experiments.entries.entry import FAILS, HOLDS, PARTLY, Entry, Frames, nothing_found
from experiments.markdown import number, picture, spread, table

HEAVY = 0.05  # of the P-rule


def post_hoc(frames: Frames, base: str) -> Entry:
    """Say what explaining FRAPPE afterwards costs in fairness."""
    found = frames["post_hoc"]
    claim = "Replacing FRAPPE's term by a tree of any depth loses much fairness; COMMOD loses none"
    if found.empty:
        return nothing_found("Post-hoc against self-explainable", claim)
    alone = found[found["depth"] == 0].set_index("model")
    trees = found[found["depth"] > 0]
    loss = alone.loc["FRAPPE", "p_rule"] - trees["p_rule"]
    heavy, below = int((loss > HEAVY).sum()), int((loss > 0).sum())
    status = HOLDS if heavy == len(trees) else PARTLY if heavy >= len(trees) / 2 else FAILS
    p_rule = {model: number(alone.loc[model, "p_rule"]) for model in alone.index}
    matched = ", ".join(
        f"{name} {number(alone.loc['COMMOD', name])} and {number(alone.loc['FRAPPE', name])}"
        for name in ("accuracy", "changes")
    )
    lines = [
        [
            line["model"] + (f", depth {line['depth']:.0f}" if line["depth"] else ""),
            *(spread(line[n], line[f"{n}_sd"]) for n in ("p_rule", "accuracy", "changes")),
        ]
        for line in found.to_dict("records")
    ]
    return Entry(
        "Post-hoc against self-explainable",
        claim,
        "in words (Law School)",
        f"P-rule {p_rule['FRAPPE']} falls to {number(trees['p_rule'].min())} to "
        f"{number(trees['p_rule'].max())}; COMMOD {p_rule['COMMOD']}",
        status,
        f"With a tree for its term FRAPPE loses more than {HEAVY:g} of its P-rule of "
        f"{p_rule['FRAPPE']} at {heavy} of {len(trees)} depths, and some at {below}; COMMOD, which "
        f"is its own explanation, has {p_rule['COMMOD']}. The match in changes is missing.",
        (
            picture("post_hoc", "P-rule of FRAPPE with a tree for its term, by depth", base),
            table(["model", "P-rule", "accuracy", "changes"], lines),
            "The paper matched fairness, accuracy and changes of the two; matched here are the "
            f"first two only ({matched}, COMMOD and FRAPPE).",
        ),
    )
