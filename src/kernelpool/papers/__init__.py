"""The published experiments, rerun: one module a paper, and `reproduce` for all of their tables at once.

=============================  =======================================================================================
`shared_kernels`               tables I-V of the shared-kernel paper
`regularized_prbf`             tables 1-4 of the regularized-PRBF paper
`competitive`                  table 1 of the competitive-neurons paper
`em_log`                       figures 3-5 of the EM-Log paper
`minimal_kernel_networks`      figure 2 of the minimal-network paper
`comparison`                   a table nobody published: ours beside scikit-learn's classifiers
`published`, ``tables.csv``    the papers' figures, and when ours agree
`reproduce`                    everything: units of work, a pool, a ledger, CSV and a page
`variations`, `reasons`        what cells that do not agree depend on
`figures`, `page`, `markdown`  the papers' figures redrawn; the HTML page; the documentation's page
=============================  =======================================================================================
"""
