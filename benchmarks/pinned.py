"""Pin a random half of the terms of a scorecard at their points, and fit the other half again.

Pinned terms must keep their points exactly. Changes are counted on the fit rows, which the refit
sees. The P-rule on test rows, which nothing has seen, is reported beside that of the update.
"""

from __future__ import annotations

import warnings

import numpy as np
from report import show, show_at_most
from three_parts import MODELS, SCORE, TABLES, Part, three_parts

from commod import ControlledDebiaser, ScoreColumn, metrics
from commod.exceptions import CommodWarning

NAMES = ("COMPAS", "Law School", "Adult")
N_DRAWS = 20
MAX_MORE_CHANGES = 1.02


def pinned() -> None:
    """Compare changes after a refit beside pinned terms with those of the update, split 0."""
    for name in NAMES:
        fit, test = three_parts(name, MODELS[0], 0)
        update = ControlledDebiaser(ScoreColumn(SCORE), target=TABLES[name][2])
        groups = {"sensitive_features": fit.s}
        update.fit(fit.X, fit.y, **groups)
        points = dict(update.scorecard_.rows())
        rng = np.random.default_rng(0)
        ratios, are_exact, p_rules = [], [], []
        for _ in range(N_DRAWS):
            pin = rng.choice(list(points), len(points) // 2, replace=False).tolist()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", CommodWarning)
                refitted = update.edit({}, fit.X, fit.y, **groups, pin=pin, refit=True)
            after = dict(refitted.scorecard_.rows())
            are_exact.append(all(after[term] == points[term] for term in pin))
            ratios.append(refitted.change_rate_ / update.change_rate_)
            p_rules.append(_p_rule(test, refitted))
        terms = f"{name}: half of {len(points)} terms pinned, {N_DRAWS} draws"
        show_at_most(f"{terms}: largest ratio of changes", max(ratios), MAX_MORE_CHANGES)
        show(f"{terms}: mean ratio of changes", f"{np.mean(ratios):.3f}", "reported")
        show(f"{terms}: points exact", f"{sum(are_exact)} of {N_DRAWS}", "all", all(are_exact))
        show(
            f"{terms}: mean P-rule on test rows (update {_p_rule(test, update):.3f})",
            f"{np.mean(p_rules):.3f}",
            "reported",
        )


def _p_rule(test: Part, update: ControlledDebiaser) -> float:
    after = np.asarray(update.predict(test.X), dtype=bool)
    return float(metrics.p_rule(None, after, sensitive_features=test.s, pos_label=True))
