"""Files larger than memory: time of a sweep over Parquet beside a sweep over the same rows in an
array, and peak memory.

Rows are made on the fly: 20 million of 10 features in three classes, 1.8 GB of Parquet in a folder
of its own that is removed afterwards (``KERNELPOOL_BENCH_ROWS`` sets another number). Each fit runs
in a process of its own, which tells its peak of resident memory. Rows in memory are timed on the
first part of them, as many as 400 MB hold, and scaled: a sweep takes as long for each row. Both are
timed in turn, and the median of the ratios is told, since other programs may share the machine; the
ratio of processor time, in which reading counts in full though it is overlapped with sums, depends
on them less.
"""

import os
import resource
import subprocess
import sys
import tempfile
import time
import warnings

import numpy as np

ROWS = int(float(os.environ.get("KERNELPOOL_BENCH_ROWS", 20e6)))
FEATURES = 10
CLASSES = 3
PARTS = 8
IN_MEMORY = 5_000_000
SWEEPS = 5
TURNS = 3
KERNELS = 24
WANTED_MB = 600
WANTED_RATIO = 1.3


def rows(n, seed):
    centers = 2 * np.random.default_rng(0).normal(size=(CLASSES, PARTS, FEATURES))
    rng = np.random.default_rng(seed)
    y = rng.integers(CLASSES, size=n)
    part = rng.integers(PARTS, size=n)
    return centers[y, part] + rng.normal(size=(n, FEATURES)), y


def write(folder, n):
    import pyarrow as pa
    import pyarrow.parquet as pq

    for i, begun in enumerate(range(0, n, 1_000_000)):
        x, y = rows(min(1_000_000, n - begun), i + 1)
        table = pa.table({**{f"x{k}": x[:, k] for k in range(FEATURES)}, "label": y})
        pq.write_table(table, os.path.join(folder, f"part-{i:04}.parquet"), row_group_size=250_000)


def fit(home, folder, family):
    """Seconds of each sweep and of all before them, and the peak of memory, told on one line."""
    from kernelpool import SharedKernelClassifier, Training

    warnings.simplefilter("ignore")
    n = min(ROWS, IN_MEMORY)
    x, y = (folder, "label") if home == "files" else rows(n, 1)
    ticks = [time.perf_counter()]
    cpu = [time.process_time()]

    def note(_):
        ticks.append(time.perf_counter())
        cpu.append(time.process_time())

    settings = {
        "covariance_type": family,
        "max_iter": SWEEPS,
        "tol": 0,
        "training": Training("em", acceleration=None),
        "random_state": 0,
    }
    SharedKernelClassifier.prbf(KERNELS, **settings, callback=note).fit(x, y)
    scale = 1 if home == "files" else ROWS / n
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        scale * np.median(np.diff(ticks)[1:]),
        np.diff(ticks)[0],
        peak,
        scale * np.median(np.diff(cpu)[1:]),
    )


def in_own_process(*arguments):
    run = subprocess.run(
        [sys.executable, "-m", "benchmarks.beyond_memory", *arguments],
        capture_output=True,
        text=True,
        check=True,
    )
    return [float(word) for word in run.stdout.split()]


def main():
    with tempfile.TemporaryDirectory(prefix="kernelpool-bench-") as folder:
        write(folder, ROWS)
        size = sum(entry.stat().st_size for entry in os.scandir(folder)) / 1e9
        print(
            f"{ROWS:,} rows, {FEATURES} features, {size:.2f} GB of Parquet, {KERNELS} kernels; "
            f"seconds of a sweep"
        )
        for family in ("full", "diag"):
            found = {"files": [], "memory": []}
            for _ in range(TURNS):
                for home, told in found.items():
                    told.append(in_own_process(home, folder, family))
            files, memory = (
                np.median([told[0] for told in found[home]]) for home in ("files", "memory")
            )
            pairs = list(zip(found["files"], found["memory"], strict=True))
            ratio, cpu = (np.median([a[i] / b[i] for a, b in pairs]) for i in (0, 3))
            peak = max(told[2] for told in found["files"])
            before = np.median([told[1] for told in found["files"]])
            print(
                f"{family:5} files {files:6.2f}  memory {memory:6.2f}  ratio {ratio:.2f} (wanted "
                f"{WANTED_RATIO}), of processor time {cpu:.2f}  peak {peak:.0f} MB (wanted "
                f"{WANTED_MB})  labels, frame, start and first sweep {before:.1f}",
                flush=True,
            )


if __name__ == "__main__":
    fit(*sys.argv[1:])
