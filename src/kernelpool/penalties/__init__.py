"""What is believed of the kernels before rows are seen; a sum of penalties is a penalty."""

from .overlap import Overlap
from .penalty import (
    Anchor,
    CategoryPrior,
    Conjugate,
    NoPenalty,
    Penalty,
    PriorRows,
    Subkernels,
    Sum,
)

__all__ = [
    "Anchor",
    "CategoryPrior",
    "Conjugate",
    "NoPenalty",
    "Overlap",
    "Penalty",
    "PriorRows",
    "Subkernels",
    "Sum",
]
