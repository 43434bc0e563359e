"""Pictures in scikit-learn's manner: `from_estimator`, `from_predictions`, `.plot(ax=…)`.

A display holds plain numbers and names, draws them as often as asked, and keeps what it drew in
`ax_` and `figure_`. matplotlib is imported when something is drawn.
"""

from commod._displays.calibration import CalibrationDisplay
from commod._displays.change import ChangeDisplay
from commod._displays.concept import ConceptDisplay
from commod._displays.frontier import FrontierDisplay

__all__ = ["CalibrationDisplay", "ChangeDisplay", "ConceptDisplay", "FrontierDisplay"]
