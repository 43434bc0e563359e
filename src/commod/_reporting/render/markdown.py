"""An audit as Markdown: the same tables and sentences as the page, for a repository or a wiki."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from commod._record import Audit, StabilitySummary, TradeOff
from commod._reporting.render import tables, words
from commod._text import count, estimate, number, percent, shorten

__all__ = ["render_markdown"]

_ACTIVE = re.compile(r"([\\`*_{}\[\]#|~$!=^@])")
_LINE_START = re.compile(r"^([-+]|\d+[.)])")
_ADDRESS = re.compile(r"(?i)\b(www)\.|(:)//")


def render_markdown(audit: Audit, trade_off: TradeOff | None = None) -> str:
    """Return the report as Markdown; the trade-off is a table of its steps.

    Parameters
    ----------
    audit : Audit
    trade_off : TradeOff, default=None
        The steps of a frontier.
    """
    return "\n".join(_Writer().lines(audit, trade_off)) + "\n"


def inert(text: str) -> str:
    r"""Return text that Markdown shows as it is: no markup, no HTML, no link.

    Examples
    --------
    >>> print(inert("a|b *c* <i> www.d.e"))
    a\|b \*c\* &lt;i&gt; www\.d.e
    """
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    text = _ACTIVE.sub(r"\\\1", text)
    text = _ADDRESS.sub(lambda found: found[0].replace(".", r"\.").replace(":", r"\:"), text)
    return _LINE_START.sub(lambda found: found[0][:-1] + "\\" + found[0][-1], text)


class _Writer:
    """One report; remembers the names it had to cut."""

    def __init__(self) -> None:
        self.names = words.Names()

    def lines(self, audit: Audit, trade_off: TradeOff | None) -> Iterator[str]:
        yield from self.answer(audit)
        yield from self.who_and_why(audit)
        yield from self.trade_off(trade_off)
        yield from self.groups(audit)
        yield from self.quality(audit)
        yield from self.stability(audit.stability)
        yield from self.end(audit)

    def say(self, text: str, limit: int = words.SENTENCE) -> str:
        return inert(self.names(text, limit))

    def bullets(self, sentences: Sequence[str]) -> Iterator[str]:
        for sentence in sentences:
            yield f"- {self.say(sentence)}"
        yield ""

    def table(self, table: tables.Table) -> Iterator[str]:
        yield self.say(table.caption)
        yield ""
        yield f"| {' | '.join(self.say(column, 60) for column in table.columns)} |"
        kinds = (
            [cell.kind for cell in table.rows[-1]] if table.rows else ["text"] * len(table.columns)
        )
        yield f"| {' | '.join('---:' if kind == 'number' else '---' for kind in kinds)} |"
        for row in table.rows:
            yield f"| {' | '.join(map(self.cell, row))} |"
        yield ""
        if table.more:
            yield from (self.say(table.more), "")

    def cell(self, cell: tables.Cell) -> str:
        text = self.say(cell.text, cell.limit) if cell.text else ""
        return f"{text} ({self.say(cell.note, 160)})" if cell.note else text

    def answer(self, audit: Audit) -> Iterator[str]:
        changes, quality, asked = audit.changes, audit.quality, words.asked_fairness(audit)
        yield from (f"# {self.say(audit.title, words.NAME)}", "")
        for sentence in audit.answer:
            yield from (self.say(sentence), "")
        if audit.notice:
            yield from (f"> **Most of the changes are losses.** {self.say(audit.notice)}", "")
        figures = [
            f"People whose decision changes: {count(changes.n_changes)} of {count(changes.n)} "
            f"({count(changes.n_gains)} gain, {count(changes.n_losses)} lose "
            f"{words.outcome(audit.request)}); {estimate(changes.rate)}, {words.measured(audit)}"
        ]
        if asked is None:
            figures.append("Fairness between groups: not known, no measure was taken.")
        else:
            goal = words.goal(audit.request) or "none was stated"
            figures.append(
                f"Fairness between groups, {asked.metric}: {number(asked.before.value)} before, "
                f"{number(asked.after.value)} after; target: {goal}. It is "
                f"{words.meaning(asked.constraints, audit.request)}."
            )
        if quality is None:
            figures.append("Accuracy: not known, no labels were given.")
        else:
            figures.append(
                f"Accuracy: {percent(quality.accuracy_before.value)} before, "
                f"{percent(quality.accuracy_after.value)} after."
            )
        times = audit.limit.times
        multiple = "not known" if times is None else f"{number(times)} times"
        figures.append(
            f"Changes, as a multiple of the fewest possible: {multiple}. "
            + " ".join(words.distance(audit.limit))
        )
        yield from self.bullets(figures + words.in_words(self.names, audit.groups))
        yield from (words.NO_PROOF, "")

    def who_and_why(self, audit: Audit) -> Iterator[str]:
        yield from ("## Who changes", "")
        if audit.segments is None:
            yield from ("No rules are known: the audit was given no columns.", "")
        else:
            caption = "People described by each rule. "
            caption += words.measured(audit, audit.segments.n_rows)
            yield from self.table(tables.segments(audit.segments, caption))
            yield from self.bullets(words.described(audit.segments))
        yield from ("## Why", "")
        if audit.card is None:
            yield from ("No scorecard is known.", "")
            return
        yield from self.table(
            tables.scorecard(
                audit.card,
                "Total points on r; a decision changes where r is below 0 and it may. Spread is "
                f"the standard deviation of what a line adds to r, on the {count(audit.n)} "
                f"{shorten(audit.rows, 60)}.",
            )
        )
        if audit.card.concepts:
            yield from self.table(tables.concepts(audit, audit.card))
        for concept in audit.card.concepts:
            title = self.say(f"Concept {concept.number}: {concept.name}", words.NAME)
            yield from (f"### {title}", "")
            yield from self.table(tables.concept(concept))

    def trade_off(self, trade_off: TradeOff | None) -> Iterator[str]:
        yield from ("## Trade-off", "")
        if trade_off is None:
            yield from (
                "No other updates were compared: the report was made without a frontier.",
                "",
            )
        elif not trade_off.steps:
            yield from ("The frontier has no step fairer than the base model.", "")
        else:
            yield from self.table(tables.steps(trade_off))

    def groups(self, audit: Audit) -> Iterator[str]:
        yield from ("## Groups", "")
        yield from self.table(tables.outcomes(audit))
        yield from self.table(tables.errors(audit))
        if audit.small_groups:
            yield from self.table(tables.small_groups(audit))
        else:
            yield from ("No group is too small to be compared.", "")
        yield from ("## Fairness measures", "")
        yield from self.table(tables.fairness(audit))
        yield from ("## Proxy check", "")
        if audit.proxies:
            yield from self.table(tables.proxies(audit))
        else:
            yield from ("Not known: nothing changes, or there are no two groups.", "")
        found = audit.subgroups
        yield from ("## Subgroups that remain badly served", "")
        yield (
            f"{count(found.n_tested)} subgroups of at least {count(found.min_size)} people were "
            f"tested; {count(found.n_too_small)} others had too few people, or too few to compare "
            f"with. {count(found.n_worse)} fare clearly worse than their peers."
        )
        yield ""
        if found.listed:
            yield from self.table(tables.subgroups(audit))
        yield from ("## Checks", "")
        if audit.checks:
            yield from self.table(tables.checks(audit))
        else:
            yield from ("No check was made.", "")

    def quality(self, audit: Audit) -> Iterator[str]:
        yield from ("## Accuracy and scores", "")
        found = audit.quality
        if found is None:
            yield from ("How right the decisions are is not known: no labels were given.", "")
        else:
            yield from self.table(tables.quality(audit, found))
            p = f"= {number(found.p_value, 3)}" if found.p_value >= 0.001 else "below 0.001"
            yield self.say(
                f"{count(found.n_errors_fixed)} errors became right decisions and "
                f"{count(found.n_errors_introduced)} right decisions became errors "
                f"(McNemar's exact test: "
                f"p {p})."
            )
            yield ""
        if audit.calibration is None:
            yield from ("Calibration is not known: it needs scores and labels.", "")
        else:
            yield (
                "Mean distance between score and observed share: "
                f"{number(audit.calibration.error_before, 3)} before, "
                f"{number(audit.calibration.error_after, 3)} after."
            )
            yield ""
            yield from self.table(tables.calibration(audit, audit.calibration))
        close = tables.agreement(audit)
        if close is None:
            yield from ("Score agreement is not known: no scores were given.", "")
        else:
            yield from self.table(close)

    def stability(self, found: StabilitySummary | None) -> Iterator[str]:
        yield from ("## Stability", "")
        if found is None:
            yield from ("Not known: the update was not refitted on resamples.", "")
            return
        yield words.refits(found)
        yield ""
        yield from self.table(tables.stability_histogram(found))
        if found.columns:
            yield from self.table(tables.stability_columns(found))

    def end(self, audit: Audit) -> Iterator[str]:
        made = audit.provenance
        yield from ("## What is not known", "")
        yield from self.bullets((*audit.not_known, words.elsewhere(audit)))
        yield from ("## Method and provenance", "")
        pairs = [
            *words.requests(audit.request),
            ("Method", made.method or "not known"),
            *((key, words.setting(value)) for key, value in made.settings.items()),
            *made.versions.items(),
            ("Made", made.created),
            ("Format", audit.schema),
            ("Rows", f"{count(audit.n)} {audit.rows}"),
            ("Digest of the data (SHA-256)", made.data_digest),
            ("Ledger of changes", f"{count(made.ledger_lines)} lines"),
            ("Digest of the ledger (SHA-256; sha256sum ledger.csv prints it)", made.ledger_digest),
        ]
        yield from ("| What | Value |", "| --- | --- |")
        for key, value in pairs:
            yield f"| {self.say(key, words.NAME)} | {self.say(value, words.NAME)} |"
        yield from ("", "## Sign-off", "", words.NO_PROOF, "")
        decision = "Decision: approve, approve with conditions or reject"
        yield f"| Name | Role | {decision} | Date | Signature |"
        yield "| --- | --- | --- | --- | --- |"
        yield from ["| | | | | |"] * 4
        kept, n_more = self.names.listed()
        if kept:
            yield from ("", "## Long names in full", "")
            for place, text in kept:
                yield f"- \\[{place}\\] {inert(text)}"
            if n_more:
                yield f"- {count(n_more)} more are in the audit's JSON."
