"""Whom updates change: nearness to the threshold, accuracy, directions, and scores left alone.

Every figure is measured on test rows that neither the base model nor the update has seen, except
the comparison of directions, which counts changes on fit rows. Splits are 0..9. The settings of
the search were chosen on splits from 100 on.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from protocol import first_splits
from report import show, show_at_most
from sklearn.metrics import roc_auc_score
from three_parts import MODELS, SCORE, TABLES, Part, three_parts

from commod import ControlledDebiaser, ScoreColumn, metrics
from commod.exceptions import CommodWarning
from commod.rivals import LPP

BORDERLINES = (0.0, 0.1, 1.0)
STRENGTHS = np.linspace(0, 1, 21).tolist()
MIN_GAINERS = 30  # pooled over splits: a table with fewer does not count for the probability
MAX_MORE_CHANGES, MIN_RISE, MAX_LOSS_RATIO = 1.12, 0.15, 0.7  # bars of the default
MAX_BELOW_LPP, MAX_LOSS_ABOVE_LPP = 0.05, 0.005  # bars of borderline=1
TWO_ERRORS = 2.0  # standard errors of a paired difference


def fit_on(part: Part, target: float, **settings: Any) -> ControlledDebiaser:
    """Return an update fitted on a part of a table, for a target on these rows."""
    fixed = {"target_on": "fit_rows"}
    update = ControlledDebiaser(ScoreColumn(SCORE), target=target, **fixed, **settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CommodWarning)
        return update.fit(part.X, part.y, sensitive_features=part.s)


def figures_of(part: Part, after: Any) -> dict[str, float]:
    """Return the figures of decisions on test rows; pairs are those of the same group."""
    before, after = part.score > 0.5, np.asarray(after, dtype=bool)
    gained = after & ~before
    wins, pairs = _pairs(part, gained, ~after & ~before)
    return {
        "p_rule": metrics.p_rule(None, after, sensitive_features=part.s, pos_label=True),
        "changes": float(np.mean(after != before)),
        "loss": float(np.mean(before == part.y) - np.mean(after == part.y)),
        "gainers": int(gained.sum()),
        "wins": wins,
        "pairs": pairs,
    }


def _pairs(part: Part, gained: Any, stayed: Any) -> tuple[float, float]:
    """Return in how many pairs of the same group the gainer outscores, and all such pairs."""
    wins = pairs = 0.0
    for group in np.unique(part.s):
        above, below = (part.score[rows & (part.s == group)] for rows in (gained, stayed))
        if len(above) and len(below):
            n = len(above) * len(below)
            label = np.repeat([1, 0], [len(above), len(below)])
            wins += n * float(roc_auc_score(label, np.concatenate([above, below])))
            pairs += n
    return wins, pairs


def _runs(name: str, model: str, seed: int) -> list[dict[str, Any]]:
    """Return the test figures of each `borderline`, and of LPP at many strengths."""
    fit, test = three_parts(name, model, seed)
    target, where = TABLES[name][2], {"table": name, "model": model, "seed": seed}
    rows: list[dict[str, Any]] = []
    for borderline in BORDERLINES:
        update = fit_on(fit, target, borderline=borderline)
        figures = figures_of(test, update.predict(test.X))
        scores = update.predict_proba(test.X)[:, 1]
        moved = fit_on(fit, target, borderline=borderline, score_edit="all")
        areas = {
            "area": roc_auc_score(test.y, test.score),
            "area_changed_only": roc_auc_score(test.y, scores),
            "area_all": roc_auc_score(test.y, moved.predict_proba(test.X)[:, 1]),
        }
        rows.append({**where, "method": borderline, **figures, **areas})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CommodWarning)
        for strength in STRENGTHS:
            rival = LPP(ScoreColumn(SCORE), strength=strength)
            rival.fit(fit.X, fit.y, sensitive_features=fit.s)
            figures = figures_of(test, rival.predict(test.X))
            rows.append({**where, "method": "LPP", "strength": strength, **figures})
    return rows


def _all_runs() -> pd.DataFrame:
    splits = [(t, m, s) for t in TABLES for m in MODELS for s in first_splits(10)]
    found = Parallel(n_jobs=-1)(delayed(_runs)(*split) for split in splits)
    return pd.DataFrame([row for rows in found for row in rows])


# ---------------------------------------------------------------------------------------------
# Borderline first


def borderline() -> None:
    """Compare `borderline` 0, 0.1 and 1 with each other and with LPP on six tables."""
    runs = _all_runs()
    _show_table(runs)
    _default(runs)
    _doubled(runs)
    _areas(runs)


def _of(runs: pd.DataFrame, table: str, method: Any) -> pd.DataFrame:
    rows = runs[(runs["table"] == table) & (runs["method"] == method)]
    return rows.set_index(["model", "seed"]).sort_index()


def _share(rows: pd.DataFrame) -> float:
    return float(rows["wins"].sum() / max(rows["pairs"].sum(), 1.0))


def _show_table(runs: pd.DataFrame) -> None:
    for table in TABLES:
        for method in BORDERLINES:
            rows = _of(runs, table, method)
            mean = rows[["p_rule", "changes", "loss"]].mean()
            show(
                f"{table}, borderline={method:g}: P-rule, changed, accuracy loss",
                f"{mean['p_rule']:.3f} {mean['changes']:.4f} {mean['loss']:+.4f}",
                f"outscores {_share(rows):.3f}",
            )


def _is_worse(difference: pd.Series) -> bool:
    """Return whether paired differences are above 0 by more than two standard errors."""
    known = difference.dropna()
    error = float(known.std(ddof=1) / np.sqrt(max(len(known), 1)))
    return bool(known.mean() > TWO_ERRORS * error)


def _default(runs: pd.DataFrame) -> None:
    """Print the bars of the default beside `borderline=0`."""
    changes, rises, losses, lower, costlier = [], [], [], [], []
    for table in TABLES:
        fewest, default = (_of(runs, table, method) for method in BORDERLINES[:2])
        changes.append(default["changes"].mean() / fewest["changes"].mean())
        losses.append((default["loss"].mean(), fewest["loss"].mean()))
        costlier += [table] * _is_worse(default["loss"] - fewest["loss"])
        if min(default["gainers"].sum(), fewest["gainers"].sum()) >= MIN_GAINERS:
            rises.append(_share(default) - _share(fewest))
            shares = [
                rows["wins"] / rows["pairs"].where(rows["pairs"] > 0) for rows in (fewest, default)
            ]
            lower += [table] * _is_worse(shares[0] - shares[1])
    show_at_most(
        "default: changes / those of borderline=0, mean",
        float(np.mean(changes)),
        MAX_MORE_CHANGES,
        f"(most {max(changes):.2f})",
    )
    rise = float(np.mean(rises))
    show(
        "default: rise of P(gainer outscores), mean",
        f"{rise:+.3f}",
        f">= {MIN_RISE}",
        rise >= MIN_RISE,
    )
    show("default: tables where it is lower", ", ".join(lower) or "none", "none", not lower)
    new, old = np.mean(losses, axis=0)
    show_at_most("default: accuracy loss / that of borderline=0", float(new / old), MAX_LOSS_RATIO)
    show(
        "default: tables where the loss is larger",
        ", ".join(costlier) or "none",
        "none",
        not costlier,
    )


def _doubled(runs: pd.DataFrame) -> None:
    """Print the bars of `borderline=1` beside LPP at the same P-rule."""
    above_half = 0
    for table in TABLES:
        fewest, doubled = _of(runs, table, 0.0), _of(runs, table, 1.0)
        lpp = _lpp_at(runs, table, doubled)
        share, extra = _share(doubled), doubled["changes"].mean() / fewest["changes"].mean()
        above_half += share >= 0.5
        least = lpp["share"] - MAX_BELOW_LPP
        name = f"{table}, borderline=1:"
        show(
            f"{name} P(gainer outscores)",
            f"{share:.3f}",
            f">= {least:.3f} (LPP − .05)",
            share >= least,
        )
        show_at_most(f"{name} changes / those of borderline=0", float(extra), 2.0)
        show_at_most(
            f"{name} changes, at LPP's P-rule", doubled["changes"].mean(), round(lpp["changes"], 4)
        )
        most = round(lpp["loss"] + MAX_LOSS_ABOVE_LPP, 4)
        show_at_most(f"{name} accuracy loss, at LPP's P-rule", doubled["loss"].mean(), most)
    show(
        "borderline=1: tables with P(gainer outscores) >= .5",
        f"{above_half} of 6",
        ">= 4",
        above_half >= 4,
    )


def _lpp_at(runs: pd.DataFrame, table: str, doubled: pd.DataFrame) -> dict[str, float]:
    """Return LPP's figures at the mean test P-rule of `doubled`, mean of both base models."""
    found: dict[str, list[float]] = {"share": [], "changes": [], "loss": []}
    for model in MODELS:
        rows = runs[(runs["table"] == table) & (runs["model"] == model) & (runs["method"] == "LPP")]
        by_strength = rows.groupby("strength")[["p_rule", "changes", "loss", "wins", "pairs"]]
        curve = by_strength.agg(
            {"p_rule": "mean", "changes": "mean", "loss": "mean", "wins": "sum", "pairs": "sum"}
        )
        curve["share"] = (curve["wins"] / curve["pairs"].where(curve["pairs"] > 0)).bfill()
        curve = curve.sort_values("p_rule")
        value = doubled.loc[model]["p_rule"].mean()
        for figure, values in found.items():
            values.append(float(np.interp(value, curve["p_rule"], curve[figure])))
    return {figure: float(np.mean(values)) for figure, values in found.items()}


def _areas(runs: pd.DataFrame) -> None:
    """Print the loss of AUC where only changed scores move, beside that of the continuous edit."""
    ratios = []
    for table in TABLES:
        edited = _of(runs, table, BORDERLINES[1])[["area", "area_changed_only"]].mean()
        moved = _of(runs, table, BORDERLINES[0])[["area", "area_all"]].mean()
        losses = edited["area"] - edited["area_changed_only"], moved["area"] - moved["area_all"]
        ratios.append(max(losses[0], 0.0) / max(losses[1], 1e-9))
        show_at_most(
            f"{table}: loss of AUC / that of score_edit='all', borderline=0",
            ratios[-1],
            0.5,
            f"({losses[0]:.4f} / {losses[1]:.4f})",
        )
    show_at_most("loss of AUC, mean ratio", float(np.mean(ratios)), 0.333)


# ---------------------------------------------------------------------------------------------
# Directions


def directions() -> None:
    """Check that `direction="any"` never changes more fit rows than one direction does."""
    settings = [(t, m, s) for t in TABLES for m in MODELS[1:] for s in range(5)]
    found = Parallel(n_jobs=-1)(delayed(_changes_by_direction)(*one) for one in settings)
    rows = pd.DataFrame([row for some in found for row in some])
    reached = rows[["gains_only", "losses_only"]].min(axis=1)
    worse = rows[rows["any"] > reached]
    show(
        'direction="any": fits with more changes than one direction',
        f"{len(worse)} of {len(rows)}",
        "0",
        worse.empty,
    )


def _changes_by_direction(name: str, model: str, seed: int) -> list[dict[str, float]]:
    fit, _ = three_parts(name, model, seed)
    high = TABLES[name][2]
    rows = []
    for target in (high, (1 + high) / 2):
        row: dict[str, float] = {}
        for direction in ("any", "gains_only", "losses_only"):
            update = fit_on(fit, target, borderline=0, direction=direction)
            row[direction] = update.change_rate_ if update.reached_ else np.inf
        rows.append(row)
    return rows
