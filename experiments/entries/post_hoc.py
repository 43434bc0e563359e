"""Entry: a post-hoc explanation against a self-explainable update."""

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

HEAVY = 0.05  # loss of P-rule that counts as heavy


def post_hoc(frames: Frames, base: str) -> Entry:
    """Say what explaining FRAPPE afterwards costs in fairness."""
    models = frames["post_hoc"]
    claim = "FRAPPE loses much fairness if a tree of any depth replaces its term; COMMOD loses none"
    if models.empty:
        return entry_without_updates("Post-hoc against self-explainable", claim)
    alone = models[models["depth"] == 0].set_index("model")
    trees = models[models["depth"] > 0]
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
            label_of(line["model"]) + (f", depth {line['depth']:.0f}" if line["depth"] else ""),
            *(spread(line[n], line[f"{n}_sd"]) for n in ("p_rule", "accuracy", "changes")),
        ]
        for line in models.to_dict("records")
    ]
    return Entry(
        "Post-hoc against self-explainable",
        claim,
        "in words (Law School)",
        f"P-rule {p_rule['FRAPPE']} falls to {number(trees['p_rule'].min())} to "
        f"{number(trees['p_rule'].max())}; COMMOD, adaptive {p_rule['COMMOD']}",
        status,
        f"FRAPPE has a P-rule of {p_rule['FRAPPE']}. If a tree replaces its term, the P-rule falls "
        f"by more than {HEAVY:g} at {heavy} of {len(trees)} depths, and it falls at all at "
        f"{below}. COMMOD is its own explanation and has a P-rule of {p_rule['COMMOD']}. The two "
        "methods are not matched in changes.",
        (
            picture("post_hoc", "P-rule of FRAPPE with a tree for its term, by depth", base),
            table(["model", "P-rule", "accuracy", "changes"], lines),
            ADAPTIVE_ONLY,
            "The paper matched the two methods in fairness, accuracy and changes. Here they are "
            f"matched in the first two only (COMMOD and FRAPPE: {matched}).",
        ),
    )
