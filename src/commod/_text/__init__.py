"""Text as people read it: numbers, names and phrases, one way to write each in the library."""

from commod._text.names import plain, shorten
from commod._text.numbers import (
    NOT_KNOWN,
    count,
    estimate,
    number,
    of_hundred,
    percent,
    percentage_points,
    points,
)
from commod._text.snippet import snippet

__all__ = [
    "NOT_KNOWN",
    "count",
    "estimate",
    "number",
    "of_hundred",
    "percent",
    "percentage_points",
    "plain",
    "points",
    "shorten",
    "snippet",
]
