"""Say how stable an update is: who changes, and by which columns, when it is refitted."""

from commod._study.stability.refitting import stability
from commod._study.stability.result import ColumnUse, Stability

__all__ = ["ColumnUse", "Stability", "stability"]
