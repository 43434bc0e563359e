"""Turn drafts into plain data for the page, with the sentences, tables and charts of the report.

Templates of the page show them, escaped. The page computes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any

import numpy as np

from commod._explore.draft import Draft
from commod._record.audit import Audit
from commod._reporting.render import explanation_tables, texts
from commod._text import count, n_of, number, percent, plain, points
from commod._words.shared import EVIDENCE, POSITIVE_POINTS
from commod.exceptions import InputError
from commod.scorecard import ADD_POINTS, EvidenceRule

MAX_TERMS = 400  # terms that the page gets at once; a filter finds the others
Plain = dict[str, Any]


def screen_view(draft: Draft, *, is_preview: bool = False) -> Plain:
    """Return what the first screen of a draft shows: losses first, then groups and limit."""
    audit = draft.audit
    sentences = [texts.asked_expected_measured(audit), texts.expected_figures(audit)]
    return {
        "audit": audit,
        "is_preview": is_preview,
        "reached": draft.now.is_reached,
        "verdict": _verdict(draft),
        "is_gains_only": draft.base.update._fitted_param("direction") == "gains_only",
        "figures": _figures(audit),
        "sentences": [text for text in sentences if text],
    }


def _verdict(draft: Draft) -> str:
    """Return whether the target is reached, and on whom, to follow "the target"."""
    is_on_these_rows = draft.now.expected is None or draft.base.update._is_budget
    verdict = "reached" if is_on_these_rows else "expected on new people"
    return f"is {verdict}" if draft.now.is_reached else f"is not {verdict}"


def _figures(audit: Audit) -> list[Plain]:
    """Return the four figures of the first screen: a title, a number and tones with texts."""
    changes, outcome = audit.changes, texts.favourable_outcome(audit.request)
    people: Plain = {
        "title": "People whose decision changes",
        "big": f"{count(changes.n_changes)} of {count(changes.n)}",
        "texts": [
            ["loss", f"▼ {count(changes.n_losses)} lose {outcome}"],
            ["gain", f"▲ {count(changes.n_gains)} gain it"],
        ],
    }
    return [people, _fairness(audit), _accuracy(audit), _limit(audit)]


def _fairness(audit: Audit) -> Plain:
    fairness = texts.asked_fairness(audit)
    if fairness is None or fairness.after.value is None:
        return {"title": "Fairness between groups", "big": "not known", "texts": []}
    before, after = (
        texts.fairness_number(audit, value.value) for value in (fairness.before, fairness.after)
    )
    shown = []
    if target := texts.target_text(audit):
        state, verdict = texts.target_state(audit)
        shown.append([state, f"Target: {target}{', ' if verdict else ''}{verdict}."])
    if fairness.definition:
        shown.append(["", f"{texts.sentence_case(fairness.definition)}."])
    title = f"Fairness between groups ({fairness.name})"
    return {"title": title, "big": f"{before} → {after}", "texts": shown}


def _accuracy(audit: Audit) -> Plain:
    title = "Right decisions (accuracy)"
    quality = audit.quality
    if quality is None:
        return {"title": title, "big": "not known", "texts": [["", "No true labels were given."]]}
    before, after = quality.accuracy_before.value, quality.accuracy_after.value
    fixed, made = count(quality.n_errors_fixed), count(quality.n_errors_introduced)
    text = f"Errors fixed: {fixed}. Errors introduced: {made}."
    return {"title": title, "big": f"{percent(before)} → {percent(after)}", "texts": [["", text]]}


def _limit(audit: Audit) -> Plain:
    times = audit.limit.times
    big = "not known" if times is None else f"{number(times)} times"
    title = "Changes, as a multiple of the fewest possible"
    return {"title": title, "big": big, "texts": [["", texts.limit_sentences(audit)]]}


# ---------------------------------------------------------------------------------------------
# Scorecard


def terms_view(draft: Draft, earlier: Draft | None = None, words: str = "") -> Plain:
    """Return the terms of the scorecard that have points or were set, strongest first.

    `earlier` is the draft that was shown before: lines that moved since are marked. With `words`,
    return the terms whose name contains them, also those without points.
    """
    fitted = draft.base
    encoding, now = fitted.encoding, draft.now.points
    names, columns = encoding.term_names, encoding.term_columns
    first, pins, locked = draft.base.update.scorecard_.points, draft.asked["pins"], draft.locked
    before = now if earlier is None else earlier.points_of(names)
    is_whole = draft.base.update._has_whole_points
    terms: list[Plain] = []
    n_left_out = 0
    # Fitted points decide the order, so that a term stays in its place while it is edited.
    for i in np.argsort(-np.abs(first * fitted.problem.scale), kind="stable").tolist():
        name = names[i]
        is_found = words.casefold() in name.casefold() if words else now[i] or first[i]
        if not is_found and (words or name not in pins):
            continue
        if len(terms) == MAX_TERMS:
            n_left_out += 1
            continue
        size = max(abs(float(first[i])), abs(float(now[i])))
        terms.append(
            {
                "id": i,
                "name": name,
                "shown": plain(encoding.counted_names.get(name, name)),
                "column": columns[i],
                "points": float(now[i]),
                "fitted": points(first[i]),
                "per_unit": name in encoding.counted_names,
                "reach": _round_up(max(2 * size, 10.0 * is_whole)) if size or is_whole else 1.0,
                "is_edited": bool(now[i] != first[i]),
                "has_moved": bool(now[i] != before[i]),
                "is_locked": columns[i] in locked,
                "is_pinned": name in pins,
                "other_pins": {one: value for one, value in pins.items() if one != name},
            }
        )
    shown = dict.fromkeys(term["column"] for term in terms if term["points"])
    return {
        "terms": terms,
        "left_out": n_left_out,
        "intercept": points(draft.now.intercept),
        "whole": is_whole,
        # The score is no column to lock.
        "columns": {name: name in draft.base.update._columns_seen for name in shown},
        "is_search": bool(words),
        **_rule_view(draft.now.rule, draft.base.update._allowed_changes().max_margin),
    }


def _rule_view(rule: EvidenceRule, max_margin: float | None) -> Plain:
    """Return how the sum of the points decides, and what the sign of points means."""
    sentences = [ADD_POINTS, *rule.sentences(max_margin=max_margin), EVIDENCE]
    return {"rule": " ".join(sentences), "sign": f"{texts.sentence_case(POSITIVE_POINTS)}."}


def _round_up(value: float) -> float:
    """Return the next of 1, 2, 5, 10, … times a power of ten at or above a value."""
    power = 10.0 ** np.floor(np.log10(value))
    return float(next(step * power for step in (1, 2, 5, 10) if step * power >= value * (1 - 1e-9)))


# ---------------------------------------------------------------------------------------------
# Further parts, each on its own request


def segments_view(draft: Draft) -> Plain:
    """Return the rules that describe who changes."""
    segments = draft.segments
    table = explanation_tables.segments(segments, "People described by each rule.")
    return {"table": table, "sentences": texts.described_changes(segments)}


Price = tuple[int, bool] | str  # changes and whether the target is reached, or why neither is known


def wishes_view(prices: Mapping[str, Price]) -> Plain:
    """Return what each wish costs in changes, the dearest first; "" is the request itself."""
    n_asked, rows, failed = 0, [], []
    for words, price in prices.items():
        if isinstance(price, str):
            failed.append([words, f"not known: {price}", "not known"])
            continue
        n_changes, is_reached = price
        if not words:
            n_asked = n_changes
            continue
        cost = n_asked - n_changes
        more = n_of(abs(cost), "more change" if cost > 0 else "fewer change")
        missed = "" if is_reached else "; without it, the target is missed"
        text = f"{more if cost else 'no more changes'}{missed}"
        rows.append((-cost, [words, text, count(n_changes)]))
    listed = [*(row for _, row in sorted(rows, key=itemgetter(0))), *failed]
    return {"rows": listed}


def history_lines(drafts: Sequence[Draft]) -> list[tuple[str, str, str]]:
    """Return what each step did, who did it and why, and its figures: before → after."""
    lines, before = [], ("", "", "")
    for draft in drafts:
        changes, fairness = draft.audit.changes, texts.asked_fairness(draft.audit)
        value = None if fairness is None else fairness.after.value
        name = "fairness" if fairness is None else plain(fairness.metric)
        fair = "not known" if value is None else texts.fairness_number(draft.audit, value)
        after = count(changes.n_changes), count(changes.n_losses), fair
        figures = (
            f"{title} {two}" if one in ("", two) else f"{title} {one} → {two}"
            for title, one, two in zip(("changes", "losses", name), before, after, strict=True)
        )
        by = "nobody named" if draft.by is None else draft.by
        note = "" if draft.note is None else f": {draft.note}"
        origin = "" if draft.when is None else f"{by}, {draft.when}{note}"
        lines.append((plain(draft.words), origin and plain(origin), ", ".join(figures)))
        before = after
    return lines


def compared_view(kept: Draft | None, present: Draft) -> Plain | None:
    """Return two drafts side by side: figures of the first screen, and who differs by group."""
    if kept is None:
        return None
    pairs = zip(_figures(kept.audit), _figures(present.audit), strict=True)
    rows = [[one["title"], _short(one), _short(two)] for one, two in pairs]
    reached = ("yes" if draft.now.is_reached else "no" for draft in (kept, present))
    rows.append(["Target reached", *reached])
    n_terms = [count(int(np.count_nonzero(draft.now.points))) for draft in (kept, present)]
    n_differ = int((kept.now.after != present.now.after)[present.base.shown].sum())
    sentence = f"{n_of(n_differ, 'decision')} {'differs' if n_differ == 1 else 'differ'}."
    return {
        "rows": [*rows, ["Terms with points", *n_terms]],
        "sentence": sentence,
        "groups": [[name, *map(count, counts)] for name, counts in present.differing(kept)],
    }


def differences_view(kept: Draft | None, present: Draft) -> Plain:
    """Return rules that say whom the present draft decides differently from the kept one."""
    if kept is None:
        raise InputError("Nothing was kept to compare with.")
    segments = present.segments_after(kept.now.after)
    caption = "▲ gain: favourable with the present update only. ▼ loss: with the kept one only."
    table = explanation_tables.segments(segments, caption)
    sentences = texts.described_changes(segments)
    if not segments.n_gains + segments.n_losses:
        sentences = ["The two decide alike for everybody."]
    return {"table": table, "sentences": sentences}


def _short(figure: Plain) -> str:
    toned = [text for tone, text in figure["texts"] if tone in ("gain", "loss")]
    return "; ".join([figure["big"], *toned])
