"""First parameters.

A method places the kernels of one class: it sees a sample of the class and answers with centers and
with the points from which deviations are measured. What the kernels look like around them is the
family's business (`Kernel.place`).
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from threadpoolctl import ThreadpoolController

from ..data.labels import check_shape
from ..errors import CollapsedKernelError, KernelpoolError, check_choices
from ..kernels import FAMILIES, Kernel, Parameters
from ..records import saved
from ..rows import one_blas_thread
from ..rows.sample import ClassSample
from ..tables.columns import Columns

RESTARTS = 3
"""Starts of k-means."""

MOST_ROUNDS = 50
"""Rounds of k-means: EM goes on from there, so there is no need to finish."""


@lru_cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController().select(user_api="openmp")


def kmeans(
    sample: ClassSample, n_kernels: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Kernels at the centers that k-means finds in the class that owns them.

    Returns the centers (n_kernels, d), and for every row the point its deviation is measured from,
    (n, d): the center of its cluster, so that kernels are as wide as the clusters on average.
    """
    if n_kernels >= len(sample.x):  # a kernel a row
        return np.resize(sample.x, (n_kernels, sample.x.shape[1])), sample.x
    clustering = KMeans(
        n_kernels, n_init=RESTARTS, max_iter=MOST_ROUNDS, random_state=int(rng.integers(2**31))
    )
    # on a few thousand rows threads cost more than they bring; BLAS is held as sweeps in other
    # threads may hold it now
    with one_blas_thread(), _controller().limit(limits=1):
        label = clustering.fit_predict(sample.x, sample_weight=sample.weight)
    return clustering.cluster_centers_, clustering.cluster_centers_[label]


def random_rows(
    sample: ClassSample, n_kernels: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Kernels at random rows of the class that owns them (Titsias & Likas 2001, section IV).

    Returns the same as `kmeans`. The paper does not say how wide they are; the variance of the
    owner's rows reproduces its tables.
    """
    share = sample.weight / sample.weight.sum()
    chosen = rng.choice(len(share), size=min(n_kernels, len(share)), replace=False, p=share)
    return np.resize(sample.x[chosen], (n_kernels, sample.x.shape[1])), np.broadcast_to(
        share @ sample.x, sample.x.shape
    )


Method = Callable[[ClassSample, int, np.random.Generator], tuple[np.ndarray, np.ndarray]]

METHODS: dict[str, Method] = {"kmeans": kmeans, "random": random_rows}
"""How the kernels of a class are placed, by the name under which users ask for it."""


@saved
class Start:
    """Where the training of a `SharedKernelClassifier` starts.

    Parameters
    ----------
    method : {"kmeans", "random", "mixtures"}, default="kmeans"
        How kernels are placed that are not given: by k-means in the class that owns them, at random
        rows of that class (Titsias & Likas 2001), or by fitting a separate mixture for each class
        from a k-means start and opening the sharing afterwards.
    n_init : int, default=1
        Number of starts; the one with the highest objective is kept.
    owners : array-like of shape (n_kernels,), default=None
        The class (a label) that owns each kernel. None derives it from `n_kernels`.
    means, covariances, mixing, probabilities : array-like, default=None
        First parameters, in the units of the data and the shapes of `means_`, `covariances_`,
        `mixing_` and, with covariances where columns hold categories, `probabilities_`.

    Examples
    --------
    >>> from kernelpool import SharedKernelClassifier, Start
    >>> model = SharedKernelClassifier(6, init=Start("random", n_init=5))
    """

    method: str = "kmeans"
    n_init: int = 1
    owners: Any = None
    means: Any = None
    covariances: Any = None
    mixing: Any = None
    probabilities: Any = None

    def __post_init__(self) -> None:
        check_choices(self, method=(*METHODS, "mixtures"))
        if not self.n_init >= 1:
            raise KernelpoolError(f"n_init of Start must be at least 1; got {self.n_init!r}.")

    @property
    def given(self) -> str | None:
        """The first of the parameters that is given."""
        values = vars(self)
        names = ("owners", "means", "covariances", "mixing")
        return next((name for name in names if values[name] is not None), None)


IMPUTATIONS = 4
"""How often missing cells are imputed anew, from the centers found with the imputation before."""


def apportion(n_kernels: int, most: list[int]) -> list[int]:
    """`n_kernels` dealt out to the classes as evenly as `most` allows; a class with few rows leaves
    its share to others.
    """
    counts = [0] * len(most)
    for _ in range(n_kernels):
        open_ = [k for k in range(len(most)) if counts[k] < most[k]]
        # every class first; then the one with the fewest kernels, of these the one with the most
        # rows
        k = min(
            open_ or [k for k in range(len(most)) if most[k]], key=lambda k: (counts[k], -most[k])
        )
        counts[k] += 1
    return counts


def placed(
    kernel: Kernel,
    method: Method,
    samples: list[ClassSample],
    counts: list[int],
    rng: np.random.Generator,
) -> Parameters:
    """The first kernels, those of class 0 first."""
    groups = []
    for sample, count in zip(samples, counts, strict=True):
        if count:
            groups.append(
                _group(method, ClassSample(kernel.embed(sample.x), sample.weight), count, rng)
            )
    return kernel.place(groups)


def _group(
    method: Method, sample: ClassSample, count: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Centers, deviations of the rows from the points they belong to, and weights, for
    `Kernel.place`.

    Missing cells are filled by those points in turn (k-POD: Chi, Chi & Baraniuk, The American
    Statistician 70(1), 2016), and the deviations in a feature are widened by how often it is known.
    """
    missing = np.isnan(sample.x)
    if not missing.any():
        centers, about = method(sample, count, rng)
        return centers, sample.x - about, sample.weight
    known = sample.weight @ ~missing  # (d,)
    total = np.where(known > 0, known, 1.0)
    about = np.broadcast_to(
        sample.weight @ np.where(missing, 0.0, sample.x) / total, sample.x.shape
    )
    for _ in range(IMPUTATIONS):
        centers, about = method(
            ClassSample(np.where(missing, about, sample.x), sample.weight), count, rng
        )
    deviations = np.where(missing, 0.0, sample.x - about) * np.sqrt(sample.weight.sum() / total)
    return centers, deviations, sample.weight


def uniform_mixing(sharing: np.ndarray) -> np.ndarray:
    """Every class starts with equal shares of all the kernels it may use, (M, K); one without any,
    of all.
    """
    allowed = (sharing > 0).astype(float)
    allowed[:, ~allowed.any(axis=0)] = 1.0
    return allowed / allowed.sum(axis=0)


def opened(mixing: np.ndarray, sharing: np.ndarray, share: float = 0.1) -> np.ndarray:
    """Mixing of separate mixtures with a small `share` spread over the kernels that may now be used
    too.
    """
    return (1 - share) * mixing + share * uniform_mixing(sharing)


# -- checks of given parameters ---------------------------------------------------------------------


def check_degree(sharing: float, name: str) -> None:
    """A degree of sharing lies in [0, 1]."""
    if not 0 <= sharing <= 1:
        raise KernelpoolError(f"{name} must lie in [0, 1]; got {sharing}.")


def check_positive(name: str, covariances: np.ndarray, covariance_type: str) -> None:
    """Variances above zero, matrices symmetric and positive definite."""
    if FAMILIES[covariance_type].matrices:
        matrices = covariances.reshape(-1, *covariances.shape[-2:])
        asymmetry = np.abs(matrices - matrices.swapaxes(1, 2)).max(axis=(1, 2))
        bad = (np.linalg.eigvalsh(matrices)[:, 0] <= 0) | (
            asymmetry > 1e-8 * np.abs(matrices).max(axis=(1, 2))
        )
        wanted = "symmetric and positive definite"
    else:
        bad = covariances.reshape(len(covariances), -1).min(axis=1) <= 0
        wanted = "positive (variances, not deviations)"
    if bad.any():
        raise KernelpoolError(
            f"{name} must be {wanted}; that of kernel {int(np.argmax(bad))} is not."
        )


def family_of(covariances: np.ndarray, shape: tuple[int, int], named: str | None) -> str:
    """The family that `covariances` belong to, by their shape."""
    fits = [name for name in FAMILIES if FAMILIES[name].shape(*shape) == covariances.shape]
    if named is not None:
        if named not in FAMILIES:
            raise KernelpoolError(
                f"covariance_type must be one of {list(FAMILIES)}; got {named!r}."
            )
        check_shape("covariances", covariances, FAMILIES[named].shape(*shape))
        return named
    if len(fits) != 1:
        problem = (
            f"may be of type {fits[0]} or {fits[1]}: say covariance_type="
            if fits
            else "fits none of the covariance types"
        )
        raise KernelpoolError(
            f"covariances of shape {covariances.shape} for means of shape {shape} {problem}."
        )
    return fits[0]


@contextmanager
def named_features(columns: Columns) -> Iterator[None]:
    """The error of a kernel that collapses in here names the feature as the user does."""
    try:
        yield
    except CollapsedKernelError as error:
        name = None if columns.names is None else columns.names[error.feature]
        raise CollapsedKernelError(error.kernel, error.feature, error.variance, name) from None
