"""Bounds on the error of a classifier: from test rows, and for networks of few kernels.

Bounds from test rows are in `kernelpool.inspection.bounds`; those of the paper on minimal networks,
and the bound that needs no test rows, in `kernelpool.parzen.bounds`.
"""

from .inspection.bounds import (
    Certificate,
    binomial_interval,
    binomial_upper,
    certify,
    paired_difference,
)
from .parzen.bounds import (
    capacity,
    certified_error,
    certify_by_compression,
    compression_bound,
    test_size,
    test_size_for_capacity,
)

__all__ = [
    "Certificate",
    "binomial_interval",
    "binomial_upper",
    "capacity",
    "certified_error",
    "certify",
    "certify_by_compression",
    "compression_bound",
    "paired_difference",
    "test_size",
    "test_size_for_capacity",
]
