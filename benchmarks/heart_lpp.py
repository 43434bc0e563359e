"""Compare default updates with LPP and a bias-score rule, on six tables.

LPP and the bias-score rule (Chen, Klochkov and Liu 2024) seek the best accuracy, so they take more
changes. All of them read X only. Every method is measured on test rows that neither the base model
nor the update has seen. The rivals run at many strengths, and their mean figures are interpolated
to our mean test P-rule.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
from borderline import STRENGTHS, figures_of
from heart_jobs import PARITY, Job, fit_and_test_rows, fitted
from heart_jobs import tables as chosen_tables
from parallel import chosen_settings, in_parallel, seeds
from report import show
from sklearn.ensemble import HistGradientBoostingClassifier
from three_parts import MODELS, SCORE, TABLES, Part, base_model

from commod import ScoreColumn
from commod.rivals import LPP

OURS = "ours"
RIVALS = ("LPP", "bias score")
N_SPLITS = 20
MAX_LOSS_ABOVE_LPP = 0.002
MIN_ORDER, MIN_ORDERED = 0.5, 4  # order of the gainers; tables that reach it
FIGURES = ["p_rule", "changes", "loss", "wins", "pairs"]


def heart_lpp() -> None:
    """Print changes, loss of accuracy and order of the gainers beside the rivals'."""
    names = chosen_tables()
    tasks = [
        (table, model, seed) for table in names for model in MODELS for seed in seeds(N_SPLITS)
    ]
    runs = pd.DataFrame([row for rows in in_parallel(_runs, tasks) for row in rows])
    ours = {table: _ours(runs, table, OURS) for table in names}
    for rival in RIVALS:
        _show_duel(rival, ours, {table: _rival_at(runs, table, rival) for table in names})
    _show_order(ours)


def _runs(table: str, model: str, seed: int) -> list[dict[str, Any]]:
    """Return the test figures of our update, and of rivals by strength."""
    fit, test = fit_and_test_rows(table, model, seed)
    job = Job(table, model, PARITY, TABLES[table][2])
    where = {"table": table, "model": model, "seed": seed}
    rows: list[dict[str, Any]] = []

    def record(method: str, decisions: Any, **more: float) -> None:
        rows.append({**where, "method": method, **figures_of(test, decisions), **more})

    update, _ = fitted(job, fit, **chosen_settings())
    record(OURS, update.predict(test.X))
    bias_score = BiasScore(fit)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for strength in STRENGTHS:
            rival = LPP(ScoreColumn(SCORE), strength=strength)
            rival.fit(fit.X, fit.y, sensitive_features=fit.s)
            record("LPP", rival.predict(test.X), strength=strength)
            record("bias score", bias_score.predict(test, strength), strength=strength)
    return rows


class BiasScore:
    """Change decisions in the order of evidence over distance, with a boosted P(group | x).

    The evidence is P(group with the lower rate | x) minus that group's share. Those without the
    favourable decision gain where it is high; those with it lose where it is low.
    """

    def __init__(self, fit: Part) -> None:
        decided = fit.score > 0.5
        groups = np.unique(fit.s)
        lower = groups[np.argmin([decided[fit.s == group].mean() for group in groups])]
        self.model = base_model(MODELS[1])
        self.model.steps[-1] = ("group", HistGradientBoostingClassifier(random_state=0))
        self.model.fit(fit.X.drop(columns=SCORE), fit.s == lower)
        self.share = float(np.mean(fit.s == lower))

    def predict(self, part: Part, strength: float) -> Any:
        """Return decisions in which a share `strength` of half of the people may change."""
        proba = self.model.predict_proba(part.X.drop(columns=SCORE))[:, 1]
        before = part.score > 0.5
        evidence = np.where(before, -1, 1) * (proba - self.share)
        order = np.argsort(-evidence / np.maximum(np.abs(part.score - 0.5), 1e-12), kind="stable")
        changed = order[: int(strength * (evidence > 0).sum() / 2)]
        after = before.copy()
        after[changed] = ~after[changed]
        return after


# ---------------------------------------------------------------------------------------------
# Means


def _curve(runs: pd.DataFrame, keys: str) -> pd.DataFrame:
    """Return mean figures, and the order of the gainers over the pairs of all splits."""
    mean = runs.groupby(keys)[FIGURES].mean()
    return mean.assign(order=mean["wins"] / mean["pairs"].where(mean["pairs"] > 0))


def _ours(runs: pd.DataFrame, table: str, method: str) -> pd.Series:
    """Return the mean figures of an update, each base model with equal weight."""
    rows = runs[(runs["table"] == table) & (runs["method"] == method)]
    return _curve(rows, "model").mean()


def _rival_at(runs: pd.DataFrame, table: str, rival: str) -> pd.Series:
    """Return a rival's figures at our mean test P-rule of the same base model, mean of both."""
    found = []
    for model in MODELS:
        rows = runs[(runs["table"] == table) & (runs["model"] == model)]
        wanted = rows.loc[rows["method"] == OURS, "p_rule"].mean()
        curve = _curve(rows[rows["method"] == rival], "strength").bfill()
        curve = curve[: int(curve["p_rule"].argmax()) + 1]  # beyond it, the other group is behind
        curve = curve.sort_values("p_rule")
        found.append({name: np.interp(wanted, curve["p_rule"], curve[name]) for name in curve})
    return pd.DataFrame(found).mean()


# ---------------------------------------------------------------------------------------------
# Bars


def _show_duel(rival: str, ours: dict[str, pd.Series], theirs: dict[str, pd.Series]) -> None:
    """Print the changes and the loss of accuracy at equal P-rule; LPP has bars."""
    n_fewer = 0
    for table, own in ours.items():
        other = theirs[table]
        n_fewer += bool(own["changes"] < other["changes"])
        show(
            f"{table}: changed, ours / {rival}, P-rule {own['p_rule']:.3f}",
            f"{own['changes']:.4f} / {other['changes']:.4f}",
            f"loss {own['loss']:+.4f} / {other['loss']:+.4f}",
        )
        show(f"{table}:   order of the gainers", f"{own['order']:.3f} / {other['order']:.3f}")
    is_judged, n = rival == "LPP", len(ours)
    show(
        f"tables with fewer changes than {rival}",
        f"{n_fewer} of {n}",
        f"{n} of {n}" if is_judged else "reported",
        n_fewer == n if is_judged else None,
    )
    losses = [float(np.mean([row["loss"] for row in rows.values()])) for rows in (ours, theirs)]
    if is_judged:
        most = round(losses[1] + MAX_LOSS_ABOVE_LPP, 4)
        show(
            "mean loss of accuracy",
            f"{losses[0]:.4f}",
            f"<= {most} (LPP + .002)",
            losses[0] <= most,
        )
    else:
        show(f"mean loss of accuracy, ours / {rival}", f"{losses[0]:.4f} / {losses[1]:.4f}")


def _show_order(ours: dict[str, pd.Series]) -> None:
    n = sum(bool(own["order"] >= MIN_ORDER) for own in ours.values())
    label = f"tables with order of the gainers >= {MIN_ORDER}"
    show(label, f"{n} of {len(ours)}", f">= {MIN_ORDERED}", n >= MIN_ORDERED)
