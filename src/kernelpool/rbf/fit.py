r"""RBF network of many kernels with one width; width and ridge are chosen on held-out rows.

.. math::

    P(C_k \mid x) \propto \exp\Big(b_k + \sum_j v_{jk}\, h_j(z) + \sum_i u_{ik}\, z_i\Big), \qquad
    h_j(z) = \exp\Big(-\frac{1}{2 \sigma^2} \sum_{i \in S_j} (z_i - \mu_{ji})^2\Big)

==================  ====================  ===========  =============================================
symbol              here                  shape        meaning
==================  ====================  ===========  =============================================
:math:`z`           ``z``                 (n, d)       features, scaled and mapped by the metric
:math:`\mu_j`       ``center``            (M, d)       k-means centers of all rows, or rows
:math:`S_j`         ``features``          (M, d)       features of kernel j: all, or a few at random
:math:`\sigma`      ``width``             scalar       standard deviation of all kernels
:math:`v, u, b`     ``readout``           (M+d+1, K)   weights of kernels and features, and biases
==================  ====================  ===========  =============================================

For each width the activations are rotated to their principal components once. Divided by the
square root of a bound of the curvature (Böhning, "Multinomial logistic regression algorithm",
Annals of the Institute of Statistical Mathematics 44(1), 1992: a quarter of the second moments),
the objective is nearly spherical, and L-BFGS needs about twenty steps for a ridge. Ridges go from
strong to weak, each from the solution before, until the loss on held-out rows rises; then comes the
next width, in units of the median squared distance of a row to its second-nearest center.

Kernels of few features each (Ho, "The random subspace method for constructing decision forests",
IEEE Transactions on Pattern Analysis and Machine Intelligence 20(8), 1998) lie at rows: in many
features a spherical kernel is near no row, while one of two or three features represents how these
interact. Their unit is a quarter of the variance of a feature.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.sparse import csr_array
from scipy.special import log_softmax
from sklearn.cluster import KMeans

from ..arrays import squared_distances
from ..data.folds import Selection, cross_fit, row_keys, stratified_folds
from ..data.labels import Labeled, merge_duplicates
from ..data.scale import feature_scale, mean_and_variance
from ..lbfgs import maximize
from ..rows import one_blas_thread
from .metric import learned_metric

WIDTHS = (1.0, 3.0, 10.0, 30.0, 100.0)
"""Variances of the kernels that are tried, in the unit of their layer."""

RIDGES = (20.0, 2.0, 0.2, 0.02, 2e-3)
"""Strengths that are tried; half of it times the squared weights is added to the loss of all
rows. Where rows count ten times, or a tenth, one that is stronger, or weaker, is tried too.
"""

DEFAULT = (2, 1)
"""Positions of the width and the ridge where there are too few rows to choose."""

FEW_FEATURES_UNIT = 0.25
"""Unit of the variances of kernels of few features, relative to the variance of a feature."""

N_FOLDS, FEW_ROWS = 4, 500
"""One of so many folds is held out; with fewer rows each of them in turn."""

MAX_STEPS, TOLERANCE = 20, 1e-7
"""Steps of L-BFGS for each ridge, and the relative gain of a step below which it stops."""

WORSE = 1.02
"""A held-out loss that is so many times the lowest ends the search for a ridge, or for a width."""

Losses = dict[tuple[int, int], float]
"""Held-out log-loss per row at each setting: positions in `WIDTHS` and `RIDGES`."""


@dataclass(frozen=True, kw_only=True)
class RBFNetwork:
    """A trained network."""

    location: np.ndarray
    """(d,)."""
    scale: np.ndarray
    """(d,); the network takes (x - location) / scale."""
    metric: np.ndarray | None
    """(d, d), a further linear map for the kernels."""
    means: np.ndarray
    """Centers in the units of x, (M, d)."""
    mixing: np.ndarray
    """Fraction of the rows that are nearest to each center, (M,)."""
    kernel_features: np.ndarray | None
    """Which features each kernel depends on, (M, d); None for all."""
    width: float
    readout: np.ndarray
    """(M + d + 1, o)."""
    ridge: float
    loss: float
    """Log-loss per row on held-out rows at the selected setting."""
    losses: np.ndarray
    """Width, ridge and held-out loss of every setting that was tried, (S, 3)."""
    validation_log_proba: np.ndarray | None
    """Of the validation rows, each by the setting that the other rows select, (n, K)."""

    def activations(self, x: np.ndarray) -> np.ndarray:
        """h_j(x), (n, M)."""
        z, center = ((a - self.location) / self.scale for a in (x, self.means))
        if self.metric is not None:
            z = z @ self.metric.T
            center = center @ self.metric.T
        squared = distances_along(z, center, self.kernel_features)
        return np.asarray(np.exp(squared * (-0.5 / self.width**2)))

    def scores(self, x: np.ndarray) -> np.ndarray:
        """log P(C_k|x) up to a constant of the row, (n, K)."""
        n_kernels = len(self.means)
        scores = self.activations(x) @ self.readout[:n_kernels]
        linear = (x - self.location) / self.scale @ self.readout[n_kernels:-1]
        scores = scores + linear + self.readout[-1]
        return np.hstack([np.zeros_like(scores), scores]) if scores.shape[1] == 1 else scores


def fit_rbf(
    rows: Labeled,
    n_classes: int,
    *,
    n_kernels: int = 300,
    init: str = "kmeans",
    width: float | None = None,
    ridge: float | None = None,
    max_features: int | None = None,
    metric: bool = False,
    standardize: bool = True,
    n_numbers: int | None = None,
    seed: int = 0,
    validation: Labeled | None = None,
    on_setting: Callable[[int, float], None] | None = None,
) -> RBFNetwork:
    """Choose width and ridge on held-out rows, and train on all rows.

    With `validation` rows these are held out and all of `rows` train; `on_setting` is called after
    every setting with the number of settings so far and the loss. Only the first `n_numbers`
    features are scaled: the others are indicators.
    """
    rows, _ = merge_duplicates(rows)
    x, codes, weight = rows
    location, variance = mean_and_variance(x, weight)
    scale = feature_scale(variance[:n_numbers], standardize)
    scale = np.append(scale, np.ones(x.shape[1] - len(scale)))
    location[len(variance[:n_numbers]) :] = 0.0

    def to_network(x: np.ndarray) -> np.ndarray:
        return (np.asarray(x, np.float64) - location) / scale

    z = to_network(x)
    matrix = np.eye(x.shape[1])
    if metric:
        matrix = learned_metric(z, codes, weight, np.random.default_rng(seed))
        _, variance = mean_and_variance(z @ matrix.T, weight)
        matrix = matrix / feature_scale(variance, standardize=False)[:, None]
        z = z @ matrix.T
    train = z, codes, weight
    grid = _Grid(width, ridge, n_classes, on_setting, float(weight.mean()))
    layer_of = partial(
        _hidden_layer, n_kernels=n_kernels, init=init, max_features=max_features, seed=seed
    )
    selection: Selection | None = None
    # the products are small: a second thread of BLAS costs more than it gains
    with one_blas_thread():
        if validation is not None:
            held_out = to_network(validation[0]) @ matrix.T, *validation[1:]
            selection = Selection(*held_out[1:], row_keys(held_out[0], held_out[2], seed))
            layer = layer_of(train)
            losses, readout = grid.search(layer, train, held_out, selection)
            best = min(losses, key=losses.__getitem__)
        else:
            losses = grid.cross_validated(layer_of, train, row_keys(z, weight, seed))
            best = min(losses, key=losses.__getitem__) if losses else grid.default
            layer = layer_of(train)
            readout = grid.trained(layer, train, best)
    n = len(layer.center)
    widths = np.sqrt(grid.variances(layer))
    readout[n:-1] = matrix.T @ readout[n:-1] * x.shape[1] ** -0.5
    readout = readout - readout.mean(axis=1, keepdims=True)
    tried = [[widths[i], grid.ridges[r], loss] for (i, r), loss in losses.items()]
    return RBFNetwork(
        location=location,
        scale=scale,
        metric=matrix if metric else None,
        means=np.linalg.solve(matrix, layer.center.T).T * scale + location,
        mixing=layer.mixing,
        kernel_features=layer.features,
        width=float(widths[best[0]]),
        readout=readout[:, 1:] - readout[:, :1] if n_classes == 2 else readout,
        ridge=grid.ridges[best[1]],
        loss=losses.get(best, np.nan),
        losses=np.reshape(tried, (-1, 3)),
        validation_log_proba=None if selection is None else selection.log_proba,
    )


# -- the hidden layer ------------------------------------------------------------------------------


@dataclass(frozen=True)
class HiddenLayer:
    """Centers of the kernels, distances of the training rows, and the unit of the variance."""

    center: np.ndarray
    """(M, d)."""
    features: np.ndarray | None
    """(M, d)."""
    squared: np.ndarray
    """Squared distances of the training rows, (n, M)."""
    unit: float
    mixing: np.ndarray
    """(M,)."""


def _hidden_layer(
    train: Labeled, *, n_kernels: int, init: str, max_features: int | None, seed: int
) -> HiddenLayer:
    x, _, weight = train
    if max_features is not None:
        return _layer_of_few_features(x, weight, n_kernels, max_features, seed)
    center = _centers(x, weight, min(n_kernels, max(2, len(x) // 2)), init, seed)
    squared = distances_along(x, center)
    second = min(1, len(center) - 1)
    near = np.partition(squared[:: -(-len(x) // 2000)], second, axis=1)[:, second]
    mass = np.bincount(squared.argmin(axis=1), weight, minlength=len(center))
    unit = max(float(np.median(near)), 1e-12)
    return HiddenLayer(center, None, squared, unit, mass / mass.sum())


def _layer_of_few_features(
    x: np.ndarray, weight: np.ndarray, n_kernels: int, max_features: int, seed: int
) -> HiddenLayer:
    """Kernels at rows, each of one to `max_features` features."""
    rng = np.random.default_rng(seed)
    d = x.shape[1]
    n_kernels = min(n_kernels, max(len(x), 4 * d))
    distinct = np.unique(x, axis=0)
    center = distinct[rng.integers(len(distinct), size=n_kernels)]
    size = rng.integers(1, min(max_features, d) + 1, size=n_kernels)
    features = rng.random((n_kernels, d)).argsort(axis=1).argsort(axis=1) < size[:, None]
    share = weight / weight.sum()
    variance = float((share @ (x - share @ x) ** 2).mean())
    squared = distances_along(x, center, features)
    unit = max(FEW_FEATURES_UNIT * variance, 1e-12)
    return HiddenLayer(center, features, squared, unit, np.full(n_kernels, 1 / n_kernels))


def _centers(x: np.ndarray, weight: np.ndarray, n_kernels: int, init: str, seed: int) -> np.ndarray:
    distinct = np.unique(x, axis=0)
    if len(distinct) <= n_kernels:
        return distinct
    if init == "random":
        return np.asarray(np.random.default_rng(seed).permutation(distinct)[:n_kernels])
    means = KMeans(n_kernels, init="random", n_init=1, max_iter=10, random_state=seed)
    return np.asarray(means.fit(x, sample_weight=weight).cluster_centers_)


def distances_along(
    x: np.ndarray, center: np.ndarray, features: np.ndarray | None = None
) -> np.ndarray:
    """(n, M), along the features of each kernel."""
    if features is None:
        return np.asarray(np.maximum(squared_distances(x, center), 0))
    one = features.astype(center.dtype)
    # a kernel depends on a few of the features: a sparse product is several times faster
    weight = csr_array(np.hstack([one, -2 * center * one]))  # (M, 2 d)
    squared = (weight @ np.vstack([(x * x).T, x.T])).T + (center * center * one).sum(axis=1)
    return np.asarray(np.maximum(squared, 0))


# -- widths and ridges -----------------------------------------------------------------------------


class _Grid:
    """Widths and ridges that are tried, from the strongest ridge of a width to the weakest."""

    def __init__(
        self,
        width: float | None,
        ridge: float | None,
        n_classes: int,
        on_setting: Callable[[int, float], None] | None,
        mean_weight: float,
    ) -> None:
        decades = round(np.log10(mean_weight))
        powers = range(max(decades, 0), min(decades, 0) - len(RIDGES), -1)
        ridges = [RIDGES[0] * 10.0**i for i in powers]
        self.width = width
        self.n_classes = n_classes
        self.on_setting = on_setting
        self.ridges = ridges if ridge is None else [ridge]
        self.stronger = [] if ridge is None else [r for r in ridges if r > ridge]
        """Ridges that lead to a given one."""
        self.default = (
            0 if width is not None else DEFAULT[0],
            0 if ridge is not None else DEFAULT[1] - min(decades, 0),
        )

    def variances(self, layer: HiddenLayer) -> list[float]:
        """Of the kernels, in the units of the layer or given."""
        return [w * layer.unit for w in WIDTHS] if self.width is None else [self.width**2]

    def path(self, layer: HiddenLayer, train: Labeled, variance: float) -> "ReadoutPath":
        """Readouts of one width, at the last ridge that is stronger than all that are tried."""
        inputs = _inputs(layer.squared, variance, train[0])
        path = ReadoutPath(inputs, *train[1:], self.n_classes)
        for strength in self.stronger:
            path.solve(strength)
        return path

    def trained(self, layer: HiddenLayer, train: Labeled, setting: tuple[int, int]) -> np.ndarray:
        """The readout at one setting, (M + d + 1, K)."""
        path = self.path(layer, train, self.variances(layer)[setting[0]])
        return [path.solve(strength) for strength in self.ridges[: setting[1] + 1]][-1]

    def search(
        self, layer: HiddenLayer, train: Labeled, held_out: Labeled, selection: Selection
    ) -> tuple[Losses, np.ndarray]:
        """Held-out losses of widths and ridges, until they rise; and the best readout."""
        losses = dict[tuple[int, int], float]()
        best = np.empty(0)
        least = np.inf
        squared = distances_along(held_out[0], layer.center, layer.features)
        for i, variance in enumerate(self.variances(layer)):
            path = self.path(layer, train, variance)
            inputs = _inputs(squared, variance, held_out[0])
            before = least
            lowest = np.inf
            for r, strength in enumerate(self.ridges):
                readout = path.solve(strength)
                loss = selection.add(log_softmax(inputs @ readout[:-1] + readout[-1], axis=1))
                losses[i, r] = loss
                if loss < least:
                    best = readout
                    least = loss
                if self.on_setting is not None:
                    self.on_setting(len(losses), loss)
                if loss > WORSE * lowest:
                    break
                lowest = min(lowest, loss)
            if lowest > WORSE * before:
                break
        return losses, best

    def cross_validated(
        self, layer_of: Callable[[Labeled], HiddenLayer], train: Labeled, key: np.ndarray
    ) -> Losses:
        """Mean losses over the folds of the settings that all of them tried."""

        def search(rows: Labeled, held_out: Labeled) -> tuple[Losses, np.ndarray]:
            selection = Selection(*held_out[1:])
            losses, _ = self.search(layer_of(rows), rows, held_out, selection)
            return losses, selection.log_proba

        fold = stratified_folds(train[1], N_FOLDS, key=key)
        only = None if len(fold) < FEW_ROWS else [0]
        losses_of, _ = cross_fit(search, train, fold, only=only)
        tried = set(losses_of[0]).intersection(*losses_of) if losses_of else ()
        return {at: float(np.mean([losses[at] for losses in losses_of])) for at in sorted(tried)}


def _inputs(squared: np.ndarray, variance: float, x: np.ndarray) -> np.ndarray:
    """Activations, and the features as one more direction of variance one, (n, M + d)."""
    return np.hstack([np.exp(squared * (-0.5 / variance)), x * x.shape[1] ** -0.5])


class ReadoutPath:
    """Logistic readouts of the same inputs, each from the solution of the ridge before."""

    def __init__(
        self, inputs: np.ndarray, codes: np.ndarray, weight: np.ndarray, n_classes: int
    ) -> None:
        self.share, self.n_rows = weight / weight.sum(), weight.sum()
        self.mean = self.share @ inputs
        inputs -= self.mean
        value, vector = np.linalg.eigh((inputs * self.share[:, None]).T @ inputs)
        keep = value > 1e-10 * value[-1]
        self.variance = value[keep]
        self.vector = vector[:, keep]
        self.component = inputs @ self.vector  # (n, P)
        self.target = np.eye(n_classes)[codes] * self.share[:, None]
        self.weight = np.zeros((len(self.variance), n_classes))
        self.bias = np.log(np.maximum(self.target.sum(axis=0), 1e-12))

    def solve(self, ridge: float) -> np.ndarray:
        """The readout with this ridge, (inputs + 1, K), the bias last."""
        strength = ridge / self.n_rows
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
            fit = (self.target * scores).sum() - self.share @ log_total
            value = fit - 0.5 * strength * (weight * weight).sum()
            residual = self.target - likelihood * (self.share / total)[:, None]
            slope = (self.component.T @ residual - strength * weight) / unit
            return np.vstack([slope, residual.sum(axis=0)]).ravel(), float(value)

        start = np.vstack([self.weight * unit, self.bias]).ravel()
        point = maximize(objective, start, max_iter=MAX_STEPS, tol=TOLERANCE).point
        point = point.reshape(-1, n_classes)
        self.weight = point[:-1] / unit
        self.bias = point[-1]
        weight = self.vector @ self.weight
        return np.vstack([weight, self.bias - self.mean @ weight])
