"""Store how an update was found, beside its scorecard."""

from __future__ import annotations

from typing import Any

from commod.scorecard import DISTANCE_COLUMN
from commod.updates._controlled_problem import reads_distance
from commod.updates._problem import FitProblem
from commod.updates._search import SearchOutcome
from commod.updates._status import few_people_sentences


def store_search(update: Any, problem: FitProblem, outcome: SearchOutcome) -> None:
    """Store the steps of a search, and what the stored scorecard reads and describes."""
    has_points = DISTANCE_COLUMN in update.scorecard_.columns_used
    update.reads_score_ = has_points and reads_distance(update)
    n_people = problem.terms.n_people(problem.rows.weight)
    update._few_people_texts = few_people_sentences(n_people, update.scorecard_.points)
    update.n_search_rows_ = outcome.n_search_rows
    update.path_ = [step._asdict() for step in outcome.steps]
    names = ("step", "change_rate", "n_terms")
    update.history_ = {name: [step[name] for step in update.path_] for name in names}
