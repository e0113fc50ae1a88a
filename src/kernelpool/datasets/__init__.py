"""Artificial problems: generators of labeled rows."""

from .generators import make_clouds, make_ripley, make_xor

__all__ = ["make_clouds", "make_ripley", "make_xor"]
