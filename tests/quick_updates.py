"""Updates that are fitted in little time, for tests where any update will do."""

from commod import ControlledDebiaser


def quick_control(estimator, **parameters):
    """Return a `ControlledDebiaser` with the fewest changes for a target on the fit rows.

    By default the target is one for new people, lines are taken out of the scorecard, and extra
    changes go to people near the threshold.
    """
    quickest = {"borderline": 0, "max_lines": None, "target_on": "fit_rows"}
    return ControlledDebiaser(estimator, **{**quickest, **parameters})
