"""EM-Log networks from rows: settings and data in, both layers out.

Ferreira & Figueiredo, "A global training algorithm for radial basis functions neural networks". The
mathematics is in `kernelpool.networks.em_log`, `logistic` and `least_squares`.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils import check_X_y

from ..arrays import Float64, match_array, namespace, safe_log, to_numpy
from ..em import Outcome
from ..errors import KernelpoolError
from ..kernels import FAMILIES, Kernels
from ..networks.em_log import EMLog, EMLogRun, Hidden, Layer, Mixture, OutputLayer, train
from ..networks.readout import Values
from ..networks.shared_kernel import Params
from ..penalties import Penalty
from ..rows import Block, Rows, as_rows
from ..starts import ClassSample
from ..starts.sample import Sample, sample_block
from ..tables.columns import Columns
from .complete_rows import mean_and_variance
from .frames import mixture_frame
from .prepare import TrainingData, given_weights
from .settings import Settings
from .shared_kernel import MixtureTraining

LARGEST_TARGET = 1e140

ROWS_PER_KERNEL = 5
"""Fewest distinct rows for each kernel when `n_kernels` is None."""

MAX_SAMPLED = 20_000
"""Rows from which starts are made."""


@dataclass(frozen=True)
class GivenMixture:
    """A mixture fitted before, in the units of the data."""

    kernels: Kernels
    mixing: np.ndarray
    """(M,)."""


@dataclass(frozen=True)
class EMLogConfig:
    """Settings of both layers except the readout itself."""

    n_kernels: int | None
    default_kernels: int
    """Where `n_kernels` is None; fewer where there are few distinct rows."""
    init: str | GivenMixture
    """Where the kernels start: "kmeans", "random", "em", or given."""
    kernel: Settings
    training: str
    """"two_stage", "em_log" or "em_log_link"."""
    activation: str
    temperature: float | None
    """None chooses one for normalized activations and is 1 for others."""
    single_step: bool
    """Whether each sweep makes one undamped step of the readout, as printed."""
    patience: int | None
    max_iter: int
    tol: float
    seed: int


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

    def activations(self, x: np.ndarray) -> np.ndarray:
        """Columns of the readout without the bias, (n, M)."""
        return self._of_columns(x, _activations)

    def outputs(self, x: np.ndarray) -> np.ndarray:
        """(n, o)."""
        return self._of_columns(x, _outputs, Float64(self.readout))

    def _of_columns(self, x: np.ndarray, function: Callable[..., Any], *params: Any) -> np.ndarray:
        kernel = FAMILIES[self.covariance_type](np.zeros(self.means.shape[1]))
        kernels = Kernels(self.means, self.covariances)
        frame = mixture_frame(kernel, kernels, self.mixing)
        rows = as_rows(np.asarray(x, np.float64))
        natural_params = kernel.natural_params(kernel.into(kernels, frame), rows.eps)
        log_scale = self.activation_log_scale
        if self.activation != "normalized":
            log_scale = log_scale + frame.log_volume / self.temperature
        layer = Layer(natural_params, safe_log(self.mixing), log_scale, np.zeros_like(log_scale))
        hidden = Hidden(kernel, self.activation, self.temperature)
        framed = rows.framed(frame, natural_params.weight.shape[1] + 5 * len(self.means))
        return np.asarray(framed.each(function, hidden, layer, *params))


def _activations(block: Block, hidden: Hidden, layer: Layer) -> Any:
    return hidden.columns(block, layer)[:-1, :].T


def _outputs(block: Block, hidden: Hidden, layer: Layer, readout: Float64) -> Any:
    return hidden.columns(block, layer).T @ readout.value


def fit_em_log(
    data: TrainingData, config: EMLogConfig, make_output: Callable[[Hidden], OutputLayer]
) -> tuple[EMLogNetwork, OutputLayer, EMLogRun, Rows]:
    """Both layers; the output layer, the run, and the rows in its frame."""
    training = EMLogTraining(data, config)
    params, settled, n_sweeps = training.start()
    em_log = training.network(training.temperature(params, make_output), make_output)
    if config.training == "two_stage":
        network = em_log.read(training.rows, params, once=False)
        run = EMLogRun(network, n_sweeps=n_sweeps, best_sweep=n_sweeps, outcome="two_stage")
    else:
        run = train(
            em_log,
            training.rows,
            params,
            max_iter=config.max_iter,
            tol=config.tol,
            patience=config.patience,
        )
        improving = run.outcome == "max_iter" and run.best_sweep == run.n_sweeps
        settled = config.patience is None or not improving
    network, temperature = run.network, em_log.hidden.temperature
    means, covariances, mixing = training.mixture.in_data_units(network.hidden)
    log_scale = to_numpy(network.layer.log_scale)
    if config.activation != "normalized":
        log_scale = log_scale - training.mixture.frame.log_volume / temperature
    fitted = EMLogNetwork(
        means=means,
        covariances=covariances,
        covariance_type=training.mixture.settings.type_in_data_units,
        mixing=mixing[:, 0],
        readout=np.array(to_numpy(network.readout.weight)),
        activation=config.activation,
        activation_log_scale=log_scale,
        temperature=temperature,
        ridge=network.readout.strength,
        loss=em_log.output.score(training.rows, network.layer, network.readout),
        history=np.asarray(run.history),
        n_iter=run.n_sweeps,
        best_iter=run.best_sweep,
        converged=settled,
    )
    return fitted, em_log.output, run, training.rows


class HiddenTraining(MixtureTraining):
    """The hidden layer: a shared-kernel network with one class."""

    def __init__(self, data: TrainingData, settings: Settings) -> None:
        one_class = replace(
            data,
            classes=np.zeros(1, int),
            class_weight=np.array([data.weight]),
            unlabeled_weight=0.0,
        )
        super().__init__(one_class, settings)

    def samples(self, seed: int) -> list[ClassSample]:
        """Rows of all classes, labeled or not."""
        drawn: Sample = self.rows.total(_sample_of, seed, MAX_SAMPLED)
        return [drawn.of_class(0)]

    def widen(self, n_kernels: int) -> None:
        """Make blocks leave room for the columns of the readout."""
        self.rows = self.data.rows.framed(self.frame, self._width + 4 * n_kernels)

    def _network(self, sharing: np.ndarray, penalty: Penalty | None = None) -> Mixture:
        own = self._penalty(sharing)
        table = match_array(sharing, like=self.rows.backend)
        return Mixture(self.kernel, table, own if penalty is None else own + penalty)


def _sample_of(block: Block, seed: int, most: int) -> Sample:
    xp = namespace(block.x)
    one_class = Block(block.x, xp.zeros(block.x.shape[0], dtype=xp.int64), block.weight)
    return sample_block(one_class, seed, most)


class EMLogTraining:
    """What follows from the settings and the data: the mixture, its size and its start."""

    def __init__(self, data: TrainingData, config: EMLogConfig) -> None:
        self.config = config
        settings = replace(config.kernel, max_iter=config.max_iter, tol=config.tol)
        self.mixture = HiddenTraining(data, settings)
        self.rng = np.random.default_rng(config.seed)
        self.samples: list[ClassSample] = []
        if isinstance(config.init, GivenMixture):
            self.counts = [len(config.init.mixing)]
        else:
            self.samples = self.mixture.samples(int(self.rng.integers(2**31)))
            most = max(1, len(self.samples[0].x) // ROWS_PER_KERNEL)
            fewer = min(config.default_kernels, most)
            wanted = fewer if config.n_kernels is None else config.n_kernels
            self.counts = self.mixture.counts(wanted, self.samples)
        self.mixture.widen(self.counts[0])
        self.rows = self.mixture.rows

    def start(self) -> tuple[Params, bool, int]:
        """First hidden layer, whether EM converged (where it ran), and its sweeps."""
        mixture, init = self.mixture, self.config.init
        one = np.ones((self.counts[0], 1))
        if isinstance(init, GivenMixture):
            kernels = mixture.host_kernel.into(init.kernels, mixture.frame)
            return mixture.start(kernels, init.mixing[:, None]), True, 0
        method = "random" if init == "random" else "kmeans"
        kernels = mixture.place(method, self.samples, self.counts, self.rng)
        start = mixture.start(kernels, one / len(one))
        if init != "em":
            return start, True, 0
        fit = mixture.run(start, one, np.zeros(len(one), int))
        if fit.outcome is Outcome.INTERRUPTED:
            raise KeyboardInterrupt(fit.sentence(self.config.max_iter))
        return fit.params, fit.outcome is Outcome.CONVERGED, fit.n_sweeps

    def network(self, temperature: float, make_output: Callable[[Hidden], OutputLayer]) -> EMLog:
        """The network whose sweeps are made."""
        hidden = Hidden(self.mixture.kernel, self.config.activation, temperature)
        mixture = self.mixture._network(np.ones((self.counts[0], 1)))
        link, once = self.config.training == "em_log_link", self.config.single_step
        return EMLog(mixture, hidden, make_output(hidden), link=link, once=once)

    def temperature(self, start: Params, make_output: Callable[[Hidden], OutputLayer]) -> float:
        """As given; or of 1, d and d², the one with the least loss on rows left out at the start."""
        if self.config.temperature is not None or self.config.activation != "normalized":
            return float(self.config.temperature or 1)
        losses, d = {}, self.rows.n_features
        for temperature in sorted({1.0, float(d), float(d * d)}):
            em_log = self.network(temperature, make_output)
            network = em_log.read(self.rows, start, once=False)
            losses[temperature] = em_log.output.score(self.rows, network.layer, network.readout)
        return min(losses, key=lambda temperature: losses[temperature])


def given_mixture(mixture: Any, n_features: int) -> tuple[GivenMixture, str]:
    """A fitted mixture, scikit-learn's, ours or any with the same attributes; and its family."""
    names = ("means_", "covariances_", "mixing_" if hasattr(mixture, "mixing_") else "weights_")
    missing = [name for name in names if not hasattr(mixture, name)]
    if missing:
        raise KernelpoolError(
            f"init must be 'kmeans', 'random', 'em' or a fitted mixture; got {type(mixture).__name__} "
            f"without {', '.join(missing)}. Fit it first; scikit-learn's clone drops the fit unless the "
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
            f"init has mixing weights {mixing.tolist()} for {len(means)} kernels; expected positive "
            f"numbers."
        )
    return GivenMixture(Kernels(means, covariances), mixing / mixing.sum()), family


def regression_data(
    estimator: Any, X: Any, y: Any, sample_weight: Any
) -> tuple[TrainingData, Values, bool]:
    """Rows with their targets, the scale of the targets, and whether y was one-dimensional."""
    if y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None."
        )
    columns = Columns.learn(X, None)
    checks: dict[str, Any] = {"multi_output": True, "y_numeric": True, "ensure_min_samples": 2}
    x, y = check_X_y(X, y, dtype=np.float64, estimator=estimator, **checks)
    targets = np.asarray(y, np.float64).reshape(len(x), -1)
    if not np.abs(targets).max() < LARGEST_TARGET:
        raise KernelpoolError("y is too large to be squared in float64; rescale it.")
    weight = np.ones(len(x)) if sample_weight is None else given_weights(x, sample_weight)
    if not weight.sum() > 0:
        raise KernelpoolError("sample_weight is zero for every row; at least one must be positive.")
    mean, variance = mean_and_variance(targets, weight)
    scale = np.where(variance > (1e-14 * np.abs(mean)) ** 2, variance, 1.0) ** 0.5
    data = TrainingData(
        as_rows(x, targets, weight),
        np.zeros(1, int),
        np.array([weight.sum()]),
        0.0,
        float((weight > 0).sum()),
        *mean_and_variance(x, weight),
        columns,
    )
    return data, Values(mean.tolist(), scale.tolist()), np.ndim(y) == 1
