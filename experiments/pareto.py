"""Fairness against accuracy: the best accuracy of each method at each level of fairness."""

from __future__ import annotations

import numpy as np
import pandas as pd

from experiments.paper import COMPAS, DP, EO, LAW_SCHOOL
from experiments.run import Done
from experiments.settings import Settings

N_LEVELS = 13
KEYS = ["table", "notion", "method", "level"]
CLAIMS = {  # of the paper's appendix: COMMOD's accuracy against the rival's
    (LAW_SCHOOL, "LPP"): "better",
    (COMPAS, "FRAPPE"): "better",
    (COMPAS, "LPP"): "similar",
    (LAW_SCHOOL, "FRAPPE"): "similar",
    (LAW_SCHOOL, "AdversarialDebiasing"): "similar",
    (COMPAS, "AdversarialDebiasing"): "similar",
    (LAW_SCHOOL, "LPP (aware)"): "worse",
    (COMPAS, "LPP (aware)"): "worse",
    (COMPAS, "RejectOption"): "worse",
}


def tables(done: Done, settings: Settings, sweeps: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return the best accuracies of all methods, and the paper's comparisons."""
    best = best_by_split(sweeps)
    return {"pareto": _over_splits(best), "pareto_claims": _claims(best)}


def _claims(best: pd.DataFrame) -> pd.DataFrame:
    """Return the paper's comparisons with the mean gap of accuracy at equal fairness."""
    return pd.DataFrame(
        [
            {"table": table, "rival": rival, "claim": claim}
            | {
                f"{name}_{short}": value
                for notion, short in ((DP, "dp"), (EO, "eo"))
                for name, value in _gap(best, table, notion, rival).items()
            }
            for (table, rival), claim in CLAIMS.items()
        ]
    )


def _gap(best: pd.DataFrame, table: str, notion: str, rival: str) -> dict[str, float]:
    """Return COMMOD's best accuracy minus the rival's, on the splits and levels both reach."""
    part = best[(best["table"] == table) & (best["notion"] == notion)]
    return accuracy_gap(part, "COMMOD", rival)


def accuracy_gap(best: pd.DataFrame, one: str, other: str) -> dict[str, float]:
    """Return the mean gap of accuracy over the splits and levels that two methods both reach.

    `sd` is its standard deviation over splits, `n` the number of splits.
    """
    fairer = best[~best["is_base"]]  # the base model reaches its own level
    wide = fairer.pivot_table(index=["split", "level"], columns="method", values="best")
    if one not in wide or other not in wide:
        return {"gap": np.nan, "sd": np.nan, "n": 0}
    gaps = (wide[one] - wide[other]).dropna()
    by_split = gaps.groupby("split").mean()
    return {"gap": gaps.mean(), "sd": by_split.std(), "n": len(by_split)}


def attained(updates: pd.DataFrame) -> pd.DataFrame:
    """Return mean and spread over splits of the best accuracy at each level of fairness.

    Levels go from the base model to parity. Only splits in which the method reaches the level
    count; `n_reached` is their number.
    """
    return _over_splits(best_by_split(updates))


def _over_splits(best: pd.DataFrame) -> pd.DataFrame:
    grouped = best.groupby(KEYS, sort=False)["best"]
    summary = grouped.agg(accuracy="mean", sd="std", n_reached="count", n_splits="size")
    return summary.reset_index()


def best_by_split(updates: pd.DataFrame) -> pd.DataFrame:
    """Return each method's best accuracy at each level on each split; NaN if not reached."""
    records = []
    for (table, notion), part in updates.groupby(["table", "notion"], sort=False):
        levels = _levels(part, str(notion))
        records += [
            {"table": table, "notion": notion, "method": method, "split": split}
            | {"level": level, "is_base": level == levels[0], "best": best}
            for (method, split), updates in part.groupby(["method", "split"], sort=False)
            for level, best in _best(updates, levels, str(notion))
        ]
    return pd.DataFrame(records)


def _levels(part: pd.DataFrame, notion: str) -> list[float]:
    base = part.groupby("split")["base_fairness"].first().mean()
    return np.linspace(base, 1.0 if notion == DP else 0.0, N_LEVELS).round(3).tolist()


def _best(updates: pd.DataFrame, levels: list[float], notion: str) -> list[tuple[float, float]]:
    """Return each level with the best accuracy there; the base model is one of the updates."""
    fairness = np.append(updates["fairness"], updates["base_fairness"].iloc[0])
    accuracy = np.append(updates["accuracy"], updates["base_accuracy"].iloc[0])
    best = []
    for level in levels:
        reaching = fairness >= level if notion == DP else fairness <= level
        best.append((level, accuracy[reaching].max() if reaching.any() else np.nan))
    return best
