"""Data sets: generators of the papers' artificial problems."""

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

__all__ = [
    "make_clouds",
    "make_ellipses",
    "make_one_against_two",
    "make_ring",
    "make_ripley",
    "make_strips",
    "make_two_against_one",
    "make_two_regions",
    "make_xor",
]
