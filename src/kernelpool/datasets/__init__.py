"""Data sets: generators of the papers' artificial problems, and loaders of their real ones."""

from .clouds import make_clouds
from .competitive import make_one_against_two, make_ring, make_xor
from .em_log import make_ellipses, make_strips
from .loaders import load_bupa, load_ionosphere, load_phoneme, load_pima, load_ripley, load_satimage, load_wdbc, missing_reason
from .ripley import make_ripley
from .shared_kernel import make_two_against_one, make_two_regions

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
