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
    signed_number,
)
from commod._text.phrases import (
    at_bound,
    codes_text,
    distinct,
    distinct_pair,
    join_items,
    label_text,
    most_change_text,
    n_of,
    plural,
    target_formula,
    verb,
)
from commod._text.snippet import Table, first_rows, snippet
from commod._text.suggestions import did_you_mean, list_names, shown

__all__ = [
    "NOT_KNOWN",
    "Table",
    "at_bound",
    "codes_text",
    "count",
    "did_you_mean",
    "distinct",
    "distinct_pair",
    "estimate",
    "first_rows",
    "join_items",
    "json_text",
    "label_text",
    "list_names",
    "most_change_text",
    "n_of",
    "number",
    "of_hundred",
    "percent",
    "percentage_points",
    "plain",
    "plural",
    "points",
    "shorten",
    "shown",
    "signed_number",
    "snippet",
    "target_formula",
    "verb",
    "visible",
]
