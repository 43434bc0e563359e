"""Write numbers, names from outside, plurals and targets: one way for each in the library."""

from commod._text.names import json_text, plain, shorten, visible
from commod._text.numbers import (
    NOT_KNOWN,
    count,
    estimate,
    has_interval,
    number,
    of_hundred,
    outscoring_text,
    percent,
    percentage_points,
    points,
    signed_number,
    true_shares_text,
)
from commod._text.phrases import (
    EVIDENCE,
    MAX_CHANGED,
    POSITIVE_POINTS,
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
