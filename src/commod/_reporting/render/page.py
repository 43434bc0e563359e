"""Render an audit as Markdown, or as one HTML page that needs no network and no other file.

`report` writes it to a file; the suffix decides whether it is HTML, Markdown or JSON.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, pass_context
from jinja2.runtime import Context
from markupsafe import Markup

from commod import _text
from commod._io.files import write_whole
from commod._record.audit import Audit, Shipped
from commod._record.explanation import Card, Segments, Step, TradeOff
from commod._reporting.render import charts, explanation_tables, tables, texts
from commod._reporting.render.embedding import Source, json_block, library, report_data, sealed
from commod._reporting.render.tables import ReportTable
from commod._reporting.render.texts import ShortNames
from commod._text import count, number, percent
from commod.exceptions import InputError, InputTypeError

_FILTERS = ("count", "estimate", "n_of", "number", "percent", "plain")
_ACTIVE = re.compile(r"([\\`*_{}\[\]#|~$!=^@])")
_LINE_START = re.compile(r"^([-+]|\d+[.)])")
_ADDRESS = re.compile(r"(?i)\b(www)\.|(:)//")


def report(
    audit: Audit, path: str | os.PathLike[str], *, frontier: Any = None, patch: Any = None
) -> Path:
    """Write an audit as one file that people can read, sign and keep.

    Parameters
    ----------
    audit : Audit
        The result of `commod.audit`.
    path : str or path
        The suffix decides the format. ``.html`` is one page that needs no network and no other
        file. ``.md`` is Markdown. ``.json`` is the audit itself, for `Audit.from_json`. An existing
        file is replaced; if anything fails, it stays as it was.
    frontier : Frontier or TradeOff, default=None
        The result of `commod.frontier`. The report shows its steps with their changes, segments
        and scorecards: in HTML along a slider, in Markdown as a table. JSON has the audit alone.
        If the segments of the frontier are not known yet, they are searched for first.
    patch : Patch, default=None
        The patch that ships: `update.to_patch(audit=audit)`, or `patch.with_audit(audit)`. The
        report says what ships: SHA-256 of the patch file, fingerprint of the base model, rows,
        versions, and the gap between the figures of the fit and of the audit. It holds the
        audit, the patch and the steps of a frontier as JSON, too; a .json report has the audit
        under "audit", and its sentences under "text". See `commod.verify_report`.

    Returns
    -------
    Path
        The path of the report.

    Examples
    --------
    >>> import commod
    >>> decisions = [0, 0, 1, 1] * 50, [0, 1, 1, 1] * 50
    >>> audit = commod.audit(*decisions, sensitive_features=["a", "b"] * 100)
    >>> folder = getfixture("tmp_path")
    >>> commod.report(audit, folder / "report.html").name
    'report.html'
    """
    target = Path(path)
    suffix = target.suffix.lower()
    if suffix not in (".html", ".md", ".json"):
        raise InputError(
            f"A report ends in .html, .md or .json; got {target.name!r}. Name it for example "
            f"{target.stem or 'report'}.html."
        )
    if not isinstance(audit, Audit):
        raise InputTypeError(
            f"report needs an Audit; got {type(audit).__name__}. Make one with "
            "commod.audit(y_before, y_after, sensitive_features=…) or Audit.from_json."
        )
    trade_off = _trade_off(frontier)
    if trade_off is not None and trade_off.constraints != audit.request.constraints:
        raise InputError(
            f"The frontier is for {trade_off.constraints}, but the audit is for "
            f"{audit.request.constraints}: pass a frontier of the same constraint."
        )
    source: Source | None = None
    if patch is not None:
        method = getattr(patch, "shipped_with", None)
        if not callable(method):
            raise InputTypeError(
                "patch must be a Patch, such as update.to_patch(audit=audit), or None; got "
                f"{type(patch).__name__}."
            )
        shipped = method(audit)  # refuses a patch of another audit
        made = Source(audit, shipped, json.loads(patch.to_json()), library(), trade_off)
        source = made.as_read()
    if source is not None:
        data = file_bytes(source, suffix)
    elif suffix == ".html":
        data = _encoded(render_html(audit, trade_off))
    elif suffix == ".md":
        data = _encoded(render_markdown(audit, trade_off))
    else:
        data = _encoded(audit.to_json())
    return write_whole(target, data)


def file_bytes(source: Source, suffix: str) -> bytes:
    """Return the file of a report with a patch, sealed; the same source gives the same bytes."""
    shown = source.audit, source.trade_off, source.shipped
    if suffix == ".html":
        text = render_html(*shown, json_block(report_data(source)))
    elif suffix == ".md":
        text = render_markdown(*shown, json_block(report_data(source)))
    else:
        content = report_data(source, text=render_markdown(*shown))
        text = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)
    return sealed(_encoded(text))


def _encoded(text: str) -> bytes:
    """Return text in UTF-8. It has no lone surrogates: JSON reads them back as it writes them."""
    return text.encode("utf-8", "backslashreplace")


def _trade_off(frontier: Any) -> TradeOff | None:
    if frontier is None or isinstance(frontier, TradeOff):
        return frontier
    method = getattr(frontier, "trade_off", None)
    trade_off = method() if callable(method) else None
    if not isinstance(trade_off, TradeOff):
        raise InputTypeError(
            "frontier must be what commod.frontier returns, or None; got "
            f"{type(frontier).__name__}."
        )
    return trade_off


def render_html(
    audit: Audit,
    trade_off: TradeOff | None = None,
    shipped: Shipped | None = None,
    block: str | None = None,
) -> str:
    """Return the report as one HTML page.

    Parameters
    ----------
    audit : Audit
    trade_off : TradeOff, default=None
        The steps of a frontier, for the slider.
    shipped : Shipped, default=None
        The patch that the report belongs to.
    block : str, default=None
        What the page is made of as JSON that no text can break out of; the page holds it.
    """
    templates = environment(autoescape=True)
    names = ShortNames()
    style, script = (templates.get_template(name).render() for name in ("style.css", "report.js"))
    return templates.get_template("page.html").render(
        **_context(audit, trade_off, shipped, names, block),
        start=None if trade_off is None else first_step(audit, trade_off),
        step_fields=step_fields,
        step_tables=step_tables,
        step_described=step_described,
        data=None if trade_off is None else _slider_data(trade_off, names),
        style=Markup(style),
        script=Markup(script),
        style_hash=_digest(style),
        script_hash=_digest(script),
    )


def render_markdown(
    audit: Audit,
    trade_off: TradeOff | None = None,
    shipped: Shipped | None = None,
    block: str | None = None,
) -> str:
    """Return the report as Markdown; a trade-off becomes a table of its steps.

    Parameters
    ----------
    audit : Audit
    trade_off : TradeOff, default=None
        The steps of a frontier.
    shipped : Shipped, default=None
        The patch that the report belongs to.
    block : str, default=None
        What the report is made of as JSON that no text can break out of; a comment holds it.
    """
    template = environment(autoescape=False).get_template("report.md")
    return template.render(**_context(audit, trade_off, shipped, ShortNames(), block))


def _context(
    audit: Audit,
    trade_off: TradeOff | None,
    shipped: Shipped | None,
    names: ShortNames,
    block: str | None,
) -> dict[str, Any]:
    """Return what both formats show."""
    return {
        "audit": audit,
        "trade_off": trade_off,
        "shipped": shipped,
        "block": None if block is None else Markup(block),
        "names": names,
        "fairness": texts.asked_fairness(audit),
    }


def first_step(audit: Audit, trade_off: TradeOff) -> int:
    """Return the step where the slider starts.

    It is the step whose target is nearest to the audit's target, else the one whose fairness is
    nearest to the audited update's, else the last.
    """
    steps, fairness = trade_off.steps, texts.asked_fairness(audit)
    target = audit.request.target
    if target is not None and any(step.target is not None for step in steps):
        return _nearest([step.target for step in steps], target)
    if fairness is not None and fairness.after.value is not None and steps:
        return _nearest([step.fairness for step in steps], fairness.after.value)
    return max(len(steps) - 1, 0)


# One step of the slider ---------------------------------------------------------------------------


def step_fields(trade_off: TradeOff, step: Step, names: ShortNames) -> dict[str, str]:
    """Return the figures of a step as text."""
    settings = explanation_tables.settings(step.settings)
    return {
        "target": texts.target_number(step.target),
        "fairness": number(step.fairness, 3),
        "changes": f"{count(step.n_changes)} of {count(trade_off.n_rows)}",
        "change_rate": percent(step.change_rate),
        "gains": count(step.n_gains),
        "losses": count(step.n_losses),
        "limit": percent(step.limit),
        "accuracy": percent(step.accuracy),
        "expected": texts.expected_text(step),
        "outscoring": percent(step.outscoring),
        "outscoring_losses": percent(step.outscoring_losses),
        "settings": names(settings, 160) if settings else "",
    }


def step_tables(step: Step) -> tuple[ReportTable, ReportTable]:
    """Return the rules and the scorecard of a step; a table without rows where there is none."""
    rules = explanation_tables.step_segments(step.segments or Segments((), 0, 0, 0, 0, 0))
    known = step.card or Card(0.0, (), ())
    caption = explanation_tables.total_caption(known)
    card = explanation_tables.scorecard(known, caption, with_spread=False)
    if step.card is None:
        card = replace(card, rows=(), more="No scorecard is known for this step.")
    elif step.card.rule is not None:  # each step has its own cut
        card = replace(card, more=" ".join(filter(None, [card.more, *step.card.rule.sentences])))
    return rules, card


def step_described(step: Step) -> str:
    """Return how many of a step's changes its rules describe."""
    if step.segments is None:
        return (
            "No rules are known for this step: it is randomised, people were only counted, or no "
            "rules were found."
        )
    return " ".join(texts.described_changes(step.segments))


def _slider_data(trade_off: TradeOff, names: ShortNames) -> Markup:
    """Return the texts of all steps as JSON."""
    places = charts.trade_off(trade_off, names).places if trade_off.steps else ()
    data = []
    for i, (step, place) in enumerate(zip(trade_off.steps, places, strict=True)):
        rules, card = step_tables(step)
        data.append(
            {
                "at": place,
                "sentence": names(texts.step_sentence(trade_off, i), texts.SENTENCE_LIMIT),
                "fields": step_fields(trade_off, step, names),
                "segments": row_data(rules, names),
                "described": step_described(step),
                "card": row_data(card, names),
                "more": card.more,
            }
        )
    return Markup(json_block(data))


def row_data(table: ReportTable, names: ShortNames) -> list[list[list[Any]]]:
    """Return the cells of a table as lists: text, note, kind, tone and, if known, sort value."""
    return [
        [
            [
                names(cell.text, cell.limit) if cell.text else "",
                names(cell.note, 160) if cell.note else "",
                cell.kind,
                cell.tone,
                *([] if cell.sort is None else [cell.sort]),
            ]
            for cell in row
        ]
        for row in table.rows
    ]


def _nearest(values: list[Any], aim: float) -> int:
    distances = [float("inf") if value is None else abs(value - aim) for value in values]
    return distances.index(min(distances))


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


# The environments of both formats -----------------------------------------------------------------


def map_of(trade_off: TradeOff) -> str:
    """Return changes against fairness as HTML for a notebook: an SVG with its style, no script."""
    return (
        environment(autoescape=True)
        .get_template("map.html")
        .render(
            drawn=charts.trade_off(trade_off, ShortNames()),
            has_blind=any(step.blind_limit for step in trade_off.steps),
        )
    )


@cache
def environment(*, autoescape: bool) -> Environment:
    """Return the environment for HTML (escaped automatically) or Markdown (filter `markdown`)."""
    made = Environment(
        loader=PackageLoader("commod._reporting.render"),
        autoescape=autoescape,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=not autoescape,
    )
    made.globals.update(tables=tables, explained=explanation_tables)
    made.globals.update(charts=charts, texts=texts)
    made.filters.update({name: getattr(_text, name) for name in _FILTERS}, markdown=_markdown)
    return made


def inert(text: str) -> str:
    r"""Return text that Markdown shows as it is: without markup, HTML or links.

    Examples
    --------
    >>> print(inert("a|b *c* <i> www.d.e"))
    a\|b \*c\* &lt;i&gt; www\.d.e
    """
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    text = _ACTIVE.sub(r"\\\1", text)
    text = _ADDRESS.sub(lambda match: match[0].replace(".", r"\.").replace(":", r"\:"), text)
    return _LINE_START.sub(lambda match: match[0][:-1] + "\\" + match[0][-1], text)


@pass_context
def _markdown(context: Context, text: str, limit: int = texts.SENTENCE_LIMIT) -> str:
    """Return text for Markdown: cut by the report's `names`, and escaped."""
    return inert(context["names"](text, limit))
