"""Updates that are fitted in little time, for tests where any update will do."""

from commod import ControlledDebiaser


def quick_control(estimator, **parameters):
    """Return a `ControlledDebiaser` that searches the fewest changes for a target on the fit rows.

    By default it also shortens the scorecard, prefers people near the threshold and counts on
    folds. Each of these takes time.
    """
    quickest = {"max_lines": None, "borderline": 0, "target_on": "fit_rows"}
    return ControlledDebiaser(estimator, **{**quickest, **parameters})
