"""Measurements that anyone can rerun: `python -m benchmarks` (or `make bench`), or one module by
name.
"""
