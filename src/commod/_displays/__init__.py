"""Displays in scikit-learn's manner: `from_estimator`, `from_predictions`, `.plot(ax=…)`.

A display holds plain numbers and names and can draw them again. After drawing, `ax_` and `figure_`
hold the axes and the figure. matplotlib is imported when a display draws.
"""

from commod._displays.calibration import CalibrationDisplay
from commod._displays.change import ChangeDisplay
from commod._displays.concept import ConceptDisplay
from commod._displays.frontier import FrontierDisplay

__all__ = ["CalibrationDisplay", "ChangeDisplay", "ConceptDisplay", "FrontierDisplay"]
