"""Write numbers, names from outside, plurals and targets: one way for each in the library."""

from commod._text.names import (
    MAX_LISTED_GROUPS,
    did_you_mean,
    json_text,
    list_names,
    plain,
    shorten,
    shown,
    visible,
)
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
    EVIDENCE,
    MAX_CHANGED,
    POSITIVE_POINTS,
    at_bound,
    blind_limit_text,
    capitalised,
    codes_text,
    distinct,
    distinct_pair,
    label_text,
    most_change_text,
    n_of,
    outscoring_text,
    plural,
    small_group_text,
    true_shares_text,
    verb,
)
from commod._text.snippet import Table, first_rows, snippet
