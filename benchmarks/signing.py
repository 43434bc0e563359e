"""Count degenerate updates, those that are expected to help nobody, and intervals that are missed.

German credit, Law School and COMPAS with a logistic regression; scores are those of the favourable
label. Neither the base model nor the update has seen the new rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from expected import mean_and_error
from heart_jobs import ODDS, PARITY, Job, fairer_by, fairness, fit_and_test_rows, fitted
from parallel import chosen_settings, in_parallel, seeds
from report import show
from three_parts import MODELS

from commod import audit, explain
from commod._words.shared import degenerate_check
from commod.metrics._changes import is_degenerate

COVERAGE = (0.92, 0.98)
N_FITS, N_INTERVALS = 50, 200  # splits of each table
N_SMALL = 333  # fit rows of a small fit
SMALL_GAPS = {"German credit": (0.1, 0.2), "Law School": (0.1, 0.3), "COMPAS": (0.1, 0.2)}
INTERVALS = (
    Job("German credit", MODELS[0], PARITY, 0.92),
    *(Job("Law School", MODELS[0], *asked) for asked in ((PARITY, 0.65), (ODDS, 0.32))),
    *(Job("COMPAS", MODELS[0], *asked) for asked in ((PARITY, 0.9), (ODDS, 0.18))),
)


def degenerate() -> None:
    """Count updates of small fits at target 0.95 that make decisions alike, or change most."""
    directions = ({"direction": f"{change}_only"} for change in ("gains", "losses"))
    asked: list[dict[str, Any]] = [{}, {"target_on": "fit_rows"}, *directions]
    jobs = [Job(table, MODELS[0], PARITY, 0.95) for table in SMALL_GAPS]
    runs = _runs([(job, more) for job in jobs for more in asked], N_FITS)
    for table, some in runs.groupby("table", sort=False):
        n = f"of {len(some)}"
        reached = some[some["reached"]]
        show(f"{table}: updates called reached", f"{len(reached)} {n}")
        for rows in ("fit", "new"):
            n_alike = int(reached[f"degenerate_{rows}"].sum())
            bar = "0" if rows == "fit" else "reported"
            holds = not n_alike if rows == "fit" else None
            show(f"{table}:   of these degenerate on {rows} rows", str(n_alike), bar, holds)
        wrong = some[some["degenerate_fit"] & ~(some["said_first"] & some["blocks"])]
        n_wrong = f"{len(wrong)} of {int(some['degenerate_fit'].sum())}"
        show(f"{table}: degenerate, not said or blocked", n_wrong, "0", not len(wrong))


def worse_than_base() -> None:
    """Count small fits for equalized odds whose update is not expected to beat the base model."""
    jobs = [Job(table, MODELS[0], ODDS, gap) for table in SMALL_GAPS for gap in SMALL_GAPS[table]]
    runs = _runs([(job, {}) for job in jobs], N_FITS)
    for table, some in runs.groupby("table", sort=False):
        changing = some[some["changes"] > 0]
        worse = int((changing["expected_gain"] <= 0).sum())
        show(f"{table}: expected worse than base", f"{worse} of {len(changing)}", "0", not worse)
        kept = some[(some["changes"] == 0) & ~some["reached"]]
        n_unsaid = int((~kept["said_kept"]).sum())
        words = f"{n_unsaid} of {len(kept)}"
        show(f"{table}: nobody changes, and it is not said", words, "0", not n_unsaid)
        mean, error = mean_and_error(changing["gain"])
        show(f"{table}: gap on new rows, base − update", f"{mean:+.4f} ± {error:.4f}", "reported")


def intervals() -> None:
    """Show how often a new sample of as many people lies in the 95 % interval."""
    runs = _runs([(job, {}) for job in INTERVALS], N_INTERVALS, equal=True)
    runs = runs[runs["covered"].notna()]
    _show_coverage("all tables", runs, is_judged=True)
    for table, some in runs.groupby("table", sort=False):
        _show_coverage(table, some, is_judged=False)
    for constraint, some in runs.groupby("constraint", sort=False):
        _show_coverage(f"  {constraint}", some, is_judged=False)


def _show_coverage(label: str, runs: pd.DataFrame, *, is_judged: bool) -> None:
    share = float(runs["covered"].astype(float).mean())
    value = f"{share:.1%} of {len(runs)} (width {runs['width'].mean():.3f})"
    low, high = COVERAGE
    bar = f"{low:.0%} to {high:.0%}" if is_judged else "reported"
    show(f"{label}: coverage", value, bar, low <= share <= high if is_judged else None)


def _runs(asked: list[tuple[Job, dict[str, Any]]], n: int, *, equal: bool = False) -> pd.DataFrame:
    tasks = [(job, more, equal, seed) for job, more in asked for seed in seeds(n)]
    return pd.DataFrame(in_parallel(_run, tasks))


def _run(job: Job, more: dict[str, Any], equal: bool, seed: int) -> dict[str, Any]:
    """Return what one update says of itself, and what it does on fit rows and on new rows.

    If `equal`, there are as many fit rows as new rows; otherwise at most N_SMALL fit rows.
    """
    fit, new = fit_and_test_rows(job.table, job.model, seed, equal=equal)
    if not equal:
        fit = fit.only(slice(N_SMALL))
    update, _ = fitted(job, fit, **{**chosen_settings(), **more})
    shares = {}
    for name, part in (("fit", fit), ("new", new)):
        before, after = part.score > 0.5, np.asarray(update.predict(part.X), dtype=bool)
        changed = float(np.mean(before != after))
        shares[f"degenerate_{name}"] = bool(is_degenerate(changed, before.mean(), after.mean()))
    got = fairness(job.constraint, new, update.predict(new.X))
    base = fairness(job.constraint, new, new.score > 0.5)
    expected = update.expected_
    low, high = expected.interval
    is_known = np.isfinite(got) and np.isfinite(low)
    return {
        **job._asdict(),
        **shares,
        "reached": bool(update.reached_),
        "changes": update.change_rate_,
        "said_first": update.status_.startswith(("This is not a success", "More than half")),
        "blocks": not shares["degenerate_fit"] or _is_blocked(update, fit),
        "said_kept": "No decision changes" in update.status_.splitlines()[0],
        "expected_gain": fairer_by(job.constraint, expected.fairness, expected.base_fairness),
        "gain": fairer_by(job.constraint, got, base),
        "covered": bool(low <= got <= high) if is_known else None,
        "width": high - low,
    }


def _is_blocked(update: Any, part: Any) -> bool:
    """Return whether a check of the audit on some rows names a degenerate update."""
    why = explain(update, part.X)
    made = audit(why.y_before, why.y_after, sensitive_features=part.s, explanation=why)
    return degenerate_check(made.checks) is not None
