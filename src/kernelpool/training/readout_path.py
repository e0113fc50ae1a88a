r"""RBF networks of many narrow-to-wide kernels: width and ridge of a logistic output layer along a path.

.. math::

    P(C_k \mid x) \propto \exp(b_k + \sum_j v_{jk}\, h_j(x) + \sum_i u_{ik}\, x_i), \qquad
    h_j(x) = \exp\left(-\frac{1}{2 \sigma^2} \sum_{i \in S_j} (x_i - \mu_{ji})^2\right)

==================  ====================  ===========  ==================================================================
symbol              here                  shape        meaning
==================  ====================  ===========  ==================================================================
:math:`\mu_j`       ``center``            (M, d)       k-means centers of all rows, or rows
:math:`S_j`         ``seen``              (M, d)       the features that kernel j sees: all, or a few drawn at random
:math:`\sigma^2`    ``variance``          scalar       one of `WIDTHS` times a unit
:math:`v, u, b`     ``readout``           (M+d+1, K)   weights of the kernels, of the features as they are, and biases
==================  ====================  ===========  ==================================================================

For each width the activations are turned into their principal components once; in these coordinates, divided by the square root
of a bound of the curvature (Böhning, "Multinomial logistic regression algorithm", Annals of the Institute of Statistical
Mathematics 44(1), 1992: a quarter of the activations' second moments), the objective is nearly round, and L-BFGS needs some
twenty steps a ridge. Ridges go from strong to weak, each from the solution of the one before, until rows that took no part say
that it no longer helps; then the next width. The unit is the median squared distance of a row to its second-nearest center.

Kernels that see a few features each (Ho, "The random subspace method for constructing decision forests", IEEE Transactions on
Pattern Analysis and Machine Intelligence 20(8), 1998) are what trees are to a forest: in many features a round kernel is near
no row, while one of two or three features tells how these go together, whatever the others are. They lie at rows; the unit is
a quarter of the variance of a feature. A network that is trained again on other rows of the same data need only look
at the `neighbors` of the setting that was best before.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.special import log_softmax
from sklearn.cluster import KMeans

from ..lbfgs import maximize
from ..networks.parzen_kernels import distances_along
from .cross_fit import Selection

WIDTHS = (1.0, 3.0, 10.0, 30.0, 100.0)
"""Variances of the kernels, in the unit of their layer."""

NARROWEST = 0.25
"""That unit for kernels of a few features, as a part of the variance of a feature."""

RIDGES = (10.0, 1.0, 0.1, 0.01, 1e-3)
"""The loss is that of all rows and this times the squared weights."""

STEPS = 20
"""Steps of L-BFGS for each ridge."""

TOLERANCE = 1e-7
"""Gain of a step, as a part of the objective, at which that ends."""

WORSE = 1.02
"""A ridge, and then a width, at which the held-out loss is this many times the lowest ends the way."""


@dataclass(frozen=True)
class Setting:
    """A place on the path: positions in `WIDTHS` and `RIDGES`."""

    width: int
    ridge: int


DEFAULT = Setting(2, 1)
"""Where there are too few rows to choose."""

LabeledArrays = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Rows (n, d), codes (n,) and weights (n,)."""


@dataclass(frozen=True)
class ReadoutFit:
    """A trained network."""

    center: np.ndarray
    """(M, d)."""
    share: np.ndarray
    """Part of the rows that are nearest to each center, (M,)."""
    variance: float
    readout: np.ndarray
    """(M + d + 1, K)."""
    setting: Setting
    ridge: float
    loss: float
    """Log-loss a row on the rows that took no part."""
    losses: dict[Setting, float] = field(default_factory=dict)
    """That loss at every setting that was tried, in their order."""
    seen: np.ndarray | None = None
    """Which features each kernel sees, (M, d); None where all see all."""

    def scores(self, x: np.ndarray) -> np.ndarray:
        """log P(C_k|x) up to a constant of the row, (n, K)."""
        n_kernels = len(self.center)
        scores = (
            np.exp(squared_distances(x, self.center, self.seen) * (-0.5 / self.variance))
            @ self.readout[:n_kernels]
        )
        return np.asarray(
            scores + x @ self.readout[n_kernels:-1] * linear_unit(x) + self.readout[-1]
        )


def linear_unit(x: np.ndarray) -> float:
    """Features stand beside the kernels as one more direction of variance one, not as d."""
    return float(x.shape[1] ** -0.5)


def squared_distances(
    x: np.ndarray, center: np.ndarray, seen: np.ndarray | None = None
) -> np.ndarray:
    """(n, M), along the features that are seen."""
    if seen is not None:
        return np.asarray(np.maximum(distances_along(x, center, seen.astype(center.dtype)), 0))
    distance = x @ (-2 * center.T)
    distance += (center * center).sum(axis=1)
    distance += (x * x).sum(axis=1)[:, None]
    return np.asarray(np.maximum(distance, 0, out=distance))


def fit_readout_path(
    train: LabeledArrays,
    held_out: LabeledArrays,
    *,
    n_kernels: int,
    n_classes: int,
    seed: int,
    hidden: str = "kmeans",
    max_features: int | None = None,
    ridge: float | None = None,
    near: Setting | None = None,
    selection: Selection | None = None,
    on_setting: Callable[[int, float], None] | None = None,
) -> ReadoutFit:
    """The network with the least loss on `held_out`; `selection` takes the predictions of every setting.

    With `near`, a setting that was best for other rows of the same data, only its width and the ridges beside it are tried;
    with `ridge`, no other. After each setting `on_setting` is told how many there were and the loss of this one.
    """
    layer, ridges = _layer(train, n_kernels, seed, hidden, max_features), _ridges(ridge)
    distance_out = squared_distances(held_out[0], layer.center, layer.seen)
    best: ReadoutFit | None = None
    losses: dict[Setting, float] = {}
    selection = Selection(*held_out[1:]) if selection is None else selection
    for i in range(len(WIDTHS)) if near is None else (near.width,):
        variance = WIDTHS[i] * layer.unit
        path = _Path(layer.activations(variance), *train, n_classes)
        inputs = np.hstack(
            [np.exp(distance_out * (-0.5 / variance)), held_out[0] * linear_unit(held_out[0])]
        )
        lowest = np.inf
        for r in _walk(ridges, near):
            readout = path.to(ridges[r])
            if ridge is not None and r < len(ridges) - 1:
                continue
            loss = selection.add(log_softmax(inputs @ readout[:-1] + readout[-1], axis=1))
            losses[Setting(i, r)] = loss
            if on_setting is not None:
                on_setting(len(losses), loss)
            if best is None or loss < best.loss:
                best = layer.fit(variance, readout, Setting(i, r), ridges[r], loss)
            if loss > WORSE * lowest:
                break
            lowest = min(lowest, loss)
        if best is not None and lowest > WORSE * best.loss:
            break
    assert best is not None
    return replace(best, losses=losses)


def mean_losses(fits: Sequence[ReadoutFit]) -> dict[Setting, float]:
    """The mean loss of every setting that all of the fits, one a fold, have tried."""
    tried = (
        [setting for setting in fits[0].losses if all(setting in fit.losses for fit in fits)]
        if fits
        else []
    )
    return {setting: float(np.mean([fit.losses[setting] for fit in fits])) for setting in tried}


def train_readout(
    train: LabeledArrays,
    setting: Setting,
    *,
    n_kernels: int,
    n_classes: int,
    seed: int,
    hidden: str = "kmeans",
    max_features: int | None = None,
    ridge: float | None = None,
) -> ReadoutFit:
    """The network at one setting, reached from the ridges before it; no row is held out, so its loss is NaN."""
    layer, ridges = _layer(train, n_kernels, seed, hidden, max_features), _ridges(ridge)
    variance, last = WIDTHS[setting.width] * layer.unit, min(setting.ridge, len(ridges) - 1)
    path = _Path(layer.activations(variance), *train, n_classes)
    for r in range(last + 1):
        readout = path.to(ridges[r])
    return layer.fit(variance, readout, setting, ridges[last], np.nan)


def _ridges(last: float | None) -> Sequence[float]:
    """The ridges of the path; to reach one that is given, those that are stronger come first."""
    return RIDGES if last is None else (*(ridge for ridge in RIDGES if ridge > last), last)


def _walk(ridges: Sequence[float], near: Setting | None) -> range:
    return range(len(ridges)) if near is None or ridges is not RIDGES else _beside(near.ridge)


@dataclass(frozen=True)
class _Layer:
    """Where the kernels are, what they see, how far the rows are from them, and the unit of their variance."""

    center: np.ndarray
    """(M, d)."""
    seen: np.ndarray | None
    """(M, d)."""
    distance: np.ndarray
    """(n, M), squared."""
    unit: float
    share: np.ndarray
    """(M,)."""

    def activations(self, variance: float) -> np.ndarray:
        """(n, M)."""
        exponent = self.distance * (-0.5 / variance)
        return np.asarray(np.exp(exponent, out=exponent))

    def fit(
        self, variance: float, readout: np.ndarray, setting: Setting, ridge: float, loss: float
    ) -> ReadoutFit:
        """The network with this layer and an output layer."""
        return ReadoutFit(
            self.center, self.share, variance, readout, setting, ridge, loss, seen=self.seen
        )


def _layer(
    train: LabeledArrays, n_kernels: int, seed: int, hidden: str, max_features: int | None
) -> _Layer:
    x, _, weight = train
    if max_features is not None:
        return _layer_of_few(x, weight, n_kernels, seed, max_features)
    center = _centers(x, weight, min(n_kernels, max(2, len(x) // 2)), seed, hidden)
    distance = squared_distances(x, center)
    n_before = min(1, len(center) - 1)
    second = np.partition(distance[:: -(-len(x) // 2000)], n_before, axis=1)[:, n_before]
    mass = np.bincount(distance.argmin(axis=1), weight, minlength=len(center))
    return _Layer(center, None, distance, max(float(np.median(second)), 1e-12), mass / mass.sum())


def _layer_of_few(
    x: np.ndarray, weight: np.ndarray, n_kernels: int, seed: int, max_features: int
) -> _Layer:
    """Kernels at rows, each of which sees as many features as is drawn, up to `max_features`."""
    rng, d = np.random.default_rng(seed), x.shape[1]
    n_kernels = min(n_kernels, max(len(x), 4 * d))
    distinct = np.unique(x, axis=0)  # in an order of their own, whatever that of the rows
    center = distinct[rng.integers(len(distinct), size=n_kernels)]
    size = rng.integers(1, min(max_features, d) + 1, size=n_kernels)
    seen = rng.random((n_kernels, d)).argsort(axis=1).argsort(axis=1) < size[:, None]
    share = weight / weight.sum()
    variance = (share @ (x - share @ x) ** 2).mean()
    unit = max(NARROWEST * float(variance), 1e-12)
    return _Layer(
        center, seen, squared_distances(x, center, seen), unit, np.full(n_kernels, 1 / n_kernels)
    )


def _beside(ridge: int) -> range:
    return range(max(ridge - 1, 0), min(ridge + 2, len(RIDGES)))


def _centers(
    x: np.ndarray, weight: np.ndarray, n_kernels: int, seed: int, hidden: str
) -> np.ndarray:
    distinct = np.unique(x, axis=0)
    if len(distinct) <= n_kernels:
        return distinct
    if hidden == "random":
        return np.asarray(np.random.default_rng(seed).permutation(distinct)[:n_kernels])
    means = KMeans(n_kernels, init="random", n_init=1, max_iter=10, random_state=seed)
    return np.asarray(means.fit(x, sample_weight=weight).cluster_centers_)


class _Path:
    """Logistic output layers of one set of activations, each from the solution of the ridge before."""

    def __init__(
        self,
        activations: np.ndarray,
        x: np.ndarray,
        codes: np.ndarray,
        weight: np.ndarray,
        n_classes: int,
    ) -> None:
        features = np.hstack([activations, x * linear_unit(x)])
        self.share, self.codes, self.n_rows = weight / weight.sum(), codes, weight.sum()
        self.mean = self.share @ features
        features -= self.mean
        value, vector = np.linalg.eigh((features * self.share[:, None]).T @ features)
        keep = value > 1e-10 * value[-1]
        self.variance, self.vector = value[keep], vector[:, keep]
        self.component = features @ self.vector  # (n, P)
        self.target = np.eye(n_classes)[codes] * self.share[:, None]
        self.weight = np.zeros((len(self.variance), n_classes))
        self.bias = np.log(np.maximum(self.target.sum(axis=0), 1e-12))

    def to(self, ridge: float) -> np.ndarray:
        """The output layer, (M + d + 1, K), with this ridge."""
        strength = 2 * ridge / self.n_rows
        unit = np.sqrt(0.25 * self.variance + strength)[:, None]
        n_classes = len(self.bias)

        def objective(flat: np.ndarray) -> tuple[np.ndarray, float]:
            point = flat.reshape(-1, n_classes)
            weight = point[:-1] / unit
            scores = self.component @ weight + point[-1]
            largest = scores.max(axis=1)
            likelihood = np.exp(scores - largest[:, None])
            total = likelihood.sum(axis=1)
            log_total = np.log(total) + largest
            value = (
                (self.target * scores).sum()
                - self.share @ log_total
                - 0.5 * strength * (weight * weight).sum()
            )
            residual = self.target - likelihood * (self.share / total)[:, None]
            slope = (self.component.T @ residual - strength * weight) / unit
            return np.vstack([slope, residual.sum(axis=0)]).ravel(), float(value)

        start = np.vstack([self.weight * unit, self.bias]).ravel()
        point = maximize(objective, start, max_iter=STEPS, tol=TOLERANCE).point.reshape(
            -1, n_classes
        )
        self.weight, self.bias = point[:-1] / unit, point[-1]
        weight = self.vector @ self.weight
        return np.vstack([weight, self.bias - self.mean @ weight])
