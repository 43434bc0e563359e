"""Write an audit as HTML, Markdown or JSON. Rendering shows records and computes nothing."""

from commod._reporting.render.page import render_html, render_markdown, report

__all__ = ["render_html", "render_markdown", "report"]
