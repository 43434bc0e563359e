"""Measure quality and speed. A package, because some others install one of this name."""
