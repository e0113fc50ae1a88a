"""`python -m kernelpool`: a first look at what sharing kernels does, on generated data."""

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.mixture import GaussianMixture

from . import SharedKernelClassifier, SharingAverageClassifier
from .datasets import make_clouds
from .datasets.clouds import BAYES_ERROR

N_KERNELS = (8, 12, 16)
SHARING = (0, 0.25, 0.5, 0.75, 1)
NOTES: dict[float, str] = {0: " (separate mixtures)", 1: " (fully shared, PRBF)"}


class SeparateMixtures:
    """scikit-learn's way: one GaussianMixture a class, put together by hand."""

    def __init__(self, n_kernels: int) -> None:
        self.n_kernels = n_kernels

    def fit(self, X: np.ndarray, y: np.ndarray) -> "SeparateMixtures":
        """One mixture a class."""
        self.classes_, counts = np.unique(y, return_counts=True)
        self.log_prior_ = np.log(counts / counts.sum())
        each = self.n_kernels // len(self.classes_)
        self.mixtures_ = [
            GaussianMixture(each, covariance_type="spherical", max_iter=200, random_state=0).fit(X[y == k])
            for k in self.classes_
        ]
        return self

    def score(self, X: np.ndarray, y: np.ndarray) -> float:
        """Share of rows classified correctly."""
        joint = np.column_stack([mixture.score_samples(X) for mixture in self.mixtures_]) + self.log_prior_
        return float((self.classes_[joint.argmax(axis=1)] == y).mean())


def main() -> None:
    """Fit the Clouds data with several degrees of sharing, beside scikit-learn's mixtures."""
    train, test = make_clouds(5000, random_state=0), make_clouds(50_000, random_state=1)
    print("Clouds: two classes that overlap everywhere, 5,000 rows to learn from, 50,000 to test on.")
    print(f"No classifier errs less than {100 * BAYES_ERROR:.2f} %. Error in percent, with spherical kernels:\n")
    print(f"{'':34}" + "".join(f"{n:>4} kernels" for n in N_KERNELS) + "   time to fit")
    for name, make in _contenders():
        errors, seconds = zip(*(_trial(make(n), train, test) for n in N_KERNELS), strict=True)
        print(f"{name:34}" + "".join(f"{100 * error:12.2f}" for error in errors) + f"{1000 * sum(seconds):11.0f} ms")
    print("\nWhat to try next")
    print("  from kernelpool import SharedKernelClassifier")
    print("  SharedKernelClassifier(n_kernels=12, covariance_type='full').fit(X, y)   # other shapes: diag, tied")
    print("  .predict_proba(X), .log_density(X), .score_samples(X), .kernel_posterior(X), .sample(100)")
    print("  make docs     the guide, with pictures")
    print("  make bench    speed beside scikit-learn, on this machine")


def _contenders() -> list[tuple[str, Callable[[int], Any]]]:
    sharers = [
        (f"sharing={value:g}{NOTES.get(value, '')}", partial(SharedKernelClassifier, sharing=value, random_state=0))
        for value in SHARING
    ]
    average = partial(SharingAverageClassifier, sharing=SHARING, random_state=0)
    return [("scikit-learn, a mixture per class", SeparateMixtures), *sharers, ("average over all of these", average)]


def _trial(model: Any, train: tuple[Any, Any], test: tuple[Any, Any]) -> tuple[float, float]:
    """Error, and seconds to fit."""
    start = time.perf_counter()
    model.fit(*train)
    seconds = time.perf_counter() - start
    return 1 - model.score(*test), seconds


if __name__ == "__main__":
    main()
