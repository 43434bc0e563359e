"""Formulas as MathML, which browsers draw by themselves: no script and no font from elsewhere."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from docutils.utils.math import latex2mathml


def setup(app: Any) -> dict[str, bool]:
    """Add the renderer `mathml` of formulas."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _inline(page: Any, node: nodes.math) -> None:
    page.body.append(latex2mathml.tex2mathml(node.astext()))
    raise nodes.SkipNode


def _block(page: Any, node: nodes.math_block) -> None:
    formula = latex2mathml.tex2mathml(node.astext(), as_block=True)
    page.body.append(f'<div class="math">{formula}</div>')
    raise nodes.SkipNode
