"""Several methods' frontiers side by side: fit them, count what each changes, draw it."""

from commod._compare.comparison import Comparison
from commod._compare.run import compare

__all__ = ["Comparison", "compare"]
