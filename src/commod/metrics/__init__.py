"""Measure the fairness of decisions, and the size and shape of an update.

Signatures follow Fairlearn. So do the values wherever every cell has rows. An undefined value is
NaN, never a number that looks fair. Fairness values are computed in exact fractions of the summed
weights and rounded once. So a P-rule of four fifths is the float 0.8 and passes ``>= 0.8``.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from commod.metrics._changes import ChangeCounts as ChangeCounts
    from commod.metrics._changes import OutscoringProbability as OutscoringProbability
    from commod.metrics._changes import PairShare as PairShare
    from commod.metrics._changes import ScoreAgreement as ScoreAgreement
    from commod.metrics._changes import (
        change_locality,
        change_rate,
        count_changes,
        outscoring_probability,
        score_agreement,
    )
    from commod.metrics._fairness import GroupRates as GroupRates
    from commod.metrics._fairness import (
        adverse_impact_ratio,
        disparate_mistreatment,
        fairness_by_stratum,
        fairness_value,
        false_positive_rate_difference,
        group_rates,
        p_rule,
        standardized_mean_difference,
        true_positive_rate_difference,
    )
    from commod.metrics._roc import RocComparison as RocComparison
    from commod.metrics._roc import RocGap as RocGap
    from commod.metrics._roc import (
        abroca,
        compare_roc_curves,
        group_auc,
    )

_RESULTS = (  # types that the functions return
    *("ChangeCounts", "GroupRates", "OutscoringProbability", "PairShare"),
    *("RocComparison", "RocGap", "ScoreAgreement"),
)
__all__ = [
    "abroca",
    "adverse_impact_ratio",
    "change_locality",
    "change_rate",
    "compare_roc_curves",
    "count_changes",
    "disparate_mistreatment",
    "fairness_by_stratum",
    "fairness_value",
    "false_positive_rate_difference",
    "group_auc",
    "group_rates",
    "outscoring_probability",
    "p_rule",
    "score_agreement",
    "standardized_mean_difference",
    "true_positive_rate_difference",
]


def __getattr__(name: str) -> Any:
    """Load the functions on first use: a patch reads constraints, and measures nothing."""
    for home in ("_changes", "_fairness", "_roc") if name in (*__all__, *_RESULTS) else ():
        module = import_module(f"commod.metrics.{home}")
        if hasattr(module, name):
            return getattr(module, name)
    raise AttributeError(f"module 'commod.metrics' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
