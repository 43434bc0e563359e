"""An audit as one HTML page that needs nothing else: no host, no font, no server."""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import replace
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from commod import _text
from commod._record import Audit, Card, Segments, Step, TradeOff
from commod._reporting.render import charts, tables, words

__all__ = ["render_html"]

_FORMATS = ("count", "number", "percent", "percentage_points", "points", "estimate", "of_hundred")


def render_html(audit: Audit, trade_off: TradeOff | None = None) -> str:
    """Return the report as one HTML page; nothing is computed and no file is touched.

    Parameters
    ----------
    audit : Audit
    trade_off : TradeOff, default=None
        The steps of a frontier, for the slider.
    """
    environment = _environment()
    names = words.Names()
    style = environment.get_template("style.css").render()
    script = environment.get_template("report.js").render()
    return environment.get_template("page.html").render(
        audit=audit,
        trade_off=trade_off,
        names=names,
        asked=words.asked_fairness(audit),
        start=None if trade_off is None else first_step(audit, trade_off),
        step_fields=step_fields,
        step_tables=step_tables,
        step_described=step_described,
        data=None if trade_off is None else _data(trade_off, names),
        style=Markup(style),
        script=Markup(script),
        style_hash=_digest(style),
        script_hash=_digest(script),
    )


def first_step(audit: Audit, trade_off: TradeOff) -> int:
    """Return the step the slider starts at: what was asked, else what is nearest in fairness."""
    asked, reached = audit.request.target, words.asked_fairness(audit)
    steps = trade_off.steps
    if asked is not None and any(step.target is not None for step in steps):
        return min(range(len(steps)), key=lambda i: _distance(steps[i].target, asked))
    if reached is not None and reached.after.value is not None and steps:
        value = reached.after.value
        return min(range(len(steps)), key=lambda i: _distance(steps[i].fairness, value))
    return max(len(steps) - 1, 0)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("commod._reporting.render"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(tables=tables, charts=charts, words=words)
    environment.filters.update({name: getattr(_text, name) for name in _FORMATS})
    environment.filters.update(plain=_text.plain, shorten=_text.shorten)
    return environment


def _data(trade_off: TradeOff, names: words.Names) -> Markup:
    """Return what the slider shows, ready to be put in place, as JSON no text can break out of."""
    places = charts.trade_off(trade_off, names).places if trade_off.steps else ()
    steps = [
        _step(trade_off, i, step, place, names)
        for i, (step, place) in enumerate(zip(trade_off.steps, places, strict=True))
    ]
    text = json.dumps(steps, separators=(",", ":"), allow_nan=False)  # ASCII: no U+2028, no emoji
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)


def _step(
    trade_off: TradeOff, place: int, step: Step, at: tuple[float, float], names: words.Names
) -> dict[str, Any]:
    found, card = step_tables(step)
    return {
        "at": at,
        "sentence": names(words.step_sentence(trade_off, place), words.SENTENCE),
        "fields": step_fields(trade_off, step, names),
        "segments": _rows(found, names),
        "described": step_described(step),
        "card": _rows(card, names),
        "more": card.more,
    }


def step_tables(step: Step) -> tuple[tables.Table, tables.Table]:
    """Return the rules and the scorecard of a step; without rows where there are none."""
    found = step.segments or Segments((), 0, 0, 0, 0, 0)
    rules = tables.step_segments(found)
    if step.card is None:
        card = replace(tables.scorecard(Card(0.0, (), ()), "", with_spread=False), rows=())
        return rules, replace(card, more="This step has no scorecard.")
    return rules, tables.scorecard(step.card, "Total points on r.", with_spread=False)


def step_described(step: Step) -> str:
    """Return how many of a step's changes its rules describe."""
    if step.segments is None:
        return "No rules are known for this step: it draws lots, or none were found."
    return " ".join(words.described(step.segments))


def step_fields(trade_off: TradeOff, step: Step, names: words.Names) -> dict[str, str]:
    """Return the figures of a step as they are shown."""
    return {
        "target": words.target(step.target),
        "fairness": _text.number(step.fairness, 3),
        "changes": f"{_text.count(step.n_changes)} of {_text.count(trade_off.n_rows)}",
        "change_rate": _text.percent(step.change_rate),
        "gains": _text.count(step.n_gains),
        "losses": _text.count(step.n_losses),
        "limit": _text.percent(step.limit),
        "accuracy": _text.percent(step.accuracy),
        "settings": names(tables.settings(step.settings), 160) if step.settings else "",
    }


def _rows(table: tables.Table, names: words.Names) -> list[list[list[Any]]]:
    return [
        [
            [
                _shown(cell.text, cell.limit, names),
                _shown(cell.note, 160, names),
                cell.kind,
                cell.tone,
            ]
            + ([] if cell.sort is None else [cell.sort])
            for cell in row
        ]
        for row in table.rows
    ]


def _shown(text: str, limit: int, names: words.Names) -> str:
    return names(text, limit) if text else ""


def _distance(value: float | None, aim: float) -> float:
    return float("inf") if value is None else abs(value - aim)


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
