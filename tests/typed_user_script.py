"""A user's script: `make package` runs it with the wheel, and `mypy --strict` checks its types."""

from typing import assert_type

import numpy as np

from commod import ControlledDebiaser, Explanation, Patch, ScoreColumn, audit, bounds, explain
from commod.datasets import make_biased
from commod.metrics import p_rule


def main() -> None:
    people = make_biased(400, bias=1.5, random_state=0)
    score = 1 / (1 + np.exp(-people.data["x0"]))
    X = people.data[["x0", "x1"]].assign(score=score)
    groups = people.sensitive_features
    update = ControlledDebiaser(ScoreColumn("score"), target=0.8, direction="gains_only")
    assert_type(update.fit(X, people.target, sensitive_features=groups), ControlledDebiaser)
    before, after = score > 0.5, update.predict(X)
    assert_type(update.status_, str)
    assert_type(update.reached_, bool)
    assert_type(update.changes(X).n_gains, int)
    assert_type(p_rule(None, after, sensitive_features=groups), float)
    limit = bounds.minimal_changes(before, sensitive_features=groups, target=0.8)
    assert_type(limit.n_changes, int | None)  # None: no changes reach it
    explanation = explain(update, X)
    assert_type(explanation, Explanation)
    result = audit(before, after, sensitive_features=groups, explanation=explanation)
    assert_type(result.to_json(), str)
    patch = update.to_patch()
    assert_type(patch, Patch)
    assert (patch.apply(X)["commod_decision"] == after).all()


if __name__ == "__main__":
    main()
