"""The Jinja environments of the two kinds of report: HTML and Markdown."""

from __future__ import annotations

import re
from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined, pass_context
from jinja2.runtime import Context

from commod import _text
from commod._reporting.render import charts, curves, explanation_tables, tables, texts

_FILTERS = ("count", "estimate", "n_of", "number", "percent", "plain")
_ACTIVE = re.compile(r"([\\`*_{}\[\]#|~$!=^@])")
_LINE_START = re.compile(r"^([-+]|\d+[.)])")
_ADDRESS = re.compile(r"(?i)\b(www)\.|(:)//")


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
    made.globals.update(tables=tables, explained=explanation_tables, curves=curves)
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
