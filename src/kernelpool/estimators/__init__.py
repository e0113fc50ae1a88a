"""Thin scikit-learn shells around the networks."""
