"""The real data sets of the papers."""

from .loaders import (
    load_bupa,
    load_ionosphere,
    load_phoneme,
    load_pima,
    load_ripley,
    load_satimage,
    load_wdbc,
    missing_reason,
)

__all__ = [
    "load_bupa",
    "load_ionosphere",
    "load_phoneme",
    "load_pima",
    "load_ripley",
    "load_satimage",
    "load_wdbc",
    "missing_reason",
]
