"""Reports on fitted classifiers: one HTML page, `write_report`, and the plots in it, `plots`.

The page needs jinja2 and matplotlib, the plots matplotlib.
"""

from .page import write_report

__all__ = ["write_report"]
