"""Data sets: generators of the papers' artificial problems."""

from .clouds import make_clouds

__all__ = ["make_clouds"]
