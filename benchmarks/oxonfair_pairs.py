"""Compare changes with OxonFair's for pairs of constraints, at the same values on test rows.

Both methods are blind: neither sees the group of a test row. OxonFair runs in its own environment
and maximises accuracy. Its model of the group is fitted on the rows of the base model. Ours sees
groups on the fit rows only. The steps for a table, a split and a pair of constraints:

1. Bounds follow from the base model on the fit rows: half of its gap, or a floor halfway between
   the rate of its worst group and that of all rows.
2. OxonFair fits these bounds on the fit rows, with hard and with soft inferred groups. Of the
   results that keep both bounds there, the one with fewer changes counts.
3. Ours is asked for the values that OxonFair reached on the fit rows, loosened or tightened by
   `MARGINS`. A gap below `LEAST_GAP` is chance, so no smaller one is asked for at the margin 0.
4. `constraint_values.py` measures both on the test rows.

Ours counts at the smallest margin where the means over splits of both values are at least as
strict as OxonFair's; figures between two margins are interpolated. So the test rows choose one
margin per table and pair, and nothing per split.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from constraint_values import COLUMN, KINDS, PAIRS, Pair, Rows
from environments import HERE, python_of
from experiments.protocol import quietly
from parallel import chosen_settings, in_parallel, kept, seeds
from report import show
from three_parts import MODELS, SCORE, Part, all_parts, base_model

from commod import ControlledDebiaser, ScoreColumn

N_SPLITS = 5
MARGINS = (-0.3, 0.0, 0.3)  # a gap shrinks by this share, a floor rises with it
MIN_WON = 8  # of the ten combinations of table and pair
HOURS = {0: "part time", 35: "full time", 41: "more"}  # bands of weekly hours, by lower end
ROUTES = ("hard", "soft")
SLACK = 1e-9  # rounding of rates
TABLES = ("COMPAS", "Adult")


# ---------------------------------------------------------------------------------------------
# Rows


def parts_of(name: str, seed: int) -> tuple[Part, Part, Part]:
    """Return the rows of the base model, the fit rows and the test rows, with their strata.

    People are compared within the degree of the charge (COMPAS) or bands of hours (Adult).
    """
    parts = all_parts(name, MODELS[0], seed)
    for part in parts:
        if name == "COMPAS":
            part.X[COLUMN] = part.X["c_charge_degree"].astype(str)
        else:
            bands = pd.cut(
                part.X["hours-per-week"], [*HOURS, np.inf], labels=list(HOURS.values()), right=False
            )
            part.X[COLUMN] = bands.astype(str)
    return parts


def rows_of(part: Part, decisions: Any) -> Rows:
    """Return decisions with labels, groups and strata."""
    decided = np.asarray(decisions, dtype=bool)
    return Rows(decided, part.y, part.s, part.X[COLUMN].to_numpy(dtype=str))


def figures_of(part: Part, decisions: Any, pair: Pair) -> dict[str, float]:
    """Return both values, the share of changes and the accuracy of decisions."""
    rows = rows_of(part, decisions)
    values = {f"value {i}": KINDS[kind].value(rows) for i, kind in enumerate(pair)}
    return {
        **values,
        "changes": float(np.mean(rows.decisions != (part.score > 0.5))),
        "accuracy": float(np.mean(rows.decisions == part.y)),
    }


def bounds_of(fit: Part, pair: Pair) -> list[float]:
    """Return the bounds of a pair, which follow from the base model on the fit rows."""
    base = rows_of(fit, fit.score > 0.5)
    return [KINDS[kind].bound(base) for kind in pair]


# ---------------------------------------------------------------------------------------------
# OxonFair


def oxonfair_runs(name: str, seed: int) -> list[dict[str, Any]]:
    """Return OxonFair's figures on fit and test rows, for each pair."""
    own, fit, test = parts_of(name, seed)
    requests = {}
    for i, pair in enumerate(PAIRS):
        metrics = [KINDS[kind].oxonfair for kind in pair]
        bounds = list(zip(metrics, bounds_of(fit, pair), strict=True))
        for route in ROUTES:
            for keep_base in (False, True):
                if _is_possible(pair, route, keep_base):
                    request = {"bounds": bounds, "route": route, "keep_base": keep_base}
                    requests[f"{i} {route} {keep_base}"] = request
    answers = _decisions(own, fit, test, requests)
    runs = []
    for key in requests:
        if f"{key}/fit" in answers:
            i, route, keep_base = key.split()
            pair = PAIRS[int(i)]
            on_fit = figures_of(fit, answers[f"{key}/fit"], pair)
            on_test = figures_of(test, answers[f"{key}/test"], pair)
            where = {"pair": int(i), "route": route, "keeps_base": keep_base == "True"}
            runs.append({**where, "fit": on_fit, "test": on_test})
    return runs


def _is_possible(pair: Pair, route: str, keep_base: bool) -> bool:
    """Return whether OxonFair can do this.

    Hard groups cannot combine a conditional metric with another constraint. Base decisions can
    stand for the labels, so that accuracy counts changes, where no constraint needs labels.
    """
    kinds = [KINDS[kind] for kind in pair]
    is_conditional = any("conditional" in kind.oxonfair for kind in kinds)
    needs_labels = any(kind.needs_labels for kind in kinds)
    return not (is_conditional and route == "hard") and not (keep_base and needs_labels)


def _decisions(own: Part, fit: Part, test: Part, requests: dict[str, Any]) -> dict[str, Any]:
    """Return OxonFair's decisions on fit and test rows, by the key of each request."""
    with tempfile.TemporaryDirectory() as folder:
        rows, asked, answer = (Path(folder) / x for x in ("rows.npz", "asked.json", "answer.npz"))
        _write_rows(rows, {"own": own, "fit": fit, "test": test})
        asked.write_text(json.dumps(requests))
        script = HERE / "peers" / "oxonfair_pairs.py"
        command = [python_of("oxonfair"), script, rows, asked, answer]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"OxonFair failed:\n{done.stderr[-4000:]}")
        with np.load(answer) as decisions:
            return dict(decisions)


def _write_rows(path: Path, parts: dict[str, Part]) -> None:
    """Write the parts of a split with encoded features, and groups and strata as numbers."""
    raw = {part: rows.X.drop(columns=[SCORE, COLUMN]) for part, rows in parts.items()}
    encode = base_model(MODELS[0])[0].fit(raw["own"])
    groups = np.unique(parts["own"].s)
    arrays: dict[str, Any] = {}
    for part, rows in parts.items():
        encoded = encode.transform(raw[part])
        arrays[f"X_{part}"] = encoded.toarray() if hasattr(encoded, "toarray") else encoded
        arrays[f"s_{part}"] = np.searchsorted(groups, rows.s)
        arrays[f"y_{part}"] = rows.y.astype(int)
        arrays[f"score_{part}"] = rows.score
        arrays[f"strata_{part}"] = np.unique(rows.X[COLUMN], return_inverse=True)[1]
    np.savez(path, **arrays)


def counted_run(
    runs: list[dict[str, Any]], pair: int, bounds: list[float], keeps_base: bool = False
) -> dict[str, Any] | None:
    """Return OxonFair's run that keeps both bounds on the fit rows with the fewest changes."""
    kinds = [KINDS[kind] for kind in PAIRS[pair]]

    def is_kept(run: dict[str, Any]) -> bool:
        values = [run["fit"][f"value {i}"] for i in range(len(kinds))]
        triples = zip(kinds, values, bounds, strict=True)
        return all(kind.shortfall(value, bound) <= SLACK for kind, value, bound in triples)

    of_pair = [run for run in runs if (run["pair"], run["keeps_base"]) == (pair, keeps_base)]
    keeping = [run for run in of_pair if is_kept(run)]
    return min(keeping, key=lambda run: run["fit"]["changes"]) if keeping else None


# ---------------------------------------------------------------------------------------------
# Ours


def our_run(fit: Part, test: Part, pair: Pair, values: list[float], margin: float) -> dict:
    """Return the test figures of an update that is asked for values tightened by a margin."""
    kinds = [KINDS[kind] for kind in pair]
    first, second = (
        kind.ours(kind.tightened(value, margin)) for kind, value in zip(kinds, values, strict=True)
    )
    settings = {"borderline": 0, **chosen_settings()}
    update = ControlledDebiaser(ScoreColumn(SCORE), constraints=first & second, **settings)
    with quietly():
        update.fit(fit.X, fit.y, sensitive_features=fit.s)
    return figures_of(test, update.predict(test.X), pair)


def compared(name: str, seed: int) -> list[dict[str, Any]]:
    """Return the test figures of the base model, OxonFair and ours, for each pair."""
    runs = kept(f"oxonfair-pairs-{name}-{seed}", lambda: oxonfair_runs(name, seed))
    _, fit, test = parts_of(name, seed)
    rows = []
    for i, pair in enumerate(PAIRS):
        where = {"table": name, "seed": seed, "pair": i}
        bounds = bounds_of(fit, pair)
        theirs = counted_run(runs, i, bounds)
        if theirs is None:
            continue
        base = figures_of(test, test.score > 0.5, pair)
        rows.append({**where, "method": "base model", **base})
        rows.append({**where, "method": "OxonFair", **theirs["test"]})
        keeping = counted_run(runs, i, bounds, keeps_base=True)
        if keeping is not None:
            rows.append({**where, "method": "OxonFair, fewest changes", **keeping["test"]})
        values = [theirs["fit"][f"value {k}"] for k in range(len(pair))]
        for margin in MARGINS:
            ours = our_run(fit, test, pair, values, margin)
            rows.append({**where, "method": "ours", "margin": margin, **ours})
    return rows


# ---------------------------------------------------------------------------------------------
# The figure


def matched(ours: pd.DataFrame, theirs: pd.Series, pair: Pair) -> pd.Series | None:
    """Return our mean figures at the smallest margin where both values are as strict as theirs.

    Between two margins, figures are interpolated. None where no margin is strict enough.
    """
    means = ours.groupby("margin")[list(theirs.index)].mean()
    fine = np.linspace(means.index[0], means.index[-1], 201)
    figures = pd.DataFrame({c: np.interp(fine, means.index, means[c]) for c in means.columns})
    strict = np.ones(len(fine), dtype=bool)
    for i, kind in enumerate(pair):
        column = f"value {i}"
        strict &= KINDS[kind].shortfall(figures[column], theirs[column]).to_numpy() <= SLACK
    return figures.iloc[int(np.argmax(strict))] if strict.any() else None


def oxonfair_pairs() -> None:
    """Compare the changes of both methods for five pairs of constraints on two tables."""
    tasks = [(name, seed) for name in TABLES for seed in seeds(N_SPLITS)]
    runs = pd.DataFrame([row for rows in in_parallel(compared, tasks) for row in rows])
    won = [_show_pair(name, i, runs) for name in TABLES for i in range(len(PAIRS))]
    bar = f">= {MIN_WON} of {len(won)}"
    show("pairs with fewer changes than OxonFair", str(sum(won)), bar, sum(won) >= MIN_WON)


def _show_pair(name: str, i: int, runs: pd.DataFrame) -> bool:
    """Print the figures of one table and pair; return whether ours changes fewer decisions."""
    pair = PAIRS[i]
    rows = runs[(runs["table"] == name) & (runs["pair"] == i)]
    print(f"{name}: {' and '.join(pair)}, {rows['seed'].nunique()} splits")
    columns = ["value 0", "value 1", "changes", "accuracy"]
    of_method = {method: part[columns].mean() for method, part in rows.groupby("method")}
    if "OxonFair" not in of_method:
        show("  OxonFair", "keeps the bounds in no split")
        return False
    theirs = of_method["OxonFair"]
    ours = matched(rows[rows["method"] == "ours"], theirs, pair)
    for method in ("base model", "OxonFair", "OxonFair, fewest changes"):
        if method in of_method:
            show(f"  {method}", _in_words(of_method[method]))
    if ours is None:
        show("  ours", "not as strict at any margin", f"< {theirs['changes']:.4f}", False)
        return False
    is_fewer = bool(ours["changes"] < theirs["changes"])
    show("  ours at these values", _in_words(ours), f"< {theirs['changes']:.4f}", is_fewer)
    return is_fewer


def _in_words(figures: pd.Series) -> str:
    values = ", ".join(f"{figures[column]:.3f}" for column in ("value 0", "value 1"))
    return f"{values}; changed {figures['changes']:.4f}, accuracy {figures['accuracy']:.4f}"
