"""The published experiments, rerun: one module a paper. `python -m papers --help`.

=============================  =======================================================================================
`shared_kernels`               tables I-V of the shared-kernel paper `regularized_prbf`
tables 1-4 of the regularized-PRBF paper `competitive_neurons`          table 1 of the
competitive-neurons paper `em_log`                       figures 3-5 of the EM-Log paper
`minimal_kernel_networks`      figure 2 of the minimal-network paper `comparison`
a table nobody published: ours beside scikit-learn's classifiers `published`, ``tables.csv``    the
papers' figures, and when ours agree `experiment`, `folds`          units of work and the file of
finished ones; data sets and their folds `run`, `summary`, `page`       run all units; their records
beside the published figures; both as a page `figures`, `drawing`           the papers' figures,
redrawn `variations`, `remarks`        cells that differ, rerun with one choice changed at a time;
what was found, in words
=============================  =======================================================================================

This folder is part of the repository, not of the package. Artificial data sets
come from `papers.data.generators` and `kernelpool.datasets`.
"""
