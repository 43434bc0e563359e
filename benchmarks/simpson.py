"""Show that parity within departments asks for the opposite of parity over all departments."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from experiments.protocol import quietly
from numpy.typing import NDArray
from report import show

from benchmarks.admissions import make_applicants
from commod import ControlledDebiaser, ScoreColumn
from commod.constraints import DemographicParity, FairnessConstraint

FLOOR = 0.8
OVERALL = DemographicParity(ratio=FLOOR)
WITHIN = OVERALL.within("department")
ASKED: dict[str, FairnessConstraint] = {
    "overall": OVERALL,
    "within every department": WITHIN,
    "within departments, on average": OVERALL.within("department", over="average"),
}


def fit_asked(
    X: pd.DataFrame, sex: Any, constraint: FairnessConstraint
) -> tuple[ControlledDebiaser, NDArray[np.int64]]:
    """Return an update, and for each applicant 1 for a gain, -1 for a loss, 0 otherwise."""
    update = ControlledDebiaser(
        ScoreColumn("score"),
        constraints=constraint,
        target_on="fit_rows",
    )
    with quietly():
        update.fit(X, sensitive_features=sex)
    return update, update.predict(X) - (X["score"] > 0.5).to_numpy()


def simpson() -> None:
    """Print who gains and who loses under each constraint, and what it does to the other one."""
    X, sex = make_applicants()
    before = (X["score"] > 0.5).to_numpy().astype(int)
    _show_values("base model", X, sex, before)
    lead = {}
    for name, constraint in ASKED.items():
        update, changes = fit_asked(X, sex, constraint)
        _show_values(name, X, sex, before + changes)
        counts = {
            f"{word} of {group}": int(np.sum((sex == group) & (changes == sign)))
            for group in ("women", "men")
            for word, sign in (("gains", 1), ("losses", -1))
        }
        words = ", ".join(f"{n} {what}" for what, n in counts.items() if n) or "no changes"
        show(f"{name}: who changes", words, f"limit {round(update.limit_ * len(X))}")
        lead[name] = int(changes[sex == "women"].sum() - changes[sex == "men"].sum())
    overall, within, average = lead.values()
    label = "places that women gain more than men: overall, within, average"
    words = f"{overall:+d}, {within:+d}, {average:+d}"
    show(label, words, "> 0, < 0, 0", overall > 0 > within and average == 0)


def _show_values(name: str, X: pd.DataFrame, sex: Any, decisions: NDArray[np.int64]) -> None:
    overall = OVERALL.value(None, decisions, sensitive_features=sex)
    within = WITHIN.value(
        None, decisions, sensitive_features=sex, control_features=X[["department"]]
    )
    show(f"{name}: P-rule overall, within departments", f"{overall:.3f}, {within:.3f}")
