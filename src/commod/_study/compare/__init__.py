"""Several methods' frontiers side by side: fit them, count what each changes, draw it."""

from commod._study.compare.comparison import Comparison
from commod._study.compare.run import compare

__all__ = ["Comparison", "compare"]
