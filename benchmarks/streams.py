"""Streams: mini-batches beside batch EM on a million rows, and a stream with drift beside other
learners.

First part: 1,000,000 rows of 10 features in three classes of eight overlapping parts. Batch EM
makes ten sweeps from the start that k-means finds, from the centers of scikit-learn's
MiniBatchKMeans, and from random rows; `partial_fit` makes passes of mini-batches of 10,000 rows,
and of 50,000. Held-out log-likelihood a row, processor seconds, which depend little on how busy the
machine is, and seconds, start included, after every pass.

Second part: test-then-train on 20,000 rows in mini-batches of 500. Two classes of two clusters each
turn about the origin, once around over the stream; at half of it a new cluster comes up. Error over
the whole stream and over its last tenth. River's Gaussian naive Bayes and adaptive random forest
stand beside it where river is installed (``pip install river``; it is no dependency).
"""

import time
import warnings

import numpy as np
from sklearn.cluster import MiniBatchKMeans
from sklearn.linear_model import SGDClassifier
from sklearn.naive_bayes import GaussianNB

from kernelpool import SharedKernelClassifier, Start, Training

ROWS = 1_000_000
FEATURES = 10
CLASSES = 3
PARTS = 8
BATCHES = 10_000, 50_000
KERNELS = CLASSES * PARTS


def rows(n, seed):
    rng = np.random.default_rng(0)
    centers = 1.2 * rng.normal(size=(CLASSES, PARTS, FEATURES))
    width = rng.uniform(0.5, 1.5, size=(CLASSES, PARTS, FEATURES))
    rng = np.random.default_rng(seed)
    y = rng.integers(CLASSES, size=n)
    part = rng.integers(PARTS, size=n)
    return centers[y, part] + width[y, part] * rng.normal(size=(n, FEATURES)), y


def held_out(model, test):
    return model.log_likelihood(*test) / len(test[1])


def at_rest(init="kmeans"):
    x, y = rows(ROWS, 1)
    test = rows(50_000, 2)
    settings = {"n_kernels": KERNELS, "covariance_type": "diag", "random_state": 0, "init": init}
    ten = {"max_iter": 10, "tol": 0, "training": Training("em", acceleration=None)}
    print(
        f"{ROWS:,} rows, {FEATURES} features, {KERNELS} diagonal kernels, init={init!r}: held-out "
        f"log-likelihood a row,"
    )
    print("processor seconds, seconds")
    clock = Clock()
    batch = SharedKernelClassifier.prbf(**settings, **ten).fit(x, y)
    clock.tell("batch EM, 10 sweeps", batch, test)
    if init == "kmeans":
        after_minibatch_kmeans(x, y, test, {**settings, **ten})
    for size in BATCHES:
        model = SharedKernelClassifier.prbf(**settings)
        clock = Clock()
        for n_passes in range(1, 6):
            for i in range(0, ROWS, size):
                model.partial_fit(x[i : i + size], y[i : i + size], classes=range(CLASSES))
            clock.tell(f"partial_fit of {size:,}, pass {n_passes}", model, test)
            clock.go_on()


class Clock:
    """Processor seconds and seconds since it was made, less those while it was stopped."""

    def __init__(self):
        self.spent, self.begun = np.zeros(2), self.now()

    @staticmethod
    def now():
        return np.array([time.process_time(), time.perf_counter()])

    def go_on(self):
        self.begun = self.now()

    def tell(self, name, model, test):
        """Stops, and prints a line."""
        self.spent = self.spent + self.now() - self.begun
        print(
            f"{name:36} {held_out(model, test):9.4f} {self.spent[0]:6.2f} {self.spent[1]:6.2f}",
            flush=True,
        )


def after_minibatch_kmeans(x, y, test, settings):
    clock = Clock()
    centers = [
        MiniBatchKMeans(PARTS, random_state=0, n_init=3, batch_size=4096).fit(x[y == k])
        for k in range(CLASSES)
    ]
    means = np.concatenate([c.cluster_centers_ for c in centers])
    owners = np.repeat(range(CLASSES), PARTS)
    model = SharedKernelClassifier.prbf(**settings, init=Start(means=means, owners=owners)).fit(
        x, y
    )
    clock.tell("MiniBatchKMeans, then 10 sweeps", model, test)


def turning(n, begun, total, rng):
    """Rows number `begun` and following of a stream of `total`."""
    at = (begun + np.arange(n)) / total
    y = rng.integers(2, size=n)
    part = rng.integers(2, size=n)
    angle = 2 * np.pi * at + np.pi * y / 2 + np.pi * part
    center = 3 * np.column_stack([np.cos(angle), np.sin(angle)])
    new = (at > 0.5) & (rng.uniform(size=n) < 0.2)
    center[new], y[new] = [9.0, 9.0], 1
    return center + rng.normal(size=(n, 2)), y


class River:
    """A learner of river, a row at a time."""

    def __init__(self, learner):
        self.learner = learner

    def predict(self, x):
        return np.array([self.learner.predict_one(dict(enumerate(row))) or 0 for row in x.tolist()])

    def partial_fit(self, x, y, classes=None):
        for row, label in zip(x.tolist(), y.tolist(), strict=True):
            self.learner.learn_one(dict(enumerate(row)), label)


class Forgetful:
    """A stream that forgets half of what it learned after 500 rows."""

    def __init__(self, model):
        self.model = model
        self.predict = model.predict

    def partial_fit(self, x, y, classes=None):
        self.model.partial_fit(x, y, classes, half_life=500)


def learners():
    mine = {"covariance_type": "full", "random_state": 0}
    found = {
        "shared kernels, half_life=500": Forgetful(SharedKernelClassifier.prbf(6, **mine)),
        "shared kernels, no forgetting": SharedKernelClassifier.prbf(6, **mine),
        "scikit-learn GaussianNB": GaussianNB(),
        "scikit-learn SGDClassifier": SGDClassifier(random_state=0),
    }
    try:
        from river import forest, naive_bayes
    except ImportError:
        print("(river is not installed: its learners are left out)")
        return found
    found["river GaussianNB"] = River(naive_bayes.GaussianNB())
    found["river adaptive random forest"] = River(forest.ARFClassifier(seed=0))
    return found


def drifting(total=20_000, batch=500):
    print(
        f"\n{total:,} rows that turn, mini-batches of {batch}: error of all rows, of the last "
        f"tenth, seconds"
    )
    for name, model in learners().items():
        rng = np.random.default_rng(1)
        wrong = []
        seconds = 0.0
        for begun in range(0, total, batch):
            x, y = turning(batch, begun, total, rng)
            start = time.perf_counter()
            if begun:
                wrong.append(np.mean(model.predict(x) != y))
            model.partial_fit(x, y, classes=[0, 1])
            seconds += time.perf_counter() - start
        print(
            f"{name:32} {np.mean(wrong):6.1%} {np.mean(wrong[-total // batch // 10 :]):6.1%} "
            f"{seconds:7.1f}",
            flush=True,
        )


def main():
    warnings.simplefilter("ignore")
    at_rest()
    at_rest("random")
    drifting()
