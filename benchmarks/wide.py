"""Full kernels of many features: one after the other beside products of all pairs of features, and
what a fit takes.
"""

import subprocess
import sys
import time

import numpy as np

from kernelpool.kernels import Full
from kernelpool.mixtures.network import Params, SharedKernel
from kernelpool.rows import ArrayRows, Frame, one_blas_thread

from .shared_kernel import clusters, start

WIDTHS = (32, 64, 96, 128)
TURNS = 3
FITS = [("full", 1000), ("tied", 1000), ("full", 2000)]


class ByPairs(Full):
    """Products of all pairs of features, however many there are."""

    def one_by_one(self, d):
        return False


class OneByOne(Full):
    """One kernel after the other, however few features there are."""

    def one_by_one(self, d):
        return True


class Sweep:
    """A sweep by one of both, on the same rows."""

    def __init__(self, family, x, n_kernels):
        (n, d), (kernels, floor) = x.shape, start(x, n_kernels, "full")
        kernel = family(floor)
        self.network = SharedKernel(kernel, np.ones((n_kernels, 1)))
        frame = Frame(np.zeros(d), np.ones(d))
        self.rows = ArrayRows(x, np.zeros(n, np.int64), n_jobs=1).framed(
            frame, kernel.n_features(d) + 2 + n_kernels
        )
        self.params = Params(kernels, np.full((n_kernels, 1), 1 / n_kernels), np.ones(1))

    def advance(self):
        self.params, _ = self.network.sweep(self.rows, self.params)

    def seconds(self):
        begun = time.process_time()
        self.network.e_step.total(self.rows, self.network.e_step_params(self.params, self.rows.eps))
        return time.process_time() - begun


def where_it_turns():
    print(
        "E-step and sums, milliseconds of one core: all pairs of features at once; one kernel "
        "after the other; their ratio"
    )
    print(f"{'rows':>8}{'d':>5}{'M':>4}  {'clusters':10}{'pairs':>9}{'one':>9}{'ratio':>7}")
    for n_kernels in (2, 30, 64):
        for d in WIDTHS:
            n = int(np.clip(1e9 / (n_kernels * d * d), 1000, 20_000))
            for name, separation in (("apart", 2.0), ("overlap", 0.1)):
                x = clusters(n, d, n_kernels, separation)
                ways = [Sweep(family, x, n_kernels) for family in (ByPairs, OneByOne)]
                for _ in range(3):
                    ways[0].advance()
                for way in ways:
                    way.params = ways[0].params
                times = np.array([[way.seconds() for way in ways] for _ in range(TURNS)])
                pairs, one = 1e3 * np.median(times, axis=0)
                ratio = np.median(times[:, 0] / times[:, 1])
                print(
                    f"{n:8}{d:5}{n_kernels:4}  {name:10}{pairs:9.1f}{one:9.1f}{ratio:7.2f}",
                    flush=True,
                )


FIT = """
import sys, time
import numpy as np
from sklearn.mixture import GaussianMixture
from kernelpool import SharedKernelClassifier
def memory(name):  # Linux counts in kB; what resource says of a child begins at what its parent had
    return int(next(line for line in open("/proc/self/status") if line.startswith(name)).split()[1]) / 1024
family, d, way = sys.argv[1], int(sys.argv[2]), sys.argv[3]
rng = np.random.default_rng(0)
y = np.arange(400) % 2
X = rng.normal(size=(400, d)) + rng.normal(size=(400, 20)) @ rng.normal(size=(20, d)) / 5
X[:, :5] += y[:, None]
before, begun = memory("VmRSS"), time.process_time()
if way == "peer":
    for k in (0, 1):
        GaussianMixture(1, covariance_type=family, reg_covar=1e-3).fit(X[y == k]).score_samples(X)
else:
    SharedKernelClassifier(covariance_type=family, training=way, random_state=0).fit(X, y).predict_proba(X)
print(time.process_time() - begun, memory("VmHWM") - before)
"""


def fits():
    print(
        "\nFit and predict 400 rows of two classes: seconds of one core, and MB of memory above "
        "what the imports take"
    )
    print(f"{'family':8}{'d':>6}  {'training':14}{'seconds':>9}{'MB':>7}")
    for family, d in FITS:
        for way in ("em", "conditional", "peer"):
            done = subprocess.run(
                [sys.executable, "-c", FIT, family, str(d), way],
                capture_output=True,
                text=True,
                check=True,
            )
            seconds, megabytes = map(float, done.stdout.split())
            name = "scikit-learn" if way == "peer" else way
            print(f"{family:8}{d:6}  {name:14}{seconds:9.1f}{megabytes:7.0f}", flush=True)


def main():
    with one_blas_thread():
        where_it_turns()
    fits()


if __name__ == "__main__":
    main()
