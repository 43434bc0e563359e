"""People with a column of scores.

Several files train on this one table: rows of equal shape need one compiled program per method.
"""

import numpy as np
import pandas as pd

from commod import ScoreColumn

N = 240
_RNG = np.random.default_rng(0)
GROUP = np.where(_RNG.random(N) < 0.5, "a", "b")
_AGE = _RNG.normal(45 - 8 * (GROUP == "a"), 10)
X = pd.DataFrame(
    {"age": _AGE, "town": _RNG.choice(["Oslo", "Rome"], N), "pay": _RNG.normal(size=N)}
)
X["score"] = 1 / (1 + np.exp((45 - _AGE) / 8))
X["other"] = 1 - X["score"]
Y = (_RNG.random(N) < X["score"]).astype(int).to_numpy()
SCORED = ScoreColumn("score")


def quick(update, **parameters):
    """Return the update with these parameters, trained for two epochs if it is trained."""
    if "epochs" in update.get_params():
        parameters["epochs"] = 2
    return update.set_params(**parameters)
