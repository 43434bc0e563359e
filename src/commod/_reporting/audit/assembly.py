"""Put an audit together: evidence, checks and sentences become one record."""

from __future__ import annotations

from commod._data.disclosure import FEWEST_DESCRIBED
from commod._record import SCHEMA, Audit
from commod._reporting.audit.checks import checks_of
from commod._reporting.audit.evidence import Evidence
from commod._reporting.audit.ledger import Ledger
from commod._reporting.audit.provenance import UpdateFacts, provenance_of
from commod._reporting.audit.sentences import answer_of, notice_of, why_undefined
from commod._reporting.explain import Explanation
from commod._statistics.unknown_groups import no_interval_text
from commod._text import list_names, n_of, verb


def make_audit(
    evidence: Evidence,
    *,
    digest: str,
    title: str | None,
    created: str | None,
    explanation: Explanation | UpdateFacts | None = None,
    ledger: Ledger | None = None,
) -> Audit:
    """Return the audit of the evidence; `digest` is the digest of the audited data."""
    method = None if explanation is None else explanation.method
    return Audit(
        schema=SCHEMA,
        title=title or (f"What {method} changes" if method else "What the update changes"),
        rows=evidence.rows,
        n=evidence.n,
        level=evidence.level,
        request=evidence.request,
        answer=answer_of(evidence),
        notice=notice_of(evidence),
        fairness=evidence.fairness_metrics,
        changes=evidence.changes,
        limit=evidence.limit,
        groups=evidence.groups,
        small_groups=evidence.small_groups,
        quality=evidence.quality,
        agreement=evidence.scores.agreement,
        calibration=evidence.scores.calibration,
        proxies=evidence.proxies,
        subgroups=evidence.subgroups,
        segments=evidence.segments,
        card=evidence.card,
        stability=evidence.stability,
        checks=checks_of(evidence),
        not_known=not_known_of(evidence),
        provenance=provenance_of(evidence, digest, explanation, ledger, created),
        outscoring=evidence.outscoring,
        expected=evidence.expected,
        roc=evidence.roc,
        unknown_groups=evidence.unknown_groups,
        edits=evidence.edits,
        ledger=ledger,
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
            "and the rank correlation of scores, whether those who gain score higher than those "
            "who stay rejected, rules that say who changes, subgroups within columns, and the "
            "change ledger."
        )
    roc = evidence.roc
    if roc is not None and roc.n_bins is not None:
        texts.append(
            f"For the ROC curves of groups, scores were counted in {roc.n_bins:,} bins. The "
            "intervals of the areas include the largest error that the bins can make."
        )
    return texts


def _unknown_groups(evidence: Evidence) -> list[str]:
    if n := evidence.n_unknown_hidden:
        return [
            f"The group of {n_of(n, 'person')} is not known. As there are fewer than "
            f"{FEWEST_DESCRIBED}, they are in no figure and no total. The ledger has their changes."
        ]
    if evidence.unknown is None:
        return []
    text = (
        f"The group of {n_of(evidence.unknown.n, 'person')} is not known. Changes and accuracy "
        "count them. Rates, comparisons and the limit do not, and hold for everybody only if "
        "people of unknown groups fare as those of known groups do."
    )
    constraints = [one.constraint for one in evidence.stated.stated]
    metrics = [metric.name for metric in evidence.stated_metrics]
    return [text, *filter(None, [no_interval_text(constraints, metrics)])]


def _not_given(evidence: Evidence) -> list[str]:
    texts = {
        "True labels were not given: accuracy, error rates and calibration are not known.": (
            evidence.quality is None
        ),
        "Scores before and after were not both given: agreement, ranking and calibration of the "
        "scores are not known.": evidence.scores.agreement is None,
        "Scores before were not given: whether those who gain score higher than those who stay "
        "rejected is not known.": evidence.scores.mean_before is None and evidence.has_rows,
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
    n = 0 if evidence.n_hidden is None else int(evidence.n_hidden.sum())
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
