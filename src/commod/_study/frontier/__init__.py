"""The trade-off between fairness, accuracy and changes: many updates, measured on the same rows."""

from commod._study.frontier.curve import Frontier, Point
from commod._study.frontier.fitting import frontier

__all__ = ["Frontier", "Point", "frontier"]
