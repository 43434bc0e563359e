"""Define `TargetedUpdate`: what a `ControlledDebiaser` asks for, and what its fit stores."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from commod._data.arrays import Mask
from commod._data.base_model import BaseScores, ModelScores, ScoreColumn
from commod._data.disclosure import FEWEST_DESCRIBED
from commod._data.encoding import Encoding
from commod._data.groups import UNKNOWN_GROUPS, read_group_probabilities
from commod._data.parameters import check_choice, check_number
from commod._data.tables import check_same_rows
from commod._evidence.search import Settings
from commod._evidence.task import Caps
from commod._record.audit import Request
from commod._record.edits import EditRecord
from commod._words.shared import ratio_target_text
from commod._words.update import AskedTarget, Goal, PromiseOutcome, UpdateFacts, status_text
from commod.bounds._limits import DIRECTIONS
from commod.constraints import AllOf
from commod.exceptions import InputError, TargetWarning
from commod.scorecard import SCORE_EDITS, AllowedChanges, Scorecard
from commod.updates import _status as status
from commod.updates._fit_rows import FitRows, ordered_by_hash
from commod.updates._found_update import (
    AllPeople,
    Expectation,
    FittedUpdate,
    UnknownGroupFigures,
    UpdateSearch,
    card_decisions,
    columns_of_codes,
    fit_update,
    found_card,
    ratio_on,
)
from commod.updates._interface import read_numbers, tell
from commod.updates._problem import (
    Asked,
    FitProblem,
    check_monotone,
    metric_interval,
    moves_of,
    point_problem,
    proven_limit,
)
from commod.updates._promise import PromiseTest, fit_promise
from commod.updates.base import refuse_removed_value
from commod.updates.ratio import RatioUpdate

MOVED = {  # attributes of version 0.2, and where they are now
    **{f"expected_{n}_": f"expected_.{n}" for n in Expectation.__dataclass_fields__},
    **{f"{n}_": f"search_.{n}" for n in UpdateSearch.__dataclass_fields__},
    **{f"known_{n}_": f"unknown_groups_.{n}" for n in ("change_rate", "limit")},
    "n_known_": "unknown_groups_.n_known",
    "unknown_interval_": "unknown_groups_",
}
Targeted = TypeVar("Targeted", bound="TargetedUpdate")


class TargetedUpdate(RatioUpdate):
    """An update with a target. `ControlledDebiaser` has its parameters, and the fit.

    Examples
    --------
    >>> from commod import ControlledDebiaser
    >>> issubclass(ControlledDebiaser, TargetedUpdate)
    True
    """

    target: float | None
    target_on: str
    max_changes: float | None
    max_accuracy_loss: float | None
    max_volume_change: float | None
    direction: str
    borderline: float
    points: str
    max_lines: int | None
    monotone: Mapping[str, int] | None
    locked_features: Collection[str]
    confidence: float | None
    min_category_size: int
    unknown_groups: str
    score_edit: str
    max_margin: float | None

    promised_: bool | None
    expected_: Expectation
    search_: UpdateSearch
    unknown_groups_: UnknownGroupFigures
    _n_small_terms: int

    scorecard_: Any
    edits_: tuple[EditRecord, ...] = ()
    _earlier_update: Self | None = None
    _terms_by_hand: tuple[str, ...] = ()

    def __getattr__(self, name: str) -> Any:
        """Name the successor of an attribute that version 0.2 had."""
        if name in MOVED:
            raise AttributeError(f"{name} is {MOVED[name]} since version 0.3.")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _versions(self) -> Sequence[TargetedUpdate]:
        """Return this update and those before its edits by hand, newest first."""
        versions: list[TargetedUpdate] = [self]
        while (earlier := versions[-1]._earlier_update) is not None:
            versions.append(earlier)
        return versions

    # -- what is asked for -------------------------------------------------------------------------

    def _asked(self) -> Asked:
        """Return all that the parameters ask for; the labels of the base model are known."""
        model = self.estimator
        is_column = isinstance(model, ScoreColumn)
        reads_others = model.reads_others if isinstance(model, ModelScores) else is_column
        whole = self.points == "integers"
        return Asked(
            constraints=self._stated().constraints,
            bounds=self._bounds(),
            target=self._target,
            direction=str(self.direction),
            for_new=self.target_on == "new_rows",
            settings=Settings(
                borderline=float(self.borderline),
                max_lines=None if self.max_lines is None else int(self.max_lines),
                is_whole=whole,
                is_budget=self._is_budget,
            ),
            caps=Caps(self.max_changes, self.max_accuracy_loss, self.max_volume_change),
            min_category_size=self.min_category_size,
            locked=self.locked_features,
            has_bins=whole or self.points == "per bin",
            monotone=dict(self.monotone or {}),
            max_margin=self.max_margin,
            confidence=self.confidence,
            raising_is_a_gain=self._raising_is_a_gain(),
            is_favorable_above=bool(self._score_label() == self._favorable_label),
            model_reads_others=bool(reads_others or self.locked_features),
        )

    @property
    def _target(self) -> float:
        """Return the target; the ideal where only a budget was given."""
        is_floor, target = self._constraint.higher_is_fairer, self._stated_target
        if target is not None:
            return max(float(target), 1e-9) if is_floor else float(target)
        if self._is_budget:
            return self._constraint.ideal
        return 0.8 if is_floor else 0.1

    @property
    def _is_budget(self) -> bool:
        """Return whether a budget of changes was given and no target."""
        has_cap = self._fitted_param("max_changes") is not None
        return has_cap and self._stated_target is None

    @property
    def _stated_target(self) -> float | None:
        """Return the parameter `target`, or the bound of the first constraint; None without."""
        target = self._fitted_param("target")
        return self._stated().bounds[0] if target is None else target

    def _may_move(self) -> tuple[bool, bool]:
        """Return whether decisions may become positive, and may become negative."""
        direction = self.search_.direction if hasattr(self, "search_") else self.direction
        return moves_of(direction, self._raising_is_a_gain())

    @property
    def _has_whole_points(self) -> bool:
        """Return whether the points must be whole numbers."""
        return bool(self._fitted_param("points") == "integers")

    def _asked_changes(self) -> AllowedChanges:
        """Return which changes the user allows; `search_.direction` may be narrower."""
        moves = moves_of(self._fitted_param("direction"), self._raising_is_a_gain())
        return AllowedChanges(*moves, self._fitted_param("max_margin"))

    def request(self) -> Request:
        """Return what the user asked of this update, as a record."""
        names = (
            "max_changes",
            "max_accuracy_loss",
            "max_volume_change",
            "max_margin",
            "confidence",
        )
        asked: dict[str, Any] = {name: self._fitted_param(name) for name in names}
        asked = {name: value if value is None else float(value) for name, value in asked.items()}
        return replace(
            super().request(),
            points="integers" if self._has_whole_points else None,
            target=None if self._is_budget else float(self.target_),
            score_edit=self._fitted_param("score_edit"),
            direction=self._fitted_param("direction"),
            alternatives=self.search_.alternatives,
            **asked,
        )

    # -- storing a fit ---------------------------------------------------------------------

    def _store_fit(self, fitted: FittedUpdate, test: PromiseTest | None = None) -> None:
        """Store an update in the direction that it keeps, with its figures on all people.

        With the test of a promise, figures are those of the rows that tested it.
        """
        self._store_points(fitted, test)
        is_promised = test is not None and not test.failure
        problem = test.held_out if test and is_promised else fitted.problem
        self._store_figures(problem, fitted, test)

    def _store_points(self, fitted: FittedUpdate, test: PromiseTest | None = None) -> None:
        """Store the scorecard of a fit; nothing is measured on people."""
        problem, found = fitted.problem, fitted.found
        self.promised_ = None if test is None else not test.failure
        self._store_card(problem, found_card(problem, found))
        self.search_ = replace(self.search_, alternatives=None if test else fitted.alternatives)
        self.history_ = {
            "step": ["fewest changes", "nearness"],
            "change_rate": [n / fitted.n_people for n in (found.fewest, found.stop.n_changed)],
            "n_terms": [self.scorecard_.n_terms_used] * 2,
        }

    def _store_card(self, problem: FitProblem, card: Scorecard) -> None:
        """Store a scorecard with what follows from it: its nearness, and terms of few people."""
        self.target_ = self._target
        self.concept_weights_ = card.concept_points * problem.scale
        self.concept_contributions_ = card.contributions
        self.intercept_ = float(card.intercept - card.contributions @ card.concept_intercepts)
        self.term_names_ = problem.encoding.term_names
        self.scorecard_ = card
        assert card.rule is not None
        codes = columns_of_codes(card, self._code_columns)
        self.search_ = UpdateSearch(problem.direction, card.rule.nearness, codes)
        n_people = problem.terms.n_people(problem.rows.weight)
        self._n_small_terms = status.n_small_terms(n_people, card.points)

    def _store_figures(
        self,
        problem: FitProblem,
        fitted: FittedUpdate,
        test: PromiseTest | None = None,
    ) -> None:
        """Measure the stored update on the rows of a problem and write `status_`.

        `test` is the test of a promise on these rows; None without `confidence`. Where the cut was
        counted on more people, figures are those of all of them. Only how changed people score is
        measured on the rows that points come from.
        """
        tell("measuring the update")
        expectation = fitted.expectation
        self.expected_ = expectation or Expectation.unknown(self._stated().constraints)
        part, card = fitted.problem, self.scorecard_
        ratio = ratio_on(card, part.terms, part.rows.base, part.allowed)
        calibration = status.calibration_of(part.rows, ratio, str(self._fitted_param("score_edit")))
        self._why_uncalibrated, self.calibration_ = calibration
        decisions = card_decisions(problem, card)
        if fitted.counted is None:
            self._store_outcome(problem.rows, decisions)
        else:
            here = problem.rows, decisions
            problem, decisions = fitted.counted.measured(fitted.changed)
            self._store_outcome(problem.rows, decisions)
            self.outscoring_ = status.outscoring_figures(*here, self._raising_is_a_gain())
            outscoring = status.as_estimates(self.outscoring_)
            self._facts = replace(self._facts, outscoring=outscoring)
        rows = problem.rows
        self._is_degenerate = rows.is_degenerate(decisions)
        is_met = status.keeps_bounds(problem, self.values_, self._target)
        if expectation is not None:
            is_met = expectation.is_reached and problem.keeps_others(expectation.other_values)
        self.reached_ = bool(self._is_budget or is_met) and not self._is_degenerate
        level = float(self.confidence or 0.95)
        self.fairness_interval_ = metric_interval(problem, decisions, level)
        same = status.same_fairness(problem, self.values_)
        fairness = self.fairness_
        if self._is_degenerate and self._constraint.is_met(fairness, self._target):
            fairness = self._target  # what it reaches beyond its target is worth nothing
        limit = proven_limit(same, fairness) if fairness > 0 else np.nan
        self.limit_ = np.nan if np.isinf(limit) else limit
        self._store_unknown(problem, decisions, fairness)
        self._tell_target(problem, decisions, fitted, test)
        self.status_ = status_text(self._facts)

    def _store_unknown(self, problem: FitProblem, decisions: Mask, fairness: float) -> None:
        """Store on how many known people the figures rest, and what the unknown could be.

        `limit_` is that of a `fairness`.
        """
        metrics = [goal.metric for goal in self._facts.goals]
        unknown = status.unknown_people(problem, decisions, metrics)
        known = status.known_shares(problem.rows, decisions, self.limit_)
        self.unknown_groups_ = UnknownGroupFigures(
            unknown.n_known, *known, unknown.worst, unknown.is_exact, unknown.calibrated
        )
        is_loss = self.n_losses_ > self.n_gains_
        needed = fairness, self.limit_, known
        limit = status.needed_changes(problem, self.values_, *needed, is_loss=is_loss)
        self._facts = replace(self._facts, limit=limit, unknown=unknown if unknown.n else None)

    def _tell_target(
        self,
        problem: FitProblem,
        decisions: Mask,
        fitted: FittedUpdate,
        test: PromiseTest | None,
    ) -> None:
        """Add to the facts what was asked and what is expected; `test` is that of a promise."""
        expectation, asked = fitted.expectation, problem.asked
        is_missed = not status.keeps_bounds(problem, self.values_, self.target_)
        needed = None
        if is_missed and not (self.reached_ or self._is_budget or test is not None):
            needed = proven_limit(problem.in_asked_direction(), self.target_)
        target = AskedTarget(
            is_expectation=expectation is not None,
            is_known=expectation is not None and expectation.is_known,
            is_expected=self.reached_ or self._is_degenerate,
            interval=self.expected_.interval,
            change_rate=self.expected_.change_rate,
            accuracy=self.expected_.accuracy,
            is_missed=is_missed,
            is_reached=self.reached_,
            is_degenerate=self._is_degenerate,
            is_blocked=fitted.found.stop.is_blocked,
            alike=problem.rows.alike(decisions),
            needed=needed,
            budget=asked.caps.changes if self._is_budget else None,
            caps={name: cap for name, cap in asdict(asked.caps).items() if cap is not None},
            smallest=status.smallest_cell(problem),
            fewest_shown=FEWEST_DESCRIBED,
            direction=asked.direction,
            direction_kept=self.search_.direction,
            nearness=self.search_.nearness,
            edits=self.edits_,
        )
        bound = None if self._is_budget else self.target_
        first, *others = self._facts.goals
        is_kept = self._constraint.is_met(self.fairness_, self.target_)
        goals = (replace(first, bound=bound, is_kept=is_kept), *others)
        rows = problem.rows
        hints = ratio_hints(problem, goals)
        for hint in hints:
            warnings.warn(hint, TargetWarning, stacklevel=5)
        facts = replace(
            self._facts,
            goals=status.expected_goals(goals, self.expected_),
            target=target,
            n_small_terms=self._n_small_terms,
            notes=(*self._facts.notes, *filter(None, [fitted.optimism]), *hints),
            n_groups=len(rows.is_large_group),
            covered=status.covered_groups(rows),
        )
        self._facts = facts if test is None else self._with_promise(facts, problem, test)

    def _with_promise(
        self, facts: UpdateFacts, problem: FitProblem, test: PromiseTest
    ) -> UpdateFacts:
        """Return the facts of an update whose promise was tested on the rows of a problem."""
        figures = test.change_rate, test.observed, test.promised, test.n_rows_needed
        outcome = float(problem.asked.confidence or 0.0), test.failure, *figures
        facts = replace(facts, promise=PromiseOutcome(*outcome))
        if test.failure:  # figures are those of a fit on all rows
            return facts
        # Small groups are counted on all rows, because half of them are too few to say much.
        everybody, decisions = test.problem.rows, card_decisions(test.problem, self.scorecard_)
        self.groups_left_out_ = status.groups_left_out(everybody, decisions)
        halves = f"on the {everybody.n_people:,} rows of both halves"
        rows = problem.rows
        others_names = np.flatnonzero(~rows.is_large_group).tolist()
        return replace(
            facts,
            rows="held-out rows",
            left_out=self._left_out(everybody, decisions, halves),
            covered=status.covered_groups(rows, with_held_out_rows=True),
            not_covered=tuple(rows.group_names[i] for i in others_names),
        )

    # -- applying ---------------------------------------------------------------------

    def _effective(self, base: BaseScores, total: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.where(self._allowed_changes().is_open(base), super()._effective(base, total), 1.0)


def ratio_hints(problem: FitProblem, goals: Sequence[Goal]) -> list[str]:
    """Return a hint for each gap whose bound looks like that of a ratio."""
    hints = [
        ratio_target_text(goal.metric, goal.bound, goal.before)
        for goal, one in zip(goals, problem.compared.constraints, strict=True)
        if goal.bound is not None and one.is_gap
    ]
    return [hint for hint in hints if hint]


def problem_of(
    update: TargetedUpdate, rows: FitRows, encoding: Encoding | None = None
) -> FitProblem:
    """Return the problem of a fit on rows, in the order of their hashes.

    Without an encoding, it is learned from them.
    """
    asked = update._asked()
    check_monotone(asked.monotone, [column.name for column in rows.columns])
    return asked.problem(ordered_by_hash(rows), encoding)


def find_asked(
    problem: FitProblem, people: AllPeople | None = None, *, keeps_columns: bool = False
) -> tuple[FittedUpdate, PromiseTest | None]:
    """Return the update that a problem asks for; with `confidence`, the one whose promise holds.

    `people` are all people, if they are more than the rows of the problem. A promise rests on the
    rows that points come from: half of them fit, and half of them test. Without `keeps_columns`,
    the raw columns of the rows are dropped as soon as nothing encodes them again.
    """
    asks_promise = problem.asked.confidence is not None
    if not asks_promise and not keeps_columns:
        problem.rows.columns.clear()  # they are large
    part = point_problem(problem) if people is None else problem
    test = None
    if asks_promise:
        fitted, test = fit_promise(part)
        if not test.failure:
            return fitted, test
    if part is not problem:
        people = AllPeople(problem)
    return fit_update(part, people), test


def set_target(update: Targeted, target: float) -> Targeted:
    """Return the update with another target of its first constraint.

    Where the constraint states a bound, the target replaces this bound.
    """
    first, *others = update._stated().parts
    if update.target is not None or (first.bound is None and not others):
        return update.set_params(target=target)
    parts = (first.with_bound(target), *others)
    return update.set_params(constraints=parts[0] if len(parts) == 1 else AllOf(parts))


def checked_targets(update: TargetedUpdate, targets: Any) -> list[float] | None:
    """Return the targets of a sweep, each of which the update can have; None if not given."""
    targets = read_numbers("targets", targets)
    for target in targets or ():
        set_target(clone(update), target)._check_parameters()
    return targets


# ---------------------------------------------------------------------------------------------
# Check the parameters of a `ControlledDebiaser`


CHOICES = {
    "points": ("auto", "per unit", "per bin", "integers"),
    "direction": DIRECTIONS,
    "score_edit": SCORE_EDITS,
    "target_on": ("new_rows", "fit_rows"),
    "unknown_groups": UNKNOWN_GROUPS,
}


def check_controlled_parameters(update: TargetedUpdate) -> None:
    """Raise InputError for a parameter that cannot be used."""
    for name in ("max_changes", "max_accuracy_loss", "max_volume_change"):
        if getattr(update, name) is not None:
            check_number(update, name, low=0.0, high=1.0, is_share=True)
    if update.max_margin is not None:
        check_number(update, "max_margin", low=0.0)
    check_number(update, "borderline", low=0.0)
    check_number(update, "min_category_size", low=1, whole=True)
    if update.target is not None:
        check_number(update, "target", low=0.0, high=update._constraint.largest, is_share=True)
    for name, known in CHOICES.items():
        refuse_removed_value(name, getattr(update, name))
        check_choice(getattr(update, name), name, known)
    _check_confidence(update)
    _check_lines(update)
    if update.monotone is not None and not isinstance(update.monotone, Mapping):
        raise InputError(
            f"monotone={update.monotone!r} must map columns to 1 or -1, such as "
            "{'age': 1}: a larger age may only help.",
            parameter="monotone",
        )


def _check_confidence(update: TargetedUpdate) -> None:
    if update.confidence is None:
        return
    check_number(update, "confidence", low=0.5, high=0.9999, include="right", is_share=True)
    if update._is_budget:
        raise InputError(
            "confidence promises a target, but target is None and max_changes alone names none. "
            "Pass target= as well.",
            parameter="confidence",
        )
    stated = update._stated().constraints
    if len(stated) > 1 or not stated[0].is_simple:
        names = " and ".join(one.name for one in stated)
        raise InputError(
            f"confidence promises one ratio or difference of rates of all people, but constraints "
            f"is {names}. Its test is not known for conditions, floors, ceilings, moving "
            "denominators and several constraints. Leave confidence out; expected_.values says "
            "what is expected on new people.",
            parameter="confidence",
        )


def _check_lines(update: TargetedUpdate) -> None:
    """Check `max_lines`, and refuse parameters that whole-number points cannot serve."""
    if update.max_lines is not None:
        check_number(update, "max_lines", low=1, whole=True)
    if update.points != "integers":
        return
    if update.score_edit == "all":
        raise InputError(
            "score_edit='all' multiplies scores by r, and with points='integers' r is a number of "
            "points. Use score_edit='changed_only', or points='per bin'.",
            parameter="score_edit",
        )
    if update.confidence is not None:
        raise InputError(
            "confidence tests a path of updates, and points='integers' fits a single one. Leave "
            "confidence out; expected_.fairness says what is expected on new people.",
            parameter="confidence",
        )


def check_no_weighted_promise(update: TargetedUpdate, sample_weight: Any) -> None:
    """Raise InputError for `confidence` with sample weights."""
    if update.confidence is not None and sample_weight is not None:
        raise InputError(
            "confidence and sample_weight cannot be used together: the promise counts "
            "independent people, and a weighted rate has another error. Leave one out."
        )


def check_labels_given(update: TargetedUpdate, is_given: bool) -> None:
    """Raise InputError where a parameter compares decisions with labels that were not given."""
    if update.max_accuracy_loss is not None and not is_given:
        raise InputError("max_accuracy_loss compares decisions with labels, but y is None. Pass y.")


def given_groups(
    update: TargetedUpdate, X: Any, sensitive_features: Any, sensitive_probabilities: Any
) -> Any:
    """Return the sensitive features, or the groups with the probabilities given in their place."""
    if sensitive_probabilities is None:
        return sensitive_features
    if sensitive_features is not None:
        raise InputError(
            "sensitive_features and sensitive_probabilities were both given. Pass one of them. "
            "Where the group of some people is known, give it the probability 1.",
            parameter="sensitive_probabilities",
        )
    if update.confidence is not None:
        raise InputError(
            "confidence and sensitive_probabilities cannot be used together: the promise counts "
            "people of each group, and probabilities do not say who these people are. Leave "
            "confidence out, or pass sensitive_features of people whose group is known.",
            parameter="confidence",
        )
    check_same_rows({"X": X, "sensitive_probabilities": sensitive_probabilities})
    return read_group_probabilities(sensitive_probabilities)
