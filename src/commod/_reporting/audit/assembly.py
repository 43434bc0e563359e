"""Put an audit together: evidence, checks and sentences become one record."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commod._data.columns import Column
from commod._data.disclosure import FEWEST_DESCRIBED
from commod._data.groups import Groups
from commod._record import (
    SCHEMA,
    Audit,
    ExpectedOnNewPeople,
    Provenance,
    Request,
    Subgroups,
    utc_now,
)
from commod._reporting.audit.checks import checks_of
from commod._reporting.audit.evidence import Evidence
from commod._reporting.audit.ledger import Ledger
from commod._reporting.audit.people import AuditedPeople, ShownPeople, read_people, without_hidden
from commod._reporting.audit.request import add_label_names, condition_columns
from commod._reporting.audit.sentences import answer_of, notice_of, why_undefined
from commod._reporting.audit.stated import read_conditions
from commod._text import list_names, n_of, verb
from commod._words.update import no_interval_text
from commod.patch.fingerprint import library_versions


def make_audit(
    evidence: Evidence,
    *,
    digest: str,
    title: str | None,
    created: str | None,
    ledger: Ledger | None = None,
) -> Audit:
    """Return the audit of the evidence; `digest` is the digest of the audited data."""
    method = evidence.method
    return Audit(
        fairness=evidence.fairness_metrics,
        **figures_of_first_screen(evidence),
        title=title or (f"What {method} changes" if method else "What the update changes"),
        agreement=evidence.scores.agreement,
        calibration=evidence.scores.calibration,
        proxies=evidence.proxies,
        subgroups=evidence.subgroups,
        segments=evidence.segments,
        card=evidence.card,
        stability=evidence.stability,
        checks=checks_of(evidence),
        not_known=not_known_of(evidence),
        provenance=provenance_of(evidence, digest, ledger, created),
        outscoring=evidence.outscoring,
        roc=evidence.roc,
        edits=evidence.edits,
        ledger=ledger,
    )


def figures_of_first_screen(evidence: Evidence) -> dict[str, Any]:
    """Return the fields of an audit that the first screen of a report shows."""
    return {
        "schema": SCHEMA,
        "rows": evidence.rows,
        "n": evidence.n,
        "level": evidence.level,
        "request": evidence.request,
        "changes": evidence.changes,
        "limit": evidence.limit,
        "groups": evidence.groups,
        "small_groups": evidence.small_groups,
        "quality": evidence.quality,
        "unknown_groups": evidence.unknown_groups,
        "answer": answer_of(evidence),
        "notice": notice_of(evidence),
        "expected": evidence.expected,
    }


# ---------------------------------------------------------------------------------------------
# The first screen of a report for one update after another, on people who are read once

LEVEL = 0.95  # of all intervals
MIN_SUBGROUP_SIZE = 100  # as in `audit`; the first screen has no subgroups
NO_PROVENANCE = Provenance(
    "", {}, None, {}, None, None, "", "", None
)  # reading versions takes time


@dataclass(frozen=True)
class FirstScreen:
    """People who were read once, for the figures of several updates of the same base model.

    Groups that are too small to be shown are in no figure, as in `audit`.
    """

    shown: ShownPeople
    request: Request
    rows: str
    min_group_size: int

    @classmethod
    def read(
        cls,
        y_before: Any,
        y_true: Any,
        sensitive_features: Any,
        X: Any,
        request: Request,
        *,
        rows: str,
        min_group_size: int,
        unknown_groups: str = "error",
        label_names: Mapping[Any, str] | None = None,
    ) -> FirstScreen:
        """Return the people with their decisions before the update, their groups and labels."""
        labels = {"y_before": y_before, "y_after": y_before, "y_true": y_true}
        people = read_people(labels, {}, sensitive_features, request, None, unknown_groups)
        conditions = read_conditions(condition_columns(request), X, None, len(people))
        shown = without_hidden(replace(people, conditions=conditions), min_group_size)
        named = add_label_names(request, people.coding, label_names)
        return cls(shown, named, rows, min_group_size)

    def asked(self, request: Request, label_names: Mapping[Any, str] | None) -> FirstScreen:
        """Return the same people for another request of the same constraints."""
        named = add_label_names(request, self.shown.people.coding, label_names)
        return replace(self, request=named)

    def audit(self, after: NDArray[np.bool_], expected: ExpectedOnNewPeople | None) -> Audit:
        """Return an audit that has the figures of the first screen and no others.

        `after` (n,) says who has the positive decision.
        """
        people = replace(self.shown.people, after=after[self.shown.is_shown])
        evidence = Evidence(
            shown=replace(self.shown, people=people),
            request=self.request,
            rows=self.rows,
            level=LEVEL,
            min_group_size=self.min_group_size,
            min_subgroup_size=MIN_SUBGROUP_SIZE,
            expected=expected,
        )
        return Audit(
            **figures_of_first_screen(evidence),
            # intervals of metrics that nobody asked for would take most of the time
            fairness=evidence.stated_metrics,
            title="What the update changes",
            agreement=None,
            calibration=None,
            proxies=(),
            subgroups=Subgroups(0, 0, 0, MIN_SUBGROUP_SIZE, LEVEL, ()),
            segments=None,
            card=None,
            stability=None,
            checks=(),
            not_known=(),
            provenance=NO_PROVENANCE,
        )


# ---------------------------------------------------------------------------------------------
# Write what an audit does not know: general limits, missing inputs, and too few people


def not_known_of(evidence: Evidence) -> tuple[str, ...]:
    """Return what the figures do not say, one text per fact."""
    return (
        f"All figures are measured on the {evidence.rows}. If the base model or the update was "
        "fitted on these rows, the figures are too good; on new people they may differ.",
        "Intervals hold if new people arrive in the same way as these people did, independently "
        "of each other. They do not cover wrong labels, wrong groups, or people who never "
        "appear in the data.",
        *_left_out(evidence),
        *_unknown_groups(evidence),
        *_not_given(evidence),
        *_too_few(evidence),
        "A target is a choice of the people who set it. No figure here says that a rule or a law "
        "is complied with. People must judge whether a change is right for the person.",
    )


def _left_out(evidence: Evidence) -> list[str]:
    texts = []
    n = evidence.n_undecided
    if n:
        texts.append(
            f"{n_of(n, 'row')} without a decision before and after the update {verb(n, 'be')} left "
            "out of every figure."
        )
    if not evidence.has_rows:
        texts.append(
            "The figures come from counts and sums made inside the dataframe engine. Figures that "
            "need single rows were not computed: areas under the curve of all people, calibration "
            "and the rank correlation of scores, whether people who gain have higher base "
            "scores than people who stay rejected, rules that say who changes, subgroups within "
            "columns, and the change ledger."
        )
    roc = evidence.roc
    if roc is not None and roc.n_bins is not None:
        texts.append(
            f"For the ROC curves of groups, scores were counted in {roc.n_bins:,} bins. The "
            "intervals of the areas include the largest error that the bins can make."
        )
    return texts


def _unknown_groups(evidence: Evidence) -> list[str]:
    if n := evidence.shown.n_unknown_hidden:
        return [
            f"For {n_of(n, 'person')}, the group is not known. As there are fewer than "
            f"{FEWEST_DESCRIBED}, they are in no figure and no total. The ledger has their changes."
        ]
    if evidence.unknown is None:
        return []
    text = (
        f"For {n_of(evidence.unknown.n, 'person')}, the group is not known. Changes and accuracy "
        "count them. Rates, comparisons and the limit do not, and hold for everybody only if "
        "people of unknown groups fare as those of known groups do."
    )
    named = zip(evidence.stated.stated, evidence.stated_metrics, strict=True)
    without = [
        metric.name for i, (one, metric) in enumerate(named) if i or not one.constraint.is_simple
    ]
    return [text, no_interval_text(without)] if without else [text]


def _not_given(evidence: Evidence) -> list[str]:
    texts = {
        "True labels were not given: accuracy, error rates and calibration are not known.": (
            evidence.quality is None
        ),
        "Scores before and after were not both given: agreement, ranking and calibration of the "
        "scores are not known.": evidence.scores.agreement is None,
        "Scores before were not given: whether people who gain have higher base scores than "
        "people who stay rejected is not known.": evidence.scores.mean_before is None
        and evidence.has_rows,
        "Raw columns were not given: which people change, and subgroups within columns, are not "
        "known.": evidence.segments is None and evidence.has_rows,
        "The ratio r is not known: how well the update predicts the group is measured on the "
        "changes alone.": not all(proxy.by_ratio for proxy in evidence.proxies),
        "Refits on resampled rows were not made: whether other rows would lead to the same "
        "changes is not known.": evidence.stability is None,
    }
    return [*(text for text, is_missing in texts.items() if is_missing), *_no_curves(evidence)]


def _no_curves(evidence: Evidence) -> list[str]:
    """Return why areas under and between ROC curves of groups are not known, if so."""
    roc = evidence.roc
    if roc is None:
        means = evidence.scores.mean_before, evidence.scores.mean_after
        if evidence.quality is None or all(mean is None for mean in means):
            return []  # `_not_given` says so
        return ["Too few people are compared for ROC curves of groups: they are not known."]
    unknown = [g for g in roc.groups if g.why_unknown]
    names = list_names([g.name for g in unknown], 10, width=40)
    whys = list_names(sorted({g.why_unknown for g in unknown}))
    texts = [f"ROC curves are not known for {names}: {whys}."] if unknown else []
    if roc.n_left_out:
        texts.append(
            f"ROC curves were compared for the {len(roc.groups)} largest groups only; "
            f"{n_of(roc.n_left_out, 'compared group')} {verb(roc.n_left_out, 'be')} left out."
        )
    return texts


def _too_few(evidence: Evidence) -> list[str]:
    texts = []
    if evidence.fairness.after.value is None:
        texts.append(f"Fairness is not known: {why_undefined(evidence)}")
    unread = evidence.unread_columns
    if unread:
        names = list_names(unread, 10, width=40)
        texts.append(
            f"Columns that are neither numbers nor categories ({names}) are in no rule and "
            "no subgroup, and their values are not in the digest of the data."
        )
    small = evidence.small_groups
    if small:
        n_people = n_of(sum(group.n for group in small), "person")
        texts.append(
            f"{n_of(len(small), 'group')} with {n_people} in total {verb(len(small), 'be')} too "
            f"small (under {small[0].needed} people each) and left out of every comparison."
        )
    n = evidence.n_hidden
    if n:
        texts.append(
            f"{n_of(n, 'person')} in groups of fewer than {FEWEST_DESCRIBED} people "
            f"{verb(n, 'be')} in no figure and no total. With the totals, the decisions of "
            "single people could be computed. The ledger has their changes."
        )
    n = evidence.subgroups.n_too_small
    if n:
        texts.append(
            f"{n_of(n, 'subgroup')} {verb(n, 'have')} too few people or too few peers (under "
            f"{evidence.subgroups.min_size}) to be compared."
        )
    return texts


NO_LEDGER = "not made"


class Digest:
    """SHA-256 of named arrays and texts, including their types and shapes."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()

    def hexdigest(self) -> str:
        """Return the digest in hexadecimal."""
        return self._hash.hexdigest()

    def add_array(self, name: str, values: NDArray[Any] | None) -> None:
        """Add an array under a name."""
        self.add_text(name, [] if values is None else [str(values.dtype), *map(str, values.shape)])
        if values is not None:
            self._hash.update(np.ascontiguousarray(values).data)

    def add_text(self, name: str, parts: Iterable[str]) -> None:
        """Add texts under a name."""
        self._hash.update(json.dumps([name, *parts]).encode())

    def add_strata(self, columns: Mapping[str, Groups]) -> None:
        """Add the columns that constraints are within; nothing without any."""
        for name, column in columns.items():
            self.add_text("within", [name, *map(repr, column.labels)])
            self.add_array("", column.codes.astype(np.int32))


class DataDigest(Digest):
    """SHA-256 of the audited rows, one column at a time; the same for every kind of frame."""

    def __init__(self, people: AuditedPeople) -> None:
        super().__init__()
        self.add_array("decisions", np.stack([people.before, people.after]))
        self.add_array("labels", people.label)
        self.add_array("scores_before", people.scores_before)
        self.add_array("scores_after", people.scores_after)
        self.add_text("groups", people.coding.group_names)
        self.add_array("group", people.groups.codes.astype(np.int32))
        if people.scores_calibrated is not None:
            self.add_array("scores_calibrated", people.scores_calibrated)
        self.add_strata(people.conditions)

    def add_column(self, column: Column) -> None:
        """Add one raw column."""
        if column.kind == "numeric":
            self.add_text("number", [column.name])
            self.add_array("", np.where(column.is_missing(), np.nan, column.values))
            return
        # frame libraries number the same categories differently; sorting by name makes one order
        names = [json.dumps(value) for value in column.categories]
        order = sorted(range(len(names)), key=names.__getitem__)
        rank = np.full(len(names) + 1, -1, np.int32)
        rank[order] = np.arange(len(order))
        used = np.unique(column.values[column.values >= 0])
        self.add_text("category", [column.name, *sorted(names[c] for c in used)])
        position = np.cumsum(np.isin(np.arange(len(names)), rank[used])) - 1
        codes = rank[column.values]
        self.add_array(
            "", np.where(codes >= 0, np.append(position, -1)[codes], -1).astype(np.int32)
        )


def digest_counts(evidence: Evidence, score_ranges: Mapping[str, Sequence[float]]) -> str:
    """Return the SHA-256 of group names, and of people by group, true label and decisions.

    `score_ranges` are the lowest and highest of the given scores, by parameter name. Sums of
    scores are left out, because engines add in different orders and round differently. With
    constraints within columns, people count by these columns, too.
    """
    digest, lines = Digest(), evidence.stated.lines
    digest.add_text("groups", evidence.coding.group_names)
    digest.add_array("people", evidence.everybody.cells)
    for name, (low, high) in score_ranges.items():
        digest.add_text(name, [(low + 0.0).hex(), (high + 0.0).hex()])  # −0 becomes 0
    if lines.conditions:
        digest.add_strata(lines.conditions)
        digest.add_array("group", lines.groups.codes.astype(np.int32))
        digest.add_array("labels", lines.label)
        digest.add_array("decisions", np.stack([lines.before, lines.after]))
        digest.add_array("n", lines.n)
    return digest.hexdigest()


def provenance_of(
    evidence: Evidence, digest: str, ledger: Ledger | None, created: str | None
) -> Provenance:
    """Return versions, settings and digests; `created` is the present time in UTC if None."""
    return Provenance(
        created=utc_now() if created is None else created,
        versions=library_versions("narwhals"),
        method=evidence.method,
        settings=dict(evidence.settings),
        reads_group=evidence.reads_group,
        is_randomised=evidence.is_randomised,
        data_digest=digest,
        ledger_digest=NO_LEDGER if ledger is None else ledger.digest,
        ledger_lines=_ledger_lines(evidence, ledger),
    )


def _ledger_lines(evidence: Evidence, ledger: Ledger | None) -> int | None:
    """Return the number of lines; None where it would tell how many hidden people change."""
    if ledger is None:
        return 0
    n_hidden = evidence.n_hidden + evidence.shown.n_unknown_hidden
    return None if n_hidden else len(ledger)
