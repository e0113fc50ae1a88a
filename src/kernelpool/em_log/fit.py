"""EM-Log networks from rows: settings and data in, both layers out.

Ferreira & Figueiredo, "A global training algorithm for radial basis functions neural networks". The
mathematics is in `kernelpool.em_log.network` and `kernelpool.em_log.readout`.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils import check_X_y

from ..data.door import TrainingData, learned_rows, surveyed
from ..data.labels import given_weights, merge_duplicates
from ..data.scale import mean_and_variance
from ..em import Outcome
from ..errors import KernelpoolError
from ..kernels import FAMILIES, Kernels
from ..mixtures.fit import MixtureSettings, MixtureTraining
from ..mixtures.network import Params
from ..mixtures.start import Start, named_features
from ..rows import ArrayRows
from .network import EMLog, EMLogNetwork, EMLogRun, FittedEMLogRegressor, Hidden, train
from .readout import LeastSquares, Logistic, class_targets

STARTS = ("kmeans", "random", "em")

KERNELS_PER_CLASS = 10
"""Kernels of a classifier for each class, where their number is not given."""

KERNELS_OF_REGRESSOR = 40
"""Kernels of a regressor, where their number is not given."""

ROWS_PER_KERNEL = 5
"""Fewest distinct rows for each kernel, where their number is not given."""

LARGEST_TARGET = 1e140


@dataclass(frozen=True)
class EMLogSettings:
    """The parameters of `EMLogClassifier` and `EMLogRegressor`."""

    n_kernels: int | None
    init: Any
    training: str
    readout: str
    ridge: float | str
    activation: str
    temperature: float | None
    covariance_type: str
    kernel_prior: str | None
    patience: int | None
    max_iter: int
    tol: float
    seed: int


def fit_classes(data: TrainingData, settings: EMLogSettings) -> tuple[EMLogNetwork, str]:
    """The network of a classifier, and how the training ended."""
    n_classes = len(data.classes)
    logistic = settings.readout != "least_squares"
    rows: Any = data.rows
    first = 1 if logistic or n_classes == 2 else 0
    targets = class_targets(rows.y, rows.weight, n_classes, first)
    output: Logistic | LeastSquares = LeastSquares(*targets, settings.ridge)
    if logistic:
        output = Logistic(*targets, settings.ridge, bound=settings.readout == "bound")
    n_default = KERNELS_PER_CLASS * n_classes
    network, run = fit_em_log(data, output, settings, n_default)
    smallest = None if logistic else 1 / (data.weight + n_classes)
    readout = output.of_classes(network.readout)
    return replace(network, readout=readout, smallest=smallest), run.outcome


def fit_numbers(
    X: Any, y: Any, sample_weight: Any, settings: EMLogSettings, name: str
) -> tuple[FittedEMLogRegressor, str]:
    """A regressor from rows as the user passes them, and how the training ended."""
    columns, x = learned_rows(X, "from_dtype", name, np.float64)
    if any(columns.levels):
        label = columns.label(int(np.argmax(np.array(columns.levels) > 0)))
        raise KernelpoolError(
            f"{name} takes numbers; {label} of X holds categories. Encode them, such as by "
            "sklearn.preprocessing.OneHotEncoder."
        )
    x, y = check_X_y(x, y, multi_output=True, y_numeric=True, estimator=name)
    targets = np.asarray(y, np.float64).reshape(len(x), -1)
    if not np.abs(targets).max() < LARGEST_TARGET:
        raise KernelpoolError("y is too large to be squared in float64; rescale it.")
    # equal rows with equal targets are one: they are left out together
    table = np.hstack([x, targets])[:, ::-1]
    codes = np.zeros(len(x), np.int64)
    (*_, weight), first = merge_duplicates((table, codes, given_weights(x, sample_weight)))
    rows = ArrayRows(x[first], codes[first], weight)
    targets = targets[first]
    mean, variance = mean_and_variance(targets, weight)
    scale = np.where(variance > (1e-14 * np.abs(mean)) ** 2, variance, 1.0) ** 0.5
    output = LeastSquares((targets - mean) / scale, weight, settings.ridge)
    data = surveyed(rows, np.zeros(1, int), columns)
    network, run = fit_em_log(data, output, settings, KERNELS_OF_REGRESSOR)
    noise, covariance = output.uncertainty(run.network.design, run.network.readout)
    readout = network.readout * scale
    readout[-1] += mean
    fitted = FittedEMLogRegressor(
        columns=columns,
        network=replace(network, readout=readout),
        noise_variance=noise * scale**2,
        readout_covariance=covariance,
        single_output=y.ndim == 1,
    )
    return fitted, run.outcome


def fit_em_log(
    data: TrainingData, output: Logistic | LeastSquares, settings: EMLogSettings, n_default: int
) -> tuple[EMLogNetwork, EMLogRun]:
    """Both layers in the units of the data, and the run in the frame of the training.

    Without a given temperature one is chosen for normalized activations, and is 1 for others.
    """
    with named_features(data.columns):
        mixture, params, converged, n_sweeps = hidden_layer(data, settings, n_default)
        rows: Any = mixture.rows
        layers = EMLog(
            mixture.network(np.ones(params.mixing.shape)),
            Hidden(mixture.kernel, settings.activation),
            output,
            link=settings.training == "em_log_link",
            once=settings.readout in ("newton", "bound"),
        )

        def loss(temperature: float) -> float:
            network = layers.at(temperature).read(rows, params)
            return output.score(network.design, network.readout)

        d = rows.n_features
        temperature = settings.temperature
        if temperature is None and settings.activation == "normalized":
            temperature = min(sorted({1.0, float(d), float(d * d)}), key=loss)
        layers = layers.at(float(temperature or 1))
        if settings.training == "two_stage":
            run = EMLogRun(layers.read(rows, params), n_sweeps=n_sweeps, best_sweep=n_sweeps)
        else:
            run = train(layers, rows, params, settings.max_iter, settings.tol, settings.patience)
            improving = run.outcome == "max_iter" and run.best_sweep == run.n_sweeps
            converged = settings.patience is None or not improving
        network = in_data_units(run, layers, mixture, converged)
        network.activations(network.means[:1])  # a covariance that cannot be inverted ends the fit
    return network, run


def in_data_units(
    run: EMLogRun, layers: EMLog, mixture: MixtureTraining, converged: bool
) -> EMLogNetwork:
    """The best network of a run."""
    network = run.network
    hidden = layers.hidden
    kernels = mixture.in_data_units(network.hidden)
    log_scale = network.log_scale
    if hidden.activation != "normalized":
        log_scale = log_scale - mixture.frame.log_volume / hidden.temperature
    return EMLogNetwork(
        means=kernels.means,
        covariances=kernels.covariances,
        covariance_type=kernels.covariance_type,
        mixing=kernels.mixing[:, 0],
        readout=network.readout.weight,
        activation=hidden.activation,
        activation_log_scale=log_scale,
        temperature=hidden.temperature,
        ridge=float(network.readout.strength),
        loss=layers.output.score(network.design, network.readout),
        history=np.asarray(run.history),
        n_iter=run.n_sweeps,
        best_iter=run.best_sweep,
        converged=converged,
    )


# -- the first kernels -----------------------------------------------------------------------------

HiddenStart = tuple[MixtureTraining, Params, bool, int]
"""The training of the mixture, its start, whether EM converged (where it ran), and its sweeps."""


def hidden_layer(data: TrainingData, settings: EMLogSettings, n_default: int) -> HiddenStart:
    """The first kernels: "kmeans", "random", "em", or given.

    The mixture is a shared-kernel network of one class, to which all rows belong, labeled or not.
    Where `n_kernels` is None there are `n_default`, fewer where there are few distinct rows.
    """
    given = None
    family = settings.covariance_type
    if settings.init not in STARTS:
        given, mixing, family = given_mixture(settings.init, data.rows.n_features)
    of_mixture = MixtureSettings(
        settings.n_kernels,
        family,
        standardize=given is None,  # a mixture is in the units of the data
        kernel_prior=settings.kernel_prior,
        start=Start("random" if settings.init == "random" else "kmeans"),
        max_iter=settings.max_iter,
        tol=settings.tol,
        seed=settings.seed,
    )
    data = data.as_one_class()
    training = MixtureTraining(data, of_mixture)
    if given is not None:
        kernels = training.host_kernel.into(given, training.frame)
        return training, training.start(kernels, mixing[:, None]), True, 0
    if settings.n_kernels is None:
        most = max(1, len(training.samples[0].x) // ROWS_PER_KERNEL)
        training = MixtureTraining(data, replace(of_mixture, n_kernels=min(n_default, most)))
    start = training.first()
    if settings.init != "em":
        return training, start, True, 0
    fit = training.run(start)
    if fit.outcome is Outcome.INTERRUPTED:
        raise KeyboardInterrupt(fit.sentence(settings.max_iter))
    return training, fit.params, fit.outcome is Outcome.CONVERGED, fit.n_sweeps


def given_mixture(mixture: Any, n_features: int) -> tuple[Kernels, np.ndarray, str]:
    """Kernels, mixing weights and family of a fitted mixture, scikit-learn's, ours or any with the same
    attributes.
    """
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
    return Kernels(means, covariances), mixing / mixing.sum(), family
