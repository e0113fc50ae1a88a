"""Reports on fitted classifiers: what they do on rows, `evaluate`; one HTML page, `write_report`;
and the plots in it, `plots`.

The page needs jinja2 and matplotlib, the plots matplotlib, `evaluate` neither.
"""

from .page import write_page, write_report
from .results import Results, evaluate

__all__ = ["Results", "evaluate", "write_page", "write_report"]
