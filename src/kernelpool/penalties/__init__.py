"""What is believed of the kernels before rows are seen, one belief a file; a sum of penalties is a
penalty.
"""

from .anchor import Anchor
from .conjugate import Conjugate, WordPrior
from .overlap import Overlap
from .penalty import NoPenalty, Penalty, PriorRows, Subkernels, Sum

__all__ = [
    "Anchor",
    "Conjugate",
    "NoPenalty",
    "Overlap",
    "Penalty",
    "PriorRows",
    "Subkernels",
    "Sum",
    "WordPrior",
]
