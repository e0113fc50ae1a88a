"""
Files and streams
=================

Rows need not be in memory: a file is swept batch by batch and gives the same model, and a stream is
learned as it comes, and forgotten as it drifts.
"""

# %%
# The same model from a file
# --------------------------
#
# The rows go to a folder of Parquet; the fit reads them from there, with the target named as a
# column. Rows that are few enough are kept when they have been read, which is switched off here to
# see the sweeps over batches.

import tempfile
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from kernelpool import SharedKernelClassifier, Training
from kernelpool.datasets import make_clouds

warnings.filterwarnings("ignore", message="EM stopped after")  # a few sweeps are what is asked for
X, y = make_clouds(20_000, random_state=0)
settings = {"n_kernels": 12, "covariance_type": "full", "random_state": 0}
with tempfile.TemporaryDirectory() as folder:
    for i in range(4):
        part = slice(5000 * i, 5000 * (i + 1))
        table = pa.table({"x": X[part, 0], "y": X[part, 1], "label": y[part]})
        pq.write_table(table, Path(folder) / f"part-{i}.parquet")
    from_files = SharedKernelClassifier.prbf(**settings).fit(folder, "label")
    print(f"accuracy of the file: {from_files.score(folder, 'label'):.3f}")
in_memory = SharedKernelClassifier.prbf(**settings).fit(X, y)
print("largest difference of the means:", np.abs(from_files.means_ - in_memory.means_).max())

# %%
# Mini-batches and sweeps
# -----------------------
#
# `partial_fit` learns from a mini-batch and is done with it. By how many rows were read, it is far
# ahead of sweeps over all of them: a sweep changes the network once, a pass of mini-batches many
# times.

X_test, y_test = make_clouds(20_000, random_state=1)


def log_likelihood(model):
    return model.log_likelihood(X_test, y_test) / len(y_test)


stream, streamed = SharedKernelClassifier.prbf(**settings), []
for i in range(0, len(X), 500):
    stream.partial_fit(X[i : i + 500], y[i : i + 500], classes=[0, 1])
    streamed.append(log_likelihood(stream))
swept = [
    log_likelihood(
        SharedKernelClassifier.prbf(
            **settings, max_iter=n, tol=0, training=Training("em", acceleration=None)
        ).fit(X, y)
    )
    for n in range(1, 6)
]

# %%
# A stream that drifts
# --------------------
#
# Two classes of two clusters each turn about each other, once around over the stream; half-way a
# new cluster comes up. Every mini-batch is predicted, then learned. `half_life` says after how many
# rows half of what was seen is forgotten.


def turning(n, begun, total, rng):
    at = (begun + np.arange(n)) / total
    label, part = rng.integers(2, size=n), rng.integers(2, size=n)
    angle = 2 * np.pi * at + np.pi * label / 2 + np.pi * part
    center = 3 * np.column_stack([np.cos(angle), np.sin(angle)])
    new = (at > 0.5) & (rng.uniform(size=n) < 0.2)
    center[new], label[new] = [9.0, 9.0], 1
    return center + rng.normal(size=(n, 2)), label


errors = {}
for half_life in (500, None):
    model = SharedKernelClassifier.prbf(6, covariance_type="full", random_state=0)
    rng, wrong = np.random.default_rng(1), []
    for begun in range(0, 20_000, 500):
        rows, label = turning(500, begun, 20_000, rng)
        if begun:
            wrong.append(np.mean(model.predict(rows) != label))
        model.partial_fit(rows, label, classes=[0, 1], half_life=half_life)
    errors[half_life] = wrong

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
left.plot(500 * np.arange(1, len(streamed) + 1), streamed, label="mini-batches of 500")
left.plot(len(X) * np.arange(1, 6), swept, "o-", label="sweeps over 20,000 rows")
left.set(xlabel="rows read", ylabel="held-out log-likelihood a row", title="at rest")
left.legend()
for half_life, wrong in errors.items():
    label = "nothing forgotten" if half_life is None else f"half_life={half_life}"
    right.plot(500 * np.arange(1, len(wrong) + 1), 100 * np.array(wrong), label=label)
right.axvline(10_000, color="gray", linestyle=":")
right.annotate("a new cluster", (10_100, 75), color="gray")
right.set(
    xlabel="rows read", ylabel="error of the next mini-batch, %", title="turning", ylim=(0, 80)
)
right.legend(loc="upper left")
