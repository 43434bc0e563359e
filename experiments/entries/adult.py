"""Entry: Adult, a table that the paper does not have."""

from __future__ import annotations

import pandas as pd

from experiments.entries.entry import (
    BEYOND,
    NOT_IN_PAPER,
    NOTIONS,
    Entry,
    Frames,
    contests,
    count_won,
    fewest_steps,
)
from experiments.markdown import NOTHING, number
from experiments.methods import BLIND, label_of
from experiments.paper import DP, EO
from experiments.protocol import ADULT


def adult(frames: Frames, base: str) -> Entry:
    """Say whether the ordering of the methods holds on Adult."""
    ordering = frames["ordering"]
    part = ordering[(ordering["table"] == ADULT) & (ordering["definition"] == 1)]
    if part.empty:
        verdict = "The table could not be fetched for this run."
        title = f"A third table: {ADULT}"
        return Entry(title, NOT_IN_PAPER, NOTHING, NOTHING, NOTHING, verdict, ())
    texts = [_texts_of_notion(frames, notion) for notion in (DP, EO)]
    return Entry(
        f"A third table: {ADULT}",
        f"{NOT_IN_PAPER}: incomes of a census, groups by sex",
        NOTHING,
        "; ".join(ours for ours, _ in texts),
        BEYOND,
        " ".join(verdict for _, verdict in texts),
        (
            "The entries above show the tables and pictures of Adult: Table 1 (with our own "
            "quartiles), the deciding table, Figure 1, fairness and accuracy, the limits and gains "
            "only. COMMOD is the adaptive variant: the paper has no Adult, so its settings were "
            "not run here. Methods that train use fewer epochs here, so that they take as many "
            "steps as on the paper's tables.",
        ),
    )


def _texts_of_notion(frames: Frames, notion: str) -> tuple[str, str]:
    """Return the text of the summary and the text of the verdict for one notion."""
    steps, duels = frames["figure_1"], frames["duels"]
    most = int(frames["deciding"]["n_splits"].max())
    first, n, alone = fewest_steps(steps[(steps["table"] == ADULT) & (steps["notion"] == notion)])
    duels_here = duels[(duels["table"] == ADULT) & (duels["notion"] == notion)]
    ours = contests(duels_here, "ControlledDebiaser", "COMMOD", most)
    rivals = pd.concat([contests(duels_here, "COMMOD", name, most) for name in BLIND])
    curve = frames["pareto"]
    curve = curve[(curve["table"] == ADULT) & (curve["notion"] == notion)]
    summary = f"{NOTIONS[notion]}: adaptive COMMOD fewest in {first} of {n} points"
    verdict = (
        f"For {NOTIONS[notion]}, adaptive COMMOD has the fewest changes of the blind methods in "
        f"{first} of {n} points of Figure 1; {alone} further points have none of its updates. In "
        "the deciding table, it needs no more changes than a rival in "
        f"{count_won(rivals, notion)} combinations, and ControlledDebiaser no more than it in "
        f"{count_won(ours, notion)}. The price is accuracy: "
        f"{_accuracies(curve)}."
    )
    return summary, verdict


def _accuracies(curve: pd.DataFrame) -> str:
    """Return the blind methods' best accuracies at the fairest level all reach in every split."""
    methods = [*BLIND, "ControlledDebiaser"]
    full = curve[curve["method"].isin(methods) & (curve["n_reached"] == curve["n_splits"])]
    wide = full.pivot_table(index="level", columns="method", values="accuracy", sort=False)
    common = wide.reindex(columns=methods).dropna()
    if common.empty:
        return "not all methods reach a common level in every split"
    level, accuracies = common.index[-1], common.iloc[-1]
    text = ", ".join(f"{label_of(name)} {number(value)}" for name, value in accuracies.items())
    return f"at a level of {level:g}, the best accuracies are {text}"
