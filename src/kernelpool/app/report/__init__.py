"""Reports on fitted models: a summary of plain data, the page made of it, and pictures.

The summary needs nothing beyond kernelpool's own dependencies, the page needs jinja2, the pictures matplotlib.
"""

from .html import render_html, write_html
from .page import write_report
from .records import Summary
from .summary import summarize

__all__ = ["Summary", "render_html", "summarize", "write_html", "write_report"]
