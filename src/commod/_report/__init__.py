"""An audit on paper: one HTML file, Markdown or JSON; renders records and computes nothing."""

from commod._report.markdown import render_markdown
from commod._report.page import render_html
from commod._report.write import report

__all__ = ["render_html", "render_markdown", "report"]
