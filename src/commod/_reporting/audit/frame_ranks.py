"""Count the people of a frame by group, true label and bins of their score, inside its engine.

One query runs for each score. It brings back a table with one line per group, label and bin. Bins
have equal widths between the lowest and the highest score. There are so few of them that a line
stands for MIN_CATEGORY_SIZE people on average: rows stay in the engine.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import narwhals as nw
import numpy as np

from commod._data.disclosure import MIN_CATEGORY_SIZE
from commod._data.frames import fetch, numbers, objects
from commod._data.groups import read_groups
from commod._reporting.audit.evidence import Evidence
from commod._reporting.audit.frame_columns import SCORES, is_group
from commod._reporting.audit.frame_counts import MAX_CELLS, of_decided
from commod._reporting.audit.roc import RankedGroups, listed_groups
from commod.metrics._roc import ScoreCells

MOST_BINS = 1000


def rank_frame(
    frame: nw.LazyFrame[Any],
    roles: Mapping[str, Hashable],
    score_ranges: Mapping[str, tuple[float, float]],
    evidence: Evidence,
) -> RankedGroups | None:
    """Return the people of each group by bins of their score.

    `score_ranges` are those of people outside hidden groups: nothing depends on the others.
    None without true labels, without scores, and where there are too few people for two bins.
    """
    n_groups = len(evidence.sizes)
    n_bins = min(evidence.n // MIN_CATEGORY_SIZE, MAX_CELLS) // (2 * n_groups)
    scores = [role for role in SCORES if role in roles]
    if "y_true" not in roles or not scores or n_bins < 2 or not evidence.is_compared.any():
        return None
    n_bins = min(n_bins, MOST_BINS)
    listed, n_left_out = listed_groups(evidence.sizes, evidence.is_compared)
    cells = {
        role: _bin_scores(frame, role, roles, score_ranges[role], n_bins, evidence)
        for role in scores
    }
    before, after = (
        tuple(cells[role][i] for i in listed) if role in cells else None for role in SCORES
    )
    return RankedGroups(listed, n_left_out, before, after, n_bins=n_bins)


def _bin_scores(
    frame: nw.LazyFrame[Any],
    role: str,
    roles: Mapping[str, Hashable],
    score_range: tuple[float, float],
    n_bins: int,
    evidence: Evidence,
) -> list[ScoreCells]:
    """Return the people of each group by bin, highest scores first."""
    low, high = score_range
    place = (nw.col(role) - low) * (n_bins / (high - low or 1.0))
    keys = [name for name in roles if is_group(name)]
    query = (
        of_decided(frame)
        .with_columns(score_bin=place.floor())
        .group_by(*keys, "y_true", "score_bin")
        .agg(nw.len().alias("n"))
    )
    table = fetch(query, MAX_CELLS)
    if table is None:
        raise AssertionError("bins make more lines than they can: a bug in commod")
    coding, n_groups = evidence.coding, len(evidence.sizes)
    is_positive = np.array([value == coding.positive_label for value in table["y_true"]])
    is_scored = is_positive == coding.score_is_for_positive
    # the groups are those of the counts, so they have the same numbers
    columns = {name: objects(table[name]) for name in keys}
    groups = read_groups(columns, len(is_scored), "ignore")  # refused already, if they are to be
    # the highest score, and scores of hidden people, may be beyond the bins
    score_bin = np.clip(numbers(table, "score_bin"), 0, n_bins - 1).astype(np.intp)
    people = np.zeros((n_groups + 1, 2, n_bins))  # the code −1 of unknown groups: the last entry
    place_of = groups.codes, is_scored.astype(np.intp), n_bins - 1 - score_bin
    np.add.at(people, place_of, numbers(table, "n"))
    return [ScoreCells.of_counts(own[1], own[0]) for own in people[:-1]]
