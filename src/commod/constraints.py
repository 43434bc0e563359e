"""State what must be equal between groups, how nearly, and among whom.

An object of this module goes wherever `constraints` is a parameter. `within` makes a constraint
conditional on a column, and ``A & B`` joins constraints. A text means the same:
"demographic parity >= 0.8 within department".
"""

from commod.metrics._language import AllOf as AllOf
from commod.metrics._language import FairnessConstraint as FairnessConstraint
from commod.metrics._language import Maximum, Minimum, Parity
from commod.metrics._named_constraints import (
    AccuracyParity,
    DemographicParity,
    EqualizedOdds,
    ErrorRatio,
    FalsePositiveRateParity,
    MinimumRate,
    MinimumTruePositiveRate,
    PredictiveParity,
    TruePositiveRateParity,
    constraint_from_json,
    parse_constraint,
)

__all__ = [
    "AccuracyParity",
    "DemographicParity",
    "EqualizedOdds",
    "ErrorRatio",
    "FalsePositiveRateParity",
    "Maximum",
    "Minimum",
    "MinimumRate",
    "MinimumTruePositiveRate",
    "Parity",
    "PredictiveParity",
    "TruePositiveRateParity",
    "constraint_from_json",
    "parse_constraint",
]
