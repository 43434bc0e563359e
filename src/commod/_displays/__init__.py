"""Displays in scikit-learn's manner: `from_estimator`, `from_predictions`, `.plot(ax=…)`.

A display holds plain numbers and names and can draw them again. After drawing, `ax_` and `figure_`
hold the axes and the figure. matplotlib is imported when a display draws.
"""

from commod._displays.decisions import CalibrationDisplay, ChangeDisplay
from commod._displays.updates import ConceptDisplay, FrontierDisplay

__all__ = ["CalibrationDisplay", "ChangeDisplay", "ConceptDisplay", "FrontierDisplay"]
