"""Speed of the shared-kernel core beside scikit-learn's GaussianMixture, in one run and as ratios.

Both do the same work: one mixture (one class), the same rows, the same start, the same number of
sweeps, both cores. The time of one sweep is the slope between a short and a longer run, so that
validation and set-up do not count. Both are timed in turn, several times, and the median of the
ratios is what counts: a machine that others use too changes its pace meanwhile.
"""

import resource
import subprocess
import sys
import time
import warnings
from functools import partial

import numpy as np
from sklearn.mixture import GaussianMixture

from kernelpool import SharedKernelClassifier, Start, Training
from kernelpool.arrays import thread_scratch
from kernelpool.em import Stop, em
from kernelpool.kernels import FAMILIES, Kernels
from kernelpool.mixtures.network import Params, SharedKernel
from kernelpool.rows import ArrayRows, Frame, one_blas_thread
from kernelpool.rows.in_memory import n_threads_for, over_threads
from kernelpool.squarem import Squarem

SIZES = [(100_000, 8, 16), (100_000, 16, 32), (50_000, 32, 32)]
WANTED = {"full": 15, "diag": 8, "spherical": 8}
SHORT = 2
LONG = 12
LONGER = 52
TURNS = 7
REPEATS = 3


def clusters(n, d, n_kernels, separation, seed=0):
    """Rows of as many Gaussian clusters as there are kernels."""
    rng = np.random.default_rng(seed)
    centers = separation * rng.normal(size=(n_kernels, d))
    return rng.normal(size=(n, d)) + centers[rng.integers(n_kernels, size=n)]


def start(x, n_kernels, family):
    """Kernels at random rows, as wide as the data."""
    d = x.shape[1]
    variance = x.var(axis=0)
    rng = np.random.default_rng(1)
    covariance = {
        "spherical": np.full(n_kernels, variance.mean()),
        "diag": np.tile(variance, (n_kernels, 1)),
        "full": np.tile(np.diag(variance), (n_kernels, 1, 1)),
        "tied": np.diag(variance),
    }[family]
    return Kernels(x[rng.choice(len(x), n_kernels, replace=False)], covariance), np.full(
        d, 1e-6 * variance.mean()
    )


class Ours:
    """The network as the estimators drive it."""

    def __init__(self, x, n_kernels, family):
        kernels, floor = start(x, n_kernels, family)
        frame = Frame(x.mean(axis=0), np.full(x.shape[1], x.std()))
        kernel = FAMILIES[family](floor / x.var())
        self.network = SharedKernel(kernel, np.ones((n_kernels, 1)))
        width = len(kernel.features(x[:1])) + 2 + n_kernels
        self.rows = ArrayRows(x, np.zeros(len(x), np.int64)).framed(frame, width)
        mixing = np.full((n_kernels, 1), 1 / n_kernels)
        self.start = Params(kernel.into(kernels, frame), mixing, np.ones(1))
        self.log_volume = frame.log_volume

    def run(self, sweeps, tol=-1.0, accelerator=None):
        fit = em(
            lambda p: self.network.sweep(self.rows, p),
            self.start,
            Stop(sweeps, tol),
            accelerator=accelerator,
        )
        return fit.objective - self.log_volume, fit

    def accelerated(self, sweeps, tol):
        return self.run(sweeps, tol, Squarem(self.network.coordinates, self.network.at))


class Theirs:
    """scikit-learn from the same start."""

    def __init__(self, x, n_kernels, family):
        kernels, floor = start(x, n_kernels, family)
        precision = (
            np.linalg.inv(kernels.covariance)
            if family in ("full", "tied")
            else 1 / kernels.covariance
        )
        self.x, self.model = x, GaussianMixture(
            n_kernels, covariance_type=family, means_init=kernels.mean, precisions_init=precision,
            weights_init=np.full(n_kernels, 1 / n_kernels), tol=0, reg_covar=floor[0],
        )  # fmt: skip

    def run(self, sweeps, tol=0):
        self.model.set_params(max_iter=sweeps, tol=tol).fit(self.x)
        return self.model.score(self.x), self.model


class Bare:
    """The two matrix products and the exponentials of a sweep over all pairs, and nothing else:
    what the machine takes.
    """

    ROWS = 2000  # few enough for the caches

    def __init__(self, n, d, n_kernels, family):
        rng = np.random.default_rng(0)
        n_features = FAMILIES[family](np.ones(d)).n_features(d)
        self.weight, self.phi = (
            rng.normal(size=(n_kernels, n_features)),
            rng.normal(size=(n_features, self.ROWS)),
        )
        self.share, self.pieces = (
            rng.uniform(size=(n_kernels, self.ROWS)),
            [range(i, i + 1) for i in range(n // self.ROWS)],
        )

    def one(self, _):
        np.matmul(
            self.weight, self.phi, out=thread_scratch("log_joint", self.share.shape, self.share)
        )
        np.exp(self.share, out=thread_scratch("share", self.share.shape, self.share))
        self.phi @ self.share.T

    def run(self):
        with one_blas_thread():
            over_threads(self.one, len(self.pieces), n_threads_for(-1))

    def least(self):
        warm_up(self.run)
        return min(seconds(self.run) for _ in range(2 * REPEATS))


def seconds(work):
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def best(work):
    return min(seconds(work) for _ in range(REPEATS))


def warm_up(work):
    """BLAS's threads go on spinning for 0.1 s after whatever ran before, and ours share a core for
    as long after a pause.
    """
    begun = time.perf_counter()
    while time.perf_counter() - begun < 0.4:
        work()


def sweep_time(runner, long=LONG):
    return slope(runner.run, long)


def slope(run, long):
    """Seconds of one sweep, from a short and a longer run."""
    warm_up(lambda: run(SHORT))
    less, more = (seconds(lambda n=n: run(n)) for n in (SHORT, long))
    return (more - less) / (long - SHORT)


def sweeps():
    print(
        "One sweep beside scikit-learn's GaussianMixture (same rows, start and cores): medians of "
        "milliseconds and of the ratio"
    )
    heads = f"{'ours':>8}{'theirs':>9}{'ratio':>7}{'from':>7}{'to':>6}{'wanted':>8}{'bare':>7}{'limit':>7}{'objective gap':>15}"
    print(f"{'rows':>8}{'d':>4}{'M':>4}  {'family':10}{heads}")
    for n, d, n_kernels in SIZES:
        x = clusters(n, d, n_kernels, separation=2.0)
        for family in ("full", "diag", "spherical", "tied"):
            ours = Ours(x, n_kernels, family)
            theirs = Theirs(x, n_kernels, family)
            gap = abs(ours.run(LONG)[0] - theirs.run(LONG)[0])
            bare = Bare(n, d, n_kernels, family)
            a, b, c = np.array(
                [(sweep_time(ours), sweep_time(theirs), bare.least()) for _ in range(TURNS)]
            ).T
            times = 1e3 * np.median([a, b, c], axis=1)
            ratio = b / a
            print(
                f"{n:8}{d:4}{n_kernels:4}  "
                f"{family:10}{times[0]:8.1f}{times[1]:9.1f}{np.median(ratio):7.1f}{ratio.min():7.1f}{ratio.max():6.1f}{WANTED.get(family, '')!s:>8}{times[2]:7.1f}{np.median(b / c):7.1f}{gap:15.1e}",
                flush=True,
            )
    print(
        "bare: the two products over all pairs and the exponentials alone; limit: the ratio if "
        "there were nothing else to do"
    )
    print(
        "(full kernels stay below it where most pairs do not count, tied ones where squares are "
        "not summed by kernel)"
    )


def few_rows():
    print("\nThe same on few rows, where what is done between the products decides")
    for n, d, n_kernels in [(300, 4, 9), (1000, 8, 10), (5000, 8, 10)]:
        x = clusters(n, d, n_kernels, separation=1.0)
        for family in ("full", "diag", "spherical"):
            ours = Ours(x, n_kernels, family)
            theirs = Theirs(x, n_kernels, family)
            a, b = np.array(
                [(sweep_time(ours, LONGER), sweep_time(theirs, LONGER)) for _ in range(REPEATS)]
            ).T
            times = 1e3 * np.median([a, b], axis=1)
            print(
                f"{n:8}{d:4}{n_kernels:4}  "
                f"{family:10}{times[0]:8.2f}{times[1]:9.2f}{np.median(b / a):7.1f}",
                flush=True,
            )


def gradients():
    print(
        "\nOne gradient of the conditional likelihood beside one sweep, three classes: "
        "milliseconds (wanted: a ratio under 1.5)"
    )
    print(
        f"{'rows':>8}{'d':>4}{'M':>4}  "
        f"{'family':10}{'sweep':>8}{'gradient':>9}{'ratio':>7}{'from':>7}{'to':>6}"
    )
    for n, d, n_kernels in SIZES:
        x = clusters(n, d, n_kernels, separation=2.0)
        for family in FAMILIES:
            ours = Ours(x, n_kernels, family)
            rows = ArrayRows(x, np.arange(n) % 3).framed(ours.rows.frame, ours.rows.layout.width)
            network = SharedKernel(ours.network.kernel, np.ones((n_kernels, 3)))
            params = Params(
                ours.start.kernels, np.full((n_kernels, 3), 1 / n_kernels), np.full(3, 1 / 3)
            )
            both = [partial(step, rows, params) for step in (network.sweep, network.gradient)]
            a, b = np.array([[best(work) for work in both] for _ in range(TURNS)]).T
            times = 1e3 * np.median([a, b], axis=1)
            ratio = b / a
            print(
                f"{n:8}{d:4}{n_kernels:4}  "
                f"{family:10}{times[0]:8.1f}{times[1]:9.1f}{np.median(ratio):7.2f}{ratio.min():7.2f}{ratio.max():6.2f}",
                flush=True,
            )


def single_precision():
    print(
        "\nOne sweep of float32 rows beside float64 rows: milliseconds; narrow kernels are a "
        "hundredth as wide as the data"
    )
    print(
        f"{'rows':>8}{'d':>4}{'M':>4}  "
        f"{'kernels':8}{'family':10}{'float32':>8}{'float64':>9}{'ratio':>7}{'from':>7}{'to':>6}"
    )
    n = 50_000
    d = 16
    n_kernels = 32
    rng = np.random.default_rng(0)
    center = rng.normal(size=(n_kernels, d))
    noise = rng.normal(size=(n, d))
    cluster = rng.integers(n_kernels, size=n)
    for name, width in (("wide", 0.5), ("narrow", 0.01)):
        x = center[cluster] + width * noise
        for family in FAMILIES:
            both = []
            for dtype in (np.float32, np.float64):
                ours = Ours(x.astype(dtype), n_kernels, family)
                kernel = ours.network.kernel
                frame = ours.rows.frame
                one = kernel.square(np.eye(d)).sum(axis=1)[None, :]  # of unit variances
                scatter = kernel.pool_moments(np.repeat(one, n_kernels, axis=0))
                covariance = width**2 * kernel.covariances(scatter, np.ones(n_kernels), 0.0)
                params = Params(
                    kernel.into(Kernels(center, covariance), frame), ours.start.mixing, np.ones(1)
                )
                both.append(partial(ours.network.sweep, ours.rows, params))
            a, b = np.array([[best(work) for work in both] for _ in range(TURNS)]).T
            times = 1e3 * np.median([a, b], axis=1)
            ratio = b / a
            print(
                f"{n:8}{d:4}{n_kernels:4}  "
                f"{name:8}{family:10}{times[0]:8.1f}{times[1]:9.1f}{np.median(ratio):7.2f}{ratio.min():7.2f}{ratio.max():6.2f}",
                flush=True,
            )


class Apart:
    """A mixture for each class by itself: rows, and the start of every kernel at a row of its
    class.
    """

    def __init__(self, n, d, n_classes, per_class, family):
        rng = np.random.default_rng(0)
        cluster = rng.integers(n_classes * per_class, size=n)
        self.x = rng.normal(size=(n_classes * per_class, d))[cluster] + rng.normal(size=(n, d))
        self.y = cluster // per_class
        self.family = family
        self.per_class = per_class
        self.n_classes = n_classes
        self.means = np.concatenate([self.x[self.y == k][:per_class] for k in range(n_classes)])

    def ours(self, sweeps):
        owners = np.repeat(np.arange(self.n_classes), self.per_class)
        model = SharedKernelClassifier.prbf(
            len(owners), covariance_type=self.family, sharing=0,
            init=Start(owners=owners, means=self.means), training=Training("em", acceleration=None), max_iter=sweeps, tol=0,
        )  # fmt: skip
        return model.fit(self.x, self.y)

    def theirs(self, sweeps):
        return [
            GaussianMixture(
                self.per_class, covariance_type=self.family, max_iter=sweeps, tol=0,
                means_init=self.means[k * self.per_class : (k + 1) * self.per_class],
            ).fit(self.x[self.y == k])
            for k in range(self.n_classes)
        ]  # fmt: skip


def apart():
    print(
        "\nOne sweep of a mixture a class (sharing=0, 5 kernels each) beside a GaussianMixture a "
        "class: milliseconds"
    )
    print(
        f"{'rows':>8}{'d':>4}{'K':>4}  "
        f"{'family':10}{'ours':>8}{'theirs':>9}{'ratio':>7}{'from':>7}{'to':>6}"
    )
    for n, d, n_classes in [(50_000, 16, 3), (50_000, 16, 10), (50_000, 8, 26)]:
        for family in ("full", "diag", "spherical"):
            both = Apart(n, d, n_classes, 5, family)
            a, b = np.array(
                [(slope(both.ours, LONGER), slope(both.theirs, LONGER)) for _ in range(TURNS)]
            ).T
            times = 1e3 * np.median([a, b], axis=1)
            ratio = b / a
            print(
                f"{n:8}{d:4}{n_classes:4}  "
                f"{family:10}{times[0]:8.1f}{times[1]:9.1f}{np.median(ratio):7.1f}{ratio.min():7.1f}{ratio.max():6.1f}",
                flush=True,
            )


def acceleration():
    print(
        "\nSweeps to come within 1e-4 per row of where plain EM settles (tol 1e-7), overlapping "
        "clusters; median of 5 data sets"
    )
    print(f"{'family':10}{'plain':>8}{'squarem':>9}{'ratio':>7}")
    for family in FAMILIES:
        counts = []
        for seed in range(5):
            x = clusters(4000, 3, 6, separation=1.2, seed=seed)
            ours = Ours(x, 6, family)
            plain = ours.run(4000, 1e-7)[1]
            fast = ours.accelerated(4000, 1e-7)[1]
            target = plain.objective - 1e-4
            steps = [
                next((i for i, value in enumerate(fit.history) if value >= target), np.inf)
                for fit in (plain, fast)
            ]
            # the history holds kept parameters; rejected proposals cost sweeps too
            counts.append((steps[0], steps[1] * fast.n_sweeps / max(1, len(fast.history) - 1)))
        plain, fast = np.median(counts, axis=0)
        ratio = np.median([a / b for a, b in counts])
        print(f"{family:10}{plain:8.0f}{fast:9.0f}{ratio:7.1f}", flush=True)


def convergence():
    print("\nFit to convergence (tol 1e-5), 50,000 rows of overlapping clusters, d = 8, M = 12")
    x = clusters(50_000, 8, 12, separation=0.7)
    for family in ("full", "diag", "spherical"):
        ours = Ours(x, 12, family)
        theirs = Theirs(x, 12, family)
        results = []
        a = seconds(lambda r=results, o=ours: r.append(o.accelerated(2000, 1e-5)))
        b = seconds(lambda r=results, t=theirs: r.append(t.run(2000, 1e-5)))
        (value, fit), (their_value, model) = results
        print(
            f"{family:10} ours {a:6.2f} s, {fit.n_sweeps:4} sweeps, {value:.4f}   theirs {b:6.2f} "
            f"s, {model.n_iter_:4} sweeps, {their_value:.4f}   ratio {b / a:5.1f}",
            flush=True,
        )


def prediction():
    print(
        "\npredict_proba of two classes, 200,000 rows, d = 8, 16 kernels: million rows a second "
        "and ratio"
    )
    x = clusters(200_000, 8, 16, separation=2.0)
    y = (x[:, 0] > 0).astype(int)
    for family in ("full", "diag", "spherical"):
        model = SharedKernelClassifier.prbf(
            16, covariance_type=family, sharing=0, random_state=0, max_iter=5, tol=1
        ).fit(x[:5000], y[:5000])
        peers = [
            GaussianMixture(8, covariance_type=family, random_state=0, max_iter=5).fit(
                x[:5000][y[:5000] == k]
            )
            for k in (0, 1)
        ]

        def theirs(peers=peers):
            joint = np.column_stack([peer.score_samples(x) for peer in peers])
            joint = np.exp(joint - joint.max(axis=1, keepdims=True))
            return joint / joint.sum(axis=1, keepdims=True)

        a = best(lambda m=model: m.predict_proba(x))
        b = best(theirs)
        print(
            f"{family:10} ours {0.2 / a:7.2f}   theirs {0.2 / b:7.2f}   ratio {b / a:5.1f}",
            flush=True,
        )


MEMORY = """
import resource, numpy as np
from kernelpool import SharedKernelClassifier
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
rng = np.random.default_rng(0)
x = np.empty((2_000_000, 8)); y = np.empty(2_000_000, np.int64)
for i in range(0, len(x), 100_000):
    y[i:i + 100_000] = rng.integers(2, size=100_000)
    x[i:i + 100_000] = rng.normal(size=(100_000, 8)) + 2 * y[i:i + 100_000, None]
small = SharedKernelClassifier.prbf(32, random_state=0, max_iter=3, tol=1, covariance_type="full").fit(x[:10000], y[:10000])
resident = int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize() / 2**20
SharedKernelClassifier.prbf(32, random_state=0, max_iter=3, tol=1, covariance_type="full").fit(x, y)
print(f"{peak() - resident:.0f}")
"""


def memory():
    extra = subprocess.run(
        [sys.executable, "-c", MEMORY], capture_output=True, text=True, check=True
    ).stdout.strip()
    print(
        f"\nPeak memory beyond the data while fitting 2,000,000 x 8 rows with 32 full kernels: "
        f"{extra} MB (wanted: under 200)"
    )


def main():
    warnings.simplefilter("ignore")
    sweeps()
    few_rows()
    gradients()
    single_precision()
    apart()
    acceleration()
    convergence()
    prediction()
    memory()
    print(
        f"\n(peak of this process {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} "
        f"MB)"
    )


if __name__ == "__main__":
    main()
