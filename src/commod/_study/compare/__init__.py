"""Compare methods: fit their frontiers on the same rows, count changes, draw them."""

from commod._study.compare.comparing import compare
from commod._study.compare.comparison import Comparison

__all__ = ["Comparison", "compare"]
