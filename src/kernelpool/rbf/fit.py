"""RBF networks from rows: the hidden layer, and the selection of width and ridge on held-out rows.

Ridges go from strong to weak, each from the solution before (`kernelpool.logistic`), until the loss
on held-out rows rises; then comes the next width, in units of the median squared distance of a row
to its second-nearest center. For each width the activations are rotated once.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import sqrt

import numpy as np
from scipy.special import log_softmax
from sklearn.cluster import KMeans

from ..data.door import TrainingData
from ..data.folds import Selection, cross_fit, row_keys, stratified_folds
from ..data.labels import Labeled, labeled
from ..data.scale import feature_scale, mean_and_variance
from ..logistic import RidgePath
from ..rows import one_blas_thread
from .metric import learned_metric
from .network import RBFNetwork, distances_along

WIDTHS = (1.0, 3.0, 10.0, 30.0, 100.0)
"""Variances of the kernels that are tried, in the unit of their layer."""

DEFAULT_WIDTH = 10.0
"""One of `WIDTHS`, where there are too few rows to choose."""

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

Losses = dict[tuple[float, float], float]
"""Held-out log-loss per row at each setting: width, of `WIDTHS` or a fixed one, and ridge."""


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

    With `validation` rows these are held out and all rows of `data` train; `on_setting` is called
    after every setting with the number of settings so far and the loss. Only the first `n_numbers`
    features are scaled: the rest are indicators.
    """
    x, codes, weight = labeled(data.rows)
    d = x.shape[1]
    n_classes = len(data.classes)
    location = np.append(data.scale.mean[:n_numbers], np.zeros(d - n_numbers))
    scale = np.ones(d)
    scale[:n_numbers] = feature_scale(data.scale.variance[:n_numbers], settings.standardize)
    z = (x - location) / scale
    matrix = np.eye(d)
    if settings.metric is not None:
        matrix = learned_metric(z, codes, weight, np.random.default_rng(settings.seed))
        _, variance = mean_and_variance(z @ matrix.T, weight)
        matrix = matrix / feature_scale(variance, standardize=False)[:, None]
    train = z @ matrix.T, codes, weight
    search = _Search(settings, n_classes, float(weight.mean()), on_setting)
    log_proba = None
    # the products are small: a second thread of BLAS costs more than it gains
    with one_blas_thread():
        layer = hidden_layer(train, settings)
        variances = search.variances(layer)
        if validation is None:
            # folds of unmapped rows: a metric is known to a few digits only
            losses = search.losses_by_folds(train, row_keys(z, weight, settings.seed))
            best = min(losses, key=losses.__getitem__)
            readouts = search.readouts(layer, train, variances[best[0]])
            readout = next(readout for ridge, readout in readouts if ridge == best[1])
        else:
            z_out = (validation[0] - location) / scale
            held_out = z_out @ matrix.T, *validation[1:]
            selection = Selection(*held_out[1:], row_keys(z_out, held_out[2], settings.seed))
            losses, readout = search.losses_on(held_out, layer, train, selection)
            best = min(losses, key=losses.__getitem__)
            log_proba = selection.log_proba
    n_kernels = len(layer.center)
    readout[n_kernels:-1] = matrix.T @ readout[n_kernels:-1] * d**-0.5
    readout = readout - readout.mean(axis=1, keepdims=True)
    tried = [(sqrt(variances[width]), ridge, loss) for (width, ridge), loss in losses.items()]
    return RBFNetwork(
        location=location,
        scale=scale,
        metric=None if settings.metric is None else matrix,
        means=np.linalg.solve(matrix, layer.center.T).T * scale + location,
        mixing=layer.mixing,
        kernel_features=layer.features,
        width=sqrt(variances[best[0]]),
        readout=readout[:, 1:] - readout[:, :1] if n_classes == 2 else readout,
        ridge=best[1],
        loss=losses[best],
        losses=np.array(tried),
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
    """Kernels at k-means centers or random rows; or at random rows, of one to `max_features`
    features each.
    """
    x, _, weight = train
    share = weight / weight.sum()
    if settings.max_features is not None:
        center, features = _few_features(x, settings, settings.max_features)
        squared = distances_along(x, center, features)
        unit = FEW_FEATURES_UNIT * (share @ (x - share @ x) ** 2).mean()
        mixing = np.full(len(center), 1 / len(center))
    else:
        center, features = _centers(x, weight, settings), None
        squared = distances_along(x, center)
        second = min(1, len(center) - 1)
        near = np.partition(squared[:: -(-len(x) // UNIT_ROWS)], second, axis=1)[:, second]
        unit = np.median(near)
        mass = np.bincount(squared.argmin(axis=1), weight, minlength=len(center))
        mixing = mass / mass.sum()
    return HiddenLayer(center, features, squared, max(float(unit), 1e-12), mixing)


def _few_features(
    x: np.ndarray, settings: RBFSettings, max_features: int
) -> tuple[np.ndarray, np.ndarray]:
    """Centers and features of the kernels, (M, d) each."""
    rng = np.random.default_rng(settings.seed)
    d = x.shape[1]
    n_kernels = min(settings.n_kernels, max(len(x), 4 * d))
    distinct = np.unique(x, axis=0)
    center = distinct[rng.integers(len(distinct), size=n_kernels)]
    size = rng.integers(1, min(max_features, d) + 1, size=n_kernels)
    return center, rng.random((n_kernels, d)).argsort(axis=1).argsort(axis=1) < size[:, None]


def _centers(x: np.ndarray, weight: np.ndarray, settings: RBFSettings) -> np.ndarray:
    seed = settings.seed
    n_kernels = min(settings.n_kernels, max(2, len(x) // 2))
    distinct = np.unique(x, axis=0)
    if len(distinct) <= n_kernels:
        return distinct
    if settings.init == "random":
        return np.random.default_rng(seed).permutation(distinct)[:n_kernels]
    means = KMeans(n_kernels, init="random", n_init=1, max_iter=10, random_state=seed)
    return means.fit(x, sample_weight=weight).cluster_centers_


# -- widths and ridges -----------------------------------------------------------------------------


@dataclass(frozen=True)
class _Search:
    """Held-out losses of widths and ridges, from the strongest ridge of a width to the weakest."""

    settings: RBFSettings
    n_classes: int
    mean_weight: float
    on_setting: Callable[[int, float], None] | None

    @property
    def ridges(self) -> list[float]:
        """Strengths from the strongest; before a fixed one, those that lead to it."""
        decades = round(np.log10(self.mean_weight))
        powers = range(max(decades, 0), min(decades, 0) - N_RIDGES, -1)
        ridges = [STRONGEST_RIDGE * 10.0**i for i in powers]
        fixed = self.settings.ridge
        return ridges if fixed is None else [*(r for r in ridges if r > fixed), fixed]

    def variances(self, layer: HiddenLayer) -> dict[float, float]:
        """Of the kernels, by the width that is tried: in the unit of the layer, or fixed."""
        width = self.settings.width
        return {w: w * layer.unit for w in WIDTHS} if width is None else {width: width**2}

    def readouts(
        self, layer: HiddenLayer, train: Labeled, variance: float
    ) -> Iterator[tuple[float, np.ndarray]]:
        """Ridges from strong to weak, and the readouts, (M + d + 1, K)."""
        x, codes, weight = train
        path = RidgePath(_inputs(layer.squared, variance, x), codes, weight, self.n_classes)
        for ridge in self.ridges:
            readout = path.solve(ridge)
            if self.settings.ridge in (None, ridge):
                yield ridge, readout

    def losses_on(
        self, held_out: Labeled, layer: HiddenLayer, train: Labeled, selection: Selection
    ) -> tuple[Losses, np.ndarray]:
        """Losses of widths and ridges, until they rise; and the best readout."""
        losses: Losses = {}
        best = np.empty(0)
        least = np.inf
        squared = distances_along(held_out[0], layer.center, layer.features)
        for width, variance in self.variances(layer).items():
            inputs = _inputs(squared, variance, held_out[0])
            before = least
            lowest = np.inf
            for ridge, readout in self.readouts(layer, train, variance):
                loss = selection.add(log_softmax(inputs @ readout[:-1] + readout[-1], axis=1))
                losses[width, ridge] = loss
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

    def losses_by_folds(self, train: Labeled, key: np.ndarray) -> Losses:
        """Mean losses over the folds of the settings that all of them tried."""
        fold = stratified_folds(train[1], SEARCH_FOLDS, key=key)

        def search(train: Labeled, held_out: Labeled) -> tuple[Losses, np.ndarray]:
            selection = Selection(*held_out[1:])
            layer = hidden_layer(train, self.settings)
            return self.losses_on(held_out, layer, train, selection)[0], selection.log_proba

        only = None if len(fold) < FEW_ROWS or (fold < 0).all() else [0]
        losses_of, _ = cross_fit(search, train, fold, only=only)
        if not losses_of:
            width, ridge = self.settings.width, self.settings.ridge
            return {(width or DEFAULT_WIDTH, self.ridges[1] if ridge is None else ridge): np.nan}
        tried = [at for at in losses_of[0] if all(at in losses for losses in losses_of)]
        return {at: float(np.mean([losses[at] for losses in losses_of])) for at in tried}


def _inputs(squared: np.ndarray, variance: float, x: np.ndarray) -> np.ndarray:
    """Activations, and the features as one more direction of variance one, (n, M + d)."""
    return np.hstack([np.exp(squared * (-0.5 / variance)), x * x.shape[1] ** -0.5])
