"""EM-Log networks from rows: settings and data in, both layers out.

Ferreira & Figueiredo, "A global training algorithm for radial basis functions neural networks". The
mathematics is in `kernelpool.em_log.network` and `kernelpool.em_log.readout`.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils import check_X_y

from ..data.door import TrainingData, surveyed
from ..data.labels import given_weights
from ..data.scale import mean_and_variance
from ..em import Outcome
from ..errors import KernelpoolError
from ..kernels import FAMILIES, Kernels
from ..mixtures.fit import MixtureSettings, MixtureTraining
from ..mixtures.fitted import ClassDensities
from ..mixtures.network import Params
from ..mixtures.start import Start
from ..rows import ArrayRows
from ..tables.columns import Columns
from .network import EMLog, EMLogRun, Hidden, train
from .readout import LeastSquares, Logistic

LARGEST_TARGET = 1e140

ROWS_PER_KERNEL = 5
"""Fewest distinct rows for each kernel when `n_kernels` is None."""

GivenMixture = tuple[Kernels, np.ndarray]
"""Kernels of a mixture fitted before, in the units of the data, and its mixing weights (M,)."""


@dataclass(frozen=True, kw_only=True)
class EMLogNetwork:
    """A trained network in the units of the data."""

    means: np.ndarray
    covariances: np.ndarray
    covariance_type: str
    mixing: np.ndarray
    readout: np.ndarray
    """(M + 1, o)."""
    activation: str
    activation_log_scale: np.ndarray
    """log of what each column is divided by, (M,)."""
    temperature: float
    ridge: float
    loss: float
    """Per row, on rows left out."""
    history: np.ndarray
    n_iter: int
    best_iter: int
    converged: bool

    @property
    def mixture(self) -> ClassDensities:
        """The hidden layer: a mixture of one class."""
        arrays = self.covariance_type, self.means, self.covariances, self.mixing[:, None]
        return ClassDensities(*arrays, np.ones(1), None, (0,) * self.means.shape[1])

    def activations(self, x: np.ndarray) -> np.ndarray:
        """Columns of the readout without the bias, (n, M)."""
        mixture = self.mixture
        frame = mixture.frame
        kernels = mixture.kernel.into(mixture.kernels, frame)
        params = Params(kernels, mixture.mixing, mixture.class_prior)
        log_scale = self.activation_log_scale
        if self.activation != "normalized":
            log_scale = log_scale + frame.log_volume / self.temperature
        rows = ArrayRows(x).framed(frame, 6 * len(self.means))
        return Hidden(mixture.kernel, self.activation, self.temperature).columns(
            rows, params, log_scale
        )

    def outputs(self, x: np.ndarray) -> np.ndarray:
        """(n, o)."""
        return np.asarray(self.activations(x) @ self.readout[:-1] + self.readout[-1])


def fit_em_log(
    start: "HiddenStart",
    output: Logistic | LeastSquares,
    *,
    training: str,
    activation: str,
    temperature: float | None,
    once: bool,
    patience: int | None,
    max_iter: int,
    tol: float,
) -> tuple[EMLogNetwork, EMLogRun]:
    """Both layers in the units of the data, and the run in the frame of the training.

    `temperature` None chooses one for normalized activations and is 1 for others; with `once` each
    sweep makes one undamped step of the readout, as printed.
    """
    mixture, params, settled, n_sweeps = start
    rows: Any = mixture.rows

    def em_log(temperature: float) -> EMLog:
        hidden = Hidden(mixture.kernel, activation, temperature)
        network = mixture._network(np.ones(params.mixing.shape))
        return EMLog(network, hidden, output, link=training == "em_log_link", once=once)

    def loss(temperature: float) -> float:
        network = em_log(temperature).read(rows, params)
        return output.score(network.design, network.readout)

    d = rows.n_features
    if temperature is None and activation == "normalized":
        temperature = min(sorted({1.0, float(d), float(d * d)}), key=loss)
    temperature = float(temperature or 1)
    if training == "two_stage":
        network = em_log(temperature).read(rows, params)
        run = EMLogRun(network, n_sweeps=n_sweeps, best_sweep=n_sweeps, outcome="two_stage")
    else:
        run = train(
            em_log(temperature), rows, params, max_iter=max_iter, tol=tol, patience=patience
        )
        network = run.network
        improving = run.outcome == "max_iter" and run.best_sweep == run.n_sweeps
        settled = patience is None or not improving
    outside = mixture.in_data_units(network.hidden)
    log_scale = network.log_scale
    if activation != "normalized":
        log_scale = log_scale - mixture.frame.log_volume / temperature
    fitted = EMLogNetwork(
        means=outside.means,
        covariances=outside.covariances,
        covariance_type=outside.covariance_type,
        mixing=outside.mixing[:, 0],
        readout=network.readout.weight,
        activation=activation,
        activation_log_scale=log_scale,
        temperature=temperature,
        ridge=float(network.readout.strength),
        loss=output.score(network.design, network.readout),
        history=np.asarray(run.history),
        n_iter=run.n_sweeps,
        best_iter=run.best_sweep,
        converged=settled,
    )
    fitted.activations(fitted.means[:1])  # a covariance that cannot be inverted ends the fit
    return fitted, run


HiddenStart = tuple[MixtureTraining, Params, bool, int]
"""The training of the mixture, its start, whether EM converged (where it ran), and its sweeps."""


def hidden_layer(
    data: TrainingData,
    settings: MixtureSettings,
    init: str | GivenMixture,
    *,
    n_kernels: int | None,
    default_kernels: int = 1,
    seed: int,
) -> HiddenStart:
    """The first kernels: "kmeans", "random", "em", or given.

    The mixture is a shared-kernel network of one class, to which all rows belong, labeled or not.
    Where `n_kernels` is None there are `default_kernels`, fewer where there are few distinct rows.
    """
    one_class = data.as_one_class()
    start = Start("random" if init == "random" else "kmeans")
    settings = replace(settings, n_kernels=n_kernels, start=start, seed=seed)
    mixture = MixtureTraining(one_class, settings)
    if not isinstance(init, str):
        kernels, mixing = init
        kernels = mixture.host_kernel.into(kernels, mixture.frame)
        return mixture, mixture.start(kernels, mixing[:, None]), True, 0
    if n_kernels is None:
        most = max(1, len(mixture.samples[0].x) // ROWS_PER_KERNEL)
        n_kernels = min(default_kernels, most)
        mixture = MixtureTraining(one_class, replace(settings, n_kernels=n_kernels))
    first = mixture.first(mixture.sharing)
    if init != "em":
        return mixture, first, True, 0
    fit = mixture.run(first, mixture.sharing, mixture.owners)
    if fit.outcome is Outcome.INTERRUPTED:
        raise KeyboardInterrupt(fit.sentence(settings.max_iter))
    return mixture, fit.params, fit.outcome is Outcome.CONVERGED, fit.n_sweeps


def merged(rows: Any, target: np.ndarray) -> tuple[ArrayRows, np.ndarray]:
    """Equal rows with equal targets (n, o) as one with their joint weight: they are left out
    together.
    """
    table = np.hstack([rows.x, target])
    _, first, place = np.unique(table, axis=0, return_index=True, return_inverse=True)
    weight = np.bincount(place.ravel(), rows.weight)
    return ArrayRows(rows.x[first], rows.y[first], weight), target[first]


def given_mixture(mixture: Any, n_features: int) -> tuple[GivenMixture, str]:
    """A fitted mixture, scikit-learn's, ours or any with the same attributes; and its family."""
    names = ("means_", "covariances_", "mixing_" if hasattr(mixture, "mixing_") else "weights_")
    missing = [name for name in names if not hasattr(mixture, name)]
    if missing:
        raise KernelpoolError(
            f"init must be 'kmeans', 'random', 'em' or a fitted mixture; got {mixture!r} without "
            f"{', '.join(missing)}. Fit it first; scikit-learn's clone drops the fit unless the "
            f"mixture is wrapped in sklearn.frozen.FrozenEstimator."
        )
    means, covariances, mixing = (np.asarray(getattr(mixture, name), np.float64) for name in names)
    if means.ndim != 2 or means.shape[1] != n_features:
        raise KernelpoolError(
            f"init has kernels of shape {means.shape}; X has {n_features} features."
        )
    family = str(getattr(mixture, "covariance_type_", getattr(mixture, "covariance_type", None)))
    shapes = {name: kernel.shape(*means.shape) for name, kernel in FAMILIES.items()}
    if covariances.shape != shapes.get(family):
        raise KernelpoolError(
            f"init has covariance_type={family!r} and covariances of shape {covariances.shape}; "
            f"expected one of {shapes}."
        )
    mixing = mixing if mixing.ndim == 1 else mixing @ np.asarray(mixture.class_prior_)
    valid = mixing.shape == means.shape[:1] and np.isfinite(mixing).all() and mixing.min() >= 0
    if not valid or not mixing.sum() > 0:
        raise KernelpoolError(
            f"init has mixing weights {mixing.tolist()} for {len(means)} kernels; expected "
            f"positive numbers."
        )
    return (Kernels(means, covariances), mixing / mixing.sum()), family


def regression_data(
    estimator: Any, X: Any, y: Any, sample_weight: Any
) -> tuple[TrainingData, np.ndarray, np.ndarray, np.ndarray]:
    """Rows; targets about their mean in units of their deviation (n, o); these means and
    deviations.
    """
    columns = Columns.learn(X)
    if any(columns.levels):
        name = columns.label(int(np.argmax(np.array(columns.levels) > 0)))
        raise KernelpoolError(
            f"{type(estimator).__name__} takes numbers; {name} of X holds categories. Encode them, "
            f"such as by sklearn.preprocessing.OneHotEncoder."
        )
    checks: dict[str, Any] = {"multi_output": True, "y_numeric": True, "ensure_min_samples": 2}
    x, y = check_X_y(X, y, dtype=np.float64, estimator=estimator, **checks)
    targets = np.asarray(y, np.float64).reshape(len(x), -1)
    if not np.abs(targets).max() < LARGEST_TARGET:
        raise KernelpoolError("y is too large to be squared in float64; rescale it.")
    weight = given_weights(x, sample_weight)
    rows, targets = merged(ArrayRows(x, np.zeros(len(x), np.int64), weight), targets)
    data = surveyed(rows, np.zeros(1, int), columns)
    mean, variance = mean_and_variance(targets, np.asarray(rows.weight))
    scale = np.where(variance > (1e-14 * np.abs(mean)) ** 2, variance, 1.0) ** 0.5
    return data, (targets - mean) / scale, mean, scale
