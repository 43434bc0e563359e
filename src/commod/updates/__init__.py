"""Updates: estimators that turn a fitted base model f into a fairer g and say what they changed."""

from commod.updates.base import BaseUpdate, Changes, LinearUpdate
from commod.updates.commod import COMMOD
from commod.updates.controlled import ControlledDebiaser

__all__ = ["COMMOD", "BaseUpdate", "Changes", "ControlledDebiaser", "LinearUpdate"]
