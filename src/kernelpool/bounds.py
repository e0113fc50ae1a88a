"""Test-set sizes and certificates: how far the error of a classifier can be trusted; see `inspection.bounds`."""

from .inspection.bounds import *  # noqa: F403
from .inspection.bounds import __all__ as __all__
