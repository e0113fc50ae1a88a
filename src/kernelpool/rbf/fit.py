"""RBF networks from rows: the hidden layer, and the selection of width and ridge on held-out rows.

Ridges go from strong to weak, each from the solution before (`kernelpool.logistic`), until the loss
on held-out rows rises; then comes the next width, in units of the median squared distance of a row
to its second-nearest center. For each width the activations are rotated once.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import log_softmax
from sklearn.cluster import KMeans

from ..data.door import TrainingData
from ..data.folds import Selection, cross_fit, row_keys, stratified_folds
from ..data.labels import Labeled, labeled, merge_duplicates
from ..data.scale import feature_scale, mean_and_variance
from ..logistic import RidgePath
from ..rows import one_blas_thread
from .metric import learned_metric
from .network import RBFNetwork, distances_along

WIDTHS = (1.0, 3.0, 10.0, 30.0, 100.0)
"""Variances of the kernels that are tried, in the unit of their layer."""

DEFAULT_WIDTH = 2
"""Position in `WIDTHS` where there are too few rows to choose."""

STRONGEST_RIDGE = 20.0
"""Half of it times the squared weights is subtracted from the log-likelihood of all rows."""

N_RIDGES = 5
"""Strengths that are tried, each a tenth of the one before. Where rows count ten times, or a tenth,
one that is stronger, or weaker, is tried too.
"""

FEW_FEATURES_UNIT = 0.25
"""Unit of the variances of kernels of few features, relative to the variance of a feature."""

SEARCH_FOLDS = 4
"""One of so many folds is held out."""

FEW_ROWS = 500
"""With fewer rows each of the folds is held out in turn."""

WORSE = 1.02
"""A held-out loss that is so many times the lowest ends the search for a ridge, or for a width."""

UNIT_ROWS = 2000
"""Rows, about, whose distances to centers define the unit of the variances."""

Losses = dict[tuple[int, int], float]
"""Held-out log-loss per row at each setting: positions among the widths and the ridges."""


@dataclass(frozen=True)
class RBFSettings:
    """The parameters of `RBFNetworkClassifier`."""

    n_kernels: int = 300
    init: str = "kmeans"
    width: float | None = None
    ridge: float | None = None
    max_features: int | None = None
    metric: str | None = None
    standardize: bool = True
    seed: int = 0


def fit_rbf(
    data: TrainingData,
    settings: RBFSettings,
    *,
    n_numbers: int,
    validation: Labeled | None = None,
    on_setting: Callable[[int, float], None] | None = None,
) -> RBFNetwork:
    """Choose width and ridge on held-out rows, and train on all rows.

    With `validation` rows these are held out and all rows of `data` train; `on_setting` is called after
    every setting with the number of settings so far and the loss. Only the first `n_numbers`
    features are scaled: the others are indicators.
    """
    # sorted and without copies: the order of the rows does not matter, to the last bit
    (x, codes, weight), _ = merge_duplicates(labeled(data.rows))
    d = x.shape[1]
    n_classes = len(data.classes)
    location, variance = mean_and_variance(x, weight)
    location[n_numbers:] = 0.0
    scale = np.ones(d)
    scale[:n_numbers] = feature_scale(variance[:n_numbers], settings.standardize)
    matrix = np.eye(d)
    if settings.metric is not None:
        z = (x - location) / scale
        matrix = learned_metric(z, codes, weight, np.random.default_rng(settings.seed))
        _, variance = mean_and_variance(z @ matrix.T, weight)
        matrix = matrix / feature_scale(variance, standardize=False)[:, None]

    def mapped(x: np.ndarray) -> np.ndarray:
        return np.asarray((x - location) / scale @ matrix.T)

    train = mapped(x), codes, weight
    search = _Search(settings, n_classes, float(weight.mean()), on_setting)
    # the products are small: a second thread of BLAS costs more than it gains
    with one_blas_thread():
        layer = hidden_layer(train, settings)
        if validation is None:
            losses = search.losses_by_folds(train)
            readout = search.trained(layer, train, search.best(losses))
            log_proba = None
        else:
            held_out = mapped(validation[0]), *validation[1:]
            keys = row_keys(held_out[0], held_out[2], settings.seed)
            selection = Selection(*held_out[1:], keys)
            losses, readout = search.losses_on(held_out, layer, train, selection)
            log_proba = selection.log_proba
    best = search.best(losses)
    widths = np.sqrt(search.variances(layer))
    n_kernels = len(layer.center)
    readout[n_kernels:-1] = matrix.T @ readout[n_kernels:-1] * d**-0.5
    readout = readout - readout.mean(axis=1, keepdims=True)
    tried = [[widths[i], search.ridges[r], loss] for (i, r), loss in losses.items()]
    return RBFNetwork(
        location=location,
        scale=scale,
        metric=None if settings.metric is None else matrix,
        means=np.linalg.solve(matrix, layer.center.T).T * scale + location,
        mixing=layer.mixing,
        kernel_features=layer.features,
        width=float(widths[best[0]]),
        readout=readout[:, 1:] - readout[:, :1] if n_classes == 2 else readout,
        ridge=search.ridges[best[1]],
        loss=losses.get(best, np.nan),
        losses=np.reshape(tried, (-1, 3)),
        validation_log_proba=log_proba,
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


def hidden_layer(train: Labeled, settings: RBFSettings) -> HiddenLayer:
    """Kernels at k-means centers or random rows, or kernels of few features."""
    x, _, weight = train
    if settings.max_features is not None:
        return _layer_of_few_features(x, weight, settings, settings.max_features)
    center = _centers(x, weight, settings)
    squared = distances_along(x, center)
    second = min(1, len(center) - 1)
    near = np.partition(squared[:: -(-len(x) // UNIT_ROWS)], second, axis=1)[:, second]
    mass = np.bincount(squared.argmin(axis=1), weight, minlength=len(center))
    unit = max(float(np.median(near)), 1e-12)
    return HiddenLayer(center, None, squared, unit, mass / mass.sum())


def _layer_of_few_features(
    x: np.ndarray, weight: np.ndarray, settings: RBFSettings, max_features: int
) -> HiddenLayer:
    """Kernels at rows, each of one to `max_features` features."""
    rng = np.random.default_rng(settings.seed)
    d = x.shape[1]
    n_kernels = min(settings.n_kernels, max(len(x), 4 * d))
    distinct = np.unique(x, axis=0)
    center = distinct[rng.integers(len(distinct), size=n_kernels)]
    size = rng.integers(1, min(max_features, d) + 1, size=n_kernels)
    features = rng.random((n_kernels, d)).argsort(axis=1).argsort(axis=1) < size[:, None]
    share = weight / weight.sum()
    variance = float((share @ (x - share @ x) ** 2).mean())
    squared = distances_along(x, center, features)
    unit = max(FEW_FEATURES_UNIT * variance, 1e-12)
    return HiddenLayer(center, features, squared, unit, np.full(n_kernels, 1 / n_kernels))


def _centers(x: np.ndarray, weight: np.ndarray, settings: RBFSettings) -> np.ndarray:
    n_kernels = min(settings.n_kernels, max(2, len(x) // 2))
    distinct = np.unique(x, axis=0)
    if len(distinct) <= n_kernels:
        return distinct
    if settings.init == "random":
        rng = np.random.default_rng(settings.seed)
        return np.asarray(rng.permutation(distinct)[:n_kernels])
    means = KMeans(n_kernels, init="random", n_init=1, max_iter=10, random_state=settings.seed)
    return np.asarray(means.fit(x, sample_weight=weight).cluster_centers_)


# -- widths and ridges -----------------------------------------------------------------------------


class _Search:
    """Held-out losses of widths and ridges, from the strongest ridge of a width to the weakest."""

    def __init__(
        self,
        settings: RBFSettings,
        n_classes: int,
        mean_weight: float,
        on_setting: Callable[[int, float], None] | None,
    ) -> None:
        decades = round(np.log10(mean_weight))
        powers = range(max(decades, 0), min(decades, 0) - N_RIDGES, -1)
        ridges = [STRONGEST_RIDGE * 10.0**i for i in powers]
        self.settings = settings
        self.n_classes = n_classes
        self.on_setting = on_setting
        self.ridges = ridges
        self.n_leading = 0
        """Ridges that lead to a given one and are not tried."""
        width, ridge = settings.width, settings.ridge
        if ridge is not None:
            self.ridges = [*(r for r in ridges if r > ridge), ridge]
            self.n_leading = len(self.ridges) - 1
        self.default = (
            DEFAULT_WIDTH if width is None else 0,
            1 - min(decades, 0) if ridge is None else self.n_leading,
        )

    def best(self, losses: Losses) -> tuple[int, int]:
        """The setting with the lowest loss."""
        return min(losses, key=losses.__getitem__) if losses else self.default

    def variances(self, layer: HiddenLayer) -> list[float]:
        """Of the kernels, in the units of the layer or given."""
        width = self.settings.width
        return [w * layer.unit for w in WIDTHS] if width is None else [width**2]

    def path(self, layer: HiddenLayer, train: Labeled, variance: float) -> RidgePath:
        """The readouts of one width."""
        x, codes, weight = train
        return RidgePath(_inputs(layer.squared, variance, x), codes, weight, self.n_classes)

    def trained(self, layer: HiddenLayer, train: Labeled, setting: tuple[int, int]) -> np.ndarray:
        """The readout at one setting, (M + d + 1, K)."""
        path = self.path(layer, train, self.variances(layer)[setting[0]])
        return [path.solve(ridge) for ridge in self.ridges[: setting[1] + 1]][-1]

    def losses_on(
        self, held_out: Labeled, layer: HiddenLayer, train: Labeled, selection: Selection
    ) -> tuple[Losses, np.ndarray]:
        """Losses of widths and ridges, until they rise; and the best readout."""
        losses: Losses = {}
        readouts = {}
        squared = distances_along(held_out[0], layer.center, layer.features)
        for i, variance in enumerate(self.variances(layer)):
            path = self.path(layer, train, variance)
            inputs = _inputs(squared, variance, held_out[0])
            before = min(losses.values(), default=np.inf)
            lowest = np.inf
            for r, ridge in enumerate(self.ridges):
                readout = path.solve(ridge)
                if r < self.n_leading:
                    continue
                loss = selection.add(log_softmax(inputs @ readout[:-1] + readout[-1], axis=1))
                losses[i, r] = loss
                readouts[i, r] = readout
                if self.on_setting is not None:
                    self.on_setting(len(losses), loss)
                if loss > WORSE * lowest:
                    break
                lowest = min(lowest, loss)
            if lowest > WORSE * before:
                break
        return losses, readouts[self.best(losses)]

    def losses_by_folds(self, train: Labeled) -> Losses:
        """Mean losses over the folds of the settings that all of them tried."""
        x, codes, weight = train
        fold = stratified_folds(codes, SEARCH_FOLDS, key=row_keys(x, weight, self.settings.seed))

        def search(train: Labeled, held_out: Labeled) -> tuple[Losses, np.ndarray]:
            selection = Selection(*held_out[1:])
            layer = hidden_layer(train, self.settings)
            return self.losses_on(held_out, layer, train, selection)[0], selection.log_proba

        only = None if len(fold) < FEW_ROWS or (fold < 0).all() else [0]
        losses_of, _ = cross_fit(search, train, fold, only=only)
        tried = set(losses_of[0]).intersection(*losses_of) if losses_of else ()
        return {at: float(np.mean([losses[at] for losses in losses_of])) for at in sorted(tried)}


def _inputs(squared: np.ndarray, variance: float, x: np.ndarray) -> np.ndarray:
    """Activations, and the features as one more direction of variance one, (n, M + d)."""
    return np.hstack([np.exp(squared * (-0.5 / variance)), x * x.shape[1] ** -0.5])
