"""The whole trade-off between fairness, accuracy and changes: many updates, evaluated at once."""

from commod._study.frontier.curve import Fitted, Frontier, Point
from commod._study.frontier.rows import groups_compared, read_evaluated, rows_to_measure
from commod._study.frontier.run import frontier

__all__ = [
    "Fitted",
    "Frontier",
    "Point",
    "frontier",
    "groups_compared",
    "read_evaluated",
    "rows_to_measure",
]
