"""Write numbers, names from outside, plurals and targets: one way for each in the library."""

from commod._text.evidence import EVIDENCE, POSITIVE_POINTS, rule_sentences
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
from commod._text.outscoring import has_interval, outscoring_text, true_shares_text
from commod._text.phrases import (
    MAX_CHANGED,
    at_bound,
    capitalised,
    codes_text,
    distinct,
    distinct_pair,
    label_text,
    most_change_text,
    n_of,
    plural,
    small_group_text,
    verb,
)
from commod._text.snippet import Table, first_rows, snippet
from commod._text.suggestions import MAX_LISTED_GROUPS, did_you_mean, list_names, shown

__all__ = [
    "EVIDENCE",
    "MAX_CHANGED",
    "MAX_LISTED_GROUPS",
    "NOT_KNOWN",
    "POSITIVE_POINTS",
    "Table",
    "at_bound",
    "capitalised",
    "codes_text",
    "count",
    "did_you_mean",
    "distinct",
    "distinct_pair",
    "estimate",
    "first_rows",
    "has_interval",
    "json_text",
    "label_text",
    "list_names",
    "most_change_text",
    "n_of",
    "number",
    "of_hundred",
    "outscoring_text",
    "percent",
    "percentage_points",
    "plain",
    "plural",
    "points",
    "rule_sentences",
    "shorten",
    "shown",
    "signed_number",
    "small_group_text",
    "snippet",
    "true_shares_text",
    "verb",
    "visible",
]
