"""Updates: estimators that turn a fitted base model f into a fairer g and say what they changed."""

from commod.updates.base import BaseUpdate, ChangedDecisions
from commod.updates.commod import COMMOD
from commod.updates.controlled import ControlledDebiaser
from commod.updates.ratio import RatioUpdate

__all__ = ["COMMOD", "BaseUpdate", "ChangedDecisions", "ControlledDebiaser", "RatioUpdate"]
