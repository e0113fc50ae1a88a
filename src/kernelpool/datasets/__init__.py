"""Data sets: generators of the papers' artificial problems, and loaders of their real ones."""

from .generators import (
    make_clouds,
    make_ellipses,
    make_one_against_two,
    make_ring,
    make_ripley,
    make_strips,
    make_two_against_one,
    make_two_regions,
    make_xor,
)
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
    "make_clouds",
    "make_ellipses",
    "make_one_against_two",
    "make_ring",
    "make_ripley",
    "make_strips",
    "make_two_against_one",
    "make_two_regions",
    "make_xor",
    "missing_reason",
]
