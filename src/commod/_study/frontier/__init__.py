"""The trade-off between fairness, accuracy and changes: many updates, measured on the same rows."""

from commod._study.frontier.curve import Frontier, Point
from commod._study.frontier.fitting import frontier
from commod._study.frontier.frames import frontier_frame

__all__ = ["Frontier", "Point", "frontier", "frontier_frame"]
