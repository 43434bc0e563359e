"""Write numbers, names from outside, plurals and targets: one way for each in the library."""

from commod._text.names import json_text, plain, shorten, visible
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
from commod._text.phrases import (
    at_bound,
    distinct,
    label_text,
    n_of,
    plural,
    target_formula,
    verb,
)
from commod._text.snippet import snippet

__all__ = [
    "NOT_KNOWN",
    "at_bound",
    "count",
    "distinct",
    "estimate",
    "json_text",
    "label_text",
    "n_of",
    "number",
    "of_hundred",
    "percent",
    "percentage_points",
    "plain",
    "plural",
    "points",
    "shorten",
    "snippet",
    "target_formula",
    "verb",
    "visible",
]
