"""The published experiments, rerun: one module a paper."""
