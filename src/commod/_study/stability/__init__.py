"""Who changes, and by which columns, when an update is fitted again on other rows."""

from commod._study.stability.result import ColumnUse, Stability
from commod._study.stability.run import stability

__all__ = ["ColumnUse", "Stability", "stability"]
