"""Pictures of fitted models, by scikit-learn's Display convention: `from_estimator(...)`, then `.plot(ax=...)` again at will.

A display holds plain data and draws it; after `plot` it has `ax_` and `figure_`. Colors are those of Okabe & Ito, which people
with any common color vision tell apart, and nothing is told by color alone. matplotlib is asked for when something is drawn.
"""

from .calibration import CalibrationDisplay
from .history import HistoryDisplay
from .kernels import KernelDisplay
from .novelty import NoveltyDisplay
from .reject import RejectCurveDisplay
from .sharing import SharingDisplay

__all__ = [
    "CalibrationDisplay",
    "HistoryDisplay",
    "KernelDisplay",
    "NoveltyDisplay",
    "RejectCurveDisplay",
    "SharingDisplay",
]
