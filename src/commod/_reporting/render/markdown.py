"""Render an audit as Markdown: the tables and sentences of the HTML page, for repositories."""

from __future__ import annotations

from commod._record import Audit, Shipped, TradeOff
from commod._reporting.render import texts
from commod._reporting.render.embedding import block_text
from commod._reporting.render.templating import environment


def render_markdown(
    audit: Audit, trade_off: TradeOff | None = None, shipped: Shipped | None = None
) -> str:
    """Return the report as Markdown; a trade-off becomes a table of its steps.

    Parameters
    ----------
    audit : Audit
    trade_off : TradeOff, default=None
        The steps of a frontier.
    shipped : Shipped, default=None
        The patch that the report belongs to. A comment then holds the audit and this record as
        JSON.
    """
    template = environment(autoescape=False).get_template("report.md")
    return template.render(
        audit=audit,
        trade_off=trade_off,
        shipped=shipped,
        block=None if shipped is None else block_text(audit, shipped),
        names=texts.ShortNames(),
        fairness=texts.asked_fairness(audit),
    )
