"""
A billion rows, worked out
==========================

How long a fit of a billion rows takes on a cluster, and what it costs, from the rate of a sweep on
one thread of this machine. These are estimates: arithmetic on a measured rate, and no run.
"""

# %%
# The rate
# --------
#
# Processor time of a sweep over 100,000 rows of 10 features, 24 kernels, one thread.

import time
import warnings

import matplotlib.pyplot as plt
import numpy as np

from kernelpool import SharedKernelClassifier, Training

warnings.filterwarnings("ignore", message="EM stopped after")
rng = np.random.default_rng(0)
label, part = rng.integers(3, size=100_000), rng.integers(8, size=100_000)
rows = 2 * rng.normal(size=(3, 8, 10))[label, part] + rng.normal(size=(100_000, 10))
rate = {}
for family in ("diag", "full"):
    ticks = []
    settings = {
        "covariance_type": family,
        "max_iter": 6,
        "tol": 0,
        "training": Training("em", acceleration=None),
        "random_state": 0,
        "n_jobs": 1,
    }
    SharedKernelClassifier.prbf(
        24, **settings, callback=lambda _, t=ticks: t.append(time.process_time())
    ).fit(rows, label)
    rate[family] = len(rows) / np.median(np.diff(ticks))
    print(f"{family}: {rate[family] / 1e6:.1f} million rows a second and core")

# %%
# The arithmetic
# --------------
#
# A sweep is rows by rate by cores, and what the scheduler needs to hand out its tasks one after the
# other: one for each chunk and an eighth more for their sums, at a millisecond. 50 sweeps; a
# core-hour at 0.04 dollars. Beyond some hundred cores the scheduler is what is waited for, and
# larger chunks are the remedy: they must still fit the memory of the workers.

cores = np.unique(np.logspace(0.9, 3.1, 60).astype(int))
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
for family, color in (("diag", "tab:blue"), ("full", "tab:orange")):
    for chunk, style in ((1e6, "-"), (4e6, "--")):
        sweep = 1e9 / rate[family] / cores + 1e9 / chunk * (1 + 1 / 8) * 1e-3
        minutes = 50 * sweep / 60
        name = f"24 {family} kernels, {1e9 / chunk:.0f} chunks"
        left.loglog(cores, minutes, style, color=color, label=name)
        right.semilogx(cores, minutes / 60 * cores * 0.04, style, color=color, label=name)
left.set(xlabel="cores", ylabel="minutes", title="50 sweeps over a billion rows of 10 features")
right.set(
    xlabel="cores", ylabel="dollars, at 0.04 a core-hour", title="what that costs", ylim=(0, None)
)
left.legend()
