"""Dask clusters: seconds and bytes of a sweep, by the number of rows and of chunks.

Two worker processes of one thread on this machine; rows are made by the workers and stay there.
Every byte is counted that the workers write to their connections in a sweep, and that the client
and the scheduler write: neither may grow with the rows. What a sweep takes beyond the work of its
chunks, divided by the number of its tasks, is the overhead of a task. Needs Dask and distributed.
"""

import time
import warnings

import numpy as np

FEATURES = 10
CLASSES = 3
KERNELS = 24
SWEEPS = 6
OVERHEAD_MS = 1.0
"""What a task costs the scheduler of Dask, by its documentation
(https://distributed.dask.org/en/stable/efficiency.html).
"""
SIZES = [(200_000, 8), (800_000, 8), (3_200_000, 8), (800_000, 32), (800_000, 128)]


def count_bytes():
    """From now on, count what this process sends."""
    from distributed.comm.tcp import TCP

    plain = TCP.write
    TCP.sent = 0

    async def write(self, *args, **kwargs):
        n = await plain(self, *args, **kwargs)
        TCP.sent += n
        return n

    TCP.write = write


def sent_bytes():
    from distributed.comm.tcp import TCP

    return TCP.sent


def chunk(seed, n):
    rng = np.random.default_rng(seed)
    y = rng.integers(CLASSES, size=n)
    centers = 2 * np.random.default_rng(0).normal(size=(CLASSES, 8, FEATURES))
    return np.column_stack(
        [centers[y, rng.integers(8, size=n)] + rng.normal(size=(n, FEATURES)), y]
    )


def rows(n, n_chunks):
    import dask
    import dask.array as da

    size = n // n_chunks
    made = [
        da.from_delayed(dask.delayed(chunk)(i, size), (size, FEATURES + 1), dtype=float)
        for i in range(n_chunks)
    ]
    table = da.concatenate(made).persist()
    return table[:, :FEATURES].rechunk((size, FEATURES)), table[:, FEATURES].astype(int)


def main():
    from distributed import Client, LocalCluster

    from kernelpool import SharedKernelClassifier, Training

    warnings.simplefilter("ignore")
    quiet = {"dashboard_address": ":0", "worker_dashboard_address": None, "silence_logs": 50}
    print(f"{FEATURES} features, {KERNELS} full kernels, two workers of one thread")
    print(
        f"{'rows':>10} {'chunks':>6} {'s a sweep':>9} {'workers send':>12} {'client sends':>12} "
        f"{'chunks alone':>12} {'ms a task':>9}"
    )
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=True, **quiet) as cluster,
        Client(cluster) as client,
    ):
        client.run(count_bytes)
        count_bytes()
        for n, n_chunks in SIZES:
            x, y = rows(n, n_chunks)
            ticks = []
            counted = []

            def note(_, ticks=ticks, counted=counted):
                counted.append((sum(client.run(sent_bytes).values()), sent_bytes()))
                ticks.append(time.perf_counter())

            settings = {
                "covariance_type": "full",
                "max_iter": SWEEPS,
                "tol": 0,
                "training": Training("em", acceleration=None),
                "random_state": 0,
            }
            SharedKernelClassifier.prbf(KERNELS, **settings, callback=note).fit(x, y)
            seconds = float(np.median(np.diff(ticks)))
            by_workers, by_client = np.median(np.diff(counted, axis=0), axis=0) / 1e3
            work = in_memory_seconds(n, settings) / 2  # two workers
            overhead = 1e3 * max(seconds - work, 0) / (n_chunks + -(-n_chunks // 8) + 1)
            row = f"{n:10,} {n_chunks:6} {seconds:9.3f} {by_workers:9.0f} kB {by_client:9.0f} kB {work:12.3f} {overhead:9.2f}"
            print(row, flush=True)
    billion()


def billion(
    n_cores=128, n_sweeps=50, dollars_a_core_hour=0.04, chunk_rows=1_000_000, ms_a_task=OVERHEAD_MS
):
    """Time and cost of a billion rows, from the processor time of a sweep on one thread of this
    machine.
    """
    from kernelpool import SharedKernelClassifier, Training

    warnings.simplefilter("ignore")
    some = chunk(0, 200_000)
    print(
        f"\na billion rows, {FEATURES} features, {KERNELS} kernels; {n_cores} cores, {n_sweeps} "
        f"sweeps,",
        end=" ",
    )
    print(f"${dollars_a_core_hour} a core-hour")
    print(
        f"{'kernels':>8} {'rows a second and core':>22} {'s a sweep':>9} {'minutes':>8} "
        f"{'dollars':>8}"
    )
    for family in ("spherical", "diag", "full"):
        ticks = []
        settings = {
            "covariance_type": family,
            "max_iter": SWEEPS,
            "tol": 0,
            "training": Training("em", acceleration=None),
            "random_state": 0,
        }
        model = SharedKernelClassifier.prbf(
            KERNELS,
            **settings,
            n_jobs=1,
            callback=lambda _, ticks=ticks: ticks.append(time.process_time()),
        )
        model.fit(some[:, :FEATURES], some[:, FEATURES].astype(int))
        rate = len(some) / float(np.median(np.diff(ticks)))
        tasks = 1e9 / chunk_rows
        sweep = (
            1e9 / rate / n_cores + tasks * (1 + 1 / 8) * ms_a_task / 1e3
        )  # the scheduler hands tasks out one by one
        minutes = n_sweeps * sweep / 60
        cost = minutes / 60 * n_cores * dollars_a_core_hour
        print(f"{family:>8} {rate:22,.0f} {sweep:9.1f} {minutes:8.1f} {cost:8.2f}")


def in_memory_seconds(n, settings):
    """A sweep on one thread of this process."""
    from kernelpool import SharedKernelClassifier

    some = chunk(0, 200_000)
    ticks = []
    model = SharedKernelClassifier.prbf(
        KERNELS, **settings, n_jobs=1, callback=lambda _: ticks.append(time.perf_counter())
    )
    model.fit(some[:, :FEATURES], some[:, FEATURES].astype(int))
    return float(np.median(np.diff(ticks))) * n / len(some)
